"""The binding of the searches to runs: trials of an engine, and the cells of a campaign that was run anyway.

`on_path` searches the cliff of a path; `measure` and `measure_pairs` make of an engine what :mod:`search` and :mod:`planes` call. `on_grid` gives the
same edge and interval from the runs of a grid: on a coarse grid the interval is as wide as the gap between two of its levels, because nothing was
measured inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from tcpscape import metrics, stats
from tcpscape.campaign.execute import Runner
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.errors import refuse
from tcpscape.findings.cliff import fit, search
from tcpscape.findings.cliff.fit import Point
from tcpscape.findings.cliff.levels import HALF, Axis, Cliff, jitter_axis, level, loss_axis
from tcpscape.findings.cliff.planes import MeasurePairs, PairedRuns
from tcpscape.findings.cliff.search import Effort, Measure
from tcpscape.scenario.conditions import Conditions
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate

Impairment = Literal["jitter", "loss"]
"""What a search varies on a path."""
Along = Callable[[float], Sequence[Scenario]]
"""A level → the scenarios of one measurement there; several are pooled (the published studies average two application rates)."""
Grid = Mapping[float, Sequence[float]]
"""Level → the metric of its runs, in the order of the seeds; larger is better."""


def on_path(runner: Runner, path: Conditions, cca: str, along: Impairment, effort: Effort) -> Cliff:
    """The cliff of a path under one congestion control, along its jitter (levels in ns) or its loss (fractions)."""
    if along == "jitter":
        return search.find(measure(runner, lambda ns: [path.model_copy(update={"jitter": int(ns)}).scenario(cca)]), jitter_axis(path.rtt), effort)
    return search.find(measure(runner, lambda share: [path.model_copy(update={"loss": share}).scenario(cca)]), loss_axis(), effort)


def measure(runner: Runner, along: Along, first: int = 0) -> Measure:
    """Goodput in Mbit/s, the mean over the scenarios of a level under one seed; seed 0 of a search is the engine's seed `first`."""

    def run(levels: Sequence[float], seeds: range) -> list[list[float]]:
        return [_pooled(runner, along(x), range(first + seeds.start, first + seeds.stop)) for x in levels]

    return run


def measure_pairs(runner: Runner, at: Callable[[float, float, str], Scenario], ccas: tuple[str, str], first: int = 0) -> MeasurePairs:
    """Goodputs in Mbit/s of two congestion controls at cells (x, y); `at` gives the scenario of a cell under one of them."""

    def run(cells: Sequence[tuple[float, float]], seeds: range) -> list[tuple[list[float], list[float]]]:
        which = range(first + seeds.start, first + seeds.stop)
        above, below = ([_pooled(runner, [at(x, y, cca)], which) for x, y in cells] for cca in ccas)
        return list(zip(above, below, strict=True))

    return run


def _pooled(runner: Runner, scenarios: Sequence[Scenario], seeds: range) -> list[float]:
    """The mean goodput over the scenarios under each seed, Mbit/s."""
    runs = runner.run_all([(s, seeds) for s in scenarios])
    return [float(x) for x in np.mean([[t.goodput_mbps for t in trials] for trials in runs], axis=0)]


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
    """The crossing of the points in the axis' unit; None where there is none on the axis."""
    crossing = fit.crossing(points, threshold, 0.0) if points else None
    if crossing is None or not math.isfinite(crossing.value):
        return None
    value, low, high = (axis.level(x) if math.isfinite(x) else math.inf for x in (crossing.value, crossing.low, crossing.high))
    return Estimate(value, low, high, sum(len(p.values) for p in points), axis.unit)


def grid(cells: Sequence[Cell], axis: str, metric: str = "goodput") -> Grid:
    """The runs of the cells along an axis of a campaign, in its unit."""
    return {cell.value(axis).number: list(_by_seed(cell, metric).values()) for cell in cells}


def pairs(outcome: Outcome, axes: tuple[str, str], ccas: tuple[str, str], metric: str = "goodput") -> list[PairedRuns]:
    """The cells of a campaign's outcome over two of its axes, under two congestion controls; seeds that only one of them has are left out.

    Cells that are pooled (two application rates) are averaged seed by seed.
    """
    cells = []
    for above in outcome.select(ccas[0]):
        for below in outcome.select(ccas[1], above.engine, **above.at):
            first, second = (_by_seed(cell, metric) for cell in (above, below))
            seeds = [s for s in first if s in second]
            x, y = (above.value(axis).number for axis in axes)
            cells.append(PairedRuns(x, y, tuple(first[s] for s in seeds), tuple(second[s] for s in seeds)))
    return cells


def _by_seed(cell: Cell, metric: str) -> dict[int, float]:
    """Seed → the metric of a cell, the mean over its pooled scenarios; seeds that not all of these have are left out."""
    of = metrics.find(metric).of
    each = [{t.seed: of(t) for t in trials} for trials in cell.runs]
    return {seed: sum(values[seed] for values in each) / len(each) for seed in each[0] if all(seed in values for values in each)}
