"""How many measurements an answer needs."""

from __future__ import annotations

import math


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
