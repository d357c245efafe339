"""Intervals for statistics of our runs that have no formula: by resampling, and by drawing as many runs as a work had."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tcpscape.stats import Estimate
from tcpscape.stats.estimate import CONFIDENCE, RESAMPLES

Array = NDArray[np.float64]
ENDS = (50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE))
"""Percentiles of an interval's ends."""


def estimate(samples: Sequence[Sequence[float]], statistic: Callable[[Sequence[Array]], Array], unit: str = "1") -> Estimate:
    """`statistic` of the samples, each (resamples, runs), and its percentile interval; the samples are resampled independently.

    A statistic may be infinite (never reached); NaN resamples are left out.
    """
    arrays = [np.asarray(s, dtype=float) for s in samples]
    n = min((len(a) for a in arrays), default=0)
    if n == 0:
        return Estimate(np.nan, np.nan, np.nan, 0, unit)
    value = float(statistic([a[None, :] for a in arrays])[0])
    rng = np.random.default_rng(n)
    drawn = statistic([a[rng.integers(0, len(a), (RESAMPLES, len(a)))] for a in arrays])
    return Estimate(value, *_ends(drawn), n, unit)


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


def _ends(drawn: Array) -> tuple[float, float]:
    defined = drawn[~np.isnan(drawn)]
    low, high = np.percentile(defined, ENDS, method="nearest") if len(defined) else (np.nan, np.nan)
    return float(low), float(high)
