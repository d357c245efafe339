"""The bottleneck of a scenario's path: the queue with the lowest rate on the way of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from tcpscape.scenario import path, topology
from tcpscape.scenario.path import Hop
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.topology import Endpoint
from tcpscape.scenario.words import QueueDescription, within

PIPES = {"sender": 0, "router": 1}
"""Node → the number of its pipe in the samples of queues."""
PIPES_BACK = {"receiver": 3, "router": 2}
"""The same of the way back, where data travel it: the first hop is at the egress of the host that sends them."""
IN_NETWORK = -1
"""Pipe of a queue in a network, whose number each trial's account of the queue says."""
CHAIN = "chain/{}"
"""What results call a link of the chain, by its number."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A queue with a rate, and its place in the samples of queues (`pipe`, `stage`, `depth`)."""

    rate_bps: int
    pipe: int
    stage: int
    depth: int
    """0 of a queue itself, 1 of its child."""
    queues: tuple[QueueDescription, ...]
    """What the queue does, and its children from the outside in."""
    link: str = ""
    """Its link where there are several links or hosts, as reports of queues name it: `chain/0`; empty of a path of one."""
    direction: topology.Direction = "forward"
    """The direction of its link."""

    @property
    def holder(self) -> QueueDescription:
        """The innermost queue, which holds the packets."""
        return self.queues[-1]

    @property
    def delays(self) -> bool:
        """Whether packets wait in the same queue for the path's own delay too, as in a netem with a rate."""
        return self.queues[self.depth].delay_ns > 0


def find(scenario: Scenario) -> Bottleneck | None:
    """The queue of the lowest rate that the data of all flows pass, the first of several; None where they pass none with a rate together.

    Of a link whose rate changes, it is the rate at the start, of a recorded one the mean.

    :raises WordsError: names the part of the path and the wrong word.
    """
    ends = scenario.flows or scenario.endpoints
    if scenario.is_topology:
        ways = [list(_of_chain(scenario, end)) for end in ends]
        return _lowest(link for link in ways[0] if all(link in way for way in ways[1:]))
    directions = {end.direction for end in ends}
    return _lowest(_of_path(scenario, "down" in directions)) if len(directions) == 1 else None


def shown(scenario: Scenario) -> Bottleneck | None:
    """The queue that figures show: that of all data, or of the first flows where they pass none together.

    :raises WordsError: names the part of the path and the wrong word.
    """
    ends = scenario.flows or scenario.endpoints
    return find(scenario) or of_flow(scenario, ends[0])


def of_flow(scenario: Scenario, endpoint: Endpoint) -> Bottleneck | None:
    """The queue of the lowest rate that the data of one entry of flows pass, on access links too; None where none has a rate.

    :raises WordsError: names the wrong word.
    """
    if not scenario.is_topology:
        return _lowest(_of_path(scenario, endpoint.direction == "down"))
    access = scenario.access_of(endpoint)
    return _lowest([*_rated(scenario, access.before, "access"), *_of_chain(scenario, endpoint), *_rated(scenario, access.after, "access")])


def _of_path(scenario: Scenario, down: bool) -> Iterator[Bottleneck]:
    """The queues with a rate on the way of data down or up a path of one link."""
    stages = {0: 0, 1: 0, 2: 0, 3: 0}
    for part in ("forward", "bottleneck") if down else ("reverse",):
        for i, hop in enumerate(getattr(scenario, part)):
            pipe = (PIPES if down else PIPES_BACK)[path.node(part, i, hop, loaded=not down)]
            with within(part):
                described = path.queues(hop, scenario.rtt_ns)
            for queues in described:
                direction: topology.Direction = "forward" if down else "reverse"
                own = ((depth, q.rate_bps) for depth, q in enumerate(queues))
                yield from (Bottleneck(rate, pipe, stages[pipe], depth, queues, direction=direction) for depth, rate in own if rate)
                stages[pipe] += 1


def _of_chain(scenario: Scenario, endpoint: Endpoint) -> Iterator[Bottleneck]:
    """The queues with a rate of the links that the data of an entry cross, in the order of the chain."""
    first, last = scenario.span(endpoint)
    direction: topology.Direction = "forward" if endpoint.direction == "down" else "reverse"
    for number, link in enumerate(scenario.chain[first:last], first):
        yield from _rated(scenario, getattr(link, direction), CHAIN.format(number), direction)


def _rated(scenario: Scenario, hops: Sequence[Hop], link: str, direction: topology.Direction = "forward") -> Iterator[Bottleneck]:
    """The queues with a rate of one direction of a link."""
    with within("links"):
        described = [queues for hop in hops for queues in path.queues(hop, scenario.rtt_ns)]
    for stage, queues in enumerate(described):
        yield from (Bottleneck(q.rate_bps, IN_NETWORK, stage, depth, queues, link, direction) for depth, q in enumerate(queues) if q.rate_bps)


def _lowest(links: Iterable[Bottleneck]) -> Bottleneck | None:
    return min(links, key=lambda link: link.rate_bps, default=None)


def link_mbps(scenario: Scenario) -> float | None:
    """The lowest rate that all data of a path share, Mbit/s, which no goodput exceeds for long; None where there is none or it changes."""
    with suppress(KeyError):
        return _links[scenario]
    link = None if scenario.changes or scenario.transfers or scenario.is_traced else find(scenario)
    return _links.setdefault(scenario, link.rate_bps / 1e6 if link else None)


_links: WeakKeyDictionary[Scenario, float | None] = WeakKeyDictionary()
"""What :func:`link_mbps` found, kept as long as its scenario: every trial is held against it."""
