"""Metrics: a trial → one number, each with its unit. One function and one registry line each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcpscape.errors import refuse
from tcpscape.trial import Trial


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a trial."""

    name: str
    unit: str
    about: str
    of: Callable[[Trial], float]


def goodput(trial: Trial) -> float:
    """All flows' goodput, Mbit/s."""
    return trial.goodput_mbps


def retransmits(trial: Trial) -> float:
    """Segments sent again."""
    return float(sum(f.retransmits for f in trial.flows))


def mean_rtt(trial: Trial) -> float:
    """Mean of the flows' mean RTTs, ms."""
    rtts = [f.rtt_ms.mean for f in trial.flows if f.rtt_ms.mean is not None]
    return sum(rtts) / len(rtts) if rtts else float("nan")


def jain(trial: Trial) -> float:
    """Jain's fairness index of the flows' goodputs: 1 is equal shares, 1/n one flow has all."""
    shares = [f.goodput_mbps for f in trial.flows]
    squares = sum(s * s for s in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else float("nan")


REGISTRY: dict[str, Metric] = {
    m.name: m
    for m in (
        Metric("goodput", "Mbit/s", "bytes the applications got", goodput),
        Metric("retransmits", "segments", "segments sent again", retransmits),
        Metric("rtt", "ms", "mean round-trip time", mean_rtt),
        Metric("jain", "1", "Jain's fairness index", jain),
    )
}
"""Every metric by name."""


def find(name: str) -> Metric:
    """The metric called `name`; one that is unknown is refused."""
    if name not in REGISTRY:
        refuse("metric", f"{name!r} is unknown", f"choose {', '.join(REGISTRY)}")
    return REGISTRY[name]
