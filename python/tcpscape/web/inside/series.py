"""Quantities of a trial over time: those of each flow, and those of the queue at the bottleneck. In s, bit/s, bytes and packets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape.controls import palette
from tcpscape.metrics import queues
from tcpscape.plots import traces
from tcpscape.scenario import bottleneck
from tcpscape.scenario.bottleneck import Bottleneck
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial
from tcpscape.units import NS_PER_S
from tcpscape.web.blocks import Block

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float32]
FLOW_COLUMNS: Mapping[str, tuple[str, float]] = {
    "cwnd": ("cwnd", 1.0), "ssthresh": ("ssthresh", 1.0), "in_flight": ("in_flight", 1.0), "rtt": ("srtt_us", 1e-6), "min_rtt": ("min_rtt_us", 1e-6),
    "rto": ("rto_us", 1e-6), "pacing_rate": ("pacing_rate", 8.0), "delivery_rate": ("delivery_rate", 8.0), "rwnd": ("rwnd", 1.0),
}  # fmt: skip
"""Quantity of a flow → its column in the samples, and the factor from there (µs, byte/s)."""
QUEUE_COLUMNS: Mapping[str, tuple[str, float]] = {
    "packets": ("packets", 1.0), "bytes": ("bytes", 1.0), "sojourn": ("sojourn_ns", 1e-9), "drops": ("drops", 1.0), "marks": ("marks", 1.0),
}  # fmt: skip
"""Quantity of a queue → its column in the samples of queues, and the factor from there (ns)."""
NO_VALUE = {"ssthresh": 2**31 - 1, "min_rtt": (2**32 - 1) * 1e-6}
"""What stands for no value yet: no threshold before the first loss, no RTT before the first sample."""
MOST_FLOWS = 8
"""Most flows of a run that are sent."""
FIRST_STEPS = (5, 2, 1)


def interval_ns(duration_ns: int, samples: int) -> int:
    """The largest interval of 1, 2 or 5 · 10ⁿ ns that gives at least so many samples."""
    most = max(1, duration_ns // max(1, samples))
    power = int(10 ** (len(str(most)) - 1))
    return next(step * power for step in FIRST_STEPS if step * power <= most)


def of_flows(run: int, trial: Trial, scenario: Scenario, window: tuple[float, float] | None = None) -> Iterator[Block]:
    """A block `series` for each flow of the trial, in `window` (s) where one is given: quantities at the times `t`, goodput at `goodput.t`."""
    if trial.samples is None:
        return
    numbers = trial.samples["flow"].to_numpy()
    for flow in range(min(len(trial.flows), MOST_FLOWS)):
        rows = trial.samples if len(trial.flows) == 1 else trial.samples.filter(numbers == flow)
        columns = _columns(_within(rows, window), FLOW_COLUMNS)
        columns |= _goodput(trial, scenario, flow)
        yield Block("series", {"run": run, "flow": flow, "cca": trial.flows[flow].cca}, columns)


def of_queue(run: int, trial: Trial, scenario: Scenario, window: tuple[float, float] | None = None) -> Iterator[Block]:
    """The block `queue` of the bottleneck; none where the path has no rate."""
    link = bottleneck.shown(scenario)
    if link is None or trial.queue_samples is None:
        return
    frame = trial.queue_samples
    here = (frame["pipe"] == queues.pipe(trial, link)) & (frame["stage"] == link.stage) & (frame["depth"] == link.depth)
    yield Block("queue", {"run": run, **about(link)}, _columns(_within(frame.filter(here), window), QUEUE_COLUMNS))


def about(link: Bottleneck) -> dict[str, object]:
    """What the bottleneck is: its kind, rate and limits; `delays` where what is on its way waits in the same queue."""
    holder = link.holder
    return {
        "kind": holder.kind, "rate_bps": link.rate_bps, "limit_packets": holder.limit_packets, "limit_bytes": holder.limit_bytes,
        "delays": link.delays,
    }  # fmt: skip


def _within(rows: pl.DataFrame, window: tuple[float, float] | None) -> pl.DataFrame:
    if window is None or rows.is_empty():
        return rows
    times = rows["t_ns"].to_numpy()
    first, end = np.searchsorted(times, [window[0] * NS_PER_S, window[1] * NS_PER_S])
    return rows[max(0, int(first) - 1) : int(end) + 1]


def _columns(rows: pl.DataFrame, wanted: Mapping[str, tuple[str, float]]) -> dict[str, Array]:
    """The columns as the page draws them, with their times `t`; NaN where there is no value."""
    columns = {"t": (rows["t_ns"].to_numpy() / NS_PER_S).astype(np.float32)}
    for name, (source, factor) in wanted.items():
        if source in rows.columns:
            values = rows[source].to_numpy().astype(np.float64) * factor
            missing = NO_VALUE.get(name)
            columns[name] = (values if missing is None else np.where(values < missing * (1 - 1e-9), values, np.nan)).astype(np.float32)
    return columns


def _goodput(trial: Trial, scenario: Scenario, flow: int) -> dict[str, Array]:
    """What was delivered in intervals of about a 250th of the trial, as figures over time have it."""
    trace = traces.Trace("", palette.LOOKS[0], trial, flow, scenario)
    curve = traces.PANELS["throughput"].read(trace)
    times, values = curve if curve is not None else (np.empty(0), np.empty(0))
    return {"goodput.t": times.astype(np.float32), "goodput": (values * 1e6).astype(np.float32)}
