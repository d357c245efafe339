"""Estimates with bootstrap intervals (BCa: bias-corrected and accelerated, Efron 1987), deterministic: fixed resampling seed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = Sequence[float] | NDArray[np.float64]
CONFIDENCE = 0.95
"""Share of intervals that should cover the truth."""
RESAMPLES = 2000
"""Bootstrap resamples: enough for two digits of an interval's ends."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, its 95 % interval, how many measurements it stands on and its unit."""

    value: float
    low: float
    high: float
    n: int
    unit: str = ""

    def text(self, digits: int = 3) -> str:
        """`12.3 [11.8, 12.9]`."""
        if self.n < 2 or math.isnan(self.low):
            return number(self.value, digits)
        return f"{number(self.value, digits)} [{number(self.low, digits)}, {number(self.high, digits)}]"

    def excludes(self, value: float) -> bool:
        """Whether the interval does not hold `value`."""
        return self.n > 1 and not (self.low <= value <= self.high)


def number(value: float, digits: int = 3) -> str:
    """`digits` significant digits, no exponent."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(places, 6)}f}"


def _cv(x: NDArray[np.float64], axis: int = -1) -> Any:
    """Sample standard deviation / mean; 0 where everything is 0."""
    mean_ = np.mean(x, axis=axis)
    return np.std(x, axis=axis, ddof=1) / np.where(mean_ == 0, np.inf, mean_)


def _ratio(a: NDArray[np.float64], b: NDArray[np.float64], axis: int = -1) -> Any:
    """Ratio of means."""
    below = np.mean(b, axis=axis)
    return np.mean(a, axis=axis) / np.where(below == 0, np.nan, below)


def _median_ratio(a: NDArray[np.float64], b: NDArray[np.float64], axis: int = -1) -> Any:
    """Ratio of medians."""
    below = np.median(b, axis=axis)
    return np.median(a, axis=axis) / np.where(below == 0, np.nan, below)


def _estimate(samples: tuple[Numbers, ...], statistic: Callable[..., Any], unit: str, paired: bool = True) -> Estimate:
    """`paired`: several samples are resampled together; otherwise each by itself, and n is that of the smallest."""
    arrays = tuple(np.asarray(s, dtype=float) for s in samples)
    n = min(len(a) for a in arrays)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, unit)
    if n == 1:
        value = float("nan") if statistic is _cv else float(statistic(*arrays))
        return Estimate(value, math.nan, math.nan, 1, unit)
    value = float(statistic(*arrays))
    if all(np.ptp(a) == 0 for a in arrays):
        return Estimate(value, value, value, n, unit)
    low, high = _interval(arrays, statistic, n, paired and len(arrays) > 1)
    return Estimate(value, low, high, n, unit)


def _interval(arrays: tuple[NDArray[np.float64], ...], statistic: Callable[..., Any], n: int, paired: bool) -> tuple[float, float]:
    """BCa, or the percentile interval where BCa does not exist (few distinct values)."""
    from scipy.stats import bootstrap

    for method in ("BCa", "percentile"):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            got = bootstrap(
                arrays, statistic, paired=paired, vectorized=True, n_resamples=RESAMPLES, confidence_level=CONFIDENCE,
                method=method, rng=np.random.default_rng(n),
            ).confidence_interval
        if math.isfinite(got.low) and math.isfinite(got.high):
            return float(got.low), float(got.high)
    return math.nan, math.nan


def median(values: Numbers, unit: str = "") -> Estimate:
    """The median and its interval."""
    return _estimate((values,), np.median, unit)


def mean(values: Numbers, unit: str = "") -> Estimate:
    """The mean and its interval."""
    return _estimate((values,), np.mean, unit)


def cv(values: Numbers) -> Estimate:
    """The coefficient of variation (sample sd, n − 1, over mean), as a fraction, and its interval."""
    return _estimate((values,), _cv, "1")


def ratio(above: Numbers, below: Numbers) -> Estimate:
    """Ratio of means of paired measurements (same seeds), and its interval from resampled pairs."""
    if len(above) != len(below):
        raise ValueError("pairs need as many values above as below")
    return _estimate((above, below), _ratio, "1")


def median_ratio(above: Numbers, below: Numbers) -> Estimate:
    """Ratio of medians of measurements that are not paired, and its interval from each side resampled by itself; n is the smaller side's."""
    return _estimate((above, below), _median_ratio, "1", paired=False)


def mean_ratio(above: Numbers, below: Numbers) -> Estimate:
    """Ratio of means of measurements that are not paired, and its interval from each side resampled by itself; n is the smaller side's."""
    return _estimate((above, below), _ratio, "1", paired=False)
