"""The screen of a study: its finding, the matrix, how many claims hold, those that do not with their reasons; and of a study on two engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcpscape.campaign.campaign import Campaign
from tcpscape.scenario import summary
from tcpscape.studies.run import CellPair, Contrast
from tcpscape.studies.study import WORKS, Study
from tcpscape.studies.verdict import VERDICTS, JudgedClaim, JudgedStudy
from tcpscape.text.numbers import number
from tcpscape.text.screen import Lines, Screen
from tcpscape.text.table import Table
from tcpscape.words import finding
from tcpscape.words import study_tables as tables

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
    return f"not “{judged.claim.text}”: {tables.reason(judged)}"


def _details(judged: JudgedStudy) -> Iterator[Table | str]:
    """Source, cells, claims and pitfalls."""
    study = judged.result.study
    yield f"{study.source}. {study.about.strip()}"
    yield from tables.cells(judged.result)
    yield tables.claims(judged.claims)
    yield from (f"pitfall: {pitfall}" for pitfall in study.pitfalls)


def contrast_screen(contrast: Contrast, judged: JudgedStudy) -> Screen:
    """The screen of a study on two engines: the cells that differ; the claims are judged by the first engine."""
    pairs = list(contrast.pairs())
    differ = sorted((p for p in pairs if p.differs), key=lambda p: -p.distance)
    shown = pairs if len(pairs) <= MOST_PAIRS else differ[:MOST_PAIRS]
    notes = ["ratio of the two medians, runs not paired; * its 95 % interval excludes 1"]
    if len(differ) > len(shown):
        notes.append(f"{len(differ) - len(shown)} more cells differ: --verbose")
    differing = [replace(table, notes=notes if i == 0 else ()) for i, table in enumerate(tables.ratios(contrast, shown))]
    ours, other = contrast.labels
    own = [f"on {other}: {caveat}" for caveat in contrast.other.caveats if caveat not in contrast.ours.caveats]
    trials = f"{contrast.ours.trial_count} trials on {ours}, {contrast.other.trial_count} on {other}"
    return Screen(
        f"{contrast.ours.study.title} ({trials})", _differences(contrast, pairs, differ),
        remarks=(f"Claims on {ours}: {count(judged)}",), tables=differing,
        details=(*tables.ratios(contrast, pairs), *_details(judged)), caveats=(*contrast.ours.caveats, *own),
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
