"""Metrics of the flows' samples and of their packets: goodput second by second, the variation of RTTs, ECN's echoes.

Goodput is as `iperf3 -i 1` reports it: bytes are those that the sender knows to be acknowledged (`tcpi_bytes_acked`); between two samples they are
taken to grow evenly. RTTs of single segments are those that the sender's packets show, as tshark's `ack_rtt` gives them.
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
FEWEST_SAMPLES = 2
"""Fewest samples with a standard deviation."""
FEWEST_RTTS = 10
"""Fewest RTTs of a flow for the published indicator, which is unstable below."""
ECE = 0x40
"""The flag's bit in the TCP header (RFC 3168 §6.1)."""


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
    return _mean_over_flows(trial, lambda srtt: float(np.std(srtt) / np.mean(srtt)))


def srtt_p50(trial: Trial) -> float:
    """Median of the smoothed RTT at even times, ms, mean over the flows, their first second left out.

    Every engine reports it alike. `rtt_p50` is of single segments on the model, of which a fast second has more, and of the smoothed RTT on a kernel.
    """
    return _mean_over_flows(trial, lambda srtt: float(np.median(srtt)) / 1e3)


def _mean_over_flows(trial: Trial, of: Callable[[Array], float]) -> float:
    """The mean over the flows of a number of each one's smoothed RTTs at even times, µs, its first second left out; unknown without samples."""
    if trial.samples is None or "srtt_us" not in trial.samples.columns:
        return UNKNOWN
    numbers, times, srtts = (trial.samples[name].to_numpy() for name in ("flow", "t_ns", "srtt_us"))
    values = []
    for number, flow in enumerate(trial.flows):
        srtt = srtts[(numbers == number) & (srtts > 0) & (times >= (flow.start_s + HANDSHAKE_S) * 1e9)]
        if len(srtt) >= FEWEST_SAMPLES:
            values.append(of(srtt))
    return sum(values) / len(values) if values else UNKNOWN


def ack_rtts(trial: Trial, flow: int) -> NDArray[np.float64]:
    """RTTs of the segments sent once and acknowledged by an ACK of their own end, ms, in the order of the ACKs.

    Those sent again have none (Karn). Empty where packets were not kept.
    """
    if trial.packets is None:
        return np.empty(0)
    import polars as pl

    packets = trial.packets.filter(pl.col("flow") == flow)
    data = packets.filter((pl.col("received") == 0) & (pl.col("len") > 0)).select("t_ns", end=pl.col("seq") + pl.col("len"), seq="seq")
    once = data.filter(pl.len().over("seq") == 1)
    acks = packets.filter(pl.col("received") == 1).group_by("ack").agg(acked=pl.col("t_ns").min())
    pairs = once.join(acks, left_on="end", right_on="ack").filter(pl.col("acked") > pl.col("t_ns")).sort("acked")
    return np.asarray((pairs["acked"] - pairs["t_ns"]).to_numpy() / 1e6, dtype=np.float64)


def rtt_cv(trial: Trial) -> float:
    """Standard deviation / mean of the RTTs of segments, mean over the flows with ten or more."""
    series = [rtts for rtts in (ack_rtts(trial, flow) for flow in range(len(trial.flows))) if len(rtts) >= FEWEST_RTTS]
    return float(np.mean([np.std(rtts) / np.mean(rtts) for rtts in series])) if series else UNKNOWN


def ece(trial: Trial) -> float:
    """Segments with ECE in either direction, two of each handshake that agrees on ECN among them (RFC 3168 §6.1.1)."""
    if trial.packets is None or "flags" not in trial.packets.columns:
        return UNKNOWN
    return float((trial.packets["flags"] & ECE != 0).sum())
