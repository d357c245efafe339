"""Maps over two axes: a metric with the line where half of it is gone, and the ratio of two congestion controls with its undecided cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.findings.cliff.planes import PairedRuns, RatioCell, RatioMap, ratio_map
from tcpscape.plots import base, palette, style
from tcpscape.plots.base import Beside, Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

LEVELS, MOST_LINES = 3, 8
"""Fewest values on each axis; most congestion controls, a panel each."""
CELL = (0.8, 0.44)
"""Width and height of a cell, inches."""
MOST_NUMBERS, PANEL = 14, (5.6, 4.4)
"""Columns, and rows, that have room for numbers; size of a panel that has not, inches."""
INTERVAL_SIZE, LEAST_SIZE = 5.8, 4.5
"""Size of an interval in a cell, points; one that would have to be smaller is left to the table."""
HALF = 0.5
"""Share of the goodput at the lowest value of the x axis that the contour follows."""
BEST = 4.0
"""Ratio at which the ratio map's colour is full, either way."""
RATIO = "ratio"
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
    """Whether two axes with a scale have at least three values each, and there are few enough congestion controls."""
    return len(base.scales(outcome, LEVELS)) >= 2 and len(base.lines(outcome)) <= MOST_LINES


def pages(outcome: Outcome) -> list[Outcome]:
    """A figure for each point on the other axes."""
    along = base.scales(outcome, LEVELS)[-2:]
    return [base.part(outcome, here) for here in base.points(outcome, *along)]


def has_ratio(outcome: Outcome) -> bool:
    """Whether there are two congestion controls on such a plane."""
    return has_plane(outcome) and len(base.lines(outcome)) >= 2


def _plane(outcome: Outcome, line: Line) -> _Plane:
    y, x = base.scales(outcome, LEVELS)[-2:]
    xs, ys = outcome.levels(x), outcome.levels(y)
    columns, rows = ({level: i for i, level in enumerate(levels)} for levels in (xs, ys))
    return _Plane(x, y, xs, ys, {(rows[c.at[y]], columns[c.at[x]]): c for c in line.cells(outcome, {}) if x in c.at and y in c.at})


