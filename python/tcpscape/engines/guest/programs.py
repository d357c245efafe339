"""A program of this machine in a guest, in virtual time: a job in, events and a result out, as :class:`~tcpscape.engines.host.HostProcess` has them.

What the program and those that it starts write comes as a log (crates/guest, `programs`): files of frames, each a kind, a length and as many bytes. A
file that has been read is removed, which a guest that is two files ahead waits for; its virtual time stands still meanwhile.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tcpscape.controls import usercode
from tcpscape.engines.guest.pool import GuestDeath
from tcpscape.engines.guest.process import Activity, Boot, Guest, GuestDied
from tcpscape.engines.host.process import FINAL, PROGRAM
from tcpscape.errors import EngineError, refuse, shown
from tcpscape.units import NS_PER_S

MESSAGE, OUTPUT, ERROR, TIME = range(4)
"""Kinds of frames."""
HEADER = 5
"""Bytes of a frame's kind and length."""
LOOK_S = 0.02
"""s between two looks into the log."""
STANDSTILL_S = 60.0
"""s for which a guest may compute, or do nothing, while nothing is written; it tells the time four times a virtual second."""
MOST_STILL_S = 180.0
"""s for which it may while virtual time stands still, whatever programs write."""
WATCH_S = 0.2
"""s between two looks at what a guest does."""
MOST_WATCHED_S = 1.0
"""Most that counts between two looks, s: this process may have been held up itself, and have left unread what the guest wrote."""
TICKS = os.sysconf("SC_CLK_TCK")
"""Clock ticks in a second of CPU time."""
BUSY_S = 0.2
"""s in which a guest that computes uses some CPU time: many clock ticks."""
ENDED = 128 + signal.SIGILL
"""Exit status of a program that was ended because it computed without end."""
MOST_PROCESSES = 1000
"""Processes and threads of a guest: each process is one of this machine's as well."""
WITHOUT_RDRAND = {"OPENSSL_ia32cap": "~0x4000000000000000:~0x40000"}
"""Tells OpenSSL, BoringSSL and AWS-LC that this machine has neither RDRAND nor RDSEED, whose numbers no seed decides."""
SHARED = "/run/tcpscape"
"""Where a program sees the directory that the guest shares with this process."""


class Standstill:
    """How long something in a guest has not moved, by what the guest does and not by the clock, so that a busy machine changes nothing.

    A guest that computes is judged by its CPU time, one that does nothing by the time in which none of its processes wants a CPU. One that wants a
    CPU and gets none is not judged, however long that takes.
    """

    def __init__(self, guest: Guest, most_s: float) -> None:
        self._guest, self._most_s = guest, most_s
        self.moved()

    def moved(self) -> None:
        """It moves now."""
        self._seen: tuple[float, Activity] | None = None
        self._computed_s = self._idle_s = 0.0

    def is_over(self) -> bool:
        """Whether it has stood still for longer than it may."""
        now = time.monotonic()
        if self._seen is None or now - self._seen[0] >= min(WATCH_S, self._most_s / 10):
            activity = self._guest.activity()
            if self._seen is not None:
                self._count(now - self._seen[0], (activity.ticks - self._seen[1].ticks) / TICKS, wants_cpu=activity.wants_cpu)
            self._seen = now, activity
        return max(self._computed_s, self._idle_s) >= self._most_s

    def _count(self, passed_s: float, used_s: float, *, wants_cpu: bool) -> None:
        """Counts what passed between two looks."""
        self._computed_s += min(max(used_s, 0.0), MOST_WATCHED_S)
        self._idle_s = 0.0 if used_s > 0 or wants_cpu else self._idle_s + min(passed_s, MOST_WATCHED_S)

    @property
    def is_busy(self) -> bool:
        """Whether the guest has computed for as long as it may."""
        return self._computed_s >= self._most_s


