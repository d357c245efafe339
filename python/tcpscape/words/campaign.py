"""The answer of a campaign as a screen: the path, the sentence that answers (:mod:`tcpscape.words.sentences`), the table, what weakens it.

:func:`run_screen` is of one point, :func:`sweep_screen` of several. The table of a run has means, as the ratios of its sentence; that of a sweep has
medians. A report begins with the same.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from typing_extensions import TypedDict

from tcpscape import metrics, stats, units
from tcpscape.campaign import groups
from tcpscape.campaign.adaptive import repetition
from tcpscape.campaign.outcome import MOST_BOUNDED, Cell, CellSummary, Outcome, smoothed
from tcpscape.formats import INTERVAL, TableFormat, columns
from tcpscape.metrics.flows import added_to, limits
from tcpscape.scenario import bottleneck
from tcpscape.stats.estimate import Estimate, Interval
from tcpscape.text.numbers import UNKNOWN, Number, percent, shares
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table, TableRow, table_of
from tcpscape.trial import FlowResult, Trial
from tcpscape.words import paths, sentences, traffic

if TYPE_CHECKING:
    import polars as pl

FULL = 0.9
"""Share of the link's rate that goodput reaches where the link is full: headers take 4 to 5 %."""
MOST_SHARES = 3
"""Most congestion controls of mixtures whose shares a table has."""
MOST_VALUES = 4
"""Most numbers of a command's output that are named."""
WIDE = "*"
"""Marks a cell whose interval is wider than asked."""
RUN_DROP = ("CE marks", "CV", "RTT p50 ms", "retransmits", "limited by")
"""Columns of a run's table that a narrow screen leaves out, the first one first."""


def screen(outcome: Outcome, *, wide: bool = False) -> Screen:
    """The screen of an outcome, of one point or of several; `wide`: its table has every column and interval, for where no width is given."""
    return run_screen(outcome, wide=wide) if sentences.is_of_run(outcome) else sweep_screen(outcome, wide=wide)


def run_screen(outcome: Outcome, *, wide: bool = False) -> Screen:
    """The screen of a scenario that was run under one or several congestion controls, or with a mixture of them."""
    cells = outcome.cells
    weak = sentences.caveats(cell.mean() for cell in cells)
    of_traffic = (*groups.player_caveats(cells[0].scenarios[0]), *traffic.caveats(outcome))
    caveats = dict.fromkeys((*outcome.caveats, *smoothed(outcome, ("added_rtt",)), *of_traffic, *weak))
    count = len(cells[0].trials)
    path = f"{paths.in_words(cells[0].scenarios[0])}; {units.counted(count, 'trial')} each, {outcome.label}"
    has_flows = any(trial.flows for cell in cells for trial in cell.trials[:1])
    tables = (*([run_table(outcome, wide=wide)] if has_flows else []), *traffic.tables(outcome), *traffic.view_tables(outcome))
    answer = sentences.run_answer(outcome)
    remarks = [text for text in (*traffic.change_sentences(outcome), *traffic.sentences(outcome), *traffic.view_sentences(outcome)) if text != answer]
    return Screen(path, answer, remarks, tables, caveats=tuple(caveats))


def run_table(outcome: Outcome, *, wide: bool = False) -> Table:
    """A row for each congestion control, or group of flows of a network: the sum of its flows, and one for all flows where there are several.

    `wide`: with the number of trials, and the interval of the added RTT.
    """
    has_marks = any(flow.delivered_ce for trial in outcome.each_trial() for flow in trial.flows)
    has_changes = any(cell.scenarios[0].changes for cell in outcome.cells)
    several = any(len(trial.flows) > 1 for trial in outcome.each_trial())
    engines = len(outcome.versions) > 1
    shown = {"engine": engines, "flows": several, "highest RTT ms": has_changes, "CE marks": has_marks, "n": wide, ADDED: not wide, ADDED_WIDE: wide}
    columns = [name for name in ("cca", "engine", *ROW[1:]) if shown.get(name, True)]
    rows = []
    for cell in outcome.cells:
        for values in _rows(cell):
            kept = dict(zip(ROW, values, strict=True)) | {"engine": cell.engine}
            rows.append([kept[column] for column in columns])
    has_all = any(len(groups.of(cell)) > 1 for cell in outcome.cells)
    whole = "the answer and 'all' are" if len(outcome.cells) == 1 else "'all' is"  # several are compared by their flows' own times
    over = f", each over its own time; {whole} over the whole trial" if has_all else ""
    notes = (f"Each row is the sum of its flows{over}.",) if several else ()
    if any(groups.is_network(cell.scenarios[0]) for cell in outcome.cells):
        columns[0] = "group"
    return Table(columns, rows, 1 + engines, notes=notes, drop=RUN_DROP, words=("limited by",))


