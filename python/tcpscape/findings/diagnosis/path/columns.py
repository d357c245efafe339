"""A flow's columns as the fit needs them: one row for each segment of the wire, in the order of the sequence numbers, times in ms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpscape.findings.diagnosis.observed import ObservedFlow

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MS = 1e6
"""Nanoseconds in a millisecond."""
TICKS = (1e3, 1e4, 1e5, 1e6, 4e6, 1e7, 1e8)
"""Ticks of timestamp clocks in use, ns: 1 µs (Linux 6.7 on), …, 1 ms (Linux), 4 ms and 10 ms."""
ETHERNET = 14
"""Bytes of an Ethernet header, which tc counts."""
RETRANSMISSIONS = (1, 2, 3, 4, 15)
"""Kinds of events that are a further transmission: fast, by timeout, tail probe, needless, in slow start after a timeout."""
LOSS = 5
"""Kind of events: a transmission that did not arrive."""
LOST, NEEDLESS = 2, 3
"""Fates of a segment: lost and repeated; repeated though it had arrived."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Segments, retransmissions and acknowledgements of a flow."""

    t: Floats
    """When each segment was first seen."""
    seq: Ints
    len: Ints
    size: Floats
    """Bytes with all headers, as tc counts them."""
    stamp: Floats
    """When it was sent, by the sender's clock (the middle of the tick); NaN without timestamps."""
    echo: Ints
    """TSecr, not wrapped; 0 none."""
    sends: Ints
    fate: Ints
    seen: Floats
    """When it was first acknowledged; 0 never."""
    again_t: Floats
    """When a retransmission was seen."""
    again_row: Ints
    """The segment that it repeats."""
    ack_t: Floats
    """When each ACK was seen, in the receiver's order, as are the following."""
    ack: Ints
    sack_left: Ints
    sack_right: Ints
    ack_stamp: Floats
    """When it was sent, by the receiver's clock (the middle of the tick); NaN without."""
    ack_tsval: Ints
    """TSval, not wrapped."""
    tick: float
    """Tick of the receiver's clock, ms; 0 without timestamps."""
    sender_tick: float
    """Tick of the sender's clock, ms."""


def wire_of(flow: ObservedFlow) -> Wire:
    """The flow's segments and acknowledgements."""
    segments, acks = flow.segments, flow.acks
    order = np.argsort(segments["seq"], kind="stable")
    rows = {name: np.asarray(segments[name])[order] for name in segments}
    stamps = unwrapped(rows["tsval"])
    by_time = np.argsort(rows["t"], kind="stable")
    sender_tick = tick_of(rows["t"][by_time], stamps[by_time])
    count, each = _split(rows)
    index = np.repeat(np.arange(count.size), count)
    part = np.arange(index.size) - np.repeat(np.cumsum(count) - count, count)
    length = np.minimum(each[index], rows["len"][index].astype(np.int64) - part * each[index])
    seq = rows["seq"][index].astype(np.int64) + part * each[index]
    again_t, again_row = _retransmissions(flow, seq)
    whole = ~((count > 1)[index] & ~_repeated(flow, seq, length))
    receiver = order_of_receiver(acks["t"], unwrapped(acks["tsval"]), acks["ack"])
    tsval = unwrapped(acks["tsval"])
    by_time = np.argsort(acks["t"], kind="stable")
    tick = tick_of(acks["t"][by_time], tsval[by_time])
    tsecr = rows["tsecr"] if "tsecr" in rows else np.zeros(count.size, dtype=np.int64)
    none = np.zeros(receiver.size, dtype=np.int64)
    return Wire(
        t=rows["t"][index] / MS, seq=seq, len=length, size=length + header_bytes(flow), stamp=_clock(stamps, sender_tick)[index],
        echo=near(tsecr, tsval)[index], sends=np.where(whole, rows["sends"][index].astype(np.int64), 1),
        fate=np.where(whole, rows["fate"][index].astype(np.int64), 0),
        seen=rows["acked"][index] / MS, again_t=again_t, again_row=again_row, ack_t=acks["t"][receiver] / MS,
        ack=np.maximum.accumulate(acks["ack"][receiver].astype(np.int64)),
        sack_left=acks["sack_left"][receiver].astype(np.int64) if "sack_left" in acks else none,
        sack_right=acks["sack_right"][receiver].astype(np.int64) if "sack_right" in acks else none,
        ack_stamp=_clock(tsval, tick)[receiver], ack_tsval=tsval[receiver], tick=tick, sender_tick=sender_tick,
    )  # fmt: skip


