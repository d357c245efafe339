"""The hops of a path: tc's own words, or fields. :func:`plan` is what engines get of either, :func:`words` what people and tc read.

Beyond tc: `order` keeps packets in order (the `jitter` queue, docs/models/queues/jitter.md) and `floor` cuts the low tail of the delay. A jitter in
fields is normally distributed, as in `advise` and `sweep`; in tc's own words it is tc's, uniform.

The queue of a bottleneck is tc's words for it, or its name alone, and a limit in bytes as the unit in which that queue counts. A FIFO in bytes needs
no name. Any other queue is named as tc names it (`fq_codel`, `red limit 60000 avpkt 1500 ecn`); it becomes the child of a token bucket, or shapes by
itself where it can (`cake`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from tcpscape import units
from tcpscape.errors import ScenarioError, WordsError, instead, refuse, shown
from tcpscape.scenario import traces
from tcpscape.scenario.fields import Buffer, Percent, Rate, Spec, Time, is_address, written
from tcpscape.scenario.traces import Opportunities
from tcpscape.scenario.words import QueueDescription, describe, parameters, queue_names

TBF_BURST = 6056
"""Bytes: four full Ethernet frames, the burst of a bottleneck whose burst is not given."""
TRACE_BURST = 1600
"""Bytes: a full Ethernet frame and what tc's clock of 64 ns may round off at 10 Gbit/s. A link that follows a trace saves up no more."""
MAX_LOSS_BURST = 10_000
"""Largest mean number of packets lost in a row."""
MOST_COUNT = 2**32 - 1
"""Largest count and probability of a netem: 32 bits, as in the kernel."""
DEFAULT_BUFFER = "1bdp"
"""Queue of a structured bottleneck without `buffer`."""


ORDERS = ("reorder", "clamp", "correlated")
"""What jitter may do to the order of packets."""


def _order(value: Any) -> Any:
    """`keep` is `correlated`: the order kept, with the mean and the spread that were asked for (a clamp raises the one and narrows the other)."""
    if value not in ("keep", *ORDERS):
        refuse("order", f"{value!r} is unknown", "choose reorder, keep (or correlated), or clamp")
    return "correlated" if value == "keep" else value


Order = Annotated[
    Literal["reorder", "clamp", "correlated"], BeforeValidator(_order, json_schema_input_type=Literal["reorder", "keep", "clamp", "correlated"])
]
"""How jitter affects the order of packets: netem's reordering, a running maximum, or a delay correlated in time (also written `keep`)."""
Distribution = Literal["uniform", "normal", "pareto", "paretonormal"]
"""Distribution of the jitter, as tc names it."""


@functools.cache
def deviation(distribution: Distribution) -> float:
    """Standard deviation of a jitter of 1: that of netem's table of the distribution (`crates/path/src/parts/dist.rs`), to three digits.

    1 of `normal`, 0.82 of `pareto`, 0.834 of `paretonormal`; `uniform` has no table, 1/√3.
    """
    from tcpscape import _core

    exact = _core.jitter_deviation(distribution)
    return exact if distribution == "uniform" else round(exact, 3)


Node = Literal["sender", "router"]
"""A node at whose egress netem may be; the sender is the host that sends what it delays."""


def expect_bursts(loss: float, burst: float) -> None:
    """Refuses a share of losses that runs of `burst` packets on average cannot reach, since a packet comes through between two runs.

    :raises ScenarioError: one line with the largest share.
    """
    most = burst / (1 + burst)
    if burst > 1 and loss > most:
        problem = f"bursts of {burst:g} packets on average lose {units.brief_percent(most)} at most, not {units.brief_percent(loss)}"
        refuse("loss_burst", problem, "lower the loss or lengthen the bursts")


