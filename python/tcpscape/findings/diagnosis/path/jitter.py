"""Jitter of each direction, its distribution, whether it keeps the order of packets, and its correlation in time.

With timestamps, the round trip's variation r = f + v without the queue's delay is known to the nanosecond, the one-way variations F = f − q and V
= v + q only but for the tick's rounding q. As q is independent of f and v, cov(r, F) is the variance of the forward delay and cov(r, V) that of
the reverse one: neither has the variance of the rounding in it.

Intervals, also of losses and rates, are those of correlated samples: by blocks in time, each long enough to be nearly independent of the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tcpscape.findings.diagnosis.fitted import Direction
from tcpscape.findings.diagnosis.path.bottleneck import centred_mean, windows_of
from tcpscape.findings.diagnosis.path.columns import Ints
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Flags, Floats
from tcpscape.stats.special import betaincinv, erf, gammaincinv, ndtr, stdtrit


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
    return float(stdtrit(max(1, k - 1), 0.975))


def with_interval(value: float, error: float, k: int, n: int, unit: str, least: float = 0.0) -> Estimate:
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
    low = float(betaincinv(hits + 0.5, of - hits + 0.5, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 0.5, of - hits + 0.5, 0.975))
    return Estimate(100 * hits / of, 100 * low, 100 * high, of, "%")


LEAST = 300
"""Samples below which a distribution is not named."""
LOCAL = 40
"""Samples of a window in time in which slow changes of the delay are taken off."""
FLOOR = 0.02
"""ms: variation of a path without jitter, by the hosts' own timers and rounding."""
OUTLIER = 14.0
"""Robust standard deviations beyond which a sample is none of the jitter: those of netem's Pareto distribution reach 12."""
SHAPES = {"uniform": (0.0, -1.2), "normal": (0.0, 0.0), "paretonormal": (1.36, 1.9), "pareto": (1.86, 3.2)}
"""Skewness and excess kurtosis of tc's distributions; those of the tables, cut off at 4 σ."""


DEVIATIONS = 2.5
"""Standard errors above nothing from which on a variance is there."""
LOOKED, MOST_HELD = 4_000, 2.5
"""Packets that are enough to simulate; how many times the deviation that is seen a jitter may have at the most, where packets are near each other."""
COMMON, STRONG = 0.15, 4.0
"""Correlation of delays from which on they have something in common, and standard errors that it must have."""
Order = Literal["held", "overtaken"]
"""What becomes of packets of which a later one would pass an earlier one: the later one is held behind it, or the earlier one overtaken."""
ORDERS: tuple[Order, ...] = ("held", "overtaken")


@dataclass(frozen=True, slots=True)
class Spread:
    """Variance of a delay with its standard error, ms²."""

    variance: float
    error: float
    blocks: int
    n: int

    @property
    def is_there(self) -> bool:
        """Whether it is above what a path without jitter shows, beyond chance."""
        return self.variance - DEVIATIONS * self.error > 0 and self.variance > FLOOR**2

    @property
    def most(self) -> float:
        """The largest standard deviation, ms, that its error leaves: a variance of less than nothing is noise, and bounds no better than none."""
        return math.sqrt(max(0.0, self.variance) + (student(self.blocks) * self.error if self.blocks > 1 else 0.0))

    def uncrowded(self, sent: Floats, orders: Sequence[Order], deviation: Callable[[Floats], float]) -> Spread:
        """That of each delay, where packets come closer than it reaches and one of these orders is kept (:func:`uncrowded`)."""
        seen = math.sqrt(self.variance)
        own = np.array([uncrowded(seen, sent, order, deviation) ** 2 for order in orders])
        error = math.hypot(self.error * float(own.mean()) / self.variance, float(own.max() - own.min()) / 2 / student(self.blocks))
        return Spread(float(own.mean()), error, self.blocks, self.n)

    def estimate(self, relative: float = 0.0) -> Estimate:
        """The standard deviation, ms; `relative`: half of the interval at the least, as a share."""
        return root(self.variance, self.error, self.blocks, self.n, "ms", relative)


def inliers(x: Floats) -> Flags:
    """Which samples are not outliers."""
    off = np.abs(x - np.median(x))
    return np.asarray(off <= OUTLIER * max(1.4826 * float(np.median(off)), float(np.quantile(off, 0.95)) / 2, 1e-3))


def covariance(x: Floats, y: Floats) -> Spread:
    """Covariance of two variations, each less its mean in short windows of time, so that what a queue adds slowly is not in it."""
    small = windows_of(x, x.size, LOCAL)
    products = centred_mean(x, small) * centred_mean(y, small)
    mean, error, k = mean_by_blocks(products, windows_of(x, 24, LOCAL))
    lost = x.size / max(1, x.size - int(small[-1]) - 1)  # a mean in each window
    return Spread(mean * lost, error * lost, k, x.size)


