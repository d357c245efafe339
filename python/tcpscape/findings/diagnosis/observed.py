"""What was seen of flows, whatever showed it: a capture, a socket, iperf3, Flent, a result. What a source cannot show is None."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tcpscape.errors import refuse, shown

Vantage = Literal["sender", "receiver", "middle", "unknown"]
"""Where a capture was taken, as its packets show it."""
Cause = Literal["application", "send_buffer", "receive_window", "congestion_window", "pacing", "recovery", "timeout", "handshake", "unknown"]
"""What holds a flow at a time; `unknown` where the source cannot show it."""
Doubt = Literal[
    "far_from_sender",
    "no_timestamps",
    "end_of_writes",
    "pace_or_application",
    "constant_flight",
    "few_segments",
    "small_writes",
    "unused_window",
    "packets_missing",
]
"""Why a source does not show what held a flow: the data's receiver opened the connection and is nearer to the capture, so that nothing says how late
the sender's answers are there; segments without timestamps do not say which ACK they answer; away from the sender writes end as an application's do,
and its flight or rate does not go with that; at the sender a timer spaces the segments, and no control that paces shows; the
flight stays the same without a loss, as a congestion window does not, or while round trips vary, as an application's does not; too few segments show
no habit; segments that are not full leave one by one, as small writes, answers and tiny buffers do; of samples alone, a congestion window that is
full would have grown, and this one stays the same; the capture lacks all ACKs or most of the
data, so that a pause in it need be none of the sender's."""
Columns = Mapping[str, NDArray[Any]]
"""Named columns of one length."""


@dataclass(frozen=True, slots=True)
class SocketAddress:
    """One end of a connection."""

    address: str
    """Empty where the source has none."""
    port: int
    """0 where the source has none."""

    @property
    def text(self) -> str:
        """`10.0.0.1:5201`, `[2001:db8::1]:5201`; `?` where the source has no address."""
        if not self.address:
            return "?"
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}" if self.port else host


BOTH_WAYS = 0.1
"""Share of the receiver's packets with data of its own, above which a connection carries data both ways."""


@dataclass(frozen=True, slots=True)
class LimitInterval:
    """A time during which one cause held a flow."""

    start_s: float
    """Its beginning, s from the beginning of the observation."""
    end_s: float
    """Its end, s."""
    cause: Cause
    """The cause."""
    frames: tuple[int, ...] = ()
    """Numbers of the frames that prove it, as Wireshark counts them."""


@dataclass(frozen=True)
class FlowEnds:
    """Who talks to whom."""

    source: SocketAddress
    """Who sends the data."""
    destination: SocketAddress

    @property
    def name(self) -> str:
        """`10.0.0.1:40000 → 10.0.0.2:5201`."""
        return f"{self.source.text} → {self.destination.text}"


@dataclass(frozen=True, slots=True)
class Attempt(FlowEnds):
    """A connection that was asked for and, as far as its source shows, not established; `source` asked for it."""

    syns: int
    """SYNs that were seen."""
    answers: int
    """SYN-ACKs that were seen."""
    is_reset: bool
    """Whether a reset ended it."""
    seconds: float
    """From its first packet to its last, s."""


@dataclass(frozen=True)
class FlowCounts:
    """How much was seen of a flow, for how long, and where; its document says the same."""

    packets: int | None
    """Data packets seen."""
    bytes: int | None
    """Payload delivered, bytes, each once."""
    seconds: float
    """From the first packet to the last that carries or acknowledges data, s."""
    start_s: float
    """From the beginning of the observation to the flow's, s."""
    vantage: Vantage
    """Where it was seen."""
    goodput_mbps: float | None
    """Payload over time, Mbit/s."""


