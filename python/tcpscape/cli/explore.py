"""`tcpscape explore`: the explorer, a page in the browser that answers while its sliders move."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import click

from tcpscape import writing
from tcpscape.cli import streams
from tcpscape.cli.command import Argument, Option, command
from tcpscape.errors import EngineError, refuse

if TYPE_CHECKING:
    from tcpscape.web.opened import Opened

PAGE = """<!doctype html>
<meta charset="utf-8"><meta http-equiv="refresh" content="0;url={url}"><title>tcpscape</title><a href="{url}">Open the explorer</a>
"""
"""The file by which the browser finds the address: on a command line, others on this machine would see its token."""
FORGOTTEN_S = 60.0
"""How long that file is kept, s."""


@command(examples=("explore", "explore --no-browser --port 8420"))
def explore(
    source: Annotated[
        str | None, Argument("What the page begins with: a scenario, a directory of results, a capture, a file.", metavar="[SOURCE]", complete="file")
    ] = None,
    browser: Annotated[bool, Option("Open the page in the browser.", name="--browser/--no-browser")] = True,
    port: Annotated[int, Option("Port on loopback; 0 is a free one.", least=0, most=65535)] = 0,
) -> None:
    """Open a page in the browser whose sliders are the path and whose curves follow them.

    It is served on loopback by this process, until Ctrl-C, to whoever has the address that is printed; no request leaves this machine.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as e:
        refuse("explore", f"the package {e.name} is not installed", "run `pip install 'tcpscape[web]'`", EngineError)
    from tcpscape.web.serve import serve

    begin = _opened(source) if source is not None else None

    def announce(url: str) -> None:
        print(url, flush=True)
        if browser:
            threading.Thread(target=_open, args=(url,), daemon=True).start()

    try:
        serve(begin, port, announce)
    except KeyboardInterrupt as e:
        raise click.exceptions.Exit(streams.status(e)) from None
    finally:
        writing.end_spools()


def _opened(source: str) -> Opened:
    """What the page begins with."""
    from tcpscape.web import opened

    return opened.of_argument(source)


def _open(url: str) -> None:
    """Opens the address in a browser with a window, if there is one; otherwise the line with the address is there."""
    import webbrowser

    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        return
    spool = writing.Spool()  # of this user alone
    try:
        webbrowser.open(writing.whole(spool.root / "open.html", PAGE.format(url=url)).as_uri())
        threading.Event().wait(FORGOTTEN_S)
    finally:
        spool.close()
