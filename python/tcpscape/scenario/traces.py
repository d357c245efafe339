"""mahimahi's packet-delivery traces: each line is a time, ms, at which the link can deliver one packet; the trace repeats at its end.

Source: Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015, §4.2, and the manual of mm-link(1). An opportunity is
1504 bytes there (an IP packet of 1500 and mahimahi's own 4); here it is what such a packet is to tc, 1514 bytes of Ethernet frame.

How it differs. The link is a token bucket whose rate follows the trace, so that a queue that is never empty sends each packet at its
opportunity or at most 1 ms before (rates are whole bytes a second: after a fade of a second another 0.7 ms). A bucket keeps one
unused opportunity; mahimahi keeps none. A packet smaller than the opportunity leaves the rest to the next one, as in mahimahi.
What an opportunity at 0 ms carries is delivered at the end of the trace.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from tcpscape import units
from tcpscape.errors import refuse, shown
from tcpscape.reading import files as reading
from tcpscape.reading.files import Kind

FRAME = 1514
"""Bytes that an opportunity carries: an IP packet of 1500 bytes and Ethernet's header of 14."""
MS = 1_000_000
"""ns."""
MIN_RATE = 8
"""bit/s: the slowest rate of the engine's token bucket."""
MAX_LINES = 2_000_000
"""20 minutes at 20 Mbit/s; each may become a change of rate, which takes some 200 bytes."""
TRACE = Kind("a trace", "name a packet-delivery trace of mahimahi's", most=8 * MAX_LINES)
_EXAMPLE = "write one time in ms on each line, never less than the line before"


@dataclass(frozen=True, slots=True)
class Opportunities:
    """A trace. Two traces are equal if their contents are, whatever their files."""

    file: str = field(compare=False)
    """Absolute path."""
    ms: tuple[int, ...] = field(repr=False, compare=False)
    """Times of delivery opportunities, ms, in order."""
    digest: str
    """Digest of the times, which enters a scenario's content address."""

    @property
    def period(self) -> int:
        """ns after which the trace begins again: the time of its last opportunity."""
        return self.ms[-1] * MS

    @property
    def mean_rate(self) -> int:
        """bit/s over the whole trace."""
        return max(MIN_RATE, round(len(self.ms) * FRAME * 8 * units.NS_PER_S / self.period))

    def rates(self) -> list[tuple[int, int]]:
        """Times of rate changes, ns, and the rates from then on, bit/s: the tokens for a full packet are there at its opportunity."""
        points: list[tuple[int, int]] = []
        demand = supply = 0.0  # bytes: what is rounded up for one interval is taken off the next
        for begin, until, packets in self._intervals():
            demand += packets * FRAME
            rate = max(MIN_RATE, math.ceil(round((demand - supply) * 1000 / (until - begin), 3)) * 8)
            supply += rate / 8 * (until - begin) / 1000
            if not points or points[-1][1] != rate:
                points.append((begin * MS, rate))
        return points

    def means(self, width: int) -> list[tuple[int, int]]:
        """The mean rate of each interval of `width` ns: times of changes, ns, and rates, bit/s; 0 where nothing is delivered.

        A packet may leave up to `width` before or after its opportunity; after each outage one packet leaves without an opportunity, since the
        bucket fills meanwhile. The last interval ends with the trace.
        """
        edges = [*range(0, self.period, width), self.period]
        points: list[tuple[int, int]] = []
        for begin, end in pairwise(edges):
            n = bisect_right(self.ms, end // MS) - (bisect_right(self.ms, begin // MS) if begin else 0)
            rate = math.ceil(n * FRAME * units.NS_PER_S / (end - begin)) * 8
            if not points or points[-1][1] != rate:
                points.append((begin, rate))
        return points

    def _intervals(self) -> Iterator[tuple[int, int, int]]:
        """Begin and end, ms, and packets of each interval: of several opportunities at one time, all but one are in the ms before it."""
        before, early = 0, self.ms.count(0)
        for at, same in groupby(self.ms):
            n = sum(1 for _ in same) + (early if at == self.ms[-1] else 0)
            if not at:
                continue
            if at - before == 1 or n == 1:
                yield before, at, n
            else:
                yield before, at - 1, 1
                yield at - 1, at, n - 1
            before = at


def read(file: str, field: str = "trace") -> Opportunities:
    """The trace in a file. :raises ScenarioError: names the line that is wrong."""
    ms = tuple(_times(reading.text(file, TRACE, field).splitlines(), file, field))
    if not ms:
        refuse(field, f"{file} has no delivery opportunity", _EXAMPLE)
    if ms[-1] == 0:
        refuse(field, f"{file} lasts no time: its last line is 0", "end it with the time at which it begins again")
    return Opportunities(str(Path(file).resolve()), ms, hashlib.sha256(",".join(map(str, ms)).encode()).hexdigest()[:24])


def _times(lines: Sequence[str], file: str, field: str) -> Iterator[int]:
    before = 0
    if len(lines) > MAX_LINES:
        refuse(field, f"{file} has {len(lines)} lines", f"cut it to {MAX_LINES}")
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not (text.isascii() and text.isdigit()) or len(text) > len(str(units.MAX_TIME_NS // MS)):
            refuse(field, f"{file} line {number}: {shown(text)} is not a time in ms", _EXAMPLE)
        if (time := int(text)) < before:
            refuse(field, f"{file} line {number}: {time} is before the {before} of the line above", _EXAMPLE)
        if time * MS > units.MAX_TIME_NS:
            refuse(field, f"{file} line {number}: {time} ms is more than a day", "cut the trace")
        yield time
        before = time


def from_rates(points: Iterable[tuple[float, float]], end: float) -> list[int]:
    """The trace of a changing rate, as ms: `points` are times (s) with the rate (bit/s) from then on, until `end` (s).

    A packet's opportunity is the first millisecond at which the rate has carried it. A partial packet at the end is dropped.
    """
    steps = sorted(points)
    if not steps or steps[0][0] != 0 or end <= steps[-1][0] or any(rate < 0 for _, rate in steps):
        refuse("trace", "the rates do not begin at 0 s, go on past `end`, or are negative", "write for example [(0, 10e6), (1, 5e6)] and end 2")
    count = sum(rate * (until - begin) for (begin, rate), until in zip(steps, [*(t for t, _ in steps[1:]), end], strict=True)) / (FRAME * 8)
    if not count < MAX_LINES:
        refuse("trace", f"it would have {count:.3g} lines", f"take a shorter trial or a lower rate: at most {MAX_LINES:,}")
    ms: list[int] = []
    carried = 0.0  # bits not yet in an opportunity
    for (begin, rate), until in zip(steps, [*(t for t, _ in steps[1:]), end], strict=True):
        packets = (carried + rate * (until - begin)) / (FRAME * 8)
        ms += [math.ceil(round((begin + (k * FRAME * 8 - carried) / rate) * 1e3, 6)) for k in range(1, math.floor(packets + 1e-9) + 1)]
        carried = max(0.0, (packets - math.floor(packets + 1e-9)) * FRAME * 8)
    return ms


def dump(ms: Sequence[int]) -> str:
    """The trace as a file's text."""
    return "".join(f"{t}\n" for t in ms)
