"""Medians and other quantiles, with intervals between order statistics; the correlation of ranks.

How many values fall below a quantile is binomial whatever the distribution, so that two order statistics enclose it with a known
probability; between two of them the end is interpolated (Hettmansperger and Sheather 1986 for the median, Nyblom 1992 for any quantile).
No resampling. Ratios of medians are joined from both intervals on the logarithmic scale by MOVER, for pairs with the correlation of the two medians.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tcpscape.errors import refuse
from tcpscape.stats.estimate import (
    TAIL,
    Bounds,
    Caveat,
    Estimate,
    Flags,
    Floats,
    Numbers,
    Weakness,
    array,
    caveat_of_number,
    ends,
    single,
    student,
    without_interval,
)
from tcpscape.stats.few import MEDIAN
from tcpscape.stats.means import mover

RANGE = 5
"""Number of values whose whole range is the median's interval: it covers 93.75 %, and no other two order statistics cover more."""
SHRINK = 2.0
"""Weight of independence, in pairs, in the correlation of two medians: found by simulation for 5 pairs and more."""


def median(values: Numbers, unit: str = "") -> Estimate:
    """The median and its interval, in the values' unit."""
    return median_of_each(array(values), unit)[0]


def median_of_each(x: Floats, unit: str = "") -> list[Estimate]:
    """The medians of samples x (k, n) and their intervals, in the values' unit."""
    n = x.shape[1]
    known: Flags = np.asarray(~np.isnan(x).any(axis=1)) if n > 1 else np.zeros(len(x), dtype=bool)
    at, caveat = np.median(x, axis=1).tolist() if known.any() else [], caveat_of_number(n)
    totals, intervals = x.sum(1).tolist(), ends(known, median_bounds, x)
    return [Estimate(at[i], *interval, n, unit, caveat) if known[i] else without_interval(totals[i], n, unit) for i, interval in enumerate(intervals)]


def quantile(values: Numbers, q: float, unit: str = "") -> Estimate:
    """The quantile q (0 to 1, ends excluded) and its interval. An end that n values cannot bound is infinite, or 0 if none is negative."""
    if not 0 < q < 1:
        refuse("q", f"{q} is not a quantile", "give a number between 0 and 1, 0.9 for the 90th percentile")
    x = array(values)
    n = x.shape[1]
    if n < 2 or np.isnan(x).any():
        return without_interval(float(x.sum()), n, unit)
    at = float(np.quantile(x, q))
    low, high = single(quantile_bounds(x, q))
    low = 0.0 if low == -math.inf and x.min() >= 0 else low
    return Estimate(at, min(low, at), max(high, at), n, unit, _open(n, q))


def median_ratio(above: Numbers, below: Numbers, *, paired: bool = False) -> Estimate:
    """Ratio of medians and its interval; n is the smaller side's. `paired`: measurements of the same seeds, which often narrows it."""
    a, b = array(above), array(below)
    if paired and a.shape != b.shape:
        raise ValueError("pairs need as many values above as below")
    n = min(a.shape[1], b.shape[1])
    middle = float(np.median(b)) if n else 0.0
    value = float(np.median(a)) / middle if middle else math.nan
    if n < 2 or math.isnan(value):
        return Estimate(value, math.nan, math.nan, n, "1")
    if min(float(a.min()), float(b.min())) < 0:
        return Estimate(value, math.nan, math.nan, n, "1", Caveat(Weakness.NEGATIVE, n))
    low, high = single(median_ratio_bounds(a, b, paired=paired))
    return Estimate(value, low, high, n, "1", caveat_of_number(n))


def median_bounds(x: Floats) -> Bounds:
    """Intervals of the medians of samples x (k, n). Below 5 values: their range, or Student's interval where that is wider."""
    n = x.shape[1]
    if n > RANGE:
        return quantile_bounds(x, 0.5)
    low, high = x.min(1), x.max(1)
    if n == RANGE:
        return low, high
    reach = student(n) * x.std(1, ddof=1) / math.sqrt(n)
    floor = np.where(low >= 0, 0.0, -math.inf)
    return np.maximum(np.minimum(low, x.mean(1) - reach), floor), np.maximum(high, x.mean(1) + reach)


def quantile_bounds(x: Floats, q: float) -> Bounds:
    """Intervals of the quantile q of samples x (k, n); infinite where n values cannot bound it."""
    n = x.shape[1]
    ordered = np.sort(x, axis=1)
    return _lower(ordered, _rank(n, q)), -_lower(-ordered[:, ::-1], _rank(n, 1 - q))


def median_ratio_bounds(a: Floats, b: Floats, *, paired: bool) -> Bounds:
    """Intervals of the ratios of medians of samples (k, n) and (k, m) without negative values."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = (tuple(np.log(v) for v in (np.median(s, axis=1), *median_bounds(s))) for s in (a, b))
        low, high = mover((x[0], x[1], x[2]), (y[0], y[1], y[2]), _correlation(a, b) if paired else 0.0)
        nothing, most = np.isneginf(x[0]), x[2] - y[1]
        return np.where(nothing, 0.0, np.exp(low)), np.exp(np.where(nothing, most, high))


def spearman(x: Floats, y: Floats) -> Floats:
    """Spearman's ρ of each row of x (k, n) with that of y: the correlation of mid-ranks; NaN for a row in which everything is equal."""
    from scipy.stats import rankdata

    a, b = (rankdata(v, axis=1) for v in (x, y))
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    below = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return np.asarray((a * b).sum(axis=1) / np.where(below == 0, np.nan, below), dtype=float)


def _correlation(a: Floats, b: Floats) -> Floats:
    """Correlation of the medians of pairs, at least 0: that of the signs of the deviations (quadrant correlation), towards 0 for few."""
    p, q = (np.sign(s - np.median(s, axis=1)[:, None]) for s in (a, b))
    agree = (p * q).sum(1) / np.maximum(np.abs(p * q).sum(1), 1)
    n = a.shape[1]
    correlation: Floats = np.clip(agree, 0, 1) * n / (n + SHRINK)
    return correlation


@lru_cache(maxsize=512)
def _rank(n: int, q: float) -> tuple[int, float]:
    """Where the lower end of the quantile q's interval lies: the order statistic below it (from 1; 0 is none) and the part of the way to the next."""
    if q == 0.5 and n in MEDIAN:
        return MEDIAN[n]
    from tcpscape.stats.special import bdtr

    miss = np.concatenate([[0.0], bdtr(np.arange(n), n, q)])
    rank = int(np.searchsorted(miss, TAIL, side="right")) - 1
    if rank < 1 or rank >= n:
        return max(rank, 0), 0.0
    over, under = float(miss[rank + 1]) - TAIL, TAIL - float(miss[rank])
    return rank, 1 / (1 + rank * (1 - q) * over / ((n - rank) * q * under)) if under > 0 else 0.0


def _lower(ordered: Floats, rank: tuple[int, float]) -> Floats:
    """Lower ends of samples in order, at the rank and the part of the way to the next that :func:`_rank` gives."""
    at, part = rank
    if at < 1:
        return np.full(len(ordered), -math.inf)
    ends: Floats = ordered[:, at - 1] if part == 0 else (1 - part) * ordered[:, at - 1] + part * ordered[:, at]
    return ends


def _open(n: int, q: float) -> Caveat | None:
    """The caveat that an end is open, with the number of values that would close it; None where none is."""
    needed = math.ceil(math.log(TAIL) / math.log(max(q, 1 - q)))
    return Caveat(Weakness.OPEN, n, q, needed) if n < needed else None