class Netem(Spec):
    """netem, as fields. Jitter is the standard deviation of a normal distribution; with `distribution: uniform`, it is ±, as in tc's own words."""

    at: Node = "sender"
    """The node whose egress it is. At the sender, netem treats a super-packet as a whole; at a router, each packet."""
    delay: Time = 0
    """One-way delay, ns."""
    jitter: Time = 0
    """Spread of the delay, ns."""
    distribution: Distribution = "normal"
    """Distribution of the jitter, as tc names it."""
    correlation: Percent = 0.0
    """Correlation of successive delays."""
    order: Order = "reorder"
    """What jitter does to the order of packets."""
    tau: Time = 0
    """Time constant of `order: correlated`, ns; 0 is the engine's default."""
    floor: Time = 0
    """No packet is delayed less than this, ns."""
    loss: Percent = 0.0
    """Share of packets lost, each independently, or in bursts (`loss_burst`)."""
    loss_burst: float = Field(default=1.0, ge=1, le=MAX_LOSS_BURST)
    """Mean number of packets lost in a row: tc's `loss gemodel`, Gilbert's two states; 1 is independent loss."""
    duplicate: Percent = 0.0
    """Share of packets sent twice."""
    corrupt: Percent = 0.0
    """Share of packets with a bit changed, which the receiver drops."""
    reorder: Percent = 0.0
    """Share of packets sent at once, past the delayed ones."""
    gap: int = Field(default=0, ge=0, le=MOST_COUNT)
    """Only every packet of this number may be reordered; 0 is every one."""
    rate: Rate | None = None
    """netem's own rate, bit/s; keeps order."""
    limit: int = Field(default=100_000, le=MOST_COUNT)
    """Most packets in the queue; further ones are dropped."""

    def sensible(self) -> Netem:
        """Itself, if its fields fit together. :raises ScenarioError: one line with the first that does not."""
        if self.delay > MAX_DELAY:
            refuse("delay", f"{units.format_time(self.delay)} is more than netem can wait", f"write at most {MAX_DELAY // units.NS_PER_S}s")
        if self.jitter and not self.delay:
            refuse("jitter", "tc ignores jitter without a delay", "give the delay too")
        if self.limit <= 0:
            refuse("limit", f"a queue of {self.limit} packets carries nothing", "write for example 1000")
        if self.floor > self.delay:
            refuse("floor", "it is above the delay itself", "write a floor below the delay")
        if self.order == "correlated" and self.jitter and self.distribution != "normal":
            refuse("distribution", f"order: correlated draws a normal delay, not {self.distribution}", "write distribution: normal")
        expect_bursts(self.loss, self.loss_burst)
        if self.order == "reorder" and self.tau:
            refuse("tau", "only order: correlated has a time constant", "leave it out or write order: correlated")
        return self

    _is_sensible = model_validator(mode="after")(sensible)

    @model_serializer(mode="wrap")
    def _fields(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """The distribution is written wherever there is jitter; in a content address it is `uniform` where there is none.

        The content address of independent loss says nothing of bursts.
        """
        fields: dict[str, Any] = write(self)
        if is_address(info) and self.loss_burst == 1:
            del fields["loss_burst"]
        if self.jitter:
            fields["distribution"] = self.distribution
        elif is_address(info):
            fields["distribution"] = "uniform"
        return fields

    @property
    def split(self) -> bool:
        """Whether the delay needs a queue of its own."""
        return self.order != "reorder" or self.floor > 0

    def plan(self) -> list[dict[str, Any]]:
        """Each of its queues in order, as `NetemSpec` and `JitterSpec` of crates/path have them: what :meth:`words` are parsed to."""
        delays: dict[str, Any] = {"delay": self.delay - self.floor, "limit": self.limit}
        if self.jitter:
            delays |= {"jitter": self.jitter, "distribution": self.distribution}
        impairments: dict[str, Any] = {name: _chance(share) for name in ("duplicate", "corrupt", "reorder") if (share := getattr(self, name))}
        if self.loss:
            impairments["loss"] = self._loss()
        if self.rate:
            impairments["rate"] = self.rate
        if self.gap or self.reorder:
            impairments["gap"] = self.gap or 1
        queues = []
        if self.order == "reorder":  # max(floor, delay + x) = floor + max(0, delay − floor + x)
            correlation = {"delay_correlation": _chance(self.correlation)} if self.jitter and self.correlation else {}
            queues.append({"kind": "netem", **delays, **correlation, **impairments})
        else:
            if self.loss or self.duplicate or self.corrupt or self.rate:
                queues.append({"kind": "netem", "limit": self.limit, **impairments})
            order: dict[str, Any] = {"order": self.order} if self.jitter else {}
            if self.jitter and self.tau:
                order["tau"] = self.tau
            queues.append({"kind": "jitter", **delays, **order})
        if self.floor:
            queues.append({"kind": "netem", "delay": self.floor, "limit": self.limit})
        return queues

    def _loss(self) -> dict[str, Any]:
        """Independent loss, or Gilbert's model: a packet comes through in its good state and none in its bad one."""
        if self.loss_burst == 1:
            return {"model": "random", "p": _chance(self.loss)}
        into, leave = self._gilbert
        return {"model": "gemodel", "p": _chance(into), "r": _chance(leave), "h": 0, "k1": 0}

    @property
    def _gilbert(self) -> tuple[float, float]:
        """Chances to enter and to leave the bad state, for the mean share and the mean run of losses: r = 1 / run, p = r · loss / (1 − loss)."""
        leave = 1 / self.loss_burst
        return min(1.0, leave * self.loss / (1 - self.loss)), leave

    def words(self) -> list[str]:
        """tc's words, one text for each of its queues, in order."""
        if not self.split or self.order == "reorder":
            queues = [self._netem(self._delays("netem"))]
        else:
            queues = [self._netem(["netem"])] if self.loss or self.duplicate or self.corrupt or self.rate else []
            queues.append(" ".join([*self._delays("jitter"), "limit", str(self.limit)]))
        if self.floor:
            queues.append(f"netem delay {_tc_time(self.floor)} limit {self.limit}")
        return queues

    def _delays(self, queue: str) -> list[str]:
        words = [queue]
        if self.delay or self.jitter:
            words += ["delay", _tc_time(self.delay - self.floor)]
        if not self.jitter:
            return words
        words.append(_tc_time(self.jitter))
        if self.correlation and queue == "netem":
            words.append(units.format_percent(self.correlation))
        if self.distribution != "uniform":
            words += ["distribution", self.distribution]
        if queue == "jitter":
            words += ["order", self.order] + (["tau", _tc_time(self.tau)] if self.tau else [])
        return words

    def _netem(self, words: list[str]) -> str:
        for name in ("loss", "duplicate", "corrupt", "reorder"):
            if share := getattr(self, name):
                words += [name, *self._bursts()] if name == "loss" and self.loss_burst > 1 else [name, units.format_percent(share)]
        if self.gap:
            words += ["gap", str(self.gap)]
        if self.rate:
            words += ["rate", units.format_rate(self.rate)]
        return " ".join([*words, "limit", str(self.limit)])

    def _bursts(self) -> list[str]:
        """tc's words of Gilbert's model."""
        return ["gemodel", *map(units.format_percent, self._gilbert)]


def _chance(share: float) -> int:
    """A share as netem has it: of 2³² − 1, as tc rounds it."""
    return round(share * MOST_COUNT)


def _trace(value: Any) -> Any:
    """Reads a trace: from its file, from a file whose content must have a digest, or the trace itself."""
    if isinstance(value, dict) and set(value) == {"file", "digest"} and isinstance(value["file"], str):
        read = traces.read(value["file"])
        if read.digest != value["digest"]:
            refuse("trace", f"{read.file} is not what it was", "bring the old file back, or leave out the digest and run again")
        return read
    return traces.read(value) if isinstance(value, str) else value


def _file_and_digest(value: Opportunities, info: SerializationInfo) -> str | dict[str, str]:
    """File and digest, from which the trace can be read again; for a content address the digest alone."""
    return value.digest if is_address(info) else {"file": value.file, "digest": value.digest}


_TRACE = {
    "anyOf": [
        {"type": "string", "description": "Its file."},
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["file", "digest"],
            "properties": {"file": {"type": "string", "description": "Its file."}, "digest": {"type": "string", "description": "What it must be."}},
        },
    ]
}
Trace = Annotated[
    Opportunities, BeforeValidator(_trace, json_schema_input_type=written(_TRACE)), PlainSerializer(_file_and_digest), WithJsonSchema(_TRACE)
]
"""A packet-delivery trace of mahimahi's, by its file."""


