"""Figures of networks: delays of probes over time and as distributions, goodput of groups of flows, completion times of transfers by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tcpscape import stats
from tcpscape.campaign import groups as grouping
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.controls import palette
from tcpscape.metrics import traffic
from tcpscape.plots import bars, base, series, style
from tcpscape.plots.base import Context, LegendEntry
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats
from tcpscape.trial import LOST, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CELLS = 4
"""Most congestion controls of one figure."""
MOST_POINTS = 2000
"""Most points of a line."""
GROUP = 0.62
"""Thickness of a bar, in rows."""


def has_probes(outcome: Outcome) -> bool:
    """Whether trials kept the packets of probes."""
    return any(_probed(cell) is not None for cell in outcome.cells)


def latency_pages(outcome: Outcome) -> list[Outcome]:
    """A figure for each point on the axes and every :data:`MOST_CELLS` congestion controls there."""
    parts = []
    for point in outcome.points():
        cells = [cell for cell in outcome.select(**point) if _probed(cell) is not None]
        parts += [Outcome(outcome.campaign, tuple(cells[i : i + MOST_CELLS]), outcome.versions) for i in range(0, len(cells), MOST_CELLS)]
    return parts


def latency(outcome: Outcome, context: Context = Context()) -> Figure:
    """The delay of each packet of each probe, in the median trial of each congestion control: a panel for each."""
    medians = [(cell, trial) for cell in outcome.cells if (trial := _probed(cell)) is not None]
    fig, axes = style.time_panels(len(medians), height=2.1, page=context.width)
    looks = palette.looks(f"probe {probe.name}" for _, trial in medians for probe in trial.probes)
    highest = 0.0
    for ax, (cell, trial) in zip(axes, medians, strict=True):
        for number, probe in enumerate(trial.probes):
            look = looks[f"probe {probe.name}"].variant(number)
            times, delays = _delays(trial, number)
            highest = max(highest, float(np.nanmax(delays)) if np.isfinite(delays).any() else 0.0)
            label = f"{probe.name}, {'round trip' if probe.is_echo else 'one way'}"
            ax.plot(*series.thinned(times, delays, MOST_POINTS), color=look.colour, linestyle=look.dash, linewidth=1.1, label=label)
        ax.set_ylabel(f"delay, ms\n({cell.cca})" if len(medians) > 1 else "delay, ms", fontsize=8)
    for ax in axes:
        ax.set_ylim(0, 1.05 * highest or 1.0)
    axes[-1].set_xlim(0, max(trial.duration for _, trial in medians))
    axes[-1].set_xlabel("time, s")
    seeds = ", ".join(f"seed {trial.seed}" for _, trial in medians)
    words = [base.point_text(medians[0][0].at), base.path_words(outcome, context), f"the run with the median latency ({seeds})"]
    style.finish(fig, axes, (base.title(outcome, context), "; ".join(filter(None, [*words, "gaps are lost packets"]))), outcome.caveats)
    return fig


def latency_cdf(outcome: Outcome, context: Context = Context()) -> Figure:
    """The share of all packets of a probe up to each delay: a panel for each probe, a line for each congestion control, all its trials together."""
    names = list(dict.fromkeys(probe.name for cell in outcome.cells for probe in cell.trials[0].probes))
    fig, axes = style.panels(len(names), columns=2, width=4.2, height=2.4, share=False, page=context.width)
    for ax, name in zip(axes, names, strict=True):
        for entry in base.entries(outcome):
            for cell in entry.cells(outcome, {}):
                _draw_distribution(ax, entry, _pooled(cell, name))
        kind = next(p.is_echo for cell in outcome.cells for p in cell.trials[0].probes if p.name == name)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel(f"{'round trip' if kind else 'one-way delay'}, ms")
        ax.set_ylim(0, 1.02)
        ax.set_xlim(left=0)
    style.y_label(axes, "share of packets")
    note = base.note(outcome, context, "packets of all runs; lost ones are left out")
    style.finish(fig, axes, (base.title(outcome, context), note), outcome.caveats)
    return fig


def _draw_distribution(ax: Axes, entry: LegendEntry, delays: Floats) -> None:
    if len(delays):
        shares = np.linspace(0, 1, min(len(delays), 400))
        look = entry.look
        ax.plot(np.quantile(delays, shares), shares, color=look.colour, linestyle=look.dash, linewidth=1.5, label=entry.label)


def _pooled(cell: Cell, name: str) -> Floats:
    """The delays of a probe's packets in all trials that kept them, ms."""
    each = [_delays(t, i)[1] for t in cell.trials if t.probe_samples is not None for i, probe in enumerate(t.probes) if probe.name == name]
    delays = np.concatenate(each) if each else np.empty(0)
    return np.asarray(delays[np.isfinite(delays)], dtype=np.float64)


def _delays(trial: Trial, number: int) -> tuple[Floats, Floats]:
    """When a probe's packets were sent, s, and their delays, ms; NaN of those that were lost."""
    if trial.probe_samples is None:
        return np.empty(0), np.empty(0)
    rows = trial.probe_samples.filter(trial.probe_samples["probe"] == number).sort("t_ns")
    delays = rows["delay_ns"].to_numpy()
    return rows["t_ns"].to_numpy() / 1e9, np.where(delays == np.uint64(LOST), np.nan, delays / 1e6)


