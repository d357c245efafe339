"""Flent's data files (`.flent`, `.flent.gz`, `.flent.bz2`), read as a trial with samples (format versions 2 to 4).

Source: the files themselves (JSON with `metadata`, `x_values`, `results`, `raw_values`, `version`) and Flent's documentation of them. Throughputs
are Mbit/s of netperf's sending side at each step, RTTs in ms, windows in packets, as Flent samples them with ss. How a trial is written:
:mod:`tcpscape.interchange.flent_writing`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tcpscape.errors import printable
from tcpscape.interchange import base
from tcpscape.interchange.base import LONGEST_TEXT, ImportedFile, InterchangeError, refuse
from tcpscape.reading import documents, files
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.trial import Cwnd, FlowResult, Rtt, Trial

if TYPE_CHECKING:
    import polars as pl

PING = "Ping (ms) ICMP"
"""Flent's name for ping's round-trip times, ms."""
COMPUTED_ENDS = ("sum", "avg", "fairness", "totals")
"""Ends of the series that Flent computes of others."""
COLUMNS = (
    ("tcp_cwnd", "cwnd", 1.0),
    ("tcp_rtt", "srtt_us", 1e3),
    ("tcp_rtt_var", "rttvar_us", 1e3),
    ("tcp_delivery_rate", "delivery_rate", 1e6 / 8),
    ("tcp_pacing_rate", "pacing_rate", 1e6 / 8),
)
"""Flent's series (packets, ms, Mbit/s), ours (packets, µs, B/s), the factor."""
LONGEST = 1e7
"""s: four months, longer than any test."""
MOST = 1e9
"""Mbit/s, ms, packets: more than anybody measures."""
COUNTED = 1e18
"""Most bytes."""
RERUN = "give a data file that Flent wrote"
FILE = Kind("a data file of Flent's", RERUN, most=64 * MIB, most_unpacked=128 * MIB, error=InterchangeError)
Series = Sequence[float | None]


class FlentData(BaseModel):
    """A data file."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    metadata: dict[str, Any]
    version: Annotated[int, Field(ge=1, strict=True)]
    x_values: tuple[Annotated[float, Field(ge=0, le=LONGEST, strict=True)], ...]
    results: dict[str, tuple[Annotated[float, Field(ge=-MOST, le=MOST, strict=True)] | None, ...]]


def read(path: Path) -> ImportedFile:
    """The flows of a test as one trial.

    :raises InterchangeError: for what is no data file of Flent's, or one without TCP flows.
    """
    return trial_of(_read_data(path), path)


def trial_of(data: FlentData, path: Path) -> ImportedFile:
    """The flows of a test that was read from `path`. :raises InterchangeError: where it has no TCP flow."""
    ups, downs = _flows(data, "TCP upload"), _flows(data, "TCP download")
    names, caveats = ups or downs, []
    if not names:
        series = ", ".join(n for n in data.results if "::tcp_" not in n) or "none"
        refuse(path, f"has no TCP flow among its series ({series})", "give a test with TCP upload or TCP download")
    if ups and downs:
        caveats.append(f"test in both directions: the {len(downs)} downloads are left out")
    own = base.read_provenance(data.metadata.get("TCPSCAPE"))
    ccas = _ccas(data, own.get("cca", ()), names) if own else {}
    shift = _head(data.metadata)
    flows = tuple(_flow(data, name, shift, ccas.get(name)) for name in names)
    if any(not _meta(data, n).get("BYTES_RECVD") for n in names):
        caveats.append("what arrived was not reported: goodput is the mean of the steps' throughput")
    trial = Trial(
        scenario=own.get("scenario") or _text(data.metadata.get("TITLE")) or _text(data.metadata.get("NAME")) or path.name,
        cca="+".join(sorted({f.cca for f in flows})),
        address=own.get("address") or hashlib.sha256(data.model_dump_json().encode()).hexdigest()[:24],
        seed=own.get("seed", 0),
        engine=own.get("engine", "flent"),
        version=own.get("version", _text(data.metadata.get("FLENT_VERSION"))),
        duration=max(f.stop_s for f in flows),
        flows=flows,
        caveats=(*own.get("caveats", ()), *caveats),
        samples=_samples(data, names, shift),
    )
    return ImportedFile((trial,), frozenset({"limited_by"} if own else {"limited_by", "seed"}) | _missing_columns(data, names))


def _ccas(data: FlentData, ccas: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The congestion control of each flow as tcpscape wrote it, `cubic:hystart=0`: by the flow's place among all, which its series tells."""
    places = {name: _number(_meta(data, name), "IDX") for name in names}
    return {name: ccas[int(place)] for name, place in places.items() if place is not None and place < len(ccas)}


def idle_pings(path: Path) -> list[float]:
    """Round-trip times of ping before the flows of a test begin, ms.

    :raises InterchangeError: for what is no data file of Flent's.
    """
    return pings_before(_read_data(path))


def pings_before(data: FlentData) -> list[float]:
    """The same of a test that was read."""
    shift = _head(data.metadata)
    return [v for x, v in zip(data.x_values, data.results.get(PING, ()), strict=False) if v is not None and x < shift]


def _read_data(path: Path) -> FlentData:
    return data_of(files.text(path, FILE), path)


