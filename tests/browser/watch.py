"""What a page must never do, watched while a test uses it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

BREACHES = """
addEventListener("securitypolicyviolation", (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`));
addEventListener("unhandledrejection", (e) => console.error(`unhandled: ${e.reason}`));
"""
"""Runs in every page before its own scripts, and says on the console what Chromium says nowhere, or only to developers."""


class Watch:
    """Collects what went wrong on the pages of one context."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        """`origin`: the only place that requests may go to."""
        self._origin, self._allowed = origin, []  # type: tuple[str, list[str]]
        self.problems: list[str] = []
        self.requests: list[str] = []
        context.add_init_script(BREACHES)
        context.on("console", self._console)
        context.on("weberror", lambda error: self.problems.append(f"exception: {error.error}"))
        context.on("request", self._request)
        context.on("page", self._page)

    def allow(self, pattern: str) -> None:
        """What matches this is meant to happen in this test (a refused request is an error on the console)."""
        self._allowed.append(pattern)

    def unexpected(self) -> list[str]:
        """The problems that the test did not allow."""
        return [problem for problem in self.problems if not any(re.search(pattern, problem) for pattern in self._allowed)]

    def _page(self, page: Page) -> None:
        page.on("crash", lambda _: self.problems.append("the page crashed"))
        page.on("dialog", lambda dialog: (self.problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.problems.append(f"console, {message.type}: {message.text} ({message.location.get('url', '')})")

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith((f"{self._origin}/", "blob:" + self._origin)):
            self.problems.append(f"request to another place: {request.method} {request.url}")
