"""The shape of a distribution: one mode, or two with the share, the place and the spread of each.

Hartigan's dip test (1985, package diptest) tests whether there is one mode. Where it rejects that, two normal components are fitted by
scikit-learn, on the values' own scale or on the logarithmic one, whichever has the smaller BIC. The test is conservative: it detects two modes with
shares 0.3 and 0.7 in half of the samples of 10 runs and in nearly all of 40, and a mode with a share of 0.1 hardly ever. One mode is
the answer wherever the test does not reject it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tcpscape.stats.estimate import TAIL, Estimate, Floats, Numbers
from tcpscape.stats.mixture import Mixture, fit, resampled
from tcpscape.stats.order import median
from tcpscape.stats.resample import student
from tcpscape.stats.wins import share_bounds

REJECTS = 0.05
"""p value of the dip test below which one mode is rejected."""
LEAST = 5
"""Fewest values for the dip test."""
ROUNDING = 1e-9
"""Spread of values over their size up to which they are equal: sums of doubles in another order differ by about 1e-15."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One mode: its share of the runs, its location (the median) and its standard deviation, both in the values' unit."""

    share: Estimate
    location: Estimate
    spread: float


@dataclass(frozen=True, slots=True)
class Shape:
    """The modes, and the p value of the test for one mode."""

    p: float
    """p value of one mode (dip test); NaN for fewer than 5 values."""
    modes: tuple[Mode, ...]
    """The lowest first."""

    @property
    def bimodal(self) -> bool:
        """Whether one mode is rejected."""
        return len(self.modes) > 1


def shape(values: Numbers, unit: str = "") -> Shape:
    """The shape of the values; no modes for no values, or where one is not known (NaN)."""
    x = np.asarray(values, dtype=float)
    if len(x) == 0 or np.isnan(x).any():
        return Shape(math.nan, ())
    p = dip(x)
    if p < REJECTS:
        return Shape(p, _modes(x, fit(x), unit))
    n = len(x)
    return Shape(p, (Mode(Estimate(1.0, math.nan, math.nan, n, "1"), median(x, unit), float(x.std(ddof=1)) if n > 1 else math.nan),))


def dip(x: Floats) -> float:
    """p value of one mode. Counts are spread over their steps first: every value of a lattice would be a mode."""
    if len(x) < LEAST:
        return math.nan
    if np.ptp(x) <= ROUNDING * np.abs(x).max():
        return 1.0
    from diptest import diptest

    step = lattice(x)
    moved = x + step * (np.random.default_rng(len(x)).random(len(x)) - 0.5) if step else x
    return float(diptest(moved)[1])


def lattice(x: Floats) -> float:
    """The step of values that are all multiples of one step apart and often equal, such as counts; 0 for others."""
    distinct = np.unique(x)
    if not 3 <= len(distinct) < len(x):
        return 0.0
    gaps = np.diff(distinct)
    step = float(gaps.min())
    return step if np.allclose(gaps / step, np.rint(gaps / step), atol=_EXACT) else 0.0


_EXACT = 1e-6
"""Largest deviation from a multiple of a step."""


def _modes(x: Floats, mixture: Mixture, unit: str) -> tuple[Mode, ...]:
    """Intervals of the share: the wider of the bootstrap's and the binomial one. Of the location: Student's, by the bootstrap's standard error."""
    n = len(x)
    shares, places = resampled(x, mixture)
    modes = []
    for k in range(2):
        share, place = float(mixture.shares[k]), float(mixture.places[k])
        low, high = share_bounds(share * n, n)
        ends = np.quantile(shares[:, k], (TAIL, 1 - TAIL))
        members = max(2, round(share * n))
        reach = student(members) * float(places[:, k].std())
        location = (mixture.back(place), mixture.back(place - reach), mixture.back(place + reach))
        modes.append(Mode(
            Estimate(share, min(low, float(ends[0])), max(high, float(ends[1])), n, "1"), Estimate(*location, n, unit), mixture.spread(k),
        ))
    return tuple(sorted(modes, key=lambda mode: mode.location.value))
