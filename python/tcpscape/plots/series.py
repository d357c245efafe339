"""Trials over time: window, packets in flight, RTT, queue and throughput of a flow, and the throughput of all flows, with the path's changes.

Also the spikes of the delay after a drop of the bottleneck's rate, in each cell, against their bound Q = (r − 1)·d.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.controls import palette, spelling
from tcpscape.controls.palette import Look
from tcpscape.errors import StoreError, TcpscapeError, refuse
from tcpscape.findings import spike as spikes
from tcpscape.findings.spike import SpikeSummary
from tcpscape.metrics import samples
from tcpscape.plots import bars, base, style
from tcpscape.plots.bars import BarRow
from tcpscape.plots.base import Context, LegendEntry
from tcpscape.plots.traces import Trace, panels
from tcpscape.scenario.changes import Change, Patch
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats.estimate import Floats
from tcpscape.trial import Trial
from tcpscape.units import NS_PER_S, format_rate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_TRACES = 4
"""Most congestion controls over each other in one figure; most flows of a trial."""
MOST_POINTS = 800
"""Most points of a trace; of a longer one, each stretch keeps its least and its greatest value."""
FONT_SIZE, PANEL = 7.0, 0.88
"""Size of the text at a change of the path, points; width of a panel, as a share of the figure's."""
STEPS, LEAST_STEP_S = 120, 0.5
"""Throughput of all flows: number of intervals of a trial, about; shortest interval, s."""
MANY_FLOWS = 6
"""Flows from which the areas of their throughput are written as an image."""
RECOVERY, LOSS = 3, 4
"""Linux's `tcp_ca_state` in fast recovery, and after a retransmission timeout."""
LEAST_WINDOW = 4
"""Window of BBR in PROBE_RTT, packets."""
MOST_REPETITIONS = 40
"""Most times of a periodic change that are marked."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change of the path."""

    at_s: float
    text: str
    """Empty for the repetitions of a periodic change."""


def has_samples(outcome: Outcome) -> bool:
    """Whether trials kept samples of their flows."""
    return any(median_trial(c) is not None for c in outcome.cells)


def pages(outcome: Outcome) -> list[Outcome]:
    """A figure for each point on the axes and every :data:`MOST_TRACES` congestion controls there; one for each cell with several flows."""
    parts = []
    for point in outcome.points():
        cells = [c for c in outcome.select(**point) if median_trial(c) is not None]
        count = 1 if any(len(c.trials[0].flows) > 1 for c in cells) else MOST_TRACES
        parts += [Outcome(outcome.campaign, tuple(cells[i : i + count]), outcome.versions) for i in range(0, len(cells), count)]
    return parts


def series(outcome: Outcome, context: Context = Context()) -> Figure:
    """The median trial of each congestion control at one point, over each other."""
    medians = [(c, trial) for c in outcome.cells if (trial := median_trial(c)) is not None]
    entries = {(entry.cca, entry.engine): entry for entry in base.entries(outcome)}
    first = medians[0][0]
    looks = base.looks(outcome)
    fig, axes = draw_traces([trace for c, trial in medians for trace in _traces(entries[c.cca, c.engine], trial, c, looks)], context)
    mark_events(axes, path_events(first.scenarios[_middle(first)]), max(trial.duration for _, trial in medians))
    flows = max(len(trial.flows) for _, trial in medians)
    limit = f", the first {MOST_TRACES} of {flows} flows" if flows > MOST_TRACES else ""
    seeds = ", ".join(f"seed {trial.seed}" for _, trial in medians)
    pooled = len(first.runs)
    path = f" on the middle one of {pooled} pooled paths" if pooled > 1 else ""
    resolves = not first.scenarios[_middle(first)].is_topology and ("rtt" in context.what or not context.what)
    start = "the first RTT contains address resolution (ARP)" if resolves else ""
    run = f"the run with the median goodput{path} ({seeds}){limit}, engine {outcome.label}"
    note = "; ".join(filter(None, [base.point_text(first.at), base.path_words(outcome, context), run, start]))
    style.finish(fig, axes, (base.title(outcome, context), note), outcome.caveats)
    return fig


def has_flows(outcome: Outcome) -> bool:
    """Whether trials of several flows kept samples."""
    return has_samples(outcome) and any(len(c.trials[0].flows) > 1 for c in outcome.cells if c.trials)


