"""The groups into which answers put the flows of a cell: by congestion control, and where they differ in it, by direction, RTT and place too."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcpscape import units
from tcpscape.campaign.outcome import Cell
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.scenario import Scenario
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
    for number, (flow, entry) in enumerate(zip(cell.trials[0].flows, entries, strict=True)):
        name = f"{flow.cca}{names.get(entry, '')}"
        known = groups.get(name) or Group(name, flow.cca, entry.direction, scenario.span(entry), ())
        groups[name] = replace(known, numbers=(*known.numbers, number))
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
