"""Delays of single packets behind the capture, to the receiver and back, and before it, to the sender and back.

A sample belongs to the packet that made the receiver send an acknowledgement, and to that acknowledgement alone. Three things hide it:

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
from scipy.ndimage import median_filter

from tcpscape.findings.diagnosis.path.columns import Bools, Floats, Ints, Wire

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
    is_plain: Bools
    """Whether the ACK has no SACK block: such an ACK leaves at once, one with a block may wait for up to 1 ms to be compressed (Linux)."""

    def kept(self, keep: Bools) -> Samples:
        """The samples that `keep` marks."""
        return self.taken(np.flatnonzero(keep))

    def taken(self, rows: Ints) -> Samples:
        """These samples, in this order."""
        return Samples(*(getattr(self, name)[rows] for name in self.__slots__))


def first_cover(w: Wire) -> tuple[Ints, Bools]:
    """For each segment the ACK that first covers it, in the receiver's order (their number: none), and whether by SACK."""
    n = w.ack.size
    cumulative = np.searchsorted(w.ack, w.seq + w.len, side="left")
    selective = np.full(w.seq.size, n)
    blocks = np.flatnonzero(w.sack_right > w.sack_left)
    low, high = np.searchsorted(w.seq, w.sack_left[blocks]), np.searchsorted(w.seq, w.sack_right[blocks])
    for i in range(blocks.size - 1, -1, -1):
        selective[low[i] : high[i]] = blocks[i]
    return np.minimum(cumulative, selective), selective < cumulative


def sampled(w: Wire) -> Samples:
    """The samples of a flow."""
    place, by_sack = first_cover(w)
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


def waited(s: Samples, is_alone: Bools) -> Bools:
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
    """Median of each value and its neighbours."""
    return np.asarray(median_filter(x, size=min(width, x.size), mode="nearest"))


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
    none = Turns(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
    if not w.tick or not w.sender_tick or not w.echo.any():
        return none
    by_time = np.argsort(w.ack_t, kind="stable")
    tsval, first_ack = np.unique(w.ack_tsval[by_time], return_index=True)
    ack_t = w.ack_t[by_time][first_ack]
    plain = np.flatnonzero((w.echo > 0) & (w.sends == 1))
    echo, first = np.unique(w.echo[plain], return_index=True)
    row = plain[first]
    place = np.searchsorted(tsval, echo)
    ok = (place < tsval.size) & (tsval[np.minimum(place, tsval.size - 1)] == echo)
    row, place = row[ok], place[ok]
    rtt = w.t[row] - ack_t[place]
    ok = rtt > 0
    row, place, rtt = row[ok], place[ok], rtt[ok]
    order = np.argsort(row, kind="stable")
    return Turns(row[order], rtt[order], (w.stamp[row] - ack_t[place])[order])
