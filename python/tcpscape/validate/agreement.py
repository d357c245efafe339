"""How far two sides are apart in what the groups of a condition get and in what probes measure; and one side from itself.

A group's error is |ln| of the ratio of its median goodputs. A probe's is |A/B − 1| of the median over the runs of its 50th percentile,
and of its 95th. *By itself* a side is judged by halves: its first runs against its last ones, as two perfect models with half as many
runs would be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpscape.validate.sides import SideRuns

TINY_MBPS = 0.005
"""Below this a ratio is meaningless: one chunk in ten seconds."""


@dataclass(frozen=True)
class Agreement:
    """A comparison of the groups and probes of two sets of runs."""

    groups: tuple[float, ...]
    """ln ratio of each group's median goodput; empty where it is unknown."""
    latencies: tuple[float, ...]
    """A/B − 1 of each probe's median and 95th percentile, two numbers a probe; NaN where neither side knows it, ±1 where one of them does."""

    @classmethod
    def of(cls, a: SideRuns, b: SideRuns, groups: int) -> Agreement:
        """Of two sides with so many groups; a condition with a single group has no groups to compare."""
        return cls(_groups(a, b, groups) if groups > 1 else (), _latencies(a, b))

    @classmethod
    def itself(cls, runs: SideRuns, groups: int) -> Agreement:
        """Of the first half of a side's runs and its last half; empty for a single run."""
        half = len(runs) // 2
        return cls.of(SideRuns(runs.trials[:half]), SideRuns(runs.trials[-half:]), groups) if half else cls((), ())


def _groups(a: SideRuns, b: SideRuns, groups: int) -> tuple[float, ...]:
    sides = [(a.part(i), b.part(i)) for i in range(groups)]
    return tuple(_ln(x) - _ln(y) for x, y in sides) if all(x and y for x, y in sides) else ()


def _ln(goodputs: Sequence[float]) -> float:
    return math.log(max(float(np.median(goodputs)), TINY_MBPS))


def _latencies(a: SideRuns, b: SideRuns) -> tuple[float, ...]:
    return tuple(_apart(x, y) for x, y in zip(probe_medians(a), probe_medians(b), strict=False))


def _apart(a: float, b: float) -> float:
    """A/B − 1; a delay that only one side measured is as far apart as can be."""
    if math.isnan(a) and math.isnan(b):
        return math.nan
    if math.isnan(a) or math.isnan(b):
        return -1.0 if math.isnan(a) else 1.0
    return a / b - 1 if b else math.nan


def probe_medians(runs: SideRuns) -> list[float]:
    """Median over the runs of each probe's 50th and 95th percentile, ms, two numbers a probe; NaN where nothing arrived in most runs."""
    if not runs.trials or len({len(t.delays_ms) for t in runs.trials}) != 1:
        return []
    table = np.array([t.delays_ms for t in runs.trials], dtype=float)
    return [float(np.median(column)) if not np.isnan(column).any() else _of_known(column) for column in table.T]


def _of_known(column: NDArray[np.float64]) -> float:
    """The median where at least half of the runs know the number."""
    known = column[~np.isnan(column)]
    return float(np.median(known)) if 2 * len(known) >= len(column) else math.nan


def right_winner(a: SideRuns, b: SideRuns, counts: Sequence[int]) -> bool | None:
    """Whether the same group gets most per flow, by A's medians; None where B's runs do not agree about it, or it is unknown."""
    if len(counts) < 2 or len(b) < 2 or any(len(t.parts) != len(counts) for t in (*a.trials, *b.trials)):
        return None
    best = {_largest(t.parts, counts) for t in b.trials}
    medians = [float(np.median(a.part(i))) for i in range(len(counts))]
    return _largest(medians, counts) in best if len(best) == 1 else None


def _largest(goodputs: Sequence[float], counts: Sequence[int]) -> int:
    return max(range(len(counts)), key=lambda i: goodputs[i] / counts[i])
