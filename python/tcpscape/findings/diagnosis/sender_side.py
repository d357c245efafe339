"""What the sender of a flow saw: at its own capture the packets as they are, elsewhere by the timestamps of both ends.

A segment echoes the timestamp of the newest acknowledgement that its sender had (RFC 7323 §4.3), so a capture shows at any place which one released
it. The clock is that of the acknowledgements as they pass the capture: where their way from there to the sender has no jitter, each takes the same
time, so that all times of the sender are too early by one constant, and round trips, flights and windows are the sender's own.

Acknowledgements of one tick of the receiver's clock have one timestamp; the segments that echo it are spread over them in order. A segment of which
only a repetition was seen left between its neighbours. For how long a sender kept a segment back after the acknowledgement (by a pace, or because its
application had nothing to send) is not read here: what left behind a pause that an end made has no round trip of the path. An acknowledgement that
was lost behind the capture counts as one that its sender had.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.findings.diagnosis.observed import Columns, ObservedFlow, edges
from tcpscape.findings.diagnosis.path.columns import LOST, MS, Ints, near, stamped, tick_of, unwrapped
from tcpscape.stats.estimate import Flags
from tcpscape.units import NS_PER_S

GAIN = 1 / 8
"""Weight of a new round trip in the smoothed RTT (RFC 6298)."""
GRID_S = 0.1
"""Interval at which the smoothed RTT is taken, s."""
LEAST_ROWS = 8
"""Fewest round trips from which a smoothed RTT is taken."""
MOST_KEPT = 0.3
"""Share of the segments that an end may keep back: of more, others that it kept back a little are not told from them."""
KEEP_BACK = ("application", "send_buffer", "timeout", "unknown")
"""Causes of a pause behind which a segment leaves later than with the acknowledgement that it echoes."""
Rows = dict[str, NDArray[Any]]


def plain(columns: Columns) -> Rows:
    """As signed numbers, so that differences have a sign."""
    return {name: np.asarray(values).astype(np.int64) for name, values in columns.items()}


def held_by_sack(newly: Ints, sacked: Ints) -> tuple[Ints, Ints]:
    """Of the bytes newly acknowledged, those that had been SACKed (what was SACKed first goes first), and what is SACKed after each ACK."""
    waiting = np.cumsum(np.append(0, sacked[:-1]) - newly)  # as in a queue: SACKed bytes come, acknowledged ones go, and it is never less than empty
    left = waiting - np.minimum(np.minimum.accumulate(waiting), 0)
    after = left + sacked
    return np.append(0, after[:-1]) - left, after


def as_sender(flow: ObservedFlow) -> ObservedFlow | None:
    """The flow as its sender saw it, with `vantage` "sender".

    Where it was seen at its sender, the flow itself. Elsewhere it has the times, round trips and flights that its sender had, all times too early by
    one constant, and a column `kept` of the segments whose round trip has a pause in it that an end made. None where its packets have no timestamps,
    or where the receiver's clock of timestamps stands still or is coarser than the round trip.
    """
    if flow.vantage == "sender":
        return flow
    segments, acks, events = plain(flow.segments), plain(flow.acks), plain(flow.events)
    if not all(len(rows.get("t", ())) and np.any(rows.get("tsval", 0)) for rows in (segments, acks)):
        return None
    segments, acks = _ordered(segments, "seq"), plain(stamped(acks))
    stamps = _growing(unwrapped(acks["tsval"]))
    seen = segments["t"]
    if not 0 < tick_of(acks["t"], stamps) * MS < _least_round_trip(segments, acks["t"], stamps):
        return None
    released = _released(segments, stamps)
    is_hidden = (segments["fate"] == LOST) & (segments["sends"] == 1)
    segments["t"] = _departures(released, is_hidden, acks["t"], int(seen.min()))
    segments["sends"] = np.where(is_hidden, 2, segments["sends"])  # the first time came before the capture: this one is none that was late
    is_sample = (segments["acked"] > 0) & ~is_hidden & (released >= 0) & ~_filled_a_hole(segments)
    segments["rtt"] = np.where(is_sample, np.maximum(segments["acked"] - segments["t"], 0), 0)
    segments["kept"] = _kept_back(flow, seen, released)
    if len(events.get("t", ())):
        again = np.where(released >= 0, acks["t"][released] + 1, segments["t"])
        events["t"] = _moved(events["t"], seen, np.where(is_hidden, again, segments["t"]))
        events = _ordered(events, "t")
    segments = _ordered(segments, "t")
    return replace(flow, segments=segments | _outstanding(segments, acks), acks=acks, events=events, vantage="sender")


def _ordered(rows: Rows, by: str) -> Rows:
    order = np.argsort(rows[by], kind="stable")
    return {name: values[order] for name, values in rows.items()}


def _growing(stamps: Ints) -> Ints:
    """Stamps that only grow, without single ones that are wrong: each is the median of five, which changes nothing where they grow."""
    five = np.lib.stride_tricks.sliding_window_view(np.pad(stamps, 2, mode="edge"), 5)
    return np.maximum.accumulate(np.sort(five, axis=1)[:, 2])


def _least_round_trip(segments: Rows, ack_t: Ints, stamps: Ints) -> int:
    """The least time, ns, from a new stamp to the first segment that echoes it, and from a segment to its ACK; 0 without one of them."""
    values, first = np.unique(stamps, return_index=True)
    by_time = np.argsort(segments["t"], kind="stable")
    echoes, answer = np.unique(near(segments["tsecr"], stamps)[by_time], return_index=True)
    _, ours, theirs = np.intersect1d(values, echoes, assume_unique=True, return_indices=True)
    back = segments["t"][by_time][answer[theirs]] - ack_t[first[ours]]
    there = (segments["acked"] - segments["t"])[segments["acked"] > 0]
    back, there = back[back > 0], there[there >= 0]
    return int(back.min() + there.min()) if back.size and there.size else 0


def _released(segments: Rows, stamps: Ints) -> Ints:
    """For each segment the place of the acknowledgement that it echoes; −1 where that came before the first that has a row, as in a handshake."""
    echo = near(segments["tsecr"], stamps)
    last = np.searchsorted(stamps, echo, side="right") - 1
    first = np.minimum(np.searchsorted(stamps, echo, side="left"), last)
    _, place, count = np.unique(last, return_inverse=True, return_counts=True)
    order = np.argsort(place, kind="stable")
    rank = np.empty(len(last), np.int64)
    rank[order] = np.arange(len(last)) - np.repeat(np.cumsum(count) - count, count)
    width = last - first + 1
    released: Ints = first + np.minimum(-(-(rank + 1) * width // count[place]) - 1, width - 1)
    return np.where((last >= 0) & (segments["tsecr"] > 0), released, -1)


def _departures(released: Ints, is_hidden: Flags, ack_t: Ints, begin: int) -> Ints:
    """When each segment left first, by the time of the acknowledgement that released it: just after that."""
    t = np.where(released >= 0, ack_t[released] + 1, min(begin, int(ack_t[0]) - 1))
    shown = np.flatnonzero(~is_hidden)
    if not shown.size:
        return t
    between = np.interp(np.arange(len(t)), shown, np.maximum.accumulate(t[shown]))
    return np.asarray(np.floor(between), np.int64)


def _kept_back(flow: ObservedFlow, seen: Ints, released: Ints) -> Flags:
    """The segments that an end kept back after their ACK had come, or may have: behind a pause, and what echoes the same ACK as those."""
    paused = np.zeros(len(seen), bool)
    for interval in flow.limits:
        if interval.cause in KEEP_BACK:
            paused |= (seen > interval.start_s * NS_PER_S) & (seen <= interval.end_s * NS_PER_S)
    return np.isin(released, released[paused])


def _filled_a_hole(segments: Rows) -> Flags:
    """The segments that arrived before a lower one which was sent again, and have its ACK; rows are in the order of the sequence numbers."""
    again = np.where(segments["sends"] > 1, np.arange(len(segments["seq"])), np.iinfo(np.int64).max)
    _, place = np.unique(segments["acked"], return_inverse=True)
    lowest = np.full(place.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(lowest, place, again)
    return np.asarray(np.arange(len(again)) > lowest[place])


def _moved(t: Ints, seen: Ints, left: Ints) -> Ints:
    """Times of the capture as times of the sender: of a segment's own packet its departure, otherwise that of the newest before it."""
    order = np.argsort(seen, kind="stable")
    newest = np.clip(np.searchsorted(seen[order], t, side="right") - 1, 0, None)
    own = seen[order][newest] == t
    return np.minimum(t, np.where(own, left[order][newest], np.maximum.accumulate(left[order])[newest]))


