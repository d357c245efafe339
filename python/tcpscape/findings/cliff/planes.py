"""Two axes at once: the cliff as a line over a second axis, and the map of which of two congestion controls is better where.

Of a **contour**, each search begins at the edge found at the neighbouring level of the second axis instead of walking the whole axis.

A **ratio map** holds the ratio of two congestion controls in each cell of a grid, with its interval and a verdict: `same` where the whole interval
lies within ± 5 %, `better` or `worse` where it excludes 1, and `undecided` otherwise; never by the mean alone. `fill` gives the undecided cells more
runs until they are decided or have had their share. Looking several times misleads more often than looking once (by simulation: at five looks
with intervals of 95 %, a third of equal cells are called different), so that the intervals of `fill` divide the 5 % among its looks (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tcpscape import stats
from tcpscape.errors import refuse
from tcpscape.findings.cliff import search
from tcpscape.findings.cliff.levels import Axis, Cliff
from tcpscape.findings.cliff.search import Effort, Measure
from tcpscape.stats import Estimate
from tcpscape.stats.comparison import ALIKE
from tcpscape.stats.estimate import TAIL
from tcpscape.stats.resample import student

RatioVerdict = Literal["better", "worse", "same", "undecided"]
SAME = ALIKE
"""A ratio within 1 ± this is no difference worth a change."""
GROWTH = 2
"""Factor by which the runs of an undecided cell grow from one look to the next."""
Across = Callable[[float], Measure]
"""A level of the second axis → what measures along the first axis there."""
MeasurePairs = Callable[[Sequence[tuple[float, float]], range], list[tuple[list[float], list[float]]]]
"""(cells as (x, y), which seeds, counted from 0) → for each cell the metric under both congestion controls, under the same seeds."""


@dataclass(frozen=True, slots=True)
class SecondAxis:
    """The second axis of a contour."""

    name: str
    unit: str
    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.levels or len(set(self.levels)) != len(self.levels):
            refuse(self.name, f"levels {list(self.levels)}", "write at least one, each once")


@dataclass(frozen=True, slots=True)
class Contour:
    """The edge along `axis` at each level of a second axis."""

    axis: Axis
    across: str
    """Name of the second axis."""
    unit: str
    """Unit of the second axis."""
    points: tuple[tuple[float, Cliff], ...]
    """(level of the second axis, the cliff there), from the lowest level."""

    @property
    def runs(self) -> int:
        """Number of runs of all searches."""
        return sum(cliff.runs for _, cliff in self.points)


def contour(measure: Across, axis: Axis, second: SecondAxis, effort: Effort = Effort()) -> Contour:
    """The edge at every level of the second axis, from the lowest.

    A level without an edge is no start for its neighbour. Express the first axis so that neighbours resemble each other (jitter as a share
    of the RTT, where the RTT is the second axis).
    """
    points: list[tuple[float, Cliff]] = []
    near: float | None = None
    for level in sorted(second.levels):
        cliff = search.find(measure(level), axis, effort, near)
        points.append((level, cliff))
        near = cliff.edge.value if cliff.edge else None
    return Contour(axis, second.name, second.unit, tuple(points))


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """The runs of one cell: the metric under both congestion controls, under the same seeds; larger is better."""

    x: float
    y: float
    above: tuple[float, ...]
    below: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RatioCell:
    """One cell of a ratio map."""

    x: float
    y: float
    ratio: Estimate
    """Mean / mean, paired."""
    verdict: RatioVerdict


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
        """Cells that the runs do not decide yet."""
        return tuple(c for c in self.cells if c.verdict == "undecided")

    @property
    def runs(self) -> int:
        """Number of runs of both congestion controls."""
        return 2 * sum(c.ratio.n for c in self.cells)

    def at(self, x: float, y: float) -> RatioCell:
        """The cell there; KeyError where the grid has none."""
        for cell in self.cells:
            if (cell.x, cell.y) == (x, y):
                return cell
        raise KeyError((x, y))


def verdict(ratio: Estimate, same: float = SAME) -> RatioVerdict:
    """The verdict of a ratio's interval; `undecided` where there is no interval (one run, or nothing got through)."""
    if not (math.isfinite(ratio.low) and math.isfinite(ratio.high)):
        return "undecided"
    if 1 - same <= ratio.low and ratio.high <= 1 + same:
        return "same"
    return "better" if ratio.low > 1 else "worse" if ratio.high < 1 else "undecided"


def ratio_map(cells: Iterable[PairedRuns], same: float = SAME, looks: int = 1) -> RatioMap:
    """The map from the runs of its cells; `looks` is the number of looks at growing runs of which this is one."""
    judged = [RatioCell(c.x, c.y, r, verdict(r, same)) for c in cells for r in [_widened(stats.ratio(c.above, c.below), looks)]]
    return RatioMap(tuple(sorted(judged, key=lambda c: (c.y, c.x))))


def _widened(ratio: Estimate, looks: int) -> Estimate:
    """The interval that holds the truth at all looks, from that of one look: wider by Student's factor, on the logarithmic scale."""
    from scipy.stats import t

    if looks == 1 or ratio.n < 2 or not 0 < ratio.low <= ratio.value <= ratio.high < math.inf:
        return ratio
    factor = float(t.ppf(1 - TAIL / looks, ratio.n - 1)) / student(ratio.n)
    low, high = (ratio.value * (end / ratio.value) ** factor for end in (ratio.low, ratio.high))
    return replace(ratio, low=low, high=high)


@dataclass(frozen=True, slots=True)
class MapEffort:
    """The runs that a ratio map may use."""

    seeds: int = 10
    """Runs of each cell and congestion control at the first look."""
    most: int = 160
    """Most runs of a cell and congestion control."""
    same: float = SAME

    def __post_init__(self) -> None:
        if not 2 <= self.seeds <= self.most:
            refuse("seeds", f"{self.seeds} at first and {self.most} at most", "write at least 2, and no fewer at most than at first")

    @property
    def looks(self) -> tuple[int, ...]:
        """Runs of an undecided cell at each look."""
        counts = [self.seeds]
        while counts[-1] < self.most:
            counts.append(min(self.most, counts[-1] * GROWTH))
        return tuple(counts)


def fill(measure: MeasurePairs, cells: Sequence[tuple[float, float]], effort: MapEffort = MapEffort()) -> RatioMap:
    """Runs the cells, and the undecided cells again with twice as many seeds, until the effort is used up."""
    runs: dict[tuple[float, float], PairedRuns] = {cell: PairedRuns(*cell, (), ()) for cell in cells}
    judged: dict[tuple[float, float], RatioCell] = {}
    first = 0
    for n in effort.looks:
        undecided = [cell for cell in runs if cell not in judged or judged[cell].verdict == "undecided"]
        if not undecided:
            break
        for cell, (above, below) in zip(undecided, measure(undecided, range(first, n)), strict=True):
            before = runs[cell]
            runs[cell] = PairedRuns(*cell, (*before.above, *above), (*before.below, *below))
        judged |= {(c.x, c.y): c for c in ratio_map([runs[cell] for cell in undecided], effort.same, len(effort.looks)).cells}
        first = n
    return RatioMap(tuple(sorted(judged.values(), key=lambda c: (c.y, c.x))))
