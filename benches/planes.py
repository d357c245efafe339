"""Two axes at once: the cliff as a line over a second axis, and a map of which congestion control is better whose undecided cells get more runs.

Of a **contour**, each search begins at the edge found at the neighbouring level of the second axis instead of walking the whole axis.

`fill` gives the undecided cells of a **ratio map** (:mod:`tcpscape.findings.cliff.search`) more runs until they are decided or have had their share.
Looking several times misleads more often than looking once (by simulation: at five looks with intervals of 95 %, a third of equal cells are called
different), so that the intervals of `fill` divide the 5 % among its looks (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tcpscape.campaign.execute import Runner
from tcpscape.errors import refuse
from tcpscape.findings.cliff import search
from tcpscape.findings.cliff.levels import Cliff, LevelAxis
from tcpscape.findings.cliff.search import Effort, Measuring, PairedRuns, RatioCell, ratio_cells, verdict
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import TAIL, student

GROWTH = 2
"""Factor by which the runs of an undecided cell grow from one look to the next."""
Across = Callable[[float], Measuring]
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

    axis: LevelAxis
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


def contour(measure: Across, axis: LevelAxis, second: SecondAxis, effort: Effort = Effort()) -> Contour:
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


@dataclass(frozen=True, slots=True)
class MapEffort:
    """The runs that a ratio map may use."""

    seeds: int = 10
    """Runs of each cell and congestion control at the first look."""
    most: int = 160
    """Most runs of a cell and congestion control."""

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


def judged(runs: Iterable[PairedRuns], looks: int) -> tuple[RatioCell, ...]:
    """The cells of the map, with intervals that hold the truth at all of `looks` looks at growing runs."""
    ratios = [(cell, _widened(cell.ratio, looks)) for cell in ratio_cells(runs)]
    return tuple(replace(cell, ratio=ratio, verdict=verdict(ratio)) for cell, ratio in ratios)


def _widened(ratio: Estimate, looks: int) -> Estimate:
    """The interval that holds the truth at all looks, from that of one look: wider by Student's factor, on the logarithmic scale."""
    from scipy.stats import t

    if looks == 1 or ratio.n < 2 or not 0 < ratio.low <= ratio.value <= ratio.high < math.inf:
        return ratio
    factor = float(t.ppf(1 - TAIL / looks, ratio.n - 1)) / student(ratio.n)
    low, high = (ratio.value * (end / ratio.value) ** factor for end in (ratio.low, ratio.high))
    return replace(ratio, low=low, high=high)


def measure_pairs(runner: Runner, at: Callable[[float, float, str], Scenario], ccas: tuple[str, str], first: int = 0) -> MeasurePairs:
    """Goodputs in Mbit/s of two congestion controls at cells (x, y); `at` gives the scenario of a cell under one of them, `first` the first seed."""

    def run(cells: Sequence[tuple[float, float]], seeds: range) -> list[tuple[list[float], list[float]]]:
        which = range(first + seeds.start, first + seeds.stop)
        trials = runner.run_all([(at(x, y, cca), which) for cca in ccas for x, y in cells])
        goodputs = [[t.goodput_mbps for t in each] for each in trials]
        return list(zip(goodputs[: len(cells)], goodputs[len(cells) :], strict=True))

    return run


def fill(measure: MeasurePairs, cells: Sequence[tuple[float, float]], effort: MapEffort = MapEffort()) -> RatioMap:
    """Runs the cells, and the undecided cells again with twice as many seeds, until the effort is used up."""
    runs: dict[tuple[float, float], PairedRuns] = {cell: PairedRuns(*cell, (), ()) for cell in cells}
    known: dict[tuple[float, float], RatioCell] = {}
    first = 0
    for n in effort.looks:
        undecided = [cell for cell in runs if cell not in known or known[cell].verdict == "undecided"]
        if not undecided:
            break
        for cell, (above, below) in zip(undecided, measure(undecided, range(first, n)), strict=True):
            before = runs[cell]
            runs[cell] = PairedRuns(*cell, (*before.above, *above), (*before.below, *below))
        known |= {(c.x, c.y): c for c in judged([runs[cell] for cell in undecided], len(effort.looks))}
        first = n
    return RatioMap(tuple(sorted(known.values(), key=lambda c: (c.y, c.x))))
