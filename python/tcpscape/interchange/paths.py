"""Measurements whose path is not known, parted by what can be seen of it: the least round-trip time of each.

A file of another tool names no path. Two files whose least RTTs differ by more than a fifth were measured on two paths, and are never put together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from tcpscape.interchange.sources import ResultSource, SourceTrial, TrialGroup
from tcpscape.text.numbers import number

AXIS = "least RTT"
"""Axis that parts the measurements of a condition."""
FACTOR, LEAST_GAP_MS = 1.2, 1.0
"""Two paths differ by more than this factor, and by more than so many ms, in their least RTT: that of one path scatters less from file to file."""


def part(sources: Sequence[ResultSource]) -> list[ResultSource]:
    """The sources with a group for each path, by the same paths in all of them; unchanged where each condition of each source has one path."""
    rtts = sorted({rtt for source in sources for item in source.items if not math.isnan(rtt := least_rtt(item))})
    bounds = [math.sqrt(a * b) for a, b in pairwise(rtts) if differ(a, b)]
    if not any(len({_path(item, bounds) for item in group.items}) > 1 for source in sources for group in source.groups):
        return list(sources)
    names = {place: f"{number(of[len(of) // 2])}ms" for place in range(len(bounds) + 1) if (of := [r for r in rtts if _place(r, bounds) == place])}
    return [replace(source, groups=tuple(new for group in source.groups for new in _parts(group, bounds, names))) for source in sources]


def least_rtt(item: SourceTrial) -> float:
    """The least RTT of any flow of a trial whose path is not known, ms; NaN where it is known, or no RTT is."""
    if item.shared is not None:
        return math.nan
    return min((f.rtt_ms.min for f in item.trial.flows if f.rtt_ms.min is not None), default=math.nan)


def differ(a: float, b: float) -> bool:
    """Whether two least RTTs, ms, are those of two paths; not where one is not known."""
    return max(a, b) > FACTOR * min(a, b) and abs(a - b) > LEAST_GAP_MS


def _parts(group: TrialGroup, bounds: Sequence[float], names: dict[int, str]) -> list[TrialGroup]:
    by_path: dict[int, list[SourceTrial]] = {}
    for item in group.items:
        by_path.setdefault(_path(item, bounds), []).append(item)
    return [
        replace(group, items=tuple(items), at={**group.at, AXIS: names[place]} if place in names else group.at)
        for place, items in sorted(by_path.items())
    ]  # fmt: skip


def _path(item: SourceTrial, bounds: Sequence[float]) -> int:
    """The number of a trial's path; -1 where its RTT is not known."""
    rtt = least_rtt(item)
    return -1 if math.isnan(rtt) else _place(rtt, bounds)


def _place(rtt: float, bounds: Sequence[float]) -> int:
    return sum(rtt > bound for bound in bounds)
