"""The cells of a record: where each stands on the axes, its number of runs, its metrics with their intervals, and how to run it again.

A cell is run again by its scenario, as YAML, and a command.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from pydantic_core import to_json

try:
    from yaml import CSafeDumper as Dumper
except ImportError:  # PyYAML without libyaml: the same text, ten times as slow
    from yaml import SafeDumper as Dumper  # type: ignore[assignment]

from tcpscape import metrics, stats
from tcpscape.campaign.outcome import STATISTICS, Cell, Outcome, estimates
from tcpscape.campaign.record import file_name
from tcpscape.plots import base
from tcpscape.report import tables
from tcpscape.report.tables import MOST_ROWS, PageTable
from tcpscape.stats import Estimate
from tcpscape.store.database import batches
from tcpscape.store.results import labelled_rows

if TYPE_CHECKING:
    import polars as pl

OTHER_METRICS = ("goodput", "added_rtt", "rtt_p50", "jain", "retransmits", "rtos")
"""Metrics that a table shows beside the campaign's own, where they are known."""
MANY = 1000
"""Number of cells from which only the campaign's own metric is estimated."""
AT_ONCE = 1000
"""Cells that become a part of the table together: as mappings, their rows are several times as large."""
FOLDER = "scenarios"
"""The folder of the scenarios in the result directory."""
MOST_SHOWN = 200
"""Most scenarios whose YAML is on the page; the files of all are in the folder."""


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
    of_each = {(metric, stat): estimates(outcome.cells, stat, metric) for metric in _metrics(outcome) for stat in STATISTICS}
    return [
        CellEstimates(part, cell, name, {pair: of_cells[i] for pair, of_cells in of_each.items()})
        for i, (cell, name) in enumerate(zip(outcome.cells, names, strict=True))
    ]


def _metrics(outcome: Outcome) -> list[str]:
    """The campaign's own metric, and the others that are known and informative."""
    own = outcome.campaign.metric
    if len(outcome.cells) > MANY:
        return [own]
    shares = sorted({f"share:{f.cca}" for c in outcome.cells if "+" in c.cca for t in c.trials[:1] for f in t.flows})
    flows = max((len(t.flows) for c in outcome.cells for t in c.trials[:1]), default=0)
    others = [m for m in OTHER_METRICS if m != own and metrics.find(m).least_flows <= flows]
    return [own, *(m for m in others if any(c.knows(m) for c in outcome.cells)), *shares]


def table(part: str, outcome: Outcome, estimated: Sequence[CellEstimates]) -> PageTable:
    """The table of the cells on the page: one statistic of every metric, that of the answer, and the CV of the campaign's own; the files have all."""
    own, *others = _metrics(outcome)
    stat = "mean" if len({tuple(c.at.items()) for c in outcome.cells}) == 1 else "median"
    pairs = [(own, stat), (own, "cv"), *((metric, stat) for metric in others)]
    several = len(outcome.versions) > 1
    looks = base.looks(outcome)
    columns = ["cca", *(["engine"] if several else []), *outcome.axes, "n", *(_heading(metric, stat) for metric, stat in pairs)]
    rows = [
        [
            tables.control(entry.cell.cca, looks, entry.name),
            *([tables.word(entry.cell.engine)] if several else []),
            *(tables.level(entry.cell, axis) for axis in outcome.axes),
            tables.count(len(entry.cell.trials)),
            *(tables.estimate(entry.estimates[pair], 100.0 if _in_percent(pair[1]) else 1.0) for pair in pairs),
        ]
        for entry in estimated[:MOST_ROWS]
    ]
    caption = f"{part}: every cell" if part else "Every cell"
    return PageTable("cells", caption, columns, rows, left=1 + several + len(outcome.axes), more=max(0, len(estimated) - MOST_ROWS))


def _in_percent(stat: str) -> bool:
    return stats.STATISTICS[stat].fraction


def _heading(metric: str, stat: str) -> str:
    unit = "%" if _in_percent(stat) else metrics.find(metric).printed_unit
    return f"{metric} {stats.STATISTICS[stat].heading}" + (f", {unit}" if unit else "")


def frame(estimated: Sequence[CellEstimates]) -> pl.DataFrame:
    """One row for each cell, every estimate with both ends of its interval."""
    import polars as pl

    frames = [pl.DataFrame([*map(_row, some)], infer_schema_length=None) for some in batches(estimated, AT_ONCE)]
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()


