"""Files as bytes and as text: regular files alone, of a bounded size, also unpacked; everything else is refused in one line."""

from __future__ import annotations

import bz2
import errno
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tcpscape.errors import ScenarioError, TcpscapeError, printable

MIB = 2**20
"""Bytes of a mebibyte."""
LONGEST_NAME = 200
"""Characters of a name that a message shows whole."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file: how much of it is read, and what is said where it cannot be."""

    what: str
    """What it should be, with its article: `a scenario`."""
    fix: str
    """What to do where a file is not that."""
    most: int = MIB
    """Bytes of the largest file."""
    most_unpacked: int = 0
    """Bytes of the largest content of a compressed file; 0 where compressed files are not read."""
    error: type[TcpscapeError] = ScenarioError


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a content comes from, as the messages about it name it."""

    name: str
    """The file's path, or the name of what comes with tcpscape."""
    kind: Kind
    field: str = ""
    """The option or field that named it."""

    @property
    def label(self) -> str:
        """The name as messages have it: of a very long one the end."""
        return printable(self.name if len(self.name) <= LONGEST_NAME else f"…{self.name[-LONGEST_NAME:]}")

    def refuse(self, problem: str, fix: str = "") -> NoReturn:
        """Raises the one line for this content; without `fix`, that of its kind."""
        self.refuse_line(f"{problem}; {fix or self.kind.fix}")

    def refuse_line(self, line: str) -> NoReturn:
        """Raises the one line for this content, of `problem; fix`."""
        begin = f"{self.field}: {self.label}" if self.field else f"{self.label}:"
        raise self.kind.error(f"{begin} {line}")

    def unreadable(self, error: OSError | ValueError) -> TcpscapeError:
        """The one line where the system does not give the content; a ValueError is about the path."""
        begin = f"{self.field}: cannot read {self.label}" if self.field else f"{self.label}: cannot be read"
        return self.kind.error(f"{begin}: {_reason(error)}; check the path")


@contextmanager
def confined(*folders: Path) -> Iterator[None]:
    """Within it, this thread reads files in these directories alone, none where none is named: whoever wrote what is read chooses no other file.

    A link counts as what it leads to. What comes with tcpscape can be read (:mod:`tcpscape.reading.packaged`).
    """
    token = _ALLOWED.set(tuple(os.path.realpath(folder) for folder in folders))
    try:
        yield
    finally:
        _ALLOWED.reset(token)


_ALLOWED: ContextVar[tuple[str, ...] | None] = ContextVar("allowed", default=None)
"""Directories whose files can be read; None is all."""


def is_confined() -> bool:
    """Whether this thread may read some directories alone."""
    return _ALLOWED.get() is not None


def expect_allowed(path: Path | str, origin: Origin) -> None:
    """Refuses a file that :func:`confined` excludes. :raises TcpscapeError: one line."""
    if (folders := _ALLOWED.get()) is None:
        return
    place = os.path.realpath(path)
    if not any(os.path.commonpath((folder, place)) == folder for folder in folders):
        origin.refuse("is a file that cannot be named here", "leave it out, or name it on the command line")


def content(path: Path | str, kind: Kind, field: str = "") -> bytes:
    """The bytes of a file.

    :param field: the option or field that named the file; the message of an error begins with it.
    :raises TcpscapeError: one line, of the kind's class: what is not there, no regular file, too large or not readable.
    """
    origin = Origin(str(path), kind, field)
    try:
        raw = _read(path, origin)
    except (OSError, ValueError) as e:
        raise origin.unreadable(e) from None
    return _unpacked(raw, origin) if kind.most_unpacked else raw


def head(path: Path | str, size: int, kind: Kind, field: str = "") -> bytes:
    """The first bytes of a file, at most `size`, as they are on the disk. :raises TcpscapeError: one line, where it cannot be read."""
    origin = Origin(str(path), kind, field)
    try:
        expect_allowed(path, origin)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with open(descriptor, "rb") as file:
            expect_regular(os.fstat(descriptor).st_mode, origin)
            return file.read(size)
    except (OSError, ValueError) as e:
        raise origin.unreadable(e) from None


def text(path: Path | str, kind: Kind, field: str = "") -> str:
    """A file as UTF-8 text; a byte order mark at its beginning is left out.

    :raises TcpscapeError: one line, as :func:`content`, and for other encodings and NUL bytes.
    """
    return decoded(content(path, kind, field), Origin(str(path), kind, field))


