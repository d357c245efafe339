"""The coefficient of variation with its interval, and the number of runs that a mean needs, which follows from it.

The interval is made on the logarithmic scale with a standard error by linearization: that of ln s with the kurtosis about a trimmed mean
(Bonett 2006), and the mean's part. The ends are the wider of that and of the studentized bootstrap, capped: the first is better for few values
and for skewed ones, the second for two modes. No method covers a heavy tail that has not been seen: docs/models/methods/statistics.md.
"""

from __future__ import annotations

import math

import numpy as np

from tcpscape.stats.estimate import (
    CONFIDENCE,
    LEAST,
    MOST,
    TAIL,
    Bounds,
    Caveat,
    Estimate,
    Floats,
    Numbers,
    Weakness,
    array,
    caveats_of_spread,
    counts,
    ends,
    quantiles,
    student,
    studentize,
)

QUANTILE = 2.2
"""Largest quantile for the linearized standard error: Student's for few values is too wide for its own correction."""
CAP = 1.5
"""Largest studentized quantile, in Student's quantiles."""


def cv(values: Numbers) -> Estimate:
    """The coefficient of variation (sample sd, n − 1, over mean), as a fraction, and its interval; 0 where everything is 0."""
    return cv_of_each(array(values))[0]


def cv_of_each(x: Floats) -> list[Estimate]:
    """The coefficients of variation of samples x (k, n), as fractions, and their intervals; 0 where everything is 0."""
    n = x.shape[1]
    if n < 2:
        return [Estimate(math.nan, math.nan, math.nan, n, "1")] * len(x)
    at, spread = x.mean(1), x.std(1, ddof=1)
    flat = spread <= _ROUNDING * np.abs(at)
    negative = ~flat & (at <= 0)
    shapes = zip(at.tolist(), spread.tolist(), flat.tolist(), strict=True)
    values = [0.0 if is_flat else deviation / mean if mean else math.inf for mean, deviation, is_flat in shapes]
    low_high = [(0.0, 0.0) if is_flat else interval for is_flat, interval in zip(flat.tolist(), ends(~flat & ~negative, cv_bounds, x), strict=True)]
    caveats = [
        Caveat(Weakness.MEAN_NOT_POSITIVE, n) if is_negative else caveat
        for is_negative, caveat in zip(negative.tolist(), caveats_of_spread(x), strict=True)
    ]
    return [Estimate(value, *interval, n, "1", caveat) for value, interval, caveat in zip(values, low_high, caveats, strict=True)]


def runs_needed(cv: float, precision: float = 0.10, confidence: float = 0.95) -> int:
    """Measurements for the mean's interval to be ± `precision` (fraction), given the coefficient of variation `cv` (fraction).

    n = (t(n−1) · cv / precision)², solved for n; at least 2, because one measurement has no interval.
    """

    def wide(n: int) -> bool:
        return _quantile(n, confidence) * cv / math.sqrt(n) > precision

    if not math.isfinite(cv) or cv <= 0:
        return 2
    low, high = 2, 2
    while wide(high):
        low, high = high, high * 2
        if high > _MOST_RUNS:
            return high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if wide(middle) else (low, middle)
    return high


def _quantile(n: int, confidence: float) -> float:
    """Quantile of Student's t for an interval of n values with this confidence."""
    if confidence == CONFIDENCE:
        return student(n)
    from tcpscape.stats.special import stdtrit

    return float(stdtrit(n - 1, (1 + confidence) / 2))


def runs_needed_from(values: Numbers, precision: float = 0.10) -> Estimate:
    """Measurements for the mean's interval to be ± `precision` (fraction), from measured values: for their CV, and for its interval's ends.

    The interval is as wide as the CV is uncertain: few runs of a bimodal cell say little about how many it needs. The value is NaN where the
    CV is.
    """
    spread = cv(values)
    if spread.n < 2 or not math.isfinite(spread.value):
        return Estimate(math.nan, math.nan, math.nan, spread.n, "runs", spread.caveat)
    needed = [float(runs_needed(x, precision)) if math.isfinite(x) else math.nan for x in (spread.value, spread.low, spread.high)]
    return Estimate(needed[0], needed[1], needed[2], spread.n, "runs", spread.caveat)


