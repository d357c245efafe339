"""Measures of how runs of one cell differ: extremes, tail, several runs in a row, the shape of their distribution."""

from __future__ import annotations

import math

import numpy as np

from tcpscape import metrics, stats
from tcpscape.campaign.outcome import Cell
from tcpscape.findings.chaos import zone
from tcpscape.stats import Estimate
from tcpscape.studies.measures import resample
from tcpscape.studies.measures.resample import Array
from tcpscape.studies.result import Result
from tcpscape.studies.study import Claim

EXTREMES = {"least": np.min, "most": np.max}
PRECISION = 0.10
"""Half-width of the interval that :func:`runs_needed` aims at, as a fraction of the mean."""


def extreme(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The `least` or `most` (`options: {of: …}`) of as many runs as the work had."""
    pick = EXTREMES[str(claim.options["of"])]
    return resample.of_draws(cell.values(claim.metric), claim.runs, lambda x: pick(x, axis=-1), metrics.find(claim.metric).unit)


def tail(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The luckiest run over the median, of as many runs as the work had."""
    return resample.of_draws(cell.values(claim.metric), claim.runs, lambda x: np.max(x, axis=-1) / np.median(x, axis=-1))


def span(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The best of `runs` runs over the worst."""
    return resample.of_draws(cell.values(claim.metric), claim.runs, lambda x: np.max(x, axis=-1) / np.min(x, axis=-1))


def cv_ratio(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """The cell's CV over that of the cell under `over`."""
    return resample.estimate([c.values(claim.metric) for c in (cell, result.below(claim, cell))], lambda x: _quotient(_cv(x[0]), _cv(x[1])))


def one_mode(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Probability of runs at least as far from a single mode as these, were there one: :func:`tcpscape.findings.chaos.zone.one_mode`."""
    values = cell.values(claim.metric)
    chance = zone.one_mode(values)
    value = math.nan if chance is None else chance
    return Estimate(value, value, value, len(values), "1")


def runs_needed(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Runs until the mean is known to ± 10 %, for the cell's CV and both ends of that one's interval."""
    return stats.runs_needed_from(cell.values(claim.metric), PRECISION)


def _quotient(a: Array, b: Array) -> Array:
    """a / b; unknown where b is 0: a cell without spread."""
    quotients: Array = a / np.where(b == 0, np.nan, b)
    return quotients


def _cv(x: Array) -> Array:
    """Sample standard deviation over mean; unknown of one run."""
    if x.shape[-1] < 2:
        return np.full(x.shape[:-1], np.nan)
    cvs: Array = np.std(x, axis=-1, ddof=1) / np.mean(x, axis=-1)
    return cvs
