"""Curves along an axis: a metric, or the share of it that is left, with interval bands and published points."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.controls import palette
from tcpscape.findings.cliff.levels import SCALES
from tcpscape.plots import base, style
from tcpscape.plots.base import Context, LegendEntry
from tcpscape.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpscape.controls.palette import Look
    from tcpscape.words.cliff import CliffSearch

HALF = 50.0
"""Percentage of the goodput that counts as the cliff's edge, as published."""
LEVELS, MOST_ENTRIES = 3, 8
"""Fewest values on an axis for a curve; most curves of a panel."""
IMPAIRMENTS = ("jitter", "loss", "reorder", "duplicate", "corrupt", "outage")
"""Words in the names of axes along which the path gets worse."""
RETAINED = "goodput"
"""Metric whose retention is drawn."""
FAR = 100.0
"""Multiple of the value at which an interval without an end is cut: outside of the panel."""
WIDE = 30.0
"""Ratio of the highest to the lowest value from which a metric's axis is logarithmic."""


def has_axis(outcome: Outcome) -> bool:
    """Whether there is an axis of quantities, and few enough curves."""
    return bool(base.numeric_axes(outcome, LEVELS)) and len(base.entries(outcome)) <= MOST_ENTRIES


def pages(outcome: Outcome) -> list[Outcome]:
    """Parts with few enough panels."""
    return base.pages(outcome, base.numeric_axes(outcome, LEVELS)[-1])


def has_cliff(outcome: Outcome) -> bool:
    """Whether the axis is an impairment that begins at 0, and there is goodput at 0."""
    if outcome.campaign.metric != RETAINED or not has_axis(outcome):
        return False
    axis = base.numeric_axes(outcome, LEVELS)[-1]
    if not any(word in axis for word in IMPAIRMENTS):
        return False
    return min(c.value(axis).number for c in outcome.cells) == 0 and any(outcome.base(c, axis).mean().value > 0 for c in outcome.cells)


def retention(outcome: Outcome, context: Context = Context()) -> Figure:
    """Goodput as a share of that at the lowest value of the last axis of quantities, along that axis; a panel for each point on the others."""
    axis = base.numeric_axes(outcome, LEVELS)[-1]
    fig, axes = _panels(outcome, context, axis, lambda cell: _percent(outcome.retention(cell, axis)), retained=True)
    for ax in axes:
        ax.axhline(HALF, color=style.INK, linewidth=0.8, linestyle=":")
        ax.set_ylim(0, max(115.0, 100 * base.upper_limit([outcome.retention(c, axis) for c in outcome.cells])))
    style.y_label(axes, "goodput retained, %")
    content = f"share of the goodput at {axis} {outcome.levels(axis)[0]}: ratio of means, 95 % interval"
    return _finish(fig, axes, outcome, context, content)


def curve(outcome: Outcome, context: Context = Context()) -> Figure:
    """The campaign's metric along the last axis of quantities; a panel for each point on the others."""
    axis, metric = base.numeric_axes(outcome, LEVELS)[-1], outcome.campaign.metric
    fig, axes = _panels(outcome, context, axis, lambda cell: cell.mean(metric), retained=False)
    means = [c.mean(metric) for c in outcome.cells]
    published = [k.value for c in outcome.cells for k in context.published(outcome, c, metric)]
    low, top = min((v for v in (*(e.value for e in means), *published) if v > 0), default=1.0), base.upper_limit(means, published)
    for ax in axes:
        if top / low > WIDE:
            ax.set_yscale("log")
            ax.set_ylim(low / 1.5, top * 1.2)
            style.plain_log(ax.yaxis)
        else:
            ax.set_ylim(0, top)
    style.y_label(axes, base.metric_label(metric, "mean"))
    return _finish(fig, axes, outcome, context, "mean and 95 % interval")


def _percent(share: Estimate) -> Estimate:
    return Estimate(100 * share.value, 100 * share.low, 100 * share.high, share.n, "%")


def cliffs(searches: Sequence[CliffSearch], context: Context = Context()) -> Figure:
    """What each congestion control keeps of its unimpaired goodput along an impairment, with its edge and chaos zone; a panel for each RTT."""
    rtts = list(dict.fromkeys(search.rtt for search in searches))
    fig, axes = style.panels(len(rtts), page=context.width)
    looks = palette.looks(dict.fromkeys(search.cca for search in searches))
    axis = searches[0].result.axis
    factor, unit = SCALES.get(axis.unit, (1.0, axis.unit))
    for ax, rtt in zip(axes, rtts, strict=True):
        for search in (one for one in searches if one.rtt == rtt):
            _draw_cliff(ax, search, looks[search.cca], factor)
        ax.axhline(100 * searches[0].threshold, color=style.INK, linewidth=0.8, linestyle=":")
        ax.set_ylim(0, 115)
        ax.set_xlabel(f"{searches[0].along}, {unit}")
        ax.set_title(f"RTT {rtt}" if len(rtts) > 1 else "", fontsize=9, color=style.INK)
        if axis.log:
            ax.set_xscale("log")
            style.plain_log(ax.xaxis)
        else:
            ax.set_xlim(0, factor * _end(searches, rtt))
    style.y_label(axes, "goodput retained, %")
    title = context.title or f"Where goodput falls along {searches[0].along}"
    style.finish(fig, axes, (title, "share of the unimpaired mean, 95 % interval; band: the edge; hatched: the chaos zone"))
    return fig


def _end(searches: Sequence[CliffSearch], rtt: str) -> float:
    """The level up to which a linear axis is shown: three times the last edge, or all that was measured."""
    own = [search.result for search in searches if search.rtt == rtt]
    last = max((level.at for cliff in own for level in cliff.levels), default=1.0)
    edges = [cliff.edge.high if cliff.edge and math.isfinite(cliff.edge.high) else last for cliff in own]
    return min(last, 3 * max(edges, default=last))


