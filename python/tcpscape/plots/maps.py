"""Maps over two axes: a metric with the line where half of it is gone, and the ratio of two congestion controls with its undecided cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.findings.contour_ratio import Pair, RatioCell, RatioMap, ratio_map
from tcpscape.plots import base, palette, style
from tcpscape.plots.base import Beside, Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVELS = 3
"""Fewest values on each axis."""
CELL = (0.8, 0.44)
"""Width and height of a cell, inches."""
MOST_NUMBERS = 14
"""Columns that have room for numbers."""
INTERVAL_SIZE, LEAST_SIZE = 5.8, 4.5
"""Size of an interval in a cell, points; one that would have to be smaller is left to the table."""
HALF = 0.5
"""Share of the goodput at the lowest value of the x axis that the contour follows."""
BEST = 4.0
"""Ratio at which the ratio map's colour is full, either way."""
DARK, LIGHT = "#14171a", "#ffffff"
"""Numbers on light and on dark cells; whatever else stands on cells, which are the same on every page."""


@dataclass(frozen=True)
class _Plane:
    """The cells of one panel."""

    x: str
    y: str
    xs: tuple[str, ...]
    ys: tuple[str, ...]
    cells: Mapping[tuple[int, int], Cell]
    """(row, column) → cell."""


def has_plane(outcome: Outcome) -> bool:
    """Whether two axes with a scale have at least three values each."""
    found = base.scales(outcome, LEVELS)
    return len(found) >= 2 and len(base.points(outcome, *found[-2:])) * len(base.lines(outcome)) <= base.MOST_PANELS


def has_ratio(outcome: Outcome) -> bool:
    """Whether there are two congestion controls on such a plane."""
    return has_plane(outcome) and len(base.lines(outcome)) >= 2


def _plane(outcome: Outcome, line: Line, here: Mapping[str, str]) -> _Plane:
    y, x = base.scales(outcome, LEVELS)[-2:]
    mine = line.cells(outcome, here)
    xs, ys = outcome.levels(x, outcome.cells), outcome.levels(y, outcome.cells)
    return _Plane(x, y, xs, ys, {(ys.index(c.at[y]), xs.index(c.at[x])): c for c in mine if x in c.at and y in c.at})


