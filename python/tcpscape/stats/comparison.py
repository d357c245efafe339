"""The comparison of two results: ratio, difference, win probability, and whether they differ at all; shares of runs.

Runs of the same seeds meet the same losses and jitter (common random numbers): where they are compared as pairs, what both have in common cancels.

The win probability is the probability that a measurement of one side is above one of the other, ties counted as halves.

Of pairs it is a share, with the mid-P interval of a binomial (Lancaster 1961). Of measurements that are not paired it is what Mann and Whitney's U
estimates. Its interval is a score interval: all probabilities from which the share is no farther than their standard errors, which have
Newcombe's form (2006, method 5), scaled up to Brunner and Munzel's (2000) observed standard error and Student's quantile where that is
larger. It holds for unlike spreads, and where all measurements of one side are above all of the other.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tcpscape.stats.estimate import CONFIDENCE, NORMAL, TAIL, Bounds, Caveat, Estimate, Floats, Numbers, Weakness, array, single
from tcpscape.stats.means import difference, mean_ratio, ratio
from tcpscape.stats.order import median_ratio

ALIKE = 0.05
"""Two results are called alike if the whole interval of their ratio is within this share of 1."""
MOST_RUNS = 1000
"""Largest number of missing runs that is given."""
FEW = 5
"""Fewest measurements of a side whose interval covers 95 %: that of 3 normal values a side was measured to cover 89 %."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result A compared with result B: each answer with its interval."""

    ratio: Estimate
    """Mean of A over mean of B."""
    median_ratio: Estimate
    """Median of A over median of B."""
    difference: Estimate
    """Mean of A less mean of B, in the values' unit."""
    win: Estimate
    """P(a > b), ties counted as halves: of the pairs, or of any measurement of A against any of B."""
    paired: bool

    @property
    def differs(self) -> bool:
        """The verdict: whether the interval of the ratio of means leaves out 1 (of their difference, 0, where there is no ratio)."""
        return self.difference.excludes(0) if math.isnan(self.ratio.low) else self.ratio.excludes(1)

    @property
    def alike(self) -> bool:
        """Whether the ratio of means is surely within ± 5 %. Neither alike nor different is undecided."""
        return is_alike(self.ratio)

    @property
    def undecided(self) -> bool:
        """Whether this number of measurements decides neither."""
        return not (self.differs or self.alike)

    @property
    def caveat(self) -> Caveat | None:
        """What weakens the answers."""
        return self.ratio.caveat or self.difference.caveat or self.win.caveat


def compare(a: Numbers, b: Numbers, *, paired: bool = True, unit: str = "") -> Comparison:
    """Compares two sets of measurements; `paired`: a[i] and b[i] are of the same seed, so that both sets are equally long."""
    return Comparison(
        ratio=ratio(a, b) if paired else mean_ratio(a, b),
        median_ratio=median_ratio(a, b, paired=paired),
        difference=difference(a, b, unit, paired=paired),
        win=win_probability(a, b, paired=paired),
        paired=paired,
    )


def is_alike(ratio: Estimate) -> bool:
    """Whether a ratio is surely within :data:`ALIKE` of 1."""
    return ratio.low >= 1 - ALIKE and ratio.high <= 1 + ALIKE


def runs_missing(gain: Estimate, alike: float | None = None) -> int:
    """Further runs of each side after which a comparison of paired or of separate runs will probably be decided; 0 where it is.

    Decided is a ratio that leaves out 1, or lies within :data:`ALIKE` of it; with `alike`, a difference that leaves out 0, or lies within `alike` of
    it. Intervals shrink with the root of the number of runs, and the value is taken to stay where it is. In simulations of pairs that differ by 3 to
    50 %, 63 to 88 % were decided after so many; of equals, a fifth. At most :data:`MOST_RUNS`, which stands for that many or more.
    """
    ends = (gain.value, gain.low, gain.high)
    if alike is None:
        ends, room = (_log(ends[0]), _log(ends[1]), _log(ends[2])), (math.log1p(-ALIKE), math.log1p(ALIKE))
    else:
        room = (-alike, alike)
    value, low, high = ends
    if not all(map(math.isfinite, ends)):
        return max(1, FEW - gain.n)
    if low > 0 or high < 0 or (low >= room[0] and high <= room[1]):
        return 0
    apart = (value - low) / value if value > 0 else (value - high) / value if value < 0 else math.inf  # width over what may differ
    same = max(high - value, value - low) / (room[1] - abs(value)) if abs(value) < room[1] else math.inf
    needed = gain.n * min(apart, same) ** 2
    return max(1, math.ceil(needed) - gain.n) if needed < MOST_RUNS else MOST_RUNS


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan


