"""The types of a cliff search: the axis along which a path gets worse, its levels, and the cliff that a search returns.

The values are plain, for tables and figures; nothing here runs a trial. Which level belongs to the chaos zone, where single runs of one condition
cannot be trusted, is decided in :attr:`Level.chaotic` (docs/models/methods/chaos.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

import numpy as np

from tcpscape import stats
from tcpscape.errors import refuse
from tcpscape.stats import Estimate
from tcpscape.text.numbers import number
from tcpscape.text.table import ShownAsTable

HALF = 0.5
"""Retention at the edge, as in the published studies."""
DISAGREE = 0.1
"""A level where at least this share of the runs is on the other side of the threshold belongs to the chaos zone, …"""
STEADY_CV = 0.05
"""… unless the runs vary by no more than this: a mean near the threshold has runs on both sides of it, however alike they are."""
CHAOTIC_CV = 0.2
"""So does a level whose coefficient of variation exceeds this (published: 1–5 % before the cliff, 14–66 % at it, 3–19 % past it) and one and
a half times that without the impairment, …"""
COLLAPSED = 0.25
"""… if its retention exceeds this; below, the path has collapsed, however much the rest varies."""
FEWEST = 5
"""Fewest runs to call a level chaotic: of the four of a glance, a single run on the other side is a quarter."""
WALK = (0.02, 0.05, 0.08, 0.12, 0.16, 0.2, 0.28, 0.4, 0.7, 1.0)
"""Levels of the first walk along a linear axis, as shares of its length: denser where the published cliffs are (jitter / RTT)."""
LOG_WALK = 10
"""Number of levels of the first walk along a logarithmic axis."""
JITTER_RESOLUTION = 0.01
"""Step of jitter / RTT: the edge is searched to ± 1 % of the RTT."""
LOSS_FROM, LOSS_TO, LOSS_RESOLUTION = 1e-4, 0.4, 0.05
"""Loss axis: from one packet in ten thousand (the published studies begin at one in a thousand), in steps of 5 % of the level."""


SCALES = {"ns": (1e-6, "ms"), "1": (100.0, "%")}
"""Unit of an axis → the factor to the unit in which its levels are printed, and that one."""


@dataclass(frozen=True, slots=True)
class LevelAxis:
    """An axis along which a path gets worse, from `gentle` to `harsh`, and the lattice of levels on it.

    `harsh` may be the smaller number (a rate that falls). On a logarithmic axis both ends are above 0.
    """

    name: str
    unit: str
    gentle: float
    harsh: float
    resolution: float
    """Step of the lattice, in the axis' unit, or as a fraction of the level where `log`. The edge is searched to ± one step."""
    origin: float | None = 0.0
    """The level without the impairment; None where every level has a baseline of its own."""
    log: bool = False

    def __post_init__(self) -> None:
        if self.gentle == self.harsh or (self.log and min(self.gentle, self.harsh) <= 0):
            refuse("axis", f"{self.name} from {self.gentle:g} to {self.harsh:g}", "write two different ends, above 0 where the axis is logarithmic")
        if not self.resolution > 0:
            refuse("resolution", f"{self.resolution:g} is no step", "write for example 0.01")

    def level(self, step: float) -> float:
        """The level at a step of the lattice; `gentle` is step 0."""
        sign = 1 if self.harsh > self.gentle else -1
        if self.log:
            return float(self.gentle * (1 + self.resolution) ** (sign * step))
        return self.gentle + sign * step * self.resolution

    def text(self, level: float) -> str:
        """A level as people write it: `8ms` of jitter, `0.1%` of loss; ∞ or 0 beyond the ends."""
        if math.isinf(level):
            return "∞" if level > 0 else "0"
        factor, unit = SCALES.get(self.unit, (1.0, f" {self.unit}"))
        return f"{number(level * factor)}{unit}"

    def step(self, level: float) -> float:
        """The step of a level, not rounded; infinite for a level of 0 on a logarithmic axis."""
        sign = 1 if self.harsh > self.gentle else -1
        if self.log and level <= 0:
            return -sign * math.inf
        if self.log:
            return sign * math.log(level / self.gentle) / math.log1p(self.resolution)
        return sign * (level - self.gentle) / self.resolution

    @property
    def first(self) -> int:
        """The gentlest step that is measured: 1 where step 0 is the origin."""
        return 1 if self.gentle == self.origin else 0

    @property
    def last(self) -> int:
        """The harshest step."""
        return max(self.first, round(self.step(self.harsh)))

    def walk(self) -> Iterator[int]:
        """Steps of the first walk, the harshest first."""
        shares = [i / (LOG_WALK - 1) for i in range(LOG_WALK)] if self.log else list(WALK)
        yield from sorted({max(self.first, round(share * self.last)) for share in shares}, reverse=True)


