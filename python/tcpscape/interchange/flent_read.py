"""Flent's data files (`.flent`, `.flent.gz`, `.flent.bz2`, format versions 2 to 4): its TCP flows as a trial with samples.

Source: the files themselves (JSON with `metadata`, `x_values`, `results`, `raw_values`, `version`) and Flent's documentation of them. Throughputs
are Mbit/s of netperf's sending side at each step, RTTs in ms, windows in packets, as Flent samples them with ss.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tcpscape.interchange import base
from tcpscape.interchange.base import ImportedFile, refuse
from tcpscape.trial import Cwnd, FlowResult, Rtt, Trial

if TYPE_CHECKING:
    import polars as pl

PING = "Ping (ms) ICMP"
"""Flent's name for ping's round-trip times, ms."""
COMPUTED = ("sum", "avg", "fairness", "totals")
"""Ends of the series that Flent computes of others."""
COLUMNS = (
    ("tcp_cwnd", "cwnd", 1.0), ("tcp_rtt", "srtt_us", 1e3), ("tcp_rtt_var", "rttvar_us", 1e3),
    ("tcp_delivery_rate", "delivery_rate", 1e6 / 8), ("tcp_pacing_rate", "pacing_rate", 1e6 / 8),
)
"""Flent's series (packets, ms, Mbit/s), ours (packets, µs, B/s), the factor."""
LONGEST = 1e7
"""s: four months, longer than any test."""
MOST = 1e9
"""Mbit/s, ms, packets: more than anybody measures."""
COUNTED = 1e18
"""Most bytes."""
RERUN = "give a data file that Flent wrote"
Series = Sequence[float | None]


class FlentData(BaseModel):
    """A data file."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    metadata: dict[str, Any]
    version: int = Field(ge=1)
    x_values: tuple[Annotated[float, Field(ge=0, le=LONGEST)], ...]
    results: dict[str, tuple[Annotated[float, Field(ge=-MOST, le=MOST)] | None, ...]]


def read(path: Path) -> ImportedFile:
    """The flows of a test as one trial.

    :raises InterchangeError: for what is no data file of Flent's, or one without TCP flows.
    """
    data = _read_data(path)
    ups, downs = _flows(data, "TCP upload"), _flows(data, "TCP download")
    names, caveats = ups or downs, []
    if not names:
        series = ", ".join(n for n in data.results if "::tcp_" not in n) or "none"
        refuse(path, f"has no TCP flow among its series ({series})", "give a test with TCP upload or TCP download")
    if ups and downs:
        caveats.append(f"test in both directions: the {len(downs)} downloads are left out")
    own = base.read_provenance(data.metadata.get("TCPSCAPE"))
    shift = _head(data.metadata)
    flows = tuple(_flow(data, name, shift, own["cca"][i] if i < len(own.get("cca", ())) else None) for i, name in enumerate(names))
    if any(not _meta(data, n).get("BYTES_RECVD") for n in names):
        caveats.append("what arrived was not reported: goodput is the mean of the steps' throughput")
    trial = Trial(
        scenario=own.get("scenario") or str(data.metadata.get("TITLE") or data.metadata.get("NAME") or path.name),
        cca="+".join(sorted({f.cca for f in flows})), address=own.get("address") or hashlib.sha256(data.model_dump_json().encode()).hexdigest()[:24],
        seed=own.get("seed", 0), engine=own.get("engine", "flent"), version=own.get("version", str(data.metadata.get("FLENT_VERSION", ""))),
        duration=max(f.stop_s for f in flows), flows=flows, caveats=(*own.get("caveats", ()), *caveats), samples=_samples(data, names, shift),
    )
    return ImportedFile((trial,), frozenset({"limited_by"} if own else {"limited_by", "seed"}) | _missing_columns(data, names))


def _read_data(path: Path) -> FlentData:
    raw = base.content(path)
    try:
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else bz2.decompress(raw) if raw[:3] == b"BZh" else raw
        data = FlentData.model_validate(json.loads(raw))
    except (EOFError, OSError, zlib.error, ValueError) as e:  # a pydantic error is a ValueError
        field = ".".join(map(str, e.errors()[0]["loc"])) if isinstance(e, ValidationError) else ""
        refuse(path, f"is not Flent's data: {f'field {field} is missing or of another kind' if field else 'damaged, or not JSON'}", RERUN)
    if short := [n for n, values in data.results.items() if len(values) != len(data.x_values)]:
        refuse(path, f"series {short[0]!r} has {len(data.results[short[0]])} values at {len(data.x_values)} times", RERUN)
    if any(b <= a for a, b in pairwise(data.x_values)):
        refuse(path, "x_values do not increase", RERUN)
    return data


def _flows(data: FlentData, way: str) -> list[str]:
    """Series of single flows: `TCP upload`, `TCP upload::2`, `TCP upload BE`; not their sums, nor the series of ss."""
    return [n for n in data.results if n.startswith(way) and "::tcp_" not in n and not n.endswith(COMPUTED)]


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


def _number(meta: Mapping[str, Any], key: str) -> float | None:
    """A number that Flent may have kept as text; None where there is none that could have been counted."""
    try:
        value = float(meta[key])
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
        cca=cca or str(meta.get("CONG_CONTROL") or "unknown"), goodput_mbps=goodput, seconds=seconds, start_s=begin, stop_s=begin + seconds,
        retransmits=int(_number(meta, "TCPI_TOTAL_RETRANS") or 0), spurious_retransmits=None, rtt_ms=Rtt(**base.quantiles(rtts)),
        cwnd=Cwnd(sum(windows) / len(windows) if windows else None, max(windows, default=None)), limited_by={},
        bytes_received=int(arrived or goodput * 1e6 / 8 * seconds), bytes_sent=int(sent) if sent is not None else None, established=goodput > 0,
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
            total += rate * 1e6 / 8 * step
            row: dict[str, Any] = {"t_ns": round((x - shift) * 1e9), "flow": flow, "bytes_sent": round(total)}
            row |= {ours: v * factor if values and (v := values[k]) is not None else None for ours, values, factor in of}
            rows.append(row | {"ping_ms": pings[k]})
    return pl.DataFrame(rows, infer_schema_length=None).sort("t_ns", "flow") if rows else None
