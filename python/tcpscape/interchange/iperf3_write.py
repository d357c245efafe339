"""A trial as an iperf3 document (`iperf3 -J`, the fields of version 3.12), so that tools which read those read ours.

RTTs in µs, windows and counts in bytes, rates in bit/s. What no trial has and iperf3 always writes (CPU, addresses, the date) is 0, iperf3's
own word for what it did not measure; what iperf3 has no field for (scenario, seed, caveats) is in `extra_data`, where its --extra-data goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tcpscape.controls import spelling
from tcpscape.interchange import base
from tcpscape.trial import FlowResult, Trial

SENDER, RECEIVER = "192.0.2.1", "192.0.2.2"
"""Addresses for documents (RFC 5737): a trial has none."""
PORT, FIRST_PORT = 5201, 49_152
"""iperf3's port; the first of the dynamic ports (RFC 6335)."""
BLOCK = 131_072
"""Bytes, iperf3's own default."""
NO_SAMPLES = "the trial has no samples: one interval for the whole; run with --samples 100ms for more"
ACKED = "an interval's bytes are those acknowledged in it, iperf3's are those handed to the socket"
ZEROS = "0 because not measured: cpu_utilization_percent, timestamp, sndbuf_actual, rcvbuf_actual"


def write(trial: Trial, mtu: int = base.MTU) -> bytes:
    """The document; `mtu` is the path's, bytes."""
    intervals = list(_intervals(trial, mtu))
    sampled = bool(intervals)
    intervals = intervals or [_whole(trial, mtu)]
    extra = {**base.provenance(trial), "notes": [ACKED if sampled else NO_SAMPLES, ZEROS]}
    document = {
        "start": _start(trial, mtu), "intervals": intervals, "end": _end(trial, mtu),
        "title": f"{trial.scenario} {trial.cca} seed {trial.seed}", "extra_data": json.dumps(extra, ensure_ascii=False),
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def socket(flow: int) -> int:
    """The number of a flow's socket as iperf3 counts them: 5, 7, 9, …"""
    return 5 + 2 * flow


def _start(trial: Trial, mtu: int) -> dict[str, Any]:
    from tcpscape import __version__

    ends = {"local_host": SENDER, "remote_host": RECEIVER, "remote_port": PORT}
    return {
        "connected": [{"socket": socket(i), "local_port": FIRST_PORT + i, **ends} for i in range(len(trial.flows))],
        "version": f"iperf 3.12 schema, tcpscape {__version__}",
        "system_info": f"tcpscape {trial.engine} {trial.kernel or trial.version}",
        "timestamp": {"time": "Thu, 01 Jan 1970 00:00:00 GMT", "timesecs": 0},
        "connecting_to": {"host": RECEIVER, "port": PORT},
        "cookie": trial.address, "tcp_mss_default": mtu - base.HEADERS, "target_bitrate": 0, "sock_bufsize": 0, "sndbuf_actual": 0,
        "rcvbuf_actual": 0,
        "test_start": {
            "protocol": "TCP", "num_streams": len(trial.flows), "blksize": BLOCK, "omit": 0, "duration": round(trial.duration), "bytes": 0,
            "blocks": 0, "reverse": 0, "tos": 0, "target_bitrate": 0,
        },
    }


def _intervals(trial: Trial, mtu: int) -> Iterator[dict[str, Any]]:
    """One for each sampling time, with the flows that have a sample then."""
    at: dict[float, list[dict[str, Any]]] = {}
    rates, flows = base.throughputs(trial.samples), base.by_flow(trial.samples)
    for i in sorted(rates):
        rows = {row["t_ns"] / 1e9: row for row in flows[i].iter_rows(named=True)}
        before = 0
        for begin, end, rate in rates[i]:
            row = rows[end]
            retransmits = int(row.get("retransmits") or 0)
            at.setdefault(end, []).append(_stream(i, (begin, end), rate, retransmits - before) | _tcp_info(row, mtu))
            before = retransmits
    for end in sorted(at):
        yield {"streams": at[end], "sum": _sum(at[end])}


def _whole(trial: Trial, mtu: int) -> dict[str, Any]:
    """The trial as one interval."""
    streams = []
    for i, f in enumerate(trial.flows):
        row = {"cwnd": f.cwnd.mean, "srtt_us": f.rtt_ms.mean * 1e3 if f.rtt_ms.mean is not None else None, "rttvar_us": None}
        sent = f.bytes_sent if f.bytes_sent is not None else f.bytes_received
        rate = sent / f.seconds if f.seconds else 0.0
        streams.append(_stream(i, (f.start_s, f.start_s + f.seconds), rate, f.retransmits) | _tcp_info(row, mtu))
    return {"streams": streams, "sum": _sum(streams)}


def _stream(flow: int, times: tuple[float, float], rate: float, retransmits: int) -> dict[str, Any]:
    begin, end = times
    return {
        "socket": socket(flow), "start": begin, "end": end, "seconds": end - begin, "bytes": round(rate * (end - begin)),
        "bits_per_second": rate * 8, "retransmits": retransmits, "omitted": False, "sender": True,
    }


def _tcp_info(row: dict[str, Any], mtu: int) -> dict[str, Any]:
    """Window in bytes, RTT in µs, as of the interval's end."""
    return {
        "snd_cwnd": round((row.get("cwnd") or 0) * (mtu - base.HEADERS)), "snd_wnd": int(row.get("rwnd") or 0),
        "rtt": round(row.get("srtt_us") or 0), "rttvar": round(row.get("rttvar_us") or 0), "pmtu": mtu,
    }


def _sum(streams: list[dict[str, Any]]) -> dict[str, Any]:
    """The streams of an interval together."""
    begin, end = min(s["start"] for s in streams), max(s["end"] for s in streams)
    size = sum(s["bytes"] for s in streams)
    return {
        "start": begin, "end": end, "seconds": end - begin, "bytes": size, "bits_per_second": size * 8 / (end - begin) if end > begin else 0.0,
        "retransmits": sum(s["retransmits"] for s in streams), "omitted": False, "sender": True,
    }


def _end(trial: Trial, mtu: int) -> dict[str, Any]:
    streams = [{"sender": _sender(i, f, mtu), "receiver": _receiver(i, f)} for i, f in enumerate(trial.flows)]
    names = "+".join(sorted({spelling.name_of(f.cca) for f in trial.flows}))
    cpu = {f"{side}_{kind}": 0.0 for side in ("host", "remote") for kind in ("total", "user", "system")}
    sent = _total([s["sender"] for s in streams])
    return {
        "streams": streams, "sum_sent": sent | {"retransmits": sum(f.retransmits for f in trial.flows)},
        "sum_received": _total([s["receiver"] for s in streams]), "cpu_utilization_percent": cpu,
        "sender_tcp_congestion": names, "receiver_tcp_congestion": names,
    }


def _sender(i: int, f: FlowResult, mtu: int) -> dict[str, Any]:
    sent = f.bytes_sent if f.bytes_sent is not None else f.bytes_received
    return {
        **_times(i, f), "bytes": sent, "bits_per_second": sent * 8 / f.seconds if f.seconds else 0.0, "retransmits": f.retransmits,
        "max_snd_cwnd": round((f.cwnd.max or 0) * (mtu - base.HEADERS)), "max_snd_wnd": f.max_rwnd or 0,
        "max_rtt": round((f.rtt_ms.max or 0) * 1e3), "min_rtt": round((f.rtt_ms.min or 0) * 1e3),
        "mean_rtt": round((f.rtt_ms.mean or 0) * 1e3), "sender": True,
    }


def _receiver(i: int, f: FlowResult) -> dict[str, Any]:
    return {**_times(i, f), "bytes": f.bytes_received, "bits_per_second": f.goodput_mbps * 1e6, "sender": True}


def _times(i: int, f: FlowResult) -> dict[str, Any]:
    return {"socket": socket(i), "start": f.start_s, "end": f.start_s + f.seconds, "seconds": f.seconds}


def _total(ends: list[dict[str, Any]]) -> dict[str, Any]:
    begin, end = min(e["start"] for e in ends), max(e["end"] for e in ends)
    size = sum(e["bytes"] for e in ends)
    rate = size * 8 / (end - begin) if end > begin else 0.0
    return {"start": begin, "end": end, "seconds": end - begin, "bytes": size, "bits_per_second": rate, "sender": True}
