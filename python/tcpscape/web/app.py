"""The routes: the page and its files, the stream of events, and what the page posts."""

from __future__ import annotations

import asyncio
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tcpscape.web import start
from tcpscape.web.pages import Page
from tcpscape.web.questions import KINDS
from tcpscape.web.state import State
from tcpscape.web.work import Pool

STATIC = Path(__file__).parent / "static"
"""The built page."""


def build() -> Starlette:
    """The application."""
    pool = Pool()
    pages: dict[str, Page] = {}

    def page(name: str) -> Page:
        return pages.setdefault(name, Page(pool, asyncio.get_running_loop()))

    async def stream(request: Request) -> Response:
        return StreamingResponse(page(request.query_params["page"]).events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def ask(request: Request) -> Response:
        asked = await request.json()
        question = KINDS[asked["kind"]].model_validate(asked.get("options", {}))
        page(asked["page"]).ask(question, int(asked["generation"]), State.model_validate(asked["state"]))
        return Response(status_code=202)

    async def begin(request: Request) -> Response:
        return JSONResponse(start.document())

    return Starlette(routes=[
        Route("/api/start", begin), Route("/api/stream", stream), Route("/api/ask", ask, methods=["POST"]),
        Mount("/", StaticFiles(directory=STATIC, html=True)),
    ])  # fmt: skip
