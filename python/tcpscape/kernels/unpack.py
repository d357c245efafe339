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
from tcpscape.kernels.tree import TOP_LEVEL, is_needed

OnRead = Callable[[int], None]
"""Called with the number of the tarball's bytes that were read."""
ENDINGS = (".tar", ".tar.xz", ".tar.gz", ".tgz", ".tar.bz2", ".tar.zst")
FILTERS = {".xz": ("xz", "-dc", "-T0"), ".gz": ("gzip", "-dc"), ".tgz": ("gzip", "-dc"), ".bz2": ("bzip2", "-dc"), ".zst": ("zstd", "-dc", "-q")}
"""The program that decompresses a tarball, by the ending of its name: a process of its own runs in parallel."""
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


def unpack(tarball: Path, directory: Path, on_read: OnRead) -> None:
    """Unpacks the needed files of a kernel tarball into `directory`, which must not exist; raises EngineError for a damaged one."""
    if not hasattr(tarfile, "data_filter"):
        refuse("source", "this Python's tarfile cannot unpack safely", "unpack it yourself and give the directory, or update Python", EngineError)
    directory.mkdir(parents=True)
    try:
        with _tar_stream(tarball, on_read) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            _extract(archive, directory)
    except (tarfile.TarError, OSError, EOFError) as e:
        shutil.rmtree(directory, ignore_errors=True)
        refuse("source", f"cannot unpack {tarball} ({e})", "is it whole, and is the disk not full?", EngineError)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _extract(archive: tarfile.TarFile, directory: Path) -> None:
    """Extracts all needed members, without the directory that is around them."""
    top: str | None = None
    for member in archive:
        name = member.name.removeprefix("./").strip("/")
        if name in ("", ".", "pax_global_header"):
            continue
        if top is None:
            top = _top_directory(name, member.isdir())
        inner = name[len(top) :] if (name + "/").startswith(top) else name
        if inner and not member.isdir() and is_needed(inner):
            archive.extract(member.replace(name=inner, deep=False), directory, filter="data")


def _top_directory(first: str, is_directory: bool) -> str:
    """The directory around the sources, with its slash, by the archive's first member; empty where there is none."""
    head, slash, _ = first.partition("/")
    return f"{head}/" if (is_directory or slash) and head not in TOP_LEVEL else ""


@contextmanager
def _tar_stream(tarball: Path, on_read: OnRead) -> Iterator[IO[bytes]]:
    """The tar stream inside a tarball."""
    command = FILTERS.get(tarball.suffix)
    with tarball.open("rb") as file:
        if command is None:
            yield cast(IO[bytes], _ReportingStream(file, lambda: on_read(file.tell())))
            return
        if shutil.which(command[0]) is None:
            refuse("source", f"{command[0]} is missing, which opens {tarball.name}", f"run `apt-get install {command[0]}`", EngineError)
        with subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                # The file's offset is shared with the process, so it is the number of bytes that the process has read.
                yield cast(IO[bytes], _ReportingStream(cast(IO[bytes], process.stdout), lambda: on_read(file.seek(0, io.SEEK_CUR))))
                process.communicate()
            finally:
                process.kill()
        if process.returncode:
            raise EOFError(f"{command[0]} says that it is damaged")


class _ReportingStream:
    """A stream that reports each read."""

    def __init__(self, stream: IO[bytes], report: Callable[[], None]) -> None:
        self.stream = stream
        self.report = report

    def read(self, size: int = -1) -> bytes:
        """As a file's."""
        self.report()
        return self.stream.read(size)
