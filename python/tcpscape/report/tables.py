"""The tables of a page: fields with their intervals; the indicators of each cell; a study's numbers beside the published ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from tcpscape import stats
from tcpscape.campaign import axes
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.controls.palette import Look
from tcpscape.findings import indicators
from tcpscape.plots import base
from tcpscape.report.shapes import swatch
from tcpscape.scenario.flows import carried
from tcpscape.scenario.path import Netem
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.studies.known import KnownNumber
from tcpscape.studies.result import Result, StudyRow
from tcpscape.text.numbers import Number, number, percent
from tcpscape.text.table import Table

WORDS = ("jitter / RTT", "the published rule says", "receive window", "video each flow carries")
"""Indicators that are words."""
MOST_ROWS = 1000
"""Most rows of a table on a page; all of them are in its file."""
MOST_DIAGNOSED = 200
"""Most cells of a part for the table of indicators."""
PRECISION = 0.05
"""Precision of the mean for which the number of runs is given."""
OPTION = "--verbose"
"""Part of a note that is about the terminal alone."""
INDICATORS = (
    "jitter / RTT",
    "windows closed in 10 s",
    "sent again in 10 s",
    "time held by the receive window, %",
    "the published rule says",
    "receive window",
    "video each flow carries",
    "runs for a mean to ± 5 %",
)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table."""

    text: str
    interval: str = ""
    """`[4.8, 6.5]`."""
    sort: float | None = None
    """The number that it is sorted by; without one, it is sorted by its text."""
    href: str = ""
    """The anchor of the page that it links to."""
    kind: str = ""
    """The CSS class of a verdict."""
    looks: tuple[Look, ...] = ()
    """The looks of the congestion controls that it names, drawn before them."""

    @property
    def swatches(self) -> Markup:
        """The looks as inline SVG."""
        return Markup().join(map(swatch, self.looks))


@dataclass(frozen=True)
class PageTable:
    """A table of a page."""

    name: str
    """The name of its file in `tables/`."""
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Field]]
    left: int = 1
    """Number of columns with text; the others have numbers."""
    words: Sequence[str] = ()
    """Columns of words behind the first `left`."""
    notes: Sequence[str] = ()
    """Sentences below it."""
    stacked: bool = False
    """Whether each row becomes a card on a narrow page: for tables of sentences, where scrolling would hide half of them."""
    more: int = 0
    """Rows behind `rows` that only the file has."""

    def dense(self) -> PageTable:
        """The table without the columns that are empty in every row."""
        filled = [i for i in range(len(self.columns)) if any(row[i].text for row in self.rows)]
        left = sum(i < self.left for i in filled)
        return replace(self, columns=[self.columns[i] for i in filled], rows=[[row[i] for i in filled] for row in self.rows], left=left)

    @property
    def shown(self) -> Sequence[Sequence[Field]]:
        """The rows on the page."""
        return self.rows[:MOST_ROWS]

    @property
    def hidden(self) -> int:
        """Number of rows that are in the file only."""
        return self.more + max(0, len(self.rows) - MOST_ROWS)


def of_screen(table: Table, looks: Mapping[str, Look], caption: str = "") -> PageTable:
    """A table that the terminal shows, as one of a page: congestion controls with their looks, numbers that can be sorted.

    `caption`: where the table has no title of its own.
    """
    rows = [[_of_cell(cell, looks) for cell in row] for row in table.rows]
    notes = ["; ".join(part for part in note.split("; ") if OPTION not in part) for note in table.notes]
    return PageTable("screen", table.title or caption, table.columns, rows, table.left, table.words, [note for note in notes if note])


def _of_cell(cell: str | Number, looks: Mapping[str, Look]) -> Field:
    """A field of a terminal's table: a number with its interval, a name, or words."""
    if isinstance(cell, Number):
        return Field(cell.text, cell.interval, cell.value if math.isfinite(cell.value) else None)
    return control(cell, looks) if all(name in looks for name in cell.split("+")) else word(cell)


def word(text: object, href: str = "", kind: str = "") -> Field:
    """A field with text."""
    return Field(str(text), href=href, kind=kind)


def control(cca: str, looks: Mapping[str, Look], href: str = "") -> Field:
    """A field with a congestion control, or a mixture of several, before it the look that each has in the figures."""
    names = [name for name in cca.split("+") if name in looks] or [cca]
    return Field(cca, href=href, looks=tuple(looks[name] for name in names))


def count(value: int) -> Field:
    """A field with a number of things."""
    return Field(str(value), sort=float(value))


def level(cell: Cell, axis: str) -> Field:
    """A field with the cell's value on an axis."""
    text = cell.at.get(axis, "")
    value = axes.read(text) if text else None
    return Field(text, sort=None if value is None or value.is_word else value.number)


