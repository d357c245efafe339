"""One guest: a process group of its own, a run directory, and somebody who cleans up after us.

If this process ends in whatever way, the guest reads end-of-file from its FIFO and powers off. A guest in the middle of a trial reads it
only later, and a tracer that is killed frees its traced children, so a janitor (a shell that waits on a pipe of ours) ends the whole process
group and removes the directory.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tcpscape.engines.guest import room
from tcpscape.engines.guest.console import Console, Died, Patience, has_ended
from tcpscape.errors import EngineError

MEMORY_MB = 512
"""Memory of a guest; only what it touches is taken."""
BOOT = Patience(60)
"""Until a guest is ready; it takes about 40 ms of CPU."""
EPOCH = 1_000_000_000 * 10**9
"""The guest's wall clock when it starts, ns since 1970: the same for all."""
JANITOR = 'read -r group; read -r _ || { [ -z "$group" ] || kill -9 -"$group"; rm -rf "$1"; }'
"""Reads the process group, then waits for a word; end-of-file instead means that we are gone."""
WIDTHS = {"u64": ("<u8", 8), "u32": ("<u4", 4), "u16": ("<u2", 2), "u8": ("u1", 1), "i64": ("<i8", 8), "i32": ("<i4", 4), "f64": ("<f8", 8)}
"""Types of a table's columns: numpy's name, bytes."""

Columns = dict[str, tuple[str, memoryview]]
"""A table: numpy's type and the bytes of each column."""


@dataclass(frozen=True, slots=True)
class Boot:
    """What a guest is made of."""

    linux: Path
    initrd: bytes = field(repr=False)
    memory_mb: int = MEMORY_MB
    seeds: Path | None = None
    """The library that answers the kernel's `getrandom` from a seed (crates/seed); without it no guest can be repeated."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a guest says to a job: the summary, and its tables by name."""

    said: Mapping[str, Any]
    tables: Mapping[str, Columns]