def of_instants(at: Floats, x: Floats) -> Floats:
    """Of delays in the order of sending those of the first packet of each instant: what left as one packet is delayed as one.

    :param at: times of sending, ms.
    """
    return x[np.diff(at, prepend=-np.inf) > FLOOR]


def without_jumps(s: Spread, x: Floats, tick: float) -> Spread:
    """The variance by the middle half of the differences of neighbouring packets, if it is much less: then bursts that queued are in the other.

    :param x: delays of packets of different instants (:func:`of_instants`).

    :param tick: ms of the timestamps by which `x` is rounded.
    """
    if x.size < 2:
        return s
    low, high = np.quantile(np.diff(x), (0.25, 0.75))
    other = (float(high - low) / 1.349) ** 2 / 2 - tick**2 / 12
    if other > 0.6 * s.variance:
        return s
    other = max(0.0, other)
    most = max(0.0, s.most**2 - other) / student(s.blocks)  # with its jumps it is no less
    return Spread(other, min(max(0.2 * other, tick**2 / 12 * 0.2), most), s.blocks, s.n)


RESOLVED, RESOLVED_TURNS = 0.35, 0.7
"""Ticks of a clock below which a jitter does not stand out of the rounding of its times, and of what the sender waits besides: in captures without
one 0.3 are seen of the data and up to 0.6 of turns."""


SKEWED = 40.0
"""The variance of a delay, by that of its lower half, at the most: a Pareto distribution's is 33 times as much."""


def minus(s: Spread, tick: float, bound: float = math.inf, resolved: float = RESOLVED) -> Spread:
    """Without what the rounding of a clock adds, if times fall anywhere in its ticks; as they need not, no less than a part of one is resolved.

    :param bound: the largest variance of its lower half, ms², by what no clock rounds.
    """
    return Spread(min(s.variance - tick**2 / 12, SKEWED * bound), max(s.error, min((resolved * tick) ** 2 / DEVIATIONS, bound / 2)), s.blocks, s.n)


def plus(s: Spread, t: Spread | None) -> Spread:
    """Of two delays one after the other."""
    if t is None:
        return s
    return Spread(s.variance + t.variance, math.hypot(s.error, t.error), max(2, min(s.blocks, t.blocks)), min(s.n, t.n))


APART = 0.5
"""Share of the standard deviation of one direction that the other's must surely be below, to say that the first has the jitter."""


def direction(forward: Spread, reverse: Spread, left: tuple[float, float] = (0.0, 0.0)) -> Direction | None:
    """Which direction has the jitter: one of a quarter of the other's standard deviation or less is rounding of the other.

    None where the other one is not seen, and may have half of it or more.

    :param left: ms that each may have beside what it shows.
    """
    f, v = (math.sqrt(max(0.0, s.variance)) if s.is_there else 0.0 for s in (forward, reverse))
    if not f and not v:
        return "none"
    if min(f, v) > 0.25 * max(f, v):
        return "both"
    unseen = max(left[1], reverse.most) if not v else max(left[0], forward.most) if not f else 0.0
    if unseen > APART * max(f, v):
        return None
    return "forward" if f > v else "reverse"


def shape(x: Floats) -> str | None:
    """tc's name of the distribution whose skewness and kurtosis are nearest; None of too few samples."""
    if x.size < LEAST:
        return None
    z = (x - x.mean()) / x.std()
    skew, kurtosis = float(np.mean(z**3)), float(np.mean(z**4)) - 3
    return min(SHAPES, key=lambda name: math.hypot(skew - SHAPES[name][0], (kurtosis - SHAPES[name][1]) / 2))


def order_is_kept(sent: Floats, seen: Floats, sigma: float) -> bool | None:
    """Whether packets keep their order though independent delays of this spread would change it; None where they were too far apart to tell.

    :param sent: times of successive packets where the jitter begins, ms. :param seen: the same packets where it ends.
    """
    gap = np.diff(sent)
    near = (gap >= 0) & (gap < 3 * sigma)
    if not near.any():
        return None
    expected = float(np.sum(ndtr(-gap[near] / (math.sqrt(2) * sigma))))
    swapped = int(np.sum(np.diff(seen)[near] < 0))
    if expected < 10:
        return None
    return swapped < 0.1 * expected


def correlation(at: Floats, x: Floats) -> tuple[float, float, float] | None:
    """Time constant of an exponentially decaying correlation, ms, and its interval; 0 where successive delays are independent. None of too few."""
    if x.size < 100:
        return None
    z = (x - x.mean()) / max(float(x.std()), 1e-12)
    gap = np.diff(at)
    near = gap <= np.quantile(gap, 0.9)
    rho = float(np.mean((z[:-1] * z[1:])[near]))
    error = 2 / math.sqrt(max(1, int(near.sum())))
    step = float(np.median(gap[near]))
    times = [0.0 if r < 0.05 else -step / math.log(min(r, 0.999)) for r in (rho, rho - error, rho + error)]
    return times[0], times[1], times[2]


