"""A path in words: what a screen, a report and a figure say of a scenario in one line.

`RTT 50ms, jitter 8ms normal and loss 0.1% of the data, bottleneck 10mbit with a FIFO of 62.5kB (1 BDP), 2 flows, kernel 6.1, 10s`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from tcpscape import units
from tcpscape.scenario import bottleneck, network, path, phrases
from tcpscape.scenario.changes import Change
from tcpscape.scenario.flows import Flow, Player
from tcpscape.scenario.path import Netem, TracedLink
from tcpscape.scenario.scenario import Kernel, Scenario
from tcpscape.scenario.words import QueueDescription

T = TypeVar("T")
PLAIN = ("netem", "tbf", "htb", "jitter", "bfifo", "pfifo")
"""Disciplines that are described by what they do; others are named."""
QUEUE = "with the queue "
"""Begins the phrase of a bottleneck's queue."""
AT_SENDER = "netem at the sender (it treats super-packets as one)"
"""Said of jitter and random loss at the sender's egress, which cost less than the same at a router."""
FEW_CHANGES = 2
"""Most changes of a path that are described."""
FEW_VALUES = 4
"""Most values of an axis that are listed."""
MOST_PARTS = 24
"""Most scenarios that are compared for what varies among them."""


def in_words(scenario: Scenario) -> str:
    """Path, flows, kernel and duration of a scenario as one phrase; with the congestion controls only where they are a mixture."""
    return _joined(parts(scenario).values())


def together(scenarios: Sequence[Scenario], levels: Mapping[str, Sequence[str]]) -> str:
    """What scenarios have in common, in words, after what varies among them: `levels`, axis → its values in order."""
    every = [parts(s) for s in spread(scenarios)]
    common = [text for name, text in every[0].items() if text and all(other.get(name) == text for other in every)]
    varied = [f"{name} {range_text(values)}" for name, values in levels.items()]
    return _joined([*varied, *common])


def parts(scenario: Scenario) -> dict[str, str]:
    """The phrases of :func:`in_words` by what each is about; empty where there is nothing to say."""
    if network.kinds(scenario):
        return _of_network(scenario)
    data, acks = scenario.queues("forward", "bottleneck"), scenario.queues("reverse")
    flows = {f.cca for f in scenario.flows}
    mixture = [f"{f.cca}×{f.count}" + (f" from {units.brief_time(f.start)}" if f.start else "") for f in scenario.flows]
    count = scenario.flow_count
    return {
        "rtt": f"RTT {units.brief_time(scenario.rtt_ns)}",
        "jitter": _both(_jitter(data), _jitter(acks)),
        "loss": _both(_loss(data, _burst(scenario.forward)), _loss(acks, _burst(scenario.reverse))),
        "sender": AT_SENDER if _is_treated_at_the_sender(scenario) else "",
        "other": ", ".join(dict.fromkeys(_other(chain(data, acks)))),
        "bottleneck": _rate(scenario),
        "queue": _queue(scenario),
        "changes": _changes(scenario.changes),
        "application": _application(scenario),
        "flows": units.counted(count, "flow") + (f" ({', '.join(mixture)})" if len(flows) > 1 else ""),
        "kernel": _kernel(scenario.kernel),
        "duration": units.brief_time(scenario.duration),
    }  # fmt: skip


def _of_network(scenario: Scenario) -> dict[str, str]:
    """The phrases of a scenario with more than one link and data in one direction."""
    rtt = scenario.rtt_ns
    down, up = ([q for link in scenario.chain for hop in getattr(link, way) for q in path.queues(hop, rtt)] for way in ("forward", "reverse"))
    burst_down, burst_up = (_burst(hop for link in scenario.chain for hop in getattr(link, way)) for way in ("forward", "reverse"))
    ways = ("way down", "way up")
    return {
        "rtt": phrases.rtts(scenario),
        "jitter": _both(_jitter(down), _jitter(up), *ways),
        "loss": _both(_loss(down, burst_down), _loss(up, burst_up), *ways),
        "sender": AT_SENDER if not scenario.is_topology and _is_treated_at_the_sender(scenario) else "",
        "other": ", ".join(dict.fromkeys(_other(chain(down, up)))),
        "bottleneck": phrases.links(scenario),
        "queue": _queue(scenario) or _queues(scenario),
        "access": phrases.access(scenario),
        "changes": _changes(scenario.changes),
        "application": _application(scenario),
        "flows": phrases.flows(scenario),
        "traffic": phrases.traffic(scenario),
        "kernel": _kernel(scenario.kernel),
        "duration": units.brief_time(scenario.duration),
    }  # fmt: skip


