"""What the browser gets besides answers: the built page's files, and what it is told where something is wrong.

A file is served by its exact name, so that no other can be asked for. An error is its line with its parts, and the HTTP status that goes with it.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tcpscape.errors import TcpscapeError
from tcpscape.reading import packaged

BAD, MISSING, METHOD, BUSY, BUG = 400, 404, 405, 429, 500
"""HTTP statuses: what was asked makes no sense, does not exist, is asked by the wrong method, is too much at once, and an error of ours."""


class MissingError(TcpscapeError):
    """A question, a page or a document that does not exist."""


class MethodError(TcpscapeError):
    """A GET of what is posted, or the other way round."""


class BusyError(TcpscapeError):
    """More at once than this process serves."""


STATUSES: dict[type[TcpscapeError], int] = {MissingError: MISSING, MethodError: METHOD, BusyError: BUSY}
"""Statuses of errors; that of every other one is :data:`BAD`."""
A_BUG = TcpscapeError("explorer: this is a bug of tcpscape; the terminal in which the explorer runs shows where, please report it")
"""What the page says after an exception that nobody meant; its traceback goes to stderr."""


def problem_document(error: TcpscapeError) -> dict[str, Any]:
    """The parts of an error, and its line."""
    return {"field": error.field, "problem": error.problem, "fix": error.fix, "text": str(error)}


def status(error: TcpscapeError) -> int:
    """The HTTP status of an error."""
    return STATUSES.get(type(error), BAD)


def bug_document(error: BaseException) -> dict[str, Any]:
    """Writes the traceback of a bug to stderr; returns what the page is told."""
    traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    return problem_document(A_BUG)


STATIC = "web/static"
"""Where the built page is in the package."""
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".ico": "image/x-icon",
    ".webmanifest": "application/manifest+json",
}
"""Media types by the ending of a file's name; a file of another kind is not served."""
FOR_EVER = "public, max-age=31536000, immutable"
"""How long a browser keeps files whose name has a hash of what is in them: those below `assets/`."""


def is_built() -> bool:
    """Whether the page is there."""
    return INDEX in files()


def root() -> Path:
    """The directory of the built page."""
    return Path(str(packaged.folder(STATIC)))


def files() -> dict[str, Path]:
    """The page's files by their path in its address, without the slash at the beginning."""
    top = root()
    return {file.relative_to(top).as_posix(): file for file in top.rglob("*") if file.suffix in TYPES and file.is_file()}


async def file(request: Request) -> Response:
    """The response with a file; status 404 where there is none of this name."""
    name = request.path_params["path"] or INDEX
    found = files().get(name)
    if found is None:
        nothing = MissingError("address: there is nothing here; open the address that the command printed")
        return JSONResponse(problem_document(nothing), status(nothing))
    kept = FOR_EVER if name.startswith("assets/") else "no-cache"
    return Response(packaged.data(found), media_type=TYPES[found.suffix], headers={"Cache-Control": kept})
