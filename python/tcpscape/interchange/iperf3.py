"""iperf3's JSON, read and written.

Read are `-J` (one document, or several in a row as a server writes them) and `--json-stream` (a line for each event, iperf ≥ 3.17). Source: iperf3's
output (esnet/iperf, BSD), recorded with 3.12 and described in its pull requests #1098 (streams) and #1663. A field that a version does not write is
not known; where iperf3 writes 0 for what it did not measure (RTT and window of a remote sender), neither.

Written is a `-J` document with the fields of version 3.12, so that tools which read those read ours. RTTs in µs, windows and counts in bytes, rates
in bit/s. What no trial has and iperf3 always writes (CPU, addresses, the date) is 0, iperf3's own word for what it did not measure; what iperf3 has
no field for (scenario, seed, caveats) is in `extra_data`, where its --extra-data goes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tcpscape.controls import spelling
from tcpscape.errors import printable
from tcpscape.interchange import base
from tcpscape.interchange.base import LONGEST_TEXT, ImportedFile, InterchangeError, refuse
from tcpscape.reading import documents, files
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.trial import Cwnd, FlowResult, Rtt, Trial

if TYPE_CHECKING:
    import polars as pl

LONGEST = 1e7
"""s: four months, longer than any test."""
MOST = 1e18
"""Of whatever is counted, so that sums stay whole numbers of 64 bits."""
Seconds = Annotated[float, Field(ge=0, le=LONGEST, strict=True)]
Count = Annotated[float, Field(ge=0, le=MOST, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Text = Annotated[str, Field(strict=True), AfterValidator(lambda text: printable(text[:LONGEST_TEXT]))]
"""A text of another tool: one line without control characters, since it becomes a name in tables and figures."""
Socket = Annotated[int, Field(strict=True)]
Known = Annotated[Count | None, BeforeValidator(lambda v: None if isinstance(v, (int, float)) and not isinstance(v, bool) and v < 0 else v)]
"""A count that iperf3 may not have: left out, or below 0 in some versions."""
RECORD = "give the output of iperf3 -J or --json-stream"
FILE = Kind("a file of iperf3", RECORD, most=64 * MIB, error=InterchangeError)
SENDER, RECEIVER = "192.0.2.1", "192.0.2.2"
"""Addresses for documents (RFC 5737): a trial has none."""
PORT, FIRST_PORT = 5201, 49_152
"""iperf3's port; the first of the dynamic ports (RFC 6335)."""
BLOCK = 131_072
"""Bytes, iperf3's own default."""
NO_SAMPLES = "the trial has no samples: one interval for the whole; run with --samples 100ms for more"
ACKED = "an interval's bytes are those acknowledged in it, iperf3's are those handed to the socket"
ZEROS = "0 because not measured: cpu_utilization_percent, timestamp, sndbuf_actual, rcvbuf_actual"


