"""Measures of what the sender does: needless retransmissions, the receive window and the rate that it allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tcpscape.stats import Estimate, mean
from tcpscape.studies.measures import resample

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies.measures.resample import Array
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim
    from tcpscape.trial import Trial


def needless(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Share of the retransmissions for which the path had lost nothing of the data; unknown where the engine does not tell losses apart."""
    return resample.estimate(_sent_and_lost(cell.trials), _share)


def window(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Largest receive window advertised, kB."""
    return mean([_window(t) / 1000 for t in cell.trials], "kB")


def pipe(_: Result, __: Claim, cell: Cell) -> Estimate:
    """What the largest window allows over the mean RTT, Mbit/s."""
    return mean([_allowed(t) for t in cell.trials], "Mbit/s")


def filled(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Goodput over what the largest window allows over the mean RTT."""
    return mean([t.goodput_mbps / _allowed(t) for t in cell.trials], "1")


def _sent_and_lost(trials: Sequence[Trial]) -> tuple[list[float], list[float]]:
    again = [float(sum(f.retransmits for f in t.flows)) for t in trials]
    return again, [_lost(t) for t in trials]


def _lost(trial: Trial) -> float:
    """Packets that the way forward lost, whatever the cause; a real kernel's queues do not count by cause, and what contains what is not known."""
    told = [q["drops"] for q in trial.queues if q.get("direction") == "forward" and isinstance(q.get("drops"), Mapping)]
    return float(sum(sum(drops.values()) for drops in told)) if told else math.nan


def _share(samples: Sequence[Array]) -> Array:
    again, lost = (s.sum(axis=-1) for s in samples)
    found: Array = np.clip(1 - lost / np.where(again == 0, np.nan, again), 0, 1)
    return found


def _window(trial: Trial) -> float:
    known = [f.max_rwnd for f in trial.flows if f.max_rwnd is not None]
    return float(max(known)) if known else float("nan")


def _allowed(trial: Trial) -> float:
    rtts = [f.rtt_ms.mean for f in trial.flows if f.rtt_ms.mean is not None]
    return _window(trial) * 8 / 1000 / (sum(rtts) / len(rtts)) if rtts else float("nan")
