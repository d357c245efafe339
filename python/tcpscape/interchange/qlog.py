"""A trial as qlog, the log format of QUIC's tools, with the names of QUIC's events used for TCP, as qvis reads them.

Source: draft-ietf-quic-qlog-main-schema-02 (the file, `qlog_version` 0.3) and draft-ietf-quic-qlog-quic-events-02 (events), the versions that qvis
reads. Times are ms from the start of the trial, windows bytes (packets · the segment's payload), the pacing rate bit/s. Each flow is a trace, seen by
its sender. `recovery:metrics_updated` has what changed since the sample before, `recovery:congestion_state_updated` the state; packets are there
where the trial kept them. What QUIC has no event for (timeouts, undone reductions, segments marked lost) is in the namespace `tcpscape`.

Every segment is a packet with a number of its own, every ACK says which numbers arrived. TCP acknowledges bytes and QUIC packets, so numbers are
given here: a segment that is sent again has a new one, and the one whose bytes it repeats is reported lost then. An acknowledged byte is that of its
newest packet. Source: draft-ietf-quic-qlog-quic-events-02.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tcpscape.interchange import base
from tcpscape.interchange.base import InterchangeError
from tcpscape.metrics import samples
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


VERSION = "0.3"
NS_PER_MS = 1_000_000
INFINITE = 2**31 - 1
"""Packets: the slow-start threshold before the first reduction."""
NO_RTT = 2**32 - 1
"""µs: the least RTT before the first measurement."""
REDUCING = samples.STATES.index("CWR")
"""From this state on the sender reduces its window or repairs losses."""
Event = tuple[float, str, dict[str, Any]]
"""Time in ms, name, data."""


def write(trial: Trial, mtu: int = base.MTU) -> bytes:
    """The file; `mtu` is the path's, bytes. Refuses a trial without samples."""
    flows = base.by_flow(trial.samples)
    if not flows:
        raise InterchangeError("qlog: the trial has no samples, and a log is made of them; run with --samples 10ms --out DIR")
    document = {
        "qlog_version": VERSION,
        "qlog_format": "JSON",
        "title": f"{trial.scenario} {trial.cca} seed {trial.seed}",
        "description": json.dumps(base.provenance(trial), ensure_ascii=False),
        "traces": [_trace(trial, flow, rows, mtu - base.HEADERS) for flow, rows in flows.items()],
    }
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode()


def _trace(trial: Trial, flow: int, rows: pl.DataFrame, payload: int) -> dict[str, Any]:
    """A flow's trace; `payload` is that of a full segment, bytes."""
    packets = packet_events(trial.packets, flow, payload) if trial.packets is not None else ()
    every = sorted([*_metrics(rows, payload), *_states(rows), *_happened(trial, flow), *packets], key=lambda event: event[0])
    return {
        "title": f"flow {flow}: {trial.flows[flow].cca}",
        "vantage_point": {"name": f"sender of flow {flow}", "type": "server"},
        "common_fields": {"group_id": f"{trial.address}-{flow}", "protocol_type": ["TCP"], "time_format": "relative", "reference_time": 0},
        "events": [{"time": time, "name": name, "data": data} for time, name, data in every],
    }


def _metrics(rows: pl.DataFrame, payload: int) -> Iterator[Event]:
    """What each sample has that the one before had not."""
    before: dict[str, Any] = {}
    for row in rows.iter_rows(named=True):
        now = {name: value for name, value in _values(row, payload).items() if value is not None}
        if new := {name: value for name, value in now.items() if before.get(name) != value}:
            yield row["t_ns"] / NS_PER_MS, "recovery:metrics_updated", new
        before |= now


def _values(row: dict[str, Any], payload: int) -> dict[str, Any]:
    """The fields of `recovery:metrics_updated`; None where nothing is known."""

    def known(column: str, factor: float = 1, none_from: int = base.UNLIMITED) -> Any:
        value = row.get(column)
        return None if value is None or value >= none_from else value * factor

    return {
        "min_rtt": known("min_rtt_us", 1e-3, NO_RTT),
        "smoothed_rtt": known("srtt_us", 1e-3),
        "rtt_variance": known("rttvar_us", 1e-3),
        "congestion_window": known("cwnd", payload),
        "bytes_in_flight": known("in_flight", payload),
        "packets_in_flight": known("in_flight"),
        "ssthresh": known("ssthresh", payload, INFINITE),
        "pacing_rate": known("pacing_rate", 8),
    }


