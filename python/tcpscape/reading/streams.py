"""Files of any size as a stream of chunks, unpacked on the way: a capture of gigabytes, a pipe at standard input.

What is kept at a time is a chunk, and what the decompressor needs. Content that ends early is no error here: what came before it is of use, and
:attr:`Stream.damage` says what is missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from tcpscape.reading.files import CHUNK, FORMATS, Damaged, Kind, Members, Origin, expect_allowed, expect_regular

STDIN = "-"
"""The path that means standard input."""


class Stream:
    """The content of a regular file or of standard input in chunks of at most :data:`CHUNK` bytes; a context manager, and an iterator once.

    :raises TcpscapeError: one line, of the kind's class: what is not there, no regular file or not readable. The kind's sizes do not count.
    """

    def __init__(self, path: Path | str, kind: Kind, field: str = "") -> None:
        """Opens the file. `path`: :data:`STDIN` for standard input; `field`: the option or field that named it."""
        self.origin = Origin("standard input" if str(path) == STDIN else str(path), kind, field)
        self.read = 0
        """Bytes read of the file so far, as they are on the disk."""
        self.compression: str | None = None
        """`gzip`, `zstd`, …; None where the content is not compressed. Known after the first chunk."""
        self.damage: str | None = None
        """What is wrong with a compressed content that ended early: a sentence without its begin."""
        self._descriptor, self.size = self._open(path)
        """`size`: bytes of the file; None of a pipe."""
        self._ahead = b""
        self._chunks = self._unpacked(self._raw())

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._next():
            yield chunk

    def peek(self, size: int) -> bytes:
        """The first bytes that are not read yet, at most `size` and :data:`CHUNK`, without taking them; fewer at the end."""
        while len(self._ahead) < min(size, CHUNK) and (chunk := next(self._chunks, b"")):
            self._ahead += chunk
        return self._ahead[:size]

    def rest(self, most: int) -> bytes:
        """All that is not read yet. :raises TcpscapeError: where that is more than `most` bytes, or is not whole."""
        parts, total = [], 0
        for chunk in self:
            total += len(chunk)
            if total > most:
                self.origin.refuse(f"has more than {most} bytes", "name another file, or split it")
            parts.append(chunk)
        if self.damage:
            self.origin.refuse(f"is damaged: {self.damage}")
        return b"".join(parts)

    @staticmethod
    def refuse_second_pass(kind: Kind) -> NoReturn:
        """Says that standard input cannot be read twice. :raises TcpscapeError: always."""
        Origin("standard input", kind).refuse("can be read only once, and this needs two passes", "save it to a file and name that")

    def close(self) -> None:
        """Closes the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self, path: Path | str) -> tuple[int, int | None]:
        try:
            if str(path) == STDIN:
                if os.isatty(0):
                    self.origin.refuse("is the terminal", "pipe something into it, or name a file")
                return os.dup(0), None
            expect_allowed(path, self.origin)
            expect_regular(os.stat(path).st_mode, self.origin)
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except (OSError, ValueError) as e:
            raise self.origin.unreadable(e) from None
        try:
            state = os.fstat(descriptor)
            expect_regular(state.st_mode, self.origin)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, state.st_size

    def _next(self) -> bytes:
        chunk, self._ahead = self._ahead, b""
        return chunk or next(self._chunks, b"")

    def _raw(self) -> Iterator[bytes]:
        while True:
            try:
                chunk = os.read(self._descriptor, CHUNK)
            except OSError as e:
                raise self.origin.unreadable(e) from None
            if not chunk:
                return
            self.read += len(chunk)
            yield chunk

    def _unpacked(self, raw: Iterator[bytes]) -> Iterator[bytes]:
        begin = b""
        while len(begin) < _LONGEST_MAGIC and (chunk := next(raw, b"")):
            begin += chunk
        for magic, name, decompressor in FORMATS:
            if begin.startswith(magic):
                self.compression = name
                yield from self._members(Members(magic, decompressor), begin, raw)
                return
        if begin:
            yield begin
        yield from raw

    def _members(self, members: Members, begin: bytes, raw: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from members.unpack(begin)
            for chunk in raw:
                yield from members.unpack(chunk)
            if not members.is_complete:
                self.damage = f"its {self.compression} data end early"
        except Damaged as e:
            self.damage = f"its {self.compression} data are damaged ({e})"


_LONGEST_MAGIC = max(len(magic) for magic, _, _ in FORMATS)