def cv_bounds(x: Floats) -> Bounds:
    """Intervals of the CVs of samples x (k, n) that have spread and a positive mean."""
    n = x.shape[1]
    u = x / x.mean(1)[:, None] - 1
    value = np.log(u.std(1, ddof=1))
    if n < LEAST:
        return _of_normal(value, n)
    low, high = _by_kurtosis(u, value)
    if n > MOST:
        return np.exp(low), np.exp(high)
    error = _error(1.0, *(np.mean(u**k, axis=1) for k in (2, 3, 4))) / math.sqrt(n)
    cap = CAP * student(n)
    under, over = (np.clip(q, -cap, cap) for q in quantiles(lambda part: _resampled(u[part], value[part]), x))
    return np.exp(np.minimum(low, value - over * error)), np.exp(np.maximum(high, value - under * error))


def _of_normal(value: Floats, n: int) -> Bounds:
    """For fewer values than moments need: the interval of a normal sample's standard deviation."""
    from tcpscape.stats.special import chdtri

    down, up = (0.5 * math.log((n - 1) / float(chdtri(n - 1, 1 - q))) for q in (1 - TAIL, TAIL))
    return np.exp(value + down), np.exp(value + up)


def _by_kurtosis(u: Floats, value: Floats) -> Bounds:
    """Bonett's interval of ln s, with the variance of ln mean and their covariance added."""
    n = u.shape[1]
    cut = int(min(0.5 / math.sqrt(max(n - 4, 1)), 0.49) * n)
    middle = np.partition(u, (cut, n - cut - 1), axis=1)[:, cut : n - cut].mean(axis=1)
    second, third = np.mean(u**2, axis=1), np.mean(u**3, axis=1)
    kurtosis = np.mean((u - middle[:, None]) ** 4, axis=1) / second**2
    variance = (kurtosis - (n - 3) / n) / (4 * (n - 1)) + np.maximum(second - third / second, -1) / n
    quantile = min(student(n), QUANTILE)
    error, centre = np.sqrt(np.maximum(variance, 0)), value + 0.5 * math.log(n / (n - quantile))
    return centre - quantile * error, centre + quantile * error


def _resampled(u: Floats, value: Floats) -> Floats:
    """Studentized ln CV of the resamples of samples around 0, each divided by its mean."""
    n = u.shape[1]
    m1, m2, m3, m4 = (u**k @ counts(n) for k in (1, 2, 3, 4))
    square = m1 * m1
    second = m2 - square
    flat = (second <= _FLAT * np.mean(u**2, axis=1)[:, None]) | (m1 <= -1)
    has_flat = flat.any()
    second = np.where(flat, 1.0, second) if has_flat else second
    third, fourth = m3 - m1 * (3 * m2 - 2 * square), m4 - 4 * m1 * m3 + 3 * square * (2 * m2 - square)
    at = np.where(flat, 1.0, 1 + m1) if has_flat else 1 + m1
    moved = 0.5 * np.log(second * n / (n - 1)) - np.log(at) - value[:, None]
    studentized = studentize(moved, _error(at, second, third, fourth) ** 2 / n)
    return np.where(flat, -np.inf, studentized) if has_flat else studentized


def _error(at: Floats | float, second: Floats, third: Floats, fourth: Floats) -> Floats:
    """Standard deviation of a value's influence on ln CV, from the mean and the central moments."""
    error: Floats = np.sqrt(np.maximum((fourth / second**2 - 1) / 4 - third / (second * at) + second / np.square(at), 0))
    return error


_MOST_RUNS = 10**9
"""Runs at which the search for what is needed ends."""
_ROUNDING = 1e-12
"""Standard deviation as a share of the mean up to which it is rounding."""
_FLAT = 1e-12
"""Share of the sample's variance below which a resample has none."""
