"""Metrics of what a tap beside the sender counts, as the published rigs did: time between packets, ECN's echoes."""

from __future__ import annotations

from tcpscape.metrics.base import UNKNOWN
from tcpscape.trial import Trial

ECE = 0x40
"""The flag's bit in the TCP header (RFC 3168 §6.1)."""


def gap(trial: Trial) -> float:
    """Mean time between segments with data, ms: a flow's sending time / segments sent, mean over the flows."""
    gaps = [1000 * f.seconds / f.data_segs_out for f in trial.flows if f.data_segs_out]
    return sum(gaps) / len(gaps) if gaps else UNKNOWN


def ece(trial: Trial) -> float:
    """Segments with ECE in either direction, two of each handshake that agrees on ECN among them (RFC 3168 §6.1.1)."""
    if trial.packets is None or "flags" not in trial.packets.columns:
        return UNKNOWN
    return float((trial.packets["flags"] & ECE != 0).sum())
