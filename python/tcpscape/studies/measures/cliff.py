"""The cliff on a study's own grid: the first step whose mean is below half of that at the axis' lowest value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcpscape.campaign import axes
from tcpscape.studies.verdicts import Judged

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell, Outcome
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim

HALF = 0.5
"""Retention that counts as over the edge, as published."""


def first_step(outcome: Outcome, curve: Sequence[Cell], axis: str) -> Cell | None:
    """The first cell on a curve whose mean is below half of the first one's; None where none is."""
    return next((c for c in curve if outcome.retention(c, axis).value < HALF), None)


def step(result: Result, claim: Claim) -> Judged:
    """Whether the cliff is at the claim's `value` on the axis `options: {axis: …}` (jitter)."""
    axis, outcome = str(claim.options.get("axis", "jitter")), result.outcome(claim.part)
    grid = [v for name, values in outcome.campaign.axes.items() if name == axis for v in values]
    curve = [c for c in outcome.curve(axis, claim.cca, **claim.at) if any(axes.same(c.at[axis], v) for v in grid)]
    found, asked = first_step(outcome, curve, axis), str(claim.value)
    place = next(i for i, c in enumerate(curve) if axes.same(c.at[axis], asked))
    near = curve[max(0, place - 1) : place + 1]
    measured = ", ".join(f"{c.at[axis]} keeps {outcome.retention(c, axis).text(2)}" for c in near)
    if found is not None and axes.same(found.at[axis], asked):
        return Judged(claim, "reproduced", measured)
    open_ = any(not outcome.retention(c, axis).excludes(HALF) for c in near)
    at = f"first below half at {found.at[axis]}" if found is not None else "never below half"
    return Judged(claim, "not decidable" if open_ else "not reproduced", f"{at}; {measured}")
