"""Fixtures: one Chromium and one server for all tests, a fresh context for each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tcpscape.web
from browser.explorer import Explorer
from browser.watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE_MS = 30_000
"""How long an expectation waits on a machine with other work."""
HERE = Path(__file__).parent
DESK = {"width": 1280, "height": 800}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that is in this directory has the marker `web`."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.web)


@pytest.fixture(scope="session")
def built() -> None:
    """Skips where the page is not built."""
    pytest.importorskip("uvicorn", reason="the extra `web` is not installed")
    if not (Path(tcpscape.web.__file__).parent / "static/index.html").exists():
        pytest.skip("the page is not built: make web (needs Node 20.19 or newer)")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make setup")
    if not (path := shutil.which("chromium")):
        pytest.skip("chromium is not installed: apt-get install chromium")
    playwright.expect.set_options(timeout=PATIENCE_MS)
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def explorer(built: None) -> Iterator[Explorer]:
    """A server that all tests share: none may end it."""
    with Explorer() as running:
        yield running


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page of a server, in a context of its own, and looks after it; `fragment` is the state, as it stands in the address behind the #."""
    watches = []
    contexts = []

    def enter(server: Explorer, fragment: str = "", **options: Any) -> Page:
        context = chromium.new_context(**{"viewport": DESK, "accept_downloads": True, **options})
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        watch = Watch(context, server.origin)
        watches.append(watch)
        page = context.new_page()
        page.watch = watch  # type: ignore[attr-defined]
        page.goto(server.url + (f"#{fragment}" if fragment else ""))
        return page

    yield enter
    for context in contexts:
        context.close()
    problems = [problem for watch in watches for problem in watch.unexpected()]
    assert not problems, "\n".join(problems)
