"""What `tcpscape sweep` prints and writes: a row for each cell, and how much of it had to run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpscape import metrics
from tcpscape.campaign import execute
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.cli import tables
from tcpscape.stats import Estimate

if TYPE_CHECKING:
    import polars as pl

WIDE = "*"
"""Marks a cell whose interval is wider than asked."""


@dataclass(frozen=True)
class Measured:
    """A cell in numbers."""

    cell: Cell
    median: Estimate
    """Of the campaign's metric; where runs were added until they sufficed, its interval accounts for that."""
    cv: Estimate
    reached: bool
    """Whether it is as precise as asked; where nothing was asked, it is."""


def measure(outcome: Outcome) -> list[Measured]:
    """Every cell in numbers, in the order of the campaign."""
    rule, name = execute.repetition(outcome.campaign), outcome.campaign.metric
    return [Measured(c, c.median(name), c.cv(name), rule is None or rule.reached(c.values(name))) for c in outcome.cells]


def parts(outcome: Outcome, measured: Sequence[Measured]) -> Iterator[Any]:
    """A heading, the table, what has to be said about it."""
    metric, rule = metrics.find(outcome.campaign.metric), execute.repetition(outcome.campaign)
    fixed, varied = _columns(outcome)
    heading = [f"{outcome.name}: {metric.name}", *(f"{name} {value}" for name, value in fixed.items()), outcome.label]
    yield f"[bold]{', '.join(heading)}[/bold]"
    engine = ["engine"] * (len(outcome.versions) > 1)
    unit = f" {metric.unit}" if metric.unit not in ("", "1") else ""
    columns = (*varied, *engine, "cca", f"{metric.name}{unit}: median [95 %]", "CV", "n")
    yield tables.table(columns, [_row(m, varied, bool(engine)) for m in measured], left=len(columns) - 3)
    if rule and (wide := sum(not m.reached for m in measured)):
        yield f"{WIDE} {wide} of {len(measured)} cells stopped at {rule.cap} runs, wider than ± {tables.percent(rule.precision, 1)}"
    if any(math.isinf(end) for m in measured for end in (m.median.low, m.median.high)):
        yield "∞: so few runs cannot bound a median; give more --seeds"
    for caveat in dict.fromkeys((*outcome.caveats, *(m.median.caveat for m in measured if m.median.caveat))):
        yield f"caveat: {caveat}"


def lines(outcome: Outcome, measured: Sequence[Measured]) -> Iterator[dict[str, Any]]:
    """A line of `--json` for each cell; what is not finite is null."""
    for m in measured:
        caveats = {c for t in m.cell.trials for c in t.caveats} | ({m.median.caveat} - {""})
        yield {
            "name": outcome.name, "engine": m.cell.engine, "version": outcome.versions[m.cell.engine], "at": dict(m.cell.at), "cca": m.cell.cca,
            "metric": outcome.campaign.metric, "unit": m.median.unit, "n": len(m.cell.trials), "median": m.median.plain(), "cv": m.cv.plain(),
            "reached": m.reached, "caveats": sorted(caveats),
        }


def frame(outcome: Outcome, measured: Sequence[Measured]) -> pl.DataFrame:
    """The same as a table."""
    import polars as pl

    rows = []
    for line in lines(outcome, measured):
        row = {k: line[k] for k in ("engine", "version")} | line["at"] | {k: line[k] for k in ("cca", "metric", "unit", "n")}
        for name in ("median", "cv"):
            row |= {name: line[name]["value"], f"{name}_low": line[name]["low"], f"{name}_high": line[name]["high"]}
        rows.append(row | {"reached": line["reached"]})
    return pl.DataFrame(rows, infer_schema_length=None)


def reused(outcome: Outcome, ran: int, root: Path) -> str:
    """How many trials ran, how many were kept already, and where all of them are."""
    every = len({t.address for cell in outcome.cells for t in cell.trials})
    if not ran:
        return f"nothing ran: {f'all {every} trials were' if every > 1 else 'the trial was'} kept in {root}"
    before = f", {every - ran} were kept already" if every > ran else ""
    return f"{every} trial{'s' * (every > 1)}: {ran} ran{before}; kept in {root}"


def _columns(outcome: Outcome) -> tuple[dict[str, str], list[str]]:
    """The axes with one value, and those with several."""
    levels = {axis: list(dict.fromkeys(c.at[axis] for c in outcome.cells)) for axis in outcome.axes}
    return {a: v[0] for a, v in levels.items() if len(v) == 1}, [a for a, v in levels.items() if len(v) > 1]


def _row(m: Measured, varied: Sequence[str], engine: bool) -> list[str]:
    where = [*(m.cell.at[a] for a in varied), *([m.cell.engine] if engine else []), m.cell.cca]
    return [*where, m.median.text() + ("" if m.reached else f" {WIDE}"), tables.percent(m.cv.value), str(len(m.cell.trials))]
