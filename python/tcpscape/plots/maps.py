"""Maps over two axes: a metric with the line where half of it is left, and the ratio of two congestion controls with the undecided cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.campaign.axes import read
from tcpscape.campaign.outcome import Cell, Outcome, estimates
from tcpscape.controls import palette
from tcpscape.findings.cliff.search import PairedRuns, RatioCell, ratio_cells
from tcpscape.plots import base, style
from tcpscape.plots.base import Context, LegendEntry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

LEVELS, MOST_ENTRIES = 3, 8
"""Fewest values on each axis; most congestion controls, a panel each."""
CELL, LEAST_CELL, SIDE = (0.8, 0.44), 0.36, 1.0
"""Width and height of a cell, inches; least width of one with a number in it; what a panel has beside its cells."""
WIDER = 1.25
"""Panels stand side by side in a figure of a given width where they are at most this much wider than it."""
MOST_NUMBERS, PANEL = 14, (5.6, 4.4)
"""Most columns, and rows, for a number in each cell; size of a panel without numbers, inches."""
NUMBER_SIZE, INTERVAL_SIZE, LEAST_SIZE = 8.0, 7.0, 5.5
"""Font of a number in a cell, and of its interval, points; an interval that would need a font smaller than the third is left out."""
HALF, HALVED = 0.5, "goodput"
"""Share of the value at the lowest value of the x axis that the contour follows; the metric that has the contour."""
BEST = 4.0
"""Ratio, and its inverse, at which the colour of the ratio map is full."""
RATIO_TICKS = (1 / BEST, 1 / math.sqrt(BEST), 1.0, math.sqrt(BEST), BEST)
ON_LIGHT, ON_DARK = "#14171a", "#ffffff"
"""Ink on light and on dark cells; cells have the same colours on every page."""


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
    """Whether two axes of quantities have at least three values each, and there are few enough congestion controls."""
    return len(base.numeric_axes(outcome, LEVELS)) >= 2 and len(base.entries(outcome)) <= MOST_ENTRIES


def pages(outcome: Outcome) -> list[Outcome]:
    """A figure for each point on the other axes."""
    along = base.numeric_axes(outcome, LEVELS)[-2:]
    return [base.subset(outcome, point) for point in outcome.points(*along)]


def has_ratio(outcome: Outcome) -> bool:
    """Whether there are two congestion controls on such a plane."""
    return has_plane(outcome) and len(base.entries(outcome)) >= 2


def _plane(outcome: Outcome, entry: LegendEntry) -> _Plane:
    y, x = base.numeric_axes(outcome, LEVELS)[-2:]
    xs, ys = outcome.levels(x), outcome.levels(y)
    columns, rows = ({level: i for i, level in enumerate(levels)} for levels in (xs, ys))
    return _Plane(x, y, xs, ys, {(rows[c.at[y]], columns[c.at[x]]): c for c in entry.cells(outcome, {}) if x in c.at and y in c.at})


def heat(outcome: Outcome, context: Context = Context()) -> Figure:
    """The metric's mean in each cell with its interval; the line is where half of that at the lowest value of the x axis is left."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    metric = outcome.campaign.metric
    entries, numbered = base.entries(outcome), _numbered(outcome, context)
    planes = [_plane(outcome, entry) for entry in entries]
    estimates(outcome.cells, "mean", metric)
    means_of_planes = [{at: c.mean(metric).value for at, c in plane.cells.items()} for plane in planes]
    fig, axes = _panels(outcome, len(entries), context)
    scale = Normalize(0, max((v for means in means_of_planes for v in means.values() if math.isfinite(v)), default=1.0) or 1.0)
    colours = colormaps["cividis"]
    for ax, entry, plane, means in zip(axes, entries, planes, means_of_planes, strict=True):
        ax.pcolormesh(_grid(plane, means), cmap=colours, norm=scale, rasterized=not numbered)
        if numbered:
            for at, cell in plane.cells.items():
                _draw_number(ax, at, cell.mean(metric).text(), colours(scale(means[at])))
        if metric == HALVED:
            _draw_half(ax, plane, means)
        _label_axes(ax, outcome, plane, entry.label)
    if not numbered:
        _colour_bar(fig, axes, ScalarMappable(scale, colours), base.metric_label(metric, "mean"))
    content = f"{base.metric_label(metric)}: mean{' and 95 % interval' if numbered else ''}; dashed: half of that at the lowest {planes[0].x}"
    style.finish(fig, axes, (base.title(outcome, context), base.note(outcome, context, content)), outcome.caveats)
    return fig