FRAME = 1514
"""Bytes of a full Ethernet frame: one packet of a limit in packets."""
MEMORY = 1448 + 1280
"""Bytes of memory of a full packet: its payload and the kernel's own (docs/models/queues/cake.md)."""
SHAPERS: Mapping[str, str] = {"cake": "bandwidth"}
"""Queues that have a shaper of their own → the word of its rate."""
NAMED: Mapping[str, str] = {"red": "red limit {bytes} avpkt 1500 bandwidth {rate}", "choke": "choke limit {packets} bandwidth {rate}"}
"""Queues whose name alone is too little for tc → the words that the name stands for."""
FIFO = "fifo"
"""The FIFO in bytes that a bottleneck without a named queue has, where it is named beside others."""
DELAYING = ("netem", "jitter")
"""Stages that delay packets on purpose: no queue of a bottleneck."""
MAX_DELAY = 0xFFFF_FFFF * 64
"""Longest delay of netem, ns: tc sends it as 32 bits of 64 ns."""
QUEUE_EXAMPLE = "write for example fq_codel, or 'fq_codel limit 1000 target 10ms' (`tcpscape qdisc list` shows them all)"


def queue_words(queue: str, rate_bps: int, limit: int, *, limited: bool) -> str:
    """tc's words of the queue `queue` of a link of `rate_bps` bit/s.

    :param limit: bytes.
    :param limited: whether a user said the limit; otherwise it is that of the queues in :data:`NAMED` alone, and any other has its own.
    :raises TcpscapeError: one line, for what tc does not take, and for a limit that is given twice.
    """
    name, rate, packets = queue.partition(" ")[0], units.format_rate(rate_bps), max(1, round(limit / FRAME))
    text = NAMED[name].format(bytes=limit, packets=packets, rate=rate) if queue in NAMED else queue
    if limited and queue not in NAMED:
        own = describe(text)[0]
        if queue != name and _limits(own) != _limits(describe(name)[0] if name not in NAMED else None):
            refuse("buffer", f"the words of the queue ({queue}) have a limit of their own", "leave one of them out")
        in_packets, in_bytes, _ = _limits(own)
        text += f" limit {packets}" if in_packets else f" limit {limit}" if in_bytes else f" memlimit {packets * MEMORY}"
    return f"{text} {SHAPERS[name]} {rate}" if name in SHAPERS else text


