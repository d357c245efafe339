"""Measures of what the sender does: needless retransmissions, the receive window and the rate that it allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tcpscape.stats import Estimate, mean
from tcpscape.studies.measures import resample

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies import Claim
    from tcpscape.studies.measures.resample import Array
    from tcpscape.studies.run import Result
    from tcpscape.trial import Trial


def needless(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Share of the retransmissions for which the path had lost nothing of the data."""
    return resample.estimate([[float(s) for s in got] for got in _sent_and_lost(cell.trials)], _share)


def window(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Largest receive window advertised, kB."""
    return mean([_window(t) / 1000 for t in cell.trials], "kB")


def pipe(_: Result, __: Claim, cell: Cell) -> Estimate:
    """What the largest window allows over the mean RTT, Mbit/s."""
    return mean([_allowed(t) for t in cell.trials], "Mbit/s")


def filled(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Goodput over what the largest window allows over the mean RTT."""
    return mean([t.goodput_mbps / _allowed(t) for t in cell.trials], "1")


def _sent_and_lost(trials: Sequence[Trial]) -> tuple[list[int], list[int]]:
    again = [sum(f.retransmits for f in t.flows) for t in trials]
    lost = [sum(sum(q["drops"].values()) for q in t.queues if q.get("direction") == "forward") for t in trials]
    return again, lost


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
