"""Building a kernel: its sources, its configuration, make, its record. What did not change is not done again."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from tcpscape import writing
from tcpscape.errors import EngineError, refuse
from tcpscape.kernels import cache, config, source, toolchain, tree
from tcpscape.kernels.cache import BuiltKernel
from tcpscape.kernels.source import KernelSource, SourceRecord
from tcpscape.kernels.toolchain import BuildProgress, MakeFailed
from tcpscape.reading import documents

FRAGMENT = "fragment.config"
"""The user's fragment of the last build, kept in the kernel's directory."""
STATE, KCONFIG, MERGED = "tcpscape.json", "Kconfig.tcpscape", "merged.config"
"""Files in build/: the state (what the configuration was made from, how many lines a whole build printed), Kconfig's root, all fragments in one."""
LINES = 1100
"""Lines that make prints for a whole build of 6.1, used until a build has been counted."""
MIB = 2**20
DISK_BUILD, DISK_SOURCES, DISK_DOWNLOAD, DISK_LINKS = 250 * MIB, 600 * MIB, 400 * MIB, 100 * MIB
"""Most bytes of disk that a build takes: 6.12 takes 100 MiB, its sources 440, Debian's package 150 twice, a directory of links 27."""


@dataclass(frozen=True)
class BuildOptions:
    """What to build."""

    source: str | None = None
    """A tarball, a tree or a version of Debian's. None: the source of the last build under this name, otherwise Debian's of that name or 6.1."""
    fragment: Path | None = None
    """A file of configuration options, which win over tcpscape's own."""
    name: str | None = None
    jobs: int = 0
    """Processes that make may start; 0 is one for each core."""


def build(options: BuildOptions, progress: BuildProgress = BuildProgress()) -> BuiltKernel:
    """Builds a kernel, or what changed of it; raises EngineError with the first thing that is wrong."""
    toolchain.check_machine()
    toolchain.check_tools()
    text, fragment = options.source, options.fragment
    if text is None and options.name is not None:
        text, kept_fragment = source.previous(options.name), cache.place(options.name) / FRAGMENT
        fragment = kept_fragment if fragment is None and text is not None and kept_fragment.is_file() else fragment
        text = text or (options.name if source.VERSION.fullmatch(options.name) else None)
    sources = source.find(text)
    name = options.name or sources.name
    directory = cache.place(name)
    if re.search(r"[\s:]", str(directory)):
        refuse("cache", f"make takes no spaces or colons in {directory}", "set XDG_CACHE_HOME to a path without", EngineError)
    if fragment is not None:
        config.fragment_options(fragment)
    with cache.locked(name):
        toolchain.check_disk(directory, _required_disk(sources, directory))
        directory.mkdir(exist_ok=True)
        with (directory / cache.LOG).open("w", buffering=1, encoding="utf-8", errors="replace") as log:
            return _Build(directory, sources, options.jobs or len(os.sched_getaffinity(0)), log, progress).run(fragment)


def _required_disk(sources: KernelSource, directory: Path) -> int:
    """Bytes of disk that the build may still take."""
    if source.read_record(directory) is not None:
        return DISK_BUILD
    return DISK_BUILD + (DISK_LINKS if sources.kind == source.TREE else DISK_SOURCES + (0 if sources.path else DISK_DOWNLOAD))


