"""A path in words: what a screen, a report and a figure say of a scenario in one line, and in what two scenarios differ.

`RTT 50ms, jitter 8ms normal and loss 0.1% of the data, bottleneck 10mbit with a FIFO of 62.5kB (1 BDP), 2 flows, kernel 6.1, 10s`

Of a network: `2 cubic at 20ms and 2 bbr up`, `link home 20mbit down, 5mbit up`. Of two scenarios, with the values of both besides their congestion
controls: `kernel wmem_max 4MiB / 256KiB`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from tcpscape import units
from tcpscape.errors import shown
from tcpscape.scenario import bottleneck, path
from tcpscape.scenario.changes import Change
from tcpscape.scenario.flows import Flow, Player
from tcpscape.scenario.path import Hop, Netem, TracedLink
from tcpscape.scenario.scenario import NEUTRAL, PARTS, Kernel, Scenario
from tcpscape.scenario.topology import Endpoint, title
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
FEW_GROUPS = 5
"""Most groups of flows that are described one by one."""
FEW_LINKS = 4
"""Most links that are."""
LABELS: Mapping[str, str] = {"duration": "duration", "queue": "queue", "changes": "changes"}
"""What stands before a phrase of :func:`parts` that does not name its subject itself."""
PHRASES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((*PARTS, "links"), ("rtt", "jitter", "loss", "sender", "other", "bottleneck", "queue")),
    "flows": ("application", "flows", "access"),
    "transfers": ("traffic",),
    "probes": ("traffic",),
    "changes": ("changes",),
    "duration": ("duration",),
    "ecn": ("application",),
    "offload": ("application",),
}
"""Field of a scenario → the phrases that tell of it; the values of a field are listed where none of its phrases differ."""
LISTS = ("other", "application", "traffic")
"""Phrases that are lists of independent ones."""
UNSAID = ("name", "about", "cca")
"""Fields in which a path does not differ."""
SPREADS = {"normal": "the standard deviation of", "uniform": "the most that is added to or taken from"}
"""What a jitter is of each one-way delay, by its distribution; of another one, its spread."""
ORDERS = {"reorder": "packets may overtake", "correlated": "the order of packets is kept", "clamp": "late packets hold up those behind them"}
"""What jitter does to the order of packets, by the order of :class:`Conditions`."""


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
    if scenario.extras:
        return _of_network(scenario)
    data, acks = scenario.queues("forward", "bottleneck"), scenario.queues("reverse")
    flows = {(f.cca, f.misbehaves) for f in scenario.flows}
    mixture = [
        f"{f.cca}×{f.count}" + (f" {f.misbehaves}" if f.misbehaves else "") + (f" from {units.brief_time(f.start)}" if f.start else "")
        for f in scenario.flows
    ]
    count = scenario.flow_count
    return {
        "rtt": f"RTT {units.brief_time(scenario.rtt_ns)}",
        "jitter": _both(_jitter(data), _jitter(acks)),
        "loss": _both(_loss(data, _burst(scenario.forward)), _loss(acks, _burst(scenario.reverse))),
        "sender": AT_SENDER if _is_treated_at_the_sender(scenario) else "",
        "other": ", ".join(dict.fromkeys(_other(chain(data, acks)))),
        "bottleneck": _bottleneck(scenario),
        "queue": _queue(scenario),
        "changes": _changes(scenario.changes),
        "application": _application(scenario),
        "flows": units.counted(count, "flow") + (f" ({', '.join(mixture)})" if len(flows) > 1 else ""),
        "kernel": _kernel(scenario.kernel),
        "duration": units.brief_time(scenario.duration),
    }


def _of_network(scenario: Scenario) -> dict[str, str]:
    """The phrases of a scenario with more than one link and data in one direction."""
    rtt = scenario.rtt_ns
    down, up = ([q for link in scenario.chain for hop in getattr(link, way) for q in path.queues(hop, rtt)] for way in ("forward", "reverse"))
    burst_down, burst_up = (_burst(hop for link in scenario.chain for hop in getattr(link, way)) for way in ("forward", "reverse"))
    ways = ("way down", "way up")
    return {
        "rtt": rtts(scenario),
        "jitter": _both(_jitter(down), _jitter(up), *ways),
        "loss": _both(_loss(down, burst_down), _loss(up, burst_up), *ways),
        "sender": AT_SENDER if not scenario.is_topology and _is_treated_at_the_sender(scenario) else "",
        "other": ", ".join(dict.fromkeys(_other(chain(down, up)))),
        "bottleneck": links(scenario),
        "queue": _queue(scenario) or _queues(scenario),
        "access": access(scenario),
        "changes": _changes(scenario.changes),
        "application": _application(scenario),
        "flows": flows(scenario),
        "traffic": traffic(scenario),
        "kernel": _kernel(scenario.kernel),
        "duration": units.brief_time(scenario.duration),
    }


def _queues(scenario: Scenario) -> str:
    """The queues of links that not all data share, where they are all alike in both directions."""
    rated = [bottleneck.of_flow(scenario, end) for end in scenario.flows or scenario.endpoints]
    texts = {_holder(link.holder) for link in rated if link}
    return f"{QUEUE}{texts.pop()}" if len(texts) == 1 and not scenario.is_traced else ""


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
    return " and ".join(f"jitter {units.brief_time(q.jitter_ns)} {q.distribution}{' (order kept)' if q.in_order else ''}" for q in jittery)


def _loss(queues: Iterable[tuple[QueueDescription, ...]], burst: str) -> str:
    return " and ".join(f"loss {units.brief_percent(q.loss)}{burst}" for queue in queues for q in queue if q.loss)


def _burst(hops: Iterable[Hop]) -> str:
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


def _bottleneck(scenario: Scenario) -> str:
    """The lowest rate that all data share."""
    traces = [hop for hop in (*scenario.forward, *scenario.bottleneck) if isinstance(hop, TracedLink)]
    if traces:
        return f"bottleneck after the trace {traces[0].trace.file}, buffer {traces[0].buffer}"
    link = bottleneck.find(scenario)
    return f"bottleneck {units.format_rate(link.rate_bps)}" if link else "no bottleneck"


def _queue(scenario: Scenario) -> str:
    """The queue that holds the packets at the bottleneck."""
    link = bottleneck.find(scenario)
    if link is None or scenario.is_traced:
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
    ]
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


def rtts(scenario: Scenario) -> str:
    """`RTT 30ms`, `RTTs 20ms and 80ms`, `RTTs 20ms to 160ms`."""
    ends = scenario.flows or scenario.endpoints
    every = [units.brief_time(ns) for ns in sorted({scenario.rtt_of(end) for end in ends} or {scenario.rtt_ns})]
    if len(every) < 3:
        return f"RTT{'s' * (len(every) - 1)} {' and '.join(every)}"
    return f"RTTs {every[0]} to {every[-1]}"


def flows(scenario: Scenario) -> str:
    """`8 flows (4 cubic, 4 cubic up)`; groups are told apart where they differ in more than their number."""
    count, entries = units.counted(scenario.flow_count, "flow"), scenario.flows
    if scenario.programs:
        router = scenario.programs.router_command
        program = f"the command {shown(scenario.programs.command)}{f' behind a router with {shown(router)}' if router else ''}"
        return f"{program} beside {count} of ours ({', '.join(group(flow, scenario) for flow in entries)})" if entries else program
    if not entries:
        return "no flows"
    if len(entries) > FEW_GROUPS:
        up = sum(flow.count for flow in entries if flow.direction == "up")
        return f"{count} in {len(entries)} groups" + (f", {up} of them up" if up else "")
    if len(entries) == 1 and entries[0].direction == "down":
        return count
    return f"{count} ({', '.join(group(flow, scenario) for flow in entries)})"


def group(flow: Flow, scenario: Scenario) -> str:
    """`2 cubic up at 80ms`, `1 bbr from b to c from 5s on`."""
    several = len({scenario.rtt_of(other) for other in scenario.flows}) > 1
    rtt = f" at {units.brief_time(scenario.rtt_of(flow))}" if several else ""
    start = f" from {units.brief_time(flow.start)} on" if flow.start else ""
    return f"{flow.count} {flow.cca}{way(flow, scenario)}{rtt}{start}"


def way(end: Endpoint, scenario: Scenario) -> str:
    """Which way data travel, and between which routers, where that is not the whole chain down."""
    up = " up" if end.direction == "up" else ""
    names = scenario.routers
    first, last = scenario.span(end)
    if (first, last) == (0, len(names) - 1):
        return up
    enter, leave = (names[last], names[first]) if up else (names[first], names[last])
    return f"{up} from {enter} to {leave}"


def links(scenario: Scenario) -> str:
    """`link home 20mbit down, 5mbit up`; `3 links of 20mbit`."""
    chain = scenario.chain
    rates = [_rates(link.forward, link.reverse) for link in chain]
    if not any(end.direction == "up" for end in scenario.endpoints):
        rates = [rate.removesuffix(" down") for rate in rates]
    if len(chain) > 1 and len(set(rates)) == 1:
        return f"{len(chain)} links{f' of {rates[0]}' if rates[0] != 'no limit' else ''}"
    if len(chain) > FEW_LINKS:
        return f"{len(chain)} links"
    if len(chain) == 1 and not chain[0].name:
        return f"bottleneck {rates[0]}" if rates[0] != "no limit" else "no bottleneck"
    return f"link{'s' * (len(chain) > 1)} {', '.join(f'{title(chain, i)} {rate}' for i, rate in enumerate(rates))}"


def _rates(forward: Sequence[Hop], reverse: Sequence[Hop]) -> str:
    """`20mbit`, `20mbit down and 5mbit up`, `20mbit down`, `no limit`."""
    down, up = _rate(forward), _rate(reverse)
    if down == up:
        return down or "no limit"
    return " and ".join(f"{rate} {way}" for rate, way in ((down, "down"), (up, "up")) if rate)


def _rate(hops: Sequence[Hop]) -> str:
    """The lowest rate of one direction; empty without one."""
    if any(isinstance(hop, TracedLink) for hop in hops):
        return "a recorded rate"
    rates = [rate for hop in hops if (rate := path.rate_bps(hop))]
    return units.format_rate(min(rates)) if rates else ""


def access(scenario: Scenario) -> str:
    """`access links of 20mbit`, where flows have some with a rate."""
    rates = {text for end in scenario.endpoints if end.access and (text := _rates(end.access.before, end.access.acks_after)) != "no limit"}
    return f"access links of {' or '.join(sorted(rates))}" if rates else ""


def traffic(scenario: Scenario) -> str:
    """`20 transfers a second of 30kB (cubic)`, `probes ping, voice up`."""
    texts = [
        f"{entry.rate:g} transfers a second of {units.brief_size(entry.size)} ({entry.cca}{way(entry, scenario)})" for entry in scenario.transfers
    ]
    if scenario.probes:
        names = [f"{probe.name}{way(probe, scenario) if not probe.name.endswith('-up') else ''}" for probe in scenario.probes]
        texts.append(f"probe{'s' * (len(names) > 1)} {', '.join(names)}")
    return ", ".join(texts)


def differences(a: Scenario, b: Scenario) -> list[str]:
    """What differs, each with the value of `a` and of `b`; empty where nothing but names and congestion controls does."""
    a, b = a.with_cca(NEUTRAL), b.with_cca(NEUTRAL)
    if a.address() == b.address():
        return []
    first, second = parts(a), parts(b)
    first, second = ({name: own.get(name, "") for name in {**first, **second}} for own in (first, second))
    different = [name for name in first if first[name] != second[name] and name != "kernel"]
    if {"jitter", "loss"} & set(different):
        different = [name for name in different if name != "sender"]  # it goes with them
    told = {field for field, phrases in PHRASES.items() if any(name in different for name in phrases)}
    phrases = [_phrase(name, first[name], second[name]) for name in different]
    return phrases + list(_values(a, b, told))


def _phrase(name: str, first: str, second: str) -> str:
    """`jitter 8ms / 4ms normal of the data`: what both phrases begin and end with stands once, and an impairment that one has not is `none` there."""
    if name in LISTS:
        x, y = (text.split(", ") if text else [] for text in (first, second))
        return " / ".join(", ".join(text for text in own if text not in other) or "none" for own, other in ((x, y), (y, x)))
    words = [text.removeprefix(QUEUE).split() for text in (first, second)]
    subject = [LABELS[name]] if name in LABELS else [name] if any(text[:1] == [name] for text in words) else []
    x, y = ([] if text == ["no", name] else text[1:] if text[:1] == [name] else text for text in words)
    head = _common(x, y)
    tail = _common(x[head:][::-1], y[head:][::-1])
    if name == "queue" or min(len(x), len(y)) <= head + tail:
        head = tail = 0
    both = [" ".join(text[head : len(text) - tail]) or "none" for text in (x, y)]
    return " ".join([*subject, *x[:head], " / ".join(both), *x[len(x) - tail :]])


def _common(x: list[str], y: list[str]) -> int:
    """How many words both begin with."""
    return next((i for i, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), min(len(x), len(y)))


def _values(a: Scenario, b: Scenario, told: set[str]) -> Iterator[str]:
    """The plain values that differ, of all fields but those that are told already."""
    for part in PARTS:
        kinds = [[type(hop) for hop in getattr(s, part)] for s in (a, b)]
        if part not in told and kinds[0] != kinds[1]:
            yield f"{part} {' / '.join(_text(s.to_dict().get(part)) for s in (a, b))}"
            told = {*told, part}
    first, second = (dict(_leaves(s.model_dump(mode="json"))) for s in (a, b))
    for place in dict.fromkeys((*first, *second)):
        if first.get(place) != second.get(place) and place[0] not in told and not set(place) & set(UNSAID):
            yield f"{' '.join(place)} {_text(first.get(place))} / {_text(second.get(place))}"


def _leaves(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every plain value with its place; members of a list are counted from 1 where there are several."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield from _leaves(member, (*place, str(name)))
    elif isinstance(value, list) and any(isinstance(member, Mapping) for member in value):
        for i, member in enumerate(value, 1):
            yield from _leaves(member, (*place, str(i)) if len(value) > 1 else place)
    else:
        yield place, value


def _text(value: Any) -> str:
    """A plain value as a phrase."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_text(member)}" for name, member in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "none"
    return "default" if value is None else str(value)


def jitter_meaning(distribution: str, order: str) -> str:
    """What a level of jitter is: `jitter is the standard deviation of each one-way delay (normal), packets may overtake`."""
    return f"jitter is {SPREADS.get(distribution, 'the spread of')} each one-way delay ({distribution}), {ORDERS[order]}"
