"""Metrics of the queues' counters: delay, drops, marks, utilisation. The model reports how long packets waited; a real kernel does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tcpscape.metrics.base import UNKNOWN
from tcpscape.metrics.flows import span
from tcpscape.scenario.bottleneck import Bottleneck
from tcpscape.trial import Trial
from tcpscape.units import NS_PER_S

DELAYS = ("netem", "jitter")
"""Stages that delay packets on purpose, as the path does; waiting in them is no queueing."""
NS_PER_MS = NS_PER_S / 1000

Queue = Mapping[str, Any]
"""The counters of one queue, as an engine reports them."""


def bottleneck(trial: Trial) -> Queue | None:
    """The queue on a way of data, its children included, in which packets waited longest on average; None where no queue reports a delay.

    Stages whose delay is the path's own are left out. Where data travel up, the queues of that direction are on their way too.
    """
    ways = _ways(trial)
    queues = [q for q in trial.queues if q.get("direction") in ways and not q.get("depth") and q.get("name") not in DELAYS and _delay(q)]
    return max(queues, key=lambda q: float(_delay(q)["mean"]), default=None)


def shapers(trial: Trial) -> list[tuple[int, int]]:
    """Places (pipe, stage) in queue samples of the queues on a way of data, the path's own delay left out."""
    ways = _ways(trial)
    return [
        (pipe, stage)
        for queue, (pipe, stage, depth) in _placed(trial)
        if _direction(queue) in ways and not depth and queue.get("name", queue.get("kind")) not in DELAYS
    ]


def names(trial: Trial) -> dict[tuple[int, int, int], str]:
    """What each queue of the queue samples is, by its place (pipe, stage, depth): `forward tbf`, of a network `chain/0 forward tbf`."""
    parts = ((place, (queue.get("link"), _direction(queue), queue.get("name", queue.get("kind")))) for queue, place in _placed(trial))
    return {place: " ".join(str(part) for part in words if part) for place, words in parts}


def _placed(trial: Trial) -> Iterator[tuple[Queue, tuple[int, int, int]]]:
    """Each queue with its place in the samples.

    Pipe 0 is the sender's host, 1 the network forward, 2 the way back, 3 the right host where it sends data; a network's are as reported.
    """
    stages = [-1, -1, -1, -1]
    sends_up = any(flow.direction == "up" for flow in trial.flows)
    for queue in trial.queues:
        depth = int(queue.get("depth") or 0)
        if queue.get("link"):
            if "pipe" in queue:
                yield queue, (int(queue["pipe"]), int(queue["stage"]), depth)
            continue
        if _direction(queue) == "forward":
            pipe = 0 if queue.get("at") == "sender" else 1
        else:
            pipe = 3 if sends_up and queue.get("at") == "receiver" else 2
        stages[pipe] += not depth
        yield queue, (pipe, stages[pipe], depth)


def _ways(trial: Trial) -> set[str]:
    """The directions of the path in which data travel."""
    return {"reverse" if flow.direction == "up" else "forward" for flow in trial.flows} or {"forward"}


def pipe(trial: Trial, link: Bottleneck) -> int:
    """The pipe of a bottleneck in the samples of a trial's queues: of a network, as the account of the queue says."""
    accounts = (q for q in trial.queues if q.get("link") == link.link and _direction(q) == link.direction)
    return next((int(q["pipe"]) for q in accounts if "pipe" in q), link.pipe) if link.link else link.pipe


def delay(statistic: str) -> Callable[[Trial], float]:
    """A metric: p50, p95, p99, mean or max of the packets' time in the bottleneck's queue, ms."""

    def of(trial: Trial) -> float:
        queue = bottleneck(trial)
        return float(_delay(queue)[statistic]) / NS_PER_MS if queue else UNKNOWN

    return of


def drops(trial: Trial) -> float:
    """Packets that queues dropped in both directions: queue full, packet too large, or dropped by an AQM; not netem's random losses.

    A real kernel counts random losses together with netem's overflows, so there netem's drops are left out.
    """
    return float(sum(_drops(q) for q in trial.queues)) if trial.queues else UNKNOWN


def marks(trial: Trial) -> float:
    """Packets that queues marked CE, in both directions."""
    return float(sum(q.get("marked", 0) + sum(c.get("marked", 0) for c in _children(q)) for q in trial.queues)) if trial.queues else UNKNOWN


def utilisation(rate_bps: int) -> Callable[[Trial], float]:
    """A metric: bits that left the last forward queue / what `rate_bps` carries from the first flow's start to the last one's stop."""

    def of(trial: Trial) -> float:
        bytes_out = [q.get("bytes_out", q.get("sent_bytes")) for q in trial.queues if _direction(q) == "forward" and not q.get("depth")]
        start, stop = span(trial.flows)
        return 8 * bytes_out[-1] / (rate_bps * (stop - start)) if bytes_out and bytes_out[-1] is not None and stop > start else UNKNOWN

    return of


def _direction(queue: Queue) -> object:
    """`forward` or `reverse`; the model and the virtual engine call the field differently."""
    return queue.get("direction", queue.get("where"))


def _children(queue: Queue) -> list[Queue]:
    """The queues inside, where the engine does not report them as queues of their own."""
    return list(queue.get("children", ()))


def _drops(queue: Queue) -> int:
    """Packets dropped. The model counts by cause. A kernel's outer queue counts what its child refused, the child also what it dropped later."""
    if isinstance(causes := queue.get("drops"), Mapping):
        return sum(int(n) for cause, n in causes.items() if cause != "loss")
    if queue.get("kind") in DELAYS:
        return 0
    return max(int(q.get("dropped", 0)) for q in (queue, *_children(queue)))


def _delay(queue: Queue) -> Mapping[str, Any]:
    """The summary of a queue's delays, ns; empty where it has none."""
    summary = queue.get("delay")
    return summary if isinstance(summary, Mapping) and summary.get("count") else {}
