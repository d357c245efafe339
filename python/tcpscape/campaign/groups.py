"""What an outcome's flows come to: the groups into which answers put the flows of a cell, and what the viewers of video players see.

Groups are by congestion control, and where they differ in it, by direction, RTT, place and how their receivers misbehave too. The players are flows
with the field `player` (docs/models/methods/player.md); the numbers of one trial are the metrics `video_…`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from tcpscape import metrics, stats, units
from tcpscape.campaign.outcome import Cell
from tcpscape.metrics.base import only
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.trial import FlowResult, Trial

MOST_RTTS = 8
"""Most RTTs that are told apart; more are put into classes of which each reaches to twice its least."""
LEAST_BUFFERS = 2
"""Shortest trial whose mean is not that of the start, in lengths of a player's buffer."""


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
    """Whether flows differ in their direction, their RTT, their place or their receivers, so that they are told apart by it."""
    return len({(flow.direction, scenario.rtt_of(flow), scenario.span(flow), flow.misbehaves) for flow in scenario.flows}) > 1


def _names(scenario: Scenario) -> dict[Flow, str]:
    """What stands behind the congestion control of each entry: ` up`, ` 80 ms`, ` a–b`, ` optimistic`, where the entries differ in that."""
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
        parts += [flow.misbehaves] if flow.misbehaves else []
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


@dataclass(frozen=True, slots=True)
class Viewing:
    """What a viewer sees: means over trials, in each the mean over its players."""

    bitrate: Estimate
    """Mean bit rate of the segments, Mbit/s; 0 in a trial where none came."""
    startup: Estimate
    """From the first request to the first picture, s; where it never came, how long the player waited."""
    stalls: Estimate
    """Stops after the start."""
    stalled: Estimate
    """Time stopped after the start, s."""
    switches: Estimate
    """Changes of the bit rate."""
    qoe: Estimate
    """Linear QoE for each segment, Mbit/s, of the trials where segments came."""
    smooth: Estimate
    """Share of the players, of all trials, that began and never stopped; of as many as its `n`."""
    seconds: float
    """How long each was watched."""


def viewer(trials: Sequence[Trial], cca: str | None = None) -> Viewing | None:
    """What a viewer sees in these trials of one condition; `cca`: of the flows under this congestion control alone. None without players."""
    chosen = [trial if cca is None else only(trial, cca) for trial in trials]
    players = [flow.player for trial in chosen for flow in trial.flows if flow.player]
    if not players:
        return None
    names = [field.name for field in fields(Viewing) if field.name not in ("smooth", "seconds")]
    estimates = {}
    for name in names:
        metric = metrics.find(f"video_{name}")
        estimates[name] = stats.mean(stats.known(metric.of(trial) for trial in chosen), metric.unit)
    smooth = stats.share(sum(p.began and not p.stalls for p in players), len(players))
    return Viewing(**estimates, smooth=smooth, seconds=max(trial.duration for trial in trials))


def player_caveats(scenario: Scenario) -> list[str]:
    """What weakens the numbers of a scenario's players: a trial that ends before their buffers have long been full."""
    buffers = [flow.player.buffer for flow in scenario.flows if flow.player]
    if not buffers or scenario.duration >= LEAST_BUFFERS * max(buffers):
        return []
    most, least = units.brief_time(max(buffers)), units.brief_time(LEAST_BUFFERS * max(buffers))
    return [f"{units.brief_time(scenario.duration)} show a player's start: a buffer of {most} is hardly full by then; give --duration {least}"]