def _outstanding(segments: Rows, acks: Rows) -> Rows:
    """Of each segment the bytes in flight after it and those delivered before it, by the acknowledgements that its sender had."""
    una = np.maximum.accumulate(acks["ack"])
    newly = np.diff(una, prepend=una[:1])
    before, held = held_by_sack(newly, acks["sacked"])
    delivered = np.cumsum(np.maximum(newly - before, 0) + acks["sacked"])
    had = np.searchsorted(acks["t"], segments["t"], side="right") - 1
    newest = np.maximum(had, 0)
    end = np.maximum.accumulate(segments["seq"] + segments["len"])
    return {"flight": np.maximum(end - una[newest] - held[newest], 0), "delivered": np.where(had >= 0, delivered[newest], 0)}


def observed_rtt(flow: ObservedFlow, after_s: float = 0.0) -> float | None:
    """The median over time of the smoothed RTT after the first `after_s`, ms; None where the source does not show it."""
    t, srtt = smoothed_rtt(flow)
    keep = t >= (t[0] if len(t) else 0.0) + after_s
    return float(np.median(srtt[keep])) if keep.any() else None


def smoothed_rtt(flow: ObservedFlow) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times, s, at :data:`GRID_S`, and the smoothed RTT then, ms; empty where the source does not show the sender's round trips."""
    nothing = np.array([]), np.array([])
    for name, scale in (("rtt", 1e-3), ("tcpi_rtt", 1e-3), ("srtt_us", 1e-3)):
        if len(flow.samples.get(name, ())) and "t_s" in flow.samples:
            values = np.asarray(flow.samples[name]).astype(float) * scale
            return np.asarray(flow.samples["t_s"], dtype=float)[values > 0], values[values > 0]
    seen = as_sender(flow)
    if seen is None or not len(seen.segments.get("rtt", ())) or (seen is not flow and _hides_round_trips(seen)):
        return nothing
    when, rtt = (np.asarray(seen.segments[name]).astype(float) for name in ("acked", "rtt"))
    known = (rtt > 0) & (when > 0) & ~np.asarray(seen.segments.get("kept", False))
    if known.sum() < LEAST_ROWS:
        return nothing
    times, values = _of_each_ack(when[known], rtt[known])
    grid = edges(times[0], times[-1], GRID_S)
    place = np.searchsorted(times, grid, "right") - 1
    return grid, _smooth(values)[place]


def _hides_round_trips(seen: ObservedFlow) -> bool:
    """Whether what a sender seems to have seen hides its round trips: not every ACK has a row, holes have no SACK, or the ends made many pauses."""
    return (seen.facts.get("ack_stride") or 1) > 1 or seen.facts.get("sack") is False or bool(np.mean(seen.segments["kept"]) > MOST_KEPT)


def _of_each_ack(when: NDArray[np.float64], rtt: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One round trip of each ACK, as a sender takes it: of the earliest segment that it acknowledged. Times in s, RTT in ms."""
    order = np.lexsort((-rtt, when))
    when, rtt = when[order], rtt[order]
    first = np.concatenate(([True], np.diff(when) > 0))
    return when[first] / NS_PER_S, rtt[first] / 1e6


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The smoothed RTT after each round trip."""
    return np.fromiter(accumulate(values.tolist(), lambda srtt, rtt: srtt + GAIN * (rtt - srtt)), float, len(values))
