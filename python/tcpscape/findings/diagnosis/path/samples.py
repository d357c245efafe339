"""Delay samples of single packets, from the columns of a flow.

A sample belongs to the packet that made the receiver send an acknowledgement, and to that acknowledgement alone. Three things hide it:

- **Reordered ACKs.** An ACK that overtakes another one covers its segments first, so "time when first acknowledged" is the least of several delays.
  Here the ACKs are first put into the receiver's order: by the acknowledgement number and TSval, both of which only grow there.
- **Cumulative ACKs.** An ACK that fills a hole covers segments which arrived long before. Of such an ACK only the segment that was missing is a
  sample. Segments that arrived out of order are seen in the first SACK block, which holds the segment that triggered the ACK (RFC 2018 §4).
- **Delayed ACKs.** An ACK of two segments in order was triggered by the second; one of a single segment in order may have waited for a timer.

With timestamps (RFC 7323), TSval is the receiver's clock when the ACK was sent, in whole ticks: it splits the round trip into two one-way delays,
each with an unknown constant, and each a tick wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpscape.findings.diagnosis.observed import Columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MS = 1e6
"""Nanoseconds in a millisecond."""
TICKS = (1e3, 1e4, 1e5, 1e6, 4e6, 1e7, 1e8)
"""Ticks of timestamp clocks in use, ns: 1 µs (Linux 6.7 on), …, 1 ms (Linux), 4 ms and 10 ms."""
DELAYED_ACK = 25.0
"""ms that an ACK of a single segment must be late to have waited for the timer of delayed ACKs, whose least is 40 ms in Linux."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Delays of single packets, a row each, in the order of sending; ms."""

    row: Ints
    """Row of the segment in `segments`."""
    at: Floats
    """When the segment was sent, ms since the capture's first packet."""
    back: Floats
    """When its ACK was seen."""
    rtt: Floats
    """From the one to the other."""
    forward: Floats | None
    """One-way delay of the segment plus a constant; None without timestamps."""
    reverse: Floats | None
    """One-way delay of the ACK minus that constant."""
    tick: float
    """Width of the timestamps' ticks, ms; 0 without."""
    ack: Ints
    """Place of the ACK in the receiver's order."""


def order_of_receiver(acks: Columns) -> Ints:
    """Rows of `acks` in the order in which the receiver sent them, as far as the ACKs tell it."""
    return np.lexsort((acks["t"], unwrapped(acks["tsval"]), acks["ack"])).astype(np.int64)


def unwrapped(stamps: NDArray[np.generic]) -> Ints:
    """32-bit stamps as numbers that do not wrap, from the first one's on."""
    x = stamps.astype(np.int64)
    return x if x.size == 0 else x[0] + ((x - x[0] + 2**31) % 2**32 - 2**31)


def tick_of(t: NDArray[np.generic], stamps: Ints) -> float:
    """ns of a tick of a timestamp clock; 0 where the stamps do not tell it (none, or all of a short time)."""
    if t.size < 2 or not stamps.any():
        return 0.0
    ticks, ns = int(stamps[-1] - stamps[0]), float(t[-1] - t[0])
    if ticks < 20 or ns <= 0:
        return 0.0
    tick = ns / ticks
    nearest = min(TICKS, key=lambda x: abs(np.log(x / tick)))
    return nearest if abs(np.log(nearest / tick)) < 0.02 else tick


def first_cover(segments: Columns, acks: Columns, order: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """For each segment the place of the ACK that first covers it, in the receiver's order (their number: none), and whether by SACK."""
    ack, n = acks["ack"][order].astype(np.int64), order.size
    seq = segments["seq"].astype(np.int64)
    cumulative = np.searchsorted(np.maximum.accumulate(ack), seq + segments["len"].astype(np.int64), side="left")
    selective = np.full(seq.size, n)
    if "sack_left" in acks:
        left, right = (acks[name][order].astype(np.int64) for name in ("sack_left", "sack_right"))
        with_block = np.flatnonzero(right > left)
        low, high = np.searchsorted(seq, left[with_block], side="left"), np.searchsorted(seq, right[with_block], side="left")
        for i in range(with_block.size - 1, -1, -1):
            selective[low[i] : high[i]] = with_block[i]
    return np.minimum(cumulative, selective), selective < cumulative


def sampled(segments: Columns, acks: Columns) -> Samples:
    """The samples of a flow seen at its sender, or anywhere before its bottleneck."""
    order = order_of_receiver(acks)
    place, by_sack = first_cover(segments, acks, order)
    n = order.size
    seq, known = segments["seq"].astype(np.int64), place < n
    covered = np.bincount(place[known], minlength=n)
    last = np.zeros(n, dtype=np.int64)
    np.maximum.at(last, place[known], np.flatnonzero(known))
    ack = np.maximum.accumulate(acks["ack"][order].astype(np.int64))
    before = np.concatenate([[0], ack[:-1]])
    filled = (ack > before) & _holds(place, by_sack, seq, before, ack)
    hole = np.clip(np.searchsorted(seq, before), 0, seq.size - 1)
    last[filled] = hole[filled]
    trigger = (covered == 1) | ((covered > 1) & (ack > before))
    trigger[filled & (place[hole] != np.arange(n))] = False
    row = last[trigger]
    is_single = (covered == 1) & (ack > before) & ~filled
    once = segments["sends"][row] == 1
    if "segs" in segments:
        once &= segments["segs"][row] <= 1
    k = np.flatnonzero(trigger)[once]
    row = row[once]
    by_row = np.argsort(row, kind="stable")
    k, row = k[by_row], row[by_row]
    at = segments["t"][row].astype(float) / MS
    back = acks["t"][order][k].astype(float) / MS
    stamps = unwrapped(acks["tsval"])
    tick = tick_of(acks["t"], stamps) / MS
    forward = reverse = None
    if tick:
        middle = (stamps[order][k] - stamps[0] + 0.5) * tick
        forward, reverse = middle - at, back - middle
    s = Samples(row, at, back, back - at, forward, reverse, tick, k)
    return _without_timers(s, is_single[k])


def _holds(place: Ints, by_sack: NDArray[np.bool_], seq: Ints, before: Ints, ack: Ints) -> NDArray[np.bool_]:
    """Whether a range that an ACK newly covers has segments which SACK covered earlier."""
    sacked = np.concatenate([[0], np.cumsum(by_sack)])
    return np.asarray(sacked[np.searchsorted(seq, ack)] > sacked[np.searchsorted(seq, before)])


def _without_timers(s: Samples, is_single: NDArray[np.bool_]) -> Samples:
    """Without the ACKs of single segments that waited for the timer of delayed ACKs."""
    delay = s.forward if s.forward is not None else s.rtt
    if is_single.sum() in (0, is_single.size) or is_single.size < 20:
        return s
    local = delay - running_median(delay)
    width = 6 * np.median(np.abs(local[~is_single] - np.median(local[~is_single])))
    return kept(s, ~(is_single & (local > max(DELAYED_ACK, float(width)))))


def kept(s: Samples, keep: NDArray[np.bool_]) -> Samples:
    """The samples that `keep` marks."""
    forward, reverse = (None if x is None else x[keep] for x in (s.forward, s.reverse))
    return Samples(s.row[keep], s.at[keep], s.back[keep], s.rtt[keep], forward, reverse, s.tick, s.ack[keep])


def running_median(x: Floats, width: int = 51) -> Floats:
    """Median of each value and its neighbours."""
    from scipy.ndimage import median_filter

    return np.asarray(median_filter(x, size=min(width, x.size), mode="nearest"))
