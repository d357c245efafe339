"""The search for a cliff by runs of an engine: the level of an impairment at which the mean falls below a share of its value without the impairment.

1. A coarse walk comes down from the harsh end (collapsed paths are cheap to run) to the first level that holds and is not chaotic. A level gets a few
   runs, and some more where these leave its side or its spread open. The levels
   below it get a glance with few seeds, because a path may also fall at a low level and hold at a higher one. The edge is the first fall from
   the gentle side. An estimate from a neighbouring path replaces the walk.
2. Bisection narrows the bracket to two steps of the axis' lattice. Only its two ends then get more runs, as many as their side and their spread
   need; if that moves the bracket, its new ends do.
3. The levels around the edge get runs until the edge's interval (:func:`crossing`) is two steps wide, or the runs are
   used up: calm cliffs cost few runs, and in the chaos zone the interval shows what the runs leave open.

The edge is where a falling curve passes a threshold. The level means are fitted by that curve (isotonic regression, weighted by the number of runs:
Robertson, Wright and Dykstra 1988), and the crossing is interpolated between the two levels around it. The interval is a bootstrap of that whole
procedure:

- One weight for each seed (the Bayesian bootstrap, Rubin 1981), the same wherever that seed has run, so that what runs under
  the same seed share (common random numbers) is kept. Levels have seeds of their own: what one seed does at a level it mostly does at the next one
  too, so that the same seeds at both would say less about the edge than as many others. Only a quick look has the same ones at all levels.
- Deviations are widened by Student's factor for the number of runs of the level (the expanded percentile interval, Hesterberg 2015);
  without it the intervals of eight runs are a quarter too narrow.
- The interval is never narrower than the gap between the two levels around the crossing: nothing was measured inside the gap, and a
  curve may jump there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tcpscape import stats
from tcpscape.campaign.execute import Runner
from tcpscape.errors import refuse, shown
from tcpscape.findings.cliff.levels import CHAOTIC_CV, DISAGREE, HALF, Cliff, Level, LevelAxis, is_chaotic, jitter_axis, level, loss_axis
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.stats.comparison import is_alike
from tcpscape.stats.estimate import NORMAL, TAIL, Floats, student

SEED = 20260101
"""Seed of the resampling: the same data give the same interval."""
LOOK, FINAL = 300, 2000
"""Resamples during a search, and for its result."""
FAR = 2.0
"""Half-widths of its interval that the outermost levels of a fit are away from the threshold, so that no resample crosses beyond them."""


@dataclass(frozen=True, slots=True)
class Point:
    """A level with its runs."""

    step: float
    """Place on the axis' lattice."""
    values: Floats
    """The metric of each run, by seed from the first on."""
    base: Floats
    """The same without the impairment, under the same seeds where it begins with the same one; not necessarily as many."""
    first: int = 0
    """The seed of the first run."""
    base_first: int = 0
    """That of the base's first."""

    @property
    def retention(self) -> float:
        """Mean / mean of the base."""
        return float(self.values.mean() / self.base.mean())

    @property
    def error(self) -> float:
        """Standard error of the retention by the delta method, as if base and level were independent (paired, it is less)."""
        level, base = _relative_error(self.values), _relative_error(self.base)
        return abs(self.retention) * math.hypot(level, base) if self.values.any() else 0.0

    def decided(self, threshold: float, widths: float = 1.0) -> bool:
        """Whether the retention is more than `widths` half-widths of Student's interval away from the threshold."""
        if len(self.values) < 2:
            return False
        return abs(self.retention - threshold) > widths * student(len(self.values)) * self.error


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the curve passes the threshold, in steps; an end is infinite where the curve may pass it outside the points."""

    value: float
    low: float
    high: float


def around(points: Sequence[Point], threshold: float) -> list[Point]:
    """Of all points, sorted by step, those around the first fall: two on each side, and further ones up to one far from the threshold."""
    fallen = next((i for i, p in enumerate(points) if not p.retention >= threshold), None)
    if fallen is None:
        return []
    before = _until_far(points[:fallen][::-1], threshold, below=False)
    return before[::-1] + _until_far(points[fallen:], threshold, below=True)


def _until_far(points: Sequence[Point], threshold: float, below: bool) -> list[Point]:
    """The first points, two at least, up to one that is clearly below (or above) the threshold."""
    taken: list[Point] = []
    for point in points:
        taken.append(point)
        if (not point.retention >= threshold) == below and point.decided(threshold, FAR) and len(taken) > 1:
            break
    return taken


def crossing(points: Sequence[Point], threshold: float, start: float, resamples: int = FINAL) -> Crossing:
    """The crossing of `points`, sorted by step. At the step `start` and before it the curve is 1 by definition."""
    steps = np.array([p.step for p in points])
    counts = np.array([len(p.values) for p in points], dtype=float)
    retentions = np.array([p.retention for p in points])
    value = float(_passes(steps, retentions[np.newaxis], counts, threshold, start)[0])
    places = _passes(steps, _resampled(points, retentions, resamples), counts, threshold, start)
    low, high = np.quantile(places, [TAIL, 1 - TAIL], method="nearest")
    if math.isfinite(value):
        before, after = steps[steps <= value], steps[steps >= value]
        low = min(low, before.max() if before.size else start)
        high = max(high, after.min() if after.size else value)
    return Crossing(value, float(low), float(high))


def _resampled(points: Sequence[Point], retentions: Floats, resamples: int) -> Floats:
    """Retentions at each point (columns) in each resample (rows), their deviations widened for few runs."""
    seeds = max(max(len(p.values), len(p.base)) for p in points)
    weights = {
        first: np.random.default_rng((SEED, first) if first else SEED).standard_exponential((resamples, seeds))
        for first in {first for p in points for first in (p.first, p.base_first)}
    }
    bases: dict[int, Floats] = {}
    columns = []
    for point, centre in zip(points, retentions, strict=True):
        below = bases.get(id(point.base))
        if below is None:
            below = bases[id(point.base)] = _weighted(weights[point.base_first], point.base)
        drawn = _weighted(weights[point.first], point.values) / np.where(below == 0, np.nan, below)
        columns.append(centre + _widening(len(point.values)) * (drawn - centre))
    return np.stack(columns, axis=1)


def _weighted(weights: Floats, values: Floats) -> Floats:
    """Weighted mean of the values in each resample."""
    own = weights[:, : len(values)]
    return np.asarray(own @ values / own.sum(axis=1), dtype=float)


def _widening(n: int) -> float:
    """The factor from the Bayesian bootstrap's spread (variance · n/(n+1)) to that of Student's interval."""
    if n < 2:
        return 1.0
    return math.sqrt((n + 1) / (n - 1)) * student(n) / NORMAL


def _passes(steps: Floats, means: Floats, counts: Floats, threshold: float, start: float) -> Floats:
    """Where the falling fit of each row of level means passes the threshold.

    ∞ if nowhere, −∞ if it is below from the first step on and `start` is infinite.
    """
    heights = _falling(means, counts)
    rows, below = np.arange(len(heights)), heights < threshold
    after = below.argmax(axis=1)
    before = np.maximum(after - 1, 0)
    top, foot = np.where(after > 0, heights[rows, before], 1.0), heights[rows, after]
    left = np.where(after > 0, steps[before], start)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = left + (top - threshold) / (top - foot) * (steps[after] - left)
    places = np.where(np.isfinite(left) & (top > foot), between, left)
    return np.asarray(np.where(below.any(axis=1), places, math.inf), dtype=float)


def _falling(means: Floats, counts: Floats) -> Floats:
    """The isotonic fit of each row, falling; NaN where a level of it is.

    By the max-min formula (Robertson, Wright and Dykstra 1988, 1.4): of the blocks of levels that hold a place, the largest mean of those with each
    first level, and the least of these.
    """
    weighted = means * counts
    largest = []
    for begin in range(len(counts)):
        blocks = weighted[:, begin:].cumsum(axis=1) / counts[begin:].cumsum()
        ends = np.maximum.accumulate(blocks[:, ::-1], axis=1)[:, ::-1]
        largest.append(np.pad(ends, ((0, 0), (begin, 0)), constant_values=math.inf))
    heights = np.minimum.reduce(largest)
    heights[np.isnan(means).any(axis=1)] = math.nan
    return np.asarray(heights, dtype=float)


def _relative_error(values: Floats) -> float:
    """Relative standard error of the mean; 0 of a single value."""
    mean = float(values.mean())
    return float(values.std(ddof=1)) / math.sqrt(len(values)) / abs(mean) if len(values) > 1 and mean else 0.0


RatioVerdict = Literal["better", "worse", "same", "undecided"]


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


def verdict(ratio: Estimate) -> RatioVerdict:
    """The verdict of a ratio's interval; `undecided` where there is no interval (one run, or nothing got through)."""
    if not (math.isfinite(ratio.low) and math.isfinite(ratio.high)):
        return "undecided"
    if is_alike(ratio):
        return "same"
    return "better" if ratio.low > 1 else "worse" if ratio.high < 1 else "undecided"