@dataclass(frozen=True)
class _Build:
    """One build in one kernel's directory."""

    directory: Path
    source: KernelSource
    jobs: int
    log: IO[str]
    progress: BuildProgress

    @property
    def sources(self) -> Path:
        return self.directory / cache.SOURCES

    @property
    def objects(self) -> Path:
        return self.directory / cache.BUILD

    def run(self, fragment: Path | None) -> BuiltKernel:
        start = time.monotonic()
        record = source.prepare(self.source, self.directory, self.log, self.progress)
        self.objects.mkdir(exist_ok=True)
        options, is_new = self._configure(fragment)
        self._compile(is_new)
        return self._publish(record, options, time.monotonic() - start)

    def _configure(self, fragment: Path | None) -> tuple[config.Options, bool]:
        """The configuration, and whether it is a new one, which it is where anything that it depends on changed."""
        requested, kconfig = config.requested(self.sources, fragment), config.overlay(self.sources)
        stamp, state = config.stamp(self.sources, (requested.text(), kconfig, toolchain.compiler_version())), self._read_state()
        is_new = state.get("stamp") != stamp
        if is_new:
            self.progress.stage("configuring")
            self._write_state({**state, "stamp": None})
            (self.objects / KCONFIG).write_text(kconfig, "utf-8")
            (self.objects / MERGED).write_text(requested.text(), "utf-8")
            self._make("allnoconfig")
        options = config.parse_options((self.objects / ".config").read_text("utf-8"))
        config.check(requested, options, self.sources)
        self._write_state({**state, "stamp": stamp})
        self._keep_fragment(fragment)
        return options, is_new

    def _compile(self, is_new: bool) -> None:
        """Runs make, with the number of lines to expect where much is to do, and counts its lines for the next build."""
        state = self._read_state()
        is_whole = "lines" not in state
        compiled = sum(name.endswith(".o") for _, _, names in os.walk(self.objects) for name in names) if is_whole else 0
        self.progress.stage("compiling", state.get("lines", LINES) if is_whole or is_new else None)
        lines = compiled + self._make(f"-j{self.jobs}", "linux", lines_before=compiled)
        if is_whole:
            self._write_state({**state, "lines": lines})

    def _make(self, *targets: str, lines_before: int = 0) -> int:
        """Runs make once; returns how many lines it printed."""
        variables = {"ARCH": "um", "O": self.objects, "KBUILD_KCONFIG": self.objects / KCONFIG, "KCONFIG_ALLCONFIG": self.objects / MERGED}

        def on_line(number: int, line: str) -> None:
            self.progress.done(lines_before + number)
            self.progress.say(line)

        try:
            return toolchain.run_make((*(f"{key}={value}" for key, value in variables.items()), *targets), self.sources, self.log, on_line)
        except MakeFailed as e:
            problem = str(e).replace(f"{self.sources}/", f"{self.source.where}/" if self.source.kind == source.TREE else "")
            fix = f"the log is {self.directory / cache.LOG}; the next build goes on from here"
            refuse("kernel", f"the build failed: {problem}", fix, EngineError)

    def _publish(self, record: SourceRecord, options: config.Options, seconds: float) -> BuiltKernel:
        """Puts the executable beside its record; a process that runs the old file continues to run it."""
        path = self.directory / cache.LINUX
        copy = path.with_suffix(".new")
        shutil.copy(self.objects / cache.LINUX, copy)
        copy.replace(path)
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        before = next((kernel for kernel in cache.built_kernels() if kernel.name == self.directory.name), None)
        kernel = BuiltKernel(
            name=self.directory.name,
            path=path,
            release=(self.objects / "include/config/kernel.release").read_text("utf-8").strip(),
            digest=source.sha256(path),
            hz=int(options.get("HZ", "100")),
            source=record.where,
            source_digest=record.digest,
            describe=tree.describe(Path(record.where)) if record.kind == source.TREE else None,
            config_digest=config.digest(options),
            compiler=options.get("CC_VERSION_TEXT", '"?"').strip('"'),
            created=before.created if before else now,
            built=now,
            seconds=round(seconds, 1),
            size=path.stat().st_size,
            congestion_controls=config.registered_names("congestion_controls", options, self.sources),
            qdiscs=config.registered_names("qdiscs", options, self.sources),
            recipe=config.recipe(),
        )
        cache.save(kernel)
        return kernel

    def _keep_fragment(self, fragment: Path | None) -> None:
        copy = self.directory / FRAGMENT
        if fragment is None:
            copy.unlink(missing_ok=True)
        elif fragment.resolve() != copy.resolve():
            shutil.copyfile(fragment, copy)

    def _read_state(self) -> dict[str, Any]:
        try:
            state = documents.json_file(self.objects / STATE, cache.KERNEL_RECORD)
        except EngineError:
            return {}
        return state if isinstance(state, dict) else {}

    def _write_state(self, state: dict[str, Any]) -> None:
        writing.whole(self.objects / STATE, json.dumps(state))