def heat(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The metric's mean in each cell with its interval; the line is where half of that at the lowest value of the x axis is left."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    metric = outcome.campaign.metric
    lines, numbered = base.lines(outcome), _numbered(outcome)
    planes = [_plane(outcome, line) for line in lines]
    means = [{at: float(np.mean(c.values(metric))) for at, c in plane.cells.items()} for plane in planes]
    fig, axes = _figure(outcome, len(lines))
    scale = Normalize(0, max((v for some in means for v in some.values() if math.isfinite(v)), default=1.0) or 1.0)
    colours = colormaps["cividis"]
    for ax, line, plane, some in zip(axes, lines, planes, means, strict=True):
        ax.pcolormesh(_grid(plane, some), cmap=colours, norm=scale, rasterized=not numbered)
        if numbered:
            for at, cell in plane.cells.items():
                _number(ax, at, cell.mean(metric).text(), colours(scale(some[at])))
        if metric == "goodput":
            _half(ax, plane, some)
        _axes(ax, outcome, plane, line.label)
    if not numbered:
        _bar(fig, axes, ScalarMappable(scale, colours), base.metric_label(metric))
    what = f"{base.metric_label(metric)}: mean{' and 95 % interval' if numbered else ''}; dashed: half of that at the lowest {planes[0].x}"
    style.words(fig, axes, (base.title(outcome, beside), base.note(outcome, what)), outcome.caveats)
    return fig


def _figure(outcome: Outcome, panels: int) -> tuple[Figure, list[Axes]]:
    y, x = (len(outcome.levels(a)) for a in base.scales(outcome, LEVELS)[-2:])
    width, height = (1.0 + CELL[0] * x, 0.9 + CELL[1] * y) if _numbered(outcome) else PANEL
    fig, axes = style.figure(panels, share=False, width=width, height=height, columns=2)
    for ax in axes:
        ax.grid(False)
    return fig, axes


def _numbered(outcome: Outcome) -> bool:
    """Whether cells have room for numbers."""
    return all(len(outcome.levels(a)) <= MOST_NUMBERS for a in base.scales(outcome, LEVELS)[-2:])


def _grid(plane: _Plane, values: Mapping[tuple[int, int], float]) -> NDArray[np.float64]:
    found = np.full((len(plane.ys), len(plane.xs)), np.nan)
    for at, value in values.items():
        found[at] = value
    return found


def _half(ax: Axes, plane: _Plane, means: Mapping[tuple[int, int], float]) -> None:
    """The contour where half of each row's first value is left; nowhere where no cell is on the other side."""
    values = _grid(plane, means)
    left = values / np.where(values[:, :1] > 0, values[:, :1], np.nan)
    if np.isfinite(left).all() and left.min() < HALF < left.max():
        at = np.arange(len(plane.xs)) + 0.5, np.arange(len(plane.ys)) + 0.5
        ax.contour(*at, left, levels=[HALF], colors=[LIGHT], linewidths=2.4)
        ax.contour(*at, left, levels=[HALF], colors=[DARK], linewidths=1.1, linestyles="--")


def _bar(fig: Figure, axes: Sequence[Axes], colours: ScalarMappable, label: str) -> None:
    """The scale of colours, where cells have no room for numbers."""
    bar = fig.colorbar(colours, ax=list(axes), shrink=0.8)
    bar.set_label(label, color=style.INK)
    bar.ax.tick_params(which="both", colors=style.INK, labelcolor=style.INK)
    bar.outline.set_visible(False)
    if label.startswith(RATIO):
        ticks = (1 / BEST, 1 / math.sqrt(BEST), 1.0, math.sqrt(BEST), BEST)
        bar.set_ticks(list(ticks), labels=[f"{t:g}" for t in ticks])
        bar.ax.minorticks_off()


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
        names = base.written(outcome, axis)
        said = [names.get(numbers[level], f"{numbers[level]:.4g}") for level in levels[::step]]
        set_ticks([i + 0.5 for i in range(0, len(levels), step)], said, fontsize=8)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel(base.axis_label(outcome, plane.x))
    ax.set_ylabel(base.axis_label(outcome, plane.y))
    ax.set_title(title, fontsize=10)


def ratio(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """Every congestion control over the first (CUBIC, where it is there): the ratio of means with its interval; hatched where it is open."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    lines, numbered = base.lines(outcome), _numbered(outcome)
    below = next((line for line in lines if line.cca == "cubic"), lines[0])
    others = [line for line in lines if line is not below]
    under = _plane(outcome, below)
    fig, axes = _figure(outcome, len(others))
    for ax, line in zip(axes, others, strict=True):
        plane = _plane(outcome, line)
        _ratios(ax, plane, _map(outcome.campaign.metric, plane, under), numbered=numbered)
        _axes(ax, outcome, plane, f"{line.label} / {below.label}")
    if not numbered:
        _bar(fig, axes, ScalarMappable(LogNorm(1 / BEST, BEST), _contrast()), f"{RATIO} of mean {outcome.campaign.metric}s")
    interval = ", 95 % interval; =: the same within 5 %" if numbered else ""
    what = f"ratio of mean {outcome.campaign.metric}s{interval}; hatched: undecided at 95 %"
    style.words(fig, axes, (base.title(outcome, beside), base.note(outcome, what)), outcome.caveats)
    return fig


def _map(metric: str, above: _Plane, below: _Plane) -> RatioMap:
    """The ratios; x and y are columns and rows."""
    both = [(at, c, below.cells[at]) for at, c in above.cells.items() if at in below.cells]
    some = [(at, a.values(metric), b.values(metric)) for at, a, b in both]
    return ratio_map([PairedRuns(column, row, a[: len(b)], b[: len(a)]) for (row, column), a, b in some])


def _ratios(ax: Axes, plane: _Plane, found: RatioMap, *, numbered: bool) -> None:
    """The cells in their colours: thousands of them as two artists, which is faster than two artists each."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    colours = _contrast()
    hatched: dict[str, Any] = {"fill": False, "edgecolor": (DARK, 0.4), "hatch": "///", "linewidth": 0}
    if not numbered:
        squares = [Rectangle((cell.x, cell.y), 1, 1) for cell in found.cells]
        ax.add_collection(PatchCollection(squares, facecolors=[colours(_place(cell)) for cell in found.cells], linewidths=0))
        undecided = [s for s, cell in zip(squares, found.cells, strict=True) if cell.verdict == "undecided"]
        if undecided:
            outline = Path.make_compound_path(*(s.get_patch_transform().transform_path(s.get_path()) for s in undecided))
            ax.add_patch(PathPatch(outline, **hatched))
    for cell in found.cells if numbered else ():
        row, column = int(cell.y), int(cell.x)
        ground = colours(_place(cell))
        ax.add_patch(Rectangle((column, row), 1, 1, facecolor=ground, linewidth=0))
        if cell.verdict == "undecided":
            ax.add_patch(Rectangle((column, row), 1, 1, **hatched))
        _ratio_number(ax, (row, column), cell, ground)
    ax.set_xlim(0, len(plane.xs))
    ax.set_ylim(0, len(plane.ys))


def _contrast() -> Colormap:
    """From worse to better."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(RATIO, [palette.VERMILION, "#f4f4f4", palette.BLUE])


def _place(cell: RatioCell) -> float:
    """Where a ratio stands on the colour scale, 0…1; logarithmic."""
    if not cell.ratio.value > 0:
        return 0.5
    return 0.5 + 0.5 * max(-1.0, min(1.0, math.log(cell.ratio.value) / math.log(BEST)))


def _ratio_number(ax: Axes, at: tuple[int, int], cell: RatioCell, ground: Sequence[float]) -> None:
    value, _, interval = cell.ratio.text(2).partition(" ")
    _number(ax, at, f"{'=' if cell.verdict == 'same' else ''}{value} {interval}", ground)
