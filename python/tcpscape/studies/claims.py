"""What a study claims, judged on our own runs: reproduced, not reproduced, or not decidable from these runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tcpscape import stats, studies
from tcpscape.errors import StudyError
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number
from tcpscape.studies import Claim
from tcpscape.studies.run import Cell, Outcome
from tcpscape.units import parse_time

Verdict = Literal["reproduced", "not reproduced", "not decidable"]
HALF = 0.5


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and what our runs say about it."""

    claim: Claim
    verdict: Verdict
    measured: str
    """What was measured, with its interval."""


def judge(outcome: Outcome) -> list[Judged]:
    """Every claim of the study."""
    return [_judge(outcome, claim) for claim in outcome.study.claims]


def _judge(outcome: Outcome, claim: Claim) -> Judged:
    if claim.kind == "cliff":
        return _cliff(outcome, claim)
    got = MEASURES[claim.kind](outcome, claim)
    low, high = claim.low, claim.high
    if claim.kind == "goodput":  # published in KiB/s · 8 / 1000
        low, high = low * studies.MBIT_OF["KiB/s*8/1000"], high * studies.MBIT_OF["KiB/s*8/1000"]
    unit = " Mbit/s" if claim.kind == "goodput" else ""
    return Judged(claim, _in_range(got, low, high), f"{got.text()}{unit} (asked: {number(low)}–{number(high)})")


def _in_range(got: Estimate, low: float, high: float) -> Verdict:
    """Inside is reproduced; outside with an interval that reaches in is not decidable."""
    if low <= got.value <= high:
        return "reproduced"
    return "not decidable" if got.n > 1 and got.low <= high and got.high >= low else "not reproduced"


def _cell(outcome: Outcome, claim: Claim, cca: str | None = None, over: bool = False) -> Cell:
    where = claim.over if over else claim.at
    key = studies.at(outcome.study, cca or claim.cca or outcome.study.cca[0], where)
    if key not in outcome.cells:
        raise StudyError(f"claims: {claim.text!r} asks for {where}, which the grid has not; correct the study")
    return outcome.cells[key]


def _ratio(outcome: Outcome, claim: Claim) -> Estimate:
    """BBR's mean over CUBIC's."""
    return stats.ratio(_cell(outcome, claim, "bbr").goodputs, _cell(outcome, claim, "cubic").goodputs)


def _gain(outcome: Outcome, claim: Claim) -> Estimate:
    return stats.ratio(_cell(outcome, claim).goodputs, _cell(outcome, claim, over=True).goodputs)


MEASURES: dict[str, Callable[[Outcome, Claim], Estimate]] = {
    "goodput": lambda o, c: _cell(o, c).mean,
    "cv": lambda o, c: _cell(o, c).cv,
    "retention": lambda o, c: o.retention(_cell(o, c)),
    "ratio": _ratio,
    "gain": _gain,
}


def cliff_step(outcome: Outcome, cca: str, rtt_ms: float) -> float | None:
    """First step of the study's own grid whose mean is below half of the unimpaired mean, ms or %."""
    steps = [c for c in outcome.curve(cca, rtt_ms) if _on_grid(outcome, c)]
    return next((outcome.axis(c) for c in steps if outcome.retention(c).value < HALF), None)


def _on_grid(outcome: Outcome, cell: Cell) -> bool:
    """Whether the cell is on the study's own grid, not in a block beside it."""
    axis = outcome.study.axis
    place = 2 if axis == "jitter" else 3
    return outcome.axis(cell) in {studies.at(outcome.study, cell.cca, {axis: v})[place] for v in outcome.study.vary[axis]}


def _cliff(outcome: Outcome, claim: Claim) -> Judged:
    cca, rtt_ms = claim.cca or "cubic", parse_time(claim.at["rtt"], "rtt") / 1e6
    asked = parse_time(claim.value, "value") / 1e6
    steps = [c for c in outcome.curve(cca, rtt_ms) if _on_grid(outcome, c)]
    found = cliff_step(outcome, cca, rtt_ms)
    place = next(i for i, c in enumerate(steps) if outcome.axis(c) == asked)
    near = steps[max(0, place - 1) : place + 1]
    measured = ", ".join(f"{outcome.axis(c):g} ms keeps {outcome.retention(c).text(2)}" for c in near)
    if found == asked:
        return Judged(claim, "reproduced", measured)
    open_ = any(not outcome.retention(c).excludes(HALF) for c in near)
    at = f"first below half at {found:g} ms" if found is not None else "never below half"
    return Judged(claim, "not decidable" if open_ else "not reproduced", f"{at}; {measured}")