class GuestProgram:
    """A run of the live engine's program in a guest of its own; one thread at a time. Use it as a context manager."""

    def __init__(
        self, boot: Boot, mode: str, job: Mapping[str, Any], *, seed: int, streams: tuple[int, int] = (1, 2), bind: Sequence[Path] = ()
    ) -> None:
        """Starts the guest with the program.

        :param job: the mode's job; a member `pcap` is the path of a file of this machine.
        :param seed: all random numbers of the guest follow from it.
        :param streams: descriptors to which the programs' standard output and standard error are copied.
        :param bind: directories of this machine that the programs may change; of everything else they change a copy in memory.
        :raises EngineError: the guest cannot be started.
        """
        self.seconds = 0.0
        """Virtual time since the start, s, to a second."""
        self._streams = dict(zip((OUTPUT, ERROR), streams, strict=True))
        self._messages = bytearray()
        self._pcap = job.get("pcap")
        self._mode = mode
        self._command: Sequence[str] = job.get("command", ())
        self._stood_at: float | None = None
        """Virtual time at which a program was ended that computed without end, s."""
        self._final: Mapping[str, Any] | None = None
        self._guest = Guest(boot, seed)
        self._silent, self._still = Standstill(self._guest, STANDSTILL_S), Standstill(self._guest, MOST_STILL_S)
        """Of the log, and of virtual time."""
        try:
            self._name = self._guest.submit(
                {
                    "program": str(PROGRAM),
                    "mode": mode,
                    "job": {**job, "pcap": f"{SHARED}/packets.pcapng" if self._pcap else None},
                    "directory": str(Path.cwd()),
                    "environment": WITHOUT_RDRAND | {name: value for name, value in usercode.environment.items() if value.isprintable()},
                    "bind": [str(directory) for directory in bind],
                    "most_processes": MOST_PROCESSES,
                }
            )
        except BaseException:
            self._guest.close()
            raise

    def __enter__(self) -> GuestProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self._guest.close()

    def kill(self) -> None:
        """Ends the guest; whoever reads its events gets EngineError. From any thread."""
        self._guest.kill()

    def events(self) -> Iterator[Mapping[str, Any]]:
        """The program's lines before the last, as they come; its output is copied meanwhile.

        :raises EngineError: the program refuses the job (in its words), or the guest ended before it, or its time stands still.
        """
        try:
            for kind, data in self._frames():
                if kind in (MESSAGE, TIME):
                    self._still.moved()
                if kind == MESSAGE:
                    yield from self._take(data)
                elif kind == TIME:
                    self.seconds = int.from_bytes(data, "little") / NS_PER_S
                else:
                    _write(self._streams[kind], data)
        except GuestDied as e:
            last = GuestDeath(str(e), self._guest.last_output()).last_word
            raise EngineError(f"engine: virtual: the guest died: {e}{f': {last}' if last else ''}; run it again") from None
        if self._final is None or "result" not in self._final:
            why = self._final or {}
            raise EngineError(f"engine: virtual: {why.get('error') or why.get('panic') or 'its program ended without a result; report it'}")
        if self._stood_at is not None:
            self._refuse_computing(self._final["result"])
        if self._pcap and (packets := self._guest.shared / "packets.pcapng").exists():
            shutil.copyfile(packets, self._pcap)

    def result(self) -> Any:
        """The result, after :meth:`events`."""
        assert self._final is not None
        return self._final["result"]

    def _take(self, data: bytes) -> Iterator[Mapping[str, Any]]:
        """The messages of a part of the program's lines; the last one is kept."""
        *lines, rest = (bytes(self._messages) + data).split(b"\n")
        self._messages = bytearray(rest)
        for line in lines:
            message = dict(json.loads(line))
            if any(member in message for member in FINAL):
                self._final = message
            else:
                yield message

    def _frames(self) -> Iterator[tuple[int, bytes]]:
        """The frames of the log, as they come. :raises GuestDied: the guest ended before the job was done."""
        unread = bytearray()
        for part in self._log():
            unread += part
            while len(unread) >= HEADER and len(unread) >= (whole := HEADER + int.from_bytes(unread[1:HEADER], "little")):
                yield unread[0], bytes(unread[HEADER:whole])
                del unread[:whole]

    def _log(self) -> Iterator[bytes]:
        """The bytes of the log, as they come, until the guest says that the job is done. :raises GuestDied: it ended before."""
        number = offset = 0
        done = False
        while True:
            is_complete = self._file(number + 1).exists()  # nothing more comes to a file after which there is another one
            if data := self._read(number, offset):
                yield data
                offset += len(data)
                self._silent.moved()
                self._expect_moves(self._still)
            elif is_complete:
                self._file(number).unlink()
                self._guest.tell()
                number, offset = number + 1, 0
            elif done:
                return
            else:
                done = self._wait()

    def _wait(self) -> bool:
        """Waits a moment for the guest; whether it says that the job is done."""
        self._guest.console.poll(LOOK_S)
        if message := self._guest.console.message():
            return self._is_done(message)
        self._expect_moves(self._silent)
        return False

    def _expect_moves(self, still: Standstill) -> None:
        """Ends the program that computes where something has stood still for too long, once.

        :raises EngineError: it stands still after that either, or no program computes.
        """
        if not still.is_over():
            return
        if self._stood_at is not None or not still.is_busy or not self._guest.end_busiest(BUSY_S):
            self._refuse_to_wait(is_busy=still.is_busy)
        self._stood_at = self.seconds
        self._still.moved()
        self._silent.moved()

    def _is_done(self, message: tuple[str, str]) -> bool:
        """Whether the guest says that the job is done; the guest's own error is the last message then."""
        if message != ("done", self._name):
            raise GuestDied(f"it said {' '.join(message)}")
        answer = json.loads((self._guest.shared / f"{self._name}.json").read_bytes())
        if "error" in answer:
            self._final = answer
        return True

    def _refuse_to_wait(self, *, is_busy: bool) -> NoReturn:
        """Says that virtual time stands still, and why, as far as that can be seen from outside."""
        reason = "programs compute, and none waits or reads a clock" if is_busy else "the guest does nothing"
        problem = f"virtual time stands at {self.seconds:.0f} s: {reason}"
        refuse(self._mode, problem, "run it on this machine's kernel, with --engine live, to see what it does", EngineError)

    def _refuse_computing(self, result: Mapping[str, Any]) -> NoReturn:
        """Says which program was ended because it computed without end: the result has the status of the command, and flags name servers."""
        is_command = result.get("status") == ENDED
        name = shlex.join(self._command) if is_command else "the busiest program, a server or one that the command started,"
        flags = "".join(f"; {flag}" for flag in result.get("flags", ()))
        problem = f"virtual time stood at {self._stood_at:.0f} s: {shown(name) if is_command else name}"
        problem += f" computed for {STANDSTILL_S:.0f} s or more of CPU time while virtual time stood, and was ended{flags}"
        refuse(self._mode, problem, "run it on this machine's kernel, with --engine live, to see what it does", EngineError)

    def _file(self, number: int) -> Path:
        return self._guest.shared / f"{self._name}.log{number}"

    def _read(self, number: int, offset: int) -> bytes:
        """What a file of the log has from an offset on; nothing where it is not there yet."""
        try:
            with self._file(number).open("rb") as file:
                file.seek(offset)
                return file.read()
        except FileNotFoundError:
            return b""


def _write(descriptor: int, data: bytes) -> None:
    """Writes all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
