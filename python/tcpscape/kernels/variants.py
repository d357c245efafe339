"""Kernels of one source tree with some of the hunks that lead to another, built one after the other in one object directory.

Between two builds only the files whose content changes are written, so that make compiles what depends on them and links. Each executable is kept by
the first tree's kernel and the hunks in it, and is not built again. `$XDG_CACHE_HOME/tcpscape/hunks/NAME/`, named by both trees, holds

```
src/             the first tree: links to it, and files where the trees differ
build/           make's output directory
KERNEL/HUNKS/    linux and kernel.json of each variant
first/ second/   sources that were unpacked
```
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

from tcpscape.errors import EngineError, refuse
from tcpscape.kernels import build, cache, patches, source
from tcpscape.kernels.cache import BuiltKernel
from tcpscape.kernels.patches import Hunk
from tcpscape.kernels.source import BuildProgress, KernelSource

COMPILED = re.compile(r".*\.[chS]")
"""Files that take part in a kernel only where the compiler reads them."""
DIGITS = 16
"""Of a digest that names a directory."""
FIRST = "first"
"""Names the first tree's kernel, and its sources where they were unpacked."""


@contextmanager
def opened(first: str, second: str, jobs: int = 0) -> Iterator[VariantBuilder]:
    """Kernels between two trees, each as `--source` of `kernel build` takes it; nothing is built yet.

    :raises EngineError: where something is missing, a source is none, or another process builds between the same trees.
    """
    build.check_machine()
    build.check_tools()
    patches.check_programs()
    sources = source.find(first), source.find(second)
    name = f"{sources[0].name}-{sources[1].name}-{hashlib.sha256(f'{sources[0].where}|{sources[1].where}'.encode()).hexdigest()[:8]}"
    with cache.locked(name):
        directory = cache.hunks_home(name)
        build.check_disk(directory, build.DISK_BUILD + sum(build.DISK_LINKS if s.kind == source.TREE else build.DISK_SOURCES for s in sources))
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / cache.LOG).open("w", buffering=1, encoding="utf-8", errors="replace") as log:
            yield VariantBuilder(directory, sources, (Path(first).name, Path(second).name), jobs, log)


class VariantBuilder:
    """Builds kernels of the first tree with some of the hunks; one at a time. Call :meth:`prepare` first."""

    hunks: tuple[Hunk, ...]
    """What differs and takes part in the kernel, in the order of files."""
    left_out: tuple[str, ...]
    """Files that differ and that the compiler does not read."""
    first: BuiltKernel
    """The first tree's kernel; make looks each time whether anything of it has changed."""
    second: BuiltKernel

    def __init__(self, directory: Path, sources: tuple[KernelSource, KernelSource], names: tuple[str, str], jobs: int, log: IO[str]) -> None:
        """`names`: the trees in words."""
        self.directory, self.names, self.progress = directory, names, BuildProgress()
        self._sources, self._jobs, self._log = sources, jobs, log
        self._hunks: Mapping[str, list[Hunk]] = {}

    def prepare(self, progress: BuildProgress) -> None:
        """Unpacks what is packed, compares the trees, and builds the kernels of both.

        :raises EngineError: where a tree cannot be unpacked, both are the same, or one does not build, with file and line.
        """
        self.progress = progress
        self._trees = self._tree(self._sources[0], FIRST), self._tree(self._sources[1], "second")
        progress.stage("comparing the trees")
        self._hunks = {file: patches.hunks_of(*self._trees, file) for file in patches.differing_files(*self._trees)}
        if not self._hunks:
            first, second = (s.where for s in self._sources)
            refuse("hunks", f"{first} and {second} have the same files", "give two trees that differ", EngineError)
        progress.stage("linking the sources")
        source.sync(self._trees[0], self.directory / cache.SOURCES, keep=self._own())
        self._write(())
        built = build.rebuild(self.directory, self._trees[0], self._jobs, self._log, progress)
        self.first = self._keep(built, self.directory / built.digest[:DIGITS] / FIRST)
        read = self._compiled()
        everything = tuple(hunk for hunks in self._hunks.values() for hunk in hunks)
        self.second = self(everything)
        read |= self._compiled()
        self.hunks = tuple(hunk for hunk in everything if hunk.file in read)
        self.left_out = tuple(file for file in self._hunks if file not in read)

    def __call__(self, hunks: Collection[Hunk]) -> BuiltKernel:
        """The kernel of the first tree with these hunks.

        :raises HunkRefused: where one does not apply without others.
        :raises EngineError: where it does not build, with file and line.
        """
        kept = self.directory / self.first.digest[:DIGITS] / _digest(hunks)
        if (known := cache.read(kept, self.directory.name)) is not None:
            return known
        self._write(hunks)
        return self._keep(build.rebuild(self.directory, self._trees[0], self._jobs, self._log, self.progress), kept)

    def _tree(self, sources: KernelSource, side: str) -> Path:
        """The directory of a tree; a tarball's and Debian's are unpacked once."""
        if sources.kind == source.TREE:
            return Path(sources.where)
        directory = self.directory / side
        directory.mkdir(exist_ok=True)
        source.prepare(sources, directory, self._log, self.progress)
        return directory / cache.SOURCES

    def _keep(self, built: BuiltKernel, kept: Path) -> BuiltKernel:
        """The same kernel at a place of its own, which later builds leave alone."""
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy(built.path, kept / cache.LINUX)
        built = replace(built, path=kept / cache.LINUX)
        cache.save(built, kept)
        return built

    def _compiled(self) -> set[str]:
        """The differing files that builds until now read; what is neither C nor assembly always counts."""
        left = {file for file in self._hunks if COMPILED.fullmatch(file)}
        read = self._hunks.keys() - left
        for where, _, names in os.walk(self.directory / cache.BUILD):
            for name in names:
                if left and name.endswith(".cmd"):
                    text = Path(where, name).read_text("utf-8", "replace")
                    mentioned = {file for file in left if f"{file} " in text or f"{file}\n" in text}
                    read, left = read | mentioned, left - mentioned
        return read

    def _own(self) -> set[str]:
        """Differing files that an earlier search wrote into src/: they stay, with their times, by which make goes."""
        src = self.directory / cache.SOURCES
        return {file for file in self._hunks if (src / file).is_file() and not (src / file).is_symlink()}

    def _write(self, hunks: Collection[Hunk]) -> None:
        """Brings src/ to the first tree with these hunks; what is there already keeps its time, so that make leaves it alone."""
        chosen = frozenset(hunks)
        contents = {file: patches.patched(*self._trees, file, [h for h in every if h in chosen], len(every)) for file, every in self._hunks.items()}
        for file, content in contents.items():
            path = self.directory / cache.SOURCES / file
            if content is None:
                path.unlink(missing_ok=True)
            elif path.is_symlink() or not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                path.write_bytes(content)


def _digest(hunks: Collection[Hunk]) -> str:
    """What names a variant: its hunks with their text."""
    text = "\0".join(f"{h.file}:{h.number}:{h.line}\n{h.text}" for h in sorted(hunks))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:DIGITS]
