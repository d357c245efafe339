"""The cells of a record as tables: where each stands, its runs, and its metrics with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpscape import metrics
from tcpscape.campaign import axes
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.report import view
from tcpscape.report.view import Field, Table
from tcpscape.stats import Estimate
from tcpscape.store.results import labelled_rows

if TYPE_CHECKING:
    import polars as pl

BESIDES = ("goodput", "retransmits", "rtos", "rtt", "jain")
"""Metrics that a table shows beside the campaign's own, where a trial of it has them."""
MANY = 1000
"""Cells from which only the campaign's own metric is estimated."""
STATS = ("median", "mean", "cv")


@dataclass(frozen=True)
class Measured:
    """A cell with its estimates."""

    part: str
    cell: Cell
    name: str
    """What its scenario is called in the report."""
    found: Mapping[tuple[str, str], Estimate]
    """(metric, statistic) → estimate."""


def measure(part: str, outcome: Outcome, names: Sequence[str]) -> list[Measured]:
    """Every cell of an outcome with what is estimated of it; `names` are those of its cells."""
    wanted = _metrics(outcome)
    made = []
    for cell, name in zip(outcome.cells, names, strict=True):
        pairs = [(m, s) for m in wanted for s in STATS]
        made.append(Measured(part, cell, name, {(m, s): getattr(cell, s)(m) for m, s in pairs}))
    return made


def _metrics(outcome: Outcome) -> list[str]:
    """The campaign's own metric, and the others that say something here."""
    own = outcome.campaign.metric
    if len(outcome.cells) > MANY:
        return [own]
    shares = sorted({f"share:{f.cca}" for c in outcome.cells if "+" in c.cca for t in c.trials[:1] for f in t.flows})
    flows = max((len(t.flows) for c in outcome.cells for t in c.trials[:1]), default=0)
    others = [m for m in BESIDES if m != own and metrics.find(m).least_flows <= flows]
    return [own, *(m for m in others if any(math.isfinite(v) for c in outcome.cells for v in c.values(m))), *shares]


def table(part: str, outcome: Outcome, measured: Sequence[Measured]) -> Table:
    """The cells' table of a page: of the campaign's own metric median, mean and CV, of the others the median."""
    own, *others = _metrics(outcome)
    pairs = [(own, s) for s in STATS] + [(m, "median") for m in others]
    several = len(outcome.versions) > 1
    columns = ["cca", *(["engine"] if several else []), *outcome.axes, "n", *(_title(m, s) for m, s in pairs)]
    rows = [
        [
            view.word(one.cell.cca, href=one.name), *([view.word(one.cell.engine)] if several else []), *(level(one.cell, a) for a in outcome.axes),
            view.count(len(one.cell.trials)), *(view.estimate(one.found[p], 100.0 if p[1] == "cv" else 1.0) for p in pairs),
        ]
        for one in measured
    ]  # fmt: skip
    caption = f"{part}: every cell" if part else "Every cell"
    return Table("cells", caption, columns, rows, left=1 + several + len(outcome.axes))


def level(cell: Cell, axis: str) -> Field:
    """Where a cell stands on an axis."""
    said = cell.at.get(axis, "")
    stands = axes.read(said) if said else None
    return Field(said, sort=None if stands is None or stands.is_word else stands.number)


def _title(metric: str, stat: str) -> str:
    unit = "%" if stat == "cv" else metrics.find(metric).unit
    return f"{metric} {'CV' if stat == 'cv' else stat}" + (f", {unit}" if unit not in ("", "1") else "")


def frame(measured: Sequence[Measured]) -> pl.DataFrame:
    """One row for each cell, every estimate with both ends of its interval."""
    import polars as pl

    return pl.DataFrame([_row(one) for one in measured], infer_schema_length=None)


def _row(one: Measured) -> dict[str, Any]:
    row: dict[str, Any] = {"part": one.part, "engine": one.cell.engine, "cca": one.cell.cca, **one.cell.at, "n": len(one.cell.trials)}
    for (metric, stat), got in one.found.items():
        row |= {f"{metric}_{stat}": got.value, f"{metric}_{stat}_low": got.low, f"{metric}_{stat}_high": got.high}
    return row | {"scenario": one.name}


def runs(parts: Mapping[str, Outcome]) -> pl.DataFrame:
    """One row for each flow of each run, with the cell that it belongs to."""
    return labelled_rows(
        ({"part": part, **{f"at_{name}": text for name, text in cell.at.items()}}, cell.trials)
        for part, outcome in parts.items() for cell in outcome.cells
    )