ADDED, ADDED_WIDE = "added RTT p95 ms", "added RTT p95 ms, mean [95 %]"
"""Column of the added RTT, as a number and with its interval."""
ROW = (
    "cca",
    "flows",
    "goodput Mbit/s, mean [95 %]",
    "CV",
    ADDED,
    ADDED_WIDE,
    "highest RTT ms",
    "retransmits",
    "CE marks",
    "RTT p50 ms",
    "limited by",
    "n",
)
"""Columns of a row of :func:`run_table`."""


def _rows(cell: Cell) -> Iterator[TableRow]:
    """A row for each group of flows of a cell, and one for all of them where there are several."""
    trials, scenario = cell.trials, cell.scenarios[0]
    link = bottleneck.link_mbps(scenario)
    full = bool(link) and stats.mean(cell.values()).value >= FULL * (link or 0)
    of = groups.of(cell)
    for group in of:
        yield _row(group.name, [group.of(trial) for trial in trials], trials, link, full)
    if len(of) > 1:
        carried = sentences.carried(cell, of)
        flows, runs = Number.count(len(trials[0].flows)), Number.count(len(trials))
        yield "all", flows, carried.cell(most=link), Number.percent(cell.cv().value), *[""] * (len(ROW) - 5), runs


def _row(name: str, flows_of: Sequence[Sequence[FlowResult]], trials: Sequence[Trial], link: float | None, full: bool) -> TableRow:
    """One row: the flows of each trial."""
    flows = [flow for of_trial in flows_of for flow in of_trial]
    goodputs = [sum(flow.goodput_mbps for flow in of_trial) for of_trial in flows_of]
    rtts = [f.rtt_ms.p50 for f in flows if f.rtt_ms.p50 is not None]
    added = _added_by(flows_of, trials)
    limited = shares(limits(flows)) + (", link full" if full else "")
    return (
        name,
        Number.count(len(flows_of[0])),
        stats.mean(goodputs).cell(most=link),
        Number.percent(stats.cv(goodputs).value),
        Number.of(max(0.0, added.value)) if added else UNKNOWN,
        added.cell() if added else UNKNOWN,
        _highest(flows_of),
        _mean(sum(f.retransmits for f in of_trial) for of_trial in flows_of),
        _mean(sum(f.delivered_ce or 0 for f in of_trial) for of_trial in flows_of),
        _mean(rtts) if rtts else UNKNOWN,
        limited,
        Number.count(len(trials)),
    )


def _added_by(flows_of: Sequence[Sequence[FlowResult]], trials: Sequence[Trial]) -> Estimate | None:
    """What the flows of each trial, on average, add to the RTT of their path, ms; None where it is not known."""
    each = [[added_to(flow, trial) for flow in flows] for flows, trial in zip(flows_of, trials, strict=True)]
    known = [values for of_trial in each if (values := [value for value in of_trial if value is not None])]
    return stats.mean([sum(values) / len(values) for values in known]) if known else None


def _highest(flows_of: Sequence[Sequence[FlowResult]]) -> Number:
    """The highest RTT of any of the flows, mean over the trials, ms."""
    peaks = [max((f.rtt_ms.max for f in flows if f.rtt_ms.max is not None), default=math.nan) for flows in flows_of]
    return _mean(known) if (known := stats.known(peaks)) else UNKNOWN


def _mean(values: Iterable[float]) -> Number:
    return Number.of(stats.mean([float(v) for v in values]).value)


def sweep_screen(outcome: Outcome, summaries: Sequence[CellSummary] = (), next_: Sequence[str] = (), *, wide: bool = False) -> Screen:
    """The screen of a campaign with axes: what they are, which congestion control is the best where, and a row for each cell."""
    cells = summaries or outcome.summaries()
    rows = replace(outcome.table(cells, wide=wide), title="", notes=notes(outcome, cells))
    return replace(sweep_head(outcome, cells), tables=(rows,), next=next_)


