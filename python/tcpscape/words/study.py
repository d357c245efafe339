"""The screen of a study: its finding, the matrix, how many claims hold, those that do not with their reasons; and of a study on two engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.scenario import summary
from tcpscape.studies.known import KnownNumber
from tcpscape.studies.result import Result, StudyRow
from tcpscape.studies.run import CellPair, Contrast
from tcpscape.studies.study import WORKS, Study
from tcpscape.studies.verdict import VERDICTS, JudgedClaim, JudgedStudy
from tcpscape.text.numbers import number
from tcpscape.text.screen import Lines, Screen
from tcpscape.text.table import Table
from tcpscape.words import finding

MOST_FAILURES = 5
"""Most claims that are shown with their reason; how many more there are is said."""
MOST_PAIRS = 12
"""Most cells that are shown of two engines: those that differ most, where there are more."""
COUNTED = {"reproduced": "reproduced", "not reproduced": "not", "not decidable": "open"}
"""How the verdicts are counted."""


def study_screen(judged: JudgedStudy) -> Screen:
    """The screen of a study that was run on one engine."""
    result = judged.result
    about = finding.subject(result)
    return Screen(
        f"{result.study.title} ({result.trial_count} trials, {result.label})",
        f"{finding.sentence(about)}{_hold(judged)}",
        tables=(_matrix(about, judged), *([_failures(judged)] if judged.claims else [])), details=tuple(_details(judged)), caveats=result.caveats,
    )  # fmt: skip


def _matrix(about: finding.Subject, judged: JudgedStudy) -> Table:
    """The matrix, and the names of the parts that it is not about."""
    matrix, others = finding.matrix(about), [part for part in judged.result.parts if part != about.part]
    return replace(matrix, notes=(*matrix.notes, f"further parts ({', '.join(others)}): --verbose")) if others else matrix


def count(judged: JudgedStudy) -> str:
    """`41 reproduced · 11 not · 7 open`."""
    return " · ".join(f"{sum(j.verdict == v for j in judged.claims)} {COUNTED[v]}" for v in VERDICTS)


def _hold(judged: JudgedStudy) -> str:
    """How many claims hold, as a sentence; empty without claims."""
    reproduced = sum(j.verdict == "reproduced" for j in judged.claims)
    return f" {reproduced} of {len(judged.claims)} claims hold." if judged.claims else ""


def _failures(judged: JudgedStudy) -> Lines:
    """The claims that do not hold, each with what was measured, what would count as the same, and why it differs."""
    failed = [j for j in judged.claims if j.verdict == "not reproduced"]
    more = len(failed) - MOST_FAILURES
    notes = [f"{more} more that do not hold: --verbose"] if more > 0 else []
    return Lines(f"Claims: {count(judged)}", [_failure(j) for j in failed[:MOST_FAILURES]], notes)


def _failure(judged: JudgedClaim) -> str:
    return f"not “{judged.claim.text}”: {reason(judged)}"


def _details(judged: JudgedStudy) -> Iterator[Table | str]:
    """Source, cells, claims and pitfalls."""
    study = judged.result.study
    yield f"{study.source}. {study.about.strip()}"
    yield from cells(judged.result)
    yield claims(judged.claims)
    yield from (f"pitfall: {pitfall}" for pitfall in study.pitfalls)


def contrast_screen(contrast: Contrast, judged: JudgedStudy) -> Screen:
    """The screen of a study on two engines: the cells that differ; the claims are judged by the first engine."""
    pairs = list(contrast.pairs())
    differ = sorted((p for p in pairs if p.differs), key=lambda p: -p.distance)
    shown = pairs if len(pairs) <= MOST_PAIRS else differ[:MOST_PAIRS]
    notes = ["ratio of the two medians, runs not paired; * its 95 % interval excludes 1"]
    if len(differ) > len(shown):
        notes.append(f"{len(differ) - len(shown)} more cells differ: --verbose")
    differing = [replace(table, notes=notes if i == 0 else ()) for i, table in enumerate(ratios(contrast, shown))]
    ours, other = contrast.labels
    own = [f"on {other}: {caveat}" for caveat in contrast.other.caveats if caveat not in contrast.ours.caveats]
    trials = f"{contrast.ours.trial_count} trials on {ours}, {contrast.other.trial_count} on {other}"
    return Screen(
        f"{contrast.ours.study.title} ({trials})", _differences(contrast, pairs, differ),
        remarks=(f"Claims on {ours}: {count(judged)}",), tables=differing,
        details=(*ratios(contrast, pairs), *_details(judged)), caveats=(*contrast.ours.caveats, *own),
    )  # fmt: skip


def _differences(contrast: Contrast, pairs: Sequence[CellPair], differ: Sequence[CellPair]) -> str:
    """How many cells differ, against how many would by chance, and which one most."""
    ours, other = contrast.labels
    by_chance = f"{number(contrast.expected_by_chance(), 2)} would by chance alone if they were the same"
    if not differ:
        return f"{ours} and {other} differ in none of {len(pairs)} cells; {by_chance}."
    most = differ[0]
    place = ", ".join([most.ours.cca, *(f"{axis} {most.ours.at[axis]}" for axis in contrast.ours.parts[most.part].axes)])
    return f"{ours} and {other} differ in {len(differ)} of {len(pairs)} cells; {by_chance}. Largest ratio: {most.ratio.text()} at {place}."


def description(study: Study) -> Screen:
    """The screen of a study before it runs: its parts, how many cells and claims it has, and what to know of its numbers."""
    rows = [(part.name, _levels(part), ", ".join(part.cca), part.seeds, str(len(part.cases()))) for part in study.parts]
    works = ", ".join(f"{sum(c.work == work for c in study.claims)} of {WORKS[work]}" for work in dict.fromkeys(c.work for c in study.claims))
    parts = Table(("part", "axes", "cca", "seeds", "cells"), rows, words=("axes", "cca"), drop=("seeds", "cca"))
    return Screen(
        study.title, f"{len(study.claims)} claims are checked on {sum(len(p.cases()) for p in study.parts)} cells: {works}.",
        remarks=(study.about.strip(),), tables=(parts,),
        details=("Claims", *(f"- {claim.text}" for claim in study.claims), *(f"pitfall: {pitfall}" for pitfall in study.pitfalls)),
        kept=f"Every claim, and {len(study.pitfalls)} pitfalls of the published numbers: --verbose",
        next=(f"tcpscape study run {study.name} --quick",),
    )  # fmt: skip


def _levels(part: Campaign) -> str:
    """The axes of a part with their values; what it pools is marked."""
    zipped = {axis: list(dict.fromkeys(values)) for group in part.zip for axis, values in group.items() if axis in part.shown}
    pooled = dict.fromkeys(part.pool, " (pooled)")
    return "; ".join(f"{axis} {summary.range_text(values)}{pooled.get(axis, '')}" for axis, values in {**part.axes, **zipped}.items())


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
