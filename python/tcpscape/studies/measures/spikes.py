"""Measures of latency spikes: what :data:`tcpscape.studies.spikes.WHAT` tells of a cell, and of a cell over another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpscape import stats
from tcpscape.stats import Estimate
from tcpscape.studies import spikes

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim


def what(claim: Claim) -> str:
    """What the claim is about, `options: {what: …}`; the measured peak where it is left out."""
    return str(claim.options.get("what", "peak"))


def spike(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The median over the cell's runs."""
    return spikes.median(cell, what(claim))


def ratio(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """The mean of the cell over that of the one under `over`; runs with the same drops and seeds are paired."""
    below = result.below(claim, cell)
    of = stats.ratio if cell.paired(below) else stats.mean_ratio
    return of(spikes.values(cell, what(claim)), spikes.values(below, what(claim)))


def cv(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The coefficient of variation over the cell's runs, a fraction."""
    return stats.cv(spikes.values(cell, what(claim)))
