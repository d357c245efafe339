"""Files that are written whole or not at all: a reader, and whatever ends the process, never sees half of one.

The content goes to a file of its own beside the place, `.NAME.N.part`, which takes the place of what is there in one step. Its writer keeps it
locked; so :func:`clear` can tell what a killed writer left from what is being written now.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from tcpscape.errors import StoreError

SUFFIX = ".part"
"""Ends the name of a file that is being written."""
MOST_OF_NAME = 200
"""Characters of a file's name that the name of its part begins with: a name has at most 255 bytes."""


def whole(file: Path, content: str | bytes | memoryview) -> Path:
    """Writes a file, text as UTF-8, and its directory where there is none; returns the file.

    :raises StoreError: one line, where it cannot be written; what was there before is still there.
    """
    data = content.encode() if isinstance(content, str) else content
    with replacing(file) as part:
        part.write_bytes(data)
    return file


@contextlib.contextmanager
def replacing(file: Path, option: str = "out") -> Iterator[Path]:
    """A file to write to instead of `file`, which it becomes at the end of the `with`; what is no regular file (`/dev/stdout`) itself.

    :param option: which one named the file.
    :raises StoreError: one line, where it cannot be written.
    """
    try:
        place = Path(os.path.realpath(file))
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists() and not place.is_file():
            yield place
            return
        with _part_of(place) as part:
            yield part
    except OSError as e:
        raise cannot_write(file, e, option) from None


def clear(*folders: Path) -> None:
    """Removes what killed writers left in these directories."""
    for part in itertools.chain.from_iterable(folder.glob(f".*{SUFFIX}") for folder in folders):
        with contextlib.suppress(OSError), part.open("rb+") as left:
            if _lock(left.fileno()) and os.path.samestat(os.fstat(left.fileno()), part.stat()):
                part.unlink()


def cannot_write(place: Path, e: OSError, option: str = "out") -> StoreError:
    """The line for a place that cannot be written."""
    return StoreError(f"{option}: cannot write {place}: {e.strerror or e}; free some space, or choose another place that can be written")


@contextlib.contextmanager
def _part_of(place: Path) -> Iterator[Path]:
    """A new file beside `place`, locked until the end of the `with`, where it takes that place, or is removed after an error."""
    for number in itertools.count(os.getpid()):
        part = place.with_name(f".{place.name[:MOST_OF_NAME]}.{number}{SUFFIX}")
        try:
            descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            continue
        _lock(descriptor, wait=True)
        if os.fstat(descriptor).st_nlink:  # otherwise `clear` came in between
            break
        os.close(descriptor)
    try:
        yield part
        part.replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool = False) -> bool:
    """Locks an open file for this process; whether no other one holds it. False where that is not known."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True
