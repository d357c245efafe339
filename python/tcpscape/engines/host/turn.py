"""Whose turn it is: one trial in real time at a time on a machine, whichever process runs it. Two at once would measure each other."""

from __future__ import annotations

import contextlib
import errno
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator

from tcpscape.errors import EngineError

NAME = b"\0tcpscape-live"
"""An address of the abstract namespace of Unix sockets: one process at a time has it, and it is free as soon as that ends (unix(7))."""
LOOK_S = 0.05
"""How often a process that waits for its turn looks, s."""

_in_this_process = threading.Lock()


@contextlib.contextmanager
def alone(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """While no other trial in real time runs on this machine, for those processes that see each other's abstract sockets.

    :raises EngineError: it was cancelled while it waited.
    """
    while not _in_this_process.acquire(timeout=LOOK_S):
        _refuse(is_cancelled())
    try:
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as held:
            while sys.platform.startswith("linux") and not _has(held):
                time.sleep(LOOK_S)
                _refuse(is_cancelled())
            _refuse(is_cancelled())
            yield
    finally:
        _in_this_process.release()


def _has(held: socket.socket) -> bool:
    """Whether the address is this socket's now."""
    try:
        held.bind(NAME)
    except OSError as e:
        if e.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _refuse(cancelled: bool) -> None:
    if cancelled:
        raise EngineError("engine: the trial was interrupted; run it again")
