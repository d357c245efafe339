"""Every run of a cell: a dot for each, and the share of runs up to each value. A mean hides runs that fall apart into modes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape import stats
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.plots import base, style
from tcpscape.plots.base import Context, LegendEntry
from tcpscape.stats import Shape
from tcpscape.stats.estimate import CONFIDENCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STRIP_RUNS, CDF_RUNS = 8, 10
"""Runs of a cell from which its dots say more than its interval; from which its distribution has a shape."""
STRIP_ENTRIES, STRIP_COLUMNS = 4, 40
"""Dots: most congestion controls side by side; most columns of a panel."""
CDF_POINTS, CDF_ENTRIES = 6, 6
"""Distributions: most points on the axes, and most congestion controls, of one figure."""
SPREAD = 0.72
"""Width of a column's dots, as a share of the column."""
MANY = 1500
"""Dots from which they are written as an image."""
MEDIAN, MODES = "median, 95 % interval", "one of two modes, 95 % interval; as wide as its share of the runs"
WIDE = 30.0
"""Ratio of the highest to the lowest value from which the axis is logarithmic."""
SECOND_METRIC = "rtt"
"""Metric whose distribution is drawn beside that of the campaign's metric."""


def has_runs(outcome: Outcome) -> bool:
    """Whether cells have enough runs for dots, along an axis with few enough values."""
    axis = _strip_axis(outcome)
    entries = len(base.entries(outcome))
    if axis is None or entries > STRIP_ENTRIES or not base.fits(outcome, axis):
        return False
    return entries * len(outcome.levels(axis)) <= STRIP_COLUMNS and max(len(c.trials) for c in outcome.cells) >= STRIP_RUNS


def _strip_axis(outcome: Outcome) -> str | None:
    """The last axis of quantities, else the last one with several values, else the last one."""
    several = [a for a in outcome.axes if len(outcome.levels(a)) > 1]
    return next(reversed(base.numeric_axes(outcome) or several or list(outcome.axes)), None)


def strip(outcome: Outcome, context: Context = Context()) -> Figure:
    """The metric of each run as a dot, the median with its interval in ink; a panel for each point on the other axes."""
    axis, metric = str(_strip_axis(outcome)), outcome.campaign.metric
    points, entries = outcome.points(axis), base.entries(outcome)
    columns = len(outcome.levels(axis)) * len(entries)
    fig, axes = style.panels(len(points), width=min(8.4, max(4.2, 1.2 + 0.34 * columns)), height=3.2, columns=2, page=context.width)
    values = [v for c in outcome.cells for v in c.values(metric) if math.isfinite(v)]
    for ax, point in zip(axes, points, strict=True):
        levels = outcome.levels(axis, outcome.select(**point))
        for i, entry in enumerate(entries):
            shift = (i + 0.5) / len(entries) - 0.5
            cells = {c.at.get(axis, ""): c for c in entry.cells(outcome, point)}
            if cells:
                placed = [(j + shift, cells[level]) for j, level in enumerate(levels) if level in cells]
                _draw_dots(ax, entry, placed, metric, SPREAD / len(entries))
        _scale(ax, values)
        ax.set_xticks(range(len(levels)), levels, fontsize=8)
        ax.set_xlim(-0.5, len(levels) - 0.5)
        ax.grid(False, axis="x")
        ax.set_xlabel(base.axis_name(outcome, axis))
        ax.set_title(base.point_text(point), fontsize=10)
    style.y_label(axes, base.metric_label(metric))
    note = base.note(outcome, context, "each dot a run; two modes where the dip test refutes one (p < 0.05)")
    style.finish(fig, axes, (base.title(outcome, context), note), outcome.caveats)
    return fig


def _draw_dots(ax: Axes, entry: LegendEntry, columns: Sequence[tuple[float, Cell]], metric: str, width: float) -> None:
    """The dots of one congestion control in columns (place, cell) of this width, and their medians."""
    look, dots = entry.look, sum(len(c.trials) for _, c in columns)
    clouds = [(x + width * _offsets(len(c.trials)), c.values(metric)) for x, c in columns]
    xs, ys = (np.concatenate([np.asarray(cloud[i], dtype=float) for cloud in clouds]) for i in (0, 1))
    ax.plot(
        xs,
        ys,
        color=look.colour,
        marker=look.marker,
        markersize=3.0 if dots < MANY else 1.8,
        alpha=0.65,
        linewidth=0,
        markeredgewidth=0,
        rasterized=dots >= MANY,
    )
    ax.plot([], [], color=look.colour, marker=look.marker, markersize=5, linewidth=0, label=entry.label)
    for x, cell in columns:
        _draw_modes(ax, x, stats.shape([v for v in cell.values(metric) if math.isfinite(v)]), width)


