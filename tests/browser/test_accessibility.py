"""The page for those who cannot see its colours, hold a mouse, or have a wide screen: axe, the keyboard, 400 px and a zoom of 200 %."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from browser.driving import answered, field, fragment, open_view, views
from browser.explorer import Explorer
from conftest import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SIZES = {"a desk": (1280, 800), "400 px": (400, 800), "200 %": (640, 400)}
"""Width and height in CSS pixels; a zoom of 200 % on 1280 × 800 leaves half of both."""


def violations(page: Page) -> list[str]:
    """What axe finds: rule, what it says, and the elements, a line each."""
    if not AXE.exists():
        pytest.skip("axe-core is not there: make web (needs Node 20.19 or newer, and a network)")
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("(rules) => axe.run(document, { runOnly: rules })", RULES)["violations"]
    return [f"{each['id']}: {each['help']}: {json.dumps([node['html'][:160] for node in each['nodes'][:4]])}" for each in found]


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_axe_finds_nothing_in_any_view(visit, explorer: Explorer, scheme: str):
    page = visit(explorer, color_scheme=scheme)
    answered(page)
    found = {}
    for view in views(page):
        open_view(page, view)
        found[view] = violations(page)
    assert found
    assert not {view: lines for view, lines in found.items() if lines}


def test_axe_finds_what_is_wrong(visit, explorer: Explorer):
    """The test above rests on it."""
    page = visit(explorer)
    answered(page)
    page.evaluate("() => document.querySelector('main').append(document.createElement('button'), document.createElement('img'))")
    assert {line.split(":")[0] for line in violations(page)} >= {"button-name", "image-alt"}


@pytest.mark.parametrize("size", SIZES)
def test_nothing_has_to_be_scrolled_sideways(visit, explorer: Explorer, size: str):
    width, height = SIZES[size]
    page = visit(explorer, "rate=42mbit", viewport={"width": width, "height": height})
    answered(page)
    for view in views(page):
        open_view(page, view)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, view
        wide = page.evaluate(
            "(width) => [...document.querySelectorAll('button, input, select, summary, h1, h2, h3')].filter((e) => e.checkVisibility() && !e.closest('table, [tabindex], [role=tablist]') && e.getBoundingClientRect().right > width + 1).map((e) => e.outerHTML.slice(0, 120))",
            width,
        )
        assert not wide, view


def reach(page: Page, role: str, name: str, key: str = "Tab") -> None:
    """Presses a key until the focus is on what has this role and name; within 80 times."""
    wanted = page.get_by_role(role, name=name, exact=True).first  # type: ignore[arg-type]
    for _ in range(80):
        if wanted.evaluate("(e) => e === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{role} {name} is not reached by {key}")


def test_the_page_is_used_by_keyboard_alone(visit, explorer: Explorer):
    from playwright.sync_api import expect

    page = visit(explorer, "rate=8mbit&duration=2s")
    answered(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the answer")).to_be_focused()
    reach(page, "textbox", "RTT")
    page.keyboard.press("Control+a")
    page.keyboard.type("90ms")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.includes('rtt=90ms')")
    reach(page, "slider", "Loss")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.hash.includes('loss=')")
    assert field(page, "Loss").input_value() in fragment(page)
    reach(page, "button", "reno")
    page.keyboard.press("Space")
    page.wait_for_function("() => location.hash.includes('reno')")
    reach(page, "tab", "Curves")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tabpanel", name="Cliff map")).to_be_visible()
    reach(page, "button", "Take it along", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Take it along")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Take it along")).to_be_focused()