def data_of(text: str, path: Path) -> FlentData:
    """A data file's content; `path` is its name. :raises InterchangeError: one line, for what is no data file of Flent's."""
    origin = Origin(str(path), FILE)
    values, broken = documents.json_values(text, origin)
    if broken or len(values) != 1:
        origin.refuse(f"is damaged, or not JSON: line {broken.line if broken else 1}")
    data = documents.as_type(FlentData, values[0], origin)
    if short := [n for n, values in data.results.items() if len(values) != len(data.x_values)]:
        refuse(path, f"series {short[0]!r} has {len(data.results[short[0]])} values at {len(data.x_values)} times", RERUN)
    if any(b <= a for a, b in pairwise(data.x_values)):
        refuse(path, "x_values do not increase", RERUN)
    return data


def _flows(data: FlentData, way: str) -> list[str]:
    """Series of single flows: `TCP upload`, `TCP upload::2`, `TCP upload BE`; not their sums, nor the series of ss."""
    return [n for n in data.results if n.startswith(way) and "::tcp_" not in n and not n.endswith(COMPUTED_ENDS)]


def _head(metadata: Mapping[str, Any]) -> float:
    """Seconds before the flows start, in which Flent measures the idle path: it waits as long before as after."""
    total, length = _number(metadata, "TOTAL_LENGTH"), _number(metadata, "LENGTH")
    return max(0.0, (total - length) / 2) if total is not None and length is not None else 0.0


def _meta(data: FlentData, name: str) -> Mapping[str, Any]:
    all_series = data.metadata.get("SERIES_META")
    series = all_series.get(name) if isinstance(all_series, dict) else None
    return series if isinstance(series, dict) else {}


def _missing_columns(data: FlentData, names: Sequence[str]) -> frozenset[str]:
    """Columns of the flows that the file does not contain."""
    meta = [_meta(data, n) for n in names]
    return frozenset({"retransmits"} if any(_number(m, "TCPI_TOTAL_RETRANS") is None for m in meta) else set()) | frozenset(
        {"bytes_received"} if any(_number(m, "BYTES_RECVD") is None for m in meta) else set()
    )


def _text(value: object) -> str:
    """A text of a file in one line without control characters; empty for anything else."""
    return printable(value[:LONGEST_TEXT]) if isinstance(value, str) else ""


def _number(meta: Mapping[str, Any], key: str) -> float | None:
    """A number that Flent may have kept as text; None where there is none that could have been counted."""
    try:
        value = math.nan if isinstance(meta[key], bool) else float(meta[key])
    except (KeyError, TypeError, ValueError):
        return None
    return value if 0 <= value <= COUNTED else None


def _flow(data: FlentData, name: str, shift: float, cca: str | None) -> FlowResult:
    meta, steps = _meta(data, name), data.results[name]
    seen = [(x, v) for x, v in zip(data.x_values, steps, strict=True) if v is not None]
    step = data.x_values[1] - data.x_values[0] if len(data.x_values) > 1 else 0.0
    start = _number(meta, "START_TIME")
    begin = start if start is not None else max(0.0, seen[0][0] - shift) if seen else 0.0
    arrived, seconds = _number(meta, "BYTES_RECVD"), _number(meta, "ELAPSED_TIME")
    if arrived and seconds:
        goodput = arrived * 8 / seconds / 1e6
    else:
        seconds = len(seen) * step
        goodput = sum(v for _, v in seen) / len(seen) if seen else 0.0
    rtts = [v for v in data.results.get(f"{name}::tcp_rtt", ()) if v is not None]
    windows = [v for v in data.results.get(f"{name}::tcp_cwnd", ()) if v is not None]
    sent = _number(meta, "BYTES_SENT")
    return FlowResult(
        cca=cca or _text(meta.get("CONG_CONTROL")) or "unknown",
        goodput_mbps=goodput,
        seconds=seconds,
        start_s=begin,
        stop_s=begin + seconds,
        retransmits=int(_number(meta, "TCPI_TOTAL_RETRANS") or 0),
        spurious_retransmits=None,
        rtt_ms=Rtt(**base.quantiles(rtts)),
        cwnd=Cwnd(sum(windows) / len(windows) if windows else None, max(windows, default=None)),
        limited_by={},
        bytes_received=int(arrived or min(COUNTED, goodput * 1e6 / 8 * seconds)),
        bytes_sent=int(sent) if sent is not None else None,
        established=goodput > 0,
    )


def _samples(data: FlentData, names: Sequence[str], shift: float) -> pl.DataFrame | None:
    """The steps as samples: bytes so far, window, RTT, rates; ping's RTT (`ping_ms`) on each row where it was measured."""
    import polars as pl

    rows = []
    pings: Series = data.results.get(PING, (None,) * len(data.x_values))
    for flow, name in enumerate(names):
        total, before = 0.0, 0.0
        of = [(ours, data.results.get(f"{name}::{theirs}"), factor) for theirs, ours, factor in COLUMNS]
        for k, x in enumerate(data.x_values):
            step, before = x - before, x
            rate = data.results[name][k]
            if x < shift or rate is None:
                continue
            total = min(COUNTED, total + rate * 1e6 / 8 * step)
            row: dict[str, Any] = {"t_ns": round((x - shift) * 1e9), "flow": flow, "bytes_sent": round(total)}
            row |= {ours: v * factor if values and (v := values[k]) is not None else None for ours, values, factor in of}
            rows.append(row | {"ping_ms": pings[k]})
    return pl.DataFrame(rows, infer_schema_length=None).sort("t_ns", "flow") if rows else None
