"""Flent's data files (`.flent`, `.flent.gz`, `.flent.bz2`): read as a trial with samples (format versions 2 to 4), and written (version 4).

Source: the files themselves (JSON with `metadata`, `x_values`, `results`, `raw_values`, `version`) and Flent's documentation of them. Throughputs
are Mbit/s of netperf's sending side at each step, RTTs in ms, windows in packets, as Flent samples them with ss.

Flent plots a file written here as one of its own: `tcp_1up`, or `tcp_nup` for several flows. Flent waits 5 s before and after its flows, and its
plots cut those off; so the flows start at 5 s here, and nothing is known before. `Ping (ms) ICMP` is there only if it was measured: the simulated
paths have no ping. The time is 1970 plus the trial's: a trial has no date.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tcpscape.controls import spelling
from tcpscape.errors import printable
from tcpscape.interchange import base
from tcpscape.interchange.base import LONGEST_TEXT, ImportedFile, InterchangeError, refuse
from tcpscape.metrics.flows import jain_index
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
FILE = Kind("a data file of Flent's", RERUN, most=64 * MIB, most_unpacked=128 * MIB, error=InterchangeError)
Series = Sequence[float | None]
Rates = Sequence[tuple[float, float, float]]
"""Begin s, end s, bytes a second."""
VERSION = 4
"""Of the file format."""
DELAY = 5.0
"""s that Flent waits before and after its flows (its setting DELAY)."""
COMPUTED_SERIES: Mapping[str, Mapping[str, Any]] = {
    "TCP upload sum": {"UNITS": "Mbits/s"}, "TCP upload avg": {"UNITS": "Mbits/s"}, "TCP upload fairness": {"UNITS": "Idx"},
}
"""Series that Flent computes of several flows."""
MOST_STEPS = 1_000_000
"""A day in steps of 0.1 s."""
EPOCH = "1970-01-01T00:00:00.000000Z"


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
    shift = _head(data.metadata)
    flows = tuple(_flow(data, name, shift, own["cca"][i] if i < len(own.get("cca", ())) else None) for i, name in enumerate(names))
    if any(not _meta(data, n).get("BYTES_RECVD") for n in names):
        caveats.append("what arrived was not reported: goodput is the mean of the steps' throughput")
    trial = Trial(
        scenario=own.get("scenario") or _text(data.metadata.get("TITLE")) or _text(data.metadata.get("NAME")) or path.name,
        cca="+".join(sorted({f.cca for f in flows})), address=own.get("address") or hashlib.sha256(data.model_dump_json().encode()).hexdigest()[:24],
        seed=own.get("seed", 0), engine=own.get("engine", "flent"), version=own.get("version", _text(data.metadata.get("FLENT_VERSION"))),
        duration=max(f.stop_s for f in flows), flows=flows, caveats=(*own.get("caveats", ()), *caveats), samples=_samples(data, names, shift),
    )
    return ImportedFile((trial,), frozenset({"limited_by"} if own else {"limited_by", "seed"}) | _missing_columns(data, names))


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
        cca=cca or _text(meta.get("CONG_CONTROL")) or "unknown", goodput_mbps=goodput, seconds=seconds, start_s=begin, stop_s=begin + seconds,
        retransmits=int(_number(meta, "TCPI_TOTAL_RETRANS") or 0), spurious_retransmits=None, rtt_ms=Rtt(**base.quantiles(rtts)),
        cwnd=Cwnd(sum(windows) / len(windows) if windows else None, max(windows, default=None)),
        limited_by={}, bytes_received=int(arrived or min(COUNTED, goodput * 1e6 / 8 * seconds)),
        bytes_sent=int(sent) if sent is not None else None, established=goodput > 0,
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


@dataclass(frozen=True, slots=True)
class _FlowSeries:
    """A flow's values at each step."""

    name: str
    values: dict[str, list[float | None]]
    """By Flent's name of each (`tcp_rtt`), `val` the throughput."""


def write(trial: Trial, mtu: int = base.MTU) -> bytes:
    """The file, compressed; `mtu` is the path's, bytes. Refuses a trial without samples: a data file is its series."""
    samples = trial.samples
    rates, known = base.throughputs(samples), base.by_flow(samples)
    if samples is None or not rates:
        raise InterchangeError("flent: the trial has no samples, and a Flent file is made of them; run with --samples 100ms --out DIR")
    step = base.interval(samples) / 1e9
    steps = round((trial.duration + 2 * DELAY) / step)
    if steps > MOST_STEPS:
        raise InterchangeError(f"flent: {steps} steps of {step:g} s are more than {MOST_STEPS}; sample less often")
    x_values = [round(i * step, 9) for i in range(steps + 1)]
    names = ["TCP upload"] if len(trial.flows) == 1 else [f"TCP upload::{i + 1}" for i in range(len(trial.flows))]
    flows = [_series(name, rates.get(i, []), known.get(i), (len(x_values), step)) for i, name in enumerate(names)]
    results = {s.name if key == "val" else f"{s.name}::{key}": v for s in flows for key, v in s.values.items()}
    if len(flows) > 1:
        results |= _sums([s.values["val"] for s in flows])
    raw = {s.name: _raw_values(s, x_values, step) for s in flows}
    if "ping_ms" in samples.columns:
        results[PING] = _ping(trial, x_values, step)
        raw[PING] = [{"t": x, "val": v} for x, v in zip(x_values, results[PING], strict=True) if v is not None]
    document = {
        "metadata": _metadata(trial, flows, mtu, step), "version": VERSION, "x_values": x_values, "results": results, "raw_values": raw,
    }
    return gzip.compress(json.dumps(document, indent=1, sort_keys=True, allow_nan=False).encode(), mtime=0)


