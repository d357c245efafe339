"""Building a kernel: its sources, its configuration, make, its record. What did not change is not done again.

What a build needs of the machine (architecture, tools, free disk) and how it calls the kernel's make is at the end.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from tcpscape import writing
from tcpscape.errors import EngineError, refuse
from tcpscape.kernels import cache, config, source
from tcpscape.kernels.cache import BuiltKernel
from tcpscape.kernels.source import BuildProgress, KernelSource, SourceRecord
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
    check_machine()
    check_tools()
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
        check_disk(directory, _required_disk(sources, directory))
        directory.mkdir(exist_ok=True)
        with (directory / cache.LOG).open("w", buffering=1, encoding="utf-8", errors="replace") as log:
            return _Build(directory, sources, options.jobs or len(os.sched_getaffinity(0)), log, progress).run(fragment)


def rebuild(directory: Path, tree: Path, jobs: int, log: IO[str], progress: BuildProgress) -> BuiltKernel:
    """Builds what is in `directory`/src, which was made from `tree`: what changed since the last time is compiled. No kernel of the cache.

    :raises EngineError: with the first thing that is wrong.
    """
    sources = KernelSource(source.TREE, str(tree), directory.name, tree)
    built = _Build(directory, sources, jobs or len(os.sched_getaffinity(0)), log, progress)
    return built.make(SourceRecord(source.TREE, str(tree)), None, time.monotonic())


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
        kernel = self.make(record, fragment, start)
        cache.save(kernel)
        return kernel

    def make(self, record: SourceRecord, fragment: Path | None, start: float) -> BuiltKernel:
        """Configures and compiles what is in src/, which `record` describes."""
        self.objects.mkdir(exist_ok=True)
        options, is_new = self._configure(fragment)
        self._compile(is_new)
        return self._publish(record, options, time.monotonic() - start)

    def _configure(self, fragment: Path | None) -> tuple[config.Options, bool]:
        """The configuration, and whether it is a new one, which it is where anything that it depends on changed."""
        requested, kconfig = config.requested(self.sources, fragment), config.overlay(self.sources)
        stamp, state = config.stamp(self.sources, (requested.text(), kconfig, compiler_version())), self._read_state()
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
            return run_make((*(f"{key}={value}" for key, value in variables.items()), *targets), self.sources, self.log, on_line)
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
        return BuiltKernel(
            name=self.directory.name,
            path=path,
            release=(self.objects / "include/config/kernel.release").read_text("utf-8").strip(),
            digest=source.sha256(path),
            hz=int(options.get("HZ", "100")),
            source=record.where,
            source_digest=record.digest,
            describe=source.describe(Path(record.where)) if record.kind == source.TREE else None,
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


LineHandler = Callable[[int, str], None]
"""Called for each line that make prints, with its number and its text."""

PACKAGES = {"make": "make", "gcc": "gcc", "ld": "binutils", "flex": "flex", "bison": "bison", "bc": "bc", "xz": "xz-utils", "awk": "mawk"}
"""Tools that the kernel's make calls, and the Debian package of each."""
C_LIBRARY = "libc6-dev"
"""Debian's package with the headers of the C library."""
GIB = 2**30
FOREIGN = re.compile(r"(?:KBUILD|KCONFIG|MAKE|GNUMAKE|MFLAGS|LLVM|INSTALL_)\w*|ARCH|SUBARCH|CROSS_COMPILE|[OVWCM]|LOCALVERSION|K[CA]FLAGS")
"""Variables of the user's shell, or of a calling make, that would change the kernel."""
REPRODUCIBLE = {
    "LC_ALL": "C",
    "LOCALVERSION": "",
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_USER": "tcpscape",
    "KBUILD_BUILD_HOST": "tcpscape",
    "KBUILD_BUILD_VERSION": "1",
}
"""Variables that make the same sources give the same executable, byte for byte."""
ERROR_PATTERNS = (
    re.compile(r": (?:fatal )?error: |undefined reference|multiple definition|No rule to make target|No space left|: not found"),
    re.compile(r"syntax error|:\d+: .*(?:unknown|expected)|\*\*\* .*(?:Stop|not clean)"),
    re.compile(r"\*\*\*|rror"),
)
"""What marks a line that reports an error, the most specific pattern first."""
CLEANUP_S = 10.0
"""How long an interrupted make may take to clean up, s."""


