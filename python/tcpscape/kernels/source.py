"""Where a kernel's sources come from (Debian's package, a tarball, or the user's own tree), and how they get into the cache.

Tarballs are unpacked safely, and only the files that a User-Mode Linux kernel can need: two thirds are not, and leaving them out saves time and
disk. Of a user's own tree the cache has links, so that it is built without writing to it, where make refuses a separate output directory because
the tree itself was configured or built. The link directory has real directories and a link for every source file, and none for the output of a
build. An edit of a file is seen through its link; new and removed files are seen at the next :func:`sync`, with which every build begins.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from tcpscape import writing
from tcpscape.errors import EngineError, refuse, shown
from tcpscape.kernels import cache
from tcpscape.reading import documents
from tcpscape.reading import files as reading
from tcpscape.reading.files import MIB, Kind, Origin

DEBIAN, TARBALL, TREE = "debian", "tarball", "tree"
"""Kinds of sources."""
DEFAULT_VERSION = "6.1"
VERSION = re.compile(r"\d+\.\d+")
INSTALLED = Path("/usr/src")
"""Where Debian's packages put their tarballs."""
KERNEL_ORG = "give --source a tarball from https://kernel.org or a tree"
TARBALL_NAME = re.compile(r"(?:linux-)?(?:source-)?([\w.+-]+)")
"""The stem of a tarball's name; its group is the name of the kernel."""
OnRead = Callable[[int], None]
"""Called with the number of the tarball's bytes that were read."""
SOURCE_TARBALL = Kind("a tarball of Linux", "give the tarball of a release", most=4 * 1024 * MIB, error=EngineError)
"""Linux 6.12 is 1.6 GB without compression."""
MOST_UNPACKED = 8 * 1024 * MIB
"""Bytes that are unpacked of a tarball."""
ENDINGS = (".tar", ".tar.xz", ".tar.gz", ".tgz", ".tar.bz2", ".tar.zst")
FILTERS = {".xz": ("xz", "-dc", "-T0"), ".gz": ("gzip", "-dc"), ".tgz": ("gzip", "-dc"), ".bz2": ("bzip2", "-dc"), ".zst": ("zstd", "-dc", "-q")}
"""The program that decompresses a tarball, by the ending of its name: a process of its own runs in parallel."""
BLOCK = 2**20


class BuildProgress:
    """Receives the stages of a build and their progress. This base class ignores them; the command line's shows a bar."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A stage begins; `total` is its length in units of its own, None where it is not known."""

    def done(self, amount: int) -> None:
        """`amount` of the stage's `total` is done."""

    def say(self, line: str) -> None:
        """`line` describes the current step."""


@dataclass(frozen=True)
class KernelSource:
    """The sources that a build is made from."""

    kind: str
    where: str
    """Debian's package name, or a path."""
    name: str
    """Name of the kernel that is built from them, unless the user gives one."""
    path: Path | None
    """The tarball or the tree; None where it must be downloaded first."""


@dataclass(frozen=True)
class SourceRecord:
    """What a kernel's src/ holds, kept beside it in source.json."""

    kind: str
    where: str
    digest: str | None = None
    """SHA-256 of the tarball."""


def find(text: str | None) -> KernelSource:
    """The sources that `--source` names: a version of Debian's, a tarball or a tree; raises EngineError where it names none of them."""
    if text is None or VERSION.fullmatch(text):
        version = text or DEFAULT_VERSION
        package = f"linux-source-{version}"
        installed = INSTALLED / f"{package}.tar.xz"
        return KernelSource(DEBIAN, package, version, installed if installed.is_file() else None)
    try:
        path = Path(text).expanduser().resolve()
    except (OSError, ValueError, RuntimeError) as e:
        refuse("source", f"{shown(text)} is no path ({e})", "check it", EngineError)
    if os.path.isdir(path):
        _check_tree(path, str(path))
        return KernelSource(TREE, str(path), path.name, path)
    if os.path.isfile(path) and is_tarball(path):
        reading.expect_file(path, SOURCE_TARBALL, "source")
        stem = next(path.name.removesuffix(end) for end in sorted(ENDINGS, key=len, reverse=True) if path.name.endswith(end))
        match = TARBALL_NAME.fullmatch(stem)
        return KernelSource(TARBALL, str(path), match[1] if match else stem, path)
    if os.path.isfile(path):
        problem = f"{text} is no tarball ({', '.join(ENDINGS)})"
    else:
        problem = f"{text} is no regular file" if os.path.exists(path) else f"{text} does not exist"
    refuse("source", problem, "give a kernel tarball, a kernel tree or a version of Debian's such as 6.12", EngineError)


