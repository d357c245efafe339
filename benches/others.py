"""What else the machine does while something is measured: its load, and the part of its CPU time that other processes take."""

from __future__ import annotations

import os
import pathlib
import time

TICK = os.sysconf("SC_CLK_TCK")
PROC = pathlib.Path("/proc")


class Others:
    """`with Others() as others: …`, and then `others.line()`."""

    def __enter__(self) -> Others:
        """Begins to count."""
        self._began, self._busy, self._ours = time.monotonic(), busy(), family()
        self.load_before = os.getloadavg()[0]
        return self

    def __exit__(self, *raised: object) -> None:
        """Ends: what our processes that ended meanwhile took is in their parents' account."""
        seconds = time.monotonic() - self._began
        ours = sum(ticks - self._ours.get(pid, 0) for pid, ticks in family().items())
        self.share = min(1.0, max(0.0, (busy() - self._busy - ours) / TICK / seconds / (os.cpu_count() or 1)))
        self.load_after = os.getloadavg()[0]

    def values(self) -> dict[str, float]:
        """Load averages of a minute before and after, and the share of all CPU time that others took."""
        return {"load_before": self.load_before, "load_after": self.load_after, "others": self.share}


def busy() -> int:
    """Ticks in which any CPU did something since the start of the machine."""
    user, nice, system, _, _, irq, soft, stolen = (int(x) for x in (PROC / "stat").read_text().split("\n", 1)[0].split()[1:9])
    return user + nice + system + irq + soft + stolen


def family() -> dict[int, int]:
    """Ticks of this process and of all that it started, with what those that ended had taken."""
    parents, ticks = {}, {}
    for place in PROC.iterdir():
        if not place.name.isdigit():
            continue
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(place.name)], ticks[int(place.name)] = int(fields[1]), sum(int(x) for x in fields[11:15])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return {pid: ticks[pid] for pid in ours}
