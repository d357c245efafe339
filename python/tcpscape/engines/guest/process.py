"""One guest: what it is started from, and a process group with a run directory and a janitor process that removes both if this process ends.

If this process ends in any way, the guest reads end-of-file from its FIFO and powers off. A guest in the middle of a trial reads it later, and a
tracer that is killed frees its traced children. So the janitor, a shell that reads from a pipe of this process, ends the whole process group and
removes the directory.

A guest starts from the kernel, its first root file system and a directory for its memory. The root file system is one program and a few device
nodes, as an uncompressed cpio archive. Source: the kernel's `Documentation/driver-api/early-userspace/buffer-format.rst` (the "newc" format: a
header of 13 numbers of eight hexadecimal digits, name and data padded to four bytes). The archive is written here because device nodes inside an
archive need no privilege.

Its console has messages to the host between the kernel's own lines, with a timeout for silence. Virtual time stops now and then: the guest then
neither writes nor uses any CPU, which distinguishes it from a busy one.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from tcpscape.engines.base import Columns
from tcpscape.errors import EngineError

MARK = "@tcpscape "
"""Begins a message; every other line is the kernel's."""
KERNEL_LINES = 200
"""Lines kept for a diagnosis."""
MAX_LINE = 1 << 16
"""Most bytes of a line."""
POLL_S = 1.0
"""s between checks of a silent guest."""


class GuestDied(Exception):
    """A guest ended, stopped responding or broke the protocol; the message is the reason in a few words. The guest must be closed."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for a guest's message, s of the host's clock."""

    total: float
    """In all, even if it is busy."""
    idle: float = 20.0
    """While it uses no CPU."""


class Console:
    """Reads one guest's console. One thread at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._process = process
        self._fd = process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._incomplete = b""
        self._messages: deque[tuple[str, str]] = deque()
        self._kernel_lines: deque[str] = deque(maxlen=KERNEL_LINES)

    def poll(self, seconds: float) -> bool:
        """Waits so long for output, and reads it; whether there was any. :raises GuestDied: the guest ended."""
        if self._poll.poll(seconds * 1000):
            self._read()
            return True
        if has_ended(self._process.pid):
            raise GuestDied("it ended without a word")
        return False

    def message(self) -> tuple[str, str] | None:
        """The next of the messages that were read: its first word and the rest."""
        return self._messages.popleft() if self._messages else None

    def next_message(self, timeouts: Timeouts) -> tuple[str, str]:
        """The guest's next message. :raises GuestDied: the guest ended, or a timeout expired."""
        start = last_active = time.monotonic()
        ticks = activity(self._process.pid).ticks
        while not self._messages:
            if self.poll(POLL_S):
                last_active = time.monotonic()
            elif (now := activity(self._process.pid).ticks) != ticks:
                ticks, last_active = now, time.monotonic()
            if self._messages:
                break
            if time.monotonic() - start > timeouts.total:
                raise GuestDied(f"it did not answer within {timeouts.total:g} s")
            if time.monotonic() - last_active > timeouts.idle:
                raise GuestDied(f"its virtual time stood still: nothing said and no CPU used for {timeouts.idle:g} s")
        return self._messages.popleft()

    def _read(self) -> None:
        """Reads what is there and sorts it into messages and lines of the kernel."""
        data = os.read(self._fd, 1 << 16)
        if not data:
            raise GuestDied(f"it ended{_exit_text(self._process.pid)}")
        *lines, self._incomplete = (self._incomplete + data).split(b"\n")
        if len(self._incomplete) > MAX_LINE:
            raise GuestDied("it floods its console")
        for line in lines:
            before, mark, message = line.decode(errors="replace").strip().partition(MARK)
            if before:
                self._kernel_lines.append(before)
            if mark:
                word, _, rest = message.partition(" ")
                self._messages.append((word, rest))

    def kernel_lines(self) -> list[str]:
        """The kernel's last lines, the incomplete one too."""
        incomplete = self._incomplete.decode(errors="replace").strip()
        return [*self._kernel_lines, *([incomplete] if incomplete else [])]


