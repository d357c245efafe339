"""Correlation of ranks, for many resamples at once."""

from __future__ import annotations

import numpy as np

from tcpscape.stats.estimate import Floats


def spearman(x: Floats, y: Floats) -> Floats:
    """Spearman's ρ of each row of x (k, n) with that of y: the correlation of mid-ranks; NaN for a row in which everything is equal."""
    from scipy.stats import rankdata

    a, b = (rankdata(v, axis=1) for v in (x, y))
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    below = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return np.asarray((a * b).sum(axis=1) / np.where(below == 0, np.nan, below), dtype=float)