@dataclass(frozen=True, slots=True)
class ObservedFlow(FlowCounts, FlowEnds):
    """One direction of one connection: the data and what acknowledges it."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """Counters and handshake, by the names that docs/diagnosis.md lists; what is not identifiable is absent."""
    segments: Columns = field(default_factory=dict)
    """Data segments, a row each; empty where the source has no packets."""
    acks: Columns = field(default_factory=dict)
    """Packets of the other direction, a row each."""
    events: Columns = field(default_factory=dict)
    """Losses, retransmissions, reorderings, timeouts, closed windows, a row each."""
    samples: Columns = field(default_factory=dict)
    """TCP_INFO over time: `t_s` and fields by the kernel's names; empty where the source has none."""
    limits: Sequence[LimitInterval] = ()
    """What held the flow, where the source or the analysis of its packets says it."""
    cca: str | None = None
    """The congestion control's name, where the source itself names it."""
    others_back: float = 0.0
    """Data segments of other connections that went from its receiver to its sender while it lasted, as far as the source shows them."""
    others_before: bool = False
    """Whether some of them went before it began, so that its handshake may have waited behind them."""

    @property
    def limits_doubt(self) -> Doubt | None:
        """Why `unknown` has a part of the limits; None where the source does not say it, or needs not."""
        doubt: Doubt | None = self.facts.get("limits_doubt")
        return doubt

    @property
    def surely_lost(self) -> int:
        """Of the segments that were sent again those that had surely been lost: the others may have come late."""
        return max(0, (self.facts.get("losses") or 0) - (self.facts.get("losses_uncertain") or 0))

    @property
    def sends_back(self) -> float:
        """Share of the receiver's packets that carry data of its own; 0 where none was seen."""
        if not len(self.acks.get("len", ())):
            return 0.0
        carry = np.asarray(self.acks["len"]) > 0
        beside = float(np.sum(self.acks["beside"], dtype=np.float64)) if "beside" in self.acks else 0.0
        return (float(np.sum(carry)) + beside) / (carry.size + beside)

    @property
    def loads_back(self) -> bool:
        """Whether the receiver sends data, as a rule more than half a segment at a time, in whose queue its acknowledgements may wait."""
        if not self.sends_back > BOTH_WAYS:
            return False
        sizes = np.asarray(self.acks["len"], dtype=np.float64)
        return bool(np.any(sizes)) and float(np.median(sizes[sizes > 0])) > (self.facts.get("segment_size") or 0) / 2

    @property
    def others_load_back(self) -> bool:
        """Whether its acknowledgements may wait in a queue of other connections' data: a tenth as many segments as there are acknowledgements."""
        return self.others_back > BOTH_WAYS * (self.facts.get("acks") or 0) > 0

    @property
    def answers_reordering(self) -> bool:
        """Whether data came in another order more often than they were sent again, and losses are sure to explain less than half of that."""
        again = self.facts.get("retransmissions") or 0
        return (self.facts.get("reordered") or 0) > again > 2 * self.surely_lost


@dataclass(frozen=True, slots=True)
class Observation:
    """A source that was read."""

    kind: str
    """`pcap`, `pcapng`, `sockets`, `ss`, `iperf3`, `flent`, `result`."""
    name: str
    """The file's name, or what the user asked for."""
    flows: Sequence[ObservedFlow]
    """The flows, the one with most bytes first."""
    notes: Sequence[str] = ()
    """What could not be read or is not in it; whole sentences."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Of the source as a whole: packets, bytes, seconds, interfaces, clock steps."""
    attempt: Attempt | None = None
    """Of the connections that were not established the one with most SYNs."""


def segments_back(one: ObservedFlow, flow: ObservedFlow) -> float:
    """Data segments of `one` that went from the receiver of `flow` to its sender in its time; 0 of another way, and of the same connection."""
    begin, end = max(one.start_s, flow.start_s), min(one.start_s + one.seconds, flow.start_s + flow.seconds)
    is_back = (one.source.address, one.destination.address) == (flow.destination.address, flow.source.address) != ("", "")
    is_same = {one.source, one.destination} == {flow.source, flow.destination}  # its own data, too, where both ends have one address
    if not is_back or is_same or not one.seconds or end <= begin:
        return 0.0
    return float(one.facts.get("segments") or 0) * (end - begin) / one.seconds