def previous(name: str) -> str | None:
    """The `--source` of the last build under this name; None where there was none."""
    record = read_record(cache.place(name))
    return None if record is None else record.where.removeprefix("linux-source-") if record.kind == DEBIAN else record.where


def read_record(directory: Path) -> SourceRecord | None:
    """The record of a kernel's src/; None where src/ is not complete."""
    file = directory / cache.SOURCE_RECORD
    try:
        return documents.as_type(SourceRecord, documents.json_file(file, cache.KERNEL_RECORD), Origin(str(file), cache.KERNEL_RECORD))
    except EngineError:
        return None


def prepare(source: KernelSource, directory: Path, log: IO[str], progress: BuildProgress) -> SourceRecord:
    """Brings the sources into src/; the build directory of other sources is removed."""
    before = read_record(directory)
    if source.path is None and before is not None and before.where == source.where:
        return before
    digest = sha256(source.path) if source.kind != TREE and source.path else None
    record = SourceRecord(source.kind, source.where, digest)
    if before is not None and before.where != record.where and (digest is None or before.digest != digest):
        fix = f"give another --name, or `tcpscape kernel remove {shlex.quote(directory.name)}` first"
        refuse("name", f"kernel {directory.name!r} is built from {before.where}, not from {record.where}", fix, EngineError)
    if source.kind == TREE:
        if before is None:
            _remove_sources(directory)
        progress.stage("linking the sources")
        created, removed = sync(Path(source.where), directory / cache.SOURCES)
        log.write(f"{source.where}: {created} links made, {removed} removed\n")
    elif before is None or before.digest != digest or digest is None:
        record = _unpacked(source, record, directory, log, progress)
    if record != before:
        writing.whole(directory / cache.SOURCE_RECORD, json.dumps(vars(record), indent=1) + "\n")
    return record


def _unpacked(source: KernelSource, record: SourceRecord, directory: Path, log: IO[str], progress: BuildProgress) -> SourceRecord:
    """Downloads a tarball where it must, and unpacks it into src/; the record with the tarball's digest."""
    (directory / cache.SOURCE_RECORD).unlink(missing_ok=True)
    _remove_sources(directory)
    fresh = directory / f"{cache.SOURCES}.new"
    with tempfile.TemporaryDirectory(dir=directory, prefix="fetched-") as downloads:
        tarball = source.path or _download(source.where, Path(downloads), log, progress)
        size = tarball.stat().st_size
        progress.stage("unpacking", size)
        unpack(tarball, fresh, progress.done)
        if source.path is None:
            record = SourceRecord(record.kind, record.where, sha256(tarball))
    log.write(f"{tarball}: {size} bytes unpacked\n")
    _check_tree(fresh, source.where)
    fresh.rename(directory / cache.SOURCES)
    return record


def _remove_sources(directory: Path) -> None:
    """Removes what other sources left."""
    for old in (cache.BUILD, cache.SOURCES, f"{cache.SOURCES}.new"):
        shutil.rmtree(directory / old, ignore_errors=True)
    for part in directory.glob("fetched-*"):
        shutil.rmtree(part, ignore_errors=True)


