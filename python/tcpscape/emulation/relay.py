"""What a port of the far end reaches on this machine: connections to the host's loopback, opened here, outside the namespaces.

The emulation's program asks through a Unix socket for a port, and receives a connected socket or the reason why there is none. Only ports that the
user named with `--reach` are opened, and only on the loopback.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from tcpscape.errors import refuse, shown

LOOPBACK = ("127.0.0.1", "::1")
PATIENCE_S = 3.0
"""s until a port of the loopback must have answered."""
MOST_PORT = 65_535
MESSAGE = 512
"""Most bytes of a message."""


@dataclass(frozen=True, slots=True)
class Reach:
    """A port of the far end and the port of this machine that it is."""

    far: int
    host: int

    @classmethod
    def of(cls, text: str) -> Reach:
        """`8000`, or `8080:8000` for another number at the far end.

        :raises ScenarioError: it is neither.
        """
        far, colon, host = text.strip().partition(":")
        return cls(_port(far, text), _port(host if colon else far, text))


def _port(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 5 and 0 < int(digits) <= MOST_PORT):
        refuse("reach", f"{shown(text)} is no port", "write 8000, or FAR:HOST as in 8080:8000")
    return int(digits)


class Outside:
    """Answers the emulation's program from a thread of this process, until it is closed."""

    def __init__(self, reached: Sequence[Reach]) -> None:
        self._ports = {reach.host for reach in reached}
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        """The end that the program inherits."""
        self._thread = threading.Thread(target=self._serve, name="reach", daemon=True)
        self._thread.start()

    def __enter__(self) -> Outside:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.theirs.close()
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_S)
        self._ours.close()

    def _serve(self) -> None:
        while message := self._next():
            try:
                port = int(message)
                if port not in self._ports:
                    raise OSError(f"port {port} is none of those to reach")
                with _connected(port) as connection:
                    socket.send_fds(self._ours, [b"ok"], [connection.fileno()])
            except (OSError, ValueError) as e:
                with contextlib.suppress(OSError):
                    self._ours.send(str(e).encode()[:MESSAGE] or b"no connection")

    def _next(self) -> bytes:
        try:
            return self._ours.recv(MESSAGE)
        except OSError:
            return b""


def _connected(port: int) -> socket.socket:
    """A connection to a port of the loopback, whichever of its addresses has it."""
    for address in LOOPBACK[:-1]:
        with contextlib.suppress(OSError):
            return _blocking(address, port)
    return _blocking(LOOPBACK[-1], port)


def _blocking(address: str, port: int) -> socket.socket:
    connection = socket.create_connection((address, port), PATIENCE_S)
    connection.settimeout(None)
    return connection
