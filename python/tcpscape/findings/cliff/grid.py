"""The cliff on a grid that was run anyway (a study, a sweep): the same edge and interval as the search's, from the runs there are.

On a coarse grid the interval is as wide as the gap between two of its levels: what lies inside was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tcpscape import metrics, stats
from tcpscape.campaign.outcome import Cell
from tcpscape.errors import refuse
from tcpscape.findings.cliff import fit
from tcpscape.findings.cliff.axis import Axis
from tcpscape.findings.cliff.fit import Point
from tcpscape.findings.cliff.levels import HALF, Cliff, level
from tcpscape.stats import Estimate

Grid = Mapping[float, Sequence[float]]
"""Level → the metric of its runs, in the order of the seeds; larger is better."""


def by_seed(cell: Cell, metric: str = "goodput") -> dict[int, float]:
    """Seed → the metric of a cell, the mean over what is pooled in it; seeds that not all of it has are left out."""
    of = metrics.find(metric).of
    each = [{t.seed: of(t) for t in some} for some in cell.runs]
    return {seed: sum(one[seed] for one in each) / len(each) for seed in each[0] if all(seed in one for one in each)}


def grid(cells: Sequence[Cell], axis: str, metric: str = "goodput") -> Grid:
    """The runs of the cells along an axis of a campaign, in its unit."""
    return {cell.value(axis).number: list(by_seed(cell, metric).values()) for cell in cells}


def on_grid(name: str, unit: str, grid: Grid, threshold: float = HALF) -> Cliff:
    """The cliff along a linear axis; the lowest level is the one without the impairment, and its runs are the base."""
    if len(grid) < 2 or not all(len(values) for values in grid.values()):
        refuse(name, f"{len(grid)} levels with runs", "give the level without the impairment and at least one more")
    origin, *above = sorted(grid)
    axis = Axis(name, unit, origin, above[-1], min(b - a for a, b in zip(sorted(grid), above, strict=False)), origin)
    base = np.asarray(grid[origin], dtype=float)
    runs = sum(len(values) for values in grid.values())
    if not base.any():
        return Cliff(axis, stats.mean(base), (), None, runs)
    levels = tuple(level(at, grid[at], base.tolist(), threshold) for at in above)
    points = fit.around([Point(axis.step(at), np.asarray(grid[at], dtype=float), base) for at in above], threshold)
    return Cliff(axis, stats.mean(base), levels, _edge(axis, points, threshold), runs)


def _edge(axis: Axis, points: Sequence[Point], threshold: float) -> Estimate | None:
    found = fit.crossing(points, threshold, 0.0) if points else None
    if found is None or not math.isfinite(found.value):
        return None
    value, low, high = (axis.level(x) if math.isfinite(x) else math.inf for x in (found.value, found.low, found.high))
    return Estimate(value, low, high, sum(len(p.values) for p in points), axis.unit)
