"""Spikes against their bound: what a drop of capacity did to the delay in each cell, beside Q = (r − 1)·d."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.errors import TcpscapeError
from tcpscape.findings.spike import bound as findings
from tcpscape.findings.spike import recording
from tcpscape.findings.spike.bound import Verdict
from tcpscape.plots import bars, base, palette, style
from tcpscape.plots.bars import Row
from tcpscape.plots.base import Beside
from tcpscape.plots.palette import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

APART = 0.008
"""Between two congestion controls at one bound, of the axis."""
LABEL, PEAK = "bound Q = (r − 1)·d", "largest RTT after the drop − d, ms"


def has_drop(outcome: Outcome) -> bool:
    """Whether every cell's path has a drop of its bottleneck's rate, and some trial was sampled."""
    return any(_sampled(c) for c in outcome.cells) and all(_drops(c) for c in outcome.cells)


def _sampled(cell: Cell) -> bool:
    return any(t.samples is not None and not t.samples.is_empty() for t in cell.trials)


def _drops(cell: Cell) -> bool:
    try:
        return all(findings.step_of(s).ratio > 1 for s in cell.scenarios)
    except TcpscapeError:
        return False


def verdict(cell: Cell) -> Verdict:
    """The cell's sampled runs against the bound, every sample of the smoothed RTT taken."""
    found = [
        findings.measure(recording.of_trial(trial, every_s=0.0), findings.step_of(scenario))
        for scenario, trials in zip(cell.scenarios, cell.runs, strict=True)
        for trial in trials
        if trial.samples is not None and not trial.samples.is_empty()
    ]
    return findings.judge(found)


def spike(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The peak of each cell's runs against the bound of its path; cell by cell where most of them have the same bound."""
    judged = {id(c): verdict(c) for c in outcome.cells if _sampled(c)}
    found = {line.label: [judged[id(c)] for c in line.cells(outcome, {}) if id(c) in judged] for line in base.lines(outcome)}
    held = [v.above for some in found.values() for v in some]
    what = f"median peak of the smoothed RTT, 95 % interval; all runs of {sum(a == 1 for a in held)} of {len(held)} cells are at or above the line"
    above = base.title(outcome, beside), base.note(outcome, what.replace("the line", "their bound"))
    if any(2 * len({round(v.bound_ms, 6) for v in some}) <= len(some) for some in found.values()):
        return _rows(outcome, judged, above)
    return draw({name: some for name, some in found.items() if some}, (above[0], base.note(outcome, what)), outcome.caveats)


def _rows(outcome: Outcome, judged: Mapping[int, Verdict], above: tuple[str, str]) -> Figure:
    """Peaks (`judged`: of a cell by its id) below each other, each with its bound: the place over one bound would not tell cells apart."""

    def rows(here: Mapping[str, str]) -> list[Row]:
        found = [(line, c, judged[id(c)]) for line in base.lines(outcome) for c in line.cells(outcome, here) if id(c) in judged]
        return [Row(i, line.label, line.look, c, v.peak_ms, v.bound_ms, LABEL) for i, (line, c, v) in enumerate(found)]

    fig, axes = bars.paths(outcome, bars.last(outcome), rows, PEAK)
    style.words(fig, axes, above, outcome.caveats)
    return fig


def draw(found: Mapping[str, Sequence[Verdict]], above: tuple[str, str], caveats: Sequence[str] = ()) -> Figure:
    """Verdicts by congestion control: measured peaks over the bound, and the line where both are equal. `above`: title and note."""
    fig, (ax,) = style.figure(1, width=6.8, height=4.2)
    looks = palette.looks(found)
    edge = 1.08 * max((v.bound_ms for some in found.values() for v in some), default=1.0)
    top = base.span([v.peak_ms for some in found.values() for v in some], [edge])
    ax.plot([0, edge], [0, edge], color=style.INK, linewidth=1.1, linestyle="--", label=LABEL)
    for i, (name, some) in enumerate(found.items()):
        for v in some:
            _peak(ax, v, (i - (len(found) - 1) / 2) * APART * edge, (name, looks[name]), top)
    ax.set_xlim(0, edge)
    ax.set_ylim(0, top)
    ax.set_xlabel(f"{LABEL}, ms")
    ax.set_ylabel(PEAK)
    style.words(fig, [ax], above, caveats)
    return fig


def _peak(ax: Axes, v: Verdict, shift: float, who: tuple[str, Look], top: float) -> None:
    """One condition's median peak with its interval."""
    got, (name, look) = v.peak_ms, who
    if math.isfinite(got.value):
        low, high = base.bounded(got, 0.0, top)
        ax.errorbar(
            v.bound_ms + shift, got.value, yerr=[[got.value - low], [high - got.value]], color=look.colour, marker=look.marker, markersize=5.5,
            linewidth=0, elinewidth=1.4, capsize=3, label=name,
        )
