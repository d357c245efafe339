"""The screen of a study: its finding, the matrix, how many claims hold, those that do not with their reasons; and of a study on two engines.

The finding is one sentence and a matrix: where goodput falls to half, which congestion control is the best where, or a range of values. Both are
about the same cells (:class:`Subject`): those of the part that the study's `headline` names, along two axes. What a study leaves out follows from its
campaign: the columns are the axis with the most values, and where its lowest value is 0 (no jitter, no loss), cells are shown as a share of those
without.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tcpscape import metrics
from tcpscape.campaign import axes
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.stats import Estimate
from tcpscape.studies import known, spikes
from tcpscape.studies.known import KnownNumber
from tcpscape.studies.measures import cliffs
from tcpscape.studies.result import VERDICTS, JudgedClaim, JudgedStudy, Result, StudyRow, stands_among
from tcpscape.studies.run import CellPair, Contrast
from tcpscape.studies.study import WORKS, Study
from tcpscape.text.numbers import UNKNOWN, Number, number
from tcpscape.text.screen import Lines, Screen
from tcpscape.text.table import Table, TableRow
from tcpscape.words import paths, sentences

RETENTION = "retention"
"""Mean over the mean at the lowest value of the axis."""
SPIKE = "spike_"
"""Begins the statistics of latency spikes."""
CCA = "cca"
"""Stands for an axis where the congestion controls are the columns."""
FEW = 4
"""Most congestion controls among which the best is named."""
MOST_ROWS = 12
"""Most rows of a matrix."""
WITH_INTERVALS = 3
"""Most columns whose numbers have room for their intervals."""
WIDE = 0.25
"""A number in a column without intervals is marked where its interval reaches further than this share of it."""
APPROXIMATE = "~"
"""The mark."""


@dataclass(frozen=True)
class Subject:
    """The cells that a finding is about, what is measured of them, and the axis along the columns."""

    part: str
    outcome: Outcome
    """Its cells alone."""
    metric: str
    statistic: str
    across: str
    """An axis, or :data:`CCA`."""
    of: str = ""
    """The axis that edges are a share of."""
    finer: Outcome | None = None
    """Cells on a finer grid along the same axis, off which edges are read instead."""

    @property
    def down(self) -> tuple[str, ...]:
        """The other axes with several values."""
        return tuple(a for a in self.outcome.axes if a != self.across and len(self.outcome.levels(a)) > 1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The values along the columns."""
        return self.outcome.ccas if self.across == CCA else self.outcome.levels(self.across)

    def estimate(self, cell: Cell) -> Estimate:
        """What is measured of a cell."""
        if self.statistic == RETENTION:
            return self.outcome.retention(cell, self.across, self.metric)
        return known.STATISTICS[self.statistic](cell, self.metric)

    @property
    def label(self) -> str:
        """What is measured, in words, with its unit."""
        metric = metrics.find(self.metric)
        if self.statistic == RETENTION:
            return f"mean {self.metric} as a share of that at {self.across} {self.columns[0]}"
        if self.statistic == "cv":
            return f"CV of {self.metric}"
        name, unit = f"{self.statistic} {self.metric}", metric.printed_unit
        if self.statistic.startswith(SPIKE):
            quantity = spikes.find(self.statistic.removeprefix(SPIKE))
            return f"{quantity.about} (median{'' if quantity.unit == '1' else f', {quantity.unit}'})"
        return f"{name} ({unit})" if unit else name


def subject(result: Result) -> Subject:
    """What the finding of a result is about: the study's headline, or what follows from the first part that ran."""
    headline = result.study.headline
    part = headline.part or result.study.parts[0].name
    whole = result.parts[part]
    cells = tuple(cell for cell in whole.cells if stands_among(cell, headline.at))
    shown, _, statistic = next(iter(result.study.shows.get(part, ())), "").partition(" ")
    metric = headline.metric or shown or whole.campaign.metric
    outcome = replace(whole, cells=cells, campaign=whole.campaign.model_copy(update={"metric": metric}))
    across = headline.across or _longest_axis(outcome)
    default = statistic or (RETENTION if _begins_at_zero(outcome, across) else "mean")
    return Subject(part, outcome, metric, headline.statistic or default, across, headline.of, result.parts.get(headline.edges))


def _longest_axis(outcome: Outcome) -> str:
    """The axis of quantities with the most values, the last of several; the congestion controls where there is none."""
    levels = {axis: outcome.levels(axis) for axis in outcome.axes}
    scales = [axis for axis in outcome.axes if len(levels[axis]) > 1 and not axes.read(levels[axis][0]).is_word]
    return max(reversed(scales), key=lambda axis: len(levels[axis])) if scales else CCA


