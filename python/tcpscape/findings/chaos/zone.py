"""The chaos zone, where single runs cannot be trusted: the side of the cliff on which a path stands, and the levels of an axis that scatter.

A level is chaotic where the coefficient of variation exceeds a threshold (20 %: published are 1–5 % before the cliff, 14–66 % at it and
3–19 % past it) or where the runs have more than one mode (Hartigan's dip test of their logarithms), each judged by its interval. A level
that the runs leave undecided is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tcpscape import stats
from tcpscape.errors import refuse
from tcpscape.findings.cliff.levels import CHAOTIC_CV, Level
from tcpscape.stats import Estimate

Side = Literal["stable", "chaos zone", "collapsed"]
State = Literal["calm", "chaotic", "open"]
DIP_ALPHA = 0.01
"""p value of the dip test below which there is more than one mode."""
DIP_LEAST = 20
"""Fewest runs for the dip test; with fewer it detects nothing."""


def side(here: Level) -> Side:
    """The side on which the runs at this level stand."""
    if here.chaotic:
        return "chaos zone"
    return "collapsed" if here.fell else "stable"


@dataclass(frozen=True, slots=True)
class Scatter:
    """How the runs of one level scatter."""

    at: float
    cv: Estimate
    dip: float | None
    """p value of the dip test for one mode, of the logarithms; None with too few runs, or where a run carried nothing."""
    state: State


@dataclass(frozen=True, slots=True)
class Zone:
    """The chaotic part of an axis."""

    levels: tuple[Scatter, ...]
    """From the lowest."""
    threshold: float
    """Coefficient of variation, fraction."""

    @property
    def surely(self) -> tuple[float, float] | None:
        """From the first level that is chaotic to the last; None where none is."""
        chaotic = [x.at for x in self.levels if x.state == "chaotic"]
        return (chaotic[0], chaotic[-1]) if chaotic else None

    @property
    def at_most(self) -> tuple[float, float] | None:
        """From the first level that may be chaotic to the last."""
        possible = [x.at for x in self.levels if x.state != "calm"]
        return (possible[0], possible[-1]) if possible else None

    @property
    def peak(self) -> Scatter | None:
        """The level that scatters most."""
        known = [x for x in self.levels if not np.isnan(x.cv.value)]
        return max(known, key=lambda x: x.cv.value) if known else None


def zone(levels: Iterable[tuple[float, Sequence[float]]], threshold: float = CHAOTIC_CV) -> Zone:
    """The chaotic part of an axis from (level, its runs)."""
    if not threshold > 0:
        refuse("threshold", f"a coefficient of variation of {threshold:g}", "write for example 0.2")
    return Zone(tuple(scatter(at, runs, threshold) for at, runs in sorted(levels, key=lambda x: x[0])), threshold)


def scatter(at: float, runs: Sequence[float], threshold: float = CHAOTIC_CV) -> Scatter:
    """How the runs of one level scatter, and whether that is chaotic."""
    cv, dip = stats.cv(runs), one_mode(runs)
    if cv.low > threshold or (dip is not None and dip < DIP_ALPHA and cv.value > threshold / 2):
        return Scatter(at, cv, dip, "chaotic")
    return Scatter(at, cv, dip, "calm" if cv.high <= threshold else "open")


def one_mode(runs: Sequence[float]) -> float | None:
    """p value of Hartigan's dip test (1985) that the logarithms of the runs have one mode; None where it does not apply."""
    import diptest

    x = np.asarray(runs, dtype=float)
    if len(x) < DIP_LEAST or not (x > 0).all() or np.ptp(x) == 0:
        return None
    return float(diptest.diptest(np.log(x))[1])
