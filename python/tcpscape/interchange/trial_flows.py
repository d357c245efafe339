"""Trials as observations: iperf3's tests, Flent's, our own results from a directory or from the lines of `run --json`.

A trial says goodput, counters and the congestion control's name, and its samples become columns of TCP_INFO by the kernel's names, as far as they
are the same quantity. What has another meaning is left out: iperf3's smallest RTT is that of smoothed ones, its bytes are those written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpscape.controls import spelling
from tcpscape.errors import printable
from tcpscape.findings.diagnosis import counters
from tcpscape.findings.diagnosis.observed import Columns, Observation, ObservedFlow, SocketAddress, Vantage
from tcpscape.interchange import tcp_info
from tcpscape.interchange.base import HEADERS, LONGEST_TEXT, MTU, InterchangeError, by_flow
from tcpscape.reading.files import MIB, Kind, Origin, decoded
from tcpscape.trial import FlowResult, Trial
from tcpscape.units import counted

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.interchange import iperf3

COLUMNS: Mapping[str, str] = {
    "cwnd": "snd_cwnd",
    "ssthresh": "snd_ssthresh",
    "srtt_us": "rtt",
    "rttvar_us": "rttvar",
    "min_rtt_us": "min_rtt",
    "rto_us": "rto",
    "unacked": "unacked",
    "pacing_rate": "pacing_rate",
    "delivery_rate": "delivery_rate",
    "ca_state": "ca_state",
    "retransmits": "total_retrans",
    "spurious_retransmits": "dsack_dups",
    "reordering": "reordering",
    "rwnd": "snd_wnd",
    "bytes_acked": "bytes_acked",
    "delivered": "delivered",
    "delivered_ce": "delivered_ce",
    "busy_us": "busy_time",
    "rwnd_limited_us": "rwnd_limited",
    "sndbuf_limited_us": "sndbuf_limited",
    "notsent": "notsent_bytes",
    "app_limited": "delivery_rate_app_limited",
    "in_flight": "in_flight",
    "ping_ms": "ping_ms",
}
"""Columns of a trial's samples → TCP_INFO's; `in_flight` is the kernel's account of segments, `ping_ms` another program's RTT."""
CAUSES: Mapping[str, str] = {
    "app": "application",
    "rwnd": "receive_window",
    "sndbuf": "send_buffer",
    "cwnd": "congestion_window",
    "pacing": "pacing",
    "recovery": "recovery",
}
"""Causes of a trial → those of a diagnosis."""
SENDER, RECEIVER, FIRST_PORT, PORT = "sender", "receiver", 49_152, 5201
"""The ends of a trial's flows, which have no addresses."""
MOST_FLOWS = 64
"""Flows of a result that are taken."""
FILE = Kind("lines of `tcpscape run --json`", "give the whole output of it", most=64 * MIB, error=InterchangeError)


def recognises_iperf3(head: bytes) -> bool:
    """Whether a text begins as iperf3's JSON does: `-J`, or `--json-stream`."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    begins = text.startswith(b"{") and any(word in text for word in (b'"start"', b'"event"', b'"intervals"', b'"error"'))
    return begins and not recognises_flent(head) and not recognises_lines(head)


def recognises_flent(head: bytes) -> bool:
    """Whether a text begins as a data file of Flent's; its keys are sorted, `metadata` comes first."""
    return head.lstrip().startswith(b"{") and b'"metadata"' in head and (b"FLENT" in head or b'"BATCH_NAME"' in head or b'"DATA_FILENAME"' in head)


def recognises_lines(head: bytes) -> bool:
    """Whether a text begins as a line of `tcpscape run --json`."""
    text = head.lstrip()
    return text.startswith(b"{") and all(word in text[:4096] for word in (b'"scenario"', b'"cca"', b'"seed"', b'"engine"'))


