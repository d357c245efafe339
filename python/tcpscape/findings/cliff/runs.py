"""The binding of the search to the trials of an engine.

`on_path` searches the cliff of a path; `measure` makes of an engine what :mod:`search` calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from tcpscape.campaign.execute import Runner
from tcpscape.errors import refuse, shown
from tcpscape.findings.cliff import search
from tcpscape.findings.cliff.levels import Cliff, jitter_axis, loss_axis
from tcpscape.findings.cliff.search import Effort, Measure
from tcpscape.scenario.conditions import Conditions
from tcpscape.scenario.scenario import Scenario

Impairment = Literal["jitter", "loss"]
"""What a search varies on a path."""
Along = Callable[[float], Sequence[Scenario]]
"""A level → the scenarios of one measurement there; several are pooled (the published studies average two application rates)."""


def impairment(along: str, given: Mapping[str, object], prefix: str = "") -> Impairment:
    """What a search varies, by its name; `given` has what else is said of jitter and of loss, `prefix` is how an option is typed.

    :raises ScenarioError: one line, where there is no such axis, or its level is given too.
    """
    varied: Impairment | None = "jitter" if along == "jitter" else "loss" if along == "loss" else None
    if varied is None:
        refuse("along", f"{shown(along)} is no axis of a cliff", "write jitter or loss")
    if given[varied] is not None:
        refuse(varied, "it is what the search varies", f"leave {prefix}{varied} out")
    return varied


def on_path(runner: Runner, path: Conditions, cca: str, along: Impairment, effort: Effort) -> Cliff:
    """The cliff of a path under one congestion control, along its jitter (levels in ns) or its loss (fractions)."""
    if along == "jitter":
        return search.find(measure(runner, lambda ns: [path.model_copy(update={"jitter": int(ns)}).scenario(cca)]), jitter_axis(path.rtt), effort)
    return search.find(measure(runner, lambda share: [path.model_copy(update={"loss": share}).scenario(cca)]), loss_axis(), effort)


def measure(runner: Runner, along: Along, first: int = 0) -> Measure:
    """Goodput in Mbit/s, the mean over the scenarios of a level under one seed; seed 0 of a search is the engine's seed `first`."""

    def run(levels: Sequence[float], seeds: range) -> list[list[float]]:
        return [_pooled(runner, along(x), range(first + seeds.start, first + seeds.stop)) for x in levels]

    return run


def _pooled(runner: Runner, scenarios: Sequence[Scenario], seeds: range) -> list[float]:
    """The mean goodput over the scenarios under each seed, Mbit/s."""
    runs = runner.run_all([(s, seeds) for s in scenarios])
    return [float(x) for x in np.mean([[t.goodput_mbps for t in trials] for trials in runs], axis=0)]
