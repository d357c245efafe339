"""Spikes of the delay after a drop of the bottleneck's rate, in each cell, against their bound Q = (r − 1)·d."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.controls import palette
from tcpscape.controls.palette import Look
from tcpscape.errors import TcpscapeError
from tcpscape.findings.spike import bound, recording
from tcpscape.findings.spike.bound import SpikeSummary
from tcpscape.plots import bars, base, style
from tcpscape.plots.bars import BarRow
from tcpscape.plots.base import Context

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

APART = 0.008
"""Distance between two congestion controls at one bound, as a share of the axis."""
LABEL, PEAK = "bound Q = (r − 1)·d", "largest RTT after the drop − d, ms"


def has_drop(outcome: Outcome) -> bool:
    """Whether the bottleneck's rate drops on every cell's path, and some trial was sampled."""
    return any(_sampled(c) for c in outcome.cells) and all(_drops(c) for c in outcome.cells)


def _sampled(cell: Cell) -> bool:
    return any(t.samples is not None and not t.samples.is_empty() for t in cell.trials)


def _drops(cell: Cell) -> bool:
    try:
        return all(bound.step_of(s).ratio > 1 for s in cell.scenarios)
    except TcpscapeError:
        return False


def verdict(cell: Cell) -> SpikeSummary:
    """The cell's sampled trials against the bound, by every sample of the smoothed RTT."""
    measurements = [
        bound.measure(recording.of_trial(trial, every_s=0.0), bound.step_of(scenario))
        for scenario, trials in zip(cell.scenarios, cell.runs, strict=True)
        for trial in trials
        if trial.samples is not None and not trial.samples.is_empty()
    ]
    return bound.judge(measurements)


def spike(outcome: Outcome, context: Context = Context()) -> Figure:
    """The peak of each cell's runs over the bound of its path; in rows where most cells have the same bound."""
    by_cell = {id(c): verdict(c) for c in outcome.cells if _sampled(c)}
    by_label = {entry.label: [by_cell[id(c)] for c in entry.cells(outcome, {}) if id(c) in by_cell] for entry in base.entries(outcome)}
    shares = [v.above for verdicts in by_label.values() for v in verdicts]
    content = f"median peak of the smoothed RTT, 95 % interval; all runs of {sum(s == 1 for s in shares)} of {len(shares)} cells are at or above "
    title = base.title(outcome, context)
    if any(2 * len({round(v.bound_ms, 6) for v in verdicts}) <= len(verdicts) for verdicts in by_label.values()):
        return _in_rows(outcome, by_cell, (title, base.note(outcome, context, f"{content}their bound")), context.width)
    drawn = {label: verdicts for label, verdicts in by_label.items() if verdicts}
    return over_bound(drawn, (title, base.note(outcome, context, f"{content}the line")), outcome.caveats, context.width)


def _in_rows(outcome: Outcome, by_cell: Mapping[int, SpikeSummary], heading: tuple[str, str], page: float | None) -> Figure:
    """Peaks below each other, each with its bound; `by_cell`: id of a cell → its verdict; `page`: width of the figure, inches."""

    def rows(point: Mapping[str, str]) -> list[BarRow]:
        cells = [(entry, c) for entry in base.entries(outcome) for c in entry.cells(outcome, point) if id(c) in by_cell]
        return [BarRow(i, entry.label, entry.look, c, by_cell[id(c)].peak_ms, by_cell[id(c)].bound_ms, LABEL) for i, (entry, c) in enumerate(cells)]

    fig, axes = bars.grouped(outcome, bars.last_axis(outcome), rows, PEAK, page)
    style.finish(fig, axes, heading, outcome.caveats)
    return fig


def over_bound(
    by_label: Mapping[str, Sequence[SpikeSummary]], heading: tuple[str, str], caveats: Sequence[str] = (), page: float | None = None
) -> Figure:
    """Measured peaks over the bound, and the line where both are equal.

    :param by_label: verdicts of each congestion control.
    :param heading: title and note.
    :param page: width of the figure, inches.
    """
    fig, (ax,) = style.panels(1, width=6.8, height=4.2, page=page)
    looks = palette.looks(by_label)
    edge = 1.08 * max((v.bound_ms for verdicts in by_label.values() for v in verdicts), default=1.0)
    top = base.upper_limit([v.peak_ms for verdicts in by_label.values() for v in verdicts], [edge])
    ax.plot([0, edge], [0, edge], color=style.INK, linewidth=1.1, linestyle="--", label=LABEL)
    for i, (label, verdicts) in enumerate(by_label.items()):
        for v in verdicts:
            _draw_peak(ax, v, (i - (len(by_label) - 1) / 2) * APART * edge, (label, looks[label]), top)
    ax.set_xlim(0, edge)
    ax.set_ylim(0, top)
    ax.set_xlabel(f"{LABEL}, ms")
    ax.set_ylabel(PEAK)
    style.finish(fig, [ax], heading, caveats)
    return fig


def _draw_peak(ax: Axes, v: SpikeSummary, shift: float, entry: tuple[str, Look], top: float) -> None:
    """The median peak of one cell with its interval; `entry`: label and look."""
    peak, (label, look) = v.peak_ms, entry
    if math.isfinite(peak.value):
        ax.errorbar(
            v.bound_ms + shift,
            peak.value,
            yerr=base.error_bar(peak, 0.0, top),
            color=look.colour,
            marker=look.marker,
            markersize=5.5,
            linewidth=0,
            elinewidth=1.4,
            capsize=3,
            label=label,
        )
