"""The application: the page and its files, the stream of events, questions, and the requests of every module that has some."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import validate
from tcpscape.web import page
from tcpscape.web.pages import Pages
from tcpscape.web.problems import MethodError, MissingError
from tcpscape.web.questions import KINDS, Question
from tcpscape.web.routes import Api, Asked, Context, Post, guarded
from tcpscape.web.state import of_page
from tcpscape.web.stream import EventStream

MODULES = ("start", "path", "take", "download", "opened.uploads", "questions.check")
"""The modules with requests below `/api/`, each its own (`routes` says how); what a page wants first comes first."""

Generation = Annotated[int, Field(ge=0, lt=2**53)]
"""A page's counter of the questions of a kind."""


class Ask(Asked):
    """A question about the page's state."""

    kind: str
    generation: Generation
    """How often the page has asked this kind of question: it comes back in every block."""
    state: dict[str, Any]
    options: dict[str, Any] = Field(default_factory=dict)


class Cancel(Asked):
    """The end of questions whose answers nobody looks at any more."""

    kind: str
    generation: Generation
    """Those that were asked before it are ended; they may come after this request."""


def ask(context: Context, asked: Ask) -> None:
    """Begins to answer; the blocks go over the page's stream."""
    question = validate(_kind(asked.kind), asked.options, "the options")
    context.page.ask(question, asked.generation, of_page(asked.state))


def cancel(context: Context, asked: Cancel) -> None:
    """Ends the question of this kind, unless it was asked after that."""
    context.page.cancel(_kind(asked.kind).kind, asked.generation)


def _kind(name: str) -> type[Question]:
    if name not in KINDS:
        refuse("kind", f"{shown(name)} is no question", f"choose {', '.join(KINDS)}", MissingError)
    return KINDS[name]


class Application(Router):
    """The application; `pages` are its pages."""

    def __init__(self, opened: Any = None) -> None:
        """`opened`: what the command line named (a capture, a directory), which every page begins with; None where it named nothing."""
        self.pages, self.api = Pages(opened), Api((Post("ask", Ask, ask), Post("cancel", Cancel, cancel)), MODULES)
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
