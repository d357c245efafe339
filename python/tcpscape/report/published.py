"""A study's own tables: published | ours | ratio, and its claims with their verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from tcpscape.report import view
from tcpscape.report.view import Field, PageTable
from tcpscape.stats.estimate import number
from tcpscape.studies.known import KnownNumber
from tcpscape.studies.result import Result, StudyRow
from tcpscape.studies.study import WORKS
from tcpscape.studies.verdict import VERDICTS, JudgedClaim

CLASSES = {"reproduced": "yes", "not reproduced": "no", "not decidable": "open"}
"""Verdict → its class on the page."""


def tables(result: Result) -> list[PageTable]:
    """One table for each part that has published numbers: ours beside them."""
    rows = result.rows
    made = []
    for part, outcome in result.parts.items():
        mine = [r for r in rows if r.part == part and (r.published or r.raw)]
        if mine:
            columns = ["cca", *outcome.axes, "what", "n", "ours", "published", "ours / published", "raw", "ours / raw", "note"]
            lines = [_line(r, outcome.axes) for r in mine]
            made.append(PageTable("study", f"{part}: ours beside what was published", columns, lines, left=2 + len(outcome.axes)))
    return made


def _line(row: StudyRow, axes: Sequence[str]) -> list[Field]:
    what = f"{row.metric} {row.stat}" + (f", {row.unit}" if row.unit not in ("", "1") else "")
    notes = "; ".join(k.note for k in (row.published, row.raw) if k and k.note)
    return [
        view.word(row.cell.cca), *(view.level(row.cell, a) for a in axes), view.word(what), view.count(row.ours.n), view.estimate(row.ours),
        *_beside(row, row.published), *_beside(row, row.raw), view.word(notes),
    ]  # fmt: skip


def _beside(row: StudyRow, known: KnownNumber | None) -> list[Field]:
    """The number and our ratio to it, with the interval of ours over it."""
    if known is None:
        return [Field(""), Field("")]
    text = number(known.value) + (f"–{number(known.high)}" if known.high is not None else "") + ("" if known.valid else " (invalid)")
    return [Field(text, sort=known.value), view.estimate(row.ours, 1 / known.value) if known.value else Field("–")]


def claims(judged: Sequence[JudgedClaim]) -> PageTable:
    """Every claim with its verdict, what was measured, whose it is (a name of `WORKS`), and what explains the published number."""
    lines = [
        [
            view.word(j.verdict, kind=CLASSES[j.verdict]), view.word(j.claim.text), view.word(j.measured), view.word(j.claim.setup),
            view.word(j.claim.work),
        ]
        for j in judged
    ]  # fmt: skip
    columns = ("verdict", "claim", "measured [95 %]", "explained by its set-up", "source")
    return PageTable("claims", "What was claimed, and what our runs say", columns, lines, left=len(columns))


def works(judged: Sequence[JudgedClaim]) -> list[tuple[str, str]]:
    """The works whose claims these are: name and title."""
    return [(name, WORKS[name]) for name in dict.fromkeys(j.claim.work for j in judged)]


def verdicts(judged: Sequence[JudgedClaim]) -> list[tuple[str, int, str]]:
    """Verdict, how many, its class."""
    return [(v, sum(j.verdict == v for j in judged), CLASSES[v]) for v in VERDICTS]