@dataclass(frozen=True, slots=True)
class Activity:
    """What a process and its children (the guest's own processes) do."""

    ticks: int
    """CPU time that they have used, with that of children that have ended, clock ticks."""
    wants_cpu: bool
    """Whether one of them runs, waits for a CPU or for the machine's storage."""


def activity(pid: int) -> Activity:
    """What a process and its children do; nothing where it has ended."""
    own = _status(str(pid))
    each = [own, *map(_status, _children(pid))]
    ended = sum(map(int, own[13:15])) if own else 0
    ticks = sum(sum(map(int, fields[11:13])) for fields in each if fields)
    return Activity(ticks + ended, any(fields[0] in RUNNABLE for fields in each if fields))


RUNNABLE = ("R", "D")
"""States of a process (proc_pid_stat(5)) that it leaves as soon as the machine lets it."""


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def busiest(pid: int, seconds: float) -> int | None:
    """The child of a process (a guest's own process) that uses most CPU time in the next `seconds`; None where none does.

    Where the machine is busy it may take :data:`LOOKS` times as long.
    """
    before = {child: _ticks(child) for child in _children(pid)}
    for _ in range(LOOKS):
        time.sleep(seconds)
        used = {child: _ticks(child) - ticks for child, ticks in before.items()}
        busy = max(used, key=used.__getitem__, default="")
        if busy and used[busy] > 0:
            return int(busy)
    return None


LOOKS = 25
"""Times that it is looked for a process that computes."""


def _ticks(pid: str) -> int:
    fields = _status(pid)
    return sum(map(int, fields[11:13])) if fields else -1


def _status(pid: str) -> list[str]:
    """The fields of a process after its name, from its state on (proc_pid_stat(5)); none where it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def has_ended(pid: int) -> bool:
    """Whether a child has ended; it can still be waited for."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _exit_text(pid: int) -> str:
    """How a child that closed its console ended, in words; empty where it has not ended after 0.2 s."""
    for _ in range(20):
        try:
            if status := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return f" with status {status.si_status}" if status.si_code == os.CLD_EXITED else f" by signal {status.si_status}"
        except ChildProcessError:
            break
        time.sleep(0.01)
    return ""


Place = Literal["sender", "router", "receiver"]
"""Where a guest records packets: all devices of an end, or the device towards the receiver of the router in the middle."""

MEMORY_MB = 512
"""Memory of a guest; only what it touches is taken."""
SHARED_MEMORY = Path("/dev/shm")
DIRECTORIES = ("dev", "proc", "sys", "host", "tmp")
"""Empty directories; `host` is where the guest mounts the exchange directory."""
NODES = {"dev/console": (5, 1), "dev/null": (1, 3), "dev/dsp": (14, 3)}
"""Character devices, major and minor (`Documentation/admin-guide/devices.txt`)."""
MAGIC = "070701"
END = "TRAILER!!!"
BOOT = Timeouts(60)
"""Until a guest is ready; it takes about 40 ms of CPU."""
EPOCH = 1_000_000_000 * 10**9
"""The guest's wall clock when it starts, ns since 1970: the same for all."""
JANITOR = 'read -r group; read -r _ || { [ -z "$group" ] || kill -9 -"$group"; rm -rf "$1"; }'
"""Reads the process group, then waits for a line; end-of-file instead means that this process has ended."""
WIDTHS = {"u64": ("<u8", 8), "u32": ("<u4", 4), "u16": ("<u2", 2), "u8": ("u1", 1), "i64": ("<i8", 8), "i32": ("<i4", 4), "f64": ("<f8", 8)}
"""Types of a table's columns: numpy's name, bytes."""


@dataclass(frozen=True, slots=True)
class Boot:
    """A kernel and what it boots with."""

    linux: Path
    initrd: bytes = field(repr=False)
    memory_mb: int = MEMORY_MB
    options: tuple[str, ...] = ()
    """Further words of the kernel's command line."""
    seeds: Path | None = None
    """The library that answers the kernel's `getrandom` from a seed (crates/seed); without it no guest can be repeated."""


