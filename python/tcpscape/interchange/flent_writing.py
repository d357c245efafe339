"""Flent's data files, written (format version 4): a trial with samples becomes a test whose plots Flent draws as of its own.

Flent waits 5 s before and after its flows, and its plots cut those off; so the flows start at 5 s here, and nothing is known before. Pings are there
where the trial has probes that measure round trips and kept their samples. The time is 1970 plus the trial's: a trial has no date.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpscape.controls import spelling
from tcpscape.interchange import base
from tcpscape.interchange.base import InterchangeError
from tcpscape.interchange.flent import COLUMNS, PING
from tcpscape.metrics.flows import jain_index
from tcpscape.trial import LOST, FlowResult, Trial

if TYPE_CHECKING:
    import polars as pl


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
