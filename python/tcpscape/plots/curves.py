"""Curves along an axis: a metric, or the share of it that is left, with interval bands, and the published points beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.plots import base, style
from tcpscape.plots.base import Beside, Line
from tcpscape.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Of = Callable[[Cell], Estimate]
HALF = 50.0
"""Percent that counts as the cliff's edge, as published."""
LEVELS, MOST_LINES = 3, 8
"""Fewest values on an axis for a curve; most curves of a panel."""
IMPAIRMENTS = ("jitter", "loss", "reorder", "duplicate", "corrupt", "outage")
"""Words in the names of axes along which something is taken away."""
FAR = 100.0
"""An interval without an end is drawn to so many times its value: out of the figure."""
WIDE = 30.0
"""Highest over lowest value from which a metric's axis is logarithmic."""


def has_axis(outcome: Outcome) -> bool:
    """Whether there is an axis with a scale, and few enough lines."""
    return bool(base.scales(outcome, LEVELS)) and len(base.lines(outcome)) <= MOST_LINES


def pages(outcome: Outcome) -> list[Outcome]:
    """Parts with few enough panels."""
    return base.pages(outcome, base.scales(outcome, LEVELS)[-1])


def has_cliff(outcome: Outcome) -> bool:
    """Whether an impairment grows along the axis: it begins at 0, and the goodput there is not 0."""
    if outcome.campaign.metric != "goodput" or not has_axis(outcome):
        return False
    axis = base.scales(outcome, LEVELS)[-1]
    if not any(word in axis for word in IMPAIRMENTS):
        return False
    return min(c.value(axis).number for c in outcome.cells) == 0 and any(outcome.base(c, axis).mean().value > 0 for c in outcome.cells)


def retention(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """Goodput as a share of that at the axis' lowest value, along the last axis with a scale; a panel for each point on the others."""
    axis = base.scales(outcome, LEVELS)[-1]
    fig, axes = _panels(outcome, beside, axis, lambda cell: _percent(outcome.retention(cell, axis)), retained=True)
    for ax in axes:
        ax.axhline(HALF, color=style.INK, linewidth=0.8, linestyle=":")
        ax.set_ylim(0, max(115.0, 100 * base.span([outcome.retention(c, axis) for c in outcome.cells])))
    style.y_label(axes, "goodput retained, %")
    what = f"share of the goodput at {axis} {outcome.levels(axis)[0]}: ratio of means, 95 % interval"
    return _finish(fig, axes, outcome, beside, what)


def curve(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The campaign's metric along the last axis with a scale; a panel for each point on the others."""
    axis, metric = base.scales(outcome, LEVELS)[-1], outcome.campaign.metric
    fig, axes = _panels(outcome, beside, axis, lambda cell: cell.mean(metric), retained=False)
    got = [c.mean(metric) for c in outcome.cells]
    known = [k.value for c in outcome.cells for k in beside.of(outcome, c, metric)]
    low, top = min((v for v in (*(e.value for e in got), *known) if v > 0), default=1.0), base.span(got, known)
    for ax in axes:
        if top / low > WIDE:
            ax.set_yscale("log")
            ax.set_ylim(low / 1.5, top * 1.2)
            style.plain_log(ax.yaxis)
        else:
            ax.set_ylim(0, top)
    style.y_label(axes, base.metric_label(metric))
    return _finish(fig, axes, outcome, beside, "mean and 95 % interval")


def _percent(got: Estimate) -> Estimate:
    return Estimate(100 * got.value, 100 * got.low, 100 * got.high, got.n, "%")


def _panels(outcome: Outcome, beside: Beside, axis: str, of: Of, *, retained: bool) -> tuple[Figure, list[Axes]]:
    places = base.points(outcome, axis)
    fig, axes = style.figure(len(places), height=3.1)
    for ax, here in zip(axes, places, strict=True):
        for line in base.lines(outcome):
            cells = outcome.curve(axis, line.cca, line.engine, **here)
            if cells:
                _line(ax, line, [c.value(axis).number for c in cells], [of(c) for c in cells])
                known = _shares(outcome, cells, beside) if retained else _means(outcome, cells, beside)
                _published(ax, line, [(cells[i].value(axis).number, value) for i, value in known.items()])
        ax.set_title(base.said(here), fontsize=10)
        _axis(ax, outcome, axis, here)
    return fig, axes


def _line(ax: Axes, line: Line, at: Sequence[float], got: Sequence[Estimate]) -> None:
    look = line.look
    ax.plot(at, [e.value for e in got], color=look.colour, marker=look.marker, linestyle=look.dash, markersize=4.5, linewidth=1.5, label=line.label)
    ends = [base.bounded(e, 0.0, FAR * max(abs(e.value), 1.0)) for e in got]
    ax.fill_between(at, [low for low, _ in ends], [high for _, high in ends], color=look.colour, alpha=0.2, linewidth=0)


def _means(outcome: Outcome, cells: Sequence[Cell], beside: Beside) -> dict[int, float]:
    """Place on the curve → the mean that was measured there: the raw runs' where they are known, else as published."""
    found = ((i, beside.of(outcome, c, outcome.campaign.metric)) for i, c in enumerate(cells))
    return {i: some[-1].value for i, some in found if some}


def _shares(outcome: Outcome, cells: Sequence[Cell], beside: Beside) -> dict[int, float]:
    """The same as percent of what was measured at the axis' lowest value."""
    means = _means(outcome, cells, beside)
    whole = means.get(0, 0.0)
    return {i: 100 * value / whole for i, value in means.items()} if whole else {}


def _published(ax: Axes, line: Line, known: Sequence[tuple[float, float]]) -> None:
    if known:
        at, values = zip(*known, strict=True)
        look = line.look
        ax.plot(
            at, values, color=look.colour, marker=look.marker, markersize=8.5, linewidth=0, markerfacecolor="none", label=f"{line.label}, published"
        )


def _axis(ax: Axes, outcome: Outcome, axis: str, here: Mapping[str, str]) -> None:
    """The axis' scale: logarithmic from 0 where its steps grow; under jitter, a second one in percent of the RTT."""
    cells = outcome.select(**here)
    ticks = sorted({c.value(axis).number for c in cells if axis in c.at})
    ax.set_xlabel(base.axis_label(outcome, axis))
    style.ticks(ax, ticks, base.written(outcome, axis))
    if axis == "jitter":
        _of_rtt(ax, cells)


def _of_rtt(ax: Axes, cells: Sequence[Cell]) -> None:
    rtts = {s.rtt_ns / 1e6 for c in cells for s in c.scenarios}
    if len(rtts) != 1 or not (rtt := rtts.pop()):
        return
    below = ax.secondary_xaxis(-0.24, functions=(_scale(100 / rtt), _scale(rtt / 100)))
    below.set_xlabel("jitter / RTT, %", color=style.INK, fontsize=8)
    below.tick_params(colors=style.INK, labelsize=7)
    below.spines["bottom"].set_visible(False)


def _scale(factor: float) -> Callable[[Any], Any]:
    return lambda values: values * factor


def _finish(fig: Figure, axes: Sequence[Axes], outcome: Outcome, beside: Beside, what: str) -> Figure:
    hollow = any("published" in label for ax in axes for label in ax.get_legend_handles_labels()[1])
    what += "; hollow: as published" if hollow else ""
    style.words(fig, axes, (base.title(outcome, beside), base.note(outcome, what)), outcome.caveats)
    return fig
