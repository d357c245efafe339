"""Means, their ratios and differences.

Intervals are studentized: `estimate.steps` gives the number of standard errors up and down. Values of which none is negative are taken
on the logarithmic scale, where intervals of skewed means cover better and no end is negative; others on their own scale. Samples that are not
paired have their intervals combined by MOVER (Zou and Donner 2008) with Welch's degrees of freedom. Measured coverage:
docs/models/methods/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tcpscape.stats.estimate import (
    CONFIDENCE,
    Bounds,
    Estimate,
    Flags,
    Floats,
    Numbers,
    array,
    by_number,
    caveat_of_moments,
    counts,
    ends,
    single,
    steps,
    student,
    studentize,
    without_interval,
)

Ends = tuple[Floats, Floats, Floats]
"""Value, lower and upper end of the interval of each sample."""


def mean(values: Numbers, unit: str = "") -> Estimate:
    """The mean and its interval, in the values' unit."""
    return mean_of_each(array(values), unit)[0]


def mean_of_each(x: Floats, unit: str = "") -> list[Estimate]:
    """The means of samples x (k, n) and their intervals, in the values' unit."""
    n = x.shape[1]
    if n < 2:
        return [without_interval(value, n, unit) for value in x.sum(1).tolist()]
    caveat = caveat_of_moments(x[0]) if len(x) else None
    low, high = mean_bounds(x)
    return [Estimate(at, down, up, n, unit, caveat) for at, down, up in zip(x.mean(1).tolist(), low.tolist(), high.tolist(), strict=True)]


def ratio(above: Numbers, below: Numbers) -> Estimate:
    """Ratio of means of paired measurements (same seeds) and its interval; NaN where the mean below is 0."""
    return ratio_of_pairs([(above, below)])[0]


def ratio_of_pairs(pairs: Sequence[tuple[Numbers, Numbers]]) -> list[Estimate]:
    """:func:`ratio` of each pair of samples, whatever their numbers of values; those of as many go together."""
    if any(len(above) != len(below) for above, below in pairs):
        raise ValueError("pairs need as many values above as below")
    return by_number([(*above, *below) for above, below in pairs], lambda x: _ratios(x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 :], ratio_bounds))


def mean_ratio(above: Numbers, below: Numbers) -> Estimate:
    """Ratio of means of measurements that are not paired; n is the smaller side's. No interval where values are negative."""
    return _ratios(array(above), array(below), unpaired_bounds)[0]


def _ratios(a: Floats, b: Floats, bounds: Callable[[Floats, Floats], Bounds]) -> list[Estimate]:
    """Ratios of means of samples (k, n) and (k, m) with their intervals by `bounds`."""
    n = min(a.shape[1], b.shape[1])
    if not n:
        return [Estimate(math.nan, math.nan, math.nan, n, "1")] * len(a)
    values = [quotient(x, y) for x, y in zip(a.mean(1).tolist(), b.mean(1).tolist(), strict=True)]
    known = ~np.isnan(values) if n > 1 else np.zeros(len(a), dtype=bool)
    caveat = caveat_of_moments(a[0], b[0]) if known.any() else None
    of_each = zip(values, known.tolist(), ends(known, bounds, a, b), strict=True)
    return [Estimate(value, *interval, n, "1", caveat if is_known else None) for value, is_known, interval in of_each]


def difference(a: Numbers, b: Numbers, unit: str = "", *, paired: bool = True) -> Estimate:
    """Mean of a less mean of b and its interval, in the values' unit."""
    x, y = array(a), array(b)
    if paired and x.shape != y.shape:
        raise ValueError("pairs need as many values on both sides")
    n = min(x.shape[1], y.shape[1])
    value = float(x.mean() - y.mean()) if n else math.nan
    if n < 2:
        return without_interval(value, n, unit)
    low, high = single(paired_difference_bounds(x, y) if paired else unpaired_difference_bounds(x, y))
    return Estimate(value, low, high, n, unit, caveat_of_moments(*((x - y,) if paired else (x[0], y[0]))))


def mean_bounds(x: Floats) -> Bounds:
    """Intervals of the means of samples x (k, n)."""
    return _by_sign(_positive(x), _of_mean, _plain, x)


def ratio_bounds(a: Floats, b: Floats) -> Bounds:
    """Intervals of the ratios of means of paired samples, both (k, n)."""
    return _by_sign(_positive(a) & _positive(b), _of_ratio, _plain_ratio, a, b)


def unpaired_bounds(a: Floats, b: Floats) -> Bounds:
    """Intervals of the ratios of means of samples (k, n) and (k, m) that are not paired."""
    log = _positive(a) & _positive(b)
    sides = []
    for x in (a, b):
        low, high = _of_mean(x)
        sides.append((np.log(np.where(log, x.mean(1), 1)), np.log(np.where(log, low, 1)), np.log(np.where(log, high, 1))))
    low, high = mover(*_welch((a, b), sides, [x.var(1, ddof=1) / np.where(log, x.mean(1), 1) ** 2 / x.shape[1] for x in (a, b)]))
    none = np.where(np.all(a == 0, axis=1) & _positive(b), 0.0, math.nan)
    return np.where(log, np.exp(low), none), np.where(log, np.exp(high), none)


def paired_difference_bounds(a: Floats, b: Floats) -> Bounds:
    """Intervals of the differences of means of paired samples, both (k, n)."""
    return _plain(a - b)


def unpaired_difference_bounds(a: Floats, b: Floats) -> Bounds:
    """Intervals of the differences of means of samples (k, n) and (k, m) that are not paired."""
    sides = [(x.mean(1), *_plain(x)) for x in (a, b)]
    return mover(*_welch((a, b), sides, [x.var(1, ddof=1) / x.shape[1] for x in (a, b)]))