class _Iperf3Object(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class StreamReport(_Iperf3Object):
    """A stream in an interval or at the end: bytes, s, µs."""

    socket: Socket | None = None
    start: Seconds = 0
    end: Seconds = 0
    bytes: Count = 0
    bits_per_second: Known = None
    retransmits: Known = None
    snd_cwnd: Known = None
    max_snd_cwnd: Known = None
    snd_wnd: Known = None
    rtt: Known = None
    rttvar: Known = None
    min_rtt: Known = None
    max_rtt: Known = None
    mean_rtt: Known = None
    omitted: Flag = False
    sender: Flag | None = None


class IntervalReport(_Iperf3Object):
    """An interval of all streams."""

    streams: tuple[StreamReport, ...] = ()


class Ends(_Iperf3Object):
    """A stream's two ends."""

    sender: StreamReport | None = None
    receiver: StreamReport | None = None


class End(_Iperf3Object):
    """The sums of a test."""

    streams: tuple[Ends, ...] = ()
    sender_tcp_congestion: Text | None = None
    receiver_tcp_congestion: Text | None = None


class Parameters(_Iperf3Object):
    """The parameters of the test."""

    protocol: Text = "TCP"
    target_bitrate: Known = None
    """What each stream may send at the most (-b), bit/s; 0 is without a limit."""


class Connection(_Iperf3Object):
    """The two ends of a stream."""

    socket: Socket | None = None
    local_host: Text = ""
    local_port: Annotated[int, Field(ge=0, le=65_535, strict=True)] = 0
    remote_host: Text = ""
    remote_port: Annotated[int, Field(ge=0, le=65_535, strict=True)] = 0


class Start(_Iperf3Object):
    """The test's conditions."""

    connected: tuple[Connection, ...] = ()
    version: Text = "iperf 3"
    tcp_mss: Known = None
    tcp_mss_default: Known = None
    test_start: Parameters = Parameters()
    accepted_connection: Any = None
    """Present in a server's document, which does not contain the client's measurements."""


class Iperf3Test(_Iperf3Object):
    """A test."""

    start: Start = Start()
    intervals: tuple[IntervalReport, ...] = ()
    end: End = End()
    error: Text | None = None
    title: Text | None = None
    extra_data: Annotated[str, Field(strict=True)] | None = None


def read(path: Path) -> ImportedFile:
    """The tests of a file, one trial each.

    :raises InterchangeError: for what is no iperf3 test of TCP, or one that ended before it measured anything.
    """
    return _imported(files.text(path, FILE), path)


def _imported(text: str, path: Path) -> ImportedFile:
    """The tests of a text; `path` is its name."""
    unknown: set[str] = set()
    trials = []
    for i, (document, broken) in enumerate(tests(text, path)):
        trial, missing = _trial(document, path, i, broken)
        trials.append(trial)
        unknown |= missing
    return ImportedFile(tuple(trials), frozenset(unknown))


def tests(text: str, path: Path) -> list[tuple[Iperf3Test, bool]]:
    """The tests of a text, each with whether its end is missing; `path` is the text's name.

    :raises InterchangeError: for what is no output of iperf3.
    """
    return [(documents.as_type(Iperf3Test, fields, Origin(str(path), FILE)), broken) for fields, broken in _documents(text, path)]


def _documents(text: str, path: Path) -> list[tuple[Any, bool]]:
    """The documents of a text, each with whether its end is missing."""
    values, broken = _values(text, path)
    whole = [v for v in values if isinstance(v, dict) and "start" in v]
    if whole and not broken:
        return [(v, False) for v in whole]
    events = [v for v in values if isinstance(v, dict) and "event" in v]
    if not events:
        refuse(path, "is not complete JSON" if broken else "has no iperf3 test in it", RECORD)
    return list(_tests(events))


def _values(text: str, path: Path) -> tuple[list[Any], bool]:
    """The JSON values of a text one after the other, and whether the last one breaks off."""
    values, broken = documents.json_values(text, Origin(str(path), FILE))
    if broken and (not values or text.find("\n", broken.begin) not in (-1, len(text) - 1)):
        refuse(path, f"is not JSON at line {broken.line}", RECORD)
    if not values and not broken:
        refuse(path, "is empty", RECORD)
    return values, broken is not None


def _tests(events: list[Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Documents as `-J` has them, from the events of `--json-stream`."""
    test: dict[str, Any] = {"intervals": []}
    for event in events:
        kind, data = str(event["event"]), event.get("data")
        if kind == "start" and ("start" in test or test["intervals"]):
            yield test, "end" not in test
            test = {"intervals": []}
        if kind == "interval":
            test["intervals"].append(data)
        elif kind in ("start", "end", "error"):
            test[kind] = data
    yield test, "end" not in test


def streams(document: Iperf3Test, path: Path) -> list[tuple[bool, int | None, Ends]]:
    """The streams of a test: whether the client sends, its socket, both ends.

    :raises InterchangeError: where it is no test of TCP, or measured nothing.
    """
    if document.start.test_start.protocol != "TCP":
        refuse(path, f"is a test of {document.start.test_start.protocol}, which no congestion control steers", "give a TCP test")
    found = list(_streams(document))
    if not found:
        refuse(path, f"measured nothing{f': {document.error}' if document.error else ''}", "repeat the measurement")
    return found


def _trial(document: Iperf3Test, path: Path, place: int, broken: bool) -> tuple[Trial, set[str]]:
    """A test as a trial, and the columns it does not know."""
    found = streams(document, path)
    own = base.read_provenance(_json(document.extra_data))
    caveats = [*own.get("caveats", ())]
    if document.error or broken:
        caveats.append(f"iperf3 did not end by itself: {document.error or 'the last events are missing'}")
    if len({s[0] for s in found}) > 1:
        found = [s for s in found if s[0]]
        caveats.append("test in both directions: only what the client sent is read")
    names = own.get("cca", ())
    read = [flow_of(document, socket, ends, names[i] if i < len(names) else None) for i, (_, socket, ends) in enumerate(found)]
    flows, unknown = [flow for flow, _ in read], set().union(*(missing for _, missing in read))
    caveats += _weaknesses(document, unknown)
    trial = Trial(
        scenario=own.get("scenario") or document.title or path.name,
        cca="+".join(sorted({f.cca for f in flows})),
        address=own.get("address") or hashlib.sha256(document.model_dump_json().encode()).hexdigest()[:24],
        seed=own.get("seed", place),
        engine=own.get("engine", "iperf3"),
        version=own.get("version", document.start.version),
        duration=max(f.stop_s for f in flows),
        flows=tuple(flows),
        caveats=tuple(caveats),
        samples=samples_of(document, [s[1] for s in found]),
    )
    return trial, unknown if own else unknown | {"seed"}


def _mss(start: Start) -> float | None:
    """Bytes of a segment, where the file says at least one."""
    return next((size for size in (start.tcp_mss, start.tcp_mss_default) if size is not None and size >= 1), None)


def _weaknesses(document: Iperf3Test, unknown: set[str]) -> Iterator[str]:
    if "bytes_received" in unknown:
        yield "what arrived was not reported: goodput is what the sender handed to its socket"
    if any(s.omitted for n in document.intervals for s in n.streams):
        yield "intervals that iperf3 was asked to omit are left out"


def _json(text: str | None) -> object:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def _streams(document: Iperf3Test) -> Iterator[tuple[bool, int | None, Ends]]:
    """Whether the client sends, the socket, and both ends: from the sums, or from the intervals where there are none."""
    if document.end.streams:
        for ends in document.end.streams:
            stream = ends.sender or ends.receiver
            if stream is not None:
                yield stream.sender is not False, stream.socket, ends
        return
    sockets = dict.fromkeys(s.socket for n in document.intervals for s in n.streams)
    for socket in sockets:
        intervals = [s for n in document.intervals for s in n.streams if s.socket == socket and not s.omitted]
        if intervals:
            counts = [s.retransmits for s in intervals if s.retransmits is not None]
            total = StreamReport(
                socket=socket,
                end=intervals[-1].end,
                bytes=min(MOST, sum(s.bytes for s in intervals)),
                retransmits=min(MOST, sum(counts)) if counts else None,
            )
            sends = intervals[0].sender is not False
            yield sends, socket, Ends(sender=total) if sends else Ends(receiver=total)


def flow_of(document: Iperf3Test, socket: int | None, ends: Ends, cca: str | None = None) -> tuple[FlowResult, set[str]]:
    """A stream as a flow, and the columns that are not known."""
    arrived = ends.receiver
    sent = ends.sender or StreamReport()
    if arrived is not None and not arrived.bytes and sent.bytes and (document.error or document.start.accepted_connection):
        arrived = None  # 0 because the other side never reported it
    counted = arrived or sent
    seconds = max(0.0, counted.end - counted.start)
    intervals = [s for n in document.intervals for s in n.streams if s.socket == socket and not s.omitted]
    mss = _mss(document.start)
    windows = [s.snd_cwnd / mss for s in intervals if s.snd_cwnd and mss]
    widest = max([*windows, sent.max_snd_cwnd / mss if sent.max_snd_cwnd and mss else 0])
    rtts = base.quantiles([s.rtt / 1e3 for s in intervals if s.rtt])
    whole = {"min": sent.min_rtt, "max": sent.max_rtt, "mean": sent.mean_rtt}
    unknown = {"limited_by", "retransmits"} if sent.retransmits is None else {"limited_by"}
    flow = FlowResult(
        cca=cca or document.end.sender_tcp_congestion or "unknown",
        goodput_mbps=(counted.bits_per_second if counted.bits_per_second is not None else counted.bytes * 8 / seconds if seconds else 0.0) / 1e6,
        seconds=seconds,
        start_s=counted.start,
        stop_s=counted.end,
        retransmits=int(sent.retransmits or 0),
        spurious_retransmits=None,
        rtt_ms=Rtt(**(rtts | {k: v / 1e3 for k, v in whole.items() if v})),
        cwnd=Cwnd(sum(windows) / len(windows) if windows else None, widest or None),
        limited_by={},
        bytes_received=int(counted.bytes),
        bytes_sent=int(sent.bytes) if ends.sender else None,
        established=bool(counted.bytes),
    )
    return flow, unknown if arrived else unknown | {"bytes_received"}


def samples_of(document: Iperf3Test, sockets: list[int | None]) -> pl.DataFrame | None:
    """The intervals as samples of flows: totals so far, windows in packets; None where there are none."""
    import polars as pl

    mss = _mss(document.start)
    rows = []
    for flow, socket in enumerate(sockets):
        total, retransmits = 0.0, 0.0
        for s in (s for n in document.intervals for s in n.streams if s.socket == socket and not s.omitted):
            total, retransmits = min(MOST, total + s.bytes), min(MOST, retransmits + (s.retransmits or 0))
            rows.append(
                {
                    "t_ns": round(s.end * 1e9),
                    "flow": flow,
                    "bytes_sent" if s.sender is not False else "bytes_received": round(total),
                    "cwnd": s.snd_cwnd / mss if s.snd_cwnd and mss else None,
                    "srtt_us": s.rtt or None,
                    "rttvar_us": s.rttvar,
                    "retransmits": retransmits if s.retransmits is not None else None,
                    "rwnd": s.snd_wnd,
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None).sort("t_ns", "flow") if rows else None


def write(trial: Trial, mtu: int = base.MTU) -> bytes:
    """The document; `mtu` is the path's, bytes. Refuses a trial without flows: a measurement of iperf3 is one of them."""
    if not trial.flows:
        raise InterchangeError("iperf3: the trial has no flows, and a measurement of iperf3 is made of them; export it to csv")
    intervals = list(_intervals(trial, mtu))
    sampled = bool(intervals)
    intervals = intervals or [_whole(trial, mtu)]
    extra = {**base.provenance(trial), "notes": [ACKED if sampled else NO_SAMPLES, ZEROS]}
    document = {
        "start": _start(trial, mtu),
        "intervals": intervals,
        "end": _end(trial, mtu),
        "title": f"{trial.scenario} {trial.cca} seed {trial.seed}",
        "extra_data": json.dumps(extra, ensure_ascii=False),
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def socket_number(flow: int) -> int:
    """The number of a flow's socket as iperf3 counts them: 5, 7, 9, …"""
    return 5 + 2 * flow


def _start(trial: Trial, mtu: int) -> dict[str, Any]:
    from tcpscape import __version__

    ends = {"local_host": SENDER, "remote_host": RECEIVER, "remote_port": PORT}
    return {
        "connected": [{"socket": socket_number(i), "local_port": FIRST_PORT + i, **ends} for i in range(len(trial.flows))],
        "version": f"iperf 3.12 schema, tcpscape {__version__}",
        "system_info": f"tcpscape {trial.engine} {trial.kernel or trial.version}",
        "timestamp": {"time": "Thu, 01 Jan 1970 00:00:00 GMT", "timesecs": 0},
        "connecting_to": {"host": RECEIVER, "port": PORT},
        "cookie": trial.address,
        "tcp_mss_default": mtu - base.HEADERS,
        "target_bitrate": 0,
        "sock_bufsize": 0,
        "sndbuf_actual": 0,
        "rcvbuf_actual": 0,
        "test_start": {
            "protocol": "TCP",
            "num_streams": len(trial.flows),
            "blksize": BLOCK,
            "omit": 0,
            "duration": round(trial.duration),
            "bytes": 0,
            "blocks": 0,
            "reverse": 0,
            "tos": 0,
            "target_bitrate": 0,
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
        "socket": socket_number(flow),
        "start": begin,
        "end": end,
        "seconds": end - begin,
        "bytes": round(rate * (end - begin)),
        "bits_per_second": rate * 8,
        "retransmits": retransmits,
        "omitted": False,
        "sender": True,
    }


def _tcp_info(row: dict[str, Any], mtu: int) -> dict[str, Any]:
    """Window in bytes, RTT in µs, as of the interval's end."""
    return {
        "snd_cwnd": round((row.get("cwnd") or 0) * (mtu - base.HEADERS)),
        "snd_wnd": int(row.get("rwnd") or 0),
        "rtt": round(row.get("srtt_us") or 0),
        "rttvar": round(row.get("rttvar_us") or 0),
        "pmtu": mtu,
    }


def _sum(streams: list[dict[str, Any]]) -> dict[str, Any]:
    """The streams of an interval together."""
    begin, end = min(s["start"] for s in streams), max(s["end"] for s in streams)
    size = sum(s["bytes"] for s in streams)
    return {
        "start": begin,
        "end": end,
        "seconds": end - begin,
        "bytes": size,
        "bits_per_second": size * 8 / (end - begin) if end > begin else 0.0,
        "retransmits": sum(s["retransmits"] for s in streams),
        "omitted": False,
        "sender": True,
    }


def _end(trial: Trial, mtu: int) -> dict[str, Any]:
    streams = [{"sender": _sender(i, f, mtu), "receiver": _receiver(i, f)} for i, f in enumerate(trial.flows)]
    names = "+".join(sorted({spelling.name_of(f.cca) for f in trial.flows}))
    cpu = {f"{side}_{kind}": 0.0 for side in ("host", "remote") for kind in ("total", "user", "system")}
    sent = _total([s["sender"] for s in streams])
    return {
        "streams": streams,
        "sum_sent": sent | {"retransmits": sum(f.retransmits for f in trial.flows)},
        "sum_received": _total([s["receiver"] for s in streams]),
        "cpu_utilization_percent": cpu,
        "sender_tcp_congestion": names,
        "receiver_tcp_congestion": names,
    }


def _sender(i: int, f: FlowResult, mtu: int) -> dict[str, Any]:
    sent = f.bytes_sent if f.bytes_sent is not None else f.bytes_received
    return {
        **_times(i, f),
        "bytes": sent,
        "bits_per_second": sent * 8 / f.seconds if f.seconds else 0.0,
        "retransmits": f.retransmits,
        "max_snd_cwnd": round((f.cwnd.max or 0) * (mtu - base.HEADERS)),
        "max_snd_wnd": f.max_rwnd or 0,
        "max_rtt": round((f.rtt_ms.max or 0) * 1e3),
        "min_rtt": round((f.rtt_ms.min or 0) * 1e3),
        "mean_rtt": round((f.rtt_ms.mean or 0) * 1e3),
        "sender": True,
    }


def _receiver(i: int, f: FlowResult) -> dict[str, Any]:
    return {**_times(i, f), "bytes": f.bytes_received, "bits_per_second": f.goodput_mbps * 1e6, "sender": True}


def _times(i: int, f: FlowResult) -> dict[str, Any]:
    return {"socket": socket_number(i), "start": f.start_s, "end": f.start_s + f.seconds, "seconds": f.seconds}


def _total(ends: list[dict[str, Any]]) -> dict[str, Any]:
    begin, end = min(e["start"] for e in ends), max(e["end"] for e in ends)
    size = sum(e["bytes"] for e in ends)
    rate = size * 8 / (end - begin) if end > begin else 0.0
    return {"start": begin, "end": end, "seconds": end - begin, "bytes": size, "bits_per_second": rate, "sender": True}
