"""The guest's first root file system: one program and four device nodes, as an uncompressed cpio archive.

Source: the kernel's `Documentation/driver-api/early-userspace/buffer-format.rst` (the "newc" format: a header of 13 numbers of eight
hexadecimal digits, name and data padded to four bytes). Written here because device nodes need no privilege inside an archive.
"""

from __future__ import annotations

import stat

DIRECTORIES = ("dev", "proc", "sys", "host", "tmp")
"""Empty directories; `host` is where the guest mounts the exchange directory."""
NODES = {"dev/console": (5, 1), "dev/null": (1, 3), "dev/dsp": (14, 3)}
"""Character devices, major and minor (`Documentation/admin-guide/devices.txt`)."""
MAGIC = "070701"
END = "TRAILER!!!"


def archive(init: bytes) -> bytes:
    """The archive with `init` as /init."""
    parts = [_entry(number, name, stat.S_IFDIR | 0o755) for number, name in enumerate(DIRECTORIES, 1)]
    parts += [_entry(100 + i, name, stat.S_IFCHR | 0o666, device=device) for i, (name, device) in enumerate(NODES.items())]
    parts.append(_entry(200, "init", stat.S_IFREG | 0o755, init))
    return b"".join(parts) + _entry(0, END, 0)


def _entry(number: int, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    """One file: inode, mode, uid, gid, links, mtime, size, device (2), device it is (2), length of the name, checksum."""
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = (MAGIC + "".join(f"{field:08X}" for field in fields)).encode() + name.encode() + b"\0"
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
