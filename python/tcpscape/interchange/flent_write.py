"""A trial with samples as a Flent data file (format version 4), which Flent plots as one of its own: `tcp_1up`, or `tcp_nup` for several flows.

Throughputs and rates in Mbit/s, RTTs in ms, windows in packets. Flent waits 5 s before and after its flows, and its plots cut those off; so the
flows start at 5 s here, and nothing is known before. `Ping (ms) ICMP` is there only if it was measured: the simulated paths have no ping.
The time is 1970 plus the trial's: a trial has no date.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpscape.controls import spelling
from tcpscape.interchange import base
from tcpscape.interchange.base import InterchangeError
from tcpscape.interchange.flent_read import COLUMNS, PING
from tcpscape.metrics.flows import jain_index
from tcpscape.trial import FlowResult, Trial

if TYPE_CHECKING:
    import polars as pl

Rates = Sequence[tuple[float, float, float]]
"""Begin s, end s, bytes a second."""
VERSION = 4
"""Of the file format."""
DELAY = 5.0
"""s that Flent waits before and after its flows (its setting DELAY)."""
COMPUTED: Mapping[str, Mapping[str, Any]] = {
    "TCP upload sum": {"UNITS": "Mbits/s"}, "TCP upload avg": {"UNITS": "Mbits/s"}, "TCP upload fairness": {"UNITS": "Idx"},
}
"""Series that Flent computes of several flows."""
MOST_STEPS = 1_000_000
"""A day in steps of 0.1 s."""
EPOCH = "1970-01-01T00:00:00.000000Z"


@dataclass(frozen=True, slots=True)
class _Series:
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


def _series(name: str, rates: Rates, samples: pl.DataFrame | None, grid: tuple[int, float]) -> _Series:
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
    return _Series(name, values)


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


def _raw_values(series: _Series, x_values: Sequence[float], step: float) -> list[dict[str, float]]:
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


def _metadata(trial: Trial, flows: Sequence[_Series], mtu: int, step: float) -> Mapping[str, Any]:
    from tcpscape import __version__

    single = len(flows) == 1
    name, title = "tcp_1up" if single else "tcp_nup", f"{trial.scenario} {trial.cca} seed {trial.seed}"
    series = {s.name: _meta(f, mtu, i) for i, (s, f) in enumerate(zip(flows, trial.flows, strict=True))}
    series |= {} if single else COMPUTED
    return {
        "NAME": name, "TITLE": title, "HOST": "receiver", "HOSTS": ["receiver"], "LOCAL_HOST": "sender", "IP_VERSION": 4,
        "TIME": EPOCH, "T0": EPOCH, "LENGTH": trial.duration, "TOTAL_LENGTH": trial.duration + 2 * DELAY, "STEP_SIZE": step,
        "DATA_FILENAME": f"{name}-{trial.address}.flent.gz", "TEST_PARAMETERS": {} if single else {"upload_streams": str(len(flows))},
        "FLENT_VERSION": f"tcpscape {__version__}", "FAILED_RUNNERS": 0, "BATCH_NAME": None, "BATCH_TIME": None, "BATCH_TITLE": None,
        "BATCH_UUID": None, "HTTP_GETTER_DNS": None, "HTTP_GETTER_URLLIST": None, "HTTP_GETTER_WORKERS": 4, "REMOTE_METADATA": {},
        "KERNEL_NAME": "Linux" if trial.kernel else trial.engine, "KERNEL_RELEASE": trial.kernel or trial.version,
        "NOTE": "; ".join(trial.caveats) or None, "SERIES_META": series, "TCPSCAPE": base.provenance(trial),
    }


def _meta(f: FlowResult, mtu: int, place: int) -> Mapping[str, Any]:
    """What netperf says of a flow at its end."""
    return {
        "UNITS": "Mbits/s", "RUNNER": "tcpscape", "IDX": place, "CONG_CONTROL": spelling.name_of(f.cca), "MEAN_VALUE": f.goodput_mbps,
        "BYTES_RECVD": f.bytes_received, "BYTES_SENT": f.bytes_sent, "ELAPSED_TIME": f.seconds, "START_TIME": f.start_s,
        "TCP_MSS": mtu - base.HEADERS, "TCPI_PMTU": mtu, "TCPI_TOTAL_RETRANS": f.retransmits, "TCP_RETRANSMIT": str(f.retransmits),
    }
