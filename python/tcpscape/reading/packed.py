"""Compressed content, unpacked chunk by chunk: gzip, bzip2, xz and zstd, recognised by their first bytes."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

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


def zstd() -> Any:  # noqa: ANN401: two modules with the same names
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
