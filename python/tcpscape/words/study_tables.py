"""The tables of a study on a screen: every cell beside what was published of it, every claim, and the cells on two engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.studies.known import KnownNumber
from tcpscape.studies.result import Result, StudyRow
from tcpscape.studies.run import CellPair, Contrast
from tcpscape.studies.verdict import JudgedClaim
from tcpscape.text.numbers import number
from tcpscape.text.table import Table

MARKS = {"reproduced": "yes", "not reproduced": "no", "not decidable": "open"}
"""How the verdict on a claim is printed."""


def cells(result: Result) -> Iterator[Table]:
    """Of each part: our estimate of each cell, the published number and their ratio."""
    for part, outcome in result.parts.items():
        yield _cells(part, outcome, [row for row in result.rows if row.part == part])


def _cells(part: str, outcome: Outcome, rows: Sequence[StudyRow]) -> Table:
    several = len({(r.metric, r.stat) for r in rows}) > 1
    statistic = ("what",) if several else ()
    unit = "" if several or not rows else f" {rows[0].metric} {rows[0].unit}: {rows[0].stat}"
    published = any(r.published for r in rows)
    raw = any(r.raw for r in rows)
    theirs = (*(("published", "ours/it") if published else ()), *(("raw", "ours/raw") if raw else ()))
    columns = ("cca", *outcome.axes, *statistic, f"ours{unit} [95 %]", *theirs)
    lines = [
        (
            r.cell.cca, *_place(outcome, r.cell), *((f"{r.metric} {r.stat}, {r.unit}",) if several else ()), r.ours.text(),
            *(_published(r.ours.value, r.published) if published else ()), *(_published(r.ours.value, r.raw) if raw else ()),
        )
        for r in sorted(rows, key=lambda r: _order(outcome, r.cell))
    ]  # fmt: skip
    return Table(columns, lines, 1 + len(outcome.axes) + several, part, drop=("ours/raw", "raw", "ours/it"), words=statistic)


def claims(judged: Sequence[JudgedClaim]) -> Table:
    """Every claim with our verdict, what was measured, and why it differs where that is known."""
    rows = [(MARKS[j.verdict], j.claim.text, reason(j)) for j in judged]
    return Table(("ours say", "claim", "measured"), rows, 1, "What the study claims", words=("claim", "measured"))


def reason(judged: JudgedClaim) -> str:
    """What was measured, and why it differs where that is known."""
    why = judged.why[:1].upper() + judged.why[1:]
    return f"{judged.measured}. {why}" if why and judged.verdict != "reproduced" else judged.measured


def ratios(contrast: Contrast, pairs: Sequence[CellPair]) -> Iterator[Table]:
    """Of each part: both medians of each cell and their ratio; `pairs`: the cells that are shown."""
    labels = contrast.labels
    for part, outcome in contrast.ours.parts.items():
        ordered = sorted((p for p in pairs if p.part == part), key=lambda p: _order(outcome, p.ours))
        if ordered:
            rows = [(p.ours.cca, *_place(outcome, p.ours), str(p.ratio.n), *(m.text() for m in p.medians), p.ratio.text(), _sign(p)) for p in ordered]
            metric = f"median {ordered[0].metric} [95 %] on two engines" + (f": {part}" if len(contrast.ours.parts) > 1 else "")
            columns = ("cca", *outcome.axes, "n", *labels, "ratio [95 %]", "")
            yield Table(columns, rows, 1 + len(outcome.axes), metric, drop=("n", *labels[::-1]))


def _published(ours: float, known: KnownNumber | None) -> tuple[str, str]:
    """The published number, and ours over it."""
    if not known:
        return "", ""
    mark = "" if known.valid else " (invalid)"
    value = number(known.value) + (f"–{number(known.high)}" if known.high is not None else "")
    return value + mark, number(ours / known.value, 2 if ours < known.value else 3) if known.value else "–"


def _order(outcome: Outcome, cell: Cell) -> tuple[int, ...]:
    """One congestion control along the last axis after the other."""
    places = [outcome.levels(axis).index(cell.at[axis]) for axis in outcome.axes]
    return (*places[:-1], outcome.ccas.index(cell.cca), *places[-1:])


def _place(outcome: Outcome, cell: Cell) -> tuple[str, ...]:
    """Where a cell stands."""
    return tuple(cell.at[axis] for axis in outcome.axes)


def _sign(pair: CellPair) -> str:
    return "*" if pair.differs else "same runs" if pair.same else ""
