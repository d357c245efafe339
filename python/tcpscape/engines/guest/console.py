"""A guest's console: lines of the channel among lines of the kernel, and a watch over its silence.

Virtual time stands still now and then: the guest then neither says anything nor uses any CPU, which tells it from one that is busy.
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
"""Begins what the guest has to say; everything else is the kernel's."""
KEPT = 200
"""Lines kept for a diagnosis."""
LONGEST = 1 << 16
"""Bytes without an end of line that are still a line."""
GLANCE = 1.0
"""s between looks at a silent guest."""


class Died(Exception):
    """A guest is gone, stands still, or talks nonsense: why, in a few words. It has to be closed."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a guest may be silent, s of the host's clock."""

    total: float
    """In all, however busy it is."""
    idle: float = 20.0
    """Without using any CPU."""


class Console:
    """Reads one guest's console. One thread at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._process = process
        self._fd = process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._rest = b""
        self._words: deque[tuple[str, str]] = deque()
        self.lines: deque[str] = deque(maxlen=KEPT)
        """The last lines of the kernel."""

    def word(self, patience: Patience) -> tuple[str, str]:
        """The next thing that the guest says: its first word and the rest. Raises :class:`Died`."""
        begin = busy = time.monotonic()
        used = cpu_ticks(self._process.pid)
        while not self._words:
            if self._poll.poll(GLANCE * 1000):
                self._take()
                busy = time.monotonic()
            else:
                if has_ended(self._process.pid):
                    raise Died("it ended without a word")
                if (now := cpu_ticks(self._process.pid)) != used:
                    used, busy = now, time.monotonic()
            if self._words:
                break
            if time.monotonic() - begin > patience.total:
                raise Died(f"it did not answer within {patience.total:g} s")
            if time.monotonic() - busy > patience.idle:
                raise Died(f"its virtual time stood still: nothing said and no CPU used for {patience.idle:g} s")
        return self._words.popleft()

    def _take(self) -> None:
        """Reads what there is and sorts it into words and lines."""
        data = os.read(self._fd, 1 << 16)
        if not data:
            raise Died(f"it ended{_how(self._process.pid)}")
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST:
            raise Died("it floods its console")
        for line in lines:
            before, mark, said = line.decode(errors="replace").strip().partition(MARK)
            if before:
                self.lines.append(before)
            if mark:
                word, _, rest = said.partition(" ")
                self._words.append((word, rest))

    def everything(self) -> list[str]:
        """The last lines of the kernel, the unfinished one too."""
        unfinished = self._rest.decode(errors="replace").strip()
        return [*self.lines, *([unfinished] if unfinished else [])]


def cpu_ticks(pid: int) -> int:
    """CPU time that a process and its children (the guest's own processes) used, clock ticks; -1 where it is gone."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return sum(_ticks(one) for one in (str(pid), *children))


def _ticks(pid: str) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return -1


def has_ended(pid: int) -> bool:
    """Whether a child has ended; leaves it to be waited for."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _how(pid: int) -> str:
    """How a child that closed its console ended, in words; it may take a moment."""
    for _ in range(20):
        try:
            if got := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return f" with status {got.si_status}" if got.si_code == os.CLD_EXITED else f" by signal {got.si_status}"
        except ChildProcessError:
            break
        time.sleep(0.01)
    return ""
