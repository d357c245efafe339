"""Flent's data files (`.flent`, `.flent.gz`, `.flent.bz2`), read as a trial with samples (format versions 2 to 4), and written (version 4).

Source: the files themselves (JSON with `metadata`, `x_values`, `results`, `raw_values`, `version`) and Flent's documentation of them. Throughputs
are Mbit/s of netperf's sending side at each step, RTTs in ms, windows in packets, as Flent samples them with ss.

A trial with samples becomes a test whose plots Flent draws as of its own. Flent waits 5 s before and after its flows, and its plots cut those off; so
the flows start at 5 s here, and nothing is known before. Pings are there where the trial has probes that measure round trips and kept their samples.
The time is 1970 plus the trial's: a trial has no date.
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
import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpscape.controls import spelling
from tcpscape.trial import LOST

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
    """The flows of a test as one trial. :raises InterchangeError: for what is no data file of Flent's, or one without TCP flows."""
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
    """Round-trip times of ping before the flows of a test begin, ms. :raises InterchangeError: for what is no data file of Flent's."""
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


VERSION = 4
"""Of the file format."""
MOST_STEPS = 1_000_000
"""A day in steps of 0.1 s."""
EPOCH = "1970-01-01T00:00:00.000000Z"


def write(trial: Trial, mtu: int = base.MTU) -> bytes:
    """The file, compressed; `mtu` is the path's, bytes. Refuses a trial without samples: a data file is its series."""
    samples = trial.samples
    rates, known = base.throughputs(samples), base.by_flow(samples)
    if samples is None or not rates:
        raise InterchangeError("flent: the trial has no samples, and a Flent file is made of them; run with --samples 100ms --out DIR")
    grid, test = _grid(trial, base.interval(samples) / 1e9), test_of(trial.flows)
    flows = [flow(name, rates.get(i, []), known.get(i), grid) for i, name in enumerate(test.flows)]
    delays, raw_pings = pings(trial, grid)
    results = {s.name if key == "val" else f"{s.name}::{key}": v for s in flows for key, v in s.values.items()}
    results |= computed(test, flows) | delays
    raw: dict[str, Any] = {s.name: _raw_values(s, grid) for s in flows} | raw_pings
    document = {
        "metadata": _metadata(trial, test, mtu, grid, results),
        "version": VERSION,
        "x_values": grid.times,
        "results": results,
        "raw_values": raw,
    }
    return gzip.compress(json.dumps(document, indent=1, sort_keys=True, allow_nan=False).encode(), mtime=0)


def _grid(trial: Trial, step: float) -> Grid:
    steps = round((trial.duration + 2 * DELAY) / step)
    if steps > MOST_STEPS:
        raise InterchangeError(f"flent: {steps} steps of {step:g} s are more than {MOST_STEPS}; sample less often")
    return Grid(steps + 1, step)


def _raw_values(series: FlowSeries, grid: Grid) -> list[dict[str, float]]:
    """The measurements at each step that has any."""
    steps = []
    for i, t in enumerate(grid.times):
        known = {key: v for key, values in series.values.items() if (v := values[i]) is not None}
        if known:
            steps.append({"t": t, "dur": grid.step, **known})
    return steps


def _metadata(trial: Trial, test: Test, mtu: int, grid: Grid, results: Mapping[str, Sequence[float | None]]) -> Mapping[str, Any]:
    from tcpscape import __version__

    name, title = test.name, f"{trial.scenario} {trial.cca} seed {trial.seed}"
    series = {s: _flow_meta(f, mtu, i) for i, (s, f) in enumerate(zip(test.flows, trial.flows, strict=True))}
    computed = units(s for s in results if s not in test.flows)
    return {
        "NAME": name,
        "TITLE": title,
        "HOST": "receiver",
        "HOSTS": ["receiver"],
        "LOCAL_HOST": "sender",
        "IP_VERSION": 4,
        "TIME": EPOCH,
        "T0": EPOCH,
        "LENGTH": trial.duration,
        "TOTAL_LENGTH": trial.duration + 2 * DELAY,
        "STEP_SIZE": grid.step,
        "DATA_FILENAME": f"{name}-{trial.address}.flent.gz",
        "TEST_PARAMETERS": dict(test.parameters),
        "FLENT_VERSION": f"tcpscape {__version__}",
        "FAILED_RUNNERS": 0,
        "BATCH_NAME": None,
        "BATCH_TIME": None,
        "BATCH_TITLE": None,
        "BATCH_UUID": None,
        "HTTP_GETTER_DNS": None,
        "HTTP_GETTER_URLLIST": None,
        "HTTP_GETTER_WORKERS": 4,
        "REMOTE_METADATA": {},
        "KERNEL_NAME": "Linux" if trial.kernel else trial.engine,
        "KERNEL_RELEASE": trial.kernel or trial.version,
        "NOTE": "; ".join(trial.caveats) or None,
        "SERIES_META": {**computed, **series},
        "TCPSCAPE": base.provenance(trial),
    }