def _queues(scenario: Scenario) -> str:
    """The queues of links that not all data share, where they are all alike in both directions."""
    rated = [bottleneck.of_flow(scenario, end) for end in scenario.flows or scenario.endpoints]
    texts = {_holder(link.holder) for link in rated if link}
    return f"{QUEUE}{texts.pop()}" if len(texts) == 1 and not any(isinstance(hop, TracedLink) for hop in network.hops(scenario)) else ""


def link_mbps(scenario: Scenario) -> float | None:
    """The lowest rate that all data of a path share, Mbit/s, which no goodput exceeds for long; None where there is none or it changes."""
    if scenario.changes or scenario.transfers or any(isinstance(hop, TracedLink) for hop in network.hops(scenario)):
        return None
    link = bottleneck.find(scenario)
    return link.rate_bps / 1e6 if link else None


def _changes(changes: Sequence[Change]) -> str:
    """What changes on the way: `bottleneck rate 20mbit from 5s on`; where there are many, how many."""
    if not 0 < len(changes) <= FEW_CHANGES:
        return f"{len(changes)} changes on the way" if changes else ""
    return ", ".join(_change(change) for change in changes)


def _change(change: Change) -> str:
    if change.ramp:
        return f"{change.where} ramp from {units.brief_time(change.ramp[0])} to {units.brief_time(change.ramp[1])}"
    if change.trace:
        return f"{change.where} rate along {len(change.trace)} steps"
    values = change.set.model_dump(mode="json", exclude_none=True) if change.set else {}
    text = " ".join([change.where, ", ".join("outage" if value is True else f"{name} {value}" for name, value in values.items())])
    if change.every is not None:
        return f"{text} for {units.brief_time(change.hold or 0)} every {units.brief_time(change.every)}"
    return f"{text} from {units.brief_time(change.at or 0)} on"


def range_text(values: Sequence[str]) -> str:
    """`0ms to 24ms (7 values)`, or the values themselves where they are few."""
    return ", ".join(values) if len(values) <= FEW_VALUES else f"{values[0]} to {values[-1]} ({len(values)} values)"


def _both(data: str, acks: str, one: str = "data", other: str = "ACKs") -> str:
    """A phrase about both directions from one about each; `one` and `other` are what these are called."""
    if data == acks:
        return f"{data} each way" if data else ""
    return " and ".join(f"{text} of the {of}" for text, of in ((data, one), (acks, other)) if text)


def _jitter(queues: Iterable[tuple[QueueDescription, ...]]) -> str:
    jittery = [q for queue in queues for q in queue if q.jitter_ns]
    return " and ".join(
        f"jitter {units.brief_time(q.jitter_ns)} {q.distribution}{' (order kept)' if q.in_order else ''}" for q in jittery
    )  # fmt: skip


def _loss(queues: Iterable[tuple[QueueDescription, ...]], burst: str) -> str:
    return " and ".join(f"loss {units.brief_percent(q.loss)}{burst}" for queue in queues for q in queue if q.loss)


def _burst(hops: Iterable[path.Hop]) -> str:
    """How many packets in a row are lost on average, where a hop's fields say it and it is more than one."""
    return next((f" in bursts of {hop.loss_burst:g}" for hop in hops if isinstance(hop, Netem) and hop.loss and hop.loss_burst > 1), "")


def _is_treated_at_the_sender(scenario: Scenario) -> bool:
    """Whether the data meet jitter or random loss at the sender's egress, where netem sees super-packets (docs/models/tcp/sender.md)."""
    first = scenario.forward[0] if scenario.forward else None
    if first is None or (isinstance(first, Netem) and first.at == "router"):
        return False
    return any(q.loss or q.jitter_ns for queue in path.queues(first, scenario.rtt_ns) for q in queue)


def _other(queues: Iterable[tuple[QueueDescription, ...]]) -> Iterator[str]:
    """Rarer impairments, and queues that are known by their names."""
    for queue in queues:
        for q in queue:
            for share, name in ((q.duplicate, "duplicated"), (q.corrupt, "corrupted"), (q.reorder, "sent ahead")):
                if share:
                    yield f"{units.brief_percent(share)} {name}"
            if q.kind not in PLAIN and not any(p.rate_bps for p in queue):
                yield q.kind