def _begins_at_zero(outcome: Outcome, across: str) -> bool:
    """Whether the first value along the columns is nothing of what the axis is about."""
    return across != CCA and axes.read(outcome.levels(across)[0]).number == 0


def sentence(about: Subject) -> str:
    """The finding as a sentence, with its intervals."""
    if about.statistic == RETENTION:
        return _falls(about)
    several = 1 < max(len({c.cca for c in cells}) for cells in sentences.by_point(about.outcome).values()) <= FEW
    if about.statistic in ("mean", "median") and metrics.find(about.metric).better != "neither" and several:
        return sentences.sweep_answer(about.outcome)
    if len(about.outcome.ccas) > FEW and not about.down and len(about.columns) <= WITH_INTERVALS:
        return _ranges(about)
    return _range(about.outcome.cells, about)


def _ranges(about: Subject) -> str:
    """The lowest and the highest value of each column."""
    columns = {text: about.outcome.select(**{about.across: text}) for text in about.columns}
    texts = [f"{_ends(cells, about, [CCA])} at {about.across} {text}" for text, cells in columns.items()]
    return f"{_title(about)}: {'; '.join(texts)}."


def _range(cells: Sequence[Cell], about: Subject) -> str:
    """The lowest and the highest value, and where they are."""
    ends = _ends(cells, about, [CCA, *about.outcome.axes])
    return f"{_title(about)}: {ends}." if ends else f"No cell has a {about.metric}: the engine does not see it."


def _title(about: Subject) -> str:
    """What is measured, at the beginning of a sentence."""
    return about.label[0].upper() + about.label[1:]


def _ends(cells: Sequence[Cell], about: Subject, shown: Sequence[str]) -> str:
    """`2.4 [1.2, 4.8] (cubic) to 9.5 [9.4, 9.6] (bbr)`; empty where no value is known."""
    estimates = [(e, cell) for cell in cells if math.isfinite((e := about.estimate(cell)).value)]
    if not estimates:
        return ""
    ends = min(estimates, key=lambda pair: pair[0].value), max(estimates, key=lambda pair: pair[0].value)
    varied = [axis for axis in shown if axis != CCA and len(about.outcome.levels(axis)) > 1]
    places = [[cell.cca] * (CCA in shown) + [f"{axis} {cell.at[axis]}" for axis in varied if axis in cell.at] for _, cell in ends]
    texts = [estimate.percent() if about.statistic == "cv" else estimate.text() for estimate, _ in ends]
    return " to ".join(f"{text} ({', '.join(place)})" for text, place in zip(texts, places, strict=True))


def _falls(about: Subject) -> str:
    """Where each congestion control falls to half."""
    phrases = [(_edge if about.of else _bracket)(about, cca, _curves(about, cca)) for cca in about.outcome.ccas]
    name = "Goodput" if about.metric.startswith("goodput") else about.metric
    where = f" where {about.across} is this share of the {about.of}" if about.of else ""
    return f"{name} falls to half{where}: {', '.join(phrases)}."


def _curves(about: Subject, cca: str) -> list[tuple[Cell, ...]]:
    """The curves of a congestion control along the columns, one for each row of the matrix; of shares, on the finest grid."""
    outcome = about.finer if about.finer and about.of else about.outcome
    others = dict.fromkeys(tuple((k, v) for k, v in c.at.items() if k != about.across) for c in outcome.select(cca))
    return [outcome.curve(about.across, cca, **dict(place)) for place in others]


def _edge(about: Subject, cca: str, curves: Sequence[tuple[Cell, ...]]) -> str:
    """The lowest and the highest edge of the curves, as a share of another axis."""
    placed = [(cliffs.edges_of([curve], about.metric, about.across, about.of)[0], curve[0]) for curve in curves]
    fallen = sorted(((e, cell) for e, cell in placed if math.isfinite(e.value)), key=lambda pair: pair[0].value)
    if not fallen:
        return f"{cca} nowhere up to {about.across} {about.columns[-1]}"
    texts = [f"{e.percent()} ({about.of} {cell.at[about.of]})" for e, cell in (fallen[0], fallen[-1])]
    return f"{cca} {' to '.join(dict.fromkeys(texts))}"


