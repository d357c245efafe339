"""The win probability: how often a measurement of one side is above one of the other, ties counted as halves.

Of pairs it is a share, with the mid-P interval of a binomial (Lancaster 1961). Of measurements that are not paired it is what Mann and Whitney's U
estimates, with the interval of Brunner and Munzel (2000) on the logit scale joined with Newcombe's (2006, method 5), which still holds where
all measurements of one side are above all of the other.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tcpscape.stats.estimate import CONFIDENCE, TAIL, Bounds, Estimate, Floats, Numbers, array, single

FEW = 5
"""Measurements of a side below which both intervals were measured to cover less than they say."""


def win_probability(a: Numbers, b: Numbers, *, paired: bool = True) -> Estimate:
    """P(a > b) + P(a = b)/2 and its interval; n is that of the pairs, or of the smaller side."""
    x, y = array(a), array(b)
    if paired and x.shape != y.shape:
        raise ValueError("pairs need as many values on both sides")
    n = min(x.shape[1], y.shape[1])
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, "1")
    value = float(_wins(x, y, paired).mean())
    if n < 2:
        return Estimate(value, math.nan, math.nan, n, "1")
    low, high = single(paired_bounds(x, y) if paired else apart_bounds(x, y))
    return Estimate(value, low, high, n, "1", f"{n} values: few for a win probability" if n < FEW and not paired else "")


def paired_bounds(a: Floats, b: Floats) -> Bounds:
    """Intervals of the win probability of pairs, both (k, n): mid-P, the mean of two Clopper–Pearson tails."""
    n = a.shape[1]
    won = (n * _wins(a, b, True).mean(1)).reshape(-1)
    table = np.array([[_mid_p(half / 2, n), 1 - _mid_p(n - half / 2, n)] for half in range(2 * n + 1)])
    found = table[np.rint(2 * won).astype(int)]
    return found[:, 0], found[:, 1]


def apart_bounds(a: Floats, b: Floats) -> Bounds:
    """Intervals of the win probability of samples (k, n) and (k, m) that are not paired."""
    low, high = _brunner_munzel(a, b)
    under, over = _newcombe(_wins(a, b, False).mean((1, 2)), a.shape[1], b.shape[1])
    return np.minimum(low, under), np.maximum(high, over)


def _wins(a: Floats, b: Floats, paired: bool) -> Floats:
    x, y = (a, b) if paired else (a[:, :, None], b[:, None, :])
    found: Floats = (x > y) + 0.5 * (x == y)
    return found


@lru_cache(maxsize=4096)
def _mid_p(won: float, n: int) -> float:
    """The lower end for `won` of n: where winning more than that, and half of winning that, have the tail's probability."""
    from scipy.optimize import brentq
    from scipy.special import betainc

    if won <= 0:
        return 0.0

    def above(p: float) -> float:
        more = float(betainc(won + 1, n - won, p)) if won < n else 0.0
        return (float(betainc(won, n - won + 1, p)) + more) / 2 - TAIL

    return float(brentq(above, 0.0, 1.0))


def _brunner_munzel(a: Floats, b: Floats) -> Bounds:
    """From the placements of each side's values among the other's; without width where all are alike."""
    from scipy.stats import t

    wins = _wins(a, b, False)
    n, m = wins.shape[1:]
    part_a, part_b = wins.mean(2).var(1, ddof=1) / n, wins.mean(1).var(1, ddof=1) / m
    variance = part_a + part_b
    freedom = variance**2 / np.maximum(part_a**2 / (n - 1) + part_b**2 / (m - 1), _TINY)
    quantile = t.ppf((1 + CONFIDENCE) / 2, np.clip(freedom, min(n, m) - 1, n + m - 2))
    share = np.clip(wins.mean((1, 2)), 0.5 / (n * m), 1 - 0.5 / (n * m))
    logit, reach = np.log(share / (1 - share)), quantile * np.sqrt(variance) / (share * (1 - share))
    return 1 / (1 + np.exp(reach - logit)), 1 / (1 + np.exp(-reach - logit))


def _newcombe(share: Floats, n: int, m: int) -> Bounds:
    """All probabilities that are a normal quantile or less from the share, their variance taken as for exponential distributions."""
    from scipy.stats import norm

    grid = np.linspace(0, 1, _GRID)
    effective = (n + m) / 2 - 1
    variance = grid * (1 - grid) * (1 + effective * ((1 - grid) / (2 - grid) + grid / (1 + grid))) / (n * m)
    reach = float(norm.ppf((1 + CONFIDENCE) / 2)) * np.sqrt(variance)
    low = grid[np.searchsorted(grid + reach, share - _TINY)]
    high = 1 - grid[np.searchsorted(grid + reach, 1 - share - _TINY)]
    return low, high


_GRID = 2001
"""Probabilities among which Newcombe's ends are looked for: steps of 0.05 %."""
_TINY = 1e-12
"""Rounding."""
