"""The application: the page and its files, the stream of events, questions, and the requests of every module that has some.

A module of the explorer adds a request with `ROUTES`, and its name in :data:`MODULES`:

    class Words(Asked):
        state: State

    def words(context: Context, asked: Words) -> Any:
        return {"forward": ...}

    ROUTES = (Post("words", Words, words),)

The page then posts `{page, state}` to `/api/words` and gets JSON (None is status 202 and nothing, a :class:`Download` a file). A function runs in
a thread of its own and may take its time, but no trials of more than a moment: these are for questions. A TcpscapeError that it raises is status 400
and `{field, problem, fix, text}`; any other exception is a bug, whose traceback goes to stderr while the server goes on.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from typing_extensions import NotRequired, TypedDict

from tcpscape.errors import TcpscapeError, refuse, shown
from tcpscape.reading.documents import from_json
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.scenario.fields import Spec, validate
from tcpscape.web import page
from tcpscape.web.page import BAD, BUG, BusyError, MethodError, MissingError, bug_document, problem_document, status
from tcpscape.web.pages import Page, Pages
from tcpscape.web.questions import KINDS, Question
from tcpscape.web.state import State, of_page
from tcpscape.web.stream import EventStream, finite

MOST_BODY = MIB // 4
"""Bytes of the largest JSON that the page posts, unless a route says more."""
MOST_AT_ONCE, MOST_UPLOADS = 32, 4
"""Requests that are answered at a time, and files that are uploaded at a time."""
BODY = Kind("the page's request", "load the page again", MOST_BODY)
"""What the page posts."""
JSON = "application/json"
PageName = Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{8,64}$")]
"""The name that a page gives itself, a random one."""
Result = TypeVar("Result")


class Asked(Spec):
    """What the page posts; a subclass has what its route needs besides."""

    page: PageName


class OpenedDocument(TypedDict):
    """What the page shows at once of something that it, or the command line, has opened."""

    kind: Literal["measurement", "results", "setup"]
    """Which questions can be asked about it."""
    name: str
    about: str
    state: NotRequired[State]
    """Of a setup, the one that it stands for."""
    remarks: NotRequired[list[str]]
    """What that leaves out."""
    axes: NotRequired[dict[str, list[str]]]
    """Of a setup, its axes with their levels."""


@dataclass(frozen=True)
class Context:
    """What a request may use."""

    page: Page
    """The page that asks."""
    pages: Pages
    """All pages of this server, with the pool of threads (`pages.pool`) and what the command line named (`pages.opened`)."""


@dataclass(frozen=True)
class Download:
    """A file as the answer of a route."""

    name: str
    """Of the file, as the browser keeps it."""
    media_type: str
    data: bytes


@dataclass(frozen=True)
class Post:
    """JSON that the page posts to `/api/NAME`, and the function that answers it."""

    name: str
    body: type[Asked]
    answer: Callable[[Context, Any], Any]
    most: int = MOST_BODY
    """Bytes of the largest body."""

    method: ClassVar[str] = "POST"

    async def respond(self, request: Request, pages: Pages) -> Response:
        """The response to a request."""
        asked = validate(self.body, await _json(request, self.most), "the request")
        context = Context(pages.page(asked.page), pages)
        return await _respond(lambda: self.answer(context, asked))


@dataclass(frozen=True)
class Upload:
    """A file that the page posts to `/api/NAME?page=…&name=…` as it is, and the function that answers; the file is gone after it.

    `answer` gets the context, where the file is (in a temporary directory), and the name that the page gave it, which is only to be shown.
    """

    name: str
    answer: Callable[[Context, Path, str], Any]
    most: int
    """Bytes of the largest file."""

    method: ClassVar[str] = "POST"

    async def respond(self, request: Request, pages: Pages) -> Response:
        """The response to a request."""
        asked = validate(Asked, {"page": request.query_params.get("page", "")}, "the request")
        with _counted(_uploading, f"{MOST_UPLOADS} files are being read"), tempfile.NamedTemporaryFile(prefix="tcpscape-upload-") as file:
            async for chunk in _body(request, self.most):
                file.write(chunk)
            file.flush()
            context = Context(pages.page(asked.page), pages)
            return await _respond(lambda: self.answer(context, Path(file.name), request.query_params.get("name", "")))


@dataclass(frozen=True)
class Get:
    """A document of the server, which `/api/NAME` gives every page."""

    name: str
    answer: Callable[[Pages], Mapping[str, Any]]

    method: ClassVar[str] = "GET"

    async def respond(self, _: Request, pages: Pages) -> Response:
        """The response to a request."""
        return await _respond(lambda: self.answer(pages))


AnyRoute = Post | Upload | Get


class Api:
    """The requests below `/api/` of the modules that have some, each of which is imported when one of them is wanted first."""

    def __init__(self, routes: Sequence[AnyRoute], modules: Sequence[str]) -> None:
        """`routes`: those that are always there. `modules`: names in this package, those that are wanted first come first."""
        self._modules = iter(modules)
        self._known: dict[str, AnyRoute] = {route.name: route for route in routes}
        self._lock = threading.Lock()

    async def respond(self, request: Request, pages: Pages) -> Response:
        """The response to a request below `/api/`. :raises MissingError: there is none of this name."""
        name = request.path_params["name"]
        route: AnyRoute = self._known[name] if name in self._known else await in_thread(lambda: self.find(name))
        if request.method != route.method:
            refuse(name, f"this is a {route.method}, not a {request.method}", "load the page again", MethodError)
        return await route.respond(request, pages)

    def find(self, name: str) -> AnyRoute:
        """The request of this name. :raises MissingError: there is none."""
        while name not in self._known and self._add():
            pass
        if name not in self._known:
            refuse(shown(name), "there is no such request", "load the page again", MissingError)
        return self._known[name]

    def load(self) -> None:
        """Imports every module that has not been."""
        while self._add():
            pass

    def _add(self) -> bool:
        """Takes the requests of one more module; False where there is none."""
        with self._lock:
            if (module := next(self._modules, None)) is None:
                return False
            self._known |= {route.name: route for route in import_module(f"tcpscape.web.{module}").ROUTES}
            return True


async def guarded(respond: Callable[[], Awaitable[Response]]) -> Response:
    """The response, of which errors are one too: what the page can mend, or a bug."""
    try:
        return await respond()
    except TcpscapeError as e:
        return JSONResponse(problem_document(e), status(e))
    except ClientDisconnect:
        return Response(status_code=BAD)
    except Exception as e:
        return JSONResponse(bug_document(e), BUG)


async def _respond(answer: Callable[[], Any]) -> Response:
    result = await in_thread(answer)
    if isinstance(result, Download):
        plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in result.name)
        return Response(result.data, media_type=result.media_type, headers={"Content-Disposition": f'attachment; filename="{plain}"'})
    return Response(status_code=202) if result is None else JSONResponse(finite(result))


_working, _uploading = threading.Semaphore(MOST_AT_ONCE), threading.Semaphore(MOST_UPLOADS)


@contextmanager
def _counted(slots: threading.Semaphore, problem: str) -> Iterator[None]:
    """Takes one of the slots. :raises BusyError: none is free."""
    if not slots.acquire(blocking=False):
        refuse("page", problem, "wait a moment", BusyError)
    try:
        yield
    finally:
        slots.release()


async def in_thread(work: Callable[[], Result]) -> Result:
    """What `work` returns, in a thread that the end of the process does not wait for. :raises BusyError: so many do already."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()
    if not _working.acquire(blocking=False):
        refuse("page", f"{MOST_AT_ONCE} requests are being answered", "wait a moment", BusyError)

    def settle(error: BaseException | None, result: Any) -> None:
        if future.cancelled():
            return
        future.set_exception(error) if error else future.set_result(result)

    def run() -> None:
        error, result = None, None
        try:
            result = work()
        except BaseException as e:
            error = RuntimeError("a request ended itself") if isinstance(e, (StopIteration, SystemExit, KeyboardInterrupt)) else e
        finally:
            _working.release()
        try:
            loop.call_soon_threadsafe(settle, error, result)
        except RuntimeError:  # the server has ended
            return

    threading.Thread(target=run, daemon=True).start()
    return await future


async def _json(request: Request, most: int) -> Any:
    origin = Origin("the request", BODY)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        refuse("the request", f"its content is not {JSON}", "load the page again")
    data = b"".join([chunk async for chunk in _body(request, most)])
    try:
        return from_json(data.decode(), origin)
    except UnicodeDecodeError:
        origin.refuse("is not UTF-8")


async def _body(request: Request, most: int) -> AsyncIterator[bytes]:
    """The chunks of a request's body, of which more than so many bytes are refused."""
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            refuse("the request", f"it has more than {most} bytes", "send less")
        yield chunk


MODULES = ("start", "take", "diagram", "download", "opened", "questions.check")
"""The modules with requests below `/api/`, each its own; what a page wants first comes first."""

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
        super().__init__(
            [
                Route("/api/stream", self._stream, methods=["GET"]),
                Route("/api/{name:path}", self._api, methods=["GET", "POST"]),
                Route("/{path:path}", self._file, methods=["GET"]),
            ]
        )

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
