"""How many measurements an answer needs."""

from __future__ import annotations

import math

from tcpscape.stats.estimate import Estimate, Numbers
from tcpscape.stats.spread import cv


def runs_needed(cv: float, precision: float = 0.10, confidence: float = 0.95) -> int:
    """Measurements for the mean's interval to be ± `precision` (fraction), given the coefficient of variation `cv` (fraction).

    n = (t(n−1) · cv / precision)², solved for n; at least 2, because one measurement has no interval.
    """
    from scipy.stats import t

    if not math.isfinite(cv) or cv <= 0:
        return 2
    low, high = 2, 2
    while _half_width(high, cv, float(t.ppf((1 + confidence) / 2, high - 1))) > precision:
        low, high = high, high * 2
        if high > 10**9:
            return high
    while low < high:
        mid = (low + high) // 2
        if _half_width(mid, cv, float(t.ppf((1 + confidence) / 2, mid - 1))) > precision:
            low = mid + 1
        else:
            high = mid
    return high


def _half_width(n: int, cv: float, quantile: float) -> float:
    return quantile * cv / math.sqrt(n)


def runs_needed_from(values: Numbers, precision: float = 0.10) -> Estimate:
    """Measurements for the mean's interval to be ± `precision` (fraction), from measured values: that of their CV, and of its interval's ends.

    So wide as the CV is uncertain: few runs of a bimodal cell say little about how many it needs. The value is NaN where the CV is.
    """
    spread = cv(values)
    if spread.n < 2 or not math.isfinite(spread.value):
        return Estimate(math.nan, math.nan, math.nan, spread.n, "runs", spread.caveat)
    needed = [float(runs_needed(x, precision)) if math.isfinite(x) else math.nan for x in (spread.value, spread.low, spread.high)]
    return Estimate(needed[0], needed[1], needed[2], spread.n, "runs", spread.caveat)
