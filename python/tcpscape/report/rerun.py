"""How to run a cell again: its scenario as YAML, and the command."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

try:
    from yaml import CSafeDumper as Dumper
except ImportError:  # PyYAML without libyaml: the same text, ten times as slow
    from yaml import SafeDumper as Dumper  # type: ignore[assignment]

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.report.tables import MOST_ROWS

FOLDER = "scenarios"
"""The folder of the scenarios in the result directory."""
MOST_SHOWN = 200
"""Most scenarios whose YAML is on the page; the files of all are in the folder."""


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
        name = re.sub(r"[^\w.+%=-]+", "_", "-".join(words)).replace("%", "pct")
        counts[name] = counts.get(name, 0) + 1
        unique.append(name if counts[name] == 1 else f"{name}-{counts[name]}")
    return unique


def cells(parts: Mapping[str, Outcome], names_of_parts: Mapping[str, Sequence[str]]) -> list[Rerun]:
    """Every cell of every part; `names_of_parts`: part → the names of its cells."""
    reruns: list[Rerun] = []
    count = 0
    for part, outcome in parts.items():
        for place, (cell, name) in enumerate(zip(outcome.cells, names_of_parts[part], strict=True)):
            count += len(cell.specs)
            reruns.append(Rerun(name, _title(part, cell), _scenarios(cell, name), count <= MOST_SHOWN, place < MOST_ROWS))
    return reruns


def _title(part: str, cell: Cell) -> str:
    """`cliff: cubic, rtt 50ms, jitter 8ms`."""
    point = ", ".join(f"{axis} {value}" for axis, value in cell.at.items())
    return ": ".join(filter(None, [part, ", ".join(filter(None, [cell.cca, point]))]))


def _scenarios(cell: Cell, name: str) -> tuple[RerunScenario, ...]:
    scenarios = []
    for i, (spec, trials) in enumerate(zip(cell.specs, cell.runs, strict=True)):
        file = f"{FOLDER}/{name}{f'-{i + 1}' if len(cell.specs) > 1 else ''}.yaml"
        engine = "" if cell.engine == "model" else f" --engine {cell.engine}"
        command = f"tcpscape run {file} --seeds {seeds([t.seed for t in trials])}{engine}"
        text = yaml.dump(dict(spec), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=150)
        scenarios.append(RerunScenario(file, command, text))
    return tuple(scenarios)


def seeds(numbers: Sequence[int]) -> str:
    """Seeds as `--seeds` reads them: `5` (0…4), `3..7`, `1,4,9`."""
    if list(numbers) == list(range(len(numbers))):
        return str(len(numbers))
    if list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{numbers[0]}..{numbers[-1]}"
    return ",".join(map(str, numbers))