def observe_iperf3(content: bytes, name: str) -> Observation:
    """iperf3's streams. :raises InterchangeError: one line, for what is no test of TCP, or measured nothing."""
    from tcpscape.interchange import iperf3

    path = Path(name)
    flows: list[ObservedFlow] = []
    notes: list[str] = []
    for document, broken in iperf3.tests(decoded(content, Origin(name, iperf3.FILE)), path):
        flows += [_stream(document, place, *stream) for place, stream in enumerate(iperf3.streams(document, path))]
        if broken or document.error:
            notes.append(f"iperf3 did not end by itself: {document.error or 'the last events are missing'}.")
    if any(flow.vantage == "receiver" for flow in flows):
        notes.append("Of streams that this end received, iperf3 has no RTT and no window: give the JSON of the end that sent.")
    notes.append("iperf3 samples once an interval and has no smallest RTT, no delivery rate and no times of limits.")
    return Observation("iperf3", name, tuple(sorted(flows, key=lambda flow: -(flow.bytes or 0))), tuple(notes))


def _stream(document: iperf3.Iperf3Test, place: int, client_sends: bool, socket: int | None, ends: iperf3.Ends) -> ObservedFlow:
    """A stream; a client's document names the client's end first."""
    from tcpscape.interchange import iperf3

    result, unknown = iperf3.flow_of(document, socket, ends)
    known = {connection.socket: connection for connection in document.start.connected}
    at = known.get(socket)
    local = SocketAddress(at.local_host, at.local_port) if at else SocketAddress("client", FIRST_PORT + place)
    remote = SocketAddress(at.remote_host, at.remote_port) if at else SocketAddress("server", PORT)
    sends = any(s.sender is not False and s.socket == socket for n in document.intervals for s in n.streams) if document.intervals else client_sends
    samples = columns(iperf3.samples_of(document, [socket]))
    mss = document.start.tcp_mss or document.start.tcp_mss_default
    facts: dict[str, Any] = {"retransmissions": result.retransmits} if "retransmits" not in unknown else {}
    facts |= {"rtt": rtt} if (rtt := tcp_info.rtt_facts(samples)) else {}
    target, payload = document.start.test_start.target_bitrate, mss or MTU - HEADERS
    # A link as fast as iperf3 was told to send (-b) carries less payload than that: only a faster stream is held by what it was told.
    if target and result.goodput_mbps * 1e6 > target * payload / (payload + HEADERS):
        facts["limited_by"] = {"application": 1.0}
    flow = _flow(result, samples, (local, remote) if sends else (remote, local), "sender" if sends else "receiver")
    return replace(flow, packets=None, facts={**facts, **({"segment_size": int(mss)} if mss else {})})


def observe_flent(content: bytes, name: str) -> Observation:
    """Flent's flows, with ping's idle RTTs where it measured them. :raises InterchangeError: one line, for what is none of Flent's."""
    from tcpscape.interchange import flent

    path = Path(name)
    data = flent.data_of(decoded(content, Origin(name, flent.FILE)), path)
    imported = flent.trial_of(data, path)
    trial = imported.trials[0]
    pings = flent.pings_before(data)
    flows = [replace(flow, facts={**flow.facts, "idle_pings_ms": tuple(pings)}) if pings else flow for flow in _of_trial(trial, imported.unknown, 1)]
    host = printable(str(data.metadata.get("HOST") or RECEIVER)[:LONGEST_TEXT])
    notes = [f"{caveat[:1].upper()}{caveat[1:]}." for caveat in trial.caveats]
    notes.append(f"Flent samples TCP once a step, without the smallest RTT and times of limits; {counted(len(pings), 'ping')} of the idle path.")
    return Observation("flent", name, tuple(sorted(flows, key=lambda flow: -(flow.bytes or 0))), tuple(notes), {"host": host})


def observe_lines(content: bytes, name: str) -> Observation:
    """The trials of `run --json`, which have no samples. :raises InterchangeError: one line, where none of it is a trial."""
    from tcpscape.reading import documents

    origin = Origin(name, FILE)
    values, broken = documents.json_values(decoded(content, origin), origin)
    if broken and not values:
        origin.refuse(f"is not JSON at line {broken.line}")
    trials = [_trial_of(value, origin) for value in values]
    notes = ["`--json` has no samples: what changes over time is in a directory that `--out` wrote with `--samples`."]
    return _observation(trials, name, notes + (["The last line breaks off."] if broken else []))


def _trial_of(value: Any, origin: Origin) -> Trial:
    from tcpscape.store import rows

    if not isinstance(value, dict):
        origin.refuse("has a line that is no trial")
    plain = {key: of for key, of in value.items() if key != "queues"}
    trial = rows.decode(json.dumps({"address": "", **plain}), None)
    if trial is None:
        origin.refuse("has a line that is no trial, or a damaged one")
    return trial


