"""What `tcpscape sweep` prints and writes: a row for each cell, and how much of it had to run."""

from __future__ import annotations

import math
from collections.abc import Iterator
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


def parts(outcome: Outcome) -> Iterator[Any]:
    """A heading, the table, what has to be said about it."""
    said, metric = outcome.campaign, metrics.find(outcome.campaign.metric)
    fixed, varied = _columns(outcome)
    heading = [f"{outcome.name}: {metric.name}", *(f"{name} {value}" for name, value in fixed.items()), outcome.label]
    yield f"[bold]{', '.join(heading)}[/bold]"
    engine = ["engine"] * (len(outcome.versions) > 1)
    unit = f" {metric.unit}" if metric.unit not in ("", "1") else ""
    columns = (*varied, *engine, "cca", f"{metric.name}{unit}: median [95 %]", "CV", "n")
    yield tables.table(columns, [_row(outcome, c, varied) for c in outcome.cells], left=len(columns) - 3)
    rule = execute.repetition(said)
    if rule and (wide := sum(not reached(outcome, c) for c in outcome.cells)):
        yield f"{WIDE} {wide} of {len(outcome.cells)} cells stopped at {rule.cap} runs, wider than ± {tables.percent(rule.precision, 1)}"
    if any(isinstance(c, float) and math.isinf(c) for cell in outcome.cells for c in (shown(outcome, cell).low, shown(outcome, cell).high)):
        yield "∞: so few runs cannot bound a median; give more --seeds"
    for caveat in outcome.caveats:
        yield f"caveat: {caveat}"


def shown(outcome: Outcome, cell: Cell) -> Estimate:
    """The median of a cell; where runs were added until they sufficed, its interval accounts for that."""
    rule, name = execute.repetition(outcome.campaign), outcome.campaign.metric
    if rule is None:
        return cell.median(name)
    found = rule.estimate(cell.values(name))
    return Estimate(found.value, found.low, found.high, found.n, metrics.find(name).unit, found.caveat)


def reached(outcome: Outcome, cell: Cell) -> bool:
    """Whether a cell is as precise as asked; where nothing was asked, it is."""
    rule = execute.repetition(outcome.campaign)
    return rule is None or rule.reached(cell.values(outcome.campaign.metric))


def lines(outcome: Outcome) -> Iterator[dict[str, Any]]:
    """A line of `--json` for each cell; what is not finite is null."""
    for cell in outcome.cells:
        got, cv = shown(outcome, cell), cell.cv(outcome.campaign.metric)
        yield {
            "name": outcome.name, "engine": cell.engine, "version": outcome.versions[cell.engine], "at": dict(cell.at), "cca": cell.cca,
            "metric": outcome.campaign.metric, "unit": got.unit, "n": len(cell.trials), "median": _ends(got), "cv": _ends(cv),
            "reached": reached(outcome, cell), "caveats": sorted({c for t in cell.trials for c in t.caveats}),
        }


def frame(outcome: Outcome) -> pl.DataFrame:
    """The same as a table."""
    import polars as pl

    rows = []
    for line in lines(outcome):
        row = {k: line[k] for k in ("engine", "version")} | line["at"] | {k: line[k] for k in ("cca", "metric", "unit", "n")}
        for name in ("median", "cv"):
            row |= {name: line[name]["value"], f"{name}_low": line[name]["low"], f"{name}_high": line[name]["high"]}
        rows.append(row | {"reached": line["reached"]})
    return pl.DataFrame(rows, infer_schema_length=None)


def reused(outcome: Outcome, ran: int, root: Path) -> str:
    """How many trials ran, how many were kept already, and where all of them are."""
    every = len({t.address for cell in outcome.cells for t in cell.trials})
    if not ran:
        return f"nothing ran: all {every} trials were kept in {root}"
    before = f", {every - ran} were kept already" if every > ran else ""
    return f"{every} trials: {ran} ran{before}; kept in {root}"


def _columns(outcome: Outcome) -> tuple[dict[str, str], list[str]]:
    """The axes with one value, and those with several."""
    levels = {axis: list(dict.fromkeys(c.at[axis] for c in outcome.cells)) for axis in outcome.axes}
    return {a: v[0] for a, v in levels.items() if len(v) == 1}, [a for a, v in levels.items() if len(v) > 1]


def _row(outcome: Outcome, cell: Cell, varied: list[str]) -> list[str]:
    engine = [cell.engine] * (len(outcome.versions) > 1)
    mark = "" if reached(outcome, cell) else f" {WIDE}"
    spread = tables.percent(cell.cv(outcome.campaign.metric).value)
    return [*(cell.at[a] for a in varied), *engine, cell.cca, shown(outcome, cell).text() + mark, spread, str(len(cell.trials))]


def _ends(got: Estimate) -> dict[str, float | None]:
    return {k: v if math.isfinite(v) else None for k, v in (("value", got.value), ("low", got.low), ("high", got.high))}