def ratio_cells(cells: Iterable[PairedRuns]) -> tuple[RatioCell, ...]:
    """The cells of the map from their runs, row by row (y, then x, both rising)."""
    runs = list(cells)
    ratios = stats.ratio_of_pairs([(c.above, c.below) for c in runs])
    return tuple(
        sorted((RatioCell(c.x, c.y, ratio, verdict(ratio)) for c, ratio in zip(runs, ratios, strict=True)), key=lambda cell: (cell.y, cell.x))
    )


APART = 1_000_000
"""First seeds of neighbouring levels are so far apart."""
GROWTH = 1.5
"""The runs of levels around the edge then grow by this factor."""
WIDTH = 2
"""Width of the bracket and of the interval at which the search ends, in steps of the lattice: ± one."""
FIRM = 1.5
"""Half-widths of its interval that a settled level is away from the threshold; more than one, because several levels are judged."""
EVEN = 0.5
"""Share of the chaos zone's coefficient of variation up to which a few runs show that a level is not chaotic."""
AROUND = 5
"""Levels among which the runs are spread where the interval is wide."""
BASE_SHARE = 0.25
"""The base is repeated where its relative error exceeds this share of a level's: below, it adds at most 3 % to the interval."""

Measuring = Callable[[Sequence[float], range], list[list[float]]]
"""(levels in the axis' unit, which seeds, counted from 0) → the metric of each level's runs, larger is better; these seeds for all of them."""


