"""The cells of a record as tables: where each stands on the axes, its number of runs, and its metrics with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpscape import metrics, stats
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.report import tables
from tcpscape.report.tables import PageTable
from tcpscape.stats import Estimate
from tcpscape.store.results import labelled_rows

if TYPE_CHECKING:
    import polars as pl

OTHER_METRICS = ("goodput", "retransmits", "rtos", "rtt", "jain")
"""Metrics that a table shows beside the campaign's own, where they are known."""
MANY = 1000
"""Number of cells from which only the campaign's own metric is estimated."""
ESTIMATORS: Mapping[str, Callable[[Cell, str], Estimate]] = {"median": Cell.median, "mean": Cell.mean, "cv": Cell.cv}
"""Statistics that are estimated of each metric, by name."""


@dataclass(frozen=True)
class CellEstimates:
    """A cell with its estimates."""

    part: str
    cell: Cell
    name: str
    """The name of its scenario in the report."""
    estimates: Mapping[tuple[str, str], Estimate]
    """(metric, statistic) → estimate."""


def measure(part: str, outcome: Outcome, names: Sequence[str]) -> list[CellEstimates]:
    """Every cell of an outcome with its estimates; `names` are those of its cells."""
    pairs = [(metric, stat) for metric in _metrics(outcome) for stat in ESTIMATORS]
    return [
        CellEstimates(part, cell, name, {(metric, stat): ESTIMATORS[stat](cell, metric) for metric, stat in pairs})
        for cell, name in zip(outcome.cells, names, strict=True)
    ]


def _metrics(outcome: Outcome) -> list[str]:
    """The campaign's own metric, and the others that are known and informative."""
    own = outcome.campaign.metric
    if len(outcome.cells) > MANY:
        return [own]
    shares = sorted({f"share:{f.cca}" for c in outcome.cells if "+" in c.cca for t in c.trials[:1] for f in t.flows})
    flows = max((len(t.flows) for c in outcome.cells for t in c.trials[:1]), default=0)
    others = [m for m in OTHER_METRICS if m != own and metrics.find(m).least_flows <= flows]
    return [own, *(m for m in others if any(math.isfinite(v) for c in outcome.cells for v in c.values(m))), *shares]


def table(part: str, outcome: Outcome, estimated: Sequence[CellEstimates]) -> PageTable:
    """The table of the cells on the page: median, mean and CV of the campaign's own metric, the median of the others."""
    own, *others = _metrics(outcome)
    pairs = [(own, stat) for stat in ESTIMATORS] + [(metric, "median") for metric in others]
    several = len(outcome.versions) > 1
    columns = ["cca", *(["engine"] if several else []), *outcome.axes, "n", *(_heading(metric, stat) for metric, stat in pairs)]
    rows = [
        [
            tables.word(entry.cell.cca, href=entry.name), *([tables.word(entry.cell.engine)] if several else []),
            *(tables.level(entry.cell, axis) for axis in outcome.axes), tables.count(len(entry.cell.trials)),
            *(tables.estimate(entry.estimates[pair], 100.0 if _in_percent(pair[1]) else 1.0) for pair in pairs),
        ]
        for entry in estimated
    ]  # fmt: skip
    caption = f"{part}: every cell" if part else "Every cell"
    return PageTable("cells", caption, columns, rows, left=1 + several + len(outcome.axes))


def _in_percent(stat: str) -> bool:
    return stats.STATISTICS[stat].fraction


def _heading(metric: str, stat: str) -> str:
    unit = "%" if _in_percent(stat) else metrics.find(metric).printed_unit
    return f"{metric} {stats.STATISTICS[stat].heading}" + (f", {unit}" if unit else "")


def frame(estimated: Sequence[CellEstimates]) -> pl.DataFrame:
    """One row for each cell, every estimate with both ends of its interval."""
    import polars as pl

    return pl.DataFrame([_row(entry) for entry in estimated], infer_schema_length=None)


def _row(entry: CellEstimates) -> dict[str, Any]:
    cell = entry.cell
    row: dict[str, Any] = {"part": entry.part, "engine": cell.engine, "cca": cell.cca, **cell.at, "n": len(cell.trials)}
    for (metric, stat), estimate in entry.estimates.items():
        row |= {f"{metric}_{stat}": estimate.value, f"{metric}_{stat}_low": estimate.low, f"{metric}_{stat}_high": estimate.high}
    return row | {"scenario": entry.name}


def runs(parts: Mapping[str, Outcome]) -> pl.DataFrame:
    """One row for each flow of each run, with the part and the point on the axes that it belongs to."""
    return labelled_rows(
        ({"part": part, **{f"at_{axis}": value for axis, value in cell.at.items()}}, cell.trials)
        for part, outcome in parts.items() for cell in outcome.cells
    )