def win_probability(a: Numbers, b: Numbers, *, paired: bool = True) -> Estimate:
    """P(a > b) + P(a = b)/2 and its interval; n is that of the pairs, or of the smaller side. NaN where a measurement is not known."""
    x, y = array(a), array(b)
    if paired and x.shape != y.shape:
        raise ValueError("pairs need as many values on both sides")
    n = min(x.shape[1], y.shape[1])
    if n == 0 or np.isnan(x).any() or np.isnan(y).any():
        return Estimate(math.nan, math.nan, math.nan, n, "1")
    value = float(_wins(x, y, paired).mean())
    if n < 2:
        return Estimate(value, math.nan, math.nan, n, "1")
    low, high = single(paired_bounds(x, y) if paired else unpaired_bounds(x, y))
    return Estimate(value, low, high, n, "1", Caveat(Weakness.FEW_PAIRS, n) if n < FEW and not paired else None)


def paired_bounds(a: Floats, b: Floats) -> Bounds:
    """Intervals of the win probability of pairs, both (k, n): mid-P, the mean of two Clopper–Pearson tails."""
    n = a.shape[1]
    halves, which = np.unique(np.rint(2 * _wins(a, b, True).sum(1)), return_inverse=True)
    bounds = np.array([share_bounds(float(half) / 2, n) for half in halves])[which]
    return bounds[:, 0], bounds[:, 1]


def share_bounds(won: float, n: int) -> tuple[float, float]:
    """Interval of a share of which `won` of n were seen: mid-P."""
    return _mid_p(won, n), 1 - _mid_p(n - won, n)


def unpaired_bounds(a: Floats, b: Floats) -> Bounds:
    """Intervals of the win probability of samples (k, n) and (k, m) that are not paired."""
    n, m = a.shape[1], b.shape[1]
    wins = _wins(a, b, False)
    share = wins.mean((1, 2))
    inside = np.clip(share, 0.5 / (n * m), 1 - 0.5 / (n * m))
    factor = np.maximum(NORMAL, _observed(wins) / _modelled(inside, n, m))
    return _lowest(share, factor, n, m), 1 - _lowest(1 - share, factor, n, m)


def share(k: int, n: int) -> Estimate:
    """The share `k` of `n` with Wilson's interval (1927), which holds at 0 and at n too."""
    if not n:
        return Estimate(math.nan, math.nan, math.nan, 0, "1")
    square = NORMAL * NORMAL
    middle, half = (k + square / 2) / (n + square), NORMAL * math.sqrt(k * (n - k) / n + square / 4) / (n + square)
    return Estimate(k / n, middle - half if k else 0.0, middle + half if k < n else 1.0, n, "1")


def _wins(a: Floats, b: Floats, paired: bool) -> Floats:
    """1 for a win of a, 0.5 for a tie, 0 for a loss: (k, n) of pairs, else (k, n, m)."""
    x, y = (a, b) if paired else (a[:, :, None], b[:, None, :])
    wins: Floats = (x > y) + 0.5 * (x == y)
    return wins


@lru_cache(maxsize=4096)
def _mid_p(won: float, n: int) -> float:
    """The lower end for `won` of n: where winning more than that, and half of winning that, have the tail's probability."""
    from tcpscape.stats.special import betainc

    if won <= 0:
        return 0.0

    def above(step: int) -> float:
        p = step / _STEPS
        higher = float(betainc(won + 1, n - won, p)) if won < n else 0.0
        return (float(betainc(won, n - won + 1, p)) + higher) / 2

    return bisect_left(range(_STEPS), TAIL, key=above) / _STEPS


def _observed(wins: Floats) -> Floats:
    """Standard error of the share of wins times its quantile, from the placements of each side's values among the other's."""
    from tcpscape.stats.special import stdtrit

    n, m = wins.shape[1:]
    part_a, part_b = wins.mean(2).var(1, ddof=1) / n, wins.mean(1).var(1, ddof=1) / m
    freedom = (part_a + part_b) ** 2 / np.maximum(part_a**2 / (n - 1) + part_b**2 / (m - 1), _ROUNDING)
    quantile = stdtrit(np.clip(freedom, min(n, m) - 1, n + m - 2), (1 + CONFIDENCE) / 2)
    error: Floats = quantile * np.sqrt(part_a + part_b)
    return error


def _modelled(theta: Floats, n: int, m: int) -> Floats:
    """Newcombe's standard error where the probability is theta: as between exponential distributions."""
    effective = (n + m) / 2 - 1
    error: Floats = np.sqrt(theta * (1 - theta) * (1 + effective * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / (n * m))
    return error


def _lowest(share: Floats, factor: Floats, n: int, m: int) -> Floats:
    """The smallest probability that is no more than `factor` of its standard errors below the share, by bisection."""
    low, high = np.zeros_like(share), share.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        outside = share - middle > factor * _modelled(middle, n, m)
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    return np.asarray(high)


_HALVINGS = 40
"""Halvings of [0, 1] for an end to 1e-12."""
_STEPS = 1 << _HALVINGS
"""Values in [0, 1] between which an end is looked for."""
_ROUNDING = 1e-12
"""Replaces a variance of 0 in a denominator."""
