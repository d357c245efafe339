"""The answer of `tcpscape conform`: its screen and its document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from typing_extensions import TypedDict

from tcpscape.findings.conditions import Difference
from tcpscape.findings.conformance import CaseResult, CellResult, Suite, Verdict
from tcpscape.text.numbers import number
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table
from tcpscape.units import counted

MOST_VALUES = 5
"""Variables that a difference names on the screen."""


class DifferenceDocument(TypedDict):
    """The first difference from a statement in a cell."""

    statement: str
    """The statement, as its case has it."""
    time: float | None
    """s after the begin of the trial; null where something that had to occur never did."""
    problem: str
    """What is different."""
    values: dict[str, float | str | None]
    """The state and the variables of the statement then; null is no bound."""


class CellDocument(TypedDict):
    """A rate and an RTT of a case."""

    rate: int
    """bit/s."""
    rtt_ns: int
    """Propagation RTT, ns."""
    seed: int
    """Seed of the trial."""
    differences: list[DifferenceDocument]
    """Empty where the cell passed."""


class CaseDocument(TypedDict):
    """A case and its verdict."""

    name: str
    """Name of the case."""
    ref: str
    """Section of the document."""
    title: str
    """What it is about."""
    verdict: Verdict
    """`passed`, `failed` or `not applicable`."""
    reason: str
    """Why it is not applicable; empty otherwise."""
    cells: list[CellDocument]
    """The cells that ran."""


class ConformanceDocument(TypedDict):
    """The document of `tcpscape conform --json`."""

    format: Literal[1]
    """Format of the document."""
    document: str
    """The document whose cases these are."""
    control: str
    """The congestion control."""
    passed: int
    """Cases that passed."""
    complete: bool
    """Whether all cases ran that were asked for; an interruption keeps those before it."""
    cases: list[CaseDocument]
    """Every case that ran."""


def document(control: str, cases: Suite, results: Sequence[CaseResult], *, complete: bool = True) -> ConformanceDocument:
    """The results as plain values."""
    rows = [
        CaseDocument(
            name=r.name,
            ref=r.case.ref,
            title=r.case.title,
            verdict=r.verdict,
            reason=r.reason,
            cells=[CellDocument(rate=c.cell.rate, rtt_ns=c.cell.rtt, seed=c.seed, differences=_differences(c)) for c in r.cells],
        )
        for r in results
    ]
    return ConformanceDocument(format=1, document=cases.document, control=control, passed=_passed(results), complete=complete, cases=rows)


def _differences(cell: CellResult) -> list[DifferenceDocument]:
    plain = [
        {name: v if isinstance(v, str) or math.isfinite(v) else None for name, v in difference.values.items()} for difference in cell.differences
    ]
    return [DifferenceDocument(statement=d.statement, time=d.time, problem=d.problem, values=v) for d, v in zip(cell.differences, plain, strict=True)]


def _passed(results: Sequence[CaseResult]) -> int:
    return sum(r.verdict == "passed" for r in results)


def screen(control: str, cases: Suite, results: Sequence[CaseResult], again: str, *, complete: bool = True) -> Screen:
    """The screen; `again`: the command without its cases, for the one that looks at a failure; `complete`: whether all cases ran."""
    trials = sum(len(r.cells) for r in results)
    failed = [r for r in results if r.verdict == "failed"]
    rows = [(r.case.ref, r.name, r.verdict, _what(r)) for r in results]
    table = Table(("ref", "case", "result", "first difference"), rows, left=4, words=("first difference",))
    return Screen(
        path=f"{cases.document}: {counted(len(results), 'case')} in {counted(trials, 'cell')}, model engine",
        answer=f"{control} passes {_passed(results)} of {counted(len(results), 'case')}.",
        tables=[table],
        details=[d for r in failed for d in _details(r)],
        caveats=[] if complete else ["interrupted: the cases behind these did not run"],
        next=[f"{again} --case {failed[0].name} --verbose"] if failed else [],
    )


def _what(result: CaseResult) -> str:
    """What stands in the last column: the cells that passed, the first difference, or the reason."""
    if result.verdict == "not applicable":
        return result.reason
    if not result.failures:
        return f"{len(result.cells)} cells" if len(result.cells) > 1 else f"{result.cells[0].cell.text} alone"
    cell = result.failures[0]
    many = f"{len(result.failures)} of {len(result.cells)} cells; " if len(result.cells) > 1 else ""
    return f"{many}{cell.cell.text}: {_difference(cell.first)}"


def _difference(difference: Difference | None) -> str:
    if difference is None:
        return ""
    if difference.time is None:
        return difference.problem
    names = list(difference.values.items())[: MOST_VALUES + 1]
    values = ", ".join(value if isinstance(value, str) else f"{name} {number(value)}" for name, value in names)
    return f"{difference.time:.4g} s, {values}: {difference.problem}"


def _details(result: CaseResult) -> list[Table | str]:
    rows = [(c.cell.text, d.statement, _difference(d)) for c in result.failures for d in c.differences]
    title = f"{result.case.ref} {result.name}: {result.case.title}"
    return [Table(("cell", "statement", "first difference"), rows, left=3, title=title), result.case.about]