def share_pages(outcome: Outcome) -> list[Outcome]:
    """A figure for each cell with several flows."""
    cells = [c for c in outcome.cells if c.trials and len(c.trials[0].flows) > 1]
    return [part for c in cells if has_samples(part := Outcome(outcome.campaign, (c,), outcome.versions))]


def shares(outcome: Outcome, context: Context = Context()) -> Figure:
    """The throughput of each flow of the median trial, stacked, and below it their shares; the flows of a congestion control have one colour."""
    cell = outcome.cells[0]
    trial = median_trial(cell)
    if trial is None:
        raise StoreError("samples: the trials have none; run with --samples 100ms")
    step = max(LEAST_STEP_S, trial.duration / STEPS)
    last = max((t[-1] for t, _ in (samples.delivered(trial, i) for i in range(len(trial.flows))) if len(t)), default=trial.duration)
    edges = np.arange(0.0, last + step / 1e6, step)
    order = sorted(range(len(trial.flows)), key=lambda i: (trial.flows[i].cca, i))
    rates = np.nan_to_num(samples.rates(trial, edges))[order]
    names = [trial.flows[i].cca for i in order]
    looks = base.looks(outcome)
    whole = rates.sum(axis=0)
    panels = (("throughput, Mbit/s", rates, float(whole.max()) * 1.08 or 1.0), ("share, %", 100 * rates / np.where(whole > 0, whole, np.nan), 100.0))
    fig, axes = style.time_panels(2, height=2.2, page=context.width)
    for ax, (label, values, top) in zip(axes, panels, strict=True):
        areas = ax.stackplot(
            edges[1:],
            np.nan_to_num(values),
            colors=[looks[name].colour for name in names],
            edgecolor=style.INK,
            linewidth=0.4,
            alpha=0.75,
            labels=[f"{name} ({names.count(name)})" if names.index(name) == i else "_" for i, name in enumerate(names)],
            rasterized=len(names) > MANY_FLOWS,
        )
        for area, name in zip(areas, names, strict=True):
            area.set_hatch(looks[name].hatch)
        ax.set_ylabel(label, fontsize=8)
        ax.set_ylim(0, top)
        ax.set_xlim(edges[1], trial.duration)
    axes[-1].set_xlabel("time, s")
    mark_events(axes, path_events(cell.scenarios[_middle(cell)]), trial.duration)
    jain = cell.mean("jain")
    note = f"{base.point_text(cell.at)}; the run with the median goodput (seed {trial.seed}); Jain's index over {jain.n} runs: {jain.text()}"
    style.finish(fig, axes, (base.title(outcome, context), note.removeprefix("; ")), outcome.caveats)
    return fig


