"""What a test does on a page, in the page's own words: roles and names, as somebody who hears the page finds them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

INTERVAL = re.compile(r"\[[\d.]+, [\d.]+\]")
"""An interval in a sentence."""


def answer(page: Page) -> Locator:
    return page.get_by_role("region", name="Answer")


def answered(page: Page) -> str:
    """The answer as text, once it has an interval."""
    from playwright.sync_api import expect

    expect(answer(page)).to_contain_text(INTERVAL)
    return answer(page).inner_text()


def views(page: Page) -> list[str]:
    """Titles of the views, in the order of their tabs."""
    page.get_by_role("tab").first.wait_for()
    return [tab.inner_text().strip() for tab in page.get_by_role("tablist", name="Views").get_by_role("tab").all()]


def open_view(page: Page, title: str) -> None:
    """Goes to a view by its tab, and waits until nothing is being loaded."""
    from playwright.sync_api import expect

    tab = page.get_by_role("tab", name=title, exact=True)
    tab.click()
    expect(tab).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel", name=title, exact=True)).to_be_visible()
    page.wait_for_function("() => !document.querySelector('main [aria-busy=true]')")
    page.wait_for_timeout(400)


def field(page: Page, name: str) -> Locator:
    """The typed field of a quantity."""
    return page.get_by_role("textbox", name=name, exact=True)


def slider(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=name, exact=True)


def write(page: Page, name: str, text: str) -> None:
    """Types into a field, and leaves it."""
    field(page, name).fill(text)
    field(page, name).press("Enter")


def fragment(page: Page) -> str:
    """The state in the address."""
    return page.evaluate("() => decodeURIComponent(location.hash.slice(1))")