def _flow_meta(f: FlowResult, mtu: int, place: int) -> Mapping[str, Any]:
    """What netperf says of a flow at its end."""
    return {
        "UNITS": "Mbits/s",
        "RUNNER": "tcpscape",
        "IDX": place,
        "CONG_CONTROL": spelling.name_of(f.cca),
        "MEAN_VALUE": f.goodput_mbps,
        "BYTES_RECVD": f.bytes_received,
        "BYTES_SENT": f.bytes_sent,
        "ELAPSED_TIME": f.seconds,
        "START_TIME": f.start_s,
        "TCP_MSS": mtu - base.HEADERS,
        "TCPI_PMTU": mtu,
        "TCPI_TOTAL_RETRANS": f.retransmits,
        "TCP_RETRANSMIT": str(f.retransmits),
    }


DELAY = 5.0
"""s that Flent waits before and after its flows (its setting DELAY)."""
CLASSES = ("BE", "BK", "CS5", "EF")
"""Flent's names of the four flows of RRUL in each direction."""
UDP_PINGS = ("Ping (ms) UDP BE", "Ping (ms) UDP BK", "Ping (ms) UDP EF")
"""Flent's names of round trips over UDP, ms."""
AVERAGE = "Ping (ms) avg"
WAYS: Mapping[str, str] = {"down": "download", "up": "upload"}
"""Direction of data → Flent's name of it where there are both."""
Values = list[float | None]
Rates = Sequence[tuple[float, float, float]]
"""Begin s, end s, bytes a second."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The times of a file."""

    count: int
    step: float
    """s."""

    @property
    def times(self) -> list[float]:
        """Every time, s."""
        return [round(i * self.step, 9) for i in range(self.count)]

    def place(self, t: float) -> int:
        """The step that a time of the trial, s, belongs to."""
        return max(0, min(self.count - 1, round((t + DELAY) / self.step)))

    def empty(self) -> Values:
        """A series without values."""
        return [None] * self.count


@dataclass(frozen=True, slots=True)
class Test:
    """One of Flent's tests."""

    name: str
    flows: tuple[str, ...]
    """The series of each flow, in the order of the trial's."""
    parameters: Mapping[str, str]

    @property
    def both(self) -> bool:
        """Whether data travel both ways."""
        return self.name.startswith("rrul")


@dataclass(frozen=True, slots=True)
class FlowSeries:
    """A flow's values at each step."""

    name: str
    values: dict[str, Values]
    """By Flent's name of each (`tcp_rtt`), `val` the throughput."""


def test_of(flows: Sequence[FlowResult]) -> Test:
    """Flent's test whose plots draw these flows."""
    if all(flow.direction == "down" for flow in flows):
        count = len(flows)
        if count == 1:
            return Test("tcp_1up", ("TCP upload",), {})
        return Test("tcp_nup", tuple(f"TCP upload::{i + 1}" for i in range(count)), {"upload_streams": str(count)})
    counts = {way: sum(flow.direction == way for flow in flows) for way in WAYS}
    is_rrul = all(count == len(CLASSES) for count in counts.values())
    places, names = dict.fromkeys(WAYS, 0), []
    for flow in flows:
        place = places[flow.direction]
        places[flow.direction] += 1
        names.append(f"TCP {WAYS[flow.direction]} {CLASSES[place] if is_rrul else f'BE::{place + 1}'}")
    streams = {f"{WAYS[way]}_streams": str(count) for way, count in counts.items()}
    return Test("rrul", tuple(names), {}) if is_rrul else Test("rrul_be_nflows", tuple(names), streams)