def _probed(cell: Cell) -> Trial | None:
    """The trial with the median latency, of those that kept the packets of probes."""
    kept = [
        trial for trial in cell.having("probe_samples") if trial.probes and trial.probe_samples is not None and not trial.probe_samples.is_empty()
    ]
    return sorted(kept, key=lambda trial: (traffic.latency("p95")(trial), trial.seed))[(len(kept) - 1) // 2] if kept else None


def has_groups(outcome: Outcome) -> bool:
    """Whether flows differ in their direction, their RTT or their place."""
    return len(outcome.cells) <= base.MOST_PANELS and any(grouping.is_network(cell.scenarios[0]) for cell in outcome.cells)


def groups(outcome: Outcome, context: Context = Context()) -> Figure:
    """What each group of flows carries, mean and interval: a panel for each congestion control."""
    cells = [cell for cell in outcome.cells if cell.trials[0].flows]
    panels = [_group_rows(outcome, cell) for cell in cells]
    most = bars.top([row for rows in panels for row in rows])
    fig, axes = style.panels(
        len(cells), share=False, width=5.2, height=bars.HEAD_INCH + bars.ROW_INCH * max(map(len, panels)), columns=2, page=context.width
    )
    for ax, cell, rows in zip(axes, cells, panels, strict=True):
        for row in rows:
            ax.barh(row.at, row.estimate.value, GROUP, color=row.look.colour, alpha=0.5, linewidth=0, hatch=row.look.hatch)
        ax.set_yticks([row.at for row in rows], [row.label for row in rows], fontsize=bars.NAME_SIZE)
        bars.draw_rows(ax, rows, "goodput, Mbit/s: mean of the runs", most)
        ax.set_title(", ".join(filter(None, [cell.cca if len(outcome.ccas) > 1 else "", base.point_text(cell.at)])), fontsize=10)
    note = base.note(outcome, context, "the sum of each group's flows, mean and 95 % interval")
    style.finish(fig, [], (base.title(outcome, context), note), outcome.caveats)
    return fig


def _group_rows(outcome: Outcome, cell: Cell) -> list[bars.BarRow]:
    looks = base.looks(outcome)
    return [
        bars.BarRow(i, group.title, looks[group.cca].variant(group.direction == "up"), cell, _carried(cell, group))
        for i, group in enumerate(grouping.of(cell))
    ]


def _carried(cell: Cell, group: grouping.Group) -> Estimate:
    return stats.mean([sum(flow.goodput_mbps for flow in group.of(trial)) for trial in cell.trials])


def has_transfers(outcome: Outcome) -> bool:
    """Whether transfers were complete, of few enough cells."""
    if len(outcome.cells) > base.MOST_PANELS:
        return False
    some = [cell for cell in outcome.cells if cell.trials[0].transfers]
    return any(size.completed for cell in some for trial in cell.trials for entry in trial.transfers for size in entry.classes)


def sizes(outcome: Outcome, context: Context = Context()) -> Figure:
    """Completion times by size class: the median, and the 95th percentile above it, means of the runs with their intervals."""
    fig, (ax,) = style.panels(1, width=6.4, height=3.2, page=context.width)
    entries = [(entry, cell) for entry in base.entries(outcome) for cell in entry.cells(outcome, {})]
    values = []
    for i, (entry, cell) in enumerate(entries):
        shift = 0.6 * ((i + 0.5) / len(entries) - 0.5)
        kinds: Sequence[tuple[traffic.Percentile, bool]] = (("p50", True), ("p95", False))
        for percentile, filled in kinds:
            points = [(place + shift, e) for place, name in enumerate(traffic.CLASSES) if (e := _time(cell, percentile, name)) is not None]
            values += [estimate.value for _, estimate in points]
            _draw_times(ax, entry, points, filled=filled)
    ax.set_yscale("log")
    if values:
        ax.set_ylim(min(values) / 2, max(values) * 2)
    style.plain_log(ax.yaxis)
    ax.set_xticks(range(len(traffic.CLASSES)), [text.replace("of ", "", 1) for text in traffic.CLASSES.values()], fontsize=8)
    ax.grid(False, axis="x")
    ax.set_xlabel("size of the transfer")
    ax.set_ylabel("completion time, ms")
    note = base.note(outcome, context, "filled: median; hollow: 95th percentile; 95 % intervals over the runs")
    style.finish(fig, [ax], (base.title(outcome, context), note), outcome.caveats)
    return fig


def _draw_times(ax: Axes, entry: LegendEntry, points: Sequence[tuple[float, Estimate]], *, filled: bool) -> None:
    look, face = entry.look, entry.look.colour if filled else "none"
    how = {"color": look.colour, "marker": look.marker, "markerfacecolor": face, "label": entry.label if filled else "_"}
    for at, estimate in points:
        interval = base.error_bar(estimate, estimate.value / 4, estimate.value * 4)
        base.draw_estimate(ax, at, estimate, interval, upright=True, markersize=5.5, elinewidth=1.3, **how)


def _time(cell: Cell, percentile: traffic.Percentile, name: str) -> Estimate | None:
    known = stats.known(traffic.fct(percentile, name)(trial) for trial in cell.trials)
    return stats.mean(known) if known else None
