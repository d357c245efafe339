"""Metrics of how flows share: Jain's index and shares of the goodput, over each flow's whole transfer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcpscape.metrics.base import UNKNOWN, under
from tcpscape.trial import Trial


def index(rates: Sequence[float]) -> float:
    """Jain's fairness index, (Σx)² / (n·Σx²): 1 is equal shares, 1/n one has all (Jain, Chiu, Hawe: DEC-TR-301, 1984)."""
    squares = sum(x * x for x in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else UNKNOWN


def jain(trial: Trial) -> float:
    """Jain's fairness index of the flows' goodputs."""
    return index([f.goodput_mbps for f in trial.flows])


def least(trial: Trial) -> float:
    """The smallest flow's share of the goodputs' sum."""
    return min(_shares(trial), default=UNKNOWN)


def most(trial: Trial) -> float:
    """The largest flow's share of the goodputs' sum."""
    return max(_shares(trial), default=UNKNOWN)


def share(cca: str) -> Callable[[Trial], float]:
    """A metric: the share of all flows' goodput that the flows under `cca` have."""

    def of(trial: Trial) -> float:
        whole = trial.goodput_mbps
        return sum(trial.flows[i].goodput_mbps for i in under(trial, cca)) / whole if whole else UNKNOWN

    return of


def _shares(trial: Trial) -> list[float]:
    whole = trial.goodput_mbps
    return [f.goodput_mbps / whole for f in trial.flows] if whole else []