def spread_over_ticks(stamps: Floats, tick: float) -> Floats:
    """Times of sending, ms, from clocks of whole ticks: what was sent within one is spread over it evenly."""
    _, first, count = np.unique(np.sort(stamps), return_index=True, return_counts=True)
    place = np.arange(stamps.size) - np.repeat(first, count)
    return np.asarray(np.sort(stamps) + tick * ((place + 0.5) / np.repeat(count, count) - 0.5))


def uncrowded(seen: float, sent: Floats, order: Order, deviation: Callable[[Floats], float]) -> float:
    """The standard deviation of independent delays, ms, of which so much is seen, since packets come closer than it reaches.

    Where the order is kept, a packet waits for the one before it that was late, and delays are nearly alike. Where it is not, those that were
    overtaken are not echoed, so that the early ones remain. Either way less is seen than each packet's own delay varies; both are simulated with
    these times of sending and normal delays.

    :param deviation: what was measured of the delays. :param sent: ms.
    """
    at = np.sort(sent)[:LOOKED]
    drawn = np.random.default_rng(0).standard_normal(at.size)
    tried = seen * np.geomspace(1.0, MOST_HELD, 20)
    given = np.maximum.accumulate([deviation(_delayed(at, sigma * drawn, order)) for sigma in tried])
    return float(np.interp(seen, given, tried))


def are_independent(sent: Floats, delay: Floats, sigma: float) -> bool:
    """Whether packets that are sent two to six standard deviations apart are delayed with nothing in common, but for what waits for one that is late.

    Their correlation is compared with its standard error where independent delays are held in order (Bartlett 1946, by their simulation).

    :param sent: ms. :param delay: ms. :param sigma: standard deviation of the delays, ms.
    """
    order = np.argsort(sent, kind="stable")
    at, x = sent[order][:LOOKED], delay[order][:LOOKED]
    per_sigma = max(1.0, sigma * at.size / max(float(np.ptp(at)), 1e-3))
    lags = np.unique(np.linspace(2 * per_sigma, 6 * per_sigma, 12).astype(int))
    if lags[-1] > x.size / 4:
        return True
    held = _delayed(at, sigma * np.random.default_rng(0).standard_normal(at.size), "held")
    short = np.array([_correlation(held, lag) for lag in range(1, int(2 * per_sigma) + 1)])
    error = math.sqrt((1 + 2 * float(np.sum(short**2))) / x.size)
    return max(abs(_correlation(x, int(lag))) for lag in lags) < max(COMMON, STRONG * error)


def _correlation(x: Floats, lag: int) -> float:
    """The correlation of values so many places apart."""
    z = (x - x.mean()) / max(float(x.std()), 1e-12)
    return float(np.mean(z[lag:] * z[:-lag]))


def _delayed(sent: Floats, delay: Floats, order: Order) -> Floats:
    """The delays that are seen of these ones."""
    came = sent + delay
    if order == "held":
        return np.asarray(np.maximum.accumulate(came) - sent)
    by_time = np.argsort(came, kind="stable")
    return np.asarray(delay[by_time][np.maximum.accumulate(by_time) == by_time])


def local_deviation(x: Floats) -> float:
    """The standard deviation without slow changes (`covariance`)."""
    return math.sqrt(max(0.0, covariance(x, x).variance))


def lower_deviation(x: Floats) -> float:
    """The standard deviation by the values below the median, which waiting does not lengthen."""
    below = x - np.median(x)
    return math.sqrt(float(np.mean(below[below <= 0] ** 2)))


def apart(at: Floats, x: Floats, by: float) -> Floats:
    """Of values at these times the first and each that comes at least `by` after the one before."""
    order = np.argsort(at, kind="stable")
    at, x = at[order], x[order]
    kept: list[int] = []
    place = 0
    while place < at.size:
        kept.append(place)
        place = max(place + 1, int(np.searchsorted(at, at[place] + by)))
    return x[kept]


def largest_deviation(x: Floats) -> float:
    """The largest standard deviation that normal values like these can have, at 95 % (χ²): of three, 4.4 times what they show."""
    k = x.size - 1
    return float(np.std(x, ddof=1)) * math.sqrt(k / (2 * float(gammaincinv(k / 2, 0.05))))


def reach(largest: float) -> float:
    """How far a delay may be from its mean, ms, at 95 %, whose standard deviation is any up to `largest`, each order of magnitude alike."""
    deviations = np.geomspace(min(FLOOR, largest), largest, 64) if largest > 0 else np.zeros(1)
    tried = np.linspace(0, 1.96 * largest, 197)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.nan_to_num(erf(tried[:, None] / (deviations * math.sqrt(2))), nan=1.0).mean(axis=1)
    return float(np.interp(0.95, inside, tried))
