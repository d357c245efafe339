"""What the functions take: congestion controls, seeds, paths and scenarios as people write them, and what a campaign has of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tcpscape import engines
from tcpscape.controls import classes, spelling
from tcpscape.errors import refuse
from tcpscape.scenario import files
from tcpscape.scenario.scenario import Scenario

CcaSpec = str | Mapping[str, Any] | type[Any]
"""A congestion control: `cubic:hystart=off`, `{"name": "cubic", "hystart": False}`, or a class that is one (:mod:`tcpscape.controls.hooks`)."""
CcaSpecs = CcaSpec | Sequence[CcaSpec] | None
"""One congestion control, several to compare, or None: those of the scenario. Text may name several, `"cubic,bbr"`, or all: `"all"`."""
Seeds = int | str | Iterable[int]
"""3 is the seeds 0, 1, 2; `range(5, 10)`, `[1, 4, 7]`, and as on the command line `"5..9"`, `"1,4,7"`."""
Hops = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
"""tc's words, `"netem delay 25ms loss 0.1%"`, a hop with fields, `{"delay": "25ms"}`, or several in a row."""
Entries = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
"""One entry of a list or several, each as text or with fields."""


def scenario_of(value: Scenario | str | Path | Mapping[str, Any]) -> Scenario:
    """A scenario from whatever names one."""
    if isinstance(value, Scenario):
        return value
    return Scenario.of(dict(value)) if isinstance(value, Mapping) else files.load(value)


def control_labels(controls: CcaSpecs, engine: str) -> list[str]:
    """The labels of congestion controls, `all` included; none where none is given."""
    if controls is None:
        return []
    if isinstance(controls, str):
        return sorted(engines.make(engine).ccas()) if controls == "all" else spelling.parse_labels(controls)
    several = [controls] if isinstance(controls, (type, Mapping)) else controls
    return [spelling.label(classes.register(one) if isinstance(one, type) else one) for one in several]


def several(texts: str | Sequence[str]) -> tuple[str, ...]:
    """One text or several."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def more(link: Entries, transfers: Entries, probe: Entries) -> dict[str, list[Any]]:
    """The fields of a scenario that are added to."""
    entries = {"links": link, "transfers": transfers, "probes": probe}
    return {name: [of] if isinstance(of, (str, Mapping)) else list(of) for name, of in entries.items() if of}


def seeds_text(seeds: Seeds) -> str:
    """Seeds as a campaign has them: `10`, `5..9`, `1,4,7`."""
    if isinstance(seeds, (int, str)):
        return str(seeds)
    numbers = list(seeds)
    if not numbers:
        refuse("seeds", "no trial measures nothing", "give at least one")
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}..{numbers[-1]}" if numbers[0] or len(numbers) == 1 else str(len(numbers))
    return ",".join(map(str, numbers))
