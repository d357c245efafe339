"""The server's life: its socket on loopback, its address, and its end."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from tcpscape.errors import EngineError, TcpscapeError, refuse
from tcpscape.web import page
from tcpscape.web.security import NAMES, Doorway, Guard, Keys, protocol

if TYPE_CHECKING:
    from tcpscape.web.pool import Pool
    from tcpscape.web.routes import Api

BACKLOG = 128
"""Connections that wait while the server starts."""
MOST_CONNECTIONS = 256
"""Connections at a time; more get status 503. Those without the token are far fewer (:mod:`tcpscape.web.security`)."""
SWITCH_S = 1e-3
"""How long a thread that computes keeps the others waiting, s: Python's own 5 ms would be seen at every move of a slider."""
LAST_S = 0.5
"""How long the server waits in the end for responses that are on their way, s."""


def serve(opened: Any, port: int, announce: Callable[[str], None]) -> None:
    """Serves the explorer until a signal comes, which then reaches whoever handles it (as KeyboardInterrupt, for example).

    :param opened: what the command line named, which every page begins with; None where it named nothing.
    :param port: 0 is a free one.
    :param announce: called with the address, with its token, as soon as a browser can open it.
    :raises TcpscapeError: the port is taken, or the page is not built.
    """
    if not page.is_built():
        refuse("page", "the explorer's page is not built", "run `make web` in the checkout (it needs Node), or install a release", EngineError)
    with listening(port) as door:
        keys = Keys(door.getsockname()[1])
        announce(keys.url)
        sys.setswitchinterval(SWITCH_S)
        Server(opened, keys).run([door])


class Server(uvicorn.Server):
    """A server that ends its streams before it waits for what is on its way."""

    def __init__(self, opened: Any, keys: Keys) -> None:
        from tcpscape.web.routes import Application  # once the address is printed

        self.served = Application(opened)
        doorway = Doorway()
        super().__init__(
            uvicorn.Config(
                Guard(self.served, keys, doorway),
                log_level="critical",
                access_log=False,
                lifespan="off",
                ws="none",
                http=protocol(doorway),
                server_header=False,
                loop="asyncio",
                proxy_headers=False,
                timeout_keep_alive=30,
                limit_concurrency=MOST_CONNECTIONS,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Answers from now on, and imports what the first question needs meanwhile."""
        await super().startup(sockets)
        threading.Thread(target=warm, args=(self.served.pages.pool, self.served.api), daemon=True).start()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A closed terminal ends the server as Ctrl-C does, unless whoever started the process ignores that (nohup)."""
        hang_up = getattr(signal, "SIGHUP", None)
        with super().capture_signals():
            is_main = threading.current_thread() is threading.main_thread()
            if hang_up is None or not is_main or signal.getsignal(hang_up) is signal.SIG_IGN:
                yield
                return
            before = signal.signal(hang_up, self.handle_exit)
            try:
                yield
            finally:
                signal.signal(hang_up, before)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends within :data:`LAST_S` and a moment."""
        self.served.pages.close()
        try:
            await asyncio.wait_for(super().shutdown(sockets), LAST_S)
        except asyncio.TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()


def listening(port: int) -> socket.socket:
    """A socket on loopback that takes connections from now on."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((NAMES[0], port))
        made.listen(BACKLOG)
    except OSError as e:
        made.close()
        refuse("port", f"{port} cannot be used: {e.strerror}", "choose another one; 0 is any free one", EngineError)
    return made


def warm(pool: Pool, api: Api) -> None:
    """What the first question would wait for, while the page is being loaded: answers a small one to nobody, and imports what the others need."""
    from tcpscape.web.pool import Cancelled, Work
    from tcpscape.web.questions import KINDS
    from tcpscape.web.questions.answer import Answer
    from tcpscape.web.state import State

    try:
        Answer(seeds=3).answer(State(duration="100ms"), Work(pool, lambda block: None), None)
        for name in KINDS:
            KINDS[name]
        api.load()
    except (Cancelled, TcpscapeError):  # whoever asks gets the same, and is told
        return
