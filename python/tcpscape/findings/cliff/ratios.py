"""The map of which of two congestion controls is better where.

It holds their ratio in each cell of a grid, with its interval and a verdict: `same` where the whole interval lies within ± 5 %, `better` or `worse`
where it excludes 1, and `undecided` otherwise; never by the mean alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tcpscape import stats
from tcpscape.stats import Estimate
from tcpscape.stats.comparison import is_alike

RatioVerdict = Literal["better", "worse", "same", "undecided"]


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """The runs of one cell: the metric under both congestion controls, under the same seeds; larger is better."""

    x: float
    y: float
    above: tuple[float, ...]
    below: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RatioCell:
    """One cell of a ratio map."""

    x: float
    y: float
    ratio: Estimate
    """Mean / mean, paired."""
    verdict: RatioVerdict


def verdict(ratio: Estimate) -> RatioVerdict:
    """The verdict of a ratio's interval; `undecided` where there is no interval (one run, or nothing got through)."""
    if not (math.isfinite(ratio.low) and math.isfinite(ratio.high)):
        return "undecided"
    if is_alike(ratio):
        return "same"
    return "better" if ratio.low > 1 else "worse" if ratio.high < 1 else "undecided"


def ratio_cells(cells: Iterable[PairedRuns]) -> tuple[RatioCell, ...]:
    """The cells of the map from their runs, row by row (y, then x, both rising)."""
    ratios = [(c, stats.ratio(c.above, c.below)) for c in cells]
    return tuple(sorted((RatioCell(c.x, c.y, ratio, verdict(ratio)) for c, ratio in ratios), key=lambda cell: (cell.y, cell.x)))
