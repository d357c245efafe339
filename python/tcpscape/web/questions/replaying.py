"""The replay over time: runs of the fitted path on the model, on one grid, to be drawn beside what was observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.engines import Capture
from tcpscape.findings.diagnosis.diagnosis import FlowDiagnosis
from tcpscape.plots import diagnosis as series
from tcpscape.text.numbers import number
from tcpscape.trial import Trial
from tcpscape.units import NS_PER_S
from tcpscape.web.blocks import Block
from tcpscape.web.work import SOON, Job, Work

RUNS = 8
"""Runs of the replay that are drawn: one as a line, all as a band."""
SAMPLES, LEAST_S = 1000, 0.001
"""Samples of a run, about, and their shortest interval, s."""
SEGMENT = 1448
"""Bytes of a full segment: samples count segments that were delivered, also those that only a SACK reports, as the observation's ACKs do."""
Array = NDArray[np.float64]


def block(found: FlowDiagnosis, work: Work) -> Block:
    """The block `replay` of a diagnosis that has one. :raises Cancelled: the question is stale."""
    repeated = found.repeated
    if repeated is None:
        raise ValueError("the diagnosis has no replay")
    every = max(LEAST_S, repeated.scenario.duration / NS_PER_S / SAMPLES)
    jobs = [Job(repeated.scenario, seed, SOON, Capture(samples_ns=round(every * NS_PER_S))) for seed in range(RUNS)]
    trials = dict(work.trials(jobs))
    edges = np.arange(0.0, found.flow.seconds, series.bin_length(found.flow))
    runs = [_on_grid(trials[place], repeated.warmup_s, edges) for place in sorted(trials)]
    columns: dict[str, Any] = {"t": edges[1:]}
    for name in ("goodput", "rtt", "flight"):
        rows = np.array([run[name] for run in runs])
        columns |= {name: rows[0], f"{name}.low": _over(np.nanmin, rows), f"{name}.high": _over(np.nanmax, rows)}
    own = found.replay.control if found.replay else None
    begin = f"; its first {number(repeated.warmup_s)} s are left out" if repeated.warmup_s else ""
    values = {"cca": own, "runs": len(runs), "text": f"{len(runs)} runs of {own} on the fitted path, by the model{begin}"}
    return Block("replay", values, {name: np.ascontiguousarray(column, "<f8") for name, column in columns.items()})


def _over(of: Any, rows: Array) -> Array:
    """The least or greatest of each column; NaN where no run has a value."""
    some = ~np.isnan(rows).all(axis=0)
    result = np.full(rows.shape[1], np.nan)
    result[some] = of(rows[:, some], axis=0)
    return result


def _on_grid(trial: Trial, warmup_s: float, edges: Array) -> dict[str, Array]:
    """A run in bins from the start of its flow, or from the end of what is left out: goodput (bit/s), smoothed RTT (s), bytes in flight."""
    if trial.samples is None:
        raise ValueError("a run needs samples to be drawn")
    samples = trial.samples.filter(trial.samples["flow"] == 0)
    t = samples["t_ns"].to_numpy() / NS_PER_S - trial.flows[0].start_s - warmup_s
    delivered, srtt, flight = (samples[name].to_numpy().astype(float) for name in ("delivered", "srtt_us", "in_flight"))
    if len(t) < 2:
        return dict.fromkeys(("goodput", "rtt", "flight"), np.full(max(0, len(edges) - 1), np.nan))
    inside = edges[1:] <= t[-1] + (edges[1] - edges[0] if len(edges) > 1 else 0.0)
    goodput = np.diff(np.interp(edges, t, delivered)) * SEGMENT * 8 / np.diff(edges)
    place = np.clip(np.searchsorted(t, edges[1:], "right") - 1, 0, None)
    rtt = np.where(srtt[place] > 0, srtt[place] / 1e6, np.nan)
    values = {"goodput": goodput, "rtt": rtt, "flight": flight[place] * SEGMENT}
    return {name: np.where(inside, of, np.nan) for name, of in values.items()}