def heat(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The metric's mean in each cell with its interval; the line is where half of that at the lowest value of the x axis is left."""
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    metric = outcome.campaign.metric
    panels = _panels(outcome)
    fig, axes = _figure(outcome, len(panels))
    top = max((v for c in outcome.cells if math.isfinite(v := c.mean(metric).value)), default=1.0)
    scale, colours = Normalize(0, top or 1.0), colormaps["cividis"]
    for ax, (line, here) in zip(axes, panels, strict=True):
        plane = _plane(outcome, line, here)
        values = _grid(plane, {at: c.mean(metric).value for at, c in plane.cells.items()})
        ax.pcolormesh(values, cmap=colours, norm=scale)
        if len(plane.xs) <= MOST_NUMBERS:
            for at, cell in plane.cells.items():
                got = cell.mean(metric)
                _number(ax, at, got.text(), colours(scale(got.value)))
        if metric == "goodput":
            _half(ax, outcome, plane)
        _axes(ax, outcome, plane, ", ".join(filter(None, [line.label, base.said(here)])))
    what = f"{base.metric_label(metric)}: mean and 95 % interval; dashed: half of that at the lowest {panels and _plane(outcome, *panels[0]).x}"
    style.words(fig, axes, (base.title(outcome, beside), base.note(outcome, what)), outcome.caveats)
    return fig


def _panels(outcome: Outcome) -> list[tuple[Line, dict[str, str]]]:
    along = base.scales(outcome, LEVELS)[-2:]
    return [(line, here) for here in base.points(outcome, *along) for line in base.lines(outcome) if line.cells(outcome, here)]


def _figure(outcome: Outcome, panels: int) -> tuple[Figure, list[Axes]]:
    y, x = (len(outcome.levels(a)) for a in base.scales(outcome, LEVELS)[-2:])
    fig, axes = style.figure(panels, share=False, width=1.0 + CELL[0] * min(x, MOST_NUMBERS + 4), height=0.9 + CELL[1] * y, columns=2)
    for ax in axes:
        ax.grid(False)
    return fig, axes


def _grid(plane: _Plane, values: Mapping[tuple[int, int], float]) -> NDArray[np.float64]:
    found = np.full((len(plane.ys), len(plane.xs)), np.nan)
    for at, value in values.items():
        found[at] = value
    return found


def _half(ax: Axes, outcome: Outcome, plane: _Plane) -> None:
    """The contour where half is left; nowhere where no cell is on the other side."""
    left = _grid(plane, {at: outcome.retention(c, plane.x).value for at, c in plane.cells.items()})
    if np.isfinite(left).all() and left.min() < HALF < left.max():
        at = np.arange(len(plane.xs)) + 0.5, np.arange(len(plane.ys)) + 0.5
        ax.contour(*at, left, levels=[HALF], colors=[LIGHT], linewidths=2.4)
        ax.contour(*at, left, levels=[HALF], colors=[DARK], linewidths=1.1, linestyles="--")


def _number(ax: Axes, at: tuple[int, int], text: str, ground: Any) -> None:
    """A value over its interval, in whatever reads on the cell's colour."""
    value, _, interval = text.partition(" ")
    red, green, blue = ground[:3]
    tone = DARK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else LIGHT
    row, column = at
    ax.text(column + 0.5, row + 0.63, value, color=tone, fontsize=8, ha="center", va="center")
    size = min(INTERVAL_SIZE, CELL[0] * style.POINTS * 0.95 / (style.WIDTH_OF_CHARACTER * max(1, len(interval))))
    if size >= LEAST_SIZE:
        ax.text(column + 0.5, row + 0.26, interval, color=tone, fontsize=size, ha="center", va="center")


def _axes(ax: Axes, outcome: Outcome, plane: _Plane, title: str) -> None:
    for axis, levels, set_ticks in ((plane.x, plane.xs, ax.set_xticks), (plane.y, plane.ys, ax.set_yticks)):
        step = -(-len(levels) // MOST_NUMBERS)
        numbers = {c.at[axis]: c.value(axis).number for c in outcome.cells if axis in c.at}
        set_ticks([i + 0.5 for i in range(0, len(levels), step)], [f"{numbers[level]:.4g}" for level in levels[::step]], fontsize=8)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel(base.axis_label(outcome, plane.x))
    ax.set_ylabel(base.axis_label(outcome, plane.y))
    ax.set_title(title, fontsize=10)


def ratio(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """Every congestion control over the first (CUBIC, where it is there): the ratio of means with its interval; hatched where it is open."""
    lines = base.lines(outcome)
    below = next((line for line in lines if line.cca == "cubic"), lines[0])
    along = base.scales(outcome, LEVELS)[-2:]
    panels = [(line, here) for here in base.points(outcome, *along) for line in lines if line is not below and line.cells(outcome, here)]
    fig, axes = _figure(outcome, len(panels))
    for ax, (line, here) in zip(axes, panels, strict=True):
        plane, under = _plane(outcome, line, here), _plane(outcome, below, here)
        _ratios(ax, plane, _map(outcome.campaign.metric, plane, under))
        _axes(ax, outcome, plane, ", ".join(filter(None, [f"{line.label} / {below.label}", base.said(here)])))
    what = f"ratio of mean {outcome.campaign.metric}s, 95 % interval; hatched: undecided; =: the same within 5 %"
    style.words(fig, axes, (base.title(outcome, beside), base.note(outcome, what)), outcome.caveats)
    return fig


def _map(metric: str, above: _Plane, below: _Plane) -> RatioMap:
    """The ratios; x and y are columns and rows."""
    both = [(at, c, below.cells[at]) for at, c in above.cells.items() if at in below.cells]
    some = [(at, a.values(metric), b.values(metric)) for at, a, b in both]
    return ratio_map([Pair(column, row, a[: len(b)], b[: len(a)]) for (row, column), a, b in some])


def _ratios(ax: Axes, plane: _Plane, found: RatioMap) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    colours = LinearSegmentedColormap.from_list("ratio", [palette.VERMILION, "#f4f4f4", palette.BLUE])
    for cell in found.cells:
        row, column = int(cell.y), int(cell.x)
        ground = colours(_place(cell))
        ax.add_patch(Rectangle((column, row), 1, 1, facecolor=ground, linewidth=0))
        if cell.verdict == "undecided":
            ax.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor=(DARK, 0.4), hatch="///", linewidth=0))
        if len(plane.xs) <= MOST_NUMBERS:
            _ratio_number(ax, (row, column), cell, ground)
    ax.set_xlim(0, len(plane.xs))
    ax.set_ylim(0, len(plane.ys))


def _place(cell: RatioCell) -> float:
    """Where a ratio stands on the colour scale, 0…1; logarithmic."""
    if not cell.ratio.value > 0:
        return 0.5
    return 0.5 + 0.5 * max(-1.0, min(1.0, math.log(cell.ratio.value) / math.log(BEST)))


def _ratio_number(ax: Axes, at: tuple[int, int], cell: RatioCell, ground: Sequence[float]) -> None:
    value, _, interval = cell.ratio.text(2).partition(" ")
    _number(ax, at, f"{'=' if cell.verdict == 'same' else ''}{value} {interval}", ground)