def decoded(raw: bytes, origin: Origin) -> str:
    """The text of bytes in UTF-8. :raises TcpscapeError: one line with the number of the line that is not text."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        origin.refuse("is UTF-16 text", "save it as UTF-8")
    if (nul := raw.find(b"\0")) >= 0:
        origin.refuse(f"is not text: there is a NUL byte in line {_line(raw, nul)}")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        origin.refuse(f"is not UTF-8 text: byte 0x{raw[e.start]:02x} in line {_line(raw, e.start)}", "save it as UTF-8")


def expect_file(path: Path | str, kind: Kind, field: str = "") -> None:
    """Refuses what is no regular file or too large, before something else than this package opens it. :raises TcpscapeError: one line."""
    origin = Origin(str(path), kind, field)
    try:
        expect_allowed(path, origin)
        state = os.stat(path)
    except (OSError, ValueError) as e:
        raise origin.unreadable(e) from None
    expect_regular(state.st_mode, origin)
    _expect_size(state.st_size, origin)


def expect_regular(mode: int, origin: Origin) -> None:
    """Refuses what is no regular file. :raises TcpscapeError: one line that says what it is."""
    if not stat.S_ISREG(mode):
        name = next((name for test, name in _NOT_REGULAR if test(mode)), "no regular file")
        fix = "name a file in it" if stat.S_ISDIR(mode) else "save it to a file and name that"
        origin.refuse(f"is {name}, not {origin.kind.what}", fix)


def folder(path: Path | str, kind: Kind, field: str = "") -> bool:
    """Whether a path is a directory. :raises TcpscapeError: one line, where that cannot be known."""
    mode = _mode(path, kind, field)
    return mode is not None and stat.S_ISDIR(mode)


def exists(path: Path | str, kind: Kind, field: str = "") -> bool:
    """Whether there is anything at a path. :raises TcpscapeError: one line, where that cannot be known."""
    return _mode(path, kind, field) is not None


def listed(path: Path, kind: Kind, field: str = "") -> list[Path]:
    """What is in a directory, sorted. :raises TcpscapeError: one line, where it cannot be read."""
    try:
        expect_allowed(path, Origin(str(path), kind, field))
        return sorted(path.iterdir())
    except OSError as e:
        raise Origin(str(path), kind, field).unreadable(e) from None


def version(path: Path | str, kind: Kind, field: str = "") -> tuple[int, int]:
    """What changes whenever somebody writes to a file: its size and its time. :raises TcpscapeError: one line, where that cannot be known."""
    try:
        expect_allowed(path, Origin(str(path), kind, field))
        state = os.stat(path)
    except (OSError, ValueError) as e:
        raise Origin(str(path), kind, field).unreadable(e) from None
    return state.st_size, state.st_mtime_ns


def inside(folder: Path, path: Path) -> bool:
    """Whether what a path leads to is in a directory, links followed."""
    place = os.path.realpath(folder)
    return os.path.commonpath((place, os.path.realpath(path))) == place


def inflated(raw: bytes, most: int) -> bytes:
    """What zlib compressed, of at most `most` bytes. :raises ValueError: where it is damaged or larger."""
    return _expand(Members(b"", PLAIN_ZLIB), raw, most)


def size_text(size: int) -> str:
    """`3.2 MiB`."""
    return next((f"{size / 2**power:.3g} {unit}" for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")) if size >= 2**power), f"{size} bytes")


def _mode(path: Path | str, kind: Kind, field: str) -> int | None:
    try:
        expect_allowed(path, Origin(str(path), kind, field))
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as e:
        raise Origin(str(path), kind, field).unreadable(e) from None


def _read(path: Path | str, origin: Origin) -> bytes:
    """The bytes of a regular file: opened without waiting, and never more of them than the kind allows."""
    expect_allowed(path, origin)
    expect_regular(os.stat(path).st_mode, origin)  # before opening: some devices act when they are opened
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        expect_regular(state.st_mode, origin)  # of what was opened, whatever is at the path now
        _expect_size(state.st_size, origin)
        raw = file.read(origin.kind.most + 1)
    _expect_size(len(raw), origin)
    return raw


_NOT_REGULAR: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _expect_size(size: int, origin: Origin) -> None:
    if size > origin.kind.most:
        shown = size_text(size) if size > origin.kind.most + 1 else f"more than {size_text(origin.kind.most)}"
        origin.refuse(f"has {shown}, and {origin.kind.what} has at most {size_text(origin.kind.most)}", "name another file, or split it")


def _reason(e: OSError | ValueError) -> str:
    if isinstance(e, OSError):
        return "its name is too long" if e.errno == errno.ENAMETOOLONG else e.strerror or type(e).__name__
    return "its name holds a NUL character" if "null" in str(e) else "its name cannot be encoded"


def _line(raw: bytes, place: int) -> int:
    return raw.count(b"\n", 0, place) + 1


def _unpacked(raw: bytes, origin: Origin) -> bytes:
    """The content of a compressed file, of at most as many bytes as its kind allows; what is not compressed stays as it is."""
    for magic, name, decompressor in FORMATS:
        if raw.startswith(magic):
            try:
                return _expand(Members(magic, decompressor), raw, origin.kind.most_unpacked)
            except TooLarge:
                origin.refuse(f"has more than {size_text(origin.kind.most_unpacked)} when it is unpacked", "unpack it and split it")
            except Damaged:
                origin.refuse(f"is damaged: its {name} data end early or are not whole")
    return raw


class TooLarge(ValueError):
    """A compressed content that is larger than allowed."""


def _expand(members: Members, raw: bytes, most: int) -> bytes:
    """The content of compressed members.

    :raises TooLarge: before more than a chunk beyond `most` bytes is held. :raises Damaged: where it is not whole.
    """
    parts, total = [], 0
    for part in members.unpack(raw):
        total += len(part)
        if total > most:
            raise TooLarge
        parts.append(part)
    if not members.is_complete:
        raise Damaged("the end is missing")
    return b"".join(parts)


CHUNK = 2**20
"""Most bytes that unpacking gives out at a time."""
MEMORY = 2**27
"""Most bytes that a decompressor needs."""


class Damaged(ValueError):
    """Compressed data that end early, or are none."""


class Members:
    """Unpacks compressed members one after the other; what is kept is what the decompressor needs, at most 128 MiB."""

    def __init__(self, magic: bytes, decompressor: Callable[[], Any]) -> None:
        """`magic`: the first bytes of every member; without it there is one member alone."""
        self._magic, self._make = magic, decompressor
        self._member: Any = decompressor()
        self._begin = b""
        """After a member: bytes that are too few to tell whether they begin another."""

    @property
    def is_complete(self) -> bool:
        """Whether no member is open, and nothing after the last one."""
        return bool(self._member.eof) and not self._begin

    def unpack(self, data: bytes) -> Iterator[bytes]:
        """The content of the next bytes, in chunks. :raises Damaged: where they cannot be unpacked."""
        try:
            yield from self._unpack(self._begin + data)
        except (zlib.error, OSError, EOFError, lzma.LZMAError, _zstd_error()) as e:
            raise Damaged(str(e)) from None

    def _unpack(self, data: bytes) -> Iterator[bytes]:
        self._begin, is_full = b"", False
        while data or is_full:
            if self._member.eof:
                data = data.lstrip(b"\0") if self._magic else data
                if self._magic and len(data) < len(self._magic):
                    self._begin = data
                    return
                if not self._magic or not data.startswith(self._magic):
                    raise Damaged("bytes after the end")
                self._member = self._make()
            part = self._member.decompress(data, CHUNK)
            # zlib's gives back what it did not take, the others keep it
            data = self._member.unused_data if self._member.eof else getattr(self._member, "unconsumed_tail", b"")
            is_full = not self._member.eof and len(part) == CHUNK
            if part:
                yield part


def zstd() -> Any:
    """The module for zstd, which only files that are packed with it load."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _zstd_error() -> type[Exception]:
    loaded = sys.modules.get("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    return loaded.ZstdError if loaded else Damaged


FORMATS: tuple[tuple[bytes, str, Callable[[], Any]], ...] = (
    (b"\x1f\x8b", "gzip", lambda: zlib.decompressobj(wbits=31)),
    (b"BZh", "bzip2", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\0", "xz", lambda: lzma.LZMADecompressor(memlimit=MEMORY)),
    (b"\x28\xb5\x2f\xfd", "zstd", lambda: zstd().ZstdDecompressor(options={zstd().DecompressionParameter.window_log_max: MEMORY.bit_length() - 1})),
)
"""First bytes, name and decompressor of each compression."""
PLAIN_ZLIB = zlib.decompressobj
"""Decompressor of zlib's own format, which has no first bytes to recognise it by."""
