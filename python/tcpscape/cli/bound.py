"""`tcpscape bound`: the latency spike that a drop of capacity must make, without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape import units
from tcpscape.cli import options
from tcpscape.cli.command import Option, command
from tcpscape.errors import refuse

if TYPE_CHECKING:
    from tcpscape.findings.spike.bound import Bound

LOADS = (0.0, 0.5, 0.8, 0.9, 0.95)
"""Loads of the new link for which the time to drain is printed."""
NS_PER_MS = units.NS_PER_S / 1000


@dataclass(frozen=True)
class LinkOptions:
    """The link before and after the drop, its queue and its flows."""

    before: Annotated[str, Option("The link's rate before the drop: 60mbit.", name="--from")]
    after: Annotated[str, Option("Its rate after the drop: 20mbit.", name="--to")]
    rtt: Annotated[str | None, Option("Round trip from the bottleneck to the sender and back: 50ms.")] = None
    max_queue: Annotated[str | None, Option("Longest delay that the queue lets a packet wait: 20ms.  [default: no limit]")] = None
    flows: Annotated[str | None, Option("Several flows instead of --rtt, RTT:SHARE of the bandwidth: 50ms:0.7,20ms:0.3")] = None
    packet: Annotated[str | None, Option("A packet as the link counts it.  [default: a full frame, 1514B]")] = None

    def bound(self) -> Bound:
        """The bound for them."""
        from tcpscape.findings.spike.bound import FULL_FRAME, Bound

        return Bound(
            units.parse_rate(self.before, "from", example="60mbit"), units.parse_rate(self.after, "to", example="20mbit"), self._flows(),
            None if self.max_queue is None else units.parse_time(self.max_queue, "max-queue", example="20ms"),
            FULL_FRAME if self.packet is None else units.parse_size(self.packet, "packet", example="1514B"),
        )  # fmt: skip

    def _flows(self) -> tuple[tuple[int, float], ...]:
        """Round trip in ns and share of each flow."""
        if (self.rtt is None) == (self.flows is None):
            problem = "none given" if self.rtt is None else "given twice, with --flows"
            refuse("rtt", problem, "write --rtt 50ms, or --flows 50ms:0.7,20ms:0.3")
        if self.rtt is not None:
            return ((units.parse_time(self.rtt, "rtt"), 1.0),)
        return tuple(_flow(text) for text in (self.flows or "").split(","))


@command(
    examples=(
        "bound --from 60mbit --to 20mbit --rtt 50ms",
        "bound --from 60mbit --to 20mbit --rtt 50ms --max-queue 20ms",
    ),
)
def bound(link: LinkOptions, as_json: Annotated[bool, options.json_output("One JSON line with every number")] = False) -> None:
    """The latency spike that a sudden drop of a full link's rate must make, or what must be lost instead. Nothing is run."""
    answer = link.bound()
    print(json.dumps(_plain(answer), allow_nan=False) if as_json else "\n".join(_lines(answer)))


def _flow(text: str) -> tuple[int, float]:
    """`50ms:0.7`."""
    rtt, colon, share = text.strip().partition(":")
    try:
        if colon:
            return units.parse_time(rtt, "flows"), float(share)
    except ValueError:
        pass
    refuse("flows", f"{text.strip()!r} is not RTT:SHARE", "write for example 50ms:0.7,20ms:0.3")


def _plain(bound: Bound) -> dict[str, Any]:
    """Every number, with its unit in its name."""
    return {
        "from_bps": bound.before_bps, "to_bps": bound.after_bps, "ratio": bound.ratio, "rtt_ms": bound.d_ns / NS_PER_MS,
        "max_queue_ms": None if bound.max_queue_ns is None else bound.max_queue_ns / NS_PER_MS,
        "spike_ms": bound.spike_ns / NS_PER_MS, "unlimited_spike_ms": bound.unlimited_ns / NS_PER_MS,
        "queued_bytes": bound.queued_bytes, "queued_packets": bound.queued_bytes / bound.packet, "lost_of_excess": bound.excess_lost,
        "lost_of_arrivals": bound.lost, "lost_bytes": bound.lost_bytes,
        "drained_after_ms": {f"{load:g}": bound.drain_ns(load) / NS_PER_MS for load in LOADS},
    }  # fmt: skip


def _lines(bound: Bound) -> Iterator[str]:
    """The answer in sentences."""
    from tcpscape.stats.estimate import number

    d, peak = bound.d_ns / NS_PER_MS, bound.spike_ns / NS_PER_MS
    mean = "" if len(bound.flows) == 1 else f", the mean of {len(bound.flows)} flows by their shares"
    yield f"{units.format_rate(bound.before_bps)} to {units.format_rate(bound.after_bps)}: r = {number(bound.ratio)}; d = {number(d)} ms{mean}"
    if bound.max_queue_ns is None or not bound.excess_lost:
        rtt = f"; the RTT peaks at {number(d + peak)} ms or more" if len(bound.flows) == 1 else ""
        yield f"latency spike: at least {number(peak)} ms of queueing delay, (r − 1)·d{rtt}"
    else:
        yield f"latency spike: {number(peak)} ms, where the queue is full; without its limit at least {number(bound.unlimited_ns / NS_PER_MS)} ms"
    yield f"queued at the peak: {_size(bound.queued_bytes, bound.packet)}"
    yield from _loss(bound, d)
    times = ", ".join(f"{number(bound.drain_ns(load) / NS_PER_MS)} ms at {load:.0%}" for load in LOADS)
    yield f"drained again, by how much of the new rate the senders then use: {times}; never at 100%"
    yield "holds for a full link, an empty queue at the drop and senders that hit the new rate as soon as they can know it: real ones do worse"


def _loss(bound: Bound, d: float) -> Iterator[str]:
    from tcpscape.stats.estimate import number

    if bound.max_queue_ns is None:
        yield "lost: nothing, if the queue holds that much"
    elif not bound.excess_lost:
        yield f"lost: nothing, the spike stays below {number(bound.max_queue_ns / NS_PER_MS)} ms"
    else:
        yield f"lost: {bound.excess_lost:.1%} of what would queue, (Q − q)/Q: {_size(bound.lost_bytes, bound.packet)}"
        when = f"the {number(d)} ms after the drop" if len(bound.flows) == 1 else "the round trip of each flow after the drop"
        yield f"      which is {bound.lost:.1%} of all that arrives in {when}"


def _size(size: float, packet: int) -> str:
    """`250 kB (165 packets)`."""
    from tcpscape.stats.estimate import number

    packets = size / packet
    return f"{number(size / 1000)} kB ({packets:.0f} packets of {packet} B)"