def _series(name: str, rates: Rates, samples: pl.DataFrame | None, grid: tuple[int, float]) -> _FlowSeries:
    """A flow on the grid of steps (how many, s); None where it has no sample."""
    n, step = grid
    values: dict[str, list[float | None]] = {"val": [None] * n}
    for _, end, rate in rates:
        values["val"][_place(end, step, n)] = rate * 8 / 1e6
    for theirs, ours, factor in COLUMNS:
        if samples is not None and ours in samples.columns:
            values[theirs] = [None] * n
            for t_ns, v in samples.select("t_ns", ours).drop_nulls().iter_rows():
                if v < base.UNLIMITED:
                    values[theirs][_place(t_ns / 1e9, step, n)] = v / factor
    return _FlowSeries(name, values)


def _place(t: float, step: float, n: int) -> int:
    """The step that a time of the trial, s, belongs to."""
    return min(n - 1, round((t + DELAY) / step))


def _sums(each: Sequence[Sequence[float | None]]) -> dict[str, list[float | None]]:
    """Sum, mean and Jain's fairness index of the flows at each step, as Flent computes them."""
    total: list[float | None] = []
    mean: list[float | None] = []
    fair: list[float | None] = []
    for step in zip(*each, strict=True):
        known = [v for v in step if v is not None]
        total.append(sum(known) if known else None)
        mean.append(sum(known) / len(known) if known else None)
        fair.append(jain_index(known) if any(known) else None)
    return {"TCP upload sum": total, "TCP upload avg": mean, "TCP upload fairness": fair}


def _raw_values(series: _FlowSeries, x_values: Sequence[float], step: float) -> list[dict[str, float]]:
    """The measurements at each step that has any."""
    steps = []
    for i, t in enumerate(x_values):
        known = {key: v for key, values in series.values.items() if (v := values[i]) is not None}
        if known:
            steps.append({"t": t, "dur": step, **known})
    return steps


def _ping(trial: Trial, x_values: Sequence[float], step: float) -> list[float | None]:
    values: list[float | None] = [None] * len(x_values)
    if trial.samples is not None:
        for t_ns, v in trial.samples.select("t_ns", "ping_ms").drop_nulls().iter_rows():
            values[_place(t_ns / 1e9, step, len(values))] = v
    return values


def _metadata(trial: Trial, flows: Sequence[_FlowSeries], mtu: int, step: float) -> Mapping[str, Any]:
    from tcpscape import __version__

    single = len(flows) == 1
    name, title = "tcp_1up" if single else "tcp_nup", f"{trial.scenario} {trial.cca} seed {trial.seed}"
    series = {s.name: _flow_meta(f, mtu, i) for i, (s, f) in enumerate(zip(flows, trial.flows, strict=True))}
    series |= {} if single else COMPUTED_SERIES
    return {
        "NAME": name, "TITLE": title, "HOST": "receiver", "HOSTS": ["receiver"], "LOCAL_HOST": "sender", "IP_VERSION": 4,
        "TIME": EPOCH, "T0": EPOCH, "LENGTH": trial.duration, "TOTAL_LENGTH": trial.duration + 2 * DELAY, "STEP_SIZE": step,
        "DATA_FILENAME": f"{name}-{trial.address}.flent.gz", "TEST_PARAMETERS": {} if single else {"upload_streams": str(len(flows))},
        "FLENT_VERSION": f"tcpscape {__version__}", "FAILED_RUNNERS": 0, "BATCH_NAME": None, "BATCH_TIME": None, "BATCH_TITLE": None,
        "BATCH_UUID": None, "HTTP_GETTER_DNS": None, "HTTP_GETTER_URLLIST": None, "HTTP_GETTER_WORKERS": 4, "REMOTE_METADATA": {},
        "KERNEL_NAME": "Linux" if trial.kernel else trial.engine, "KERNEL_RELEASE": trial.kernel or trial.version,
        "NOTE": "; ".join(trial.caveats) or None, "SERIES_META": series, "TCPSCAPE": base.provenance(trial),
    }


def _flow_meta(f: FlowResult, mtu: int, place: int) -> Mapping[str, Any]:
    """What netperf says of a flow at its end."""
    return {
        "UNITS": "Mbits/s", "RUNNER": "tcpscape", "IDX": place, "CONG_CONTROL": spelling.name_of(f.cca), "MEAN_VALUE": f.goodput_mbps,
        "BYTES_RECVD": f.bytes_received, "BYTES_SENT": f.bytes_sent, "ELAPSED_TIME": f.seconds, "START_TIME": f.start_s,
        "TCP_MSS": mtu - base.HEADERS, "TCPI_PMTU": mtu, "TCPI_TOTAL_RETRANS": f.retransmits, "TCP_RETRANSMIT": str(f.retransmits),
    }
