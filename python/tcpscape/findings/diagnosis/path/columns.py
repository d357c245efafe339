"""A flow's columns as the fit needs them, and the delays of single packets in them.

A :class:`Wire` has one row for each segment of the wire, in the order of the sequence numbers, times in ms. The delays are those behind the capture,
to the receiver and back (:class:`Samples`), and before it, to the sender and back (:class:`Turns`). A sample belongs to the packet that made the
receiver send an acknowledgement, and to that acknowledgement alone. Three things hide it:

- **Reordered ACKs.** An ACK that overtakes another one covers its segments first, so "time when first acknowledged" is the least of several
  delays. Here the ACKs are first put into the receiver's order: by the acknowledgement number and TSval, both of which only grow there.
- **Cumulative ACKs.** An ACK that fills a hole covers segments which arrived long before: its sample is the segment that was missing. Segments
  that arrived out of order are seen in the first SACK block, which holds the segment that triggered the ACK (RFC 2018 §4).
- **Delayed ACKs.** An ACK of two segments in order was triggered by the second; one of a single segment in order may have waited for a timer.

With timestamps (RFC 7323), TSval is the receiver's clock when the ACK was sent, in whole ticks: it splits the round trip into two one-way
delays, each with an unknown constant, and each a tick wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpscape.findings.diagnosis.observed import Columns, ObservedFlow
from tcpscape.stats.estimate import Flags, Floats

Ints = NDArray[np.int64]


MS = 1e6
"""Nanoseconds in a millisecond."""
TICKS = (1e3, 1e4, 1e5, 1e6, 4e6, 1e7, 1e8)
"""Ticks of timestamp clocks in use, ns: 1 µs (Linux 6.7 on), …, 1 ms (Linux), 4 ms and 10 ms."""
ETHERNET = 14
"""Bytes of an Ethernet header, which tc counts."""
RETRANSMISSIONS = (1, 2, 3, 4, 15)
"""Kinds of events that are a further transmission: fast, by timeout, tail probe, needless, in slow start after a timeout."""
LOSS, DISCARDED = 5, 18
"""Kinds of events: a transmission that did not arrive; one that did and that the receiver discarded for its timestamp."""
REORDERED, LOST, NEEDLESS = 1, 2, 3
"""Fates of a segment: seen after a later one; lost and repeated; repeated though it had arrived."""
LEAST_LATE, BY_PATH = 10, 0.1
"""Segments that were seen late and came in order from which on the capture has another order than they passed; of a path, so many more came late."""


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
    cover: Ints
    """The ACK that first covers it, in the receiver's order; their number: none."""
    by_sack: Flags
    """Whether that ACK covers it by a SACK block."""
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
    largest: float
    """Bytes of the largest packet as it was seen: a super-packet is queued, or dropped, as one."""
    discarded: Flags
    """Segments that arrived and that the receiver discarded for their timestamp (RFC 7323 §5.3), before they were sent again."""


