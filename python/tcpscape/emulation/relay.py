"""Ways out of the namespaces: connections to the host's loopback, opened here, and the world outside in place of the far end.

The emulation's program asks through a Unix socket for a port, and receives a connected socket or the reason why there is none. Only ports that the
user named with `--reach` are opened, and only on the loopback. slirp4netns connects a namespace with the world without root. It runs with the user's
rights in this machine's own network, and makes a connection of its own for each that comes out of the path. Without it there is no way out: only
root may give a namespace a device of the machine.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack
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
        """`8000`, or `8080:8000` for another number at the far end. :raises ScenarioError: it is neither."""
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


PROGRAM = "slirp4netns"
DEVICE = "tap0"
DEVICE_S = 10.0
"""s until its device must be there."""


def expect() -> None:
    """Refuses where the program is missing. :raises ScenarioError: with what to type."""
    if not shutil.which(PROGRAM):
        refuse("outside", f"{PROGRAM} is not installed", f"apt-get install {PROGRAM}, or give the far end ports of this machine with --reach")


class Way:
    """The way out of a namespace, as long as the context lasts."""

    def __init__(self, network: str, process: int, *, has_users: bool) -> None:
        """Makes the device.

        :param network: the path of the namespace that gets it.
        :param process: a process in its user namespace, where it `has_users` of its own.
        :raises ScenarioError: one line with what the program said.
        """
        self._stack = ExitStack()
        users = [f"--userns-path=/proc/{process}/ns/user"] if has_users else []
        ready, theirs = os.pipe()
        exits, self._alive = os.pipe()  # the program ends when nobody has the other end any more
        self._stack.callback(os.close, self._alive)
        words = [PROGRAM, *users, "--netns-type=path", "--mtu=1500", f"--ready-fd={theirs}", f"--exit-fd={exits}", network, DEVICE]
        self._process = subprocess.Popen(
            words, pass_fds=(theirs, exits), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        for descriptor in (theirs, exits):
            os.close(descriptor)
        is_ready = bool(select.select([ready], [], [], DEVICE_S)[0] and os.read(ready, 1))
        os.close(ready)
        if not is_ready:
            lines = self._end().strip().splitlines()
            refuse("outside", f"{PROGRAM} made no device{f': {lines[-1]}' if lines else ''}", "run it as a user who may make one, or use --reach")

    def __enter__(self) -> Way:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def _end(self) -> str:
        """Ends the program; what it wrote."""
        self._process.terminate()
        self._stack.close()
        return self._process.communicate()[1].decode(errors="replace")