def _row(entry: CellEstimates) -> dict[str, Any]:
    cell = entry.cell
    row: dict[str, Any] = {"part": entry.part, "engine": cell.engine, "cca": cell.cca, **cell.at, "n": len(cell.trials)}
    for (metric, stat), estimate in entry.estimates.items():
        row |= estimate.columns(f"{metric}_{stat}")
    return row | {"scenario": entry.name}


def runs(parts: Mapping[str, Outcome]) -> pl.DataFrame:
    """One row for each flow of each run, with the part and the point on the axes that it belongs to."""
    return labelled_rows(
        ({"part": part, **{f"at_{axis}": value for axis, value in cell.at.items()}}, cell.trials)
        for part, outcome in parts.items()
        for cell in outcome.cells
    )


@dataclass(frozen=True, slots=True)
class RerunScenario:
    """One scenario of a cell; paths are from the result directory."""

    file: str
    command: str
    text: str
    """The scenario, YAML."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """How to run one cell again."""

    name: str
    title: str
    scenarios: tuple[RerunScenario, ...]
    shown: bool
    """Whether the YAML is on the page."""
    listed: bool
    """Whether the page has an entry for it at all."""


def names(part: str, outcome: Outcome) -> list[str]:
    """A name for each cell that can be a file's name and an anchor of the page: `cliff-cubic-rtt-50ms-jitter-8ms`."""
    counts: dict[str, int] = {}
    unique = []
    for cell in outcome.cells:
        engine = [cell.engine] if len(outcome.versions) > 1 else []
        words = [part or outcome.name, cell.cca, *engine, *(f"{axis}-{cell.at[axis]}" for axis in outcome.axes if axis in cell.at)]
        name = file_name("-".join(words)).replace("%", "pct")
        counts[name] = counts.get(name, 0) + 1
        unique.append(name if counts[name] == 1 else f"{name}-{counts[name]}")
    return unique


def reruns(parts: Mapping[str, Outcome], names_of_parts: Mapping[str, Sequence[str]]) -> list[Rerun]:
    """Every cell of every part; `names_of_parts`: part → the names of its cells."""
    entries: list[Rerun] = []
    count = 0
    for part, outcome in parts.items():
        for place, (cell, name) in enumerate(zip(outcome.cells, names_of_parts[part], strict=True)):
            count += len(cell.specs)
            entries.append(Rerun(name, _title(part, cell), _scenarios(cell, name), count <= MOST_SHOWN, place < MOST_ROWS))
    return entries


def _title(part: str, cell: Cell) -> str:
    """`cliff: cubic, rtt 50ms, jitter 8ms`."""
    point = ", ".join(f"{axis} {value}" for axis, value in cell.at.items())
    return ": ".join(filter(None, [part, ", ".join(filter(None, [cell.cca, point]))]))


def _scenarios(cell: Cell, name: str) -> tuple[RerunScenario, ...]:
    scenarios = []
    for i, (spec, numbers) in enumerate(zip(cell.specs, cell.seeds, strict=True)):
        file = f"{FOLDER}/{name}{f'-{i + 1}' if len(cell.specs) > 1 else ''}.yaml"
        engine = "" if cell.engine == "model" else f" --engine {shlex.quote(cell.engine)}"
        command = f"tcpscape run {shlex.quote(file)} --seeds {seeds(numbers)}{engine}"
        text = "".join(_lines(key, value) for key, value in spec.items())
        scenarios.append(RerunScenario(file, command, text))
    return tuple(scenarios)


_known_lines: dict[tuple[str, bytes], str] = {}
"""A field of a scenario, its value as JSON, and both as YAML."""
MOST_LINES = 1000


def _lines(key: str, value: object) -> str:
    """A field of a scenario as YAML; cells of a campaign have most of them in common."""
    place = key, to_json(value)
    if place not in _known_lines:
        if len(_known_lines) >= MOST_LINES:
            _known_lines.clear()
        _known_lines[place] = yaml.dump({key: value}, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=150)
    return _known_lines[place]


def seeds(numbers: Sequence[int]) -> str:
    """Seeds as `--seeds` reads them: `5` (0…4), `3..7`, `1,4,9`."""
    if list(numbers) == list(range(len(numbers))):
        return str(len(numbers))
    if list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{numbers[0]}..{numbers[-1]}"
    return ",".join(map(str, numbers))