def _draw_modes(ax: Axes, x: float, shape: Shape, width: float) -> None:
    """The median with its interval; where there are several modes, that of each, as wide as its share of the runs."""
    for mode in shape.modes:
        location, share = mode.location, mode.share.value
        low, high = base.clipped_interval(location, -math.inf, math.inf)
        ends = [[location.value - low if math.isfinite(low) else 0.0], [high - location.value if math.isfinite(high) else 0.0]]
        ax.errorbar(
            x,
            location.value,
            xerr=width / 2 * share,
            yerr=ends,
            color=style.INK,
            elinewidth=1.3,
            linewidth=0,
            zorder=4,
            label=MODES if shape.bimodal else MEDIAN,
        )


def _offsets(n: int) -> NDArray[np.float64]:
    """Offsets from −0.5 to 0.5 that spread successive dots evenly: van der Corput's sequence in base 2."""
    offsets = np.zeros(n)
    for i in range(n):
        k, step = i + 1, 0.5
        while k:
            offsets[i] += step * (k & 1)
            k, step = k >> 1, step / 2
    return offsets - 0.5


def _scale(ax: Axes, values: Sequence[float]) -> None:
    low, high = min((v for v in values if v > 0), default=1.0), max(values, default=1.0) or 1.0
    if high / low > WIDE and min(values) > 0:
        ax.set_yscale("log")
        ax.set_ylim(low / 1.4, high * 1.4)
        style.plain_log(ax.yaxis)
    else:
        ax.set_ylim(min(0.0, *values), high * 1.06)


def has_distribution(outcome: Outcome) -> bool:
    """Whether there are enough runs for a distribution, and few enough cells."""
    few = len(outcome.points()) <= CDF_POINTS and len(base.entries(outcome)) <= CDF_ENTRIES
    return few and max((len(c.trials) for c in outcome.cells), default=0) >= CDF_RUNS


def cdf(outcome: Outcome, context: Context = Context()) -> Figure:
    """The distribution of the campaign's metric and of the RTT over the runs, with a band for the whole curve; a row for each point on the axes."""
    metric = outcome.campaign.metric
    known = any(math.isfinite(v) for c in outcome.cells for v in c.values(SECOND_METRIC))
    metrics = [metric, *([SECOND_METRIC] if metric != SECOND_METRIC and known else [])]
    points = outcome.points()
    fig, axes = style.panels(len(points) * len(metrics), columns=len(metrics), width=4.2, height=2.3, page=context.width)
    for i, point in enumerate(points):
        for ax, column in zip(axes[i * len(metrics) :], metrics, strict=False):
            for entry in base.entries(outcome):
                for cell in entry.cells(outcome, point):
                    _draw_steps(ax, entry, cell.values(column))
            ax.set_ylim(0, 1.02)
            ax.set_xlabel(base.metric_label(column))
            ax.set_title(base.point_text(point), fontsize=10)
    style.y_label(axes, "share of runs")
    note = base.note(outcome, context, f"band: {CONFIDENCE:.0%} for the whole curve")
    style.finish(fig, axes, (base.title(outcome, context), note), outcome.caveats)
    return fig


def _draw_steps(ax: Axes, entry: LegendEntry, values: Sequence[float]) -> None:
    known = np.sort([v for v in values if math.isfinite(v)])
    if not len(known):
        return
    # Dvoretzky, Kiefer, Wolfowitz 1956 with Massart's constant (1990): the band contains the whole true distribution.
    reach = math.sqrt(math.log(2 / (1 - CONFIDENCE)) / (2 * len(known)))
    x = np.concatenate(([known[0]], known))
    y = np.arange(len(known) + 1) / len(known)
    look = entry.look
    ax.step(x, y, where="post", color=look.colour, linestyle=look.dash, linewidth=1.5, label=entry.label)
    ax.fill_between(x, np.clip(y - reach, 0, 1), np.clip(y + reach, 0, 1), step="post", color=look.colour, alpha=0.15, linewidth=0)
