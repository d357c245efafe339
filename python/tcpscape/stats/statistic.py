"""Statistics over the runs of one condition, by name: how each is computed, its unit, and its standard error.

A :class:`Statistic` is what tables, claims and checks call `median`, `cv` or `p95`. Other modules look one up by its name and ask it, instead
of comparing names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tcpscape.stats.estimate import Estimate, Numbers
from tcpscape.stats.means import mean
from tcpscape.stats.order import median, quantile
from tcpscape.stats.spread import cv


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number computed from the values that several runs of one condition have of a metric."""

    name: str
    of: Callable[[Numbers, str], Estimate]
    """(values, their unit) → the estimate; its ends are NaN where the statistic has no interval."""
    title: str = ""
    """How headings call it; empty is the name."""
    own_unit: str | None = None
    """Its unit where that is not the values' own: `1` of a CV, empty of a number of runs."""
    end: Literal["", "low", "high"] = ""
    """Which end of the median's interval it is, which a single value has not; empty for all others."""

    @property
    def heading(self) -> str:
        """How headings call it: `median`, `CV`."""
        return self.title or self.name

    @property
    def fraction(self) -> bool:
        """Whether it is a fraction whatever the unit of the values, so that tables show it in per cent."""
        return self.own_unit == "1"

    def unit_of(self, unit: str) -> str:
        """The statistic's unit for values in `unit`."""
        return unit if self.own_unit is None else self.own_unit


def find(name: str) -> Statistic | None:
    """The statistic called `name`: one of :data:`STATISTICS`, or a percentile from `p1` to `p99`; None where there is none."""
    if percentile := _PERCENTILE.fullmatch(name):
        q = int(percentile[1]) / 100
        return Statistic(name, lambda values, unit: quantile(values, q, unit))
    return STATISTICS.get(name)


def error_of_mean(cv: float, n: float) -> float:
    """Relative standard error of the mean of n values whose coefficient of variation is `cv`: CV/√n."""
    return cv / math.sqrt(n)


def error_of_cv(cv: float, n: float) -> float:
    """Relative standard error of the coefficient of variation of n normal values, √((1 + 2·CV²)/2n) (Kendall and Stuart, §10.5)."""
    return math.sqrt((1 + 2 * cv**2) / (2 * n))


def _plain(value: Callable[[Sequence[float]], float]) -> Callable[[Numbers, str], Estimate]:
    """A statistic without an interval."""
    return lambda values, unit: Estimate(value(list(values)), math.nan, math.nan, len(values), unit)


_PERCENTILE = re.compile(r"p([1-9]\d?)")
STATISTICS: Mapping[str, Statistic] = {
    s.name: s
    for s in (
        Statistic("median", median),
        Statistic("mean", mean),
        Statistic("min", _plain(min)),
        Statistic("max", _plain(max)),
        Statistic("cv", lambda values, _: cv(values), "CV", own_unit="1"),
        Statistic("n", lambda values, _: Estimate(float(len(values)), math.nan, math.nan, len(values)), own_unit=""),
        Statistic("low", _plain(lambda values: median(values).low), end="low"),
        Statistic("high", _plain(lambda values: median(values).high), end="high"),
    )
}
"""Every statistic by name, percentiles excepted. `low` and `high` are the ends of the median's interval."""