def initrd(init: bytes) -> bytes:
    """The archive of the first root file system, with the program `init` as /init."""
    parts = [_entry(number, name, stat.S_IFDIR | 0o755) for number, name in enumerate(DIRECTORIES, 1)]
    parts += [_entry(100 + i, name, stat.S_IFCHR | 0o666, device=device) for i, (name, device) in enumerate(NODES.items())]
    parts.append(_entry(200, "init", stat.S_IFREG | 0o755, init))
    return b"".join(parts) + _entry(0, END, 0)


def memory_directory(megabytes: int) -> Path:
    """A directory for the file of a guest's memory: /dev/shm, otherwise $TMPDIR (/tmp).

    :raises EngineError: neither has the space and allows execution.
    """
    candidates = list(dict.fromkeys((SHARED_MEMORY, Path(tempfile.gettempdir()))))
    for path in candidates:
        if _is_suitable(path, megabytes << 20):
            return path
    names = " nor ".join(map(str, candidates))
    raise EngineError(
        f"TMPDIR: a guest needs {megabytes} MB for its memory in a directory that allows execution, and neither {names} is one; "
        "free some room or set TMPDIR to such a directory"
    )


def _is_suitable(path: Path, size: int) -> bool:
    try:
        status = os.statvfs(path)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize >= size and not status.f_flag & os.ST_NOEXEC and os.access(path, os.W_OK | os.X_OK)