def _download(package: str, directory: Path, log: IO[str], progress: BuildProgress) -> Path:
    """The tarball in Debian's package, downloaded and opened as an ordinary user."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        refuse("source", f"{package} is not in {INSTALLED} and there is no apt-get to fetch it with", KERNEL_ORG, EngineError)
    progress.stage(f"fetching {package}")
    fix = f"run `apt-get update` as root and try again, or {KERNEL_ORG}"
    _call(("apt-get", "download", package), directory, log, f"apt-get cannot download {package}", fix)
    packages = list(directory.glob("*.deb"))
    if not packages:
        refuse("source", f"apt-get download {package} brought nothing", KERNEL_ORG, EngineError)
    _call(("dpkg-deb", "-x", str(packages[0]), str(directory)), directory, log, f"dpkg-deb cannot open {packages[0].name}", KERNEL_ORG)
    packages[0].unlink()
    tarballs = [path for path in directory.glob(f"usr/src/{package}.tar*") if is_tarball(path)]
    if not tarballs:
        refuse("source", f"{package} has no tarball in it", KERNEL_ORG, EngineError)
    return tarballs[0]


def _call(command: tuple[str, ...], directory: Path, log: IO[str], problem: str, fix: str) -> None:
    """Runs a command, its output into `log`; EngineError of `problem` and `fix` where it fails."""
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, errors="replace", check=False)
    log.write(f"$ {' '.join(command)}\n{result.stdout}{result.stderr}")
    if result.returncode:
        errors = (line.removeprefix("E: ") for line in result.stderr.splitlines() if line.startswith("E: "))
        refuse("source", f"{problem} ({next(errors, f'status {result.returncode}')})", fix, EngineError)


def _check_tree(directory: Path, text: str) -> None:
    """Raises EngineError where a directory, which the user named by `text`, holds no kernel that can be built as User-Mode Linux."""
    missing = [name for name in REQUIRED if not (directory / name).is_file()]
    if missing:
        fix = "give the top directory of a kernel tree, or its tarball"
        refuse("source", f"{text} is no Linux kernel ({missing[0]} is missing)", fix, EngineError)


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
    total = 0
    for member in archive:
        name = member.name.removeprefix("./").strip("/")
        if name in ("", ".", "pax_global_header"):
            continue
        if top is None:
            top = _top_directory(name, member.isdir())
        total += member.size
        if total > MOST_UNPACKED:
            raise tarfile.TarError(f"it has more than {reading.size_text(MOST_UNPACKED)} when it is unpacked")
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


OTHER_ARCHITECTURES = re.compile(r"arch/(?!um/|x86/)[^/]+/")
UNUSED = ("Documentation/", "tools/testing/", "tools/perf/")
DEVICES = (
    "drivers/accel/",
    "drivers/clk/",
    "drivers/gpu/",
    "drivers/hwmon/",
    "drivers/iio/",
    "drivers/infiniband/",
    "drivers/media/",
    "drivers/mtd/",
    "drivers/net/ethernet/",
    "drivers/net/wireless/",
    "drivers/pinctrl/",
    "drivers/scsi/",
    "drivers/staging/",
    "drivers/usb/",
    "drivers/video/",
    "sound/isa/",
    "sound/pci/",
    "sound/soc/",
    "sound/usb/",
)
"""Drivers of hardware that such a kernel cannot have. They are large, and make reads their build files only."""
BUILD_FILE = re.compile(r"(?:.*/)?(?:Kconfig|Kbuild|Makefile)[^/]*")
"""Always needed: Kconfig and make read them all."""
TOP_LEVEL = frozenset(("COPYING", "CREDITS", "Documentation", "Kbuild", "Kconfig", "LICENSES", "MAINTAINERS", "Makefile", "README", "arch", "block"))
"""Names of which one comes first in an archive that has no directory around the sources."""
REQUIRED = ("Makefile", "Kconfig", "arch/um/Kconfig")
"""Files without which a directory is no kernel that can be built as User-Mode Linux."""

BUILD_OUTPUT = re.compile(
    r"\..*|.*\.(?:[ao]|o\..*|ko|mod|mod\.c|order|symvers|cmd|so|so\.dbg|s|i|lst|dtb|dtbo|su|gcno|dwo|relocs|bin|elf|gz|xz|zst|bz2|orig|rej)"
    r"|.*\.(?:lex\.c|tab\.[ch]|asn1\.[ch])|(?:vmlinux|System\.map|modules\.builtin|initramfs_data|initramfs_inc_data)(?:\.(?!h$)[a-z]+)?"
    r"|(?:crc32table|crc64table|config_data|cpustr|voffset|zoffset|pasyms|elfconfig|devicetable-offsets|flask|av_permissions|utsversion-tmp)\.h"
    r"|(?:vdso\w*|realmode)\.lds|(?:capflags|inat-tables|consolemap_deftbl|defkeymap|oid_registry_data|vdso-image-\w+)\.c|piggy\.S|linux|bzImage|tags|TAGS"
)
"""Names of files that a build writes, for a tree that git does not describe."""
OUTPUT_DIRECTORIES = re.compile(r"include/(?:config|generated)|arch/[^/]+/include/generated|(?:.*/)?\.[^/]*")
ELF = b"\x7fELF"


def is_needed(relative: str) -> bool:
    """Whether the build can need this file; the path is relative to the top, with slashes."""
    if BUILD_FILE.fullmatch(relative):
        return True
    return not (relative.startswith(UNUSED) or relative.startswith(DEVICES) or OTHER_ARCHITECTURES.match(relative))


def sync(tree: Path, links: Path, keep: Collection[str] = ()) -> tuple[int, int]:
    """Makes the directory `links` mirror the files of `tree`; returns the numbers of links created and removed. What is there of `keep` stays."""
    needed = {name for name in source_files(tree) if is_needed(name)}
    targets, directories = _links(links)
    stale = [name for name in targets if name not in keep and (name not in needed or targets[name] != f"{tree}/{name}")]
    for name in stale:
        (links / name).unlink()
    new = needed.difference(targets).union(needed.intersection(stale))
    if directories:
        _remove_empty(links, directories, needed)
    for directory in {os.path.dirname(name) for name in new}:
        (links / directory).mkdir(parents=True, exist_ok=True)
    for name in new:
        os.symlink(f"{tree}/{name}", f"{links}/{name}")
    return len(new), len(stale)


def source_files(tree: Path) -> Iterable[str]:
    """The source files of a tree: by git's index and its rules for ignored files, otherwise by their names."""
    names = _git_files(tree)
    if names is None:
        return _files_by_name(tree)
    return (name for name in names if os.path.lexists(f"{tree}/{name}"))


