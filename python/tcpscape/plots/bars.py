"""Values side by side: a bar for each congestion control with its interval, or marks for each named path; published values beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.plots import base, style
from tcpscape.plots.base import Beside, Line
from tcpscape.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAR, BAR_INCH = 0.62, 0.26
"""Thickness of a bar, of its row; height of a row, inches."""
ROOM = 1.55
"""Length of the axis over the longest interval: the numbers stand in what is left."""
SIDE_BY_SIDE = 8
"""Congestion controls that a named path has room for."""
APART, ASIDE = 0.8, 0.4
"""Share of a named path's room that its marks take; distance from a mean to what was published of it, of the distance between two marks."""


def has_controls(outcome: Outcome) -> bool:
    """Whether there are several congestion controls to compare, or one cell alone, at few points."""
    many = len(base.lines(outcome))
    return (many >= 3 or len(outcome.cells) <= 2) and base.fits(outcome)


def has_words(outcome: Outcome) -> bool:
    """Whether an axis has names for its values."""
    return bool(_words(outcome)) and len(base.lines(outcome)) <= SIDE_BY_SIDE and base.fits(outcome, _words(outcome)[0])


def _words(outcome: Outcome) -> list[str]:
    return [a for a in outcome.axes if len(outcome.levels(a)) > 1 and any(c.value(a).is_word for c in outcome.cells if a in c.at)]


def bars(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The metric of every congestion control, the highest first; a panel for each point on the axes."""
    metric, places = outcome.campaign.metric, base.points(outcome)
    found = [_ranked(outcome, base.part(outcome, here).cells) for here in places]
    fig, axes = style.figure(len(places), share=False, width=4.9, height=0.55 + BAR_INCH * max(map(len, found)), columns=2)
    for ax, here, rows in zip(axes, places, found, strict=True):
        for place, (line, cell, got) in enumerate(rows):
            _bar(ax, place, line, got)
            for known in beside.of(outcome, cell, metric)[-1:]:
                ax.plot([known.value], [place], color=style.INK, marker="d", markersize=7, markerfacecolor="none", linewidth=0, label="published")
        _rows(ax, rows)
        ax.set_title(base.said(here), fontsize=10)
        ax.set_xlabel(base.metric_label(metric))
    return _finish(fig, axes, outcome, beside)


Row = tuple[Line, Cell, Estimate]


def _ranked(outcome: Outcome, cells: Sequence[Cell]) -> list[Row]:
    """Lines with their cell and its mean, the highest first."""
    rows = [(line, c, c.mean(outcome.campaign.metric)) for line in base.lines(outcome) for c in cells if (c.cca, c.engine) == (line.cca, line.engine)]
    return sorted(rows, key=lambda row: (-row[2].value, row[0].label))


def _bar(ax: Axes, place: int, line: Line, got: Estimate) -> None:
    ax.barh(place, got.value, BAR, color=line.look.colour, alpha=0.75, linewidth=0)
    if got.n > 1 and math.isfinite(got.low):
        ax.errorbar(got.value, place, xerr=[[got.value - got.low], [got.high - got.value]], color=style.INK, capsize=2.5, elinewidth=1.2)


def _rows(ax: Axes, rows: Sequence[Row]) -> None:
    """Names at the left, numbers with their intervals at the right."""
    longest = max((e.high if math.isfinite(e.high) else e.value for _, _, e in rows), default=0.0) or 1.0
    ax.set_xlim(0, longest * ROOM)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_yticks(range(len(rows)), [line.label for line, _, _ in rows], fontsize=8)
    ax.grid(False, axis="y")
    for place, (_, _, got) in enumerate(rows):
        ax.text(longest * ROOM, place, got.text(), color=style.INK, fontsize=7.5, ha="right", va="center")


def profiles(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The metric on each named path, the congestion controls side by side; a panel for each point on the other axes."""
    axis = _words(outcome)[0]
    places = base.points(outcome, axis)
    fig, axes = style.figure(len(places), width=6.4 if len(places) == 1 else 4.6, height=3.2, columns=2)
    for ax, here in zip(axes, places, strict=True):
        levels = outcome.levels(axis, outcome.select(**here))
        for place, line in enumerate(base.lines(outcome)):
            _column(ax, outcome, beside, (line, place), [outcome.find(line.cca, line.engine, **{**here, axis: level}) for level in levels])
        ax.set_xticks(range(len(levels)), [_name(outcome.select(**{**here, axis: level})[0], axis) for level in levels], fontsize=8)
        ax.set_xlim(-0.5, len(levels) - 0.5)
        ax.grid(False, axis="x")
        ax.set_ylim(bottom=0)
        ax.set_title(base.said(here), fontsize=10)
    style.y_label(axes, base.metric_label(outcome.campaign.metric))
    return _finish(fig, axes, outcome, beside)


def _column(ax: Axes, outcome: Outcome, beside: Beside, who: tuple[Line, int], cells: Sequence[Cell | None]) -> None:
    """One congestion control's means at its place beside the others'."""
    line, place = who
    step = APART / len(base.lines(outcome))
    shift = step * (place + 0.5) - APART / 2
    known = [(i, c) for i, c in enumerate(cells) if c is not None]
    got = [c.mean(outcome.campaign.metric) for _, c in known]
    look, at = line.look, [i + shift for i, _ in known]
    reach = [[m.value - m.low for m in got], [m.high - m.value for m in got]]
    ax.errorbar(
        at, [m.value for m in got], yerr=reach, color=look.colour, marker=look.marker, markersize=4.5, linewidth=0, elinewidth=1.4, capsize=3,
        label=line.label,
    )
    beside_ = [(i + shift + step * ASIDE, k[-1].value) for i, c in known if (k := beside.of(outcome, c, outcome.campaign.metric))]
    if beside_:
        xs, ys = zip(*beside_, strict=True)
        ax.plot(xs, ys, color=look.colour, marker=look.marker, markersize=8, linewidth=0, markerfacecolor="none", label=f"{line.label}, published")


def _name(cell: Cell, axis: str) -> str:
    """The path's name, and what moves with it."""
    beside = [f"{base.said({name: value})}" for name, value in cell.at.items() if name != axis]
    return "\n".join([cell.at[axis], *beside])


def _finish(fig: Figure, axes: Sequence[Axes], outcome: Outcome, beside: Beside) -> Figure:
    hollow = any("published" in label for ax in axes for label in ax.get_legend_handles_labels()[1])
    what = "mean and 95 % interval" + ("; hollow: as published" if hollow else "")
    style.words(fig, axes, base.title(outcome, beside), base.note(outcome, what), outcome.caveats)
    return fig