def sweep_head(outcome: Outcome, summaries: Sequence[CellSummary] = ()) -> Screen:
    """The screen of a campaign with axes, without its table."""
    cells = summaries or outcome.summaries()
    axes = {axis: levels for axis in outcome.axes if len(levels := outcome.levels(axis)) > 1}
    count = {len(cell.trials) for cell in outcome.cells}
    trials = f"{min(count)}" + (f" to {max(count)}" if len(count) > 1 else "")
    scenarios = [s for cell in paths.spread(outcome.cells) for s in cell.scenarios]
    path = f"{paths.together(scenarios, axes)}; {trials} trials a cell, {outcome.label}"
    shown = (outcome.campaign.metric, *("added_rtt" for name in _companions(outcome).values() if name.startswith("added_rtt")))
    caveats = [*weaknesses(outcome, cells), *smoothed(outcome, shown), *groups.player_caveats(outcome.cells[0].scenarios[0])]
    return Screen(path, sentences.sweep_answer(outcome), caveats=caveats)


@table_of.register
def table(outcome: Outcome, summaries: Sequence[CellSummary] = (), *, wide: bool = False) -> Table:
    """What :meth:`Outcome.table` shows."""
    cells, metric = summaries or outcome.summaries(), metrics.find(outcome.campaign.metric)
    levels = {axis: list(dict.fromkeys(c.at[axis] for c in outcome.cells)) for axis in outcome.axes}
    fixed, varied = {a: v[0] for a, v in levels.items() if len(v) == 1}, [a for a, v in levels.items() if len(v) > 1]
    engine = ["engine"] * (len(outcome.versions) > 1)
    unit = f" {metric.unit}" if metric.unit not in ("", "1") else ""
    others = _companions(outcome)
    headings = [f"{name}: median [95 %]" if wide else name for name in others]
    columns = (*varied, *engine, "cca", f"{metric.name}{unit}: median [95 %]", *headings, "CV", "n")
    rows: list[TableRow] = []
    for s in cells:
        place = [*(s.cell.at[a] for a in varied), *([s.cell.engine] if engine else []), s.cell.cca]
        beside = [_beside(s.cell, name, wide) for name in others.values()]
        value = s.median.cell(most=s.most)
        if not s.is_precise:
            value = replace(value, interval=f"{value.interval} {WIDE}".lstrip())
        rows.append((*place, value, *beside, Number.percent(s.cv.value), Number.count(len(s.cell.trials))))
    title = ", ".join([f"{outcome.name}: {metric.name}", *(f"{name} {value}" for name, value in fixed.items()), outcome.label])
    below = [*notes(outcome, cells), *(f"caveat: {caveat}" for caveat in weaknesses(outcome, cells))]
    about = metrics.title(sentences.subject(outcome))
    droppable = [heading for heading in reversed(headings) if not heading.startswith(about)]
    return Table(columns, rows, len(varied) + len(engine) + 1, title, below, drop=("n", "CV", *droppable))


def _companions(outcome: Outcome) -> dict[str, str]:
    """Metrics whose medians stand beside the campaign's own: heading → name."""
    own = metrics.find(outcome.campaign.metric).name
    if len(outcome.cells) > MOST_BOUNDED:
        return {}
    mixed = list(dict.fromkeys(cca for cell in outcome.cells if "+" in cell.cca for cca in cell.cca.split("+")))[:MOST_SHARES]
    headings = {"goodput Mbit/s": "goodput"}
    headings |= {f"added RTT p95 ms, {cca}": f"added_rtt:{cca}" for cca in mixed} or {"added RTT p95 ms": "added_rtt"}
    headings |= {**({"Jain": "jain"} if mixed else {}), **{f"share of {cca}": f"share:{cca}" for cca in mixed}}
    return {heading: name for heading, name in headings.items() if name != own and _knows(outcome, name)}


def _knows(outcome: Outcome, name: str) -> bool:
    """Whether a metric has a value anywhere."""
    return any(cell.knows(name) for cell in outcome.cells)


