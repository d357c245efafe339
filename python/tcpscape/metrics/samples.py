"""Metrics of the flows' samples: goodput second by second, as `iperf3 -i 1` reports it, and the variation of the smoothed RTT.

Bytes are those that the sender knows to be acknowledged (`tcpi_bytes_acked`); between two samples they are taken to grow evenly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tcpscape.metrics.base import UNKNOWN
from tcpscape.trial import Trial

Array = NDArray[np.float64]
INTERVAL_S = 1.0
"""iperf3's reporting interval, s."""
HANDSHAKE_S = 1.0
"""Start of a flow that is left out of its smoothed RTT, s: that begins with the handshake's RTT, which may contain address resolution."""
FEWEST = 2
"""Fewest samples with a standard deviation."""


def delivered(trial: Trial, flow: int) -> tuple[Array, Array]:
    """Times, s, and bytes acknowledged by then, from the flow's start with 0; both empty where nothing was sampled."""
    if trial.samples is None or "bytes_acked" not in trial.samples.columns or flow >= len(trial.flows):
        return np.empty(0), np.empty(0)
    rows = trial.samples["flow"].to_numpy() == flow
    if not rows.any():
        return np.empty(0), np.empty(0)
    times, acked = trial.samples["t_ns"].to_numpy()[rows] / 1e9, trial.samples["bytes_acked"].to_numpy()[rows].astype(float)
    start = min(trial.flows[flow].start_s, float(times[0]))
    return np.concatenate(([start], times)), np.concatenate(([0.0], acked))


def rates(trial: Trial, edges: Array) -> Array:
    """Goodput of each flow between successive `edges` (s), Mbit/s: an array of flows × (edges − 1).

    0 for a flow without samples (it was never established); NaN where nothing was sampled at all.
    """
    rows: list[Array] = []
    for flow in range(len(trial.flows)):
        times, acked = delivered(trial, flow)
        missing = np.full(len(edges) - 1, np.nan if trial.samples is None else 0.0)
        rows.append(np.diff(np.interp(edges, times, acked)) * 8 / 1e6 / np.diff(edges) if len(times) else missing)
    return np.asarray(rows, dtype=np.float64).reshape(len(trial.flows), len(edges) - 1)


def grid(trial: Trial, every_s: float = INTERVAL_S) -> Array:
    """Edges of whole intervals from the first flow's start to the last sample, s."""
    series = [times for times, _ in (delivered(trial, flow) for flow in range(len(trial.flows))) if len(times)]
    if not series:
        return np.empty(0)
    start, stop = min(float(t[0]) for t in series), max(float(t[-1]) for t in series)
    return start + every_s * np.arange(int((stop - start) / every_s + 1e-6) + 1, dtype=np.float64)


def intervals(trial: Trial, every_s: float = INTERVAL_S) -> Array:
    """All flows' goodput together in each whole interval, Mbit/s."""
    edges = grid(trial, every_s)
    return np.asarray(rates(trial, edges).sum(axis=0), dtype=np.float64) if len(edges) > 1 else np.empty(0)


def per_second(statistic: Callable[[Array], float], fewest: int = 1) -> Callable[[Trial], float]:
    """A metric: a statistic of the goodput's 1-s intervals; unknown with fewer than `fewest` of them."""

    def of(trial: Trial) -> float:
        rates = intervals(trial)
        return float(statistic(rates)) if len(rates) >= fewest else UNKNOWN

    return of


def std(values: Array) -> float:
    """Sample standard deviation, n − 1."""
    return float(np.std(values, ddof=1))


def quantile(q: float) -> Callable[[Array], float]:
    """A quantile, between two values by linear interpolation."""
    return lambda values: float(np.quantile(values, q))


def srtt_cv(trial: Trial) -> float:
    """Standard deviation / mean of the smoothed RTT at even times, mean over the flows, their first second left out.

    Smoothing hides most of a packet's own jitter: `rtt_cv` is the measure of the published thresholds.
    """
    if trial.samples is None or "srtt_us" not in trial.samples.columns:
        return UNKNOWN
    numbers, times, srtts = (trial.samples[name].to_numpy() for name in ("flow", "t_ns", "srtt_us"))
    variations = []
    for number, flow in enumerate(trial.flows):
        srtt = srtts[(numbers == number) & (srtts > 0) & (times >= (flow.start_s + HANDSHAKE_S) * 1e9)]
        if len(srtt) >= FEWEST:
            variations.append(float(np.std(srtt) / np.mean(srtt)))
    return sum(variations) / len(variations) if variations else UNKNOWN
