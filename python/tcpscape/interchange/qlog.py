"""A trial as qlog, the log format of QUIC's tools, with the names of QUIC's events used for TCP, as qvis reads them.

Source: draft-ietf-quic-qlog-main-schema-02 (the file, `qlog_version` 0.3) and draft-ietf-quic-qlog-quic-events-02 (events), the versions that qvis
reads. Times are ms from the start of the trial, windows bytes (packets · the segment's payload), the pacing rate bit/s. Each flow is a trace, seen by
its sender. `recovery:metrics_updated` has what changed since the sample before, `recovery:congestion_state_updated` the state; packets, where the
trial kept them, are `qlog_packets`' matter. What QUIC has no event for (timeouts, undone reductions, segments marked lost) is in the namespace
`tcpscape`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tcpscape.interchange import base, qlog_packets
from tcpscape.interchange.base import InterchangeError
from tcpscape.metrics import events
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

VERSION = "0.3"
NS_PER_MS = 1_000_000
INFINITE = 2**31 - 1
"""Packets: the slow-start threshold before the first reduction."""
NO_RTT = 2**32 - 1
"""µs: the least RTT before the first measurement."""
REDUCING = events.STATES.index("CWR")
"""From this state on the sender reduces its window or repairs losses."""
Event = tuple[float, str, dict[str, Any]]
"""Time in ms, name, data."""


def write(trial: Trial, mtu: int = base.MTU) -> bytes:
    """The file; `mtu` is the path's, bytes. Refuses a trial without samples."""
    flows = base.by_flow(trial.samples)
    if not flows:
        raise InterchangeError("qlog: the trial has no samples, and a log is made of them; run with --samples 10ms --out DIR")
    document = {
        "qlog_version": VERSION, "qlog_format": "JSON", "title": f"{trial.scenario} {trial.cca} seed {trial.seed}",
        "description": json.dumps(base.provenance(trial), ensure_ascii=False),
        "traces": [_trace(trial, flow, rows, mtu - base.HEADERS) for flow, rows in flows.items()],
    }  # fmt: skip
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode()


def _trace(trial: Trial, flow: int, rows: pl.DataFrame, payload: int) -> dict[str, Any]:
    """A flow's trace; `payload` is that of a full segment, bytes."""
    packets = qlog_packets.events(trial.packets, flow, payload) if trial.packets is not None else ()
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
        "min_rtt": known("min_rtt_us", 1e-3, NO_RTT), "smoothed_rtt": known("srtt_us", 1e-3), "rtt_variance": known("rttvar_us", 1e-3),
        "congestion_window": known("cwnd", payload), "bytes_in_flight": known("in_flight", payload), "packets_in_flight": known("in_flight"),
        "ssthresh": known("ssthresh", payload, INFINITE), "pacing_rate": known("pacing_rate", 8),
    }  # fmt: skip


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
    for event in events.of_trial(trial, flow):
        counted = {"segments": event.count} if event.kind in events.COUNTED else {}
        yield event.t_ns / NS_PER_MS, f"tcpscape:{event.kind}", counted
