"""A flow as its sender saw it, from a capture at the receiver or on the way: by the timestamps of both ends.

A segment echoes the timestamp of the newest acknowledgement that its sender had (RFC 7323 §4.2), so a capture shows at any place which one released
it. The clock is that of the acknowledgements as they pass the capture: where their way from there to the sender has no jitter, each takes the same
time, so that all times of the sender are too early by one constant, and round trips, flights and windows are the sender's own.

Acknowledgements of one tick of the receiver's clock have one timestamp; the segments that echo it are spread over them in order. A segment of which
only a repetition was seen left between its neighbours. For how long a sender kept a segment back after the acknowledgement (by a pace, or because its
application had nothing to send) does not show.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.findings.diagnosis.control.watched import held_by_sack, plain
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path.columns import LOST, Ints, near, unwrapped

Rows = dict[str, NDArray[Any]]


def as_sender(flow: ObservedFlow) -> ObservedFlow | None:
    """The flow with the times, round trips and flights that its sender had, but for a constant; None where its packets have no timestamps.

    The columns are those that :func:`watched.watch` reads.
    """
    segments, acks, events = plain(flow.segments), plain(flow.acks), plain(flow.events)
    if not all(len(rows.get("t", ())) and rows["tsval"].any() for rows in (segments, acks)):
        return None
    segments = _ordered(segments, "seq")
    released = _released(segments, acks)
    is_hidden = (segments["fate"] == LOST) & (segments["sends"] == 1)
    seen = segments["t"]
    segments["t"] = _departures(released, is_hidden, acks["t"], int(seen[0]))
    segments["sends"] = np.where(is_hidden, 2, segments["sends"])
    segments["rtt"] = np.where((segments["acked"] > 0) & ~is_hidden & (released >= 0), np.maximum(segments["acked"] - segments["t"], 0), 0)
    if len(events.get("t", ())):
        again = np.where(released >= 0, acks["t"][released] + 1, segments["t"])
        events["t"] = _moved(events["t"], seen, np.where(is_hidden, again, segments["t"]))
        events = _ordered(events, "t")
    segments = _ordered(segments, "t")
    return replace(flow, segments=segments | _outstanding(segments, acks), acks=acks, events=events, vantage="sender")


def _ordered(rows: Rows, by: str) -> Rows:
    order = np.argsort(rows[by], kind="stable")
    return {name: values[order] for name, values in rows.items()}


def _released(segments: Rows, acks: Rows) -> Ints:
    """For each segment the place of the acknowledgement that it echoes; −1 where that came before the first that has a row, as in a handshake."""
    stamps = np.maximum.accumulate(unwrapped(acks["tsval"]))
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


def _departures(released: Ints, is_hidden: NDArray[np.bool_], ack_t: Ints, begin: int) -> Ints:
    """When each segment left first, by the time of the acknowledgement that released it: just after that."""
    t = np.where(released >= 0, ack_t[released] + 1, min(begin, int(ack_t[0]) - 1))
    shown = np.flatnonzero(~is_hidden)
    if not shown.size:
        return t
    between = np.interp(np.arange(len(t)), shown, np.maximum.accumulate(t[shown]))
    return np.asarray(np.floor(between), np.int64)


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
