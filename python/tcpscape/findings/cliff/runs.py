"""From an engine to what the searches call: runs of the scenarios at a level, as goodputs under the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from tcpscape.campaign import Runner
from tcpscape.findings.cliff import axis, search
from tcpscape.findings.cliff.levels import Cliff
from tcpscape.findings.cliff.ratio import Both
from tcpscape.findings.cliff.search import Measure
from tcpscape.scenario.conditions import Conditions
from tcpscape.scenario.scenario import Scenario

Impairment = Literal["jitter", "loss"]
"""What a search varies on a path."""
Along = Callable[[float], Sequence[Scenario]]
"""A level → the scenarios of one measurement there; several are pooled (the published studies average two application rates)."""


def measure(runner: Runner, along: Along, first: int = 0) -> Measure:
    """Goodput in Mbit/s, the mean over the scenarios of a level under one seed; seed 0 of a search is the engine's `first`."""

    def run(levels: Sequence[float], seeds: range) -> list[list[float]]:
        return [_pooled(runner, along(x), range(first + seeds.start, first + seeds.stop)) for x in levels]

    return run


def both(runner: Runner, at: Callable[[float, float, str], Scenario], ccas: tuple[str, str], first: int = 0) -> Both:
    """Goodputs in Mbit/s of two congestion controls at cells (x, y); `at` gives the scenario of a cell under one of them."""

    def run(cells: Sequence[tuple[float, float]], seeds: range) -> list[tuple[list[float], list[float]]]:
        which = range(first + seeds.start, first + seeds.stop)
        above, below = ([_pooled(runner, [at(x, y, cca)], which) for x, y in cells] for cca in ccas)
        return list(zip(above, below, strict=True))

    return run


def _pooled(runner: Runner, scenarios: Sequence[Scenario], seeds: range) -> list[float]:
    got = runner.run_all([(s, seeds) for s in scenarios])
    return [float(x) for x in np.mean([[t.goodput_mbps for t in some] for some in got], axis=0)]


def on_path(runner: Runner, path: Conditions, cca: str, along: Impairment, effort: search.Effort) -> Cliff:
    """The cliff of a path under one congestion control, along its jitter (levels in ns) or its loss (fractions)."""
    if along == "jitter":
        return search.find(measure(runner, lambda ns: [path.model_copy(update={"jitter": int(ns)}).scenario(cca)]), axis.jitter(path.rtt), effort)
    return search.find(measure(runner, lambda share: [path.model_copy(update={"loss": share}).scenario(cca)]), axis.loss(), effort)
