"""What a guest is started from: the kernel, its first root file system, and a directory for its memory.

The root file system is one program and a few device nodes, as an uncompressed cpio archive. Source: the kernel's
`Documentation/driver-api/early-userspace/buffer-format.rst` (the "newc" format: a header of 13 numbers of eight hexadecimal digits, name and data
padded to four bytes). The archive is written here because device nodes inside an archive need no privilege.
"""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tcpscape.errors import EngineError

MEMORY_MB = 512
"""Memory of a guest; only what it touches is taken."""
SHARED_MEMORY = Path("/dev/shm")
DIRECTORIES = ("dev", "proc", "sys", "host", "tmp")
"""Empty directories; `host` is where the guest mounts the exchange directory."""
NODES = {"dev/console": (5, 1), "dev/null": (1, 3), "dev/dsp": (14, 3)}
"""Character devices, major and minor (`Documentation/admin-guide/devices.txt`)."""
MAGIC = "070701"
END = "TRAILER!!!"


@dataclass(frozen=True, slots=True)
class Boot:
    """A kernel and what it boots with."""

    linux: Path
    initrd: bytes = field(repr=False)
    memory_mb: int = MEMORY_MB
    seeds: Path | None = None
    """The library that answers the kernel's `getrandom` from a seed (crates/seed); without it no guest can be repeated."""


def initrd(init: bytes) -> bytes:
    """The archive of the first root file system, with the program `init` as /init."""
    parts = [_entry(number, name, stat.S_IFDIR | 0o755) for number, name in enumerate(DIRECTORIES, 1)]
    parts += [_entry(100 + i, name, stat.S_IFCHR | 0o666, device=device) for i, (name, device) in enumerate(NODES.items())]
    parts.append(_entry(200, "init", stat.S_IFREG | 0o755, init))
    return b"".join(parts) + _entry(0, END, 0)


def memory_directory(megabytes: int) -> Path:
    """A directory for the file of a guest's memory: /dev/shm, otherwise $TMPDIR (/tmp).

    :raises EngineError: neither has the space and allows execution.
    """
    candidates = list(dict.fromkeys((SHARED_MEMORY, Path(tempfile.gettempdir()))))
    for path in candidates:
        if _is_suitable(path, megabytes << 20):
            return path
    names = " nor ".join(map(str, candidates))
    raise EngineError(
        f"TMPDIR: a guest needs {megabytes} MB for its memory in a directory that allows execution, and neither {names} is one; "
        "free some room or set TMPDIR to such a directory"
    )


def _is_suitable(path: Path, size: int) -> bool:
    try:
        status = os.statvfs(path)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize >= size and not status.f_flag & os.ST_NOEXEC and os.access(path, os.W_OK | os.X_OK)


def _entry(number: int, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    """One file: inode, mode, uid, gid, links, mtime, size, device (2), the device that it is (2), length of the name, checksum."""
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = (MAGIC + "".join(f"{field:08X}" for field in fields)).encode() + name.encode() + b"\0"
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
