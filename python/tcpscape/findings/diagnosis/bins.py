"""Edges of bins of time, of bounded number: a clock that was set forward within a capture makes decades of a minute."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_BINS = 1 << 21  # at 50 ms 29 hours, and 16 MB


def edges(start: float, end: float, width: float) -> NDArray[np.float64]:
    """From `start` on, in steps of `width`, what lies before `end`; in wider steps where there would be more than `MOST_BINS`."""
    return np.arange(start, end, max(width, (end - start) / MOST_BINS))