def check_queue(queue: str) -> str:
    """`queue` with single spaces, if it is one that a bottleneck can have. :raises ScenarioError: one line, for what is none."""
    text = " ".join(queue.split())
    if text == FIFO:
        return text
    name = text.partition(" ")[0]
    if not name or name in DELAYING:
        refuse("queue", f"{name or 'an empty text'} is no queue of a bottleneck", QUEUE_EXAMPLE)
    try:
        described = describe(text if text not in NAMED else queue_words(text, 10_000_000, 100 * FRAME, limited=False))
    except WordsError as e:
        names = [known for known in queue_names() if known not in DELAYING]
        if name not in names:
            refuse("queue", f"{shown(name)} is no queue", f"{instead(name, names)}; {QUEUE_EXAMPLE}")
        refuse("queue", e.what, QUEUE_EXAMPLE)
    if described[0].rate_bps:
        refuse("queue", f"{text!r} limits the rate, which is the bottleneck's", "leave it out of the queue's words")
    if len(described) > 1:
        refuse("queue", f"{text!r} is more than one queue", "name one, or write the bottleneck in tc's words")
    return text


def _limits(queue: QueueDescription | None) -> tuple[int | None, int | None, int | None]:
    """Its limits in packets, in bytes and in memory."""
    return (queue.limit_packets, queue.limit_bytes, queue.limit_memory_bytes) if queue else (None, None, None)


def _queue(value: Any) -> Any:
    return check_queue(value) if isinstance(value, str) else value


_QueueText = Annotated[str, Field(examples=["fq_codel", "fq_codel limit 1000 target 10ms"])]
Queue = Annotated[str, BeforeValidator(_queue, json_schema_input_type=_QueueText)]
"""The queue of a bottleneck: its name (`fq_codel`), or tc's words for it."""


