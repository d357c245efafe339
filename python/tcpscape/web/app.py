"""The application: the page and its files, the stream of events, and the requests of every module that has some."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from tcpscape.scenario.fields import validate
from tcpscape.web import ask, download, page, path, start, take
from tcpscape.web.opened import routes as opening
from tcpscape.web.pages import Pages
from tcpscape.web.routes import AnyRoute, Asked, guarded
from tcpscape.web.stream import EventStream

ROUTES: tuple[AnyRoute, ...] = (
    *start.ROUTES,
    *ask.ROUTES,
    *path.ROUTES,
    *take.ROUTES,
    *download.ROUTES,
    *opening.ROUTES,
)
"""The requests below `/api/`, of each module its own (`routes` says how)."""


def build(opened: Any = None) -> Starlette:
    """The application.

    :param opened: what the command line named (a capture, a directory), which every page begins with; None where it named nothing.
    """
    pages = Pages(opened)

    async def stream(request: Request) -> Response:
        asked = validate(Asked, {"page": request.query_params.get("page", "")}, "the request")
        its = pages.page(asked.page)
        return EventStream(its.outbox, its.arrive, its.leave)

    routes = [guarded("/api/stream", stream, "GET"), *(route.route(pages) for route in ROUTES), guarded("/{path:path}", page.file, "GET")]
    app = Starlette(routes=routes)
    app.state.pages = pages
    return app
