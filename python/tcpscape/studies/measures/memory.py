"""Whether the beginning of a run decides the rest of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tcpscape.metrics import samples
from tcpscape.stats import Estimate
from tcpscape.stats.order import spearman
from tcpscape.studies.measures import resample

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies.measures.resample import Array
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim
    from tcpscape.trial import Trial

BEGINNING = 2.0
"""s: a few dozen round trips, past slow start."""


def early(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Spearman's rank correlation, over the runs, of the goodput of their first two seconds with that of the rest; needs samples."""
    return rank_correlation([pair for pair in (_parts(t) for t in cell.trials) if pair is not None])


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> Estimate:
    """Spearman's ρ of pairs and its interval, whole pairs resampled: runs that are alike share a rank."""
    x, y = np.asarray(pairs, dtype=float).reshape(-1, 2).T

    def correlation(drawn: Sequence[Array]) -> Array:
        picked = drawn[0].astype(int)
        return spearman(x[picked], y[picked])

    return resample.estimate([range(len(pairs))], correlation)


def _parts(trial: Trial) -> tuple[float, float] | None:
    """Rates of the beginning and of the rest, all flows together, Mbit/s."""
    edges = np.array([0.0, BEGINNING, trial.duration]) + min((f.start_s for f in trial.flows), default=0.0)
    found = samples.rates(trial, np.minimum(edges, trial.duration)).sum(axis=0)
    return (float(found[0]), float(found[1])) if len(found) and np.isfinite(found).all() else None
