"""What a study finds, as one sentence and a matrix: where goodput falls to half, which congestion control is the best where, or a range of values.

Both are about the same cells (:class:`Subject`): those of the part that the study's `headline` names, along two axes. What a study leaves out follows
from its campaign: the columns are the axis with the most values, and where its lowest value is 0 (no jitter, no loss), cells are shown as a share of
those without.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tcpscape import metrics
from tcpscape.campaign import axes
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.scenario import summary
from tcpscape.stats import Estimate
from tcpscape.studies import known, spikes
from tcpscape.studies.measures import cliffs
from tcpscape.studies.result import Result, stands_among
from tcpscape.text.numbers import number, percent
from tcpscape.text.table import Table
from tcpscape.words import sentences

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
    texts = [[*head, *(_text(about, i, cell) for i, cell in enumerate(cells))] for head, cells in rows[:MOST_ROWS]]
    notes = [_conditions(about)]
    if any(text.startswith(APPROXIMATE) for row in texts for text in row):
        notes.append(f"{APPROXIMATE} the interval reaches further than a quarter of the number; all intervals: --verbose")
    if hidden > 0:
        notes.append(f"{hidden} more rows: --verbose")
    heads, middle = [*heads, *about.down], names[-2:0:-1]
    return Table([*heads, *names], texts, len(heads), f"{about.part}: {about.label}", notes, (*middle[::2], *middle[1::2]))


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


def _text(about: Subject, column: int, cell: Cell | None) -> str:
    """A cell of the matrix; where shares are shown, the first column has what they are shares of."""
    if cell is None:
        return "–"
    is_share = about.statistic == RETENTION and column > 0
    estimate = cell.mean(about.metric) if about.statistic == RETENTION and not column else about.estimate(cell)
    if not is_share and about.statistic != RETENTION and len(about.columns) <= WITH_INTERVALS:
        return estimate.text()
    text = percent(estimate.value) if is_share or about.statistic == "cv" else number(estimate.value)
    reach = max(estimate.high - estimate.value, estimate.value - estimate.low)
    return f"{APPROXIMATE}{text}" if reach > WIDE * abs(estimate.value) else text


def _conditions(about: Subject) -> str:
    """What the cells have in common, in words, and how often each ran."""
    varied = (about.across, *about.down)
    common = summary.together([s for c in about.outcome.cells for s in c.scenarios], {})
    in_words = summary.parts(about.outcome.cells[0].scenarios[0])
    names = [axis for axis in about.outcome.axes if axis not in varied and axis not in in_words]
    fixed = [f"{axis} {levels[0]}" for axis in names for levels in [about.outcome.levels(axis)] if len(levels) == 1]
    count = sorted({len(cell.trials) for cell in about.outcome.cells})
    trials = f"{count[0]} trials a cell" if len(count) == 1 else f"{count[0]} to {count[-1]} trials a cell"
    trials = "1 trial a cell, so no intervals" if count == [1] else trials
    return f"{', '.join(dict.fromkeys([*fixed, common]))}; {trials}, {about.outcome.label}"
