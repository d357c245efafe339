"""Distributions of runs whose truth is known: what intervals are tried on (coverage.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm


@dataclass(frozen=True)
class Distribution:
    """Values of runs, and what is true about them."""

    about: str
    draw: Callable
    """(rng, shape) → values."""
    mean: float
    sd: float
    median: float


def two_modes(share: float) -> Distribution:
    """Runs that collapse with probability `share` (20 ± 2 Mbit/s), others at 90 ± 3."""
    (low, s), (high, t) = MODES
    mean = share * low + (1 - share) * high
    sd = math.sqrt(share * (s * s + low * low) + (1 - share) * (t * t + high * high) - mean * mean)
    median = brentq(lambda x: share * norm.cdf(x, low, s) + (1 - share) * norm.cdf(x, high, t) - 0.5, 0, 120)

    def draw(rng, shape):
        return np.where(rng.random(shape) < share, rng.normal(low, s, shape), rng.normal(high, t, shape))

    return Distribution(f"two modes, 20 ± 2 and 90 ± 3, the lower with share {share}", draw, mean, sd, median)


def lognormal(sigma: float) -> Distribution:
    """Skewed to the right."""
    mean = math.exp(sigma**2 / 2)
    sd = mean * math.sqrt(math.exp(sigma**2) - 1)
    return Distribution(f"lognormal, σ = {sigma}", lambda rng, shape: rng.lognormal(0, sigma, shape), mean, sd, 1.0)


def capped() -> Distribution:
    """Runs at the line rate, exactly, with probability 0.7; others exponentially below it."""
    mean, square = 10 - 0.3, 0.7 * 100 + 0.3 * (100 - 20 + 2)
    about = "0.7 of the runs exactly 10, others 10 less an exponential of mean 1"
    return Distribution(
        about, lambda rng, shape: 10 - np.where(rng.random(shape) < 0.7, 0, rng.exponential(1, shape)), mean, math.sqrt(square - mean**2), 10.0
    )


MODES = ((20.0, 2.0), (90.0, 3.0))
"""Mean and standard deviation of the modes, Mbit/s."""
DISTRIBUTIONS = {
    "normal": Distribution("normal, CV 20 %", lambda rng, shape: rng.normal(10, 2, shape), 10, 2, 10),
    "lognormal": lognormal(0.5),
    "heavy": lognormal(1.0),
    "exponential": Distribution("exponential", lambda rng, shape: rng.exponential(1, shape), 1, 1, math.log(2)),
    "bimodal": two_modes(0.3),
    "rare": two_modes(0.1),
    "counts": Distribution("counts, Poisson of mean 3", lambda rng, shape: rng.poisson(3, shape).astype(float), 3, math.sqrt(3), 3),
    "capped": capped(),
}
QUIET = {
    "quiet": Distribution("normal, CV 5 %", lambda rng, shape: rng.normal(10, 0.5, shape), 10, 0.5, 10),
    "steady": Distribution("normal, CV 10 %", lambda rng, shape: rng.normal(10, 1, shape), 10, 1, 10),
}
"""Only for adaptive repetition: what needs few runs."""
