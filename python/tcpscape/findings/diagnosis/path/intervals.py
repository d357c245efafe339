"""Intervals of quantities of correlated samples: by blocks in time, each long enough to be nearly independent of the next."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from tcpscape.findings.diagnosis.path.columns import Floats, Ints
from tcpscape.stats import Estimate


def mean_by_blocks(x: Floats, block: Ints) -> tuple[float, float, int]:
    """Mean, its standard error and the number of blocks; the error is NaN of one block."""
    n = np.bincount(block)
    used = n > 0
    sums = np.bincount(block, x)[used]
    n = n[used]
    mean, k = float(x.mean()), int(n.size)
    if k < 2:
        return mean, math.nan, k
    return mean, float(np.sqrt(np.sum((sums - mean * n) ** 2) * k / (k - 1)) / n.sum()), k


def student(k: int) -> float:
    """Half of a 95 % interval in standard errors, of k blocks."""
    return float(stats.t.ppf(0.975, max(1, k - 1)))


def around(value: float, error: float, k: int, n: int, unit: str, least: float = 0.0) -> Estimate:
    """The estimate with its interval, of k blocks; `least`: half of the interval at the least, what no sample shows."""
    half = math.hypot(student(k) * error, least) if k > 1 else math.nan
    return Estimate(value, max(0.0, value - half), value + half, n, unit)


def root(variance: float, error: float, k: int, n: int, unit: str, relative: float = 0.0) -> Estimate:
    """Standard deviation, from a variance and its error, which may reach below 0."""
    half = student(k) * error if k > 1 else math.nan
    value = math.sqrt(max(0.0, variance))
    low, high = math.sqrt(max(0.0, variance - half)), math.sqrt(max(0.0, variance + half))
    if value:
        low, high = value - math.hypot(value - low, relative * value), value + math.hypot(high - value, relative * value)
    return Estimate(value, max(0.0, low), high, n, unit)


def share(hits: int, of: int) -> Estimate:
    """A probability in %, by Jeffreys' interval."""
    low = float(stats.beta.ppf(0.025, hits + 0.5, of - hits + 0.5)) if hits else 0.0
    high = float(stats.beta.ppf(0.975, hits + 0.5, of - hits + 0.5))
    return Estimate(100 * hits / of, 100 * low, 100 * high, of, "%")
