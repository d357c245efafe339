"""Bootstrap of moments by matrix products, deterministic: every sample of n values meets the same resamples.

A resample is a row of counts, how often each value was drawn, so that a resampled mean of any function of the values is one matrix
product. The resamples are a function of n alone: the same values give the same interval, and studies with thousands of cells draw once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tcpscape.stats.estimate import CONFIDENCE, RESAMPLES, TAIL, Bounds, Floats

LEAST = 5
"""Fewest values to resample: 4 values have 35 distinct resamples, and one resample in 64 has no spread."""
MOST = 500
"""Most values to resample: beyond, Student's t does as well, since skewness moves coverage by less than 1 %."""
CAP = 2.0
"""Largest studentized quantile, in Student's quantiles: two values far apart have resamples without spread, and no bound without this."""
_BLOCK = 1000
"""Samples that are resampled together: 16 MB for each moment."""


@lru_cache(maxsize=32)
def counts(n: int) -> Floats:
    """How often each of n values is in each resample: (n, RESAMPLES), divided by n."""
    drawn = np.random.default_rng(n).integers(0, n, (RESAMPLES, n))
    shares = np.zeros((n, RESAMPLES))
    np.add.at(shares, (drawn, np.arange(RESAMPLES)[:, None]), 1 / n)
    return shares


@lru_cache(maxsize=256)
def student(n: int) -> float:
    """Quantile of Student's t for the interval of n values."""
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, (1 + CONFIDENCE) / 2))


def steps(statistics: Callable[[slice], Floats], x: Floats) -> Bounds:
    """Lengths of the intervals of samples x (k, n) below and above their values, in standard errors.

    `statistics`: as of :func:`quantiles`. Bootstrap-t (Efron 1981, Hall 1988), not nearer than Student's t, which is better for values that are
    often equal, and not farther than CAP times that.
    """
    least = np.full(len(x), student(x.shape[1]))
    if not LEAST <= x.shape[1] <= MOST:
        return least, least
    low, high = quantiles(statistics, x)
    return np.clip(high, least, CAP * least), np.clip(-low, least, CAP * least)


def quantiles(statistics: Callable[[slice], Floats], x: Floats) -> Bounds:
    """The studentized quantiles at both tails; `statistics` gives the studentized resamples (k, RESAMPLES) of a slice of the samples x (k, n)."""
    rank = int(RESAMPLES * TAIL)
    slices = (slice(first, first + _BLOCK) for first in range(0, len(x), _BLOCK))
    ends = np.concatenate([np.partition(statistics(part), (rank, -rank - 1), axis=1)[:, (rank, -rank - 1)] for part in slices])
    return ends[:, 0], ends[:, 1]


def studentize(shift: Floats, variance: Floats) -> Floats:
    """`shift / sqrt(variance)`; infinite where a resample has no spread, 0 where it did not move either."""
    spread = variance > _NOTHING
    studentized: Floats = np.where(spread, shift / np.sqrt(np.where(spread, variance, 1.0)), np.where(shift == 0, 0.0, np.copysign(np.inf, shift)))
    return studentized


_NOTHING = 1e-18
"""Variance, in the sample's own, that is rounding."""
