"""Whether the beginning of a run decides the rest of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpscape.metrics import samples
from tcpscape.stats import Estimate
from tcpscape.studies.measures import resample

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies import Claim
    from tcpscape.studies.measures.resample import Array
    from tcpscape.studies.run import Result
    from tcpscape.trial import Trial

BEGINNING = 2.0
"""s: a few dozen round trips, past slow start."""


def early(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Spearman's rank correlation, over the runs, of the goodput of their first two seconds with that of the rest; needs samples."""
    pairs = [pair for pair in (_parts(t) for t in cell.trials) if pair is not None]
    return resample.estimate([range(len(pairs))], lambda drawn: _rank_correlation(np.asarray(pairs), drawn[0].astype(int)))


def _parts(trial: Trial) -> tuple[float, float] | None:
    """Rates of the beginning and of the rest, all flows together, Mbit/s."""
    edges = np.array([0.0, BEGINNING, trial.duration]) + min((f.start_s for f in trial.flows), default=0.0)
    found = samples.rates(trial, np.minimum(edges, trial.duration)).sum(axis=0)
    return (float(found[0]), float(found[1])) if len(found) and np.isfinite(found).all() else None


def _rank_correlation(pairs: Array, picked: Array) -> Array:
    """Of the picked runs of each row."""
    found = []
    for row in picked:
        ranks = [np.argsort(np.argsort(column)) for column in pairs[row].T]
        found.append(float(np.asarray(np.corrcoef(ranks))[0, 1]) if len(row) > 1 else np.nan)
    return np.asarray(found, dtype=np.float64)