def median_trial(cell: Cell) -> Trial | None:
    """The trial with samples whose goodput is the median; of pooled scenarios, of the middle one."""
    sampled = [t for t in cell.having("samples", _middle(cell)) if t.samples is not None and not t.samples.is_empty()]
    return sorted(sampled, key=lambda t: (t.goodput_mbps, t.seed))[(len(sampled) - 1) // 2] if sampled else None


def _middle(cell: Cell) -> int:
    """The index of the middle one of the scenarios that are pooled in a cell."""
    return (len(cell.runs) - 1) // 2


def _traces(entry: LegendEntry, trial: Trial, cell: Cell, by_cca: Mapping[str, Look]) -> list[Trace]:
    """The traces of a trial's first flows; of several flows, each has the colour of its congestion control and a dash of its own."""
    scenario, flows = cell.scenarios[_middle(cell)], trial.flows[:MOST_TRACES]
    if len(flows) == 1:
        return [Trace(entry.label, entry.look, trial, 0, scenario)]
    before = [sum(g.cca == f.cca for g in flows[:i]) for i, f in enumerate(flows)]
    looks = [by_cca[f.cca].variant(k) for f, k in zip(flows, before, strict=True)]
    return [Trace(f"{f.cca}, flow {i + 1}", look, trial, i, scenario) for i, (f, look) in enumerate(zip(flows, looks, strict=True))]


def draw_traces(traces: Sequence[Trace], context: Context = Context()) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each quantity in `context.what`, or for each of the usual ones that some trace has values for.

    :raises TcpscapeError: where a quantity is unknown, or no trace has values for one that is named.
    """
    what = context.what
    every = [(panel, [(trace, curve) for trace in traces if (curve := panel.read(trace)) is not None]) for panel in panels(what)]
    known = [(panel, curves) for panel, curves in every if curves]
    if what and (missing := [panel for panel, curves in every if not curves]):
        names = ", ".join(panel.name for panel, _ in known)
        why = ": the path has no bottleneck" if missing[0].of_path and not any(trace.bottleneck for trace in traces) else ""
        refuse("what", f"the samples have no {missing[0].name}{why}", f"choose {names}" if known else "leave it out")
    fig, axes = style.time_panels(len(known), page=context.width)
    for ax, (panel, curves) in zip(axes, known, strict=True):
        for trace, (t, values) in curves:
            shared = panel.of_path and len(trace.trial.flows) > 1
            colour, dash = (style.INK, "-") if shared else (trace.look.colour, trace.look.dash)
            ax.plot(*thinned(t, values), color=colour, linestyle=dash, linewidth=1.1, label="_" if shared else trace.label)
            if panel.states:
                _mark_states(ax, trace)
        ax.set_ylim(bottom=0)
        ax.set_ylabel(panel.label_of(curves[0][0]), fontsize=8)
    axes[-1].set_xlabel("time, s")
    axes[-1].set_xlim(0, max(t.trial.duration for t in traces))
    return fig, axes


def thinned(t: Floats, values: Floats, most: int = 0) -> tuple[Floats, Floats]:
    """At most `most` points of a trace (0: :data:`MOST_POINTS`): of each stretch the least and the greatest, so that no peak is lost."""
    most = most or MOST_POINTS
    if len(t) <= most:
        return t, values
    stretches = np.array_split(np.arange(len(t)), most // 2)
    low, high = np.where(np.isnan(values), np.inf, values), np.where(np.isnan(values), -np.inf, values)
    kept = [i for stretch in stretches for i in sorted({stretch[np.argmin(low[stretch])], stretch[np.argmax(high[stretch])]})]
    return t[kept], values[kept]


def _mark_states(ax: Axes, trace: Trace) -> None:
    """Marks where the sender entered fast recovery, where a timeout was, and where BBR drained its queue to measure the RTT."""
    rows = trace.rows
    marks = (("|", "fast recovery", _entered(rows, RECOVERY)), ("x", "timeout", _entered(rows, LOSS)), ("v", "PROBE_RTT", _probes_rtt(trace)))
    for marker, name, at in marks:
        if len(at):
            ax.plot(
                rows["t_ns"].to_numpy()[at] / 1e9,
                rows["cwnd"].to_numpy()[at],
                color=trace.look.colour,
                marker=marker,
                markersize=7,
                markeredgewidth=1.6,
                linewidth=0,
                label=f"{trace.label}: {name}",
            )


def _probes_rtt(trace: Trace) -> NDArray[np.int64]:
    """The rows in which BBR begins PROBE_RTT: its window falls to the least.

    `BBRMinPipeCwnd`, 4 packets for 200 ms, in draft-cardwell-iccrg-bbr-congestion-control-00, 4.3.5. BBR version 3 keeps half of its window, which
    samples do not tell from other reductions.
    """
    rows = trace.rows
    if spelling.name_of(trace.trial.flows[trace.flow].cca) != "bbr" or rows.is_empty():
        return np.empty(0, dtype=np.int64)
    cwnd = rows["cwnd"].to_numpy().astype(float)
    calm = rows["ca_state"].to_numpy() != LOSS if "ca_state" in rows.columns else np.ones(len(cwnd), dtype=bool)
    return np.flatnonzero((cwnd[1:] == LEAST_WINDOW) & (cwnd[:-1] >= 2 * LEAST_WINDOW) & calm[1:]) + 1


def _entered(rows: pl.DataFrame, state: int) -> NDArray[np.int64]:
    """The rows of one flow's samples that are the first in a state; empty where the state was not sampled."""
    if "ca_state" not in rows.columns:
        return np.empty(0, dtype=np.int64)
    inside = rows["ca_state"].to_numpy() == state
    return np.flatnonzero(inside & ~np.concatenate(([False], inside[:-1])))


def mark_events(axes: Sequence[Axes], events: Sequence[Event], duration: float) -> None:
    """Draws a line through all panels at each event, its text above the first panel: in a row of its own where it would touch another."""
    inches = axes[0].figure.get_figwidth() * PANEL  # type: ignore[union-attr]
    ends: list[float] = []
    for event in events:
        for ax in axes:
            ax.axvline(event.at_s, color=style.INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        if not event.text:
            continue
        length = duration * len(event.text) * FONT_SIZE * style.WIDTH_OF_CHARACTER / style.POINTS / inches
        to_the_left = event.at_s + length > duration
        left = event.at_s - length if to_the_left else event.at_s
        row = next((i for i, end in enumerate(ends) if end <= left), len(ends))
        ends[row:] = [left + 1.05 * length, *ends[row + 1 :]]
        axes[0].annotate(
            event.text,
            (event.at_s, 1),
            xycoords=("data", "axes fraction"),
            xytext=(-3 if to_the_left else 3, 2 + 1.3 * FONT_SIZE * row),
            textcoords="offset points",
            color=style.INK,
            fontsize=FONT_SIZE,
            ha="right" if to_the_left else "left",
            va="bottom",
        )


def path_events(scenario: Scenario) -> list[Event]:
    """The changes of a path in the order of time, those of one moment as one event: both ends of ramps, no recorded rates."""
    texts: dict[float, dict[str, None]] = {}
    for event in (e for change in scenario.changes for e in _events(change, scenario.duration)):
        texts.setdefault(event.at_s, {}).update({event.text: None} if event.text else {})
    return [Event(at, "; ".join(texts[at])) for at in sorted(texts)]


def _events(change: Change, duration_ns: int) -> Iterator[Event]:
    if change.at is not None and change.set:
        yield Event(change.at / NS_PER_S, _patch_text(change.set))
    elif change.ramp and change.start and change.end:
        yield Event(change.ramp[0] / NS_PER_S, f"from {_patch_text(change.start)}")
        yield Event(change.ramp[1] / NS_PER_S, f"to {_patch_text(change.end)}")
    elif change.every and change.set:
        first = change.every if change.first is None else change.first
        for i, at in enumerate(range(first, duration_ns, change.every)):
            if i < MOST_REPETITIONS:
                yield Event(at / NS_PER_S, "" if i else f"{_patch_text(change.set)}, every {change.every / NS_PER_S:g} s")


def _patch_text(patch: Patch) -> str:
    """`rate 20mbit, delay 40 ms`."""
    parts = []
    for name in type(patch).model_fields:
        value = getattr(patch, name)
        if value is None:
            continue
        if name == "rate":
            parts.append(f"rate {format_rate(value)}")
        elif name in ("delay", "jitter"):
            parts.append(f"{name} {value / 1e6:g} ms")
        elif name == "loss":
            parts.append(f"loss {100 * value:g} %")
        else:
            parts.append(name if value is True else f"{name} {value}")
    return ", ".join(parts)


APART = 0.008
"""Distance between two congestion controls at one bound, as a share of the axis."""
LABEL, PEAK = "bound Q = (r − 1)·d", "largest RTT after the drop − d, ms"


def has_drop(outcome: Outcome) -> bool:
    """Whether the bottleneck's rate drops on every cell's path, and some trial was sampled."""
    return any(_sampled(c) for c in outcome.cells) and all(_drops(c) for c in outcome.cells)


def _sampled(cell: Cell) -> bool:
    return any(t.samples is not None and not t.samples.is_empty() for t in cell.having("samples"))


def _drops(cell: Cell) -> bool:
    try:
        return all(spikes.step_of(s).ratio > 1 for s in cell.scenarios)
    except TcpscapeError:
        return False


def verdict(cell: Cell) -> SpikeSummary:
    """The cell's sampled trials against the bound, by every sample of the smoothed RTT."""
    measurements = [
        spikes.measure(spikes.of_trial(trial, every_s=0.0), spikes.step_of(scenario))
        for scenario, trials in zip(cell.scenarios, cell.runs, strict=True)
        for trial in trials
        if trial.samples is not None and not trial.samples.is_empty()
    ]
    return spikes.judge(measurements)


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
        how = {"color": look.colour, "marker": look.marker, "markersize": 5.5, "elinewidth": 1.4, "label": label}
        base.draw_estimate(ax, v.bound_ms + shift, peak, base.error_bar(peak, 0.0, top), upright=True, **how)
