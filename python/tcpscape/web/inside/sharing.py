"""How the flows of a trial share the bottleneck over time, as columns for the page."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tcpscape.metrics.flows import jain_index
from tcpscape.trial import Trial
from tcpscape.units import NS_PER_S
from tcpscape.web.blocks import Block

BINS, STEPS = 100, (1, 2, 5, 10)
"""Most intervals in which shares are followed; their lengths are these · 10ⁿ ns."""
SAMPLES_PER_BIN = 5
LEAST_RTTS = 2
"""Shortest interval, in round trips of the path: in a shorter one a flow's bursts are what one sees."""
MOST_FLOWS = 24
"""Most flows with a column of their own; what the others carry is together in one."""
EDGE_S = 1e-6


def bin_ns(duration_ns: int, rtt_ns: int) -> int:
    """The interval in which shares are followed: a round one of at least a hundredth of the trial and two round trips, at most half of the trial."""
    least = max(duration_ns // BINS, LEAST_RTTS * rtt_ns)
    power = int(10 ** (len(str(least)) - 1))
    return min(next(step * power for step in STEPS if step * power >= least), max(SAMPLES_PER_BIN, duration_ns // 2))


def over_time(trial: Trial, every_ns: int, mss: int) -> Block:
    """The block `shares`: ends of the intervals `t`, goodput of each flow in them (`flow.0`, …, `others`), Jain's index over those that run then.

    Packets that a SACK reports count when it does, so that no interval carries more than the link. `mss`: bytes of data in each.
    """
    until = trial.duration + EDGE_S
    edges = np.arange(0.0, until, every_ns / NS_PER_S)
    rates = np.array([np.diff(np.interp(edges, *_delivered(trial, i, mss))) * 8 / (every_ns / NS_PER_S) for i in range(len(trial.flows))])
    running = np.array([(edges[:-1] >= f.start_s - EDGE_S) & (edges[1:] <= f.stop_s + EDGE_S) for f in trial.flows]).reshape(rates.shape)
    columns: dict[str, NDArray[np.float64]] = {"t": edges[1:], "jain": _jain(rates, running)}
    columns |= {f"flow.{i}": np.where(_touched(trial, i, edges), row, np.nan) for i, row in enumerate(rates[:MOST_FLOWS])}
    if len(rates) > MOST_FLOWS:
        columns["others"] = rates[MOST_FLOWS:].sum(axis=0)
    flows = [
        {"cca": f.cca, "direction": f.direction, "start_s": f.start_s, "stop_s": f.stop_s, "goodput_bps": f.goodput_mbps * 1e6}
        for f in trial.flows[:MOST_FLOWS]
    ]
    values = {"seed": trial.seed, "flows": flows, "others": max(0, len(trial.flows) - MOST_FLOWS), "every_s": every_ns / NS_PER_S}
    return Block("shares", values, {name: np.ascontiguousarray(column, np.float32) for name, column in columns.items()})


def _delivered(trial: Trial, flow: int, mss: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times, s, and bytes delivered by then."""
    if trial.samples is None or not (rows := trial.samples["flow"].to_numpy() == flow).any():
        return np.zeros(1), np.zeros(1)
    times, packets = (trial.samples[name].to_numpy()[rows].astype(np.float64) for name in ("t_ns", "delivered"))
    start = min(trial.flows[flow].start_s, float(times[0]) / NS_PER_S)
    return np.concatenate(([start], times / NS_PER_S)), np.concatenate(([0.0], packets * mss))


def _jain(rates: NDArray[np.float64], running: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Jain's index over the flows that run through the whole interval; NaN where there are fewer than two."""
    columns = zip(rates.T, running.T, strict=True)
    return np.array([jain_index([float(x) for x in row[runs]]) if runs.sum() > 1 else math.nan for row, runs in columns])


def _touched(trial: Trial, flow: int, edges: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The intervals in which a flow ran for some time."""
    result = trial.flows[flow]
    return np.asarray((edges[1:] > result.start_s) & (edges[:-1] < result.stop_s), dtype=np.bool_)
