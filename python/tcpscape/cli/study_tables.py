"""What `tcpscape study` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.cli import tables
from tcpscape.stats.estimate import number
from tcpscape.studies.against import CellPair, Contrast
from tcpscape.studies.known import KnownNumber
from tcpscape.studies.result import StudyRow
from tcpscape.studies.study import Study
from tcpscape.studies.verdict import VERDICTS, JudgedClaim, JudgedStudy

MARKS = {"reproduced": "[green]yes[/green]", "not reproduced": "[red]no[/red]", "not decidable": "[yellow]open[/yellow]"}


def listing(studies: Sequence[Study]) -> Any:
    """The catalogue: name, cells, runs, claims, title."""
    rows = [(s.name, str(sum(len(p.cases()) for p in s.parts)), str(len(s.claims)), s.title) for s in studies]
    made = tables.table(("study", "cells", "claims", "what it is about"), rows)
    made.columns[-1].justify = "left"
    return made


def described(study: Study) -> Iterator[Any]:
    """What a study is: conditions, pitfalls, claims."""
    yield f"[bold]{study.title}[/bold]\n{study.source}\n{study.about.strip()}"
    for part in study.parts:
        axes = {name: values for group in (part.axes, *part.zip) for name, values in group.items()}
        said = "; ".join(f"{name} {', '.join(values)}" for name, values in axes.items())
        ccas = f"; cca {', '.join(part.cca)}" if part.cca else ""
        yield f"\n[bold]{part.name}[/bold]: {said}{ccas}; seeds {part.seeds}" + (f"; pooled over {', '.join(part.pool)}" if part.pool else "")
    for pitfall in study.pitfalls:
        yield f"pitfall: {pitfall}"
    yield "\n[bold]Claims[/bold]"
    for claim in study.claims:
        yield f"  {claim.text}"


def parts(judged: JudgedStudy) -> Iterator[Any]:
    """The tables of cells, the claims, the caveats."""
    result, claims = judged.result, judged.claims
    said = result.study
    versions = next(iter(result.parts.values())).versions
    yield f"[bold]{said.title}[/bold]\n{said.source}\n{said.about.strip()}"
    yield f"{result.trial_count} runs, engine {', '.join(f'{n} {v}' for n, v in versions.items())}"
    rows = result.rows
    for part, outcome in result.parts.items():
        yield f"\n[bold]{part}[/bold]" if len(result.parts) > 1 else ""
        yield _table(outcome, [r for r in rows if r.part == part])
    yield "\n[bold]What the study claims[/bold]"
    yield tables.table(("ours say", "claim", "measured"), [(MARKS[j.verdict], j.claim.text, _said(j)) for j in claims], left=3)
    yield "\n" + ", ".join(f"{sum(j.verdict == v for j in claims)} {v}" for v in VERDICTS)
    for pitfall in said.pitfalls:
        yield f"pitfall: {pitfall}"
    for caveat in result.caveats:
        yield f"caveat: {caveat}"


def _said(judged: JudgedClaim) -> str:
    """What was measured, and why it differs where that is known."""
    return f"{judged.measured}\n{judged.why}" if judged.why and judged.verdict != "reproduced" else judged.measured


def _table(outcome: Outcome, rows: Sequence[StudyRow]) -> Any:
    several = len({(r.metric, r.stat) for r in rows}) > 1
    what = ("what",) if several else ()
    unit = "" if several or not rows else f" {rows[0].metric} {rows[0].unit}: {rows[0].stat}"
    has_raw = any(r.raw for r in rows)
    raw = ("raw", "ours/it") if has_raw else ()
    columns = ("cca", *outcome.axes, *what, f"ours{unit} [95 %]", "published", "ours/it", *raw)
    lines = [
        (
            *_place(outcome, r.cell), *((_what(r),) if several else ()), r.ours.text(), *_beside(r.ours.value, r.published),
            *(_beside(r.ours.value, r.raw) if has_raw else ()),
        )
        for r in sorted(rows, key=lambda r: _order(outcome, r.cell))
    ]
    return tables.table(columns, lines, left=1 + len(outcome.axes) + several)


def _what(row: StudyRow) -> str:
    return f"{row.metric} {row.stat}, {row.unit}"


def _order(outcome: Outcome, cell: Cell) -> tuple[int, ...]:
    """One congestion control along the last axis after the other."""
    places = [outcome.levels(axis).index(cell.at[axis]) for axis in outcome.axes]
    return (*places[:-1], outcome.ccas.index(cell.cca), *places[-1:])


def against(contrast: Contrast) -> Iterator[Any]:
    """The table of ratios, the cells that differ, the other engine's caveats."""
    mine, theirs, pairs = contrast.ours.label, contrast.other.label, list(contrast.pairs())
    yield f"\n[bold]{mine} against {theirs}[/bold]\n{contrast.other.trial_count} more runs on {theirs}"
    yield "medians with 95 % intervals; ratio of the two medians, its 95 % interval (runs not paired); * excludes 1\n"
    for part, outcome in contrast.ours.parts.items():
        yield _contrast(outcome, [p for p in pairs if p.part == part], mine, theirs)
    differ = sum(p.differs for p in pairs)
    yield f"\n{differ} of {len(pairs)} cells differ; {number(contrast.expected_by_chance(), 2)} would by chance alone if the two were the same"
    for caveat in contrast.other.caveats:
        if caveat not in contrast.ours.caveats:
            yield f"caveat ({theirs}): {caveat}"


def _contrast(outcome: Outcome, pairs: Sequence[CellPair], mine: str, theirs: str) -> Any:
    columns = ("cca", *outcome.axes, "n", mine, theirs, "ratio [95 %]", "")
    ordered = sorted(pairs, key=lambda p: _order(outcome, p.ours))
    rows = [(*_place(outcome, p.ours), str(p.ratio.n), *(m.text() for m in p.medians), p.ratio.text(), _sign(p)) for p in ordered]
    return tables.table(columns, rows, left=1 + len(outcome.axes))


def _sign(pair: CellPair) -> str:
    return "*" if pair.differs else "same runs" if pair.same else ""


def _place(outcome: Outcome, cell: Cell) -> tuple[str, ...]:
    """Which cell it is."""
    return cell.cca, *(cell.at[axis] for axis in outcome.axes)


def _beside(ours: float, known: KnownNumber | None) -> tuple[str, str]:
    if not known:
        return "", ""
    mark = "" if known.valid else " (invalid)"
    said = number(known.value) + (f"–{number(known.high)}" if known.high is not None else "")
    return said + mark, number(ours / known.value, 2 if ours < known.value else 3) if known.value else "–"
