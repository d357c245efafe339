"""The bottleneck of a scenario's path: the queue with the lowest rate on the way of the data."""

from __future__ import annotations

from dataclasses import dataclass

from tcpscape.scenario import path
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.words import QueueDescription, within

PIPES = {"sender": 0, "router": 1}
"""Node → the number of its pipe in the samples of queues."""


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

    @property
    def holder(self) -> QueueDescription:
        """The innermost queue, which holds the packets."""
        return self.queues[-1]

    @property
    def delays(self) -> bool:
        """Whether packets wait in the same queue for the path's own delay too, as in a netem with a rate."""
        return self.queues[self.depth].delay_ns > 0


def find(scenario: Scenario) -> Bottleneck | None:
    """The queue of the lowest rate that all data pass, the first of several; None where none has a rate.

    Of a link whose rate changes, it is the rate at the start, of a recorded one the mean.

    :raises WordsError: names the part of the path and the wrong word.
    """
    links, stages = [], {0: 0, 1: 0}
    for part in ("forward", "bottleneck"):
        for i, hop in enumerate(getattr(scenario, part)):
            pipe = PIPES[path.node(part, i, hop)]
            with within(part):
                described = path.queues(hop, scenario.rtt_ns)
            for queues in described:
                links += [Bottleneck(q.rate_bps, pipe, stages[pipe], depth, queues) for depth, q in enumerate(queues) if q.rate_bps]
                stages[pipe] += 1
    return min(links, key=lambda b: b.rate_bps, default=None)