def _states(rows: pl.DataFrame) -> Iterator[Event]:
    """Changes of the state; of a control that sets no slow-start threshold (BBR) only whether it repairs losses is known."""
    if not {"ca_state", "cwnd", "ssthresh"} <= set(rows.columns):
        return
    is_set = any(value is not None and value < INFINITE for value in rows["ssthresh"].to_list())
    before = None
    for t_ns, state, cwnd, threshold in rows.select("t_ns", "ca_state", "cwnd", "ssthresh").drop_nulls().iter_rows():
        calm = ("slow_start" if cwnd < threshold else "congestion_avoidance") if is_set else "open"
        now = "recovery" if state >= REDUCING else calm
        if now != before:
            yield t_ns / NS_PER_MS, "recovery:congestion_state_updated", {**({"old": before} if before else {}), "new": now}
        before = now


def _happened(trial: Trial, flow: int) -> Iterator[Event]:
    """What happened, with the number of segments of what is counted in segments."""
    for event in samples.events_of_trial(trial, flow):
        counted = {"segments": event.count} if event.kind in samples.COUNTED else {}
        yield event.t_ns / NS_PER_MS, f"tcpscape:{event.kind}", counted


PACKET_TYPE = "1RTT"
"""QUIC's name for packets with data after the handshake."""
SACKS = (("sack0_start", "sack0_end"), ("sack1_start", "sack1_end"), ("sack2_start", "sack2_end"))
"""Columns of an ACK's blocks."""


class _Outstanding:
    """The segments that are neither acknowledged nor sent again, in the order of their bytes."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._numbers: list[int] = []

    def add(self, start: int, end: int, number: int) -> list[int]:
        """Adds a segment; the numbers of those whose bytes it repeats."""
        low, high = bisect_right(self._ends, start), bisect_left(self._starts, end)
        repeated = self._numbers[low:high]
        self._starts[low:high], self._ends[low:high], self._numbers[low:high] = [start], [end], [number]
        return repeated

    def acknowledge(self, start: int, end: int) -> list[int]:
        """Takes out the segments that lie within these bytes; their numbers."""
        low, high = bisect_left(self._starts, start), bisect_right(self._ends, end)
        numbers = self._numbers[low:high]
        if numbers:
            del self._starts[low:high], self._ends[low:high], self._numbers[low:high]
        return numbers


def packet_events(packets: pl.DataFrame, flow: int, payload: int) -> Iterator[Event]:
    """A flow's packets at its sender, in order of time; `payload` is that of a full segment, bytes: larger bursts are cut at it."""
    there, number = _Outstanding(), 0
    for row in packets.filter(packets["flow"] == flow).iter_rows(named=True):
        time = row["t_ns"] / NS_PER_MS
        if row["received"]:
            yield from _received(time, row, there)
            continue
        for start in range(row["seq"], row["seq"] + row["len"], payload):
            end = min(start + payload, row["seq"] + row["len"])
            for lost in there.add(start, end, number):
                yield time, "recovery:packet_lost", {"header": _header(lost)}
            frame = {"frame_type": "stream", "stream_id": 0, "offset": start - 1, "length": end - start}
            yield time, "transport:packet_sent", {"header": _header(number), "raw": {"length": end - start}, "frames": [frame]}
            number += 1


def _received(time: float, row: dict[str, Any], there: _Outstanding) -> Iterator[Event]:
    """An ACK, with the numbers that it acknowledges first."""
    numbers = there.acknowledge(0, row["ack"])
    for start, end in SACKS[: row["nsack"]]:
        numbers += there.acknowledge(row[start], row[end])
    if numbers:
        frame = {"frame_type": "ack", "acked_ranges": _ranges(sorted(numbers))}
        yield time, "transport:packet_received", {"header": _header(None), "frames": [frame]}


def _header(number: int | None) -> dict[str, Any]:
    """Of a packet; an ACK of TCP has no number."""
    return {"packet_type": PACKET_TYPE, **({"packet_number": number} if number is not None else {})}


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Runs of following numbers as [first, last]."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges
