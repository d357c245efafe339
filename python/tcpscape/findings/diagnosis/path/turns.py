"""Delays of single packets before the capture: from there to the sender and back.

A data segment echoes in TSecr the TSval of the ACK that the sender had last received. The first segment to echo a TSval left when the first ACK
that carries it arrived, if the flow was clocked by its ACKs: the time between both, seen here, is the other half of the round trip. A sender
that waits (for its pacing, its application or its window) makes single ones of them longer, never shorter. The first is the first by its sequence
number: the first that arrives here would be the earliest of several.

An ACK that is overtaken is never echoed (its TSval is older than the one that the sender has), so of ACKs that jitter reorders the early ones count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcpscape.findings.diagnosis.path.columns import Floats, Ints, Wire


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