def wire_of(flow: ObservedFlow) -> Wire:
    """The flow's segments and acknowledgements."""
    segments, acks = flow.segments, stamped(flow.acks)
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
    again_t, again_row = _retransmissions(flow, seq, length)
    is_part, is_repeated = (count > 1)[index], _within(flow, seq, length, (*RETRANSMISSIONS, LOSS))
    whole = ~is_part | is_repeated
    receiver = order_of_receiver(acks["t"], unwrapped(acks["tsval"]), acks["ack"])
    tsval = unwrapped(acks["tsval"])
    by_time = np.argsort(acks["t"], kind="stable")
    tick = tick_of(acks["t"][by_time], tsval[by_time])
    tsecr = rows["tsecr"] if "tsecr" in rows else np.zeros(count.size, dtype=np.int64)
    none = np.zeros(receiver.size, dtype=np.int64)
    ack_t, ack = acks["t"][receiver] / MS, np.maximum.accumulate(acks["ack"][receiver].astype(np.int64))
    left, right = (acks[name][receiver].astype(np.int64) if name in acks else none for name in ("sack_left", "sack_right"))
    cover, by_sack = first_cover(seq, seq + length, ack, left, right)
    late = is_part & is_repeated  # its row was acknowledged when its first part was
    of_row = rows["fate"][index].astype(np.int64)
    t, fate = in_order_there(rows["t"][index] / MS, np.where(whole, of_row, 0), cover, ack.size)
    is_late = ~whole & (of_row == REORDERED) & (cover > of_later(cover, ack.size))  # of a super-packet the parts that came late
    return Wire(
        t=t,
        seq=seq,
        len=length,
        size=length + header_bytes(flow),
        stamp=_clock(stamps, sender_tick)[index],
        echo=near(tsecr, tsval)[index],
        sends=np.where(whole, rows["sends"][index].astype(np.int64), 1),
        fate=np.where(is_late, REORDERED, fate),
        cover=cover,
        by_sack=by_sack,
        seen=np.where(late, np.append(ack_t, 0.0)[cover], rows["acked"][index] / MS),
        again_t=again_t,
        again_row=again_row,
        ack_t=ack_t,
        ack=ack,
        sack_left=left,
        sack_right=right,
        ack_stamp=_clock(tsval, tick)[receiver],
        ack_tsval=tsval[receiver],
        tick=tick,
        sender_tick=sender_tick,
        largest=float(np.max(rows["len"], initial=0)) + header_bytes(flow),
        discarded=_within(flow, seq, length, (DISCARDED,)),
    )


def of_later(cover: Ints, acks: int) -> Ints:
    """Of each segment, in the order of the sequence, the first ACK that covers any later one."""
    return np.append(np.minimum.accumulate(cover[::-1])[::-1][1:], acks)


def in_order_there(t: Floats, fate: Ints, cover: Ints, acks: int) -> tuple[Floats, Ints]:
    """Times and fates of segments, where the capture has them in another order than they passed: then nearly none came late to their receiver.

    A path that changes an order does not restore it. Where one ACK covers a segment and those seen before it, it does not tell.

    :param cover: of each segment, in the order of the sequence, the first ACK that covers it; `acks`, their number: none.
    """
    late = fate == REORDERED
    if not late.any():
        return t, fate
    later = of_later(cover, acks)
    came_first, came_late = late & (cover < later), late & (cover > later)
    if came_first.sum() < LEAST_LATE or came_late.sum() > BY_PATH * came_first.sum():
        return t, fate
    earliest = np.minimum.accumulate(t[::-1])[::-1]
    moved = late & ~came_late
    return np.where(moved, earliest, t), np.where(moved, 0, fate)


def stamped(acks: Columns) -> Columns:
    """The ACKs of the connection: where it has timestamps, an end ignores what comes without (RFC 7323 §3.2), such as a closed socket's answer."""
    has = acks["tsval"] != 0
    return {name: column[has] for name, column in acks.items()} if has.any() else acks


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


def _within(flow: ObservedFlow, seq: Ints, length: Ints, kinds: tuple[int, ...]) -> Flags:
    """Which segments events of these kinds are of, such as those that were sent again, or lost: of a super-packet not all are."""
    marks = np.zeros(seq.size + 1, dtype=np.int64)
    events = flow.events
    if events and seq.size:
        of = np.isin(events["kind"], kinds)
        first, last = _covered(seq, length, events["seq"][of], events["len"][of])
        np.add.at(marks, first, 1)
        np.add.at(marks, np.maximum(first, last), -1)
    return np.asarray(np.cumsum(marks[:-1]) > 0)