def flow(name: str, rates: Rates, samples: pl.DataFrame | None, grid: Grid) -> FlowSeries:
    """A flow on the grid; None where it has no sample."""
    values = {"val": grid.empty()}
    for _, end, rate in rates:
        values["val"][grid.place(end)] = rate * 8 / 1e6
    for theirs, ours, factor in COLUMNS:
        if samples is not None and ours in samples.columns:
            values[theirs] = grid.empty()
            for t_ns, v in samples.select("t_ns", ours).drop_nulls().iter_rows():
                if v < base.UNLIMITED:
                    values[theirs][grid.place(t_ns / 1e9)] = v / factor
    return FlowSeries(name, values)


def computed(test: Test, flows: Sequence[FlowSeries]) -> dict[str, Values]:
    """Sums, means and Jain's fairness index of the flows at each step, as Flent computes them; nothing of a single flow."""
    if len(flows) < 2:
        return {}
    from tcpscape.metrics.flows import jain_index

    series: dict[str, Values] = {}
    for way in ("TCP upload", "TCP download"):
        each = [flow.values["val"] for flow in flows if flow.name.startswith(way)]
        if each:
            series |= {f"{way} sum": _at_each(each, sum), f"{way} avg": _at_each(each, _mean)}
    each = [flow.values["val"] for flow in flows]
    if test.both:
        return series | {"TCP totals": _at_each(each, sum)}
    return series | {"TCP upload fairness": _at_each(each, lambda known: jain_index(known) if any(known) else None)}


def pings(trial: Trial, grid: Grid) -> tuple[dict[str, Values], dict[str, list[dict[str, float]]]]:
    """The probes that measure round trips, by Flent's names, at the steps and as they were measured; a mean of several too.

    A trial that was read from a Flent file has ping's values beside its flows' samples.
    """
    measured = _of_probes(trial) if trial.probe_samples is not None else _of_samples(trial)
    series = {name: _binned(points, grid) for name, points in measured.items() if points}
    raw = {name: [{"t": t + DELAY, "val": v, "seq": i} for i, (t, v) in enumerate(measured[name])] for name in series}
    if len(series) > 1 or (series and any(f.direction == "up" for f in trial.flows)):
        series[AVERAGE] = _at_each(list(series.values()), _mean)
    return series, raw


Points = list[tuple[float, float]]
"""When something was measured, s, and what, ms."""


def _of_probes(trial: Trial) -> dict[str, Points]:
    names = _names_of_probes(trial)
    measured: dict[str, Points] = {name: [] for name in names.values()}
    if trial.probe_samples is not None:
        for t_ns, probe, delay_ns in trial.probe_samples.select("t_ns", "probe", "delay_ns").sort("t_ns").iter_rows():
            if probe in names and delay_ns != LOST:
                measured[names[probe]].append((t_ns / 1e9, delay_ns / 1e6))
    return measured


def _names_of_probes(trial: Trial) -> dict[int, str]:
    """Flent's names of the probes that measure round trips, by their numbers: ICMP's first, and as many over UDP as Flent has."""
    icmp = [i for i, probe in enumerate(trial.probes) if probe.kind == "icmp_echo"]
    udp = [i for i, probe in enumerate(trial.probes) if probe.kind == "udp_echo"]
    return {**dict.fromkeys(icmp[:1], PING), **dict(zip(udp, UDP_PINGS, strict=False))}


def _of_samples(trial: Trial) -> dict[str, Points]:
    if trial.samples is None or "ping_ms" not in trial.samples.columns:
        return {}
    return {PING: [(t_ns / 1e9, v) for t_ns, v in trial.samples.select("t_ns", "ping_ms").drop_nulls().iter_rows()]}


def _binned(points: Points, grid: Grid) -> Values:
    """The mean of what was measured at each step."""
    each: dict[int, list[float]] = {}
    for t, value in points:
        each.setdefault(grid.place(t), []).append(value)
    values = grid.empty()
    for place, known in each.items():
        values[place] = _mean(known)
    return values


def _at_each(each: Sequence[Values], of: Callable[[list[float]], float | None]) -> Values:
    """A number of what is known at each step; None where nothing is."""
    steps = ([v for v in step if v is not None] for step in zip(*each, strict=True))
    return [of(known) if known else None for known in steps]


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


def units(results: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What Flent notes of series that are no flows: their units."""
    kinds = {"Ping": "ms", "TCP": "Mbits/s"}
    of = {name: kinds[name.split()[0]] for name in results if "::tcp_" not in name}
    return {name: {"UNITS": "Idx" if name.endswith("fairness") else unit} for name, unit in of.items()}
