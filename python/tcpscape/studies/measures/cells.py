"""Measures of a cell: statistics of its metric, alone and over another cell, with the standard error of such a published number; latency spikes."""

from __future__ import annotations

import math

from tcpscape import stats
from tcpscape.campaign.outcome import Cell
from tcpscape.stats import Estimate, statistic
from tcpscape.studies import spikes
from tcpscape.studies.result import Result
from tcpscape.studies.study import Claim
from tcpscape.studies.verdict import JudgedClaim


def mean(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Mean of the metric."""
    return cell.mean(claim.metric)


def median(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Median of the metric."""
    return cell.median(claim.metric)


def cv(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Coefficient of variation of the metric, a fraction."""
    return cell.cv(claim.metric)


def ratio(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """Ratio of the means of the cell and of the one under `over`; the same seeds on one engine are paired."""
    return cell.over(result.below(claim, cell), claim.metric)


def retention(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """Mean over the mean at the lowest value of the axis that the claim names under `options: {axis: …}`."""
    return result.outcome(claim.part).retention(cell, _axis(claim), claim.metric)


def both_ways(result: Result, claim: Claim) -> JudgedClaim:
    """Whether the ratio to the cell under `over` is above 1 in some of the claim's cells and below 1 in others, beyond their intervals."""
    ratios = [ratio(result, claim, cell) for cell in result.cells(claim)]
    above, below = (sum(e.excludes(1) and (e.value > 1) == up for e in ratios) for up in (True, False))
    measured = f"above 1 in {above}, below 1 in {below}, open in {len(ratios) - above - below} of {len(ratios)} cells"
    if above and below:
        return JudgedClaim(claim, "reproduced", measured)
    return JudgedClaim(claim, "not reproduced" if above + below == len(ratios) else "not decidable", measured)


def spike(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The median over the cell's runs of what the claim names under `options: {what: …}`, a name of :data:`spikes.QUANTITIES`."""
    return spikes.median(cell, _quantity(claim))


def spike_ratio(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """The mean of such a quantity over that of the cell under `over`; runs with the same drops and seeds are paired."""
    below = result.below(claim, cell)
    ratio_of = stats.ratio if cell.paired(below) else stats.mean_ratio
    return ratio_of(spikes.values(cell, _quantity(claim)), spikes.values(below, _quantity(claim)))


def spike_cv(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The coefficient of variation of such a quantity over the cell's runs, a fraction."""
    return stats.cv(spikes.values(cell, _quantity(claim)))


def error_of_mean(_: Result, claim: Claim, cell: Cell) -> float:
    """Relative standard error of a published mean or median."""
    return statistic.error_of_mean(_cv(cell, claim), claim.runs)


def error_of_cv(_: Result, claim: Claim, cell: Cell) -> float:
    """Relative standard error of a published coefficient of variation."""
    return statistic.error_of_cv(_cv(cell, claim), claim.runs)


def error_of_quotient(result: Result, claim: Claim, cell: Cell) -> float:
    """Relative standard error of a published ratio or retention: that of both means."""
    below = result.below(claim, cell) if claim.over else result.outcome(claim.part).base(cell, _axis(claim))
    return statistic.error_of_mean(math.hypot(_cv(cell, claim), _cv(below, claim)), claim.runs)


def _axis(claim: Claim) -> str:
    return str(claim.options.get("axis", "jitter"))


def _quantity(claim: Claim) -> str:
    """The quantity of a latency spike that the claim is about; the measured peak where it names none."""
    return str(claim.options.get("what", "peak"))


def _cv(cell: Cell, claim: Claim) -> float:
    """The coefficient of variation of our runs; 0 where one run cannot tell it."""
    value = cell.cv(claim.metric).value
    return value if math.isfinite(value) else 0.0
