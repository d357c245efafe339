"""The groups into which answers put the flows of a cell: by congestion control, and where they differ in it, by direction, RTT and place too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tcpscape import stats, units
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.scenario import Scenario
from tcpscape.text.numbers import number
from tcpscape.trial import FlowResult, Trial

MOST_RTTS = 8
"""Most RTTs that are told apart; more are put into classes of which each reaches to twice its least."""


@dataclass(frozen=True, slots=True)
class Group:
    """Flows of a cell that are alike."""

    name: str
    """`cubic`; in a network `cubic up 80 ms`, with what differs between the groups."""
    cca: str
    """Congestion control."""
    direction: str
    """`down` or `up`."""
    place: tuple[int, int]
    """Routers between which their data use the chain."""
    numbers: tuple[int, ...]
    """Their places among the flows of a trial."""

    @property
    def title(self) -> str:
        """The name with the number of flows where there are several, `bbr×2 up 80 ms`."""
        return self.name.replace(self.cca, f"{self.cca}×{len(self.numbers)}", 1) if len(self.numbers) > 1 else self.name

    def of(self, trial: Trial) -> list[FlowResult]:
        """Its flows in a trial."""
        return [trial.flows[i] for i in self.numbers if i < len(trial.flows)]


def of(cell: Cell) -> tuple[Group, ...]:
    """The groups of a cell in the order of the flows: entries of its scenario that cannot be told apart are one."""
    scenario = cell.scenarios[0]
    names = _names(scenario) if is_network(scenario) else {}
    entries = [flow for flow in scenario.flows for _ in range(flow.count)]
    groups: dict[str, Group] = {}
    for place, (flow, entry) in enumerate(zip(cell.trials[0].flows, entries, strict=True)):
        name = f"{flow.cca}{names.get(entry, '')}"
        known = groups.get(name) or Group(name, flow.cca, entry.direction, scenario.span(entry), ())
        groups[name] = replace(known, numbers=(*known.numbers, place))
    return tuple(groups.values())


def is_network(scenario: Scenario) -> bool:
    """Whether flows differ in their direction, their RTT or their place, so that they are told apart by it."""
    return len({(flow.direction, scenario.rtt_of(flow), scenario.span(flow)) for flow in scenario.flows}) > 1


def _names(scenario: Scenario) -> dict[Flow, str]:
    """What stands behind the congestion control of each entry: ` up`, ` 80 ms`, ` a–b`, where the entries differ in that."""
    flows, routers = scenario.flows, scenario.routers
    both = len({flow.direction for flow in flows}) > 1
    places = {scenario.span(flow) for flow in flows}
    several_rtts = len({(scenario.span(flow), scenario.rtt_of(flow)) for flow in flows}) > len(places)  # the RTT of a place goes without saying
    several_places = len(places) > 1
    rtts = _rtts({scenario.rtt_of(flow) for flow in flows})
    names = {}
    for flow in flows:
        first, last = scenario.span(flow)
        ends = (first, last) if flow.direction == "down" else (last, first)
        parts = [flow.direction] * both + [rtts[scenario.rtt_of(flow)]] * several_rtts
        parts += ["–".join(routers[end] for end in ends)] * several_places
        names[flow] = "".join(f" {part}" for part in parts)
    return names


def _rtts(every: set[int]) -> dict[int, str]:
    """RTT, ns → what answers call it: `80 ms`, or where there are many the class that it is in, `20–40 ms`."""
    if len(every) <= MOST_RTTS:
        return {rtt: _ms(rtt) for rtt in every}
    least = max(1, min(every))
    octaves = {rtt: max(0, (rtt // least).bit_length() - 1) for rtt in every}
    return {rtt: f"{_ms(least << octave).removesuffix(' ms')}–{_ms(least << octave + 1)}" for rtt, octave in octaves.items()}


def _ms(ns: int) -> str:
    return units.brief_time(ns).replace("ms", " ms")


BEGIN_S = 1.0
"""Start of a trial that does not count, s: the handshake and slow start."""


def sentences(outcome: Outcome) -> Iterator[str]:
    """One sentence about the change of a run that has exactly one: means before and after it, and the highest value, mean over the trials."""
    changes = outcome.cells[0].scenarios[0].changes
    if len(changes) != 1 or changes[0].at is None:
        return
    at_s = changes[0].at / units.NS_PER_S
    parts = [text for cell in outcome.cells if (text := _around(cell, at_s))]
    if parts:
        yield f"Smoothed RTT before and after the change at {units.brief_time(changes[0].at)}: {'; '.join(parts)}."


def _around(cell: Cell, at_s: float) -> str:
    """`cubic 84 and 171 ms, at most 201 ms`; empty without samples on both sides of the change."""
    rows = [values for trial in cell.trials for values in _values(trial, at_s)]
    if not rows:
        return ""
    before, after, highest = (number(stats.mean(column).value) for column in zip(*rows, strict=True))
    return f"{cell.cca} {before} and {after} ms, at most {highest} ms"


def _values(trial: Trial, at_s: float) -> Sequence[tuple[float, float, float]]:
    """The mean smoothed RTT of a trial's flows before the change and after it, and the highest after it, ms."""
    if trial.samples is None or "srtt_us" not in trial.samples.columns:
        return ()
    times = trial.samples["t_ns"].to_numpy() / units.NS_PER_S
    rtts = trial.samples["srtt_us"].to_numpy().astype(float) / 1000
    before, after = rtts[(times >= BEGIN_S) & (times < at_s)], rtts[times >= at_s]
    if not len(before) or not len(after) or math.isnan(float(np.sum(before)) + float(np.sum(after))):
        return ()
    return ((float(before.mean()), float(after.mean()), float(after.max())),)
