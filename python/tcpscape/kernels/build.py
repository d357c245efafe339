"""Building a kernel: sources into the cache, configuration, make, record. What did not change is not done again."""

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

from tcpscape import kernels
from tcpscape.errors import EngineError, refuse
from tcpscape.kernels import Kernel, config, forest, needs, source, unpack
from tcpscape.kernels.make import MakeFailed, make
from tcpscape.kernels.source import Held, Source
from tcpscape.kernels.watch import Watch

FRAGMENT = "fragment.config"
"""The user's fragment of the last build, kept in the kernel's directory."""
STATE, KCONFIG, MERGED = "tcpscape.json", "Kconfig.tcpscape", "merged.config"
"""In build/: what the configuration was made from and how many lines a whole build printed; Kconfig's root; all fragments in one."""
LINES = 1100
"""Lines that make prints for a whole build of 6.1, where no build was counted yet."""
MIB = 2**20
ROOM_BUILD, ROOM_SOURCES, ROOM_FETCHED, ROOM_LINKS = 250 * MIB, 600 * MIB, 400 * MIB, 100 * MIB
"""Disk a build takes at most: 6.12 takes 100 MiB, its sources 440, Debian's package 150 twice, a forest of links 27."""


@dataclass(frozen=True)
class Asked:
    """What to build."""

    source: str | None = None
    """A tarball, a tree, a version of Debian's; none is what this name was built from, else Debian's of that name or 6.1."""
    fragment: Path | None = None
    """More options, which win."""
    name: str | None = None
    jobs: int = 0
    """Processes that make may start; 0 is one for each core."""


def build(asked: Asked, watch: Watch = Watch()) -> Kernel:
    """Builds a kernel, or what changed of it; raises EngineError with the first thing that is wrong."""
    needs.machine()
    needs.tools()
    said, fragment = asked.source, asked.fragment
    if said is None and asked.name is not None:
        said, kept = source.again(asked.name), kernels.place(asked.name) / FRAGMENT
        fragment = kept if fragment is None and said is not None and kept.is_file() else fragment
        said = said or (asked.name if source.VERSION.fullmatch(asked.name) else None)
    found = source.find(said)
    name = asked.name or found.name
    directory = kernels.place(name)
    if re.search(r"[\s:]", str(directory)):
        refuse("cache", f"make takes no spaces or colons in {directory}", "set XDG_CACHE_HOME to a path without", EngineError)
    if fragment is not None:
        config.fragment_options(fragment)
    with kernels.locked(name):
        needs.disk(directory, _room(found, directory))
        directory.mkdir(exist_ok=True)
        with (directory / kernels.LOG).open("w", buffering=1, encoding="utf-8", errors="replace") as log:
            return _Build(directory, found, asked.jobs or len(os.sched_getaffinity(0)), log, watch).run(fragment)


def _room(found: Source, directory: Path) -> int:
    """Bytes that the build still needs."""
    if source.held(directory) is not None:
        return ROOM_BUILD
    return ROOM_BUILD + (ROOM_LINKS if found.kind == source.TREE else ROOM_SOURCES + (0 if found.path else ROOM_FETCHED))