def _panels(outcome: Outcome, count: int, context: Context) -> tuple[Figure, list[Axes]]:
    y, x = (len(outcome.levels(a)) for a in base.numeric_axes(outcome, LEVELS)[-2:])
    width, height = (SIDE + CELL[0] * x, 0.9 + CELL[1] * y) if _numbered(outcome, context) else PANEL
    columns = 2 if context.width is None or 2 * width <= WIDER * context.width else 1
    fig, axes = style.panels(count, share=False, width=width, height=height, columns=columns, page=context.width)
    for ax in axes:
        ax.grid(False)
    return fig, axes


def _numbered(outcome: Outcome, context: Context) -> bool:
    """Whether cells have room for numbers."""
    y, x = (len(outcome.levels(a)) for a in base.numeric_axes(outcome, LEVELS)[-2:])
    narrow = context.width is not None and (context.width - SIDE) / x < LEAST_CELL
    return max(x, y) <= MOST_NUMBERS and not narrow


def _grid(plane: _Plane, values: Mapping[tuple[int, int], float]) -> NDArray[np.float64]:
    """The values as an array [row, column]; NaN where there is no cell."""
    grid = np.full((len(plane.ys), len(plane.xs)), np.nan)
    for at, value in values.items():
        grid[at] = value
    return grid


def _draw_half(ax: Axes, plane: _Plane, means: Mapping[tuple[int, int], float]) -> None:
    """The contour where half of each row's first value is left; none where all cells are on the same side."""
    values = _grid(plane, means)
    left = values / np.where(values[:, :1] > 0, values[:, :1], np.nan)
    if np.isfinite(left).all() and left.min() < HALF < left.max():
        at = np.arange(len(plane.xs)) + 0.5, np.arange(len(plane.ys)) + 0.5
        ax.contour(*at, left, levels=[HALF], colors=[ON_DARK], linewidths=2.4)
        ax.contour(*at, left, levels=[HALF], colors=[ON_LIGHT], linewidths=1.1, linestyles="--")


def _colour_bar(fig: Figure, axes: Sequence[Axes], colours: ScalarMappable, label: str, ticks: Sequence[float] = ()) -> None:
    """The scale of colours, where cells have no room for numbers; `ticks`: its only ones, by default Matplotlib's choice."""
    bar = fig.colorbar(colours, ax=list(axes), shrink=0.8)
    bar.set_label(label, color=style.INK)
    bar.ax.tick_params(which="both", colors=style.INK, labelcolor=style.INK)
    bar.outline.set_visible(False)
    if ticks:
        bar.set_ticks(list(ticks), labels=[f"{t:g}" for t in ticks])
        bar.ax.minorticks_off()


def _draw_number(ax: Axes, at: tuple[int, int], text: str, ground: Any) -> None:
    """A value above its interval, in the ink that is legible on the cell's colour."""
    value, _, interval = text.partition(" ")
    red, green, blue = ground[:3]
    ink = ON_LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else ON_DARK
    row, column = at
    width = (style.panel_width(ax) - SIDE * style.POINTS) / ax.get_xlim()[1]
    size, small = (0.95 * width / (style.WIDTH_OF_CHARACTER * max(1, len(part))) for part in (value, interval))
    box = {"facecolor": ground, "linewidth": 0, "pad": 0.6}  # hides the line of the contour behind the number
    ax.text(column + 0.5, row + 0.63, value, color=ink, fontsize=min(NUMBER_SIZE, size), ha="center", va="center", bbox=box)
    narrow = ax.get_figure(root=True).get_figwidth() <= style.NARROW  # type: ignore[union-attr]
    if small >= (INTERVAL_SIZE if narrow else LEAST_SIZE):
        ax.text(column + 0.5, row + 0.26, interval, color=ink, fontsize=min(INTERVAL_SIZE, small), ha="center", va="center", bbox=box)