SMALL = 0.01
"""Share of the largest flow's bytes below which a flow is not diagnosed unless it is named: requests and their like."""
BOTH_ENDS = ("sockets", "ss")
"""Kinds of sources that may show both ends of a connection, each on its own."""
EXAMPLE = "write for example 10.0.0.1:40000-10.0.0.2:5201, one end of it, an address or :5201"
_END = re.compile(
    r"(?:\[(?P<six>[:.%\w]+)\]|(?P<four>[^\s:\[\]]+)|(?P<bare>[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*))?(?::(?P<port>\d{1,5}))?", re.ASCII
)


def matching(observation: Observation, text: str) -> list[ObservedFlow]:
    """The flows that `text` names: all without a text; `A:P-B:Q` has both ends, in either order, `A:P`, `A` or `:P` one of them.

    :raises TcpscapeError: one line, for what names no flow.
    """
    if not text:
        return list(observation.flows)
    ends = [_read(part, text) for part in re.split(r"\s*(?:->|→|-|,)\s*", text.strip())]
    if len(ends) > 2:
        refuse("flow", f"{shown(text)} has more than two ends", EXAMPLE)
    chosen = [flow for flow in observation.flows if _fits(flow, ends)]
    if not chosen:
        known = "; ".join(flow.name for flow in observation.flows[:3])
        refuse("flow", f"no flow is {shown(text)}", f"there are {known}{' …' if len(observation.flows) > 3 else ''}" if known else "leave it out")
    return chosen


def seen_once(observation: Observation) -> Observation:
    """The observation with each flow once: where both ends were sampled, as its sender shows it."""
    if observation.kind not in BOTH_ENDS:
        return observation
    sent = {(flow.source, flow.destination) for flow in observation.flows if flow.vantage == "sender"}
    once = [flow for flow in observation.flows if flow.vantage != "receiver" or (flow.source, flow.destination) not in sent]
    return replace(observation, flows=tuple(once))


def chosen(observation: Observation, most: int, text: str = "") -> list[ObservedFlow]:
    """At most `most` of the flows that `text` names, the largest first; without a text none that is far smaller than the largest."""
    flows = sorted(matching(observation, text), key=lambda flow: flow.bytes or 0, reverse=True)[:most]
    if text or not flows:
        return flows
    least = SMALL * (flows[0].bytes or 0)
    return [flow for flow in flows if (flow.bytes or 0) >= least]


def _read(part: str, text: str) -> SocketAddress:
    """One end; port 0 and an empty address are any."""
    match = _END.fullmatch(part)
    if not part or match is None or int(match["port"] or 0) > 65535:
        refuse("flow", f"{shown(text)} names no end of a connection", EXAMPLE)
    return SocketAddress(match["six"] or match["four"] or match["bare"] or "", int(match["port"] or 0))


def _fits(flow: ObservedFlow, ends: Sequence[SocketAddress]) -> bool:
    """Whether the ends are those of a flow, in either order."""
    both = (flow.source, flow.destination)
    if len(ends) == 1:
        return any(_is(end, ends[0]) for end in both)
    return any(_is(both[0], a) and _is(both[1], b) for a, b in (ends, ends[::-1]))


def _is(end: SocketAddress, wanted: SocketAddress) -> bool:
    return (not wanted.address or end.address.lower() == wanted.address.lower()) and (not wanted.port or end.port == wanted.port)


MOST_BINS = 1 << 21  # at 50 ms 29 hours, and 16 MB


def edges(start: float, end: float, width: float) -> NDArray[np.float64]:
    """From `start` on, in steps of `width`, what lies before `end`; in wider steps where there would be more than `MOST_BINS`."""
    return np.arange(start, end, max(width, (end - start) / MOST_BINS))