def _draw_cliff(ax: Axes, search: CliffSearch, look: Look, factor: float) -> None:
    """The levels of one search, its edge with its interval, and its chaos zone."""
    cliff = search.result
    at = [factor * level.at for level in cliff.levels]
    kept = [level.retention for level in cliff.levels]
    ends = [[100 * max(0.0, e.value - e.low) for e in kept], [100 * max(0.0, min(e.high, FAR) - e.value) for e in kept]]
    how: dict[str, Any] = {"color": look.colour, "marker": look.marker, "markersize": 4, "linewidth": 1.3, "capsize": 2, "label": search.cca}
    ax.errorbar(at, [100 * e.value for e in kept], yerr=np.nan_to_num(ends), **how)
    if cliff.edge:
        low, high = (end if math.isfinite(end) else cliff.edge.value for end in (cliff.edge.low, cliff.edge.high))
        ax.axvline(factor * cliff.edge.value, color=look.colour, linewidth=1)
        ax.axvspan(factor * low, factor * high, color=look.colour, alpha=0.18, linewidth=0)
    if cliff.zone:
        ax.axvspan(factor * cliff.zone[0], factor * cliff.zone[1], ymax=0.06, facecolor="none", edgecolor=look.colour, hatch="////", linewidth=0)


def _panels(outcome: Outcome, context: Context, axis: str, estimate: Callable[[Cell], Estimate], *, retained: bool) -> tuple[Figure, list[Axes]]:
    points = outcome.points(axis)
    fig, axes = style.panels(len(points), height=3.1, page=context.width)
    for ax, point in zip(axes, points, strict=True):
        for entry in base.entries(outcome):
            cells = outcome.curve(axis, entry.cca, entry.engine, **point)
            if cells:
                _draw_curve(ax, entry, [c.value(axis).number for c in cells], [estimate(c) for c in cells])
                published = _published_shares(outcome, cells, context) if retained else _published_means(outcome, cells, context)
                _draw_published(ax, entry, [(cells[i].value(axis).number, value) for i, value in published.items()])
        ax.set_title(base.point_text(point), fontsize=10)
        _label_axis(ax, outcome, axis, point)
    return fig, axes


def _draw_curve(ax: Axes, entry: LegendEntry, at: Sequence[float], estimates: Sequence[Estimate]) -> None:
    look = entry.look
    values = [e.value for e in estimates]
    ax.plot(at, values, color=look.colour, marker=look.marker, linestyle=look.dash, markersize=4.5, linewidth=1.5, label=entry.label)
    ends = [base.clipped_interval(e, 0.0, FAR * max(abs(e.value), 1.0)) for e in estimates]
    ax.fill_between(at, [low for low, _ in ends], [high for _, high in ends], color=look.colour, alpha=0.2, linewidth=0)


def _published_means(outcome: Outcome, cells: Sequence[Cell], context: Context) -> dict[int, float]:
    """Index on the curve → the published mean; the one computed from raw measurements where it is known."""
    numbers = ((i, context.published(outcome, c, outcome.campaign.metric)) for i, c in enumerate(cells))
    return {i: of_cell[-1].value for i, of_cell in numbers if of_cell}


def _published_shares(outcome: Outcome, cells: Sequence[Cell], context: Context) -> dict[int, float]:
    """The published means in percent of that at the lowest value of the axis."""
    means = _published_means(outcome, cells, context)
    whole = means.get(0, 0.0)
    return {i: 100 * value / whole for i, value in means.items()} if whole else {}


def _draw_published(ax: Axes, entry: LegendEntry, points: Sequence[tuple[float, float]]) -> None:
    if points:
        at, values = zip(*points, strict=True)
        look, label = entry.look, f"{entry.label}, published"
        ax.plot(at, values, color=look.colour, marker=look.marker, markersize=8.5, linewidth=0, markerfacecolor="none", label=label)


def _label_axis(ax: Axes, outcome: Outcome, axis: str, point: Mapping[str, str]) -> None:
    """Label and ticks of the x axis; below jitter, a second scale in percent of the RTT."""
    cells = outcome.select(**point)
    ticks = sorted({c.value(axis).number for c in cells if axis in c.at})
    ax.set_xlabel(base.axis_label(outcome, axis))
    style.ticks(ax, ticks, base.tick_names(outcome, axis))
    if axis == "jitter":
        _percent_of_rtt(ax, cells)


def _percent_of_rtt(ax: Axes, cells: Sequence[Cell]) -> None:
    """A second x scale where all cells have the same RTT."""
    rtts = {s.rtt_ns / 1e6 for c in cells for s in c.scenarios}
    if len(rtts) != 1 or not (rtt := rtts.pop()):
        return
    below = ax.secondary_xaxis(-0.24, functions=(_times(100 / rtt), _times(rtt / 100)))
    below.set_xlabel("jitter / RTT, %", color=style.INK, fontsize=8)
    below.tick_params(colors=style.INK, labelsize=7)
    below.spines["bottom"].set_visible(False)


def _times(factor: float) -> Callable[[Any], Any]:
    return lambda values: values * factor


def _finish(fig: Figure, axes: Sequence[Axes], outcome: Outcome, context: Context, content: str) -> Figure:
    hollow = any("published" in label for ax in axes for label in ax.get_legend_handles_labels()[1])
    content += "; hollow: as published" if hollow else ""
    style.finish(fig, axes, (base.title(outcome, context), base.note(outcome, context, content)), outcome.caveats)
    return fig
