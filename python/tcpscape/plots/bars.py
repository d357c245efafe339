"""Values side by side, each with its interval and its number: every congestion control, or every named path; published values beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.plots import base, palette, style
from tcpscape.plots.base import Beside, Line
from tcpscape.plots.palette import Look
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
    label: str
    look: Look
    cell: Cell
    got: Estimate
    known: float | None = None
    """What was published, or measured by others; or a bound."""
    beside: str = PUBLISHED
    """What `known` is."""


def has_controls(outcome: Outcome) -> bool:
    """Whether there are several congestion controls to compare, or next to nothing else to show."""
    if not base.fits(outcome):
        return False
    many = max(len(outcome.select(**here)) for here in base.points(outcome))
    return 3 <= many <= MOST_ROWS or len(outcome.cells) <= 2


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
    found = [_ranked(outcome, outcome.select(**here), beside) for here in places]
    top = _top([row for rows in found for row in rows])
    fig, axes = style.figure(len(places), share=False, width=4.9, height=HEAD_INCH + ROW_INCH * max(map(len, found)), columns=2)
    for ax, here, rows in zip(axes, places, found, strict=True):
        for row in rows:
            ax.barh(row.at, row.got.value, BAR, color=row.look.colour, alpha=0.5, linewidth=0)
        _values(ax, rows, base.metric_label(outcome.campaign.metric), top)
        ax.set_yticks([row.at for row in rows], [row.label for row in rows], fontsize=8)
        ax.set_title(base.said(here), fontsize=10)
    return _finish(fig, axes, outcome, beside, [PUBLISHED])


def _ranked(outcome: Outcome, cells: Sequence[Cell], beside: Beside) -> list[Row]:
    found = [_row(0, line, c, outcome, beside) for line in base.lines(outcome) for c in cells if (c.cca, c.engine) == (line.cca, line.engine)]
    found.sort(key=lambda row: (-row.got.value if math.isfinite(row.got.value) else math.inf, row.label))
    return [replace(row, at=i) for i, row in enumerate(found)]


def _row(at: float, line: Line, cell: Cell, outcome: Outcome, beside: Beside) -> Row:
    """The campaign's metric in a cell."""
    metric = outcome.campaign.metric
    known = [k.value for k in beside.of(outcome, cell, metric)]
    return Row(at, line.label, line.look, cell, cell.mean(metric), known[-1] if known else None)