def notes(outcome: Outcome, cells: Sequence[CellSummary]) -> list[str]:
    """What the marks in the table of these cells mean."""
    lines, rule = [], repetition(outcome.campaign)
    if rule and (wide := sum(not s.is_precise for s in cells)):
        lines.append(f"{WIDE} {wide} of {len(cells)} cells stopped at {rule.cap} runs, wider than ± {percent(rule.precision, 1)}")
    if any(math.isinf(end) for s in cells for end in (s.median.low, s.median.high)):
        lines.append("∞: so few runs cannot bound a median; give more --seeds")
    values = dict.fromkeys(
        name for cell in outcome.cells if cell.has_programs for trial in cell.trials if trial.program for name in trial.program.values
    )
    if values and not outcome.campaign.metric.startswith("output:"):
        named = ", ".join(f"output:{name}" for name in list(values)[:MOST_VALUES])
        lines.append(f"numbers of the command's output are metrics too: {named}{', …' if len(values) > MOST_VALUES else ''}")
    return lines


def weaknesses(outcome: Outcome, cells: Sequence[CellSummary]) -> list[str]:
    """Whatever weakens the table of these cells: caveats of trials and of medians, each once."""
    return list(dict.fromkeys((*outcome.caveats, *sentences.caveats(s.median for s in cells))))


def _beside(cell: Cell, name: str, wide: bool) -> Number:
    """The median of a metric of a cell, `wide` with its interval; – where nothing is known."""
    values = stats.known(cell.values(name))
    if not values:
        return UNKNOWN
    most = bottleneck.link_mbps(cell.scenarios[0]) if wide and name == "goodput" else None
    return stats.median(values).cell(most=most) if wide else Number.of(statistics.median(values))


class CellDocument(TypedDict):
    """A cell of a sweep: one condition under one congestion control on one engine. A line of `tcpscape sweep --json`."""

    format: Literal[1]
    """Format of a cell."""
    name: str
    """Name of the campaign."""
    engine: str
    """Engine that ran it."""
    version: str
    """Version of the model or of the engine."""
    at: dict[str, str]
    """Axis → value as it was written."""
    cca: str
    """Congestion controls of the flows."""
    metric: str
    """What was measured, a name of `tcpscape metric list`."""
    unit: str
    """Unit of the median."""
    n: int
    """Number of trials."""
    median: Interval
    """Median over the trials, in `unit`."""
    cv: Interval
    """Coefficient of variation over the trials, standard deviation / mean."""
    reached: bool
    """Whether the interval is as narrow as --precision asks; true without it."""
    caveats: list[str]
    """What limits the validity, a sentence each."""


def documents(outcome: Outcome, cells: Sequence[CellSummary]) -> Iterator[CellDocument]:
    """A line of `--json` for each cell; what is not finite is null."""
    for s in cells:
        caveats = s.cell.caveats | {*sentences.caveats([s.median])}
        yield CellDocument(
            format=1,
            name=outcome.name,
            engine=s.cell.engine,
            version=outcome.versions[s.cell.engine],
            at=dict(s.cell.at),
            cca=s.cell.cca,
            metric=outcome.campaign.metric,
            unit=s.median.unit,
            n=len(s.cell.trials),
            median=s.median.plain(),
            cv=s.cv.plain(),
            reached=s.is_precise,
            caveats=sorted(caveats),
        )


CELLS = TableFormat(
    "cells",
    "A row for each cell of a sweep: cells.csv.",
    columns(
        """
    campaign string -: Campaign, where a directory holds several
    engine string -: Engine that ran it
    version string -: Version of the model or of the engine
    {axis} string -: Where the cell stands on an axis, as it was written
    cca string -: Congestion controls of the flows
    metric string -: What was measured
    unit string -: Unit of the metric
    n integer -: Number of trials
"""
        + INTERVAL.format("median", "(column unit)", "Median over the trials")
        + INTERVAL.format("cv", "-", "Coefficient of variation over the trials, standard deviation / mean")
        + "    reached boolean -: Whether the interval is as narrow as --precision asks; true without it\n"
    ),
)


def frame(parts: Mapping[str, Iterable[CellDocument]]) -> pl.DataFrame:
    """A row for each cell of these campaigns, with the name of its campaign where there are several."""
    import polars as pl

    frames = []
    for part, lines in parts.items():
        rows = [CELLS.row({**line, **_ends("median", line["median"]), **_ends("cv", line["cv"])}, line["at"]) for line in lines]
        table = pl.DataFrame(rows, infer_schema_length=None)
        frames.append(table if len(parts) == 1 else table.select(pl.lit(part).alias("campaign"), pl.all()))
    return pl.concat(frames, how="diagonal_relaxed")


def _ends(name: str, interval: Interval) -> dict[str, float | None]:
    return {name: interval["value"], f"{name}_low": interval["low"], f"{name}_high": interval["high"]}
