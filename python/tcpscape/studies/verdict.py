"""The verdict on a claim: reproduced, not reproduced, or not decidable from these runs; the rules that give it, and the two kinds of measures.

A published number is given once, without its spread. Ours agrees with it where |ln(ours / published)| ≤ max(0.15, 2 · its standard error), where
`published` is any number that prints as the published text. 0.15 is the difference of one cell on one rig between two days. The standard error is
relative; it follows from the CV of our own runs of the cell and the number of runs behind the published number (:mod:`tcpscape.stats.statistic`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

from tcpscape.campaign.outcome import Cell
from tcpscape.errors import StudyError, refuse
from tcpscape.stats import Estimate
from tcpscape.studies.known import FACTORS
from tcpscape.studies.result import Result
from tcpscape.studies.study import Claim
from tcpscape.text.numbers import number

ClaimVerdict = Literal["reproduced", "not reproduced", "not decidable"]
VERDICTS: tuple[ClaimVerdict, ...] = ("reproduced", "not reproduced", "not decidable")
DAY_TO_DAY = 0.15
"""|ln ratio| between two days of one rig."""
STANDARD_ERRORS = 2.0
"""Standard errors that a published number may be off."""

CellEstimate = Callable[[Result, Claim, Cell], Estimate]
RelativeError = Callable[[Result, Claim, Cell], float]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim and the verdict of our runs on it."""

    claim: Claim
    verdict: ClaimVerdict
    measured: str
    """What was measured, with its interval, as text."""

    @property
    def why(self) -> str:
        """Why the published number is what it is; empty where `measured` contains this text already."""
        return "" if self.claim.setup in self.measured else self.claim.setup


@dataclass(frozen=True)
class JudgedStudy:
    """A study's result with a verdict on each of its claims, in the study's order."""

    result: Result
    claims: tuple[JudgedClaim, ...]


def in_range(estimate: Estimate, low: float, high: float) -> ClaimVerdict:
    """The verdict on an estimate that should lie between `low` and `high`.

    A value inside is reproduced. A value outside is not decidable if its interval reaches into the range, if it stands on a single run, or if
    it could not be measured (NaN).
    """
    if low <= estimate.value <= high:
        return "reproduced"
    if estimate.n <= 1 or estimate.value != estimate.value:
        return "not decidable"
    return "not decidable" if estimate.low <= high and estimate.high >= low else "not reproduced"


def all_of(verdicts: Sequence[ClaimVerdict], share: float = 1.0) -> ClaimVerdict:
    """The verdict on a claim about every cell, or about this share of them.

    At least `share` of the verdicts must be `reproduced`. The claim is not decidable while the cells without a decision could still reach it.
    """
    required = share * len(verdicts)
    reproduced = verdicts.count("reproduced")
    if reproduced >= required:
        return "reproduced"
    return "not decidable" if reproduced + verdicts.count("not decidable") >= required else "not reproduced"


def range_text(low: float, high: float) -> str:
    """The range that a claim allows, in words: `2.5–3.7`, `at least 3`."""
    if low == float("-inf"):
        return f"at most {number(high)}"
    return f"at least {number(low)}" if high == float("inf") else f"{number(low)}–{number(high)}"


def unknown_error(_: Result, __: Claim, ___: Cell) -> float:
    """0: nothing is known about the standard error."""
    return 0.0


@dataclass(frozen=True, slots=True)
class CellMeasure:
    """A measure of a cell: an estimate that carries its own unit, held against the claim's range for one cell or for every one of them."""

    estimate: CellEstimate
    standard_error: RelativeError = unknown_error
    """Relative standard error of a published number of this kind, as far as our runs of the cell tell."""

    def judge(self, result: Result, claim: Claim) -> JudgedClaim:
        """The claim's range against its cell, or against every one of its cells, or the share of them under `options: {share: …}`."""
        cells = result.cells(claim)
        if not claim.every and len(cells) > 1:
            raise StudyError(f"claims: {claim.text!r} is about {len(cells)} cells; name one with `at`, or write every: true")
        factor = FACTORS.get(claim.unit, 1.0)
        ranges = [tuple(end * factor for end in self.accepted(result, claim, cell)) for cell in cells]
        estimates = [self.estimate(result, claim, cell) for cell in cells]
        verdicts = [in_range(e, low, high) for e, (low, high) in zip(estimates, ranges, strict=True)]
        unit = "" if estimates[0].unit == "1" else estimates[0].unit
        allowed = f"(asked: {range_text(*ranges[0])})" if len(set(ranges)) == 1 else f"(asked: near {claim.near})"
        if len(estimates) == 1:
            return JudgedClaim(claim, verdicts[0], f"{estimates[0].text()} {unit}".strip() + f" {allowed}")
        ordered = sorted(estimates, key=lambda e: e.value)
        span = f"{verdicts.count('reproduced')} of {len(estimates)} cells, from {ordered[0].text()} to {ordered[-1].text()} {unit}".strip()
        return JudgedClaim(claim, all_of(verdicts, float(claim.options.get("share", 1))), f"{span} {allowed}")

    def accepted(self, result: Result, claim: Claim, cell: Cell) -> tuple[float, float]:
        """The range that counts as reproduced, in the claim's unit: the claim's own, or what is near enough to its one number."""
        if not claim.near:
            return claim.low, claim.high
        low, high = printed_range(claim.near)
        width = math.exp(max(DAY_TO_DAY, STANDARD_ERRORS * self.standard_error(result, claim, cell)))
        return low / width, high * width


@dataclass(frozen=True, slots=True)
class StudyMeasure:
    """A measure of the whole study: a function that gives the verdict itself."""

    judge: Callable[[Result, Claim], JudgedClaim]


Measure = CellMeasure | StudyMeasure


def printed_range(text: str) -> tuple[float, float]:
    """The numbers that print as `text`: `0.49` is 0.485 to 0.495, `42` is 41.5 to 42.5."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        refuse("near", f"{text!r} is not a number", "write it as printed, for example 0.49", StudyError)
    half = Decimal(1).scaleb(int(number.as_tuple().exponent)) / 2
    return float(number - half), float(number + half)
