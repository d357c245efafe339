"""Measures of a cell: an estimate, held against the claim's range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tcpscape import metrics
from tcpscape.errors import StudyError
from tcpscape.stats import Estimate
from tcpscape.studies import noise, spikes
from tcpscape.studies.known import FACTORS
from tcpscape.studies.verdicts import Judged, all_of, asked, in_range

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim

PLAIN = frozenset(
    ("cv", "cv_ratio", "ratio", "retention", "rank", "near_best", "change", "share", "starved", "spike_ratio", "spike_cv")
)
"""Measures whose result is a plain number, whatever the metric's unit."""


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
    return result.outcome(claim.part).retention(cell, str(claim.options.get("axis", "jitter")), claim.metric)


def unit_of(claim: Claim, got: Sequence[Estimate] = ()) -> str:
    """The unit to print behind what a claim measures, that of the estimates where there are any; nothing behind plain numbers."""
    if claim.measure in PLAIN:
        return ""
    own = spikes.unit(claim.options) if claim.measure == "spike" else ""
    unit = own or next((e.unit for e in got), metrics.find(claim.metric).unit)
    return "" if unit == "1" else unit


def judge(result: Result, claim: Claim, of: Callable[[Result, Claim, Cell], Estimate]) -> Judged:
    """The claim's range against its cell, or against every one of its cells (or the share of them that `options: {share: …}` asks for)."""
    found = result.cells(claim)
    if not claim.every and len(found) > 1:
        raise StudyError(f"claims: {claim.text!r} is about {len(found)} cells; name one with `at`, or write every: true")
    factor = FACTORS.get(claim.unit, 1.0)
    ranges = [tuple(end * factor for end in noise.bounds(result, claim, cell)) for cell in found]
    got = [of(result, claim, cell) for cell in found]
    verdicts = [in_range(e, low, high) for e, (low, high) in zip(got, ranges, strict=True)]
    unit = unit_of(claim, got)
    wanted = f"(asked: {asked(*ranges[0])})" if len(set(ranges)) == 1 else f"(asked: near {claim.near})"
    if len(got) == 1:
        return Judged(claim, verdicts[0], f"{got[0].text()} {unit}".strip() + f" {wanted}")
    values = sorted(got, key=lambda e: e.value)
    span = f"{verdicts.count('reproduced')} of {len(got)} cells, from {values[0].text()} to {values[-1].text()} {unit}".strip()
    return Judged(claim, all_of(verdicts, float(claim.options.get("share", 1))), f"{span} {wanted}")
