"""A few scenarios that were run by themselves, as the outcome of a campaign: what `tcpscape run --out` keeps."""

from __future__ import annotations

from collections.abc import Sequence

from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.engines import Capture, Engine
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial
from tcpscape.units import format_time


def outcome(cases: Sequence[Scenario], trials: Sequence[Sequence[Trial]], engine: Engine, seeds: str, capture: Capture) -> Outcome:
    """One cell for each scenario with its trials; they differ in their congestion controls alone.

    `seeds` as the command line has them, `capture` what was kept of each trial.
    """
    first = cases[0]
    said = {
        "name": first.name, "scenario": first.to_dict(), "cca": [c.cca for c in cases] if len(cases) > 1 else [], "engines": [engine.spec],
        "seeds": seeds, "samples": format_time(capture.samples_ns), "queue_samples": format_time(capture.queue_samples_ns),
    }  # fmt: skip
    cells = tuple(Cell({}, case.cca, engine.spec, (case,), (tuple(some),)) for case, some in zip(cases, trials, strict=True))
    return Outcome(Campaign.of(said, first.name), cells, {engine.spec: engine.version})
