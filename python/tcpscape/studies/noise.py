"""How near to a single published number is near enough: its last digit, and what repeating the rig's own runs would move it by.

Ours and theirs agree where |ln(ours / theirs)| ≤ max(0.15, 2 · standard error of theirs), theirs being anything that prints as what was
published. 0.15 is what the same cell gives on the same rig another day. The standard error is relative, from the CV of our own runs of the
cell and from how many runs theirs stands on: CV/√n of a mean, √((1 + 2·CV²)/2n) of a CV (normal runs; Kendall and Stuart, §10.5).
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from tcpscape.errors import StudyError, refuse

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim

DAYS = 0.15
"""|ln| between two days of one rig."""
ERRORS = 2.0
"""Standard errors that theirs may be off."""


def bounds(result: Result, claim: Claim, cell: Cell) -> tuple[float, float]:
    """The range that counts as reproduced, in the claim's unit."""
    if not claim.near:
        return claim.low, claim.high
    least, most = printed(claim.near)
    width = math.exp(max(DAYS, ERRORS * error(result, claim, cell)))
    return least / width, most * width


def printed(text: str) -> tuple[float, float]:
    """The numbers that print as `text`: `0.49` is 0.485 to 0.495, `42` is 41.5 to 42.5."""
    try:
        said = Decimal(text)
    except InvalidOperation:
        refuse("near", f"{text!r} is not a number", "write it as printed, for example 0.49", StudyError)
    half = Decimal(1).scaleb(int(said.as_tuple().exponent)) / 2
    return float(said - half), float(said + half)


def error(result: Result, claim: Claim, cell: Cell) -> float:
    """Relative standard error of the published number; 0 where it is neither a mean nor a CV, and what one run cannot tell."""
    mine = _cv(cell, claim)
    if claim.measure == "cv":
        return math.sqrt((1 + 2 * mine**2) / (2 * claim.runs))
    if claim.measure in ("mean", "median"):
        return mine / math.sqrt(claim.runs)
    if claim.measure in ("ratio", "retention"):
        other = result.below(claim, cell) if claim.over else result.outcome(claim.part).base(cell, str(claim.options.get("axis", "jitter")))
        return math.hypot(mine, _cv(other, claim)) / math.sqrt(claim.runs)
    return 0.0


def _cv(cell: Cell, claim: Claim) -> float:
    found = cell.cv(claim.metric).value
    return found if math.isfinite(found) else 0.0