class Link(Spec):
    """A bottleneck: a token bucket at `rate` with a byte FIFO of `buffer`, or with another `queue`."""

    rate: Rate
    """Rate of the link, bit/s."""
    buffer: Buffer | None = None
    """Size of the queue, bytes or `2bdp`, for a queue that counts packets as many full frames. None is `1bdp`, of a `queue` its own limit."""
    queue: Queue | None = None
    """The queue in the token bucket; None is a FIFO in bytes."""
    burst: int = TBF_BURST
    """Most bytes that the token bucket sends at once."""

    @model_validator(mode="after")
    def _sensible(self) -> Link:
        if self.burst < FRAME:
            refuse("burst", f"{self.burst} bytes are less than a full frame", f"write at least {FRAME}")
        return self

    @model_serializer(mode="wrap")
    def _fields(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """The content address of a byte FIFO says its buffer and nothing of a queue."""
        fields: dict[str, Any] = write(self)
        if is_address(info) and self.queue is None:
            fields = {k: v for k, v in fields.items() if k != "queue"} | {"buffer": self.buffer or DEFAULT_BUFFER}
        return fields

    def plan(self, rtt_ns: int) -> dict[str, Any]:
        """A `TbfSpec` of crates/path with the named queue as its child, or that queue alone where it shapes by itself."""
        queue = self._queue(rtt_ns)
        if queue and self._shapes:
            return parameters(queue)
        bucket = {"kind": "tbf", "rate": self.rate, "burst": self.burst, "limit": self._limit(rtt_ns)}
        return {**bucket, "child": parameters(queue)} if queue else bucket

    def words(self, rtt_ns: int) -> str:
        """tc's words; `rtt_ns` is the RTT of the bandwidth-delay product."""
        bucket = f"tbf rate {units.format_rate(self.rate)} burst {self.burst} limit {self._limit(rtt_ns)}"
        queue = self._queue(rtt_ns)
        if queue is None:
            return bucket
        return queue if self._shapes else f"{bucket}; {queue}"

    @property
    def _shapes(self) -> bool:
        """Whether the named queue shapes by itself."""
        return self.queue is not None and self.queue.partition(" ")[0] in SHAPERS

    def _limit(self, rtt_ns: int) -> int:
        return units.buffer_bytes(self.buffer or DEFAULT_BUFFER, self.rate, rtt_ns)

    def _queue(self, rtt_ns: int) -> str | None:
        """tc's words of the named queue; None of a FIFO in bytes."""
        if self.queue in (None, FIFO):
            return None
        return queue_words(self.queue, self.rate, self._limit(rtt_ns), limited=self.buffer is not None)


MOST_BINS = 1_000_000
"""Intervals of a trace whose mean rates a link follows."""


class TracedLink(Spec):
    """A bottleneck whose rate was recorded: a token bucket that follows a trace, with a byte FIFO of `buffer`."""

    trace: Trace
    """A file of delivery opportunities, a millisecond in each line; it begins again at its end."""
    buffer: Buffer = DEFAULT_BUFFER
    """Size of the queue, bytes, or `2bdp` of the mean rate."""
    bin: Time = 0
    """Length of the intervals whose mean rate the link follows, ns; 0 follows each opportunity."""
    burst: int = TRACE_BURST
    """Most bytes that the token bucket sends at once."""

    @model_validator(mode="after")
    def _sensible(self) -> TracedLink:
        if self.bin and self.bin < traces.MS:
            refuse("bin", f"{units.format_time(self.bin)} is shorter than a trace's millisecond", "write at least 1ms, or leave it out")
        if self.bin and (count := self.trace.period // self.bin) > MOST_BINS:
            least = units.format_time(traces.MS * -(-self.trace.period // (MOST_BINS * traces.MS)))
            refuse("bin", f"{units.format_time(self.bin)} cuts the trace into {count:,} intervals", f"write at least {least}, or leave it out")
        return self

    @property
    def at_mean_rate(self) -> Link:
        """The link at the trace's mean rate, which it has before the first of its :meth:`changes`."""
        return Link.model_construct(rate=self.trace.mean_rate, buffer=self.buffer, burst=self.burst)

    def changes(self) -> dict[str, Any]:
        """The changes of the rate, as the engine reads them."""
        points = self.trace.means(self.bin) if self.bin else self.trace.rates()
        return {"kind": "rate_trace", "points": [list(p) for p in points], "repeat": self.trace.period}


def _tc_time(ns: int) -> str:
    """A time in tc's words, exact."""
    return units.format_time(ns)


def _hop(value: Any) -> Any:
    """A hop from tc's words, an object or a mapping; a mapping has fields of netem, or `rate` or `trace` with fields of a bottleneck."""
    if isinstance(value, (Netem, Link, TracedLink)):
        return value
    if isinstance(value, str):
        if not value.strip():
            refuse("path", "an empty hop", "write tc's words, for example 'netem delay 25ms'")
        return " ".join(value.split())
    if isinstance(value, dict):
        for bottleneck in (Link, TracedLink):
            own = set(bottleneck.model_fields) - set(Netem.model_fields)
            if next(iter(bottleneck.model_fields)) in value and (set(value) <= set(bottleneck.model_fields) or set(value) & own):
                return bottleneck.model_validate(value)
        return Netem.model_validate(value)
    raise ScenarioError(f"path: {value!r} is not a hop; write tc's words or a mapping like {{delay: 25ms, loss: 0.1%}}")


def _hops(value: Any) -> Any:
    """One hop or a list of them."""
    if value is None:
        return ()
    return tuple(_hop(v) for v in value) if isinstance(value, (list, tuple)) else (_hop(value),)


_Words = Annotated[str, Field(pattern=r"\S", examples=["netem delay 25ms 8ms loss 0.1%"])]
Hop = Annotated[str | Netem | Link | TracedLink, BeforeValidator(_hop, json_schema_input_type=_Words | Netem | Link | TracedLink)]
"""tc's words, a :class:`Netem`, a :class:`Link` or a :class:`TracedLink`."""
Hops = Annotated[tuple[Hop, ...], BeforeValidator(_hops, json_schema_input_type=Hop | list[Hop] | None)]
"""Hops in the order in which packets meet them."""


def delay_ns(hop: str | Netem | Link | TracedLink) -> int:
    """The propagation delay a hop adds, ns, without jitter. :raises WordsError: words that tc would refuse."""
    if isinstance(hop, Netem):
        return hop.delay
    return sum(q.delay_ns for q in describe(hop)) if isinstance(hop, str) else 0


def rate_bps(hop: str | Netem | Link | TracedLink) -> int | None:
    """The rate of a hop, bit/s: of its outermost queue with a rate; None where there is none, or no single one (a trace).

    :raises WordsError: words that tc would refuse.
    """
    if isinstance(hop, (Netem, Link)):
        return hop.rate
    return next((q.rate_bps for q in describe(hop) if q.rate_bps), None) if isinstance(hop, str) else None


def words(hop: str | Netem | Link | TracedLink, rtt_ns: int) -> list[str]:
    """tc's words for a hop, one text for each of its queues, in order."""
    if isinstance(hop, str):
        return [hop]
    if isinstance(hop, Netem):
        return hop.words()
    return [(hop.at_mean_rate if isinstance(hop, TracedLink) else hop).words(rtt_ns)]


def plan(hop: str | Netem | Link | TracedLink, rtt_ns: int) -> list[dict[str, Any]]:
    """A hop as an engine's plan has it, each of its queues, in order: fields as they are, words parsed.

    :raises WordsError: words that tc would refuse.
    """
    if isinstance(hop, str):
        return [parameters(hop)]
    if isinstance(hop, Netem):
        return hop.plan()
    return [(hop.at_mean_rate if isinstance(hop, TracedLink) else hop).plan(rtt_ns)]


def node(part: str, index: int, hop: Hop, *, loaded: bool = False) -> Literal["sender", "router", "receiver"]:
    """The node whose egress a hop is: the one at `index`, from 0, of `forward`, `bottleneck` or `reverse`.

    :param loaded: whether data travel up: then the first hop of `reverse` is where it says, as that of `forward` is; for ACKs it makes no difference.
    """
    if part == "reverse":
        return "router" if index or (loaded and isinstance(hop, Netem) and hop.at == "router") else "receiver"
    if part == "bottleneck" or index:
        return "router"
    return hop.at if isinstance(hop, Netem) else "sender"


def queues(hop: str | Netem | Link | TracedLink, rtt_ns: int) -> list[tuple[QueueDescription, ...]]:
    """What the queues of a hop do, each with its children from the outside in; a structured hop is read by the words that it becomes.

    :raises WordsError: words that tc would refuse.
    """
    return [describe(text) for text in words(hop, rtt_ns)]