def describe(tree: Path) -> str | None:
    """`git describe --always --dirty` of a tree that is a repository of its own, otherwise None."""
    if not (tree / ".git").exists():
        return None
    text = _git("-C", str(tree), "describe", "--always", "--dirty")
    return text.strip() or None if text is not None else None


def _git_files(tree: Path) -> list[str] | None:
    """The source files by git, None where git is no help. A tree that is no repository is read with an empty one, for its ignore rules alone."""
    command = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if (tree / ".git").exists():
        listing = _git("-C", str(tree), *command)
    elif (tree / ".gitignore").exists():
        with tempfile.TemporaryDirectory() as empty:
            created = _git("init", "--quiet", "--bare", empty)
            listing = None if created is None else _git("-C", str(tree), f"--git-dir={empty}", f"--work-tree={tree}", *command)
    else:
        return None
    names = [name for name in (listing or "").split("\0") if name and not name.endswith("/")]
    # The rules of Debian's packages ignore every file: then they are no help.
    return names if set(REQUIRED).issubset(names) else None


def _git(*arguments: str) -> str | None:
    """The output of git; None where it fails. It must not take locks: some commands refresh the index."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        result = subprocess.run(("git", "-c", "core.fsmonitor=false", *arguments), capture_output=True, check=False, env=env)
    except OSError:
        return None
    return os.fsdecode(result.stdout) if result.returncode == 0 else None


def _files_by_name(tree: Path) -> Iterable[str]:
    """The source files, told from build output by their names."""
    for where, directories, names in os.walk(tree):
        relative = os.path.relpath(where, tree)
        prefix = "" if relative == "." else f"{relative}/"
        links = [name for name in directories if os.path.islink(f"{where}/{name}")]
        directories[:] = [name for name in directories if name not in links and not OUTPUT_DIRECTORIES.fullmatch(prefix + name)]
        yield from (prefix + name for name in links)
        sources = (name for name in names if not BUILD_OUTPUT.fullmatch(name) and ("." in name or not _is_program(f"{where}/{name}")))
        yield from (prefix + name for name in sources)


def _is_program(path: str) -> bool:
    """Whether a file is an executable, which a build wrote (fixdep, conf, …)."""
    try:
        if not os.access(path, os.X_OK) or not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return file.read(len(ELF)) == ELF
    except OSError:
        return False


def _links(root: Path) -> tuple[dict[str, str], list[str]]:
    """The target of each link below `root`, and the directories below it, the deepest last."""
    targets, below = {}, []
    for where, directories, names in os.walk(root):
        prefix = "" if where == str(root) else os.path.relpath(where, root) + "/"
        links = [name for name in directories if os.path.islink(f"{where}/{name}")]
        below += [prefix + name for name in directories if name not in links]
        for name in (*names, *links):
            path = f"{where}/{name}"
            targets[prefix + name] = os.readlink(path) if os.path.islink(path) else ""
    return targets, below


def _remove_empty(root: Path, directories: list[str], needed: set[str]) -> None:
    """Removes directories that hold no needed file any more; a file may take the place of one."""
    parents = {parent for name in needed for parent in _parents(name)}
    for directory in reversed(directories):
        if directory not in parents:
            (root / directory).rmdir()


def _parents(name: str) -> Iterable[str]:
    while name := os.path.dirname(name):
        yield name