def observe_directory(path: Path) -> Observation:
    """The trials of a result directory. :raises TcpscapeError: one line, where nothing there can be read."""
    from tcpscape.interchange import sources

    source = sources.load(path, sources.SAMPLES)
    notes = [] if any(item.trial.samples is not None for item in source.items) else ["There are no samples: run with --samples 20ms --out DIR."]
    return _observation([item.trial for item in source.items], str(path), notes)


def _observation(trials: Sequence[Trial], name: str, notes: list[str]) -> Observation:
    flows = [flow for i, trial in enumerate(trials) for flow in _of_trial(trial, frozenset(), 1 + i)]
    if not flows:
        raise InterchangeError(f"{name}: there is no flow in it; give a result with one")
    flows.sort(key=lambda flow: -(flow.bytes or 0))
    if len(flows) > MOST_FLOWS:
        notes.append(f"Of {len(flows)} flows the {MOST_FLOWS} that carried most are taken.")
    return Observation("result", name, tuple(flows[:MOST_FLOWS]), tuple(notes), {"trials": len(trials)})


def _of_trial(trial: Trial, unknown: frozenset[str], place: int) -> Iterator[ObservedFlow]:
    """The flows of a trial, seen from their senders; the port of the receiver's end numbers the trials."""
    known = by_flow(trial.samples)
    for i, result in enumerate(trial.flows):
        samples = columns(known.get(i))
        ends = SocketAddress(SENDER, min(65_535, FIRST_PORT + i)), SocketAddress(RECEIVER, min(65_535, PORT + place - 1))
        yield replace(_flow(result, samples, ends, "sender"), facts=_facts(trial, result, unknown))


def _flow(result: FlowResult, samples: Columns, ends: tuple[SocketAddress, SocketAddress], vantage: Vantage) -> ObservedFlow:
    source, destination = ends
    control = spelling.name_of(result.cca) if result.cca != "unknown" else None
    return ObservedFlow(
        source=source,
        destination=destination,
        packets=result.data_segs_out,
        bytes=result.bytes_received,
        seconds=result.seconds,
        start_s=result.start_s,
        vantage=vantage,
        goodput_mbps=result.goodput_mbps,
        samples=samples,
        limits=counters.of_samples(samples, control),
        cca=control,
    )


def _facts(trial: Trial, result: FlowResult, unknown: frozenset[str]) -> Mapping[str, Any]:
    """Counters of the whole flow; those that the source does not have are absent."""
    values: Mapping[str, Any] = {
        "retransmissions": None if "retransmits" in unknown else result.retransmits,
        "timeouts": result.rtos,
        "dsacks": result.dsacks,
        "reorderings": result.reord_seen,
        "ce": result.delivered_ce,
        "ecn": result.ecn,
        "min_rtt_ms": result.min_rtt_ms,
        "rtt": {f"{name}_ms": v for name in ("p50", "mean", "min") if (v := getattr(result.rtt_ms, name)) is not None} or None,
        "window_max": result.max_rwnd,
        "zero_windows": result.zero_windows,
        "limited_by": {CAUSES.get(cause, cause): share for cause, share in result.limited_by.items() if share > 0} or None,
        "begins_in_mid_connection": False,
        "seed": trial.seed,
        "engine": trial.engine,
        "scenario": trial.scenario,
    }
    facts = {name: value for name, value in values.items() if value is not None}
    return facts | ({"segment_size": MTU - HEADERS} if trial.engine in ("model", "virtual", "live") else {})


def columns(frame: pl.DataFrame | None) -> Columns:
    """A flow's samples as columns of TCP_INFO; empty where there are none."""
    if frame is None or frame.is_empty():
        return {}
    found = {"t_s": frame["t_ns"].to_numpy().astype(float) / 1e9}
    for name, kernels in COLUMNS.items():
        if name in frame.columns:
            found[kernels] = np.array([np.nan if v is None else float(v) for v in frame[name].to_list()])
    found = tcp_info.cleaned(found)
    return {name: values for name, values in found.items() if not np.isnan(values).all()}
