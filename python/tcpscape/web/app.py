"""The application: the page and its files, the stream of events, and the requests of every module that has some."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from tcpscape.errors import refuse
from tcpscape.scenario.fields import validate
from tcpscape.web import page
from tcpscape.web.pages import Pages
from tcpscape.web.problems import MethodError
from tcpscape.web.routes import Api, Asked, guarded
from tcpscape.web.stream import EventStream

MODULES = ("start", "ask", "path", "take", "download", "opened.routes")
"""The modules with requests below `/api/`, each its own (`routes` says how); what a page wants first comes first."""


class Application(Router):
    """The application; `pages` are its pages."""

    def __init__(self, opened: Any = None) -> None:
        """`opened`: what the command line named (a capture, a directory), which every page begins with; None where it named nothing."""
        self.pages, self.api = Pages(opened), Api(MODULES)
        super().__init__([
            Route("/api/stream", self._stream, methods=["GET"]), Route("/api/{name:path}", self._api, methods=["GET", "POST"]),
            Route("/{path:path}", self._file, methods=["GET"]),
        ])  # fmt: skip

    async def _stream(self, request: Request) -> Response:
        async def respond() -> Response:
            if request.method != "GET":  # a HEAD, which would take the page's blocks and show none
                refuse("stream", f"this is a GET, not a {request.method}", "load the page again", MethodError)
            asked = validate(Asked, {"page": request.query_params.get("page", "")}, "the request")
            its = self.pages.page(asked.page)
            return EventStream(its.outbox, its.arrive, its.leave)

        return await guarded(respond)

    async def _api(self, request: Request) -> Response:
        return await guarded(lambda: self.api.respond(request, self.pages))

    async def _file(self, request: Request) -> Response:
        return await guarded(lambda: page.file(request))