class MakeFailed(Exception):
    """make failed; the message is the line of its output that best says why."""


def check_machine() -> None:
    """Raises EngineError where this is not Linux on x86-64: User-Mode Linux runs on nothing else."""
    system, architecture = platform.system(), platform.machine()
    if system != "Linux" or architecture not in ("x86_64", "amd64"):
        refuse("kernel", f"User-Mode Linux needs Linux on x86_64, this is {system} on {architecture}", "build it on such a machine", EngineError)


def check_tools() -> None:
    """Raises EngineError where a tool is missing, with the one command that installs all that are."""
    missing = [tool for tool in PACKAGES if shutil.which(tool) is None]
    packages = [PACKAGES[tool] for tool in missing]
    if "gcc" not in missing and not _has_headers():
        missing.append("the C library's headers")
        packages.append(C_LIBRARY)
    elif "gcc" in missing:
        packages.append(C_LIBRARY)
    if missing:
        refuse("tools", f"missing: {', '.join(missing)}", f"run `apt-get install {' '.join(packages)}`", EngineError)


def check_disk(directory: Path, required: int) -> None:
    """Raises EngineError where less than `required` bytes are free on the disk of `directory`, which need not exist yet."""
    while not directory.exists():
        directory = directory.parent
    free = shutil.disk_usage(directory).free
    if free < required:
        fix = "make room, or set XDG_CACHE_HOME to another disk"
        refuse("disk", f"{free / GIB:.1f} GiB are free at {directory}, the build needs {required / GIB:.1f} GiB", fix, EngineError)


def compiler_version() -> str:
    """The first line of `gcc --version`."""
    return subprocess.run(("gcc", "--version"), capture_output=True, text=True, check=False).stdout.partition("\n")[0]


def make_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for make: `environment` without the variables that would change the kernel."""
    return {key: value for key, value in environment.items() if not FOREIGN.fullmatch(key)} | REPRODUCIBLE


def run_make(arguments: tuple[str, ...], directory: Path, log: IO[str], on_line: LineHandler = lambda number, line: None) -> int:
    """Runs make in a directory, every line into `log`; returns the number of lines it printed. An interrupt stops make first.

    :raises MakeFailed: make ended with an error.
    """
    log.write(f"$ make {' '.join(arguments)}\n")
    first_errors: list[str | None] = [None] * len(ERROR_PATTERNS)
    number = 0
    process = subprocess.Popen(
        ("make", *arguments),
        cwd=directory,
        env=make_environment(os.environ),
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        for line in process.stdout or ():
            log.write(line)
            number += 1
            on_line(number, line.strip())
            first_errors = [
                earlier or (line.strip() if pattern.search(line) else None) for earlier, pattern in zip(first_errors, ERROR_PATTERNS, strict=True)
            ]
        status = process.wait()
    except BaseException:
        _stop(process)
        raise
    finally:
        log.flush()
    if status:
        raise MakeFailed(next((line for line in first_errors if line), f"make ended with status {status}"))
    return number


def _has_headers() -> bool:
    """Whether gcc has the headers of the C library."""
    command = ("gcc", "-E", "-x", "c", "-")
    return subprocess.run(command, input="#include <stdio.h>\n", capture_output=True, text=True, check=False).returncode == 0


def _stop(process: subprocess.Popen[str]) -> None:
    """Lets make remove incomplete files, which the next build would take for complete."""
    process.terminate()
    try:
        process.communicate(timeout=CLEANUP_S)
    except (subprocess.TimeoutExpired, ValueError):
        process.kill()
        process.wait()
