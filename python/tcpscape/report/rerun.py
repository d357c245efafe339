"""What it takes to run a cell again: its scenario as YAML, and the command."""

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
from tcpscape.report.view import MOST_ROWS

FOLDER = "scenarios"
"""Where the scenarios are, in the result directory."""
MOST_SHOWN = 200
"""Scenarios written out on the page; all of them are in the folder."""


@dataclass(frozen=True, slots=True)
class Again:
    """One scenario of one cell."""

    file: str
    """Its path from the result directory."""
    command: str
    """From the result directory."""
    text: str
    """The scenario, YAML."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """One cell."""

    name: str
    title: str
    scenarios: tuple[Again, ...]
    shown: bool
    """Whether the YAML stands on the page."""
    listed: bool
    """Whether the page names it at all; its scenarios are in the folder."""


def names(part: str, outcome: Outcome) -> list[str]:
    """A name for each cell, good for a file and an address in the page: `cliff-cubic-rtt-50ms-jitter-8ms`."""
    taken: dict[str, int] = {}
    made = []
    for cell in outcome.cells:
        engine = [cell.engine] if len(outcome.versions) > 1 else []
        words = [part or outcome.name, cell.cca, *engine, *(f"{axis}-{cell.at[axis]}" for axis in outcome.axes if axis in cell.at)]
        name = re.sub(r"[^\w.+%=-]+", "_", "-".join(words)).replace("%", "pct")
        taken[name] = taken.get(name, 0) + 1
        made.append(name if taken[name] == 1 else f"{name}-{taken[name]}")
    return made


def cells(parts: Mapping[str, Outcome], named: Mapping[str, Sequence[str]]) -> list[Rerun]:
    """Every cell of every part."""
    made: list[Rerun] = []
    count = 0
    for part, outcome in parts.items():
        for place, (cell, name) in enumerate(zip(outcome.cells, named[part], strict=True)):
            count += len(cell.specs)
            made.append(Rerun(name, _title(part, cell), _again(cell, name), count <= MOST_SHOWN, place < MOST_ROWS))
    return made


def _title(part: str, cell: Cell) -> str:
    place = ", ".join(f"{axis} {said}" for axis, said in cell.at.items())
    return ": ".join(filter(None, [part, ", ".join(filter(None, [cell.cca, place]))]))


def _again(cell: Cell, name: str) -> tuple[Again, ...]:
    found = []
    for i, (spec, trials) in enumerate(zip(cell.specs, cell.runs, strict=True)):
        file = f"{FOLDER}/{name}{f'-{i + 1}' if len(cell.specs) > 1 else ''}.yaml"
        engine = "" if cell.engine == "model" else f" --engine {cell.engine}"
        command = f"tcpscape run {file} --seeds {seeds([t.seed for t in trials])}{engine}"
        found.append(Again(file, command, yaml.dump(dict(spec), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=150)))
    return tuple(found)


def seeds(some: Sequence[int]) -> str:
    """`5` (0…4), `3..7`, `1,4,9`: as `--seeds` reads them."""
    if list(some) == list(range(len(some))):
        return str(len(some))
    if list(some) == list(range(some[0], some[0] + len(some))):
        return f"{some[0]}..{some[-1]}"
    return ",".join(map(str, some))
