"""What a search for a cliff hands back: the levels that were run and the edge, plain values for tables and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from tcpscape import stats
from tcpscape.findings.cliff.axis import Axis
from tcpscape.stats import Estimate

HALF = 0.5
"""Retention that counts as over the edge, as in the published studies."""
DISAGREE = 0.1
"""A level where at least this share of the runs is on the other side of the threshold belongs to the chaos zone."""
WILD_CV = 0.2
"""So does one whose runs vary more than this (published: 1–5 % before the cliff, 14–66 % at it, 3–19 % past it), and half as much again
as without the impairment, …"""
ALIVE = 0.25
"""… while it still keeps this much; below it has collapsed, however its remains vary."""
FEWEST = 5
"""Runs of a level from which it counts as chaotic or not: of a glance's four, one run off the side of the others is a quarter."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the axis."""

    at: float
    """In the axis' unit."""
    retention: Estimate
    """Mean / mean without the impairment, paired where both have the same seeds."""
    cv: Estimate
    below: float
    """Share of the runs that keep less than the threshold."""
    calm_cv: float = 0.0
    """Coefficient of variation without the impairment, fraction."""
    threshold: float = HALF

    @property
    def fell(self) -> bool:
        """Whether the mean is below the threshold."""
        return not self.retention.value >= self.threshold

    @property
    def chaotic(self) -> bool:
        """Whether runs of this path cannot be trusted one by one: on both sides of the edge, or varying wildly."""
        return wild(self.retention.value, self.cv.value, self.calm_cv, self.below)


def wild(retention: float, cv: float, calm_cv: float, below: float) -> bool:
    """Whether such runs belong to the chaos zone."""
    return DISAGREE <= below <= 1 - DISAGREE or (cv > max(WILD_CV, 1.5 * calm_cv) and retention > ALIVE)


def level(at: float, values: Sequence[float], base: Sequence[float], threshold: float = HALF) -> Level:
    """A level from its runs and those without the impairment, under the same seeds from the first on.

    Where one of the two has more runs, they count as independent.
    """
    calm = sum(base) / len(base)
    kept = stats.ratio(values, base) if len(values) == len(base) else stats.mean_ratio(values, base)
    below = sum(v < threshold * calm for v in values) / len(values)
    return Level(at, kept, stats.cv(values), below, stats.cv(base).value, threshold)


@dataclass(frozen=True, slots=True)
class Cliff:
    """The edge of one congestion control along one axis of one path."""

    axis: Axis
    baseline: Estimate
    """Without the impairment, in the metric's unit; at the gentlest level measured where every level has a base of its own."""
    levels: tuple[Level, ...]
    """Sorted from gentle to harsh."""
    edge: Estimate | None = None
    """Where retention passes the threshold, in the axis' unit, its interval and the runs it stands on. An end is infinite where the fall may
    lie beyond the axis. None where nothing fell up to its harsh end."""
    runs: int = 0
    """Runs of the search in all."""
    here: Level | None = None
    """The path's own level."""

    @property
    def bracket(self) -> tuple[float, float] | None:
        """Last level before the edge and first after it; None where nothing fell."""
        if self.edge is None:
            return None
        steps = [self.axis.step(x.at) for x in self.levels]
        edge = self.axis.step(self.edge.value)
        before = [x.at for x, s in zip(self.levels, steps, strict=True) if s < edge]
        after = [x.at for x, s in zip(self.levels, steps, strict=True) if s >= edge]
        origin = self.axis.gentle if self.axis.origin is None else self.axis.origin
        return before[-1] if before else origin, after[0] if after else self.axis.harsh

    @property
    def zone(self) -> tuple[float, float] | None:
        """The unbroken run of chaotic levels around the edge, and the path's own level if that is one; None where there is none."""
        measured = [x for x in self.levels if x.retention.n >= FEWEST]
        known = {x.at: x for x in (*measured, *([self.here] if self.here else []))}
        order = sorted(known, key=self.axis.step)
        edge = self.axis.step(self.edge.value) if self.edge else -math.inf
        below = takewhile(lambda x: x.chaotic, (known[a] for a in reversed(order) if self.axis.step(a) <= edge))
        above = takewhile(lambda x: x.chaotic, (known[a] for a in order if self.axis.step(a) > edge))
        found = [x.at for x in (*below, *above)]
        if self.here and self.here.chaotic:
            found.append(self.here.at)
        return (min(found), max(found)) if found else None
