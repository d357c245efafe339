"""Whole published tables as claims: every number of them against the same statistic of our runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tcpscape import metrics
from tcpscape.errors import StudyError
from tcpscape.stats.estimate import number
from tcpscape.studies import known
from tcpscape.studies.verdicts import Judged, Verdict, all_of, in_range

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies.known import Known
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim

WITHIN = 0.15
"""|ln(ours / theirs)| that counts as the same where a work gives one number without its spread."""
SHOWN = 3
"""Misses that are told, the largest first."""


def table(result: Result, claim: Claim) -> Judged:
    """Every valid published number of the claim's cells and metric, or metrics under `options: {metrics: […]}`.

    Each must be within 15 % of ours (`options: {within: …}` asks for another share), or within `options: {grain: …}` of it, the step in
    which the work's own samples come.
    """
    grain, within = float(claim.options.get("grain", 0)), float(claim.options.get("within", WITHIN))
    wanted = tuple(str(m) for m in claim.options.get("metrics", (claim.metric,)))
    found = list(_numbers(result, claim, wanted))
    if not found:
        raise StudyError(f"claims: {claim.text!r} has no valid published number of {', '.join(wanted)}; correct the study")
    verdicts: list[Verdict] = []
    off: list[tuple[float, str]] = []
    for cell, one in found:
        ours = one.ours(cell)
        low, high = one.value * math.exp(-within), one.value * math.exp(within)
        verdicts.append(in_range(ours, min(low, one.value - grain), max(high, one.value + grain)))
        if verdicts[-1] != "reproduced":
            off.append((known.apart(ours.value, one.value), f"{_place(cell, one, wanted)} {ours.text()} for {number(one.value)}"))
    held = f"{verdicts.count('reproduced')} of {len(found)} numbers within {within:.0%}" + (f" or {number(grain)} {_unit(wanted)}" if grain else "")
    misses = [text for _, text in sorted(off, reverse=True)]
    rest = f" and {len(misses) - SHOWN} more" if len(misses) > SHOWN else ""
    return Judged(claim, all_of(verdicts), held + (f"; off: {', '.join(misses[:SHOWN])}{rest}" if misses else ""))


def _numbers(result: Result, claim: Claim, wanted: tuple[str, ...]) -> Iterator[tuple[Cell, Known]]:
    """The published numbers that can be what they say, each with its cell."""
    part = claim.part or next(iter(result.parts))
    for cell in result.cells(claim):
        for one in known.of(result.known, part, cell, "published"):
            if one.valid and one.metric in wanted:
                yield cell, one


def _place(cell: Cell, one: Known, wanted: tuple[str, ...]) -> str:
    """Which number it is: the values on its axes that the reader needs, and its metric where there are several."""
    where = [v for k, v in cell.at.items() if k in one.at]
    return " ".join([*where, *([one.metric] if len(wanted) > 1 else [])])


def _unit(wanted: tuple[str, ...]) -> str:
    return metrics.find(wanted[0]).unit