def header_bytes(flow: ObservedFlow) -> float:
    """Bytes of a data packet's headers as tc counts them, Ethernet's included."""
    ip = 40 if ":" in flow.source.address else 20
    return float(ETHERNET + ip + 20 + (12 if flow.segments["tsval"].any() else 0))


def order_of_receiver(t: NDArray[np.generic], tsval: Ints, ack: NDArray[np.generic]) -> Ints:
    """Places of ACKs in the order in which the receiver sent them, as far as they tell: both numbers only grow there."""
    return np.lexsort((t, tsval, ack)).astype(np.int64)


def unwrapped(stamps: NDArray[np.generic]) -> Ints:
    """32-bit stamps as numbers that do not wrap, from the first one's on."""
    x = stamps.astype(np.int64)
    return x if x.size == 0 else x[0] + ((x - x[0] + 2**31) % 2**32 - 2**31)


def near(echo: NDArray[np.generic], stamps: Ints) -> Ints:
    """Echoes of stamps, as numbers that do not wrap, like these."""
    x = echo.astype(np.int64)
    if stamps.size == 0 or not x.any():
        return np.zeros(x.size, dtype=np.int64)
    return np.where(x == 0, 0, stamps[0] + ((x - stamps[0] + 2**31) % 2**32 - 2**31))


def tick_of(t: NDArray[np.generic], stamps: Ints) -> float:
    """ms of a tick of a timestamp clock; 0 where the stamps do not tell it (none, or all of a short time)."""
    if t.size < 2 or not stamps.any():
        return 0.0
    ticks, ns = int(stamps[-1] - stamps[0]), float(t[-1]) - float(t[0])
    if ticks < 20 or ns <= 0:
        return 0.0
    tick = ns / ticks
    nearest = min(TICKS, key=lambda x: abs(np.log(x / tick)))
    return float(nearest if abs(np.log(nearest / tick)) < 0.05 else tick) / MS


def _clock(stamps: Ints, tick: float) -> Floats:
    """The middles of the ticks, ms since the first stamp."""
    return np.asarray((stamps - stamps[:1] + 0.5) * tick if tick else np.full(stamps.size, np.nan), dtype=np.float64)


def _split(rows: dict[str, NDArray[np.generic]]) -> tuple[Ints, Ints]:
    """Into how many segments each row is cut, and the payload of each but the last."""
    length = rows["len"].astype(np.int64)
    segs = np.maximum(1, rows["segs"].astype(np.int64)) if "segs" in rows else np.ones(length.size, dtype=np.int64)
    each = np.maximum(1, -(-length // segs))
    full = length[segs == 1].max(initial=0)
    if full:
        each = np.where((segs > 1) & (-(-length // full) == segs), full, each)
    return segs, each


def _repeated(flow: ObservedFlow, seq: Ints, length: Ints) -> Bools:
    """Which segments were sent again, or lost: of a super-packet not all are."""
    marks = np.zeros(seq.size + 1, dtype=np.int64)
    events = flow.events
    if events and seq.size:
        of = np.isin(events["kind"], (*RETRANSMISSIONS, LOSS))
        low = events["seq"][of].astype(np.int64)
        first = np.searchsorted(seq + length, low, side="right")
        last = np.searchsorted(seq, low + np.maximum(1, events["len"][of].astype(np.int64)), side="left")
        np.add.at(marks, first, 1)
        np.add.at(marks, np.maximum(first, last), -1)
    return np.asarray(np.cumsum(marks[:-1]) > 0)


def _retransmissions(flow: ObservedFlow, seq: Ints) -> tuple[Floats, Ints]:
    """Times of further transmissions, and the segments that they begin with."""
    events = flow.events
    if not events or not seq.size:
        return np.empty(0), np.empty(0, dtype=np.int64)
    again = np.isin(events["kind"], RETRANSMISSIONS)
    row = np.searchsorted(seq, events["seq"][again].astype(np.int64), side="right") - 1
    return events["t"][again] / MS, np.clip(row, 0, None).astype(np.int64)
