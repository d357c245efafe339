"""What the page posts about what it opens: an upload, its end, and which engines could check a state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcpscape.web.opened.uploads import MOST, UPLOADS
from tcpscape.web.questions.check import engines_here
from tcpscape.web.routes import Asked, Context, Post, Upload


def upload(context: Context, file: Path, name: str) -> dict[str, Any]:
    """Opens a file that the page has sent; answers with the document of what it is."""
    opened = UPLOADS.take(file, name)
    context.page.hold(opened)
    return opened.document()


def close(context: Context, asked: Asked) -> None:
    """Closes what the page has opened."""
    context.page.hold(None)


def engines(context: Context, asked: Asked) -> list[dict[str, Any]]:
    """The engines that could check a state, and why not."""
    return engines_here()


ROUTES = (Upload("upload", upload, MOST), Post("close", Asked, close), Post("engines", Asked, engines))
