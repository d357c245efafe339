"""A trial over time: congestion window, packets in flight, RTT, queue and throughput, with what happened marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.errors import StoreError
from tcpscape.metrics import samples
from tcpscape.plots import base, events, palette, style
from tcpscape.plots.base import Beside, Line
from tcpscape.plots.palette import Look
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
MOST_TRACES = 4
"""Congestion controls over each other in one figure; flows of a trial that are told apart."""
MOST_POINTS = 800
"""Points of a trace: of more, each stretch keeps its least and its greatest."""
LEAST_BIN_S = 0.1
"""Shortest interval over which throughput is taken, s."""
BOTTLENECK = 1
"""Number of the queue samples' pipe at the router; behind it is the ACKs'."""
WORD_SIZE, PANEL = 7.0, 0.88
"""Size of what is written over a change, points; width of a panel, of the figure's."""
BINS = 250
"""Throughput intervals of a trial, about."""


@dataclass(frozen=True)
class Trace:
    """One flow of one trial, and how it is drawn."""

    label: str
    look: Look
    trial: Trial
    flow: int

    @property
    def rows(self) -> pl.DataFrame:
        """Its samples."""
        frame = self.trial.samples
        if frame is None:
            raise StoreError("samples: the trial has none; run with --samples 10ms")
        return frame.filter(frame["flow"] == self.flow)


Of = Callable[[Trace], tuple[Array, Array] | None]
"""A trace → times, s, and values; None where the engine did not see it."""


def _column(name: str, factor: float) -> Of:
    def of(trace: Trace) -> tuple[Array, Array] | None:
        rows = trace.rows
        if name not in rows.columns or rows.is_empty():
            return None
        return rows["t_ns"].to_numpy() / 1e9, rows[name].cast(float).fill_null(np.nan).to_numpy() * factor

    return of


def _queue(trace: Trace) -> tuple[Array, Array] | None:
    """The longest queue on the data's way, packets; of every flow together."""
    frame = trace.trial.queue_samples
    if frame is None or trace.flow:
        return None
    found = [some for some in frame.partition_by("pipe", "stage", "depth") if some["pipe"][0] <= BOTTLENECK]
    if not found:
        return None
    deepest = max(found, key=lambda some: float(some["packets"].sum()))
    return deepest["t_ns"].to_numpy() / 1e9, deepest["packets"].cast(float).to_numpy()


def _throughput(trace: Trace) -> tuple[Array, Array] | None:
    """Acknowledged bytes in intervals of about a 250th of the trial, Mbit/s."""
    times, got = samples.delivered(trace.trial, trace.flow)
    if len(times) < 2:
        return None
    step = max(LEAST_BIN_S, (times[-1] - times[0]) / BINS, float(np.median(np.diff(times))))
    edges = np.arange(times[0], times[-1] + step / 2, step)
    return edges[1:], np.diff(np.interp(edges, times, got)) * 8e-6 / step


PANELS: tuple[tuple[str, Of], ...] = (
    ("cwnd, packets", _column("cwnd", 1.0)), ("in flight, packets", _column("in_flight", 1.0)), ("smoothed RTT, ms", _column("srtt_us", 1e-3)),
    ("queue, packets", _queue), ("throughput, Mbit/s", _throughput),
)  # fmt: skip
"""Label with its unit, and what is drawn."""


def has_samples(outcome: Outcome) -> bool:
    """Whether trials kept samples of their flows."""
    return any(median(c) is not None for c in outcome.cells)