def jitter_axis(rtt_ns: int) -> LevelAxis:
    """Jitter from none to the RTT, ns, in steps of 1 % of the RTT."""
    return LevelAxis("jitter", "ns", 0.0, float(rtt_ns), JITTER_RESOLUTION * rtt_ns)


def loss_axis() -> LevelAxis:
    """Random loss, a fraction, in steps of 5 % of the level."""
    return LevelAxis("loss", "1", LOSS_FROM, LOSS_TO, LOSS_RESOLUTION, log=True)


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the axis and what its runs show."""

    at: float
    """In the axis' unit."""
    retention: Estimate
    """Mean / mean without the impairment, paired where both have the same seeds."""
    cv: Estimate
    below: float
    """Share of the runs whose retention is below the threshold."""
    calm_cv: float = 0.0
    """Coefficient of variation without the impairment, fraction."""
    threshold: float = HALF
    first_seed: int = 0
    """Seed of its first run; the others follow."""

    @property
    def fell(self) -> bool:
        """Whether the mean is below the threshold."""
        return not self.retention.value >= self.threshold

    @property
    def chaotic(self) -> bool:
        """Whether single runs of this level cannot be trusted: some are on each side of the edge, or they vary strongly."""
        return is_chaotic(self.retention.value, self.cv.value, self.calm_cv, self.below)


def is_chaotic(retention: float, cv: float, calm_cv: float, below: float) -> bool:
    """Whether a level with these runs belongs to the chaos zone; the arguments are as the fields of :class:`Level`."""
    disagree = DISAGREE <= below <= 1 - DISAGREE and cv > STEADY_CV
    return disagree or (cv > max(CHAOTIC_CV, 1.5 * calm_cv) and retention > COLLAPSED)


def level(at: float, values: Sequence[float], base: Sequence[float], threshold: float = HALF, *, first_seed: int = 0, paired: bool = True) -> Level:
    """The level `at` from its runs and the baseline's.

    They are pairs where both ran under the same seeds from the first on (`paired`); where one of the two has more runs than the other, they count
    as independent.
    """
    calm = sum(base) / len(base)
    retention = stats.ratio(values, base) if paired and len(values) == len(base) else stats.mean_ratio(values, base)
    below = sum(v < threshold * calm for v in values) / len(values)
    return Level(at, retention, stats.cv(values), below, stats.cv(base).value, threshold, first_seed)


@dataclass(frozen=True, slots=True, repr=False)
class Cliff(ShownAsTable):
    """The cliff of one congestion control along one axis of one path: what a search returns."""

    axis: LevelAxis
    baseline: Estimate
    """The metric without the impairment, in its unit; that of the gentlest level where every level has a baseline of its own."""
    levels: tuple[Level, ...]
    """Sorted from gentle to harsh."""
    edge: Estimate | None = None
    """Where retention passes the threshold, in the axis' unit, with its interval and the runs behind it. An end is infinite where the fall
    may lie beyond the axis. None where no level fell up to the harsh end."""
    runs: int = 0
    """Number of runs of the whole search."""
    here: Level | None = None
    """The level at which the path itself is."""

    @property
    def bracket(self) -> tuple[float, float] | None:
        """The last level before the edge and the first after it; None where no level fell."""
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
        """The unbroken range of chaotic levels that touches the edge, and the edge; extended to the path's own level if that is chaotic.

        None where no level beside the edge is chaotic, nor the path's own.
        """
        measured = [x for x in self.levels if x.retention.n >= FEWEST]
        known = {x.at: x for x in (*measured, *([self.here] if self.here else []))}
        order = sorted(known, key=self.axis.step)
        edge = self.axis.step(self.edge.value) if self.edge else -math.inf
        below = takewhile(lambda x: x.chaotic, (known[a] for a in reversed(order) if self.axis.step(a) <= edge))
        above = takewhile(lambda x: x.chaotic, (known[a] for a in order if self.axis.step(a) > edge))
        chaotic = [x.at for x in (*below, *above)]
        if self.here and self.here.chaotic:
            chaotic.append(self.here.at)
        if chaotic and self.edge and math.isfinite(self.edge.value):
            chaotic.append(self.edge.value)
        return (min(chaotic), max(chaotic)) if chaotic else None


Side = Literal["stable", "chaos zone", "collapsed"]
DIP_LEAST = 20
"""Fewest runs for the dip test; with fewer it detects nothing."""


def side(here: Level) -> Side:
    """The side on which the runs at this level stand."""
    if here.chaotic:
        return "chaos zone"
    return "collapsed" if here.fell else "stable"


def one_mode(runs: Sequence[float]) -> float | None:
    """p value of Hartigan's dip test (1985) that the logarithms of the runs have one mode; None where it does not apply."""
    import diptest

    x = np.asarray(runs, dtype=float)
    if len(x) < DIP_LEAST or not (x > 0).all() or np.ptp(x) == 0:
        return None
    return float(diptest.diptest(np.log(x))[1])