def _entry(number: int, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    """One file: inode, mode, uid, gid, links, mtime, size, device (2), the device that it is (2), length of the name, checksum."""
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = (MAGIC + "".join(f"{field:08X}" for field in fields)).encode() + name.encode() + b"\0"
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


@dataclass(frozen=True, slots=True)
class GuestFacts:
    """What a guest reports about its kernel when it is ready."""

    release: str = ""
    ccas: tuple[str, ...] = ()
    """Congestion controls."""


@dataclass(frozen=True, slots=True)
class GuestAnswer:
    """A guest's answer to a job."""

    summary: Mapping[str, Any]
    """The trial's results, or `probe`: what was measured of the kernel, or `error`: why the kernel refused the job."""
    tables: Mapping[str, Columns]
    """Samples, by the name of the table."""


class Guest:
    """A running kernel. One thread at a time, except for :meth:`kill`."""

    alive: ClassVar[set[Guest]] = set()
    """Every guest of this process."""

    def __init__(self, boot: Boot, seed: int | None = None) -> None:
        """Starts the kernel and returns at once; :meth:`wait_until_ready` waits for it.

        With a `seed` all its random numbers follow from it; it then starts with its only job, in :meth:`run`.
        """
        self.served = 0
        self.facts: GuestFacts | None = None
        """What it reported when it was ready; None before, and where it serves its only job."""
        self.cpu: int | None = None
        """The CPU that it runs on."""
        self._lock = threading.Lock()
        self._open = True
        self._boot, self._seed = boot, seed
        self._directory = Path(tempfile.mkdtemp(prefix="tcpscape-", dir=memory_directory(boot.memory_mb)))
        self.shared = self._directory / "io"
        """The directory that it shares with this process."""
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._janitor = _start(["/bin/sh", "-c", JANITOR, "tcpscape-janitor", str(self._directory)], stdin=subprocess.PIPE)
            self._jobs = self._prepare(boot)
        except OSError as e:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise EngineError(f"engine: cannot write to {self._directory}: {e.strerror or e}; make room or set TMPDIR") from None
        Guest.alive.add(self)
        if seed is None:
            self._begin()

    def _prepare(self, boot: Boot) -> int:
        self.shared.mkdir()
        (self._directory / "initrd").write_bytes(boot.initrd)
        os.mkfifo(self._directory / "jobs", 0o600)
        return os.open(self._directory / "jobs", os.O_RDWR)  # so that opening waits for nobody

    def _begin(self, only: str | None = None) -> None:
        """Starts the kernel; `only` names its only job, None where it waits for jobs.

        The kernel mixes its command line into its random numbers, so nothing in it differs from run to run.
        """
        command = [
            str(self._boot.linux),
            f"mem={self._boot.memory_mb}M",
            "initrd=initrd",
            "rdinit=/init",
            "quiet",
            "con=null",
            "con0=null,fd:1",
            "time-travel=inf-cpu",
            *self._boot.options,
            f"time-travel-start={EPOCH}",
            "dsp=jobs",
            "TCPSCAPE_IO=/proc/self/cwd/io",
            *([f"TCPSCAPE_ONCE={only}"] if only else []),
        ]
        with self._lock:
            if not self._open:
                raise GuestDied("it was ended before it began")
            try:
                with (self._directory / "stderr").open("wb") as errors:
                    self._process = _start(command, stdout=subprocess.PIPE, stderr=errors, cwd=self._directory, env=self._environment())
                self._write_to_janitor(f"{self._process.pid}\n")
                self._pin(self._process.pid)
            except OSError as e:
                message = f"engine: cannot start {self._boot.linux}: {e.strerror or e}; build it again with `tcpscape kernel build`"
                raise EngineError(message) from None
        self._console = Console(self._process)

    def _pin(self, pid: int) -> None:
        """Binds the guest to one CPU, of those that serve the fewest guests.

        The kernel and the process that it traces run in turn, never at once; a turn to another CPU costs four times as much.
        """
        guests = Counter(guest.cpu for guest in Guest.alive if guest is not self)
        usable = list(os.sched_getaffinity(0))
        random.shuffle(usable)
        self.cpu = min(usable, key=lambda cpu: guests[cpu])
        with contextlib.suppress(OSError):  # where the machine does not allow it, the guest is only slower
            os.sched_setaffinity(pid, {self.cpu})

    def _environment(self) -> dict[str, str]:
        """The kernel puts its memory into TMPDIR and a directory of its own into HOME."""
        variables = {"TMPDIR": str(self._directory), "HOME": str(self._directory), "PATH": os.environ.get("PATH", os.defpath)}
        if self._boot.seeds:
            variables["LD_PRELOAD"] = str(self._boot.seeds)
            if self._seed is not None:
                variables["TCPSCAPE_SEED"] = str(self._seed)
        return variables

    def _write_to_janitor(self, line: str) -> None:
        assert self._janitor.stdin is not None
        self._janitor.stdin.write(line.encode())
        self._janitor.stdin.flush()

    def wait_until_ready(self) -> None:
        """Waits until it accepts jobs. Raises :class:`GuestDied`."""
        if self._seed is not None:
            return
        word, rest = self._console.next_message(BOOT)
        if word != "ready":
            raise GuestDied(f"it said {word} {rest} instead of being ready")
        try:
            fields = dict(json.loads(rest or "{}"))
            self.facts = GuestFacts(str(fields.get("release", "")), tuple(fields.get("cca", ())))
        except (ValueError, TypeError):
            raise GuestDied("it introduced itself with garbage") from None
        (self._directory / "initrd").unlink(missing_ok=True)

    def is_alive(self) -> bool:
        """Whether a waiting guest can take a job; one that has not started yet can."""
        return self._open and (self._process is None or not has_ended(self._process.pid))

    def run(self, job: Mapping[str, Any], timeouts: Timeouts, captures: Mapping[Place, Path]) -> GuestAnswer:
        """Runs one job; the packets of each place go to its file. Raises :class:`GuestDied`, and EngineError where one cannot be written."""
        name = self.submit(job)
        try:
            word, rest = self._console.next_message(timeouts)
            if (word, rest) != ("done", name):
                raise GuestDied(f"it said {word} {rest} instead of done {name}")
            return self._answer(name, captures)
        finally:
            for path in self.shared.glob(f"{name}.*"):
                path.unlink(missing_ok=True)

    def submit(self, job: Mapping[str, Any]) -> str:
        """Gives it a job, and starts it where this is its only one; the name of the job's files in :attr:`shared`."""
        self.served += 1
        name = f"j{self.served}"
        (self.shared / f"{name}.job").write_text(json.dumps(job, separators=(",", ":")), "utf-8")
        if self._process is None:
            self._begin(only=name)
        else:
            self.tell(name)
        return name

    def tell(self, line: str = "") -> None:
        """Writes a line into its FIFO: the name of a job, or what a job waits for."""
        os.write(self._jobs, f"{line}\n".encode())

    @property
    def console(self) -> Console:
        """The console of a guest that has started."""
        return self._console

    def activity(self) -> Activity:
        """What it and its processes do."""
        return activity(self._process.pid) if self._process else Activity(0, wants_cpu=False)

    def end_busiest(self, seconds: float) -> bool:
        """Ends its own process that computes most, by SIGILL, which User-Mode Linux hands on; False where none computes."""
        number = busiest(self._process.pid, seconds) if self._process else None
        if number is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGILL)
        return True

    def _answer(self, name: str, captures: Mapping[Place, Path]) -> GuestAnswer:
        """Reads the files that the guest wrote for the job `name`."""
        try:
            summary = json.loads((self.shared / f"{name}.json").read_bytes())
            if not {"error", "probe"} & set(summary) and not {"flows", "duration_ns"} <= set(summary):
                raise GuestDied("it answered without a result")
            tables = {table: self._table(description) for table, description in summary.get("tables", {}).items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as e:
            raise GuestDied(f"it answered with garbage ({type(e).__name__}: {e})") from None
        for place, file in captures.items() if "error" not in summary else ():
            try:
                shutil.copyfile(self.shared / f"{name}.{place}.pcap", file)
            except OSError as e:
                raise EngineError(f"pcap: cannot write {file}: {e.strerror}; choose another file") from None
        return GuestAnswer(summary, tables)

    def _table(self, description: Mapping[str, Any]) -> Columns:
        """The columns of a table's file, which holds them one after the other."""
        file, rows = Path(description["file"]).name, description["rows"]
        data, offset, columns = memoryview((self.shared / file).read_bytes()), 0, {}
        for name, kind in description["columns"]:
            dtype, width = WIDTHS[kind]
            columns[name] = (dtype, data[offset : offset + rows * width])
            offset += rows * width
        if offset != len(data):
            raise ValueError(f"{description['file']} has {len(data)} bytes, not {offset}")
        return columns

    def last_output(self) -> str:
        """The last lines of its console and its log, for a diagnosis."""
        if self._process is None:
            return ""
        errors = ""
        with contextlib.suppress(OSError):
            errors = (self._directory / "stderr").read_text("utf-8", "replace")[-20_000:]
        return "\n".join([*self._console.kernel_lines(), errors]).strip()

    def kill(self) -> None:
        """Ends its process group; a caller of :meth:`run` gets :class:`GuestDied` and closes it. From any thread."""
        with self._lock:
            if self._open and self._process:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Ends it and removes its directory. A second caller waits until the first is done."""
        self.kill()
        with self._lock:
            if not self._open:
                return
            self._open = False
            Guest.alive.discard(self)
            shutil.rmtree(self._directory, ignore_errors=True)  # while the janitor is still there, in case this process ends meanwhile
            with contextlib.suppress(OSError):  # before waiting for the process, whose number may then be given to another
                self._write_to_janitor("\n")
            self._janitor.communicate()
            if self._process:
                self._process.wait()
                assert self._process.stdout is not None
                self._process.stdout.close()
            os.close(self._jobs)
            shutil.rmtree(self._directory, ignore_errors=True)

    def abandon(self) -> None:
        """In a forked child: closes the child's copies of the descriptors; the guest belongs to the parent."""
        self._open = False
        os.close(self._jobs)
        for process in (self._janitor, self._process):
            if process:
                process.returncode = 0
                for pipe in (process.stdin, process.stdout):
                    if pipe:
                        pipe.close()


def _start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """A process in a session of its own, so that the terminal's signals do not reach it."""
    defaults = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, start_new_session=True, **{**defaults, **options})
