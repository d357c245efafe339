"""How a command line ends before its time: Ctrl-C, SIGTERM, a closed terminal, and what the machine refuses.

:func:`listen` makes a signal an exception in the main thread, so that the command says what it kept. A second signal ends the process at once.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from tcpscape.errors import EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_TERMINATED, EngineError, refuse

STATUSES = {"SIGINT": EXIT_INTERRUPTED, "SIGTERM": EXIT_TERMINATED, "SIGHUP": EXIT_HUNG_UP}
"""What is meant to end a command, with the exit status after it."""
SIGNALS = {getattr(signal, name): status for name, status in STATUSES.items() if hasattr(signal, name)}
"""Those that this system has."""
REFUSALS = {
    errno.ENOSPC: "free some space", errno.EDQUOT: "free some space or ask for more", errno.EROFS: "choose a place that can be written",
    errno.EFBIG: "allow larger files (ulimit -f)", errno.ENOMEM: "allow more memory (ulimit -v), or run fewer trials at a time with --jobs 1",
    errno.EMFILE: "allow more open files (ulimit -n)", errno.ENFILE: "close some programs",
    errno.EACCES: "check the permissions", errno.EPERM: "check the permissions", errno.EIO: "check the disk",
}  # fmt: skip
"""Errors of the operating system that no bug causes, and what to do about each."""


LIGHT = (
    "emulate", "scenario", "metric", "cca", "qdisc", "kernel", "doctor", "cleanup", "version", "schema", "man", "completion",
)  # fmt: skip
"""Commands that compute nothing, and need little memory."""
NEEDED_MIB, NEEDED_MIB_OF_CORE = 1536, 192
"""Address space that any other command needs, and for each core besides, MiB. Measured on two cores: `sweep --report` reserves 1,420 MiB, most of it
for the threads of its libraries, which end the process, or wait for ever, where they do not get it."""


class Ended(KeyboardInterrupt):
    """A signal came that ends the command."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = SIGNALS[signal.Signals(number)]


def listen() -> None:
    """Ends the command when a signal comes; one that whoever started the process ignores (nohup) stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def deafen() -> None:
    """Ignores these signals from now on: the command is over."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def status(interrupt: KeyboardInterrupt) -> int:
    """The exit status after a signal, by the shells' convention."""
    return interrupt.status if isinstance(interrupt, Ended) else EXIT_INTERRUPTED


def refusal(error: OSError) -> str | None:
    """The line for an error that the machine is the reason of, not this program; None for any other."""
    fix = REFUSALS.get(error.errno or 0)
    return f"{error.filename or 'system'}: {error.strerror or error}; {fix}" if fix else None


def expect_memory(args: Sequence[str]) -> None:
    """Refuses a command that computes where the process may not have the address space for it (`ulimit -v`).

    :raises EngineError: one line.
    """
    if not args or args[0].startswith("-") or args[0] in LIGHT or {"-h", "--help"} & set(args):
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    needed = NEEDED_MIB + NEEDED_MIB_OF_CORE * (os.cpu_count() or 1)
    if allowed != resource.RLIM_INFINITY and allowed < needed << 20:
        fix = f"allow {needed << 10} kB (`ulimit -v {needed << 10}`), or all of it"
        refuse("memory", f"the process may have {allowed >> 20} MiB of address space, and {args[0]} needs {needed} MiB", fix, EngineError)


def leave(code: int) -> NoReturn:
    """Ends the process; threads inside a trial are not waited for."""
    deafen()
    if code not in SIGNALS.values() and not any(not t.daemon for t in threading.enumerate() if t is not threading.main_thread()):
        sys.exit(code)
    engines = sys.modules.get("tcpscape.engines")  # importing it now could meet what the signal left half imported
    if close := getattr(engines, "close", None):
        close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end(number: int, _: FrameType | None) -> NoReturn:
    for each in SIGNALS:
        signal.signal(each, _end_at_once)
    raise Ended(number)


def _end_at_once(number: int, _: FrameType | None) -> NoReturn:
    os._exit(SIGNALS[signal.Signals(number)])
