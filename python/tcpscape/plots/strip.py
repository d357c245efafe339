"""Every run as a dot, cell by cell: where runs of one condition fall apart into modes, a mean hides it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape import stats
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.plots import base, style
from tcpscape.plots.base import Beside, Line
from tcpscape.stats import Shape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST_RUNS = 8
"""Runs of a cell from which a cloud of dots says more than its interval."""
MOST_LINES, MOST_COLUMNS = 4, 40
"""Congestion controls side by side; columns of dots of a panel."""
SPREAD = 0.72
"""Width of a column's dots, of the room it has."""
MANY = 1500
"""Dots from which they are written as an image."""
MEDIAN, MODES = "median, 95 % interval", "a mode of two (bar: its share)"
WIDE = 30.0
"""Highest over lowest value from which the axis is logarithmic."""


def has_runs(outcome: Outcome) -> bool:
    """Whether cells have enough runs, along an axis with few enough values."""
    axis = _axis(outcome)
    lines = len(base.lines(outcome))
    if axis is None or lines > MOST_LINES or not base.fits(outcome, axis):
        return False
    return lines * len(outcome.levels(axis)) <= MOST_COLUMNS and max(len(c.trials) for c in outcome.cells) >= LEAST_RUNS


def _axis(outcome: Outcome) -> str | None:
    """The last axis with a scale, else the last one with several values; the last one at all of a single cell."""
    several = [a for a in outcome.axes if len(outcome.levels(a)) > 1]
    return next(reversed(base.scales(outcome) or several or list(outcome.axes)), None)


def strip(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The metric of each run, the median with its interval in ink; a panel for each point on the other axes."""
    axis, metric = str(_axis(outcome)), outcome.campaign.metric
    places, lines = base.points(outcome, axis), base.lines(outcome)
    columns = len(outcome.levels(axis)) * len(lines)
    fig, axes = style.figure(len(places), width=min(8.4, max(4.2, 1.2 + 0.34 * columns)), height=3.2, columns=2)
    values = [v for c in outcome.cells for v in c.values(metric) if math.isfinite(v)]
    for ax, here in zip(axes, places, strict=True):
        levels = outcome.levels(axis, outcome.select(**here))
        for i, line in enumerate(lines):
            shift = (i + 0.5) / len(lines) - 0.5
            mine = {c.at.get(axis, ""): c for c in line.cells(outcome, here)}
            if mine:
                _clouds(ax, line, [(j + shift, mine[level]) for j, level in enumerate(levels) if level in mine], metric, SPREAD / len(lines))
        _scale(ax, values)
        ax.set_xticks(range(len(levels)), levels, fontsize=8)
        ax.set_xlim(-0.5, len(levels) - 0.5)
        ax.grid(False, axis="x")
        ax.set_xlabel(base.axis_name(outcome, axis))
        ax.set_title(base.said(here), fontsize=10)
    style.y_label(axes, base.metric_label(metric))
    what = "each dot a run; two modes where the dip test refutes one (p < 0.05)"
    style.words(fig, axes, (base.title(outcome, beside), base.note(outcome, what)), outcome.caveats)
    return fig


def _clouds(ax: Axes, line: Line, columns: Sequence[tuple[float, Cell]], metric: str, width: float) -> None:
    """The dots of one congestion control in columns of this width, and their medians."""
    look, dots = line.look, sum(len(c.trials) for _, c in columns)
    clouds = [(x + width * _apart(len(c.trials)), c.values(metric)) for x, c in columns]
    xs, ys = (np.concatenate([np.asarray(cloud[i], dtype=float) for cloud in clouds]) for i in (0, 1))
    ax.plot(
        xs, ys, color=look.colour, marker=look.marker, markersize=3.0 if dots < MANY else 1.8, alpha=0.65, linewidth=0, markeredgewidth=0,
        rasterized=dots >= MANY,
    )
    ax.plot([], [], color=look.colour, marker=look.marker, markersize=5, linewidth=0, label=line.label)
    for x, cell in columns:
        _marks(ax, x, stats.shape([v for v in cell.values(metric) if math.isfinite(v)]), width)


def _marks(ax: Axes, x: float, shape: Shape, width: float) -> None:
    """The median with its interval; of several modes each, as long as its share of the runs."""
    for mode in shape.modes:
        got, share = mode.location, mode.share.value
        low, high = base.bounded(got, -math.inf, math.inf)
        ends = [[got.value - low if math.isfinite(low) else 0.0], [high - got.value if math.isfinite(high) else 0.0]]
        label = MODES if shape.bimodal else MEDIAN
        ax.errorbar(
            x, got.value, xerr=width / 2 * share, yerr=ends, color=style.INK, elinewidth=2.4 if shape.bimodal else 1.3, linewidth=0, zorder=4,
            label=label,
        )


def _apart(n: int) -> NDArray[np.float64]:
    """Offsets from −0.5 to 0.5 that spread successive dots evenly: van der Corput's sequence in base 2."""
    found = np.zeros(n)
    for i in range(n):
        k, step = i + 1, 0.5
        while k:
            found[i] += step * (k & 1)
            k, step = k >> 1, step / 2
    return found - 0.5


def _scale(ax: Axes, values: Sequence[float]) -> None:
    low, high = min((v for v in values if v > 0), default=1.0), max(values, default=1.0) or 1.0
    if high / low > WIDE and min(values) > 0:
        ax.set_yscale("log")
        ax.set_ylim(low / 1.4, high * 1.4)
        style.plain_log(ax.yaxis)
    else:
        ax.set_ylim(min(0.0, *values), high * 1.06)