def _retransmissions(flow: ObservedFlow, seq: Ints, length: Ints) -> tuple[Floats, Ints]:
    """Times of further transmissions, and the segments that they carry: of a super-packet that was sent again, each."""
    events = flow.events
    if not events or not seq.size:
        return np.empty(0), np.empty(0, dtype=np.int64)
    again = np.isin(events["kind"], RETRANSMISSIONS)
    first, last = _covered(seq, length, events["seq"][again], events["len"][again])
    first = np.clip(first, 0, seq.size - 1)
    count = np.maximum(1, last - first)
    part = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(events["t"][again] / MS, count), np.repeat(first, count) + part


def _covered(seq: Ints, length: Ints, low: NDArray[np.generic], size: NDArray[np.generic]) -> tuple[Ints, Ints]:
    """The first segment that each range of bytes touches, and the one after the last."""
    low = low.astype(np.int64)
    first = np.searchsorted(seq + length, low, side="right")
    last = np.searchsorted(seq, low + np.maximum(1, size.astype(np.int64)), side="left")
    return first.astype(np.int64), last.astype(np.int64)


DELAYED_ACK = 20.0
"""ms that an ACK of a single segment must be late to have waited for the timer of delayed ACKs, whose least is 40 ms in Linux."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Delays of single packets, a row each, in the order of the sequence numbers; ms."""

    row: Ints
    """The segment."""
    at: Floats
    """When it was seen on its way."""
    rtt: Floats
    """From then to its ACK."""
    forward: Floats
    """One-way delay of the segment plus a constant; NaN without timestamps."""
    reverse: Floats
    """One-way delay of the ACK minus that constant."""
    ack: Ints
    """Its ACK, in the receiver's order."""
    is_plain: Flags
    """Whether the ACK has no SACK block: such an ACK leaves at once, one with a block may wait for up to 1 ms to be compressed (Linux)."""

    def kept(self, keep: Flags) -> Samples:
        """The samples that `keep` marks."""
        return self.taken(np.flatnonzero(keep))

    def taken(self, rows: Ints) -> Samples:
        """These samples, in this order."""
        return Samples(*(getattr(self, name)[rows] for name in self.__slots__))


def first_cover(seq: Ints, end: Ints, ack: Ints, left: Ints, right: Ints) -> tuple[Ints, Flags]:
    """For each segment the ACK that first covers it, in the receiver's order (their number: none), and whether by SACK.

    :param seq: of the segments, in order, as are their ends. :param left: of each ACK's first SACK block, as is the right end; 0 none.
    """
    cumulative = np.searchsorted(ack, end, side="left")
    selective = np.full(seq.size, ack.size)
    blocks = np.flatnonzero(right > left)
    low, high = np.searchsorted(seq, left[blocks]).tolist(), np.searchsorted(seq, right[blocks]).tolist()
    for i in range(blocks.size - 1, -1, -1):
        selective[low[i] : high[i]] = blocks[i]
    return np.minimum(cumulative, selective), selective < cumulative


def sampled(w: Wire) -> Samples:
    """The samples of a flow."""
    place, by_sack = w.cover, w.by_sack
    n = w.ack.size
    known = place < n
    covered = np.bincount(place[known], minlength=n)
    last = np.zeros(n, dtype=np.int64)
    np.maximum.at(last, place[known], np.flatnonzero(known))
    before = np.concatenate([[0], w.ack[:-1]])
    grows = w.ack > before
    sacked = np.concatenate([[0], np.cumsum(by_sack)])
    fills = grows & (sacked[np.searchsorted(w.seq, w.ack)] > sacked[np.searchsorted(w.seq, before)])
    hole = np.clip(np.searchsorted(w.seq, before), 0, w.seq.size - 1)
    fills |= filling(w)
    last[fills] = hole[fills]
    trigger = (covered == 1) | ((covered > 1) & grows)
    trigger[fills & (place[hole] != np.arange(n))] = False
    full = int(np.max(w.len, initial=0))
    is_alone = grows & ~fills & (w.ack - before <= full)
    trigger[trigger] = w.sends[last[trigger]] == 1
    k = np.flatnonzero(trigger)
    k = k[np.argsort(last[k], kind="stable")]
    row = last[k]
    s = Samples(row, w.t[row], w.ack_t[k] - w.t[row], w.ack_stamp[k] - w.t[row], w.ack_t[k] - w.ack_stamp[k], k, w.sack_right[k] == 0)
    return s.kept((s.rtt > 0) & ~waited(s, is_alone[k]))


