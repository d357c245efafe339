"""Kernels for the virtual engine: real Linux kernels built as User-Mode Linux, several side by side in the cache.

A kernel has a name and a directory, `$XDG_CACHE_HOME/tcpscape/kernels/NAME/`:

```
linux         the executable
kernel.json   what it is and where it comes from
build.log     what make said
build/        make's output directory, kept so that the next build is quick
src/          the sources: unpacked, or links to a tree of the user's
source.json   what src/ holds
```
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tcpscape.errors import EngineError, refuse

PREFERRED = "6.1"
"""The default kernel where it is there; else the one that was built first."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
LINUX, RECORD, LOG = "linux", "kernel.json", "build.log"
BUILD, SOURCES = "build", "src"


@dataclass(frozen=True)
class Kernel:
    """A kernel that is built and can be booted."""

    name: str
    path: Path
    """The executable."""
    release: str
    """What `uname -r` says in it."""
    digest: str
    """SHA-256 of the executable. The same sources, configuration and compiler give the same."""
    hz: int
    """Ticks a second."""
    source: str
    """The tree or tarball it was built from."""
    source_digest: str | None
    """SHA-256 of the tarball; a tree has none."""
    describe: str | None
    """`git describe` of the tree; `-dirty` where it has changes that are not committed."""
    config_digest: str
    """SHA-256 of the configuration."""
    compiler: str
    created: str
    """When the first build under this name was ready, UTC."""
    built: str
    """When this executable was built, UTC."""
    seconds: float
    """How long that took, s."""
    size: int
    """Bytes of the executable."""
    congestion_controls: tuple[str, ...] = ()
    qdiscs: tuple[str, ...] = ()
    recipe: str = ""
    """Digest of what tcpscape itself asks of the configuration; another one than today's: build again."""

    def record(self) -> dict[str, Any]:
        """As it stands in kernel.json."""
        return {**asdict(self), "path": str(self.path)}


def home() -> Path:
    """Where kernels live."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    return base / "tcpscape" / "kernels"


def place(name: str) -> Path:
    """The directory of the kernel `name`, which need not exist; raises EngineError for a name that cannot be one."""
    if not NAME.fullmatch(name):
        refuse("name", f"{name!r} cannot name a kernel", "use letters, digits and . _ + -, 64 at most, a letter or digit first", EngineError)
    return home() / name


def all() -> tuple[Kernel, ...]:
    """The kernels that are built, by name."""
    return tuple(kernel for name in names() if (kernel := _read(name)))


def names() -> tuple[str, ...]:
    """The names of all kernels, built or begun."""
    there = home()
    return tuple(sorted(p.name for p in there.iterdir() if p.is_dir() and NAME.fullmatch(p.name))) if there.is_dir() else ()


def find(name: str | None = None) -> Kernel:
    """The kernel `name`, or the default one; raises EngineError with the command that builds it."""
    if name is None:
        return default()
    if kernel := _read(name) if NAME.fullmatch(name) else None:
        return kernel
    known = ", ".join(kernel.name for kernel in all())
    there = f" (there are {known})" if known else ""
    raise EngineError(f"engine: no kernel {name!r}{there}; run `tcpscape kernel build --name {name}`")


def default() -> Kernel:
    """The kernel named 6.1 if there is one, else the one built first; raises EngineError where there is none."""
    built = all()
    if not built:
        raise EngineError("engine: no kernel is built yet; run `tcpscape kernel build`")
    return min(built, key=lambda kernel: (kernel.name != PREFERRED, kernel.created, kernel.name))


def remove(name: str) -> int:
    """Removes a kernel, its build directory and its sources (never a tree of the user's); returns the bytes freed."""
    if name not in names():
        there = f"there are {', '.join(names())}" if names() else "there are none"
        refuse("name", f"no kernel {name!r}", there, EngineError)
    with locked(name):
        freed = size_on_disk(place(name))
        shutil.rmtree(place(name))
        _lock_file(name).unlink(missing_ok=True)
    return freed


def save(kernel: Kernel) -> None:
    """Writes what is known about a kernel beside it."""
    whole = place(kernel.name) / f"{RECORD}.new"
    whole.write_text(json.dumps(kernel.record(), indent=1) + "\n", "utf-8")
    whole.replace(place(kernel.name) / RECORD)


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Keeps builds and removals of one kernel apart; raises EngineError where another is under way."""
    home().mkdir(parents=True, exist_ok=True)
    with _lock_file(name).open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            refuse("name", f"kernel {name!r} is being built by another tcpscape", "wait for it, or give another --name", EngineError)
        yield


def size_on_disk(directory: Path) -> int:
    """Bytes that a directory takes on the disk; links are not followed."""
    total = 0
    for where, _, files in os.walk(directory):
        total += sum(os.lstat(os.path.join(where, file)).st_blocks * 512 for file in files)
    return total


def _lock_file(name: str) -> Path:
    return place(name).with_name(f".{name}.lock")


def _read(name: str) -> Kernel | None:
    """The kernel in a directory; none where it is not finished or its record is not ours."""
    there = home() / name
    try:
        said = json.loads((there / RECORD).read_text("utf-8"))
        known = {f.name: said[f.name] for f in fields(Kernel) if f.name in said or f.default is MISSING}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not (there / LINUX).is_file():
        return None
    lists = {key: tuple(known.get(key, ())) for key in ("congestion_controls", "qdiscs")}
    return Kernel(**{**known, **lists, "name": name, "path": there / LINUX})
