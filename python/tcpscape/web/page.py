"""The built page: its files, each by its exact name, so that no other file can be asked for."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tcpscape.reading import packaged
from tcpscape.web import problems

STATIC = "web/static"
"""Where the built page is in the package."""
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
    ".png": "image/png", ".json": "application/json", ".woff2": "font/woff2", ".ico": "image/x-icon", ".webmanifest": "application/manifest+json",
}  # fmt: skip
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
        nothing = problems.MissingError("address: there is nothing here; open the address that the command printed")
        return JSONResponse(problems.document(nothing), problems.status(nothing))
    kept = FOR_EVER if name.startswith("assets/") else "no-cache"
    return Response(packaged.data(found), media_type=TYPES[found.suffix], headers={"Cache-Control": kept})