def _bracket(about: Subject, cca: str, curves: Sequence[tuple[Cell, ...]]) -> str:
    """Between which values the curves fall, of several rows the one that falls first and the one that falls last."""
    spans = sorted(((_sure(about, curve), curve[0]) for curve in curves), key=lambda pair: pair[0])
    (first, row), (last, other) = spans[0], spans[-1]
    if first[0] == len(about.columns) - 1:
        return f"{cca} nowhere up to {about.across} {about.columns[-1]}"
    if first == last:
        return f"{cca} at {about.across} {_span(about, first)}"
    return f"{cca} at {about.across} {_span(about, first)} ({_row_name(about, row)}) to {_span(about, last)} ({_row_name(about, other)})"


def _span(about: Subject, places: tuple[int, int]) -> str:
    """`8ms–12ms`; `beyond 24ms` where the end of the axis is still not surely below half."""
    holds, falls = places
    return f"{about.columns[holds]}–{about.columns[falls]}" if falls < len(about.columns) else f"beyond {about.columns[holds]}"


def _row_name(about: Subject, cell: Cell) -> str:
    """Where a row stands on the other axes."""
    return ", ".join(f"{axis} {cell.at[axis]}" for axis in about.down if axis in cell.at)


def _sure(about: Subject, curve: Sequence[Cell]) -> tuple[int, int]:
    """The last place up to which a curve surely keeps half, and the first at which it surely does not; one beyond the last for none.

    A single run has no interval: its value decides.
    """
    ends = [(e.value, e.value) if math.isnan(e.low) else (e.low, e.high) for e in map(about.estimate, curve)]
    holds = next((i for i, (low, _) in enumerate(ends) if i and not low > cliffs.HALF), len(ends)) - 1
    falls = next((i for i, (_, high) in enumerate(ends) if high < cliffs.HALF), len(ends))
    places = [about.columns.index(cell.at[about.across]) for cell in curve] + [len(about.columns)]
    return places[holds], places[falls]


def matrix(about: Subject) -> Table:
    """The cells as a matrix: a row for each congestion control and value of the other axes, a column for each value along the columns."""
    rows = list(_rows(about))
    hidden = len(rows) - MOST_ROWS
    if hidden > 0 and about.statistic in ("mean", "median"):
        sign = 1 if metrics.find(about.metric).better == "less" else -1
        rows.sort(key=lambda row: sign * _first_value(about, row[1]))
    heads = [] if about.across == CCA else [CCA]
    names = [f"{about.across} {text}" if i == 0 and heads else text for i, text in enumerate(about.columns)]
    shown = [(head, [_number(about, i, cell) for i, cell in enumerate(cells)]) for head, cells in rows[:MOST_ROWS]]
    notes = [_conditions(about)]
    if any(is_rough for _, numbers in shown for _, is_rough in numbers):
        notes.append(f"{APPROXIMATE} the interval reaches further than a quarter of the number; all intervals: --verbose")
    if hidden > 0:
        notes.append(f"{hidden} more rows: --verbose")
    heads, middle = [*heads, *about.down], names[-2:0:-1]
    rows_of_cells: list[TableRow] = [[*head, *(number for number, _ in numbers)] for head, numbers in shown]
    return Table([*heads, *names], rows_of_cells, len(heads), f"{about.part}: {about.label}", notes, (*middle[::2], *middle[1::2]))


def _rows(about: Subject) -> Iterator[tuple[list[str], list[Cell | None]]]:
    """The head of each row and its cells; None where there is none."""
    places = dict.fromkeys(tuple(c.at.get(axis, "") for axis in about.down) for c in about.outcome.cells)
    for place in places:
        at = dict(zip(about.down, place, strict=True))
        here = about.outcome.select(**at)
        if about.across == CCA:
            yield list(place), [next((c for c in here if c.cca == cca), None) for cca in about.columns]
            continue
        for cca in dict.fromkeys(c.cca for c in here):
            cells = {c.at[about.across]: c for c in here if c.cca == cca}
            yield [cca, *place], [cells.get(text) for text in about.columns]


def _first_value(about: Subject, cells: Sequence[Cell | None]) -> float:
    """What the first cell of a row measures; 0 where there is none."""
    value = about.estimate(cells[0]).value if cells[0] else 0.0
    return value if math.isfinite(value) else 0.0


