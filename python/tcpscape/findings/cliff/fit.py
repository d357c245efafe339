"""Where a falling curve passes a threshold, from repeated measurements at some levels, with an interval.

The level means are fitted by a falling curve (isotonic regression, weighted by the number of runs: Robertson, Wright and Dykstra 1988),
and the crossing is interpolated between the two levels around it. The interval is a bootstrap of that whole procedure:

- One weight for each seed (the Bayesian bootstrap, Rubin 1981), the same at every level and for the base, so that what runs under
  the same seed share (common random numbers) is kept.
- Deviations are widened by Student's factor for the number of runs of the level (the expanded percentile interval, Hesterberg 2015);
  without it the intervals of eight runs are a quarter too narrow.
- The interval is never narrower than the gap between the two levels around the crossing: nothing was measured inside the gap, and a
  curve may jump there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tcpscape import stats
from tcpscape.stats import Estimate
from tcpscape.stats.comparison import is_alike
from tcpscape.stats.estimate import CONFIDENCE, TAIL
from tcpscape.stats.resample import student

Array = NDArray[np.float64]
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
    values: Array
    """The metric of each run, by seed from the first on."""
    base: Array
    """The same without the impairment, under the same seeds from the first on; not necessarily as many."""

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
    value = _passes(steps, retentions, counts, threshold, start)
    drawn = _resampled(points, retentions, resamples)
    places = np.array([_passes(steps, row, counts, threshold, start) for row in drawn])
    low, high = np.quantile(places, [TAIL, 1 - TAIL], method="nearest")
    if math.isfinite(value):
        before, after = steps[steps <= value], steps[steps >= value]
        low = min(low, before.max() if before.size else start)
        high = max(high, after.min() if after.size else value)
    return Crossing(value, float(low), float(high))


def _resampled(points: Sequence[Point], retentions: Array, resamples: int) -> Array:
    """Retentions at each point (columns) in each resample (rows), their deviations widened for few runs."""
    seeds = max(max(len(p.values), len(p.base)) for p in points)
    weights = np.random.default_rng(SEED).standard_exponential((resamples, seeds))
    bases: dict[int, Array] = {}
    columns = []
    for point, centre in zip(points, retentions, strict=True):
        below = bases.get(id(point.base))
        if below is None:
            below = bases[id(point.base)] = _weighted(weights, point.base)
        drawn = _weighted(weights, point.values) / np.where(below == 0, np.nan, below)
        columns.append(centre + _widening(len(point.values)) * (drawn - centre))
    return np.stack(columns, axis=1)


def _weighted(weights: Array, values: Array) -> Array:
    """Weighted mean of the values in each resample."""
    own = weights[:, : len(values)]
    return np.asarray(own @ values / own.sum(axis=1), dtype=float)


def _widening(n: int) -> float:
    """The factor from the Bayesian bootstrap's spread (variance · n/(n+1)) to that of Student's interval."""
    from scipy.special import ndtri

    if n < 2:
        return 1.0
    return math.sqrt((n + 1) / (n - 1)) * student(n) / float(ndtri((1 + CONFIDENCE) / 2))


def _passes(steps: Array, means: Array, counts: Array, threshold: float, start: float) -> float:
    """Where the falling fit passes the threshold; ∞ if nowhere, −∞ if it is below from the first step on and `start` is infinite."""
    from scipy.optimize import isotonic_regression

    if np.isnan(means).any():
        return math.inf
    heights = isotonic_regression(means, weights=counts, increasing=False).x
    below = np.flatnonzero(heights < threshold)
    if not below.size:
        return math.inf
    i = int(below[0])
    left, top = (steps[i - 1], heights[i - 1]) if i else (start, 1.0)
    if not math.isfinite(left) or top <= heights[i]:
        return float(left)
    return float(left + (top - threshold) / (top - heights[i]) * (steps[i] - left))


def _relative_error(values: Array) -> float:
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
    ratios = [(c, stats.ratio(c.above, c.below)) for c in cells]
    return tuple(sorted((RatioCell(c.x, c.y, ratio, verdict(ratio)) for c, ratio in ratios), key=lambda cell: (cell.y, cell.x)))