def median(cell: Cell) -> Trial | None:
    """The trial with samples whose goodput is the median; of pooled scenarios, of the middle one."""
    kept = [t for t in cell.runs[(len(cell.runs) - 1) // 2] if t.samples is not None and not t.samples.is_empty()]
    return sorted(kept, key=lambda t: (t.goodput_mbps, t.seed))[(len(kept) - 1) // 2] if kept else None


def middle(cell: Cell) -> tuple[Scenario, tuple[Trial, ...]]:
    """The scenario in the middle of those that are pooled in a cell, and its trials."""
    place = (len(cell.scenarios) - 1) // 2
    return cell.scenarios[place], cell.runs[place]


def pages(outcome: Outcome) -> list[Outcome]:
    """A figure for each point on the axes, and for every few congestion controls there."""
    found = []
    for here in base.points(outcome):
        cells = [c for c in outcome.select(**here) if median(c) is not None]
        each = 1 if any(len(c.trials[0].flows) > 1 for c in cells) else MOST_TRACES
        found += [Outcome(outcome.campaign, tuple(cells[i : i + each]), outcome.versions) for i in range(0, len(cells), each)]
    return found


def series(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The median trial of each congestion control at one point, over each other."""
    cells = [(c, trial) for c in outcome.cells if (trial := median(c)) is not None]
    lines = {(line.cca, line.engine): line for line in base.lines(outcome)}
    traces = [t for c, trial in cells for t in _traces(lines[c.cca, c.engine], trial)]
    fig, axes = draw(traces)
    mark(axes, events.of_path(middle(cells[0][0])[0]), max(trial.duration for _, trial in cells))
    flows = max(len(trial.flows) for _, trial in cells)
    told = f", the first {MOST_TRACES} of {flows} flows" if flows > MOST_TRACES else ""
    seeds = ", ".join(f"seed {trial.seed}" for _, trial in cells)
    pooled = len(cells[0][0].scenarios)
    of = f" on the middle one of {pooled} pooled paths" if pooled > 1 else ""
    note = f"{base.said(cells[0][0].at)}; the run with the median goodput{of} ({seeds}){told}, engine {outcome.label}".removeprefix("; ")
    style.words(fig, axes, (base.title(outcome, beside), note), outcome.caveats)
    return fig


def _traces(line: Line, trial: Trial) -> list[Trace]:
    flows = trial.flows[:MOST_TRACES]
    if len(flows) == 1:
        return [Trace(line.label, line.look, trial, 0)]
    own = palette.looks(f.cca for f in flows)
    before = [sum(g.cca == f.cca for g in flows[:i]) for i, f in enumerate(flows)]
    looks = [replace(own[f.cca], dash=palette.DASHES[k % len(palette.DASHES)]) for f, k in zip(flows, before, strict=True)]
    return [Trace(f"{f.cca}, flow {i + 1}", look, trial, i) for i, (f, look) in enumerate(zip(flows, looks, strict=True))]


def draw(traces: Sequence[Trace]) -> tuple[Figure, list[Axes]]:
    """The panels of these traces, those left out that no trace has anything for."""
    shown = [(label, [(t, got) for t in traces if (got := of(t)) is not None]) for label, of in PANELS]
    shown = [(label, found) for label, found in shown if found]
    fig, rows = style.rows(len(shown))
    axes = [row[0] for row in rows]
    for ax, (label, found) in zip(axes, shown, strict=True):
        for trace, (t, values) in found:
            everybodys = label.startswith("queue") and len(trace.trial.flows) > 1
            colour, dash = (style.INK, "-") if everybodys else (trace.look.colour, trace.look.dash)
            ax.plot(*thin(t, values), color=colour, linestyle=dash, linewidth=1.1, label="_" if everybodys else trace.label)
            if label.startswith("cwnd"):
                _recoveries(ax, trace)
        ax.set_ylim(bottom=0)
        ax.set_ylabel(label, fontsize=8)
    axes[-1].set_xlabel("time, s")
    axes[-1].set_xlim(0, max(t.trial.duration for t in traces))
    return fig, axes


def thin(t: Array, values: Array) -> tuple[Array, Array]:
    """No more than so many points: of each stretch its least and its greatest, so that no peak is lost."""
    if len(t) <= MOST_POINTS:
        return t, values
    stretches = np.array_split(np.arange(len(t)), MOST_POINTS // 2)
    kept = [i for some in stretches for i in sorted({some[np.argmin(values[some])], some[np.argmax(values[some])]})]
    return t[kept], values[kept]


def _recoveries(ax: Axes, trace: Trace) -> None:
    """Where the sender entered fast recovery, and where a timeout threw it back."""
    rows = trace.rows
    for state, mark, label in ((events.RECOVERY, "|", "fast recovery"), (events.LOSS, "x", "timeout")):
        at = events.entries(rows, state)
        if len(at):
            ax.plot(
                rows["t_ns"].to_numpy()[at] / 1e9, rows["cwnd"].to_numpy()[at], color=trace.look.colour, marker=mark, markersize=7,
                markeredgewidth=1.6, linewidth=0, label=f"{trace.label}: {label}",
            )


def mark(axes: Sequence[Axes], happened: Sequence[events.Event], duration: float) -> None:
    """A line through all panels where the path changed, its words over the first one: in a row of their own where they would touch."""
    inches = axes[0].figure.get_figwidth() * PANEL  # type: ignore[union-attr]
    ends: list[float] = []
    for event in happened:
        for ax in axes:
            ax.axvline(event.at_s, color=style.INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        if not event.text:
            continue
        length = duration * len(event.text) * WORD_SIZE * style.WIDTH_OF_CHARACTER / style.POINTS / inches
        back = event.at_s + length > duration
        left = event.at_s - length if back else event.at_s
        row = next((i for i, end in enumerate(ends) if end <= left), len(ends))
        ends[row:] = [left + 1.05 * length, *ends[row + 1 :]]
        axes[0].annotate(
            event.text, (event.at_s, 1), xycoords=("data", "axes fraction"), xytext=(-3 if back else 3, 2 + 1.3 * WORD_SIZE * row),
            textcoords="offset points", color=style.INK, fontsize=WORD_SIZE, ha="right" if back else "left", va="bottom",
        )
