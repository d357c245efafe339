"""The standard streams of the process: output that never ends a command halfway, and text that every terminal can show.

:func:`guard` puts a stream of its own before stdout and stderr. What cannot be written is dropped and remembered, so that a command always
comes to its end: its results are kept and its checks judged. Afterwards :func:`unwritten` says what happened to stdout.

- A reader that left (`tcpscape … | head -1`) is no error: the status is the command's own.
- Any other error (a full disk) is one line on stderr and :data:`tcpscape.errors.EXIT_OUTPUT`, unless the command itself has failed.
- A stream that was closed by whoever started the process (`>&-`) is /dev/null, so that no file of ours gets its number.

A command line that ends before its time (Ctrl-C, SIGTERM, a closed terminal, what the machine refuses) ends here, too.

Where the stream's encoding lacks a character (`LC_ALL=C`), it is written with the characters that it has: × as x, → as ->, µ as u.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import select
import signal
import sys
import threading
import unicodedata
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn, TextIO

from tcpscape.errors import EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_TERMINATED, EngineError, refuse

PLAIN = {
    "×": "x",
    "→": "->",
    "←": "<-",
    "µ": "u",
    "μ": "u",
    "…": "...",
    "–": "-",
    "—": "-",
    "−": "-",
    "±": "+-",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "·": "-",
    "•": "*",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "σ": "sigma",
    "Δ": "delta",
    "∞": "inf",
    "✓": "ok",
    "✗": "no",
    "█": "#",
    "─": "-",
    "━": "-",
    "│": "|",
    "┃": "|",
    "▲": "^",
    "▼": "v",
    "■": "#",
    "●": "o",
}
"""What a character is written as where the encoding does not have it; others lose their accents or become a question mark."""
TOLERANT = "tcpscape-plain"
"""Name of the error handler of our streams (Python's `codecs`)."""


class Output(io.RawIOBase):
    """A file descriptor to which everything can be written: what the system refuses is dropped."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self.failure: OSError | None = None
        """The first error; nothing is written after it."""

    def writable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """The descriptor's number."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._descriptor)

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Writes all of it, waiting where the descriptor does not block; after an error nothing."""
        rest = memoryview(data).cast("B")
        count = len(rest)
        while rest and self.failure is None:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError as e:
                self.failure = e
        return count


def guard() -> None:
    """Puts our own streams before stdout and stderr; call it once, where the process begins."""
    _open_missing()
    codecs.register_error(TOLERANT, _plain)
    sys.stdout = _stream(sys.stdout, 1, line_buffering=os.isatty(1))
    sys.stderr = _stream(sys.stderr, 2, line_buffering=True)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115


def unwritten() -> str | None:
    """Why what was printed on stdout did not all reach it; None where it did, and where its reader did not want more."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    failure = raw.failure if isinstance(raw, Output) else None
    return None if failure is None or isinstance(failure, BrokenPipeError) else failure.strerror or str(failure)


def write_bytes(content: bytes) -> None:
    """Writes a file's content on stdout as it is, whatever the encoding of the terminal."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _open_missing() -> None:
    """Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # the system gives the lowest number that is free
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _stream(before: TextIO | None, descriptor: int, *, line_buffering: bool) -> TextIO:
    """A text stream on a descriptor, in the encoding that Python chose for it."""
    encoding = getattr(before, "encoding", None) or "utf-8"
    if before is not None:
        before.flush()
    raw: io.RawIOBase = Output(descriptor)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, TOLERANT, line_buffering=line_buffering)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """The error handler: the characters that cannot be encoded in others, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_replaced, error.object[error.start : error.end])), error.end


def _replaced(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or "?"


STATUSES = {"SIGINT": EXIT_INTERRUPTED, "SIGTERM": EXIT_TERMINATED, "SIGHUP": EXIT_HUNG_UP}
"""What is meant to end a command, with the exit status after it."""
SIGNALS = {getattr(signal, name): status for name, status in STATUSES.items() if hasattr(signal, name)}
"""Those that this system has."""
REFUSALS = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space or ask for more",
    errno.EROFS: "choose a place that can be written",
    errno.EFBIG: "allow larger files (ulimit -f)",
    errno.ENOMEM: "allow more memory (ulimit -v), or run fewer trials at a time with --jobs 1",
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.ENFILE: "close some programs",
    errno.EACCES: "check the permissions",
    errno.EPERM: "check the permissions",
    errno.EIO: "check the disk",
}
"""Errors of the operating system that no bug causes, and what to do about each."""


LIGHT = ("emulate", "scenario", "metric", "cca", "qdisc", "kernel", "doctor", "cleanup", "version", "schema", "man", "completion")
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
    return interrupt.status if isinstance(interrupt, Ended) else signalled() or EXIT_INTERRUPTED


def signalled() -> int | None:
    """The exit status after the signal that came, by the shells' convention; None where none came.

    Libraries make another error of what the signal's handler raised: Pydantic an error of serialization, SQLite one of the query.
    """
    return next((SIGNALS[signal.Signals(number)] for number in _came), None)


def refusal(error: OSError) -> str | None:
    """The line for an error that the machine is the reason of, not this program; None for any other."""
    fix = REFUSALS.get(error.errno or 0)
    return f"{error.filename or 'system'}: {error.strerror or error}; {fix}" if fix else None


def expect_memory(args: Sequence[str]) -> None:
    """Refuses a command that computes where the process may not have the address space for it (`ulimit -v`). :raises EngineError: one line."""
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


_came: list[int] = []
"""The signal that came."""


def _end(number: int, _: FrameType | None) -> NoReturn:
    _came.append(number)
    for each in SIGNALS:
        signal.signal(each, _end_at_once)
    raise Ended(number)


def _end_at_once(number: int, _: FrameType | None) -> NoReturn:
    os._exit(SIGNALS[signal.Signals(number)])
