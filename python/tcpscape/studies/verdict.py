"""The verdict on a claim: reproduced, not reproduced, or not decidable from these runs; and the rules that give it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number
from tcpscape.studies.result import Result
from tcpscape.studies.study import Claim

ClaimVerdict = Literal["reproduced", "not reproduced", "not decidable"]
VERDICTS: tuple[ClaimVerdict, ...] = ("reproduced", "not reproduced", "not decidable")


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