def profiles(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The metric on each named path, the congestion controls below each other; a panel for each point on the other axes."""
    axis, lines = _named(outcome)[-1], base.lines(outcome)

    def rows(here: Mapping[str, str]) -> list[Row]:
        found = [(line, c) for line in lines for c in line.cells(outcome, here)]
        return [_row(i, line, c, outcome, beside) for i, (line, c) in enumerate(found)]

    fig, axes = paths(outcome, axis, rows, base.metric_label(outcome.campaign.metric))
    return _finish(fig, axes, outcome, beside, [line.label for line in lines] + [PUBLISHED])


def has_mixture(outcome: Outcome) -> bool:
    """Whether several congestion controls share a path, in few enough cells."""
    mixed = any(len(_within(c)) > 1 for c in outcome.cells)
    axis = last(outcome)
    return mixed and base.fits(outcome, axis) and sum(len(_within(c)) for c in outcome.cells) <= MOST_ROWS * base.MOST_PANELS


def _within(cell: Cell) -> list[str]:
    """The congestion controls of a cell's flows."""
    return list(dict.fromkeys(f.cca for t in cell.trials[:1] for f in t.flows))


def last(outcome: Outcome) -> str:
    """The last axis with several values; the last one of all where none has."""
    return next((a for a in reversed(outcome.axes) if len(outcome.levels(a)) > 1), outcome.axes[-1] if outcome.axes else "")


def split(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The share of all flows' goodput that each congestion control has, in each cell; whole transfers."""
    looks = palette.looks(sorted({cca for c in outcome.cells for cca in _within(c)}))

    def rows(here: Mapping[str, str]) -> list[Row]:
        found = [(cca, c) for c in outcome.select(**here) for cca in _within(c) if len(_within(c)) > 1]
        return [Row(i, cca, looks[cca], c, c.mean(f"share:{cca}")) for i, (cca, c) in enumerate(found)]

    fig, axes = paths(outcome, last(outcome), rows, "share of all goodput")
    style.words(fig, axes, (base.title(outcome, beside), base.note(outcome, "share of all flows' goodput: mean and 95 % interval")), outcome.caveats)
    return fig


def paths(outcome: Outcome, axis: str, rows: Callable[[Mapping[str, str]], list[Row]], label: str) -> tuple[Figure, list[Axes]]:
    """Rows in groups, one for each value of `axis`; a panel for each point on the other axes. `label`: what they are, with its unit."""
    places = base.points(outcome, axis)
    levels = [outcome.levels(axis, outcome.select(**here)) or ("",) for here in places]
    found = [[got for level in some if (got := rows({**here, axis: level} if level else here))] for here, some in zip(places, levels, strict=True)]
    top = _top([row for groups in found for group in groups for row in group])
    tall = max(sum(len(group) + GAP for group in groups) for groups in found)
    fig, axes = style.figure(len(places), share=False, width=7.6 if len(places) == 1 else 5.6, height=HEAD_INCH + ROW_INCH * tall, columns=2)
    for ax, here, groups in zip(axes, places, found, strict=True):
        shift, shown, middles = 0.0, [], []
        for group in groups:
            shown += [replace(row, at=row.at + shift) for row in group]
            middles.append(shift + (len(group) - 1) / 2)
            shift += len(group) + GAP
        _values(ax, shown, label, top)
        ax.set_yticks(middles, [_name(outcome, group[0].cell, axis) for group in groups], fontsize=8)
        ax.tick_params(axis="y", length=0)
        ax.set_title(base.said(here), fontsize=10)
    return fig, axes


def _top(rows: Sequence[Row]) -> float:
    """The highest value of the figure's axis."""
    return base.span([row.got for row in rows], [row.known for row in rows if row.known is not None])


def _name(outcome: Outcome, cell: Cell, axis: str) -> str:
    """The path's name, and what moves with it."""
    if axis not in cell.at:
        return cell.cca
    group = next((g for g in outcome.campaign.zip if axis in g), {})
    moving = {name: cell.at[name] for name, values in group.items() if name not in (axis, "cca") and name in cell.at and len(set(values)) > 1}
    return "\n".join(style.wrap(f"{cell.at[axis]} ({base.said(moving)})" if 0 < len(moving) <= MOST_MOVING else cell.at[axis], NAME_WIDTH))


def _values(ax: Axes, rows: Sequence[Row], label: str, top: float) -> None:
    """Marks with their intervals, the published values, and the numbers at the right."""
    end = top / (1 - NUMBERS)
    for row in rows:
        got, look = row.got, row.look
        low, high = base.bounded(got, 0.0, top)
        ax.errorbar(
            got.value, row.at, xerr=[[got.value - low], [high - got.value]], color=look.colour, marker=look.marker, markersize=4.5, linewidth=0,
            elinewidth=1.6, capsize=3, label=row.label,
        )
        ax.text(end, row.at, got.text(), color=style.INK, fontsize=7.5, ha="right", va="center")
        if row.known is not None:
            ax.plot([row.known], [row.at], color=style.INK, marker="d", markersize=7.5, markerfacecolor="none", linewidth=0, label=row.beside)
    ax.set_xlim(0, end)
    ax.set_xticks([t for t in ax.get_xticks() if t <= top])
    ax.set_ylim(max((row.at for row in rows), default=0) + 0.7, -0.7)
    ax.grid(False, axis="y")
    ax.set_xlabel(label)


def _finish(fig: Figure, axes: Sequence[Axes], outcome: Outcome, beside: Beside, named: Sequence[str]) -> Figure:
    hollow = any(PUBLISHED in ax.get_legend_handles_labels()[1] for ax in axes)
    what = "mean and 95 % interval" + ("; hollow: as published" if hollow else "")
    style.words(fig, axes, (base.title(outcome, beside), base.note(outcome, what)), outcome.caveats, named)
    return fig