def _number(about: Subject, column: int, cell: Cell | None) -> tuple[Number, bool]:
    """A cell of the matrix, and whether it is marked as approximate; where shares are shown, the first column has what they are shares of."""
    if cell is None:
        return UNKNOWN, False
    is_share = about.statistic == RETENTION and column > 0
    estimate = cell.mean(about.metric) if about.statistic == RETENTION and not column else about.estimate(cell)
    if not is_share and about.statistic != RETENTION and len(about.columns) <= WITH_INTERVALS:
        return estimate.cell(), False
    shown = Number.percent(estimate.value) if is_share or about.statistic == "cv" else Number.of(estimate.value)
    reach = max(estimate.high - estimate.value, estimate.value - estimate.low)
    is_rough = reach > WIDE * abs(estimate.value)
    return replace(shown, text=f"{APPROXIMATE}{shown.text}") if is_rough else shown, is_rough


def _conditions(about: Subject) -> str:
    """What the cells have in common, in words, and how often each ran."""
    varied = (about.across, *about.down)
    common = paths.together([s for c in about.outcome.cells for s in c.scenarios], {})
    in_words = paths.parts(about.outcome.cells[0].scenarios[0])
    names = [axis for axis in about.outcome.axes if axis not in varied and axis not in in_words]
    fixed = [f"{axis} {levels[0]}" for axis in names for levels in [about.outcome.levels(axis)] if len(levels) == 1]
    count = sorted({len(cell.trials) for cell in about.outcome.cells})
    trials = f"{count[0]} trials a cell" if len(count) == 1 else f"{count[0]} to {count[-1]} trials a cell"
    trials = "1 trial a cell, so no intervals" if count == [1] else trials
    return f"{', '.join(dict.fromkeys([*fixed, common]))}; {trials}, {about.outcome.label}"


MOST_FAILURES = 5
"""Most claims that are shown with their reason; how many more there are is said."""
MOST_PAIRS = 12
"""Most cells that are shown of two engines: those that differ most, where there are more."""
COUNTED = {"reproduced": "reproduced", "not reproduced": "not", "not decidable": "open"}
"""How the verdicts are counted."""


def study_screen(judged: JudgedStudy) -> Screen:
    """The screen of a study that was run on one engine."""
    result = judged.result
    about = subject(result)
    return Screen(
        f"{result.study.title} ({result.trial_count} trials, {result.label})",
        f"{sentence(about)}{_hold(judged)}",
        tables=(_matrix(about, judged), *([_failures(judged)] if judged.claims else [])),
        details=tuple(_details(judged)),
        caveats=result.caveats,
    )


def _matrix(about: Subject, judged: JudgedStudy) -> Table:
    """The matrix, and the names of the parts that it is not about."""
    table, others = matrix(about), [part for part in judged.result.parts if part != about.part]
    return replace(table, notes=(*table.notes, f"further parts ({', '.join(others)}): --verbose")) if others else table


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
        f"{contrast.ours.study.title} ({trials})",
        _differences(contrast, pairs, differ),
        remarks=(f"Claims on {ours}: {count(judged)}",),
        tables=differing,
        details=(*ratios(contrast, pairs), *_details(judged)),
        caveats=(*contrast.ours.caveats, *own),
    )


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
        study.title,
        f"{len(study.claims)} claims are checked on {sum(len(p.cases()) for p in study.parts)} cells: {works}.",
        remarks=(study.about.strip(),),
        tables=(parts,),
        details=("Claims", *(f"- {claim.text}" for claim in study.claims), *(f"pitfall: {pitfall}" for pitfall in study.pitfalls)),
        kept=f"Every claim, and {len(study.pitfalls)} pitfalls of the published numbers: --verbose",
        next=(f"tcpscape study run {study.name} --quick",),
    )


def _levels(part: Campaign) -> str:
    """The axes of a part with their values; what it pools is marked."""
    zipped = {axis: list(dict.fromkeys(values)) for group in part.zip for axis, values in group.items() if axis in part.shown}
    pooled = dict.fromkeys(part.pool, " (pooled)")
    return "; ".join(f"{axis} {paths.range_text(values)}{pooled.get(axis, '')}" for axis, values in {**part.axes, **zipped}.items())


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
            r.cell.cca,
            *_place(outcome, r.cell),
            *((f"{r.metric} {r.stat}, {r.unit}",) if several else ()),
            r.ours.cell(),
            *(_published(r.ours.value, r.published) if published else ()),
            *(_published(r.ours.value, r.raw) if raw else ()),
        )
        for r in sorted(rows, key=lambda r: _order(outcome, r.cell))
    ]
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
            rows: list[TableRow] = [
                (p.ours.cca, *_place(outcome, p.ours), str(p.ratio.n), *(m.cell() for m in p.medians), p.ratio.cell(), _sign(p)) for p in ordered
            ]
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
