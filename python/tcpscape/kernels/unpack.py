"""Kernel tarballs: unpacked safely, and only the files that a User-Mode Linux kernel can need."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from tcpscape.errors import EngineError, refuse
from tcpscape.kernels import files

Tell = Callable[[int, int], None]
"""Told how many bytes of how many are done."""
ENDINGS = (".tar", ".tar.xz", ".tar.gz", ".tgz", ".tar.bz2", ".tar.zst")
FILTERS = {".xz": ("xz", "-dc", "-T0"), ".gz": ("gzip", "-dc"), ".tgz": ("gzip", "-dc"), ".bz2": ("bzip2", "-dc"), ".zst": ("zstd", "-dc", "-q")}
"""Who opens what: a process of its own works beside us."""
BLOCK = 2**20


def is_tarball(path: Path) -> bool:
    """Whether a file's name says that it is a tarball."""
    return path.name.endswith(ENDINGS)


def sha256(path: Path) -> str:
    """SHA-256 of a file."""
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            hashed.update(block)
    return hashed.hexdigest()


def unpack(tarball: Path, into: Path, tell: Tell) -> None:
    """Unpacks the wanted files of a kernel tarball into the directory `into`, which must not exist; raises EngineError for a bad one."""
    if not hasattr(tarfile, "data_filter"):
        refuse("source", "this Python's tarfile cannot unpack safely", "unpack it yourself and give the directory, or update Python", EngineError)
    into.mkdir(parents=True)
    try:
        with _opened(tarball, tell) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            _extract(archive, into)
    except (tarfile.TarError, OSError, EOFError) as e:
        shutil.rmtree(into, ignore_errors=True)
        refuse("source", f"cannot unpack {tarball} ({e})", "is it whole, and is the disk not full?", EngineError)
    except BaseException:
        shutil.rmtree(into, ignore_errors=True)
        raise


def _extract(archive: tarfile.TarFile, into: Path) -> None:
    """All wanted members, without the directory that is around them."""
    top: str | None = None
    for member in archive:
        name = member.name.removeprefix("./").strip("/")
        if name in ("", ".", "pax_global_header"):
            continue
        if top is None:
            top = _around(name, member.isdir())
        inner = name[len(top) :] if (name + "/").startswith(top) else name
        if inner and not member.isdir() and files.wanted(inner):
            archive.extract(member.replace(name=inner, deep=False), into, filter="data")


def _around(first: str, is_directory: bool) -> str:
    """The directory around the sources, with its slash; empty where there is none. Judged by the first member."""
    head, slash, _ = first.partition("/")
    return f"{head}/" if (is_directory or slash) and head not in files.TOP else ""


@contextmanager
def _opened(tarball: Path, tell: Tell) -> Iterator[IO[bytes]]:
    """The tar stream inside a tarball; `tell` hears how much of the file was read."""
    words = FILTERS.get(tarball.suffix)
    size = tarball.stat().st_size
    with tarball.open("rb") as file:
        if words is None:
            yield cast(IO[bytes], _Told(file, lambda: tell(file.tell(), size)))
            return
        if shutil.which(words[0]) is None:
            refuse("source", f"{words[0]} is missing, which opens {tarball.name}", f"run `apt-get install {words[0]}`", EngineError)
        with subprocess.Popen(words, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                # The file's offset is shared with the process, so it says how far that is.
                yield cast(IO[bytes], _Told(cast(IO[bytes], process.stdout), lambda: tell(file.seek(0, io.SEEK_CUR), size)))
                process.communicate()
            finally:
                process.kill()
        if process.returncode:
            raise EOFError(f"{words[0]} says that it is damaged")


class _Told:
    """A stream that tells its reader's progress."""

    def __init__(self, stream: IO[bytes], told: Callable[[], None]) -> None:
        self.stream = stream
        self.told = told

    def read(self, size: int = -1) -> bytes:
        """As a file's."""
        self.told()
        return self.stream.read(size)
