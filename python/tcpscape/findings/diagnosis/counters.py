"""What held a flow, by samples of its socket's TCP_INFO.

The kernel counts for each socket the time with data to send or unacknowledged (`busy_time`), and of it the time
stopped by the receive window (`rwnd_limited`) and by the send buffer (`sndbuf_limited`). Between two samples, the time by which they grew has that
cause, the time that was not busy is the application's, and the rest is shared out by what the samples show at its ends: recovery or timeout
(`ca_state`), the congestion window full, data waiting although there is room in the window (pacing, or the queue of the host's own device), or less
than a segment waiting: the application's, or the send buffer's where that is full. The kernel counts in ticks of 1/HZ (1 to 10 ms), so an interval
between samples says no more than that; sums over many are right. Source: linux/tcp.h, Documentation/networking; the counters are of Linux 4.10 and
newer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcpscape.findings.diagnosis.limits import spaces
from tcpscape.findings.diagnosis.observed import Cause, Columns, LimitInterval
from tcpscape.stats.estimate import Floats

SYN_SENT = 2
RECOVERY, LOSS = 3, 4
"""States of recovery. Linux: TCP_CA_Recovery, TCP_CA_Loss."""
NEEDED = ("t_s", "busy_time")
"""Columns without which nothing can be said."""
ROOM = 1
"""Segments of room in the window with which it counts as full: a sender that waits for the second of two segments to be acknowledged."""
USUAL_SEGMENT = 1448.0
"""Payload of a segment where it is not known, bytes: less than one waits for more, which is the application's to write."""
STUFFED = 0.6
"""Share of the send buffer that is in use where a writer waits for room: it is woken when a third is free. Linux: sk_stream_is_writeable()."""


def of_samples(columns: Columns, control: str | None = None) -> Sequence[LimitInterval]:
    """What held the sender between each two samples, neighbours of one cause joined; empty where the counters are not known.

    :param control: the congestion control's name, where it is known: those that do not pace are not held by pacing.
    """
    if any(name not in columns or np.isnan(columns[name]).any() for name in NEEDED) or not len(columns["t_s"]):
        return ()
    t = np.asarray(columns["t_s"], float)
    if len(t) == 1:
        return _of_one(columns)
    parts = _parts(columns, np.diff(t))
    at_sample = _at_samples(columns, control)
    intervals: list[LimitInterval] = []
    for i in range(len(t) - 1):
        lengths: dict[Cause, float] = {cause: float(each[i]) for cause, each in parts.items() if cause != "unknown"}
        for cause in at_sample[i : i + 2]:
            lengths[cause] = lengths.get(cause, 0.0) + float(parts["unknown"][i]) / 2
        at = float(t[i])
        before = intervals[-1].cause if intervals else at_sample[i]
        for cause in sorted(lengths, key=lambda cause: cause != before):  # a cause that goes on comes first
            if lengths[cause] > 0:
                _extend(intervals, at, at + lengths[cause], cause)
                at += lengths[cause]
    return tuple(intervals)


def _of_one(columns: Columns) -> Sequence[LimitInterval]:
    """Of a single sample: the time with data to send since the connection began, by the causes that are counted, one after the other.

    The time without data to send is not known then.
    """
    busy = float(columns["busy_time"][0]) / 1e6
    window = min(busy, float(np.nan_to_num(columns.get("rwnd_limited", np.zeros(1))[0])) / 1e6)
    buffer = min(busy - window, float(np.nan_to_num(columns.get("sndbuf_limited", np.zeros(1))[0])) / 1e6)
    intervals: list[LimitInterval] = []
    lengths: tuple[tuple[Cause, float], ...] = (("receive_window", window), ("send_buffer", buffer), ("unknown", busy - window - buffer))
    for cause, length in lengths:
        start = intervals[-1].end_s if intervals else 0.0
        intervals += [LimitInterval(start, start + length, cause)] if length > 0 else []
    return tuple(intervals)


def _extend(intervals: list[LimitInterval], start: float, end: float, cause: Cause) -> None:
    if intervals and intervals[-1].cause == cause:
        start = intervals.pop().start_s
    intervals.append(LimitInterval(start, end, cause))


def _parts(columns: Columns, gaps: Floats) -> dict[Cause, Floats]:
    """Seconds of each cause that the counters say, between each two samples; `unknown` is what they leave."""
    zero = np.zeros(len(gaps))
    busy = _steady(columns["busy_time"], gaps)
    window = np.minimum(_growth(columns, "rwnd_limited", zero), busy)
    buffer = np.minimum(_growth(columns, "sndbuf_limited", zero), busy - window)
    return {"unknown": busy - window - buffer, "receive_window": window, "send_buffer": buffer, "application": gaps - busy}


def _growth(columns: Columns, name: str, zero: Floats) -> Floats:
    values = columns.get(name)
    return zero if values is None else np.nan_to_num(np.maximum(np.diff(np.asarray(values, float)), 0.0)) / 1e6


def _steady(busy: Floats, gaps: Floats) -> Floats:
    """Busy time between each two samples, s.

    What a tick puts into the next gap is taken back: idle time never shrinks, and of what it seems to grow by only that counts which is not gone
    again later.
    """
    idle = np.concatenate(([0.0], np.cumsum(gaps))) - (np.asarray(busy, float) - busy[0]) / 1e6
    lasting = np.minimum.accumulate(np.maximum(idle, 0.0)[::-1])[::-1]
    return np.clip(gaps - np.diff(lasting), 0.0, gaps)


def _at_samples(columns: Columns, control: str | None) -> list[Cause]:
    """What held a busy sender at each sample."""
    paces = control is None or spaces(control)
    n = len(columns["t_s"])

    def column(name: str) -> Floats:
        return np.asarray(columns.get(name, np.full(n, np.nan)), float)

    state, phase = column("ca_state"), column("state")
    in_flight = column("unacked") + np.nan_to_num(column("retrans")) - np.nan_to_num(column("sacked")) - np.nan_to_num(column("lost"))
    is_full = in_flight + ROOM >= column("snd_cwnd")
    segment = np.nan_to_num(column("snd_mss"), nan=USUAL_SEGMENT)
    waits = column("notsent_bytes") >= segment
    is_stuffed = column("wmem_queued") > STUFFED * column("sndbuf")
    is_known = ~np.isnan(in_flight) & ~np.isnan(column("snd_cwnd")) & ~np.isnan(column("notsent_bytes"))
    causes: list[Cause] = []
    for i in range(n):
        if phase[i] == SYN_SENT:
            causes.append("handshake")
        elif state[i] == LOSS:
            causes.append("timeout")
        elif state[i] == RECOVERY:
            causes.append("recovery")
        elif not is_known[i]:
            causes.append("unknown")
        elif is_full[i] or (waits[i] and not paces):
            causes.append("congestion_window")
        elif waits[i]:
            causes.append("pacing")
        else:
            causes.append("send_buffer" if is_stuffed[i] else "application")
    return causes
