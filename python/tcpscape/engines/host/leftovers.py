"""What trials left on this machine: names that somebody gave to network namespaces, directories and processes of commands that were killed.

Normally there is nothing: namespaces of the live engine have no names and end with their process, and a janitor removes what a guest of the virtual
engine leaves. Three things can be left all the same:

- **network namespaces** with a name that begins with `tcpscape-`, made by an administrator (`ip netns add tcpscape-x`);
- **directories** of guests, where the janitor was killed together with its parent;
- **processes**: a guest without its janitor, or a program of the live engine without the process that started it.

Only what is recognised beyond doubt is listed: a directory by its contents, a process by its directory or its command line. What another user owns is
left alone unless root asks. Sources: ip-netns(8), proc(5).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tcpscape.engines.guest.process import SHARED_MEMORY
from tcpscape.engines.host.process import PROGRAM

NAMED = Path("/run/netns")
"""Where `ip netns` keeps its names."""
PREFIX = "tcpscape-"
"""What names of ours begin with."""
GUEST = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")
"""Names of a guest's directories (`tempfile.mkdtemp`)."""
JANITOR = b"tcpscape-janitor"
"""The name of a janitor in its command line."""
INIT = b"rdinit=/init"
"""A word of a guest's command line."""
PROC = Path("/proc")
PATIENCE_S = 10
"""Most that `ip` may take, s."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that was left."""

    kind: str
    """`namespace`, `directory` or `process`."""
    name: str
    """Its name, its path, or its number."""
    about: str
    """What it is, and whether something still uses it."""
    is_used: bool = False
    """Whether a process uses it; it is not removed then."""

    def remove(self) -> str:
        """Removes it; what went wrong, in a few words, or nothing."""
        try:
            if self.kind == "namespace":
                done = subprocess.run(["ip", "netns", "delete", self.name], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
                return done.stderr.strip()
            if self.kind == "directory":
                shutil.rmtree(self.name)
            else:
                _kill(int(self.name))
        except ProcessLookupError:
            pass
        except (OSError, subprocess.SubprocessError) as e:
            return str(e)
        return ""


def _kill(number: int) -> None:
    """Ends a process, with its group where it leads one."""
    end = os.killpg if os.getpgid(number) == number else os.kill
    end(number, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class _Process:
    """A process of this user, or of anybody where root looks."""

    number: int
    parent: int
    words: tuple[bytes, ...]
    directory: str
    is_here: bool = True
    """Whether its numbers are those of this process: it is in the same process namespace. Others may use things, and are left alone."""


def find() -> list[Leftover]:
    """Everything that was left: processes first, then what they use."""
    processes = list(_processes())
    janitors = [process.words for process in processes if JANITOR in process.words]
    guests = [directory for directory in _guest_directories() if not any(str(directory).encode() in words for words in janitors)]
    known = [process for process in processes if process.is_here]
    orphans = [*_orphaned_guests(guests, known), *_orphaned_programs(known)]
    ended = {int(orphan.name) for orphan in orphans}
    return [*orphans, *(_directory(guest, processes, ended) for guest in guests), *_namespaces()]


def _processes() -> Iterator[_Process]:
    user, here = os.geteuid(), os.stat("/proc/self/ns/pid")
    for entry in PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended meanwhile, or it is none of this user's
            if user and entry.stat().st_uid != user:
                continue
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            words = tuple((entry / "cmdline").read_bytes().split(b"\0"))
            directory, space = str((entry / "cwd").readlink()), (entry / "ns" / "pid").stat()
            yield _Process(int(entry.name), parent, words, directory, os.path.samestat(space, here))


def _guest_directories() -> Iterator[Path]:
    """Directories that look like a guest's, and belong to this user or root looks."""
    user = os.geteuid()
    for place in dict.fromkeys((SHARED_MEMORY, Path(tempfile.gettempdir()))):
        with contextlib.suppress(OSError):
            for path in sorted(place.glob(f"{PREFIX}*")):
                if GUEST.fullmatch(path.name) and _is_guest(path) and user in (0, path.lstat().st_uid):
                    yield path


def _is_guest(path: Path) -> bool:
    """Whether a directory has what a guest's has: a FIFO for jobs and a directory for exchange. Links are not followed."""
    try:
        kinds = [os.lstat(part).st_mode for part in (path, path / "jobs", path / "io")]
    except OSError:
        return False
    return stat.S_ISDIR(kinds[0]) and stat.S_ISFIFO(kinds[1]) and stat.S_ISDIR(kinds[2])


def _orphaned_guests(guests: Iterable[Path], processes: Iterable[_Process]) -> Iterator[Leftover]:
    places = {str(guest) for guest in guests}
    for process in processes:
        if process.directory in places and INIT in process.words and os.getpgid(process.number) == process.number:
            yield Leftover("process", str(process.number), f"a guest of the virtual engine without its janitor, in {process.directory}")


def _orphaned_programs(processes: Iterable[_Process]) -> Iterator[Leftover]:
    """Programs of the live engine whose parent is another process than the one that started them."""
    for process in processes:
        if Path(os.fsdecode(process.words[0])).name == PROGRAM.name and b"--parent" in process.words[:-1]:
            started_by = process.words[process.words.index(b"--parent") + 1]
            if started_by.isdigit() and int(started_by) != process.parent:
                yield Leftover("process", str(process.number), "a program of the live engine whose parent has ended")


def _directory(guest: Path, processes: Iterable[_Process], ended: set[int]) -> Leftover:
    users = [process.number for process in processes if process.directory.startswith(str(guest)) and process.number not in ended]
    return _used("directory", str(guest), "of a guest of the virtual engine", users)


def _namespaces() -> Iterator[Leftover]:
    with contextlib.suppress(OSError):
        for path in sorted(NAMED.glob(f"{PREFIX}*")):
            yield _used("namespace", path.name, "a network namespace with a name", _inside(path))


def _inside(named: Path) -> list[int]:
    """The processes in a named network namespace, of those that this user may look at."""
    try:
        wanted = named.stat()
    except OSError:
        return []
    processes = []
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                its = (entry / "ns" / "net").stat()
                if (its.st_dev, its.st_ino) == (wanted.st_dev, wanted.st_ino):
                    processes.append(int(entry.name))
    return processes


def _used(kind: str, name: str, about: str, users: list[int]) -> Leftover:
    """A leftover that some processes may still use."""
    if not users:
        return Leftover(kind, name, about)
    return Leftover(kind, name, f"{about}; process {', '.join(map(str, sorted(users)[:3]))} uses it: end that first", is_used=True)