def _label_axes(ax: Axes, outcome: Outcome, plane: _Plane, title: str) -> None:
    for axis, levels, set_ticks in ((plane.x, plane.xs, ax.set_xticks), (plane.y, plane.ys, ax.set_yticks)):
        step = -(-len(levels) // MOST_NUMBERS)
        numbers = {level: read(level).number for level in levels}
        names = base.tick_names(outcome, axis)
        labels = [names.get(numbers[level], f"{numbers[level]:.4g}") for level in levels[::step]]
        set_ticks([i + 0.5 for i in range(0, len(levels), step)], labels, fontsize=8)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel(base.axis_label(outcome, plane.x))
    ax.set_ylabel(base.axis_label(outcome, plane.y))
    ax.set_title(title, fontsize=10)


def ratio(outcome: Outcome, context: Context = Context()) -> Figure:
    """Every congestion control over the first (CUBIC, if present): the ratio of means with its interval; undecided cells are hatched."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    entries, numbered = base.entries(outcome), _numbered(outcome, context)
    reference = next((entry for entry in entries if entry.cca == "cubic"), entries[0])
    others = [entry for entry in entries if entry is not reference]
    below = _plane(outcome, reference)
    fig, axes = _panels(outcome, len(others), context)
    for ax, entry in zip(axes, others, strict=True):
        plane = _plane(outcome, entry)
        pair = (entry.label, reference.label)
        if pair not in outcome._ratio_maps:
            outcome._ratio_maps[pair] = _ratios(outcome.campaign.metric, plane, below)
        _draw_ratios(ax, plane, outcome._ratio_maps[pair], numbered=numbered)
        _label_axes(ax, outcome, plane, f"{entry.label} / {reference.label}")
    label = f"ratio of mean {outcome.campaign.metric}s"
    if not numbered:
        _colour_bar(fig, axes, ScalarMappable(LogNorm(1 / BEST, BEST), _contrast()), label, RATIO_TICKS)
    interval = ", 95 % interval; =: the same within 5 %" if numbered else ""
    note = base.note(outcome, context, f"{label}{interval}; hatched: undecided at 95 %")
    style.finish(fig, axes, (base.title(outcome, context), note), outcome.caveats)
    return fig


def _ratios(metric: str, above: _Plane, below: _Plane) -> tuple[RatioCell, ...]:
    """The ratios of the means; x and y are columns and rows."""
    both = [(at, c.values(metric), below.cells[at].values(metric)) for at, c in above.cells.items() if at in below.cells]
    return ratio_cells([PairedRuns(column, row, a[: len(b)], b[: len(a)]) for (row, column), a, b in both])


def _draw_ratios(ax: Axes, plane: _Plane, ratios: Sequence[RatioCell], *, numbered: bool) -> None:
    """The cells in their colours. Cells without numbers are two artists in all: with two for each cell, thousands of cells take long."""
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    ax.set_xlim(0, len(plane.xs))
    ax.set_ylim(0, len(plane.ys))
    colours = _contrast()
    hatched: dict[str, Any] = {"fill": False, "edgecolor": (ON_LIGHT, 0.4), "hatch": "///", "linewidth": 0}
    if not numbered:
        shades = {(int(cell.y), int(cell.x)): _shade(cell) for cell in ratios}
        ax.pcolormesh(_grid(plane, shades), cmap=colours, vmin=0, vmax=1, rasterized=True)
        undecided = [(cell.x, cell.y) for cell in ratios if cell.verdict == "undecided"]
        if undecided:
            corners = np.array(undecided)[:, None, :] + np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
            ax.add_artist(PathPatch(Path.make_compound_path_from_polys(corners), **hatched))  # the limits stand: looking for them takes a second
    for cell in ratios if numbered else ():
        row, column = int(cell.y), int(cell.x)
        ground = colours(_shade(cell))
        ax.add_patch(Rectangle((column, row), 1, 1, facecolor=ground, linewidth=0))
        if cell.verdict == "undecided":
            ax.add_patch(Rectangle((column, row), 1, 1, **hatched))
        value, _, interval = cell.ratio.text(2).partition(" ")
        _draw_number(ax, (row, column), f"{'=' if cell.verdict == 'same' else ''}{value} {interval}", ground)


def _contrast() -> Colormap:
    """From worse to better."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ratio", [palette.VERMILION, "#f4f4f4", palette.BLUE])


def _shade(cell: RatioCell) -> float:
    """The place of a ratio on the logarithmic colour scale, 0…1."""
    if not cell.ratio.value > 0:
        return 0.5
    return 0.5 + 0.5 * max(-1.0, min(1.0, math.log(cell.ratio.value) / math.log(BEST)))
