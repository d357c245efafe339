"""A guest's console: messages to the host between the kernel's own lines, with a timeout for silence.

Virtual time stops now and then: the guest then neither writes nor uses any CPU, which distinguishes it from a busy one.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

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

    def next_message(self, timeouts: Timeouts) -> tuple[str, str]:
        """The guest's next message: its first word and the rest.

        :raises GuestDied: the guest ended, or a timeout expired.
        """
        start = last_active = time.monotonic()
        ticks = cpu_ticks(self._process.pid)
        while not self._messages:
            if self._poll.poll(POLL_S * 1000):
                self._read()
                last_active = time.monotonic()
            else:
                if has_ended(self._process.pid):
                    raise GuestDied("it ended without a word")
                if (now := cpu_ticks(self._process.pid)) != ticks:
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


def cpu_ticks(pid: int) -> int:
    """CPU time that a process and its children (the guest's own processes) used, clock ticks; -1 where it has ended."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return sum(_ticks(process) for process in (str(pid), *children))


def _ticks(pid: str) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return -1


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
