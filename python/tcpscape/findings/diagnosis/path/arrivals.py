"""Packets that entered the bottleneck's queue, and the delay that the queue gave each of them.

**Accounting.** What the receiver acknowledged arrived exactly once, except for copies that were not needed. So each acknowledged segment is one
arrival, at the last time it was sent that leaves room for the round trip; copies of segments that were repeated needlessly are further arrivals.
It does not matter which packets were lost, and where: those that a queue or a lossy link dropped never took the bottleneck's time.

**Order.** Jitter before the queue changes the order of packets, at the extreme of all those sent at once. The acknowledgements show the order in
which they arrived; so the k-th packet to arrive takes the k-th time of sending.

**Queue.** A bottleneck that serves `rate` with a burst of `burst` bytes (a token bucket; 0 is a plain link without a serialisation of its own)
lets packet i leave at max(aᵢ, cᵢ − burst / rate), where cᵢ = max(cᵢ₋₁, aᵢ) + sizeᵢ / rate is when a server would finish that starts empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcpscape.findings.diagnosis.path.columns import NEEDLESS, Bools, Floats, Ints, Wire


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Packets that passed the bottleneck, in the order in which the receiver got them."""

    at: Floats
    """Times of sending in their own order, ms: when a packet of that place came to the queue, less the delay before it."""
    sent: Floats
    """When the packet itself was sent."""
    size: Floats
    """Bytes with all headers, as tc counts them."""
    row: Ints
    """Its segment."""
    is_stamped: bool = False
    """Whether times are by the sender's clock."""

    def queue(self, rate: float, burst: float) -> Floats:
        """Time in the queue of a bottleneck of `rate` Mbit/s and `burst` bytes at each place, ms."""
        return waits(self.at, self.size * 8e-3 / rate, burst * 8e-3 / rate)

    def waits(self, rate: float, burst: float) -> Floats:
        """From the sending of each packet to its leaving the queue, less a constant, ms; jitter may have changed its place."""
        return self.queue(rate, burst) + self.at - self.sent

    def places(self, rows: Ints, count: int) -> Ints:
        """The place of each segment's first arrival; −1 none. `count`: of all segments."""
        place = np.full(count, -1)
        place[self.row[::-1]] = np.arange(self.row.size)[::-1]
        return place[rows].astype(np.int64)


def waits(at: Floats, service: Floats, credit: float) -> Floats:
    """Time in a queue of packets that arrive at `at`, take `service` each, with a credit of `credit`; one unit of time for all."""
    done = np.cumsum(service)
    finish = done + np.maximum.accumulate(at - (done - service))
    return np.asarray(np.maximum(finish - credit - at, 0.0))


def before_bottleneck(w: Wire, cover: Ints, least_rtt: float, discarded: Bools) -> Arrivals:
    """The packets that arrived, by the times at which they passed a capture that lies before the bottleneck.

    :param cover: for each segment the ACK that first covers it, in the receiver's order.
    :param least_rtt: ms; a transmission later than 0.8 of it before the acknowledgement was not what it acknowledges.
    :param discarded: lost segments that probably reached the receiver, which refused them.
    """
    at = w.t.copy()
    arrived = (w.seen > 0) | (w.sends == 1)
    row = w.again_row
    needless = w.fate[row] == NEEDLESS
    fits = ~needless & ((w.seen[row] == 0) | (w.again_t <= w.seen[row] - 0.8 * least_rtt))
    np.maximum.at(at, row[fits], w.again_t[fits])
    more = np.flatnonzero(discarded & (w.sends > 1))
    sent = np.concatenate([at[arrived], w.again_t[needless], w.t[more]])
    rows = np.concatenate([np.flatnonzero(arrived), row[needless], more]).astype(np.int64)
    known = int(arrived.sum())
    place = np.empty(rows.size)
    place[:known] = cover[arrived]
    if rows.size > known:  # copies: among those that were sent with them
        by_time = np.argsort(sent[:known], kind="stable")
        beside = np.clip(np.searchsorted(sent[:known][by_time], sent[known:]), 0, known - 1)
        place[known:] = place[:known][by_time][beside]
    order = np.lexsort((rows, place))
    return Arrivals(np.sort(sent), sent[order], w.size[rows[order]], rows[order])


def behind_bottleneck(w: Wire) -> Arrivals:
    """The packets that were seen at a capture behind the bottleneck, by the sender's stamps."""
    order = np.argsort(w.t, kind="stable")
    return Arrivals(np.sort(w.stamp), w.stamp[order], w.size[order], order.astype(np.int64), True)


def exposed(t: Floats, again: Floats, span: float) -> Bools:
    """Whether a retransmission followed within `span` ms."""
    if again.size == 0 or span <= 0:
        return np.zeros(t.size, dtype=bool)
    following = np.searchsorted(again, t, side="right")
    return np.asarray((following < again.size) & (again[np.minimum(following, again.size - 1)] - t < span))
