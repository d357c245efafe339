"""The standard streams of the process: output that never ends a command halfway, and text that every terminal can show.

:func:`guard` puts a stream of its own before stdout and stderr. What cannot be written is dropped and remembered, so that a command always
comes to its end: its results are kept and its checks judged. Afterwards :func:`unwritten` says what happened to stdout.

- A reader that left (`tcpscape … | head -1`) is no error: the status is the command's own.
- Any other error (a full disk) is one line on stderr and :data:`tcpscape.errors.EXIT_OUTPUT`, unless the command itself has failed.
- A stream that was closed by whoever started the process (`>&-`) is /dev/null, so that no file of ours gets its number.

Where the stream's encoding lacks a character (`LC_ALL=C`), it is written with the characters that it has: × as x, → as ->, µ as u.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
import unicodedata
from typing import TextIO

PLAIN = {
    "×": "x", "→": "->", "←": "<-", "µ": "u", "μ": "u", "…": "...", "–": "-", "—": "-", "−": "-", "±": "+-", "≤": "<=", "≥": ">=", "≈": "~",
    "·": "-", "•": "*", "‘": "'", "’": "'", "“": '"', "”": '"', "σ": "sigma", "Δ": "delta", "∞": "inf", "✓": "ok", "✗": "no", "█": "#",
    "─": "-", "━": "-", "│": "|", "┃": "|", "▲": "^", "▼": "v", "■": "#", "●": "o",
}  # fmt: skip
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
