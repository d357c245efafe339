"""Journals: where a store's trials are until they are folded into Parquet.

Each writing process has a journal of its own, `journal/NAME.journal`, and holds a lock on it (flock(2)) while it lives. A trial is one line,
its address, a space and JSON, and lines reach the file whole by one write(2): a process that is killed at any moment leaves at most a torn
last line, which readers ignore. Nothing is synchronised to the disk before a journal is folded, so a power failure may cost its last seconds.
"""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import NamedTuple

from tcpscape.errors import StoreError

SUFFIX = ".journal"


class Line(NamedTuple):
    """Where a trial stands in a journal: bytes."""

    address: str
    offset: int
    length: int
    """Without the end of the line."""


class Journal:
    """A journal that this process writes."""

    def __init__(self, folder: Path) -> None:
        self.pid = os.getpid()
        self.path = folder / f"{time.time_ns():020d}-{self.pid}-{secrets.token_hex(3)}{SUFFIX}"
        folder.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND, 0o666)
        _lock(self._fd)
        self.size = 0
        """Bytes written."""
        self.lines = 0

    def append(self, lines: list[tuple[str, bytes]]) -> list[Line]:
        """Writes `(address, JSON)` lines at once; says where they stand. OSError where they cannot all be written: then none is."""
        placed, at = [], self.size
        for address, said in lines:
            placed.append(Line(address, at + len(address) + 1, len(said)))
            at += len(address) + len(said) + 2
        text = b"".join(b"%s %s\n" % (address.encode(), said) for address, said in lines)
        try:
            self._write(text)
        except OSError:
            os.ftruncate(self._fd, self.size)
            raise
        self.size, self.lines = at, self.lines + len(lines)
        return placed

    def _write(self, text: bytes) -> None:
        left = memoryview(text)
        while left:
            left = left[os.write(self._fd, left) :]

    def close(self) -> None:
        """Gives the lock back: whoever comes may fold the journal."""
        os.close(self._fd)


def claim(path: Path) -> int | None:
    """A descriptor with the lock of a journal that nobody writes any more; None where somebody does, or has folded it."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    if _lock(fd) and os.fstat(fd).st_nlink:
        return fd
    os.close(fd)
    return None


def lines(path: Path, start: int = 0) -> tuple[list[Line], int]:
    """The complete lines behind `start`, and where the next one will begin. None where the file is gone, which only a fold does."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            text = file.read()
    except FileNotFoundError:
        return [], start
    found, at = [], 0
    while (end := text.find(b"\n", at)) >= 0:
        gap = text.find(b" ", at, end)
        if gap > at:
            found.append(Line(text[at:gap].decode("ascii", "replace"), start + gap + 1, end - gap - 1))
        at = end + 1
    return found, start + at


def read(path: Path, some: list[Line]) -> list[bytes]:
    """The JSON of some lines. FileNotFoundError where the journal was folded meanwhile."""
    with path.open("rb") as file:
        return [os.pread(file.fileno(), line.length, line.offset) for line in some]


def cannot_write(place: Path, e: OSError) -> StoreError:
    """The house's line for a store that cannot be written."""
    return StoreError(f"out: cannot write {place}: {e.strerror}; free some space, or choose another directory")


def _lock(fd: int) -> bool:
    """Whether the lock was free; POSIX only."""
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