def filling(w: Wire) -> Flags:
    """Which ACKs fill a hole, of a flow whose ACKs have no block of a SACK: their first segment had been lost, or came late.

    The segments behind such a hole arrived when nothing shows: without SACK, or where the capture cut the blocks off.
    """
    before = np.concatenate([[0], w.ack[:-1]])
    hole = np.clip(np.searchsorted(w.seq, before), 0, w.seq.size - 1)
    is_behind = (w.sends[hole] > 1) | np.isin(w.fate[hole], (LOST, REORDERED))
    return np.asarray(is_behind & (w.ack > before) & (not w.sack_right.any()))


def waited(s: Samples, is_alone: Flags) -> Flags:
    """ACKs of single segments in order that waited for the timer of delayed ACKs: far above those that cannot have waited, near in time.

    Where no others are, the lower quarter of all is what they are compared with.
    """
    delay = s.forward if not np.isnan(s.forward).any() else s.rtt
    sure = np.flatnonzero(~is_alone)
    if not is_alone.any() or delay.size < 8:
        return np.zeros(delay.size, dtype=bool)
    if sure.size < 20:
        low, middle = np.quantile(delay, (0.05, 0.25))
        return np.asarray(is_alone & (delay - middle > max(DELAYED_ACK, 3 * (middle - low))))
    smooth = running_median(delay[sure])
    level = np.interp(np.arange(delay.size), sure, smooth)
    width = 6 * float(np.median(np.abs(delay[sure] - smooth)))
    return np.asarray(is_alone & (delay - level > max(DELAYED_ACK, width)))


def running_median(x: Floats, width: int = 51) -> Floats:
    """Median of each value and its neighbours; beyond an end stands the value there. SciPy's filter costs more to load than all of this."""
    width = min(width, x.size)
    padded = np.pad(x, (width // 2, width - width // 2 - 1), mode="edge")
    return np.partition(np.lib.stride_tricks.sliding_window_view(padded, width), width // 2, axis=1)[:, width // 2]


@dataclass(frozen=True, slots=True)
class Turns:
    """ACKs and the segments that they released; ms."""

    row: Ints
    """The segment."""
    rtt: Floats
    """From the ACK to the segment, both seen here."""
    reverse: Floats
    """One-way delay of the ACK from here to the sender, plus a constant, plus what the sender waited."""


def turns_of(w: Wire) -> Turns:
    """The turns of a flow with timestamps; empty without."""
    if not w.tick or not w.sender_tick or not w.echo.any():
        return Turns(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
    ack_t, row, place = first_echoes(w)
    rtt = w.t[row] - ack_t[place]
    ok = rtt > 0
    row, place, rtt = row[ok], place[ok], rtt[ok]
    order = np.argsort(row, kind="stable")
    return Turns(row[order], rtt[order], (w.stamp[row] - ack_t[place])[order])


def first_echoes(w: Wire) -> tuple[Floats, Ints, Ints]:
    """When the first ACK of each tick of the receiver's clock passed, ms; the segments that are the first to echo one of them, and which."""
    by_time = np.argsort(w.ack_t, kind="stable")
    tsval, first_ack = np.unique(w.ack_tsval[by_time], return_index=True)
    ack_t = w.ack_t[by_time][first_ack]
    plain = np.flatnonzero((w.echo > 0) & (w.sends == 1))
    echo, first = np.unique(w.echo[plain], return_index=True)
    row = plain[first]
    place = np.searchsorted(tsval, echo)
    ok = (place < tsval.size) & (tsval[np.minimum(place, tsval.size - 1)] == echo)
    return ack_t, row[ok], place[ok]
