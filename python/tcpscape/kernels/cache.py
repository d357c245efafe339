"""The kernels that are built: a directory for each, with its executable and its record.

`$XDG_CACHE_HOME/tcpscape/kernels/NAME/` holds

```
linux         the executable
kernel.json   its record: a :class:`BuiltKernel`
build.log     the output of make
build/        make's output directory, kept so that the next build is quick
src/          the sources: unpacked, or links to a tree of the user's
source.json   the record of what src/ holds
```
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tcpscape import writing
from tcpscape.errors import EngineError, refuse
from tcpscape.formats import expect, stamped
from tcpscape.reading import documents
from tcpscape.reading.files import Kind, Origin

PREFERRED = "6.1"
"""The default kernel where it is built; otherwise the one that was built first."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
LINUX, RECORD, LOG = "linux", "kernel.json", "build.log"
BUILD, SOURCES, SOURCE_RECORD = "build", "src", "source.json"
"""Names in a kernel's directory."""
KERNEL_RECORD = Kind("the record of a kernel", "build the kernel again with `tcpscape kernel build`", error=EngineError)


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel that is built and can be booted: `kernel.json` in its directory."""

    name: str
    """What it is called, virtual:NAME."""
    path: Path
    """The executable."""
    release: str
    """The release, as `uname -r` prints it."""
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
    """The compiler with its version."""
    created: str
    """When the first build under this name was ready, UTC."""
    built: str
    """When this executable was built, UTC."""
    seconds: float
    """How long that took, s."""
    size: int
    """Bytes of the executable."""
    congestion_controls: tuple[str, ...] = ()
    """Congestion controls that it has."""
    qdiscs: tuple[str, ...] = ()
    """Queues that it has."""
    recipe: str = ""
    """Digest of tcpscape's own part of the configuration; a kernel whose digest is not today's should be built again."""

    def record(self) -> dict[str, Any]:
        """The content of kernel.json."""
        return {**asdict(self), "path": str(self.path)}


def home() -> Path:
    """The directory of all kernels."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    return base / "tcpscape" / "kernels"


def place(name: str) -> Path:
    """The directory of the kernel `name`, which need not exist; raises EngineError for a name that cannot be one."""
    if not NAME.fullmatch(name):
        refuse("name", f"{name!r} cannot name a kernel", "use letters, digits and . _ + -, 64 at most, a letter or digit first", EngineError)
    return home() / name


def built_kernels() -> tuple[BuiltKernel, ...]:
    """The kernels that are built, by name; without those of a newer tcpscape."""
    kernels = []
    for name in names():
        with suppress(EngineError):
            kernels.append(read(home() / name))
    return tuple(kernel for kernel in kernels if kernel)


def names() -> tuple[str, ...]:
    """The names of all kernels, finished or not."""
    root = home()
    return tuple(sorted(p.name for p in root.iterdir() if p.is_dir() and NAME.fullmatch(p.name))) if root.is_dir() else ()


def find(name: str | None = None) -> BuiltKernel:
    """The kernel `name`, or the default one; raises EngineError with the command that builds it."""
    if name is None:
        return default()
    if kernel := read(home() / name) if NAME.fullmatch(name) else None:
        return kernel
    built = ", ".join(kernel.name for kernel in built_kernels())
    choice = f" (there are {built})" if built else ""
    raise EngineError(f"engine: no kernel {name!r}{choice}; run `tcpscape kernel build --name {shlex.quote(name)}`")


def default() -> BuiltKernel:
    """The kernel named 6.1 if there is one, else the one built first; raises EngineError where there is none."""
    built = built_kernels()
    if not built:
        raise EngineError("engine: no kernel is built yet; run `tcpscape kernel build`")
    return min(built, key=lambda kernel: (kernel.name != PREFERRED, kernel.created, kernel.name))


def remove(name: str) -> int:
    """Removes a kernel, its build directory and its sources (never a tree of the user's); returns the bytes freed."""
    if name not in names():
        choice = f"there are {', '.join(names())}" if names() else "there are none"
        refuse("name", f"no kernel {name!r}", choice, EngineError)
    with locked(name):
        freed = size_on_disk(place(name))
        shutil.rmtree(place(name))
        _lock_file(name).unlink(missing_ok=True)
    return freed


def save(kernel: BuiltKernel, directory: Path | None = None) -> None:
    """Writes the record of a kernel into its directory: that of its name, or another one."""
    writing.whole((directory or place(kernel.name)) / RECORD, json.dumps(stamped("kernel", kernel.record()), indent=1) + "\n")


def hunks_home(name: str) -> Path:
    """The directory for kernels between two source trees; it is none of a kernel that can be named."""
    return home().parent / "hunks" / name


@contextmanager
def locked(name: str) -> Iterator[None]:
    """A lock on one kernel, so that builds and removals exclude each other; raises EngineError where another process holds it."""
    home().mkdir(parents=True, exist_ok=True)
    with _lock_file(name).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


def read(directory: Path, name: str | None = None) -> BuiltKernel | None:
    """The kernel of a directory, called `name` (as the directory); None where it is not finished or its record lacks something.

    :raises EngineError: for a record of a newer format.
    """
    file = directory / RECORD
    try:
        record = documents.json_file(file, KERNEL_RECORD)
    except EngineError:
        return None
    expect("kernel", record, str(file), EngineError)
    try:
        kernel = documents.as_type(BuiltKernel, record, Origin(str(file), KERNEL_RECORD))
    except EngineError:
        return None
    return replace(kernel, name=name or directory.name, path=directory / LINUX) if os.path.isfile(directory / LINUX) else None