@dataclass(frozen=True)
class _Build:
    """One build in one kernel's directory."""

    directory: Path
    source: Source
    jobs: int
    log: IO[str]
    watch: Watch

    @property
    def sources(self) -> Path:
        return self.directory / kernels.SOURCES

    @property
    def objects(self) -> Path:
        return self.directory / kernels.BUILD

    def run(self, fragment: Path | None) -> Kernel:
        began = time.monotonic()
        held = source.prepare(self.source, self.directory, self.log, self.watch)
        self.objects.mkdir(exist_ok=True)
        got, anew = self._configure(fragment)
        self._compile(anew)
        return self._publish(held, got, time.monotonic() - began)

    def _configure(self, fragment: Path | None) -> tuple[config.Options, bool]:
        """The configuration, and whether it was made anew, which it is where anything that it depends on changed."""
        asked, kconfig = config.wanted(self.sources, fragment), config.overlay(self.sources)
        stamp, state = config.stamp(self.sources, (asked.text(), kconfig, needs.compiler())), self._state()
        anew = state.get("stamp") != stamp
        if anew:
            self.watch.stage("configuring")
            self._keep({**state, "stamp": None})
            (self.objects / KCONFIG).write_text(kconfig, "utf-8")
            (self.objects / MERGED).write_text(asked.text(), "utf-8")
            self._make("allnoconfig")
        got = config.options((self.objects / ".config").read_text("utf-8"))
        config.check(asked, got, self.sources)
        self._keep({**state, "stamp": stamp})
        self._keep_fragment(fragment)
        return got, anew

    def _compile(self, anew: bool) -> None:
        """Runs make with a bar where much is to do, and counts its lines for the next one."""
        state = self._state()
        whole = "lines" not in state
        begun = sum(name.endswith(".o") for _, _, names in os.walk(self.objects) for name in names) if whole else 0
        self.watch.stage("compiling", state.get("lines", LINES) if whole or anew else None)
        lines = begun + self._make(f"-j{self.jobs}", "linux", begun=begun)
        if whole:
            self._keep({**state, "lines": lines})

    def _make(self, *words: str, begun: int = 0) -> int:
        """One make; returns how many lines it printed."""
        given = {"ARCH": "um", "O": self.objects, "KBUILD_KCONFIG": self.objects / KCONFIG, "KCONFIG_ALLCONFIG": self.objects / MERGED}

        def hear(number: int, line: str) -> None:
            self.watch.done(begun + number)
            self.watch.say(line)

        try:
            return make((*(f"{key}={value}" for key, value in given.items()), *words), self.sources, self.log, hear)
        except MakeFailed as e:
            shown = str(e).replace(f"{self.sources}/", f"{self.source.where}/" if self.source.kind == source.TREE else "")
            fix = f"the log is {self.directory / kernels.LOG}; the next build goes on from here"
            refuse("kernel", f"the build failed: {shown}", fix, EngineError)

    def _publish(self, held: Held, got: config.Options, seconds: float) -> Kernel:
        """Puts the executable beside its record; one that runs from the old file goes on."""
        made, path = self.objects / kernels.LINUX, self.directory / kernels.LINUX
        fresh = path.with_suffix(".new")
        shutil.copy(made, fresh)
        fresh.replace(path)
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        before = next((kernel for kernel in kernels.all() if kernel.name == self.directory.name), None)
        kernel = Kernel(
            name=self.directory.name, path=path, release=(self.objects / "include/config/kernel.release").read_text("utf-8").strip(),
            digest=unpack.sha256(path), hz=int(got.get("HZ", "100")), source=held.where, source_digest=held.digest,
            describe=forest.describe(Path(held.where)) if held.kind == source.TREE else None, config_digest=config.digest(got),
            compiler=got.get("CC_VERSION_TEXT", '"?"').strip('"'), created=before.created if before else now, built=now, seconds=round(seconds, 1),
            size=path.stat().st_size, congestion_controls=config.registry("congestion_controls", got, self.sources),
            qdiscs=config.registry("qdiscs", got, self.sources), recipe=config.recipe(),
        )
        kernels.save(kernel)
        return kernel

    def _keep_fragment(self, fragment: Path | None) -> None:
        kept = self.directory / FRAGMENT
        if fragment is None:
            kept.unlink(missing_ok=True)
        elif fragment.resolve() != kept.resolve():
            shutil.copyfile(fragment, kept)

    def _state(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.objects / STATE).read_text("utf-8")))
        except (OSError, ValueError):
            return {}

    def _keep(self, state: dict[str, Any]) -> None:
        (self.objects / STATE).write_text(json.dumps(state), "utf-8")
