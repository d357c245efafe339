"""Metrics of the packets that a sender saw: RTTs of single segments, as tshark's `ack_rtt` gives them, and ECN's echoes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcpscape.metrics.base import UNKNOWN
from tcpscape.trial import Trial

FEWEST = 10
"""Fewest RTTs of a flow for the published indicator, which is unstable below."""
ECE = 0x40
"""The flag's bit in the TCP header (RFC 3168 §6.1)."""


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
    series = [rtts for rtts in (ack_rtts(trial, flow) for flow in range(len(trial.flows))) if len(rtts) >= FEWEST]
    return float(np.mean([np.std(rtts) / np.mean(rtts) for rtts in series])) if series else UNKNOWN


def ece(trial: Trial) -> float:
    """Segments with ECE in either direction, two of each handshake that agrees on ECN among them (RFC 3168 §6.1.1)."""
    if trial.packets is None or "flags" not in trial.packets.columns:
        return UNKNOWN
    return float((trial.packets["flags"] & ECE != 0).sum())
