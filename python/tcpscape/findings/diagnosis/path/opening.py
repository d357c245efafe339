"""Turns at the sender that need no timestamps: the handshake's, those of flights in slow start, and repairs that a receiver's capture shows.

The first flights of a connection are as large as the initial window (RFC 6928) and then twice as large each time, with pauses between, until the path
is full: the first segment of a flight leaves as the first ACK of the one before it comes. Such a turn can be longer than the path, by a queue or a
delayed ACK; shorter than the handshake's it is by a jitter alone. What a receiver gets again was sent when an ACK said that it was missing, at the
earliest the first after it; where nothing else is repaired meanwhile, no other ACK can have said so.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tcpscape.findings.diagnosis.path.columns import LOST
from tcpscape.findings.diagnosis.path.jitter import reach, student
from tcpscape.findings.diagnosis.path.state import REACH, SHARP, Fit, is_reordered
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Flags, Floats

PAUSE = 0.25
"""Share of the handshake's turn by which flights are apart."""
FIRST = 4
"""Segments that a first flight has at least: those of RFC 3390; of fewer a program's writes may double by chance."""
GROWS = 1.5
"""Times as many segments as the flight before it a flight in slow start has at least; at the most twice as many (RFC 5681 §3.1)."""
EARLIEST = 1.5
"""Deviations by which the first of a flight's ACKs comes earlier than most, whose number is not known: of ten normal delays in the mean."""
UNSEEN = 0.15
"""A jitter, as a share of the round trip, up to which any is as likely where a single turn is all that shows: beyond it most paths collapse."""
EVEN, MOSTLY = 0.05, 0.8
"""Distances within this share of the usual one are a bottleneck's, where so many are."""


def opened(f: Fit, opening: Estimate) -> Estimate | None:
    """The part before the capture by the handshake's turn, :func:`handshake <tcpscape.findings.diagnosis.path.before.handshake>`, and these."""
    turns, is_doubled = flights(f, opening.value)
    repaired, exact = repairs(f), SHARP + 0.0002 * opening.value
    least = min(float(turns.min(initial=math.inf)), float(repaired.min(initial=math.inf)))
    if abs(least - opening.value) <= exact and not is_reordered(f):
        value = min(least, opening.value)
        return Estimate(value, 0.998 * value - 0.02, 1.002 * value + 0.02, 1 + int(turns.size + repaired.size), "ms")
    turns = turns[is_doubled]
    if is_reordered(f) and f.is_receiver and not turns.size:
        f.reasons["rtt_ms"] = Reason("handshake alone")
        return None
    if turns.size and not is_reordered(f):  # where packets change places, the first of a flight is an early one
        known = np.append(turns, opening.value)
        value, half, spread = float(np.median(known)), opening.high - opening.value, lower_deviation(known)
        half = max(half, student(known.size) * spread / math.sqrt(known.size))
        return Estimate(value, max(0.0, min(value - half, least)), value + half + EARLIEST * spread, int(known.size), "ms")
    # A turn that took less shows a jitter, and may have waited itself: the middle may lie as far below it.
    least = min(float(turns.min(initial=math.inf)), float(repaired.min(initial=math.inf)))
    below, half = max(0.0, opening.value - least), max(hidden(f, least - opening.value), reach(UNSEEN * opening.value))
    low, high = opening.value - max(half, 2 * below), opening.value + max(half, below)
    return replace(opening, low=max(0.0, min(opening.low, low)), high=max(opening.high, high))


def lower_deviation(known: Floats) -> float:
    """Standard deviation by what lies below the median: what lies above may have waited."""
    below = np.median(known) - known[known < np.median(known)]
    return math.sqrt(float(np.sum(below**2)) / max(1.0, (known.size - 1) / 2))


def flights(f: Fit, turn: float) -> tuple[Floats, Flags]:
    """The turns of flights in slow start, ms, one each, and of which the second flight has at most twice as many segments and a pause behind it.

    :param turn: the handshake's, ms.
    """
    w = f.wire
    if f.flow.facts.get("begins_in_mid_connection") or not w.ack_t.size:
        return np.empty(0), np.empty(0, bool)
    order = np.argsort(w.t, kind="stable")
    t, seq = w.t[order], w.seq[order]
    is_lost = w.fate[order] == LOST
    t = t[: int(np.argmax(is_lost))] if is_lost.any() else t
    begins = np.flatnonzero(np.diff(t, prepend=-math.inf) > PAUSE * turn)
    sizes = np.diff(begins, append=t.size)
    found: list[tuple[float, bool]] = []
    for k in range(sizes.size - 1):
        if sizes[k] < FIRST or sizes[k + 1] < GROWS * sizes[k]:
            break
        ack = int(np.searchsorted(w.ack, seq[begins[k] : begins[k + 1]].min(), "right"))
        if ack < w.ack_t.size and w.ack_t[ack] < t[begins[k + 1]]:
            found.append((float(t[begins[k + 1]] - w.ack_t[ack]), bool(k + 2 < sizes.size and sizes[k + 1] <= 2 * sizes[k])))
        if sizes[k + 1] > 2 * sizes[k]:
            break
    return np.array([turn for turn, _ in found]), np.array([is_doubled for _, is_doubled in found], bool)


def repairs(f: Fit) -> Floats:
    """At a receiver: the times, ms, from the first segment that came after a missing one to its repetition, where nothing else was repaired."""
    if not f.is_receiver:
        return np.empty(0)
    w = f.wire
    order = np.argsort(w.t, kind="stable")
    t, seq, lost = w.t[order], w.seq[order], np.flatnonzero(w.fate[order] == LOST)
    shown = t[np.searchsorted(np.maximum.accumulate(seq), seq[lost], "right").clip(max=t.size - 1)]
    others = np.searchsorted(t[lost], t[lost], "left") - np.searchsorted(t[lost], 2 * shown - t[lost], "right")
    return np.asarray((t[lost] - shown)[(shown < t[lost]) & (others <= 0)])


def hidden(f: Fit, queue: float) -> float:
    """Half of the interval of a single turn that a jitter before a busy queue leaves, ms, if the queue was never longer than `queue`; else 0.

    Packets leave it evenly whenever they came. One that came later than the queue took to drain would have made a gap.
    """
    gaps = np.diff(np.sort(f.wire.t))
    usual = float(np.median(gaps)) if gaps.size else 0.0
    is_busy = usual > 0 and float(np.mean(np.abs(gaps - usual) <= EVEN * usual)) >= MOSTLY
    return 1.96 * math.sqrt(2) * queue / REACH if is_busy and 0 < queue < math.inf else 0.0
