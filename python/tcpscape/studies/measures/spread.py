"""Measures of how runs of one cell differ: extremes, tail, several runs in a row, the shape of their distribution.

Statistics of our runs that have no formula for their interval get one here: :func:`resampled` by resampling, :func:`of_draws` by drawing as many
runs as a work had.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tcpscape import metrics, stats
from tcpscape.campaign.outcome import Cell
from tcpscape.findings import chaos
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import CONFIDENCE, RESAMPLES
from tcpscape.studies.result import Result
from tcpscape.studies.study import Claim

Array = NDArray[np.float64]
Bracket = tuple[Array, Array, Array]
"""A value between the two ends where it must lie: low end, value, high end."""
ENDS = (50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE))
"""Percentiles of an interval's ends."""
EXTREMES = {"least": np.min, "most": np.max}
PRECISION = 0.10
"""Half-width of the interval that :func:`runs_needed` aims at, as a fraction of the mean."""


def resampled(samples: Sequence[Sequence[float]], statistic: Callable[[Sequence[Array]], Array], unit: str = "1") -> Estimate:
    """`statistic` of the samples, each (resamples, runs), and its percentile interval; the samples are resampled independently.

    A statistic may be infinite (never reached); NaN resamples are left out.
    """
    whole, draws = _drawn(samples)
    if not draws:
        return Estimate(np.nan, np.nan, np.nan, 0, unit)
    return Estimate(float(statistic(whole)[0]), *_ends(statistic(draws)), min(a.shape[-1] for a in whole), unit)


def bracketed(samples: Sequence[Sequence[float]], statistic: Callable[[Sequence[Array]], Bracket], unit: str = "1") -> Estimate:
    """As :func:`resampled`, of a statistic that is known only to lie between two ends: the interval's low end is that of the resamples' low ends.

    The interval contains both ends of the samples themselves, however alike the runs are.
    """
    whole, draws = _drawn(samples)
    if not draws:
        return Estimate(np.nan, np.nan, np.nan, 0, unit)
    low, value, high = (float(x[0]) for x in statistic(whole))
    lows, _, highs = statistic(draws)
    ends = np.fmin(_ends(lows)[0], low), np.fmax(_ends(highs)[1], high)
    return Estimate(value, float(ends[0]), float(ends[1]), min(a.shape[-1] for a in whole), unit)


def of_draws(values: Sequence[float], runs: int, statistic: Callable[[Array], Array], unit: str = "1") -> Estimate:
    """What a work with `runs` runs would have measured: the median of the statistic over draws of so many of our runs, and the range of 95 %."""
    array = np.asarray(values, dtype=float)
    if not len(array):
        return Estimate(np.nan, np.nan, np.nan, 0, unit)
    rng = np.random.default_rng(runs)
    if len(array) > runs:
        drawn = statistic(rng.permuted(np.tile(array, (RESAMPLES, 1)), axis=1)[:, :runs])
    else:
        drawn = statistic(array[rng.integers(0, len(array), (RESAMPLES, runs))])
    return Estimate(float(np.median(drawn)), *_ends(drawn), len(array), unit)


def _drawn(samples: Sequence[Sequence[float]]) -> tuple[list[Array], list[Array]]:
    """The samples, each as one row, and their resamples (resamples, runs); both empty where a sample is."""
    arrays = [np.asarray(s, dtype=float) for s in samples]
    n = min((len(a) for a in arrays), default=0)
    if n == 0:
        return [], []
    rng = np.random.default_rng(n)
    return [a[None, :] for a in arrays], [a[rng.integers(0, len(a), (RESAMPLES, len(a)))] for a in arrays]


def _ends(drawn: Array) -> tuple[float, float]:
    defined = drawn[~np.isnan(drawn)]
    low, high = np.percentile(defined, ENDS, method="nearest") if len(defined) else (np.nan, np.nan)
    return float(low), float(high)


def extreme(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The `least` or `most` (`options: {of: …}`) of as many runs as the work had."""
    pick = EXTREMES[str(claim.options["of"])]
    return of_draws(cell.values(claim.metric), claim.runs, lambda x: pick(x, axis=-1), metrics.find(claim.metric).unit)


def tail(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The luckiest run over the median, of as many runs as the work had."""
    return of_draws(cell.values(claim.metric), claim.runs, lambda x: np.max(x, axis=-1) / np.median(x, axis=-1))


def span(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The best of `runs` runs over the worst."""
    return of_draws(cell.values(claim.metric), claim.runs, lambda x: np.max(x, axis=-1) / np.min(x, axis=-1))


def cv_ratio(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """The cell's CV over that of the cell under `over`."""
    return resampled([c.values(claim.metric) for c in (cell, result.below(claim, cell))], lambda x: _quotient(_cv(x[0]), _cv(x[1])))


def one_mode(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Probability of runs at least as far from a single mode as these, were there one: :func:`tcpscape.findings.chaos.one_mode`."""
    values = cell.values(claim.metric)
    chance = chaos.one_mode(values)
    value = math.nan if chance is None else chance
    return Estimate(value, value, value, len(values), "1")


def runs_needed(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Runs until the mean is known to ± 10 %, for the cell's CV and both ends of that one's interval."""
    return stats.runs_needed_from(cell.values(claim.metric), PRECISION)


def _quotient(a: Array, b: Array) -> Array:
    """a / b; unknown where b is 0: a cell without spread."""
    quotients: Array = a / np.where(b == 0, np.nan, b)
    return quotients


def _cv(x: Array) -> Array:
    """Sample standard deviation over mean; unknown of one run."""
    if x.shape[-1] < 2:
        return np.full(x.shape[:-1], np.nan)
    cvs: Array = np.std(x, axis=-1, ddof=1) / np.mean(x, axis=-1)
    return cvs
