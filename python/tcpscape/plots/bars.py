"""Values side by side, each with its interval and its number: every congestion control, or every named path; published values beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.plots import base, style
from tcpscape.plots.base import Beside, Line
from tcpscape.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAR, ROW_INCH, HEAD_INCH = 0.62, 0.26, 1.0
"""Thickness of a bar, in rows; height of a row, and of what is over and under the rows of a panel, inches."""
NUMBERS = 0.3
"""Share of a panel at its right end that is left for the numbers."""
MOST_LINES, MOST_ROWS = 8, 60
"""Congestion controls that are told apart on a named path; rows of a panel."""
GAP = 0.6
"""Between two named paths, in rows."""
NAME_WIDTH, MOST_MOVING = 30, 3
"""Characters of a line of a path's name; how much that moves with it is named."""
PUBLISHED = "published"


@dataclass(frozen=True)
class Row:
    """One value."""

    at: float
    """Where it stands, in rows from the top."""
    line: Line
    cell: Cell
    got: Estimate


def has_controls(outcome: Outcome) -> bool:
    """Whether there are several congestion controls to compare, or next to nothing else to show."""
    many = len(base.lines(outcome))
    return (many >= 3 or len(outcome.cells) <= 2) and many <= MOST_ROWS and base.fits(outcome)


def has_names(outcome: Outcome) -> bool:
    """Whether an axis has names for its values, or too few for a curve."""
    named = _named(outcome)
    if not named or len(base.lines(outcome)) > MOST_LINES or not base.fits(outcome, named[-1]):
        return False
    return len(outcome.levels(named[-1])) * len(base.lines(outcome)) <= MOST_ROWS


def _named(outcome: Outcome) -> list[str]:
    """Axes of words; axes with two values where there is no longer one."""
    words = [a for a in outcome.axes if len(outcome.levels(a)) > 1 and a not in base.scales(outcome)]
    return words or ([] if base.scales(outcome, least=3) else base.scales(outcome))


def bars(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The metric of every congestion control, the highest first; a panel for each point on the axes."""
    places = base.points(outcome)
    found = [_ranked(outcome, base.part(outcome, here).cells) for here in places]
    top = _top(outcome, [row for rows in found for row in rows], beside)
    fig, axes = style.figure(len(places), share=False, width=4.9, height=HEAD_INCH + ROW_INCH * max(map(len, found)), columns=2)
    for ax, here, rows in zip(axes, places, found, strict=True):
        for row in rows:
            ax.barh(row.at, row.got.value, BAR, color=row.line.look.colour, alpha=0.5, linewidth=0)
        _values(ax, rows, outcome, beside, top)
        ax.set_yticks([row.at for row in rows], [row.line.label for row in rows], fontsize=8)
        ax.set_title(base.said(here), fontsize=10)
    return _finish(fig, axes, outcome, beside, [PUBLISHED])


def _ranked(outcome: Outcome, cells: Sequence[Cell]) -> list[Row]:
    metric = outcome.campaign.metric
    found = [(line, c, c.mean(metric)) for line in base.lines(outcome) for c in cells if (c.cca, c.engine) == (line.cca, line.engine)]
    found.sort(key=lambda row: (-row[2].value if math.isfinite(row[2].value) else math.inf, row[0].label))
    return [Row(i, *row) for i, row in enumerate(found)]


def profiles(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The metric on each named path, the congestion controls below each other; a panel for each point on the other axes."""
    axis, lines = _named(outcome)[-1], base.lines(outcome)
    places = base.points(outcome, axis)
    found = [[_path(outcome, lines, {**here, axis: level}) for level in outcome.levels(axis, outcome.select(**here))] for here in places]
    top = _top(outcome, [row for paths in found for rows in paths for row in rows], beside)
    tall = max(sum(len(rows) + GAP for rows in paths) for paths in found)
    fig, axes = style.figure(len(places), share=False, width=7.6 if len(places) == 1 else 5.6, height=HEAD_INCH + ROW_INCH * tall, columns=2)
    for ax, here, paths in zip(axes, places, found, strict=True):
        shift, shown, middles = 0.0, [], []
        for rows in paths:
            shown += [replace(row, at=row.at + shift) for row in rows]
            middles.append(shift + (len(rows) - 1) / 2)
            shift += len(rows) + GAP
        _values(ax, shown, outcome, beside, top)
        ax.set_yticks(middles, [_name(outcome, rows[0].cell, axis) for rows in paths], fontsize=8)
        ax.tick_params(axis="y", length=0)
        ax.set_title(base.said(here), fontsize=10)
    return _finish(fig, axes, outcome, beside, [line.label for line in lines] + [PUBLISHED])


def _path(outcome: Outcome, lines: Sequence[Line], here: Mapping[str, str]) -> list[Row]:
    """One path's rows, from 0."""
    found = [(line, c) for line in lines for c in line.cells(outcome, here)]
    return [Row(i, line, c, c.mean(outcome.campaign.metric)) for i, (line, c) in enumerate(found)]


def _top(outcome: Outcome, rows: Sequence[Row], beside: Beside) -> float:
    """The highest value of the figure's axis."""
    known = [k.value for row in rows for k in beside.of(outcome, row.cell, outcome.campaign.metric)[-1:]]
    return base.span([row.got for row in rows], known)


def _name(outcome: Outcome, cell: Cell, axis: str) -> str:
    """The path's name, and what moves with it."""
    group = next((g for g in outcome.campaign.zip if axis in g), {})
    moving = {name: cell.at[name] for name, values in group.items() if name not in (axis, "cca") and name in cell.at and len(set(values)) > 1}
    return "\n".join(style.wrap(f"{cell.at[axis]} ({base.said(moving)})" if 0 < len(moving) <= MOST_MOVING else cell.at[axis], NAME_WIDTH))


def _values(ax: Axes, rows: Sequence[Row], outcome: Outcome, beside: Beside, top: float) -> None:
    """Marks with their intervals, the published values, and the numbers at the right."""
    metric = outcome.campaign.metric
    known = {row.at: some[-1].value for row in rows if (some := beside.of(outcome, row.cell, metric))}
    end = top / (1 - NUMBERS)
    for row in rows:
        look = row.line.look
        low, high = base.bounded(row.got, 0.0, top)
        ax.errorbar(
            row.got.value, row.at, xerr=[[row.got.value - low], [high - row.got.value]], color=look.colour, marker=look.marker, markersize=4.5,
            linewidth=0, elinewidth=1.6, capsize=3, label=row.line.label,
        )
        ax.text(end, row.at, row.got.text(), color=style.INK, fontsize=7.5, ha="right", va="center")
        if row.at in known:
            ax.plot([known[row.at]], [row.at], color=style.INK, marker="d", markersize=7.5, markerfacecolor="none", linewidth=0, label=PUBLISHED)
    ax.set_xlim(0, end)
    ax.set_xticks([t for t in ax.get_xticks() if t <= top])
    ax.set_ylim(max((row.at for row in rows), default=0) + 0.7, -0.7)
    ax.grid(False, axis="y")
    ax.set_xlabel(base.metric_label(metric))


def _finish(fig: Figure, axes: Sequence[Axes], outcome: Outcome, beside: Beside, named: Sequence[str]) -> Figure:
    hollow = any(PUBLISHED in ax.get_legend_handles_labels()[1] for ax in axes)
    what = "mean and 95 % interval" + ("; hollow: as published" if hollow else "")
    style.words(fig, axes, (base.title(outcome, beside), base.note(outcome, what)), outcome.caveats, named)
    return fig