def mover(a: Ends, b: Ends, correlation: Floats | float = 0.0) -> Bounds:
    """Interval of a − b from the value and the ends of each (MOVER: Zou and Donner 2008); `correlation` is that of the two values."""
    (x, low_x, high_x), (y, low_y, high_y) = a, b
    down = _join(x - low_x, high_y - y, correlation)
    up = _join(high_x - x, y - low_y, correlation)
    return x - y - down, x - y + up


def _welch(samples: tuple[Floats, Floats], sides: list[Ends], variances: list[Floats]) -> tuple[Ends, Ends]:
    """Both sides' intervals narrowed by Welch's (1947) degrees of freedom: together they estimate the scatter better than each alone."""
    from tcpscape.stats.special import stdtrit

    n, m = (x.shape[1] for x in samples)
    p, q = variances
    freedom = (p + q) ** 2 / np.maximum(p**2 / (n - 1) + q**2 / (m - 1), np.finfo(float).tiny)
    quantile = stdtrit(np.clip(freedom, min(n, m) - 1, n + m - 2), (1 + CONFIDENCE) / 2)
    narrowed = []
    for x, (at, low, high) in zip(samples, sides, strict=True):
        share = np.minimum(quantile / student(x.shape[1]), 1)
        narrowed.append((at, at - share * (at - low), at + share * (high - at)))
    return narrowed[0], narrowed[1]


def _join(p: Floats, q: Floats, correlation: Floats | float) -> Floats:
    """√(p² + q² − 2·correlation·p·q); infinite where an end is unknown."""
    with np.errstate(invalid="ignore"):
        square = p * p + q * q - np.where(np.equal(correlation, 0), 0.0, 2 * np.asarray(correlation) * p * q)
    joined: Floats = np.sqrt(np.where(np.isnan(square), np.inf, np.maximum(square, 0)))
    return joined


def quotient(above: float, below: float) -> float:
    """NaN of a division by 0."""
    return above / below if below else math.nan


def _positive(x: Floats) -> Flags:
    """Which samples have no negative value and are not all 0."""
    positive: Flags = np.all(x >= 0, axis=1) & np.any(x > 0, axis=1)
    return positive


def _by_sign(positive: Flags, log: Callable[..., Bounds], plain: Callable[..., Bounds], *samples: Floats) -> Bounds:
    """The bounds of the logarithmic scale for the positive samples, the plain ones for the others."""
    low, high = np.empty(len(positive)), np.empty(len(positive))
    for which, bounds in ((positive, log), (~positive, plain)):
        if which.any():
            low[which], high[which] = bounds(*(x[which] for x in samples))
    return low, high


def _plain_ratio(a: Floats, b: Floats) -> Bounds:
    """Intervals of ratios of means of pairs on their own scale."""
    value = a.mean(1) / b.mean(1)
    down, up = _plain((a - value[:, None] * b) / b.mean(1)[:, None])
    return value + down, value + up


def _plain(x: Floats) -> Bounds:
    """Intervals of means on the values' own scale."""
    n = x.shape[1]
    at = x.mean(1)
    spread = x.std(1, ddof=1)
    d = (x - at[:, None]) / np.where(spread > 0, spread, 1)[:, None]

    def resampled(part: slice) -> Floats:
        first, second = d[part] @ counts(n), (d[part] ** 2) @ counts(n)
        return studentize(first, (second - first**2) / (n - 1))

    down, up = steps(resampled, x)
    error = spread / math.sqrt(n)
    return at - down * error, at + up * error


def _of_mean(x: Floats) -> Bounds:
    """Intervals of means on the logarithmic scale; those of samples without a positive mean have no meaning."""
    n = x.shape[1]
    at = _scale(x)
    u = x / at - 1

    def resampled(part: slice) -> Floats:
        first, second = u[part] @ counts(n), u[part] ** 2 @ counts(n)
        there = np.maximum(1 + first, _TINY)
        return studentize(np.log(there), (second - first**2) / (there**2 * (n - 1)))

    return _from_log(at, steps(resampled, x), u)


def _of_ratio(a: Floats, b: Floats) -> Bounds:
    """Intervals of ratios of means of pairs on the logarithmic scale, the standard error by linearization of ln mean(a) − ln mean(b)."""
    n = a.shape[1]
    at_a, at_b = _scale(a), _scale(b)
    u, v = a / at_a - 1, b / at_b - 1

    def resampled(part: slice) -> Floats:
        p, q, w = u[part], v[part], counts(n)
        mp, mq = p @ w, q @ w
        above, below = np.maximum(1 + mp, _TINY), np.maximum(1 + mq, _TINY)
        square = (p * p @ w - mp**2) / above**2 + (q * q @ w - mq**2) / below**2 - 2 * (p * q @ w - mp * mq) / (above * below)
        return studentize(np.log(above) - np.log(below), square / (n - 1))

    return _from_log(at_a / at_b, steps(resampled, np.minimum(a, b)), u - v)


def _scale(x: Floats) -> Floats:
    """Means (k, 1) to divide by; 1 for samples whose mean is not positive."""
    scale: Floats = np.where(_positive(x), x.mean(1), 1.0)[:, None]
    return scale


def _from_log(value: Floats, reach: Bounds, influence: Floats) -> Bounds:
    """Ends `reach` standard errors from the values (k, 1); `influence` is what each run adds to the logarithm (k, n)."""
    error = influence.std(1, ddof=1) / math.sqrt(influence.shape[1])
    return value[:, 0] * np.exp(-reach[0] * error), value[:, 0] * np.exp(reach[1] * error)


_TINY = 1e-12
"""Replaces a resampled mean of 0, which has no logarithm."""