class Guest:
    """A running kernel. One thread at a time, except for :meth:`kill`."""

    alive: ClassVar[set[Guest]] = set()
    """Every guest of this process."""

    def __init__(self, boot: Boot, seed: int | None = None) -> None:
        """Starts the kernel and returns at once; :meth:`ready` waits for it.

        With a `seed` every random number of its life follows from it; it then starts with its only job, in :meth:`do`.
        """
        self.served = 0
        self.facts: dict[str, Any] = {}
        """What it said when it was ready: its release, its congestion controls."""
        self.cpu: int | None = None
        """The CPU that it runs on."""
        self._lock = threading.Lock()
        self._open = True
        self._boot, self._seed = boot, seed
        self._room = Path(tempfile.mkdtemp(prefix="tcpscape-", dir=room.directory(boot.memory_mb)))
        self._io = self._room / "io"
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._janitor = _start(["/bin/sh", "-c", JANITOR, "tcpscape-janitor", str(self._room)], stdin=subprocess.PIPE)
            self._jobs = self._prepare(boot)
        except OSError as e:
            shutil.rmtree(self._room, ignore_errors=True)
            raise EngineError(f"engine: cannot write to {self._room}: {e.strerror or e}; make room or set TMPDIR") from None
        Guest.alive.add(self)
        if seed is None:
            self._begin()

    def _prepare(self, boot: Boot) -> int:
        self._io.mkdir()
        (self._room / "initrd").write_bytes(boot.initrd)
        os.mkfifo(self._room / "jobs", 0o600)
        return os.open(self._room / "jobs", os.O_RDWR)  # so that opening waits for nobody

    def _begin(self, only: str | None = None) -> None:
        """Starts the kernel, perhaps for one job only.

        The kernel mixes its command line into its random numbers: so there is nothing in it that differs from run to run.
        """
        words = [
            str(self._boot.linux), f"mem={self._boot.memory_mb}M", "initrd=initrd", "rdinit=/init", "quiet", "con=null", "con0=null,fd:1",
            "time-travel=inf-cpu", f"time-travel-start={EPOCH}", "dsp=jobs", "TCPSCAPE_IO=/proc/self/cwd/io",
            *([f"TCPSCAPE_ONCE={only}"] if only else []),
        ]
        with self._lock:
            if not self._open:
                raise Died("it was ended before it began")
            try:
                with (self._room / "stderr").open("wb") as errors:
                    self._process = _start(words, stdout=subprocess.PIPE, stderr=errors, cwd=self._room, env=self._environment())
                self._tell(f"{self._process.pid}\n")
                self._pin(self._process.pid)
            except OSError as e:
                why = f"engine: cannot start {self._boot.linux}: {e.strerror or e}; build it again with `tcpscape kernel build`"
                raise EngineError(why) from None
        self._console = Console(self._process)

    def _pin(self, pid: int) -> None:
        """To one CPU, of those that serve the fewest guests.

        The kernel and the process that it traces take turns and never run at once; turns between two CPUs cost four times as much.
        """
        here = Counter(guest.cpu for guest in Guest.alive if guest is not self)
        usable = list(os.sched_getaffinity(0))
        random.shuffle(usable)
        self.cpu = min(usable, key=lambda cpu: here[cpu])
        with contextlib.suppress(OSError):  # a machine that does not allow it is only slower
            os.sched_setaffinity(pid, {self.cpu})

    def _environment(self) -> dict[str, str]:
        """The kernel puts its memory into TMPDIR and a directory of its own into HOME."""
        said = {"TMPDIR": str(self._room), "HOME": str(self._room), "PATH": os.environ.get("PATH", os.defpath)}
        if self._boot.seeds:
            said["LD_PRELOAD"] = str(self._boot.seeds)
            if self._seed is not None:
                said["TCPSCAPE_SEED"] = str(self._seed)
        return said

    def _tell(self, line: str) -> None:
        """A line to the janitor."""
        assert self._janitor.stdin is not None
        self._janitor.stdin.write(line.encode())
        self._janitor.stdin.flush()

    def ready(self, patience: Patience = BOOT) -> None:
        """Waits until it takes jobs. Raises :class:`Died`."""
        if self._seed is not None:
            return
        word, rest = self._console.word(patience)
        if word != "ready":
            raise Died(f"it said {word} {rest} instead of being ready")
        try:
            self.facts = dict(json.loads(rest or "{}"))
        except ValueError:
            raise Died("it introduced itself with garbage") from None
        (self._room / "initrd").unlink(missing_ok=True)

    def idle(self) -> bool:
        """Whether a waiting guest is still there."""
        return self._open and (self._process is None or not has_ended(self._process.pid))

    def do(self, job: Mapping[str, Any], patience: Patience, pcap: Path | None = None) -> Answer:
        """Runs one job; its packets go to `pcap`. Raises :class:`Died`, and EngineError where `pcap` cannot be written."""
        self.served += 1
        name = f"j{self.served}"
        try:
            (self._io / f"{name}.job").write_text(json.dumps(job, separators=(",", ":")))
            if self._process is None:
                self._begin(only=name)
            else:
                os.write(self._jobs, f"{name}\n".encode())
            word, rest = self._console.word(patience)
            if (word, rest) != ("done", name):
                raise Died(f"it said {word} {rest} instead of done {name}")
            return self._answer(name, pcap)
        finally:
            for path in self._io.glob(f"{name}.*"):
                path.unlink(missing_ok=True)

    def _answer(self, name: str, pcap: Path | None) -> Answer:
        try:
            said = json.loads((self._io / f"{name}.json").read_bytes())
            if "error" not in said and not {"flows", "duration_ns"} <= set(said):
                raise Died("it answered without a result")
            tables = {table: self._table(about) for table, about in said.get("tables", {}).items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as e:
            raise Died(f"it answered with garbage ({type(e).__name__}: {e})") from None
        if pcap and "error" not in said:
            try:
                shutil.copyfile(self._io / f"{name}.pcap", pcap)
            except OSError as e:
                raise EngineError(f"pcap: cannot write {pcap}: {e.strerror}; choose another file") from None
        return Answer(said, tables)

    def _table(self, about: Mapping[str, Any]) -> Columns:
        """The columns of a table's file, one after the other."""
        data, at, columns = memoryview((self._io / Path(about["file"]).name).read_bytes()), 0, {}
        for name, kind in about["columns"]:
            dtype, width = WIDTHS[kind]
            columns[name] = (dtype, data[at : at + about["rows"] * width])
            at += about["rows"] * width
        if at != len(data):
            raise ValueError(f"{about['file']} has {len(data)} bytes, not {at}")
        return columns

    def testament(self) -> str:
        """What it left behind on its console and in its log, for a diagnosis."""
        if self._process is None:
            return ""
        errors = ""
        with contextlib.suppress(OSError):
            errors = (self._room / "stderr").read_text(errors="replace")[-20_000:]
        return "\n".join([*self._console.everything(), errors]).strip()

    def kill(self) -> None:
        """Ends its process group; whoever uses it gets :class:`Died` and closes it. From any thread."""
        with self._lock:
            if self._open and self._process:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Ends it and removes what it left."""
        self.kill()
        with self._lock:
            if not self._open:
                return
            self._open = False
            Guest.alive.discard(self)
            with contextlib.suppress(OSError):  # before the process is waited for: its number may be another's then
                self._tell("\n")
            self._janitor.communicate()
            if self._process:
                self._process.wait()
                assert self._process.stdout is not None
                self._process.stdout.close()
            os.close(self._jobs)
            shutil.rmtree(self._room, ignore_errors=True)

    def forget(self) -> None:
        """In a forked child: the guest is the parent's; lets go of it."""
        self._open = False
        os.close(self._jobs)
        for process in (self._janitor, self._process):
            if process:
                process.returncode = 0
                for pipe in (process.stdin, process.stdout):
                    if pipe:
                        pipe.close()


def _start(words: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """A process in a session of its own, so that the terminal's signals do not reach it."""
    rest = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(words, start_new_session=True, **{**rest, **options})
