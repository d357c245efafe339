"""`tcpscape bound`: the latency spike that a drop of capacity must make, without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpscape import units
from tcpscape.errors import refuse

if TYPE_CHECKING:
    from tcpscape.findings.spike.bound import Bound

LOADS = (0.0, 0.5, 0.8, 0.9, 0.95)
"""Loads of the new link for which the time to drain is told."""
NS_PER_MS = units.NS_PER_S / 1000


def bound(
    before: Annotated[str, typer.Option("--from", help="The link's rate before the drop: 60mbit.")],
    after: Annotated[str, typer.Option("--to", help="Its rate after the drop: 20mbit.")],
    rtt: Annotated[str | None, typer.Option(help="Round trip from the bottleneck to the sender and back: 50ms.")] = None,
    max_queue: Annotated[str | None, typer.Option(help="Longest delay that the queue lets a packet wait: 20ms.  [default: no limit]")] = None,
    flows: Annotated[str | None, typer.Option(help="Several flows instead of --rtt, RTT:SHARE of the bandwidth: 50ms:0.7,20ms:0.3")] = None,
    packet: Annotated[str | None, typer.Option(help="A packet as the link counts it.  [default: a full frame, 1514B]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line with every number and nothing else on stdout.")] = False,
) -> None:
    """The latency spike that a sudden drop of a full link's rate must make, or what must be lost instead. Nothing is run."""
    from tcpscape.findings.spike.bound import FULL_FRAME, Bound

    said = Bound(
        units.parse_rate(before, "from", example="60mbit"), units.parse_rate(after, "to", example="20mbit"), _flows(rtt, flows),
        None if max_queue is None else units.parse_time(max_queue, "max-queue", example="20ms"),
        FULL_FRAME if packet is None else units.parse_size(packet, "packet", example="1514B"),
    )  # fmt: skip
    print(json.dumps(_plain(said), allow_nan=False) if as_json else "\n".join(_lines(said)))


def _flows(rtt: str | None, flows: str | None) -> tuple[tuple[int, float], ...]:
    """(d in ns, share) of each flow."""
    if (rtt is None) == (flows is None):
        problem = "none given" if rtt is None else "given twice, with --flows"
        refuse("rtt", problem, "write --rtt 50ms, or --flows 50ms:0.7,20ms:0.3")
    if rtt is not None:
        return ((units.parse_time(rtt, "rtt"), 1.0),)
    return tuple(_flow(part) for part in (flows or "").split(","))


def _flow(text: str) -> tuple[int, float]:
    """`50ms:0.7`."""
    rtt, colon, share = text.strip().partition(":")
    try:
        if colon:
            return units.parse_time(rtt, "flows"), float(share)
    except ValueError:
        pass
    refuse("flows", f"{text.strip()!r} is not RTT:SHARE", "write for example 50ms:0.7,20ms:0.3")


def _plain(said: Bound) -> dict[str, Any]:
    """Every number, with its unit in its name."""
    return {
        "from_bps": said.before_bps, "to_bps": said.after_bps, "ratio": said.ratio, "rtt_ms": said.d_ns / NS_PER_MS,
        "max_queue_ms": None if said.max_queue_ns is None else said.max_queue_ns / NS_PER_MS,
        "spike_ms": said.spike_ns / NS_PER_MS, "unlimited_spike_ms": said.unlimited_ns / NS_PER_MS,
        "queued_bytes": said.queued_bytes, "queued_packets": said.queued_bytes / said.packet, "lost_of_excess": said.excess_lost,
        "lost_of_arrivals": said.lost, "lost_bytes": said.lost_bytes,
        "drained_after_ms": {f"{load:g}": said.drain_ns(load) / NS_PER_MS for load in LOADS},
    }  # fmt: skip


def _lines(said: Bound) -> Iterator[str]:
    """The answer in words."""
    from tcpscape.stats.estimate import number

    d, peak = said.d_ns / NS_PER_MS, said.spike_ns / NS_PER_MS
    whose = "" if len(said.flows) == 1 else f", the mean of {len(said.flows)} flows by their shares"
    yield f"{units.format_rate(said.before_bps)} to {units.format_rate(said.after_bps)}: r = {number(said.ratio)}; d = {number(d)} ms{whose}"
    if said.max_queue_ns is None or not said.excess_lost:
        rtt = f"; the RTT peaks at {number(d + peak)} ms or more" if len(said.flows) == 1 else ""
        yield f"latency spike: at least {number(peak)} ms of queueing delay, (r − 1)·d{rtt}"
    else:
        yield f"latency spike: {number(peak)} ms, where the queue is full; without its limit at least {number(said.unlimited_ns / NS_PER_MS)} ms"
    yield f"queued at the peak: {_size(said.queued_bytes, said.packet)}"
    yield from _loss(said, d)
    times = ", ".join(f"{number(said.drain_ns(load) / NS_PER_MS)} ms at {load:.0%}" for load in LOADS)
    yield f"drained again, by how much of the new rate the senders then use: {times}; never at 100%"
    yield "holds for a full link, an empty queue at the drop and senders that hit the new rate as soon as they can know it: real ones do worse"


def _loss(said: Bound, d: float) -> Iterator[str]:
    from tcpscape.stats.estimate import number

    if said.max_queue_ns is None:
        yield "lost: nothing, if the queue holds that much"
    elif not said.excess_lost:
        yield f"lost: nothing, the spike stays below {number(said.max_queue_ns / NS_PER_MS)} ms"
    else:
        yield f"lost: {said.excess_lost:.1%} of what would queue, (Q − q)/Q: {_size(said.lost_bytes, said.packet)}"
        when = f"the {number(d)} ms after the drop" if len(said.flows) == 1 else "the round trip of each flow after the drop"
        yield f"      which is {said.lost:.1%} of all that arrives in {when}"


def _size(octets: float, packet: int) -> str:
    """`250 kB (165 packets)`."""
    from tcpscape.stats.estimate import number

    packets = octets / packet
    return f"{number(octets / 1000)} kB ({packets:.0f} packets of {packet} B)"