def _kernel(kernel: Kernel) -> str:
    """The profile, and the settings that differ from it as they are written: `kernel 6.12 (rmem_max=4MiB)`."""
    settings = kernel.model_dump(mode="json", exclude_defaults=True, exclude={"profile"})
    texts = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in settings.items()]
    return f"kernel {kernel.profile}" + (f" ({', '.join(texts)})" if texts else "")


def _joined(texts: Iterable[str]) -> str:
    """Phrases as one; the queue belongs to the bottleneck before it, if that is there."""
    known = [text for text in texts if text]
    return ", ".join(known).replace(f", {QUEUE}", " with ")


def _rate(scenario: Scenario) -> str:
    """The lowest rate that all data share."""
    traces = [hop for hop in (*scenario.forward, *scenario.bottleneck) if isinstance(hop, TracedLink)]
    if traces:
        return f"bottleneck after the trace {traces[0].trace.file}, buffer {traces[0].buffer}"
    link = bottleneck.find(scenario)
    return f"bottleneck {units.format_rate(link.rate_bps)}" if link else "no bottleneck"


def _queue(scenario: Scenario) -> str:
    """The queue that holds the packets at the bottleneck."""
    link = bottleneck.find(scenario)
    if link is None or any(isinstance(hop, TracedLink) for hop in network.hops(scenario)):
        return ""
    rate, holder = link.rate_bps, link.holder
    if holder.limit_bytes:
        bdp = rate / 8 * scenario.rtt_ns / units.NS_PER_S
        share = f" ({holder.limit_bytes / bdp:.2g} BDP)" if bdp else ""
        return f"{QUEUE}{_queue_name(holder)} of {units.brief_size(holder.limit_bytes)}{share}"
    return f"{QUEUE}{_holder(holder)}"


def _holder(queue: QueueDescription) -> str:
    """A queue and its limit: `a FIFO of 250kB`, `fq_codel`."""
    if queue.limit_bytes:
        return f"{_queue_name(queue)} of {units.brief_size(queue.limit_bytes)}"
    return f"{_queue_name(queue)} of {queue.limit_packets} packets" if queue.limit_packets and queue.kind in PLAIN else _queue_name(queue)


def _queue_name(queue: QueueDescription) -> str:
    return "a FIFO" if queue.kind in ("bfifo", "pfifo", "tbf", "htb", "netem") else queue.kind


def _application(scenario: Scenario) -> str:
    """What the applications and sockets limit, of the first group of flows."""
    flow = scenario.flows[0] if scenario.flows else Flow()
    wait = f"every {units.brief_time(flow.app.every)}" if flow.app.every else f"{units.brief_time(flow.app.think)} of thinking between them"
    texts: list[Any] = [
        f"application {units.format_byte_rate(flow.app.rate)}" if flow.app.rate else "",
        f"{units.format_size(flow.app.size)} to send" if flow.app.size else "",
        f"answers of {units.brief_size(flow.app.response)} {wait}" if flow.app.response else "",
        f"{units.brief_time(flow.app.on)} on and {units.brief_time(flow.app.off)} off" if flow.app.on else "",
        _player(flow.player) if flow.player else "",
        f"SO_RCVBUF {units.format_size(flow.rcvbuf)}" if flow.rcvbuf else "",
        f"SO_SNDBUF {units.format_size(flow.sndbuf)}" if flow.sndbuf else "",
        "ECN" if scenario.ecn else "",
        "segmentation offload" if scenario.offload else "",
    ]  # fmt: skip
    return ", ".join(text for text in texts if text)


def _player(player: Player) -> str:
    """`video player of 1 to 16 Mbit/s (bola, buffer 30s)`."""
    rates = [f"{rate / 1e6:g}" for rate in player.ladder]
    ladder = f"{rates[0]} to {rates[-1]}" if len(rates) > 1 else rates[0]
    return f"video player of {ladder} Mbit/s ({player.abr}, buffer {units.brief_time(player.buffer)})"


def spread(items: Sequence[T]) -> list[T]:
    """The first, the last and some items between, at most :data:`MOST_PARTS`: reading all scenarios of a large campaign takes seconds."""
    count = len(items)
    if count <= MOST_PARTS:
        return list(items)
    return [items[round(i * (count - 1) / (MOST_PARTS - 1))] for i in range(MOST_PARTS)]
