"""Files that are written whole or not at all: a reader, and whatever ends the process, never sees half of one.

A symbolic link in a result directory is replaced, not followed: the directory may come from somebody else, and a `report.html` in it that leads
to another place must not make a command overwrite what is there.

The content goes to a file of its own beside the place, `.NAME.N.part`, which takes the place of what is there in one step. Its writer keeps it
locked; so :func:`clear` can tell what a killed writer left from what is being written now.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

from tcpscape.errors import StoreError, refuse

SUFFIX = ".part"
"""Ends the name of a file that is being written."""
MOST_OF_NAME = 200
"""Characters of a file's name that the name of its part begins with: a name has at most 255 bytes."""


def whole(file: Path, content: str | bytes | memoryview) -> Path:
    """Writes a file, text as UTF-8, and its directory where there is none; returns the file. A link or a FIFO of its name is replaced.

    :raises StoreError: one line, where it cannot be written; what was there before is still there.
    """
    with _replacing(Path(os.path.realpath(file.parent)) / file.name, file, "out") as part:
        part.write_bytes(_bytes(content))
    return file


def many(folder: Path, contents: Iterable[tuple[str, str]]) -> list[Path]:
    """Writes files of one directory, each as :func:`whole` does: `contents` are names and texts. A file that has this text already is left alone.

    :raises StoreError: one line, where one cannot be written.
    """
    place, names = os.path.realpath(folder), []
    for name, text in contents:
        names.append(name)
        data = text.encode(errors="backslashreplace")
        try:
            if not _has(os.path.join(place, name), data):
                with _part_of(Path(place, name)) as (_, descriptor):
                    _write(descriptor, data)
        except OSError as e:
            raise cannot_write(folder / name, e) from None
    return [folder / name for name in names]


def _has(place: str, data: bytes) -> bool:
    """Whether a regular file has this content."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
        return stat.S_ISREG(status.st_mode) and status.st_size == len(data) and os.read(descriptor, len(data)) == data
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def named(file: Path, content: str | bytes | memoryview) -> Path:
    """Writes a file that the user named, text as UTF-8; returns it. A link is followed, and a device stays one: see :func:`replacing`.

    :raises StoreError: one line, where it cannot be written.
    """
    with replacing(file) as place:
        place.write_bytes(_bytes(content))
    return file


def _bytes(content: str | bytes | memoryview) -> bytes | memoryview:
    return content.encode(errors="backslashreplace") if isinstance(content, str) else content


def folder(root: Path, name: str) -> Path:
    """The directory `name` in the result directory `root`, made where there is none.

    :raises StoreError: one line, where it is a symbolic link or cannot be made.
    """
    place = root / name
    try:
        if not place.is_symlink():
            place.mkdir(parents=True, exist_ok=True)
            return place
    except OSError as e:
        raise cannot_write(place, e) from None
    refuse("out", f"{place} is a symbolic link", "remove it, or choose another directory", StoreError)


@contextlib.contextmanager
def replacing(file: Path, option: str = "out") -> Iterator[Path]:
    """A file to write to instead of `file`, which the user named and which it becomes at the end of the `with`.

    What is no regular file (`/dev/stdout`) is written to itself, and a link is followed.

    :param option: which one named the file.
    :raises StoreError: one line, where it cannot be written.
    """
    place = Path(os.path.realpath(file))
    if place.exists() and not place.is_file():
        try:
            yield place
        except OSError as e:
            raise cannot_write(file, e, option) from None
        return
    with _replacing(place, file, option) as part:
        yield part


@contextlib.contextmanager
def _replacing(place: Path, file: Path, option: str) -> Iterator[Path]:
    """A file to write to, which takes `place` at the end of the `with`; an error names `file`."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _part_of(place) as (part, _):
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


class Spool:
    """A temporary directory of this process for what others hand over. Nobody else can read it, and it is removed when the process ends."""

    def __init__(self) -> None:
        """:raises StoreError: one line, where there is no place for it."""
        try:
            self.root = Path(tempfile.mkdtemp(prefix="tcpscape-"))
        except OSError as e:
            raise cannot_write(Path(tempfile.gettempdir()), e) from None
        self._numbers = itertools.count()
        self._end = weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)
        _spools.add(self)

    def adopt(self, file: Path, name: str) -> Path:
        """The content of `file` under this name in a directory of its own, wherever it goes then.

        :raises StoreError: one line, where it cannot be kept.
        """
        folder = self.root / str(next(self._numbers))
        try:
            folder.mkdir(mode=0o700)
            try:
                os.link(file, folder / name)
            except OSError:  # another file system
                shutil.copyfile(file, folder / name)
        except OSError as e:
            shutil.rmtree(folder, ignore_errors=True)
            raise cannot_write(self.root, e) from None
        return folder / name

    def remove(self, file: Path) -> None:
        """Removes a file that was adopted, and its directory."""
        if file.parent.parent == self.root:
            shutil.rmtree(file.parent, ignore_errors=True)

    def close(self) -> None:
        """Removes the directory with all that is in it."""
        self._end()


_spools: weakref.WeakSet[Spool] = weakref.WeakSet()


def end_spools() -> None:
    """Removes the directory of every :class:`Spool`: for a process that ends without Python's own clean-up."""
    for spool in list(_spools):
        spool.close()


class Presence:
    """A file `.NAME.N.part` in a directory that says that this process is there: it is locked as long as the process lives."""

    def __init__(self, folder: Path, name: str) -> None:
        """:raises StoreError: one line, where the directory cannot be written."""
        try:
            self.file, self._descriptor = _new_part(folder / name)
        except OSError as e:
            raise cannot_write(folder, e) from None

    def end(self) -> None:
        """Removes the file."""
        with contextlib.suppress(OSError):
            self.file.unlink()
        self.forget()

    def forget(self) -> None:
        """In a forked child: the file is the parent's."""
        os.close(self._descriptor)


def is_present(file: Path) -> bool:
    """Whether the process that a :class:`Presence` of this file was made by is still there."""
    try:
        with file.open("rb") as other:
            return not _lock(other.fileno())
    except OSError:
        return False


@contextlib.contextmanager
def _part_of(place: Path) -> Iterator[tuple[Path, int]]:
    """A new file beside `place` and its descriptor, locked until the end of the `with`, where it takes that place, or is removed after an error."""
    part, descriptor = _new_part(place)
    try:
        yield part, descriptor
        part.replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    finally:
        os.close(descriptor)


def _new_part(place: Path) -> tuple[Path, int]:
    """A new file beside `place`, locked as long as its descriptor is open."""
    for number in itertools.count(os.getpid()):
        part = place.with_name(f".{place.name[:MOST_OF_NAME]}.{number}{SUFFIX}")
        try:
            descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            continue
        _lock(descriptor, wait=True)
        if os.fstat(descriptor).st_nlink:  # otherwise `clear` came in between
            return part, descriptor
        os.close(descriptor)
    raise AssertionError("numbers do not end")


def _lock(descriptor: int, *, wait: bool = False) -> bool:
    """Locks an open file for this process; whether no other one holds it. False where that is not known."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True
