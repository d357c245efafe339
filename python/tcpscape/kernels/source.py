"""Where a kernel's sources come from: Debian's package, a tarball, or the user's own tree; and how they get into the cache."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tcpscape import kernels
from tcpscape.errors import EngineError, refuse
from tcpscape.kernels import files, forest, unpack
from tcpscape.kernels.watch import Watch

DEBIAN, TARBALL, TREE = "debian", "tarball", "tree"
DEFAULT_VERSION = "6.1"
VERSION = re.compile(r"\d+\.\d+")
INSTALLED = Path("/usr/src")
RECORD = "source.json"
KERNEL_ORG = "give --source a tarball from https://kernel.org or a tree"
IN_A_NAME = re.compile(r"(?:linux-)?(?:source-)?([\w.+-]+)")


@dataclass(frozen=True)
class Source:
    """Sources that were asked for."""

    kind: str
    where: str
    """Debian's package name, or a path."""
    name: str
    """What a kernel made of it is called if nothing else is said."""
    path: Path | None
    """The tarball or the tree; none where it must be fetched first."""


@dataclass(frozen=True)
class Held:
    """What is in a kernel's src/."""

    kind: str
    where: str
    digest: str | None = None
    """SHA-256 of the tarball."""


def find(said: str | None) -> Source:
    """What `--source` means: a version of Debian's, a tarball, a tree; raises EngineError where it is none of them."""
    if said is None or VERSION.fullmatch(said):
        version = said or DEFAULT_VERSION
        package = f"linux-source-{version}"
        installed = INSTALLED / f"{package}.tar.xz"
        return Source(DEBIAN, package, version, installed if installed.is_file() else None)
    path = Path(said).expanduser().resolve()
    if path.is_dir():
        _prove(path, str(path))
        return Source(TREE, str(path), path.name, path)
    if path.is_file() and unpack.is_tarball(path):
        stem = next(path.name.removesuffix(end) for end in sorted(unpack.ENDINGS, key=len, reverse=True) if path.name.endswith(end))
        named = IN_A_NAME.fullmatch(stem)
        return Source(TARBALL, str(path), named[1] if named else stem, path)
    problem = f"{said} is no tarball ({', '.join(unpack.ENDINGS)})" if path.is_file() else f"{said} does not exist"
    refuse("source", problem, "give a kernel tarball, a kernel tree or a version of Debian's such as 6.12", EngineError)


def again(name: str) -> str | None:
    """The `--source` of the last build under this name."""
    there = held(kernels.place(name))
    return None if there is None else there.where.removeprefix("linux-source-") if there.kind == DEBIAN else there.where


def held(directory: Path) -> Held | None:
    """What a kernel's src/ holds; none where that is not complete."""
    try:
        return Held(**json.loads((directory / RECORD).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def prepare(source: Source, directory: Path, log: IO[str], watch: Watch) -> Held:
    """Brings the sources into src/; the build directory of other sources is thrown away."""
    there = held(directory)
    if source.path is None and there is not None and there.where == source.where:
        return there
    digest = unpack.sha256(source.path) if source.kind != TREE and source.path else None
    now = Held(source.kind, source.where, digest)
    if there is not None and there.where != now.where and (digest is None or there.digest != digest):
        fix = f"give another --name, or `tcpscape kernel remove {directory.name}` first"
        refuse("name", f"kernel {directory.name!r} is built from {there.where}, not from {now.where}", fix, EngineError)
    if source.kind == TREE:
        if there is None:
            _wipe(directory)
        watch.stage("linking the sources")
        made, gone = forest.sync(Path(source.where), directory / kernels.SOURCES)
        log.write(f"{source.where}: {made} links made, {gone} removed\n")
    elif there is None or there.digest != digest or digest is None:
        now = _unpacked(source, now, directory, log, watch)
    if now != there:
        (directory / RECORD).write_text(json.dumps(vars(now), indent=1) + "\n", "utf-8")
    return now


def _unpacked(source: Source, now: Held, directory: Path, log: IO[str], watch: Watch) -> Held:
    (directory / RECORD).unlink(missing_ok=True)
    _wipe(directory)
    fresh = directory / f"{kernels.SOURCES}.new"
    with tempfile.TemporaryDirectory(dir=directory, prefix="fetched-") as fetched:
        tarball = source.path or _fetch(source.where, Path(fetched), log, watch)
        size = tarball.stat().st_size
        watch.stage("unpacking", size)
        unpack.unpack(tarball, fresh, lambda done, _: watch.done(done))
        if source.path is None:
            now = Held(now.kind, now.where, unpack.sha256(tarball))
    log.write(f"{tarball}: {size} bytes unpacked\n")
    _prove(fresh, source.where)
    fresh.rename(directory / kernels.SOURCES)
    return now


def _wipe(directory: Path) -> None:
    """Removes what other sources left."""
    for old in (kernels.BUILD, kernels.SOURCES, f"{kernels.SOURCES}.new"):
        shutil.rmtree(directory / old, ignore_errors=True)
    for part in directory.glob("fetched-*"):
        shutil.rmtree(part, ignore_errors=True)


def _fetch(package: str, into: Path, log: IO[str], watch: Watch) -> Path:
    """Debian's package with the sources, fetched and opened as an ordinary user."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        refuse("source", f"{package} is not in {INSTALLED} and there is no apt-get to fetch it with", KERNEL_ORG, EngineError)
    watch.stage(f"fetching {package}")
    fix = f"run `apt-get update` as root and try again, or {KERNEL_ORG}"
    _call(("apt-get", "download", package), into, log, f"apt-get cannot download {package}", fix)
    packages = list(into.glob("*.deb"))
    if not packages:
        refuse("source", f"apt-get download {package} brought nothing", KERNEL_ORG, EngineError)
    _call(("dpkg-deb", "-x", str(packages[0]), str(into)), into, log, f"dpkg-deb cannot open {packages[0].name}", KERNEL_ORG)
    packages[0].unlink()
    found = [path for path in into.glob(f"usr/src/{package}.tar*") if unpack.is_tarball(path)]
    if not found:
        refuse("source", f"{package} has no tarball in it", KERNEL_ORG, EngineError)
    return found[0]


def _call(words: tuple[str, ...], where: Path, log: IO[str], problem: str, fix: str) -> None:
    got = subprocess.run(words, cwd=where, capture_output=True, text=True, errors="replace", check=False)
    log.write(f"$ {' '.join(words)}\n{got.stdout}{got.stderr}")
    if got.returncode:
        said = next((line.removeprefix("E: ") for line in got.stderr.splitlines() if line.startswith("E: ")), f"status {got.returncode}")
        refuse("source", f"{problem} ({said})", fix, EngineError)


def _prove(directory: Path, said: str) -> None:
    """Raises EngineError where a directory holds no kernel that can be built as User-Mode Linux."""
    missing = [name for name in files.PROOF if not (directory / name).is_file()]
    if missing:
        fix = "give the top directory of a kernel tree, or its tarball"
        refuse("source", f"{said} is no Linux kernel ({missing[0]} is missing)", fix, EngineError)