Watching = Callable[[LevelAxis, float, float], None]
"""(axis; last level that holds, or the one without the impairment; first level that fell): between them the edge is so far."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The threshold of a search, and the runs that it may use."""

    threshold: float = HALF
    """Retention at the edge, a fraction."""
    seeds: int = 20
    """Runs of a level, unless the first few show its side and its spread."""
    first: int = 10
    """Those first few. Fewer than ten may miss a mode (docs/models/methods/statistics.md), …"""
    few: int = 5
    """… which matters only near the edge: so many are enough where they are even and far from the threshold."""
    repeat: int = 2
    """A level that is undecided after its runs gets this multiple of them."""
    same_seeds: bool = False
    """Whether all levels run under the same seeds; otherwise each has its own, of which fewer are needed."""
    glance: int = 4
    """Runs of a glance at a level below one that holds."""
    most: int = 1200
    """Total runs after which no level gets further ones; walk and bisection are completed even if they take more."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            refuse("threshold", f"{self.threshold:g} is no share of the impairment-free rate", "write for example 50%")
        if min(self.seeds, self.first, self.few, self.glance) < 2:
            refuse("seeds", "one run says nothing about the spread", "write at least 2")


QUICK = Effort(seeds=8, few=8, glance=2, repeat=3, same_seeds=True, most=0)
"""A result within seconds, without runs to narrow its interval."""


def effort(threshold: float, most: int) -> Effort:
    """What a search for the edge at this retention may cost: `most` runs, or a quick look where that is 0."""
    return Effort(threshold, most=most) if most else replace(QUICK, threshold=threshold)


def find(
    measure: Measuring,
    axis: LevelAxis,
    effort: Effort = Effort(),
    near: float | None = None,
    base: Measuring | None = None,
    watching: Watching | None = None,
) -> Cliff:
    """Runs along the axis and finds the edge. A path that carries nothing without the impairment has none.

    `near` is a level near which the edge is expected; it replaces the walk. `base` measures the metric without the impairment at each level, where
    the axis itself changes it (`axis.origin` is None); otherwise the level `axis.origin` is run once. `watching` is told after each level that was
    looked at, once one has fallen.
    """
    if (base is None) == (axis.origin is None):
        refuse("base", "an axis has either an origin or a base for each level", "give one of the two")
    search = _Search(measure, base, axis, effort, watching)
    if search.dead():
        return search.answer(None)
    if near is None:
        search.walk()
    else:
        search.approach(round(min(axis.last, max(axis.first, axis.step(near)))))
    search.bisect()
    return search.answer(search.refine())


class _Search:
    """A search in progress: the runs of each level so far, by the level's step on the lattice."""

    def __init__(self, measure: Measuring, base: Measuring | None, axis: LevelAxis, effort: Effort, watching: Watching | None) -> None:
        self.measure, self.base, self.axis, self.effort, self.watching = measure, base, axis, effort, watching
        self.values: dict[int, Floats] = {}
        self.bases: dict[int, Floats] = {}
        self.runs = 0
        self.open: set[int] = set()
        """Steps that were looked at, but not closely."""
        self.shared = np.array([]) if base else self._extended(measure, np.array([]), axis.origin or 0.0, range(self.first))
        """Runs of the base of all levels; empty where each level has a base of its own."""

    @property
    def first(self) -> int:
        """Runs of a level at first."""
        return min(self.effort.first, self.effort.seeds)

    def dead(self) -> bool:
        """Whether nothing gets through without the impairment."""
        if self.base:
            self.take(self.axis.first, self.first)
        calm = self.bases[self.axis.first] if self.base else self.shared
        return not calm.any()

    def _extended(self, measure: Measuring, values: Floats, at: float, seeds: range) -> Floats:
        """The values, of the first ones of these seeds, and those of further runs at a level."""
        missing = seeds[len(values) :]
        if not missing:
            return values
        further = measure([at], missing)[0]
        self.runs += len(further)
        return np.concatenate([values, np.asarray(further, dtype=float)])

    def take(self, step: int, n: int) -> None:
        """Completes the runs of a step to `n`, and the base to as many as these require."""
        at, seeds = self.axis.level(step), range(self.first_seed(step), self.first_seed(step) + n)
        self.values[step] = self._extended(self.measure, self.values.get(step, np.array([])), at, seeds)
        if self.base:
            self.bases[step] = self._extended(self.base, self.bases.get(step, np.array([])), at, seeds)
        elif len(self.shared) < n and _relative(self.shared) > BASE_SHARE * _relative(self.values[step]):
            self.shared = self._extended(self.measure, self.shared, self.axis.origin or 0.0, range(n))

    def point(self, step: int) -> Point:
        """A step with its runs, as the fit takes it."""
        first = self.first_seed(step)
        return Point(step, self.values[step], self.bases.get(step, self.shared), first, first if self.base else 0)

    def first_seed(self, step: int) -> int:
        """The first seed of a step, and of its base where it has its own; 0 is that of the base of all levels."""
        return 0 if self.effort.same_seeds else (step + 1) * APART

    def look(self, step: int) -> None:
        """Measures a level: with few runs where these are even and far from the threshold, and otherwise with the first ones."""
        self.take(step, min(self.effort.few, self.first))
        if not (self.is_even(step) and self.point(step).decided(self.effort.threshold, FAR)):
            self.take(step, self.first)
        self.open.add(step)
        if self.effort.most:
            self.tell()
        else:  # nothing is added later
            self.look_closely(step)

    def look_closely(self, step: int) -> None:
        """Measures a level that the edge touches, with all seeds where the first do not show its side and spread, and more where it is undecided."""
        self.open.discard(step)
        self.take(step, self.first)
        if not (self.point(step).decided(self.effort.threshold, FIRM) and self.is_even(step)):
            self.take(step, self.effort.seeds)
        if not self.point(step).decided(self.effort.threshold, FIRM):
            self.take(step, self.effort.repeat * self.effort.seeds)
        self.tell()

    def tell(self) -> None:
        """Says between which levels the edge is so far, once one has fallen."""
        if self.watching and (bracket := self.bracket()):
            origin = self.axis.origin if bracket[0] < self.axis.first else None
            self.watching(self.axis, self.axis.level(bracket[0]) if origin is None else origin, self.axis.level(bracket[1]))

    def fell(self, step: int) -> bool:
        """Whether the retention at a step is below the threshold, or unknown."""
        return not self.point(step).retention >= self.effort.threshold

    def chaotic(self, step: int) -> bool:
        """Whether a level belongs to a chaos zone."""
        point = self.point(step)
        below = float(np.mean(point.values < self.effort.threshold * point.base.mean()))
        return is_chaotic(point.retention, _cv(point.values), _cv(point.base), below)

    def calm(self, step: int) -> bool:
        """Whether a level holds and is not chaotic."""
        return not self.fell(step) and not self.chaotic(step)

    def is_even(self, step: int) -> bool:
        """Whether the runs of a level vary so little that it is not chaotic, or carry so little that few of them can be above the threshold."""
        point = self.point(step)
        return _cv(point.values) <= EVEN * CHAOTIC_CV or point.retention < DISAGREE * self.effort.threshold

    def walk(self) -> None:
        """Measures from the harsh end to the first level that holds, and glances at those below."""
        held = False
        for step in self.axis.walk():
            if held:
                self.glance(step)
            else:
                self.look(step)
            held = self.calm(step)

    def glance(self, step: int) -> None:
        """Measures a level with few seeds, and fully where it shows a fall."""
        self.take(step, self.effort.glance)
        if self.fell(step):
            self.look(step)
        elif not self.effort.most:
            self.open.add(step)  # nothing is added later, should the edge turn out to touch it

    def approach(self, step: int) -> None:
        """Searches outwards from a step until the edge is between two levels, then glances at the levels below them."""
        self.look(step)
        falling, stride = self.fell(step), WIDTH
        end = self.axis.first if falling else self.axis.last
        while self.fell(step) == falling and step != end:
            step = max(end, step - stride) if falling else min(end, step + stride)
            self.look(step)
            stride *= 2
        for lower in [s for s in self.axis.walk() if s < min(self.values)]:
            self.glance(lower)

    def bracket(self) -> tuple[int, int] | None:
        """The last step that holds before the first that fell; `first − 1` is the level without the impairment."""
        fallen = [s for s in self.values if self.fell(s)]
        if not fallen:
            return None
        return max((s for s in self.values if s < min(fallen)), default=self.axis.first - 1), min(fallen)

    def bisect(self) -> None:
        """Measures in the middle of the bracket until it is narrow, and what touches it with all seeds that this needs."""
        while bracket := self.bracket():
            if bracket[1] - bracket[0] > WIDTH:
                self.look(sum(bracket) // 2)
            elif (step := next((s for s in reversed(bracket) if s in self.open), None)) is not None:
                self.look_closely(step)
            else:
                return

    def refine(self) -> Crossing | None:
        """Adds runs to the levels around the edge until its interval is narrow; returns the crossing."""
        while (crossing := self.crossing(LOOK)) and self.runs < self.effort.most and (steps := self.unsettled(crossing)):
            for step in steps:
                if self.runs < self.effort.most:
                    self.extend(step)
        return self.crossing(FINAL)

    def extend(self, step: int) -> None:
        """Adds runs at a step, as far as the effort allows."""
        known = len(self.values.get(step, ()))
        left = self.effort.most - self.runs
        self.take(step, min(max(self.effort.seeds, math.ceil(GROWTH * known)), known + left))

    def unsettled(self, crossing: Crossing) -> list[int]:
        """The undecided steps that get runs next: those within the crossing's interval, and dips before the edge.

        Where the interval is narrow already, only the steps within it that have few runs: it may be narrow by chance.
        """
        low, high = (min(self.axis.last, max(self.axis.first, x)) for x in (crossing.low, crossing.high))
        inside = range(math.floor(low), math.ceil(high) + 1)
        if crossing.high - crossing.low <= WIDTH:
            few = self.effort.repeat * self.effort.seeds
            return [s for s in inside if len(self.values.get(s, ())) in range(1, few) and not self.settled(s)]
        near = sorted(inside, key=lambda s: abs(s - crossing.value))[:2]
        spread = {inside[round(i * (len(inside) - 1) / (AROUND - 1))] for i in range(AROUND)}
        dips = {s for s in self.window() if s < crossing.value and self.fell(s)}
        return [s for s in sorted({*near, *spread, *dips}) if not self.settled(s)]

    def settled(self, step: int) -> bool:
        """Whether a step has all runs that it needs and is clearly on one side of the threshold."""
        known = len(self.values.get(step, ()))
        has_all = known >= self.effort.seeds or (known >= self.first and self.is_even(step))
        return has_all and self.point(step).decided(self.effort.threshold, FIRM)

    def window(self) -> list[int]:
        """The steps around the edge."""
        points = around([self.point(s) for s in sorted(self.values)], self.effort.threshold)
        return [round(p.step) for p in points]

    def crossing(self, resamples: int) -> Crossing | None:
        """Where the fit through the steps around the edge passes the threshold; None where no step fell."""
        steps = self.window()
        if not steps:
            return None
        start = 0.0 if self.axis.first == 1 else -math.inf
        return crossing([self.point(s) for s in steps], self.effort.threshold, start, resamples)

    def answer(self, crossing: Crossing | None) -> Cliff:
        """The cliff with every level measured so far."""
        calm = self.bases[self.axis.first] if self.base else self.shared
        levels = tuple(self._answered(self.point(s)) for s in sorted(self.values) if calm.any())
        return Cliff(self.axis, stats.mean(calm, "Mbit/s"), levels, self._edge(crossing), self.runs)

    def _answered(self, point: Point) -> Level:
        """A level as the answer has it."""
        at, is_paired = self.axis.level(point.step), point.first == point.base_first
        return level(at, point.values.tolist(), point.base.tolist(), self.effort.threshold, first_seed=point.first, paired=is_paired)

    def _edge(self, crossing: Crossing | None) -> Estimate | None:
        """The crossing in the axis' unit; None where the threshold is not passed on the axis."""
        if crossing is None or crossing.value == math.inf:
            return None
        ends = [self._level(x) for x in (crossing.low, crossing.high)]
        value = self._level(crossing.value)
        if crossing.value == -math.inf:
            ends.append(self.axis.level(self.axis.first))
        return Estimate(value, min(ends), max(ends), sum(len(self.values[s]) for s in self.window()), self.axis.unit)

    def _level(self, step: float) -> float:
        """The level at a step that may lie beyond the axis: −∞ is no impairment, ∞ an infinite one."""
        if step == -math.inf:
            return self.axis.gentle if self.axis.origin is None else self.axis.origin
        return math.copysign(math.inf, self.axis.harsh - self.axis.gentle) if step == math.inf else self.axis.level(step)


def _cv(values: Floats) -> float:
    mean = float(values.mean())
    return float(values.std(ddof=1)) / mean if len(values) > 1 and mean else 0.0


def _relative(values: Floats) -> float:
    """Relative standard error of the mean."""
    return _cv(values) / math.sqrt(len(values))


Impairment = Literal["jitter", "loss"]
"""What a search varies on a path."""
Along = Callable[[float], Sequence[Scenario]]
"""A level → the scenarios of one measurement there; several are pooled (the published studies average two application rates)."""


def impairment(along: str, given: Mapping[str, object], prefix: str = "") -> Impairment:
    """What a search varies, by its name; `given` has what else is said of jitter and of loss, `prefix` is how an option is typed.

    :raises ScenarioError: one line, where there is no such axis, or its level is given too.
    """
    varied: Impairment | None = "jitter" if along == "jitter" else "loss" if along == "loss" else None
    if varied is None:
        refuse("along", f"{shown(along)} is no axis of a cliff", "write jitter or loss")
    if given[varied] is not None:
        refuse(varied, "it is what the search varies", f"leave {prefix}{varied} out")
    return varied


def on_path(runner: Runner, path: Conditions, cca: str, along: Impairment, effort: Effort, watching: Watching | None = None) -> Cliff:
    """The cliff of a path under one congestion control, along its jitter (levels in ns) or its loss (fractions)."""
    axis, kind = (jitter_axis(path.rtt), int) if along == "jitter" else (loss_axis(), float)
    return find(measure(runner, lambda level: [path.model_copy(update={along: kind(level)}).scenario(cca)]), axis, effort, watching=watching)


def measure(runner: Runner, along: Along, first: int = 0) -> Measuring:
    """Goodput in Mbit/s, the mean over the scenarios of a level under one seed; seed 0 of a search is the engine's seed `first`."""

    def run(levels: Sequence[float], seeds: range) -> list[list[float]]:
        return [_pooled(runner, along(x), range(first + seeds.start, first + seeds.stop)) for x in levels]

    return run


def _pooled(runner: Runner, scenarios: Sequence[Scenario], seeds: range) -> list[float]:
    """The mean goodput over the scenarios under each seed, Mbit/s."""
    runs = runner.run_all([(s, seeds) for s in scenarios])
    return [float(x) for x in np.mean([[t.goodput_mbps for t in trials] for trials in runs], axis=0)]
