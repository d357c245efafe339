"""The answer of `tcpscape stress`: its screen and its document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from typing_extensions import TypedDict

from tcpscape.findings.stress import DURATION_S, FRESH_SEEDS, Finding, GoalName, Search, told
from tcpscape.stats import Estimate
from tcpscape.text.numbers import NONE, number
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table


class StressFinding(TypedDict):
    """A cell that was found, as simple as it may be."""

    cell: dict[str, float]
    """Every ingredient: Mbit/s, ms, BDP, %, shares of the RTT, ms and s of pulses."""
    cause: list[str]
    """What a plain path does not have."""
    badness: float
    """Median of the fresh trials: a fraction, of `delay` RTTs of the path."""
    interval: tuple[float | None, float | None]
    """Its 95 % interval."""
    against: float | None
    """That of the other control on the same cells and seeds; null without one."""
    shows: bool
    """Whether it is bad enough to be called a finding."""
    proof: str
    """What a kernel in virtual time said, or why none did."""
    scenario: dict[str, Any]
    """The scenario, for `tcpscape run`."""


class StressDocument(TypedDict):
    """The document of `tcpscape stress --json`."""

    format: Literal[1]
    """Format of the document."""
    control: str
    """The congestion control."""
    goal: GoalName
    """What was searched."""
    seed: int
    """Seed of the search."""
    complete: bool
    """Whether the search came to its end; then the seed alone decides what it found."""
    findings: list[StressFinding]
    """The worst first."""


def document(search: Search, *, complete: bool) -> StressDocument:
    """The findings as plain values."""
    findings = [
        StressFinding(
            cell=dict(f.cell),
            cause=list(f.cause),
            badness=f.badness.value,
            interval=(f.badness.plain()["low"], f.badness.plain()["high"]),
            against=f.against.value if f.against else None,
            shows=f.excess >= search.goal.shows,
            proof=_proof(f, search.goal.name),
            scenario=f.scenario.model_dump(mode="json", exclude_defaults=True),
        )
        for f in search.findings
    ]
    return StressDocument(format=1, control=search.control, goal=search.goal.name, seed=search.seed, complete=complete, findings=findings)


def _value(estimate: Estimate, goal: GoalName) -> str:
    """`29 % [25, 32]`; of a delay `4.1 [4.0, 4.3]`."""
    if goal == "delay":
        return estimate.text()
    low, high = (f"{100 * end:.0f}" for end in (estimate.low, estimate.high))
    return f"{100 * estimate.value:.0f} % [{low}, {high}]"


def _share(value: float, goal: GoalName) -> str:
    """`29 %`; of a delay `4.1`."""
    return number(value) if goal == "delay" else f"{100 * value:.0f} %"


def _of_kernel(finding: Finding, goal: GoalName) -> str:
    return NONE if finding.proof is None or finding.proof.value is None else _share(finding.proof.value, goal)


def _proof(finding: Finding, goal: GoalName) -> str:
    """What a kernel shows: `the kernel 6.1 in virtual time shows it too: 30 %`; empty where none was asked."""
    proof = finding.proof
    if proof is None:
        return ""
    if proof.value is None:
        return f"not proved on a kernel: {proof.reason}"
    return f"the kernel {proof.kernel} in virtual time {'shows it too' if proof.shows else 'does not show it'}: {_share(proof.value, goal)}"


def _sentence(search: Search, finding: Finding) -> str:
    cell, value = ", ".join(told(finding, search.goal)), _value(finding.badness, search.goal.name)
    other = f" ({search.against} there: {_value(finding.against, search.goal.name)})" if finding.against else ""
    head = f"{search.control} at its worst" if finding.excess >= search.goal.shows else f"Nothing bad was found; {search.control} at its worst"
    return f"{head}: {value} {search.goal.about}{other}, at {cell}."


def screen(search: Search, kept: str, next_: Sequence[str], *, complete: bool) -> Screen:
    """The screen; `kept`: where the worst cell is kept; `complete`: whether the search came to its end."""
    has_other = search.against and search.goal.name != "starve"
    has_kernel = any(f.proof and f.proof.value is not None for f in search.findings)
    headings = ("what it takes", "path", search.goal.name, *((search.against,) if has_other else ()), *(("kernel",) if has_kernel else ()))
    rows = [(*_row(search, f), *((_of_kernel(f, search.goal.name),) if has_kernel else ())) for f in search.findings]
    proofs = [(_proof(f, search.goal.name), f) for f in search.findings if f.proof]
    remarks = [f"{text[:1].upper()}{text[1:]}." for text, f in proofs[:1] if f.proof and f.proof.shows]
    doubts = [(text, f) for text, f in proofs if f.proof and not f.proof.shows]
    caveats = list(dict.fromkeys(text if f.proof and f.proof.reason else f"{_row(search, f)[0]}: {text}" for text, f in doubts))
    if not complete:
        caveats.insert(0, "the search was ended early: it may find worse, and the seed alone does not decide what it found")
    return Screen(
        path=f"{search.goal.name}: {number(search.done)} trials of {DURATION_S:g}s, seed {search.seed}; {FRESH_SEEDS} fresh seeds for each cell",
        answer=_sentence(search, search.findings[0]) if search.findings else _nothing(search),
        remarks=remarks,
        tables=[Table(headings, rows, left=2, words=("what it takes", "path"))] if len(rows) > 1 else [],
        caveats=caveats,
        kept=kept,
        next=next_,
    )


def _nothing(search: Search) -> str:
    """Why there is no worst cell."""
    if not search.could_run:
        return f"Nothing was found: no cell of {search.control} could be run."
    return f"No cell was found in which {search.control} is worse{f' than {search.against}' if search.against else ' than it may be'}."


def _row(search: Search, finding: Finding) -> tuple[str, ...]:
    words, path = told(finding, search.goal), 3
    against = (_value(finding.against, search.goal.name),) if finding.against else ()
    cause = ", ".join(words[path:]) or (words[path - 1] if finding.cause else "the path alone")
    return (cause, ", ".join(words[:path]), _value(finding.badness, search.goal.name), *against)
