"""Who is better where: the ratio of two congestion controls over a grid of two axes, each cell with its interval and a verdict.

A cell is `same` where the whole interval lies within ± 5 %, `better` or `worse` where it excludes 1, and `undecided` otherwise: never
coloured by its mean alone. `fill` gives the undecided cells more runs until they are decided or have had their share. Who looks five
times is misled more often than who looks once (by simulation: at five looks of 95 %, a third of equal cells are called different), so that
the intervals of `fill` share the 5 % among its looks (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tcpscape import stats
from tcpscape.campaign.outcome import Outcome
from tcpscape.errors import refuse
from tcpscape.findings.cliff.grid import by_seed
from tcpscape.stats import Estimate
from tcpscape.stats.compare import ALIKE
from tcpscape.stats.estimate import TAIL
from tcpscape.stats.resample import student

Verdict = Literal["better", "worse", "same", "undecided"]
SAME = ALIKE
"""A ratio within 1 ± this is no difference worth a change."""
GROWTH = 2
"""An undecided cell gets this many times its runs."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The runs of one cell: the metric under both congestion controls, under the same seeds, larger is better."""

    x: float
    y: float
    above: tuple[float, ...]
    below: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RatioCell:
    """What one cell says."""

    x: float
    y: float
    ratio: Estimate
    """Mean / mean, paired."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class RatioMap:
    """The cells of a grid, row by row (y, then x, both rising)."""

    cells: tuple[RatioCell, ...]

    @property
    def xs(self) -> tuple[float, ...]:
        """Levels of the first axis."""
        return tuple(sorted({c.x for c in self.cells}))

    @property
    def ys(self) -> tuple[float, ...]:
        """Levels of the second axis."""
        return tuple(sorted({c.y for c in self.cells}))

    @property
    def undecided(self) -> tuple[RatioCell, ...]:
        """Cells about which the runs say nothing yet."""
        return tuple(c for c in self.cells if c.verdict == "undecided")

    @property
    def runs(self) -> int:
        """Runs in all, of both congestion controls."""
        return 2 * sum(c.ratio.n for c in self.cells)

    def at(self, x: float, y: float) -> RatioCell:
        """The cell there; KeyError where the grid has none."""
        for cell in self.cells:
            if (cell.x, cell.y) == (x, y):
                return cell
        raise KeyError((x, y))


def verdict(ratio: Estimate, same: float = SAME) -> Verdict:
    """What an interval of a ratio says. Without an interval (one run, nothing got through) nothing is said."""
    if not (math.isfinite(ratio.low) and math.isfinite(ratio.high)):
        return "undecided"
    if 1 - same <= ratio.low and ratio.high <= 1 + same:
        return "same"
    return "better" if ratio.low > 1 else "worse" if ratio.high < 1 else "undecided"


def ratio_map(cells: Iterable[Pair], same: float = SAME, looks: int = 1) -> RatioMap:
    """The map from the runs of its cells; of how many `looks` at growing runs this is one."""
    found = [RatioCell(c.x, c.y, r, verdict(r, same)) for c in cells for r in [_widened(stats.ratio(c.above, c.below), looks)]]
    return RatioMap(tuple(sorted(found, key=lambda c: (c.y, c.x))))


def _widened(ratio: Estimate, looks: int) -> Estimate:
    """The interval that holds the truth at all of so many looks, from that of one: wider by Student's factor, on the logarithm."""
    from scipy.stats import t

    if looks == 1 or ratio.n < 2 or not 0 < ratio.low <= ratio.value <= ratio.high < math.inf:
        return ratio
    factor = float(t.ppf(1 - TAIL / looks, ratio.n - 1)) / student(ratio.n)
    low, high = (ratio.value * (end / ratio.value) ** factor for end in (ratio.low, ratio.high))
    return replace(ratio, low=low, high=high)


def pairs(outcome: Outcome, axes: tuple[str, str], ccas: tuple[str, str], metric: str = "goodput") -> list[Pair]:
    """The cells of a campaign's outcome over two of its axes, under two congestion controls; seeds that only one of them has are left out.

    What is pooled (two application rates) is averaged seed by seed.
    """
    found = []
    for above in outcome.select(ccas[0]):
        for below in outcome.select(ccas[1], above.engine, **above.at):
            one, other = (by_seed(cell, metric) for cell in (above, below))
            seeds = [s for s in one if s in other]
            x, y = (above.value(axis).number for axis in axes)
            found.append(Pair(x, y, tuple(one[s] for s in seeds), tuple(other[s] for s in seeds)))
    return found


Both = Callable[[Sequence[tuple[float, float]], range], list[tuple[list[float], list[float]]]]
"""(cells as (x, y), which seeds, counted from 0) → for each cell the metric under both congestion controls, under the same seeds."""


@dataclass(frozen=True, slots=True)
class MapEffort:
    """What a map may cost."""

    seeds: int = 10
    """Runs of each cell and congestion control at first."""
    most: int = 160
    """Runs of a cell at most."""
    same: float = SAME

    def __post_init__(self) -> None:
        if not 2 <= self.seeds <= self.most:
            refuse("seeds", f"{self.seeds} at first and {self.most} at most", "write at least 2, and no fewer at most than at first")

    @property
    def looks(self) -> tuple[int, ...]:
        """Runs of an undecided cell at each look."""
        found = [self.seeds]
        while found[-1] < self.most:
            found.append(min(self.most, found[-1] * GROWTH))
        return tuple(found)


def fill(measure: Both, cells: Sequence[tuple[float, float]], effort: MapEffort = MapEffort()) -> RatioMap:
    """Runs the cells, the undecided ones again and again with twice as many seeds."""
    known: dict[tuple[float, float], Pair] = {cell: Pair(*cell, (), ()) for cell in cells}
    done: dict[tuple[float, float], RatioCell] = {}
    have = 0
    for n in effort.looks:
        open_ = [cell for cell in known if cell not in done or done[cell].verdict == "undecided"]
        if not open_:
            break
        for cell, (above, below) in zip(open_, measure(open_, range(have, n)), strict=True):
            old = known[cell]
            known[cell] = Pair(*cell, (*old.above, *above), (*old.below, *below))
        done |= {(c.x, c.y): c for c in ratio_map([known[cell] for cell in open_], effort.same, len(effort.looks)).cells}
        have = n
    return RatioMap(tuple(sorted(done.values(), key=lambda c: (c.y, c.x))))