def estimate(result: Estimate, factor: float = 1.0) -> Field:
    """A field with an estimate times `factor` and its interval; `[one run]` in place of the interval of a single run."""
    if not math.isfinite(result.value):
        return Field("–")
    known = result.n > 1 and math.isfinite(result.low)
    interval = f"[{number(factor * result.low)}, {number(factor * result.high)}]" if known else "[one run]" if result.n == 1 else ""
    return Field(number(factor * result.value), interval, factor * result.value)


def indicator_table(part: str, outcome: Outcome) -> list[PageTable]:
    """The indicators of each cell for the diagnosis of a path; an empty list where the part has too many cells.

    Zone of the jitter, signatures in the counters, video quality, number of runs for a precise mean.
    """
    if len(outcome.cells) > MOST_DIAGNOSED:
        return []
    columns = ["cca", *outcome.axes, *INDICATORS]
    looks = base.looks(outcome)
    rows = [[control(c.cca, looks), *(level(c, a) for a in outcome.axes), *_indicators(c)] for c in outcome.cells]
    caption = f"{part}: indicators" if part else "Indicators"
    return [PageTable("indicators", caption, columns, rows, left=1 + len(outcome.axes), words=WORDS)]


def _indicators(cell: Cell) -> list[Field]:
    result = indicators.judge(cell.trials)
    goodputs = [t.goodput_mbps / max(1, len(t.flows)) for t in cell.trials]
    return [
        word(_zone(cell.scenarios[0])),
        estimate(result.closed),
        estimate(result.resent),
        estimate(result.held, 100.0),
        _most_frequent(result.problems),
        _most_frequent(result.windows),
        word(carried(stats.median(goodputs).value)),
        _whole_runs(stats.runs_needed_from(cell.values(), PRECISION)),
    ]


def _whole_runs(needed: Estimate) -> Field:
    if not math.isfinite(needed.value):
        return Field("–")
    interval = f"[{needed.low:.0f}, {needed.high:.0f}]" if math.isfinite(needed.low) and math.isfinite(needed.high) else ""
    return Field(f"{needed.value:.0f}", interval, needed.value)


def _zone(scenario: Scenario) -> str:
    """Jitter over RTT of the data's path, and what the published rule says of it where it applies: to normal jitter that reorders."""
    hops = [h for h in scenario.forward if isinstance(h, Netem) and h.jitter]
    if not hops or not scenario.rtt_ns:
        return ""
    widest = max(hops, key=lambda h: h.jitter)
    share = percent(widest.jitter / scenario.rtt_ns)
    if (widest.order, widest.distribution) != ("reorder", "normal"):
        return share
    return f"{share}, published as {indicators.zone(widest.jitter, scenario.rtt_ns)}"


def _most_frequent(shares: Mapping[str, Estimate] | Mapping[indicators.Problem, Estimate] | Mapping[indicators.Window, Estimate]) -> Field:
    """The diagnosis of most runs, with their share if it is not all of them."""
    pairs: list[tuple[str, Estimate]] = sorted(shares.items(), key=lambda pair: -pair[1].value)
    if not pairs:
        return word("–")
    name, share = pairs[0]
    return word(name if share.value == 1 else f"{name} ({percent(share.value)})")


def study_tables(result: Result) -> list[PageTable]:
    """For each part with published numbers a table of our numbers, the published ones, and their ratio."""
    tables = []
    for part, outcome in result.parts.items():
        looks = base.looks(outcome)
        rows = [_study_row(r, outcome.axes, looks) for r in result.rows if r.part == part and (r.published or r.raw)]
        if rows:
            columns = ["cca", *outcome.axes, "what", "n", "ours", "published", "ours / published", "raw", "ours / raw", "note"]
            tables.append(PageTable("study", f"{part}: ours beside what was published", columns, rows, left=2 + len(outcome.axes), words=("note",)))
    return tables


def _study_row(row: StudyRow, axis_names: Sequence[str], looks: Mapping[str, Look]) -> list[Field]:
    quantity = f"{row.metric} {row.stat}" + (f", {row.unit}" if row.unit not in ("", "1") else "")
    notes = "; ".join(k.note for k in (row.published, row.raw) if k and k.note)
    return [
        control(row.cell.cca, looks),
        *(level(row.cell, a) for a in axis_names),
        word(quantity),
        count(row.ours.n),
        estimate(row.ours),
        *_known_fields(row, row.published),
        *_known_fields(row, row.raw),
        word(notes),
    ]


def _known_fields(row: StudyRow, known: KnownNumber | None) -> list[Field]:
    """A published number, and the ratio of ours to it with the interval of ours over it."""
    if known is None:
        return [Field(""), Field("")]
    text = number(known.value) + (f"–{number(known.high)}" if known.high is not None else "") + ("" if known.valid else " (invalid)")
    return [Field(text, sort=known.value), estimate(row.ours, 1 / known.value) if known.value else Field("–")]
