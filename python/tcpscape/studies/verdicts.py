"""What a study claims, judged on our own runs: reproduced, not reproduced, or not decidable from these runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number
from tcpscape.studies.run import Result
from tcpscape.studies.study import Claim

Verdict = Literal["reproduced", "not reproduced", "not decidable"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "not reproduced", "not decidable")


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and what our runs say about it."""

    claim: Claim
    verdict: Verdict
    measured: str
    """What was measured, with its interval."""

    @property
    def why(self) -> str:
        """Why the published number is what it is, where `measured` does not say it already."""
        return "" if self.claim.setup in self.measured else self.claim.setup


def judge(result: Result) -> list[Judged]:
    """Every claim of the study."""
    return list(result.judged)


def in_range(got: Estimate, low: float, high: float) -> Verdict:
    """Inside is reproduced; outside with an interval that reaches in is not decidable, and so are one run and what could not be measured."""
    if low <= got.value <= high:
        return "reproduced"
    if got.n <= 1 or got.value != got.value:
        return "not decidable"
    return "not decidable" if got.low <= high and got.high >= low else "not reproduced"


def all_of(verdicts: Sequence[Verdict], share: float = 1.0) -> Verdict:
    """The verdict on a claim about every cell, or about this share of them: so many must hold; open ones may decide it."""
    asked = share * len(verdicts)
    held = verdicts.count("reproduced")
    if held >= asked:
        return "reproduced"
    return "not decidable" if held + verdicts.count("not decidable") >= asked else "not reproduced"


def asked(low: float, high: float) -> str:
    """The range that a claim asks for, in words: `2.5–3.7`, `at least 3`."""
    if low == float("-inf"):
        return f"at most {number(high)}"
    return f"at least {number(low)}" if high == float("inf") else f"{number(low)}–{number(high)}"
