"""The shape of a distribution: one mode, or two with the share, the place and the spread of each.

Hartigan's dip test (1985, package diptest) tests whether there is one mode. Where it rejects that, two normal components are fitted by
expectation–maximization (Dempster, Laird, Rubin 1977), on the values' own scale or on the logarithmic one, whichever has the smaller BIC; hundreds
of resamples are fitted together by the same steps, from the fit's own parameters on. The test is conservative: it detects two modes with shares 0.3
and 0.7 in half of the samples of 10 runs and in nearly all of 40, and a mode with a share of 0.1 hardly ever. One mode is the answer wherever the
test does not reject it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tcpscape.stats.comparison import share_bounds
from tcpscape.stats.estimate import TAIL, Estimate, Floats, Numbers, counts, student
from tcpscape.stats.order import median

REJECTS = 0.05
"""p value of the dip test below which one mode is rejected."""
LEAST = 5
"""Fewest values for the dip test."""
ROUNDING = 1e-9
"""Spread of values over their size up to which they are equal: sums of doubles in another order differ by about 1e-15."""
RESAMPLES = 400
"""Resamples: enough for a standard error, and for the ends of a share's interval to a digit."""
STEPS, SETTLED = 100, 1e-3
"""Largest number of steps of the fit, and the change of the mean log likelihood that ends them before."""
ROUNDS = 40
"""Largest number of steps from the fit to that of a resample: it differs little."""
STILL = 1e-3
"""Largest change of a share, or of a place in standard deviations of all values, that ends the steps."""
FLOOR = 1e-4
"""Smallest variance of a component, in that of all values: a mode of one value has no spread of its own."""


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
        modes.append(
            Mode(Estimate(share, min(low, float(ends[0])), max(high, float(ends[1])), n, "1"), Estimate(*location, n, unit), mixture.spread(k))
        )
    return tuple(sorted(modes, key=lambda mode: mode.location.value))


@dataclass(frozen=True)
class Mixture:
    """Two components on the scale where they were fitted."""

    shares: Floats
    places: Floats
    """Means of the components on the fit's scale."""
    spreads: Floats
    """Standard deviations on the fit's scale."""
    log: bool
    """Whether that scale is logarithmic."""
    bic: float
    """Bayesian information criterion for the values themselves, whatever the scale."""

    def back(self, place: float) -> float:
        """From the fit's scale to the values'."""
        return math.exp(place) if self.log else place

    def spread(self, k: int) -> float:
        """Standard deviation of a component in the values' unit."""
        place, spread = float(self.places[k]), float(self.spreads[k])
        return math.exp(place + spread**2 / 2) * math.sqrt(math.expm1(spread**2)) if self.log else spread

    def scaled(self, x: Floats) -> Floats:
        """Values on the fit's scale."""
        return np.log(x) if self.log else x


def fit(x: Floats) -> Mixture:
    """The fit on the scale with the smaller BIC; values that are not all positive are fitted on their own scale only."""
    fits = [_fit(x, log=False)]
    if x.min() > 0:
        fits.append(_fit(x, log=True))
    return min(fits, key=lambda m: m.bic)


def _fit(x: Floats, *, log: bool) -> Mixture:
    y = np.log(x) if log else x
    centre, scale = float(y.mean()), float(y.std())
    z = (y - centre) / scale
    low = z <= split(z)
    groups = (z[low], z[~low])
    parts = Parts(*(np.array([[f(group) for group in groups]]) for f in (lambda g: len(g) / len(z), np.mean, lambda g: np.var(g) + FLOOR)))
    once, likelihood = np.ones((1, len(z))), -math.inf
    for _ in range(STEPS):
        before = likelihood
        likelihood, parts = _step(z, once, parts, FLOOR)
        if abs(likelihood - before) < SETTLED:
            break
    # The density of x is that of z divided by what stretches x: the scale, and x itself on the logarithmic scale.
    n, parameters = len(x), 5
    bic = parameters * math.log(n) - 2 * n * _step(z, once, parts, FLOOR)[0] + 2 * n * math.log(scale) + (2 * float(y.sum()) if log else 0.0)
    return Mixture(parts.shares[0], centre + scale * parts.places[0], scale * np.sqrt(parts.variances[0]), log, bic)


class Parts(NamedTuple):
    """Two components of each of several samples: (samples, 2) all."""

    shares: Floats
    places: Floats
    variances: Floats


def _step(y: Floats, weights: Floats, parts: Parts, floor: float) -> tuple[float, Parts]:
    """A step of expectation and maximization for samples that hold each value `weights` times, (samples, values).

    The mean log likelihood of a value before the step, over all samples, and the components after it.
    """
    shares, places, variances = (part[:, None] for part in parts)
    density = np.log(shares / np.sqrt(2 * math.pi * variances)) - (y[:, None] - places) ** 2 / (2 * variances)
    most = density.max(2, keepdims=True)
    part = np.exp(density - most)
    whole = part.sum(2)
    likelihood = float(np.sum(weights * (np.log(whole) + most[:, :, 0])) / np.sum(weights))
    part *= (weights / whole)[:, :, None]
    counted = np.maximum(part.sum(1), _NONE)
    means = np.einsum("bnk,n->bk", part, y) / counted
    spreads = np.einsum("bnk,bnk->bk", part, (y[:, None] - means[:, None]) ** 2) / counted + floor
    return likelihood, Parts(counted / weights.sum(1, keepdims=True), means, spreads)


def split(z: Floats) -> float:
    """The value up to which the lower of two groups reaches, so that the variance within both is least."""
    ordered = np.sort(z)
    n = np.arange(1, len(z))
    below = np.cumsum(ordered)[:-1]
    above = ordered.sum() - below
    between = below**2 / n + above**2 / (len(z) - n)
    between[np.diff(ordered) == 0] = -np.inf
    return float(ordered[int(np.argmax(between))])


def resampled(x: Floats, mixture: Mixture) -> tuple[Floats, Floats]:
    """Shares and places of the components in each resample: (RESAMPLES, 2) both."""
    y = mixture.scaled(x)
    weights = counts(len(y))[:, :RESAMPLES].T
    parts = Parts(*(np.tile(v, (RESAMPLES, 1)) for v in (mixture.shares, mixture.places, mixture.spreads**2)))
    spread = float(y.var())
    for _ in range(ROUNDS):
        before = parts
        _, parts = _step(y, weights, parts, FLOOR * spread)
        moved = (np.abs(parts.shares - before.shares).max(), np.abs(parts.places - before.places).max() / math.sqrt(spread))
        if max(moved) < STILL:
            break
    return parts.shares, parts.places


_NONE = 1e-9
"""Count of a component of which a resample has no value."""
