"""Who has how much over time: every flow's throughput, stacked, those of one congestion control in one colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpscape.campaign.outcome import Outcome
from tcpscape.errors import StoreError
from tcpscape.metrics import samples
from tcpscape.plots import base, events, palette, series, style
from tcpscape.plots.base import Beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 120
"""Intervals of a trial, about."""
MANY = 6
"""Flows from which the areas are written as an image."""
LEAST_S = 0.5
"""Shortest interval, s."""


def has_flows(outcome: Outcome) -> bool:
    """Whether trials of several flows kept samples."""
    return any(len(c.trials[0].flows) > 1 for c in outcome.cells if c.trials) and series.has_samples(outcome)


def pages(outcome: Outcome) -> list[Outcome]:
    """A figure for each cell with several flows."""
    some = [c for c in outcome.cells if c.trials and len(c.trials[0].flows) > 1]
    return [one for c in some if series.has_samples(one := Outcome(outcome.campaign, (c,), outcome.versions))]


def shares(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """The throughput of each flow of the median run, stacked, and their shares of all below."""
    cell = outcome.cells[0]
    trial = series.median(cell)
    if trial is None:
        raise StoreError("samples: the trials have none; run with --samples 100ms")
    step = max(LEAST_S, trial.duration / STEPS)
    last = max((t[-1] for t, _ in (samples.delivered(trial, i) for i in range(len(trial.flows))) if len(t)), default=trial.duration)
    edges = np.arange(0.0, last + step / 1e6, step)
    order = sorted(range(len(trial.flows)), key=lambda i: (trial.flows[i].cca, i))
    rates = np.nan_to_num(samples.rates(trial, edges))[order]
    names = [trial.flows[i].cca for i in order]
    looks = palette.looks(names)
    whole = rates.sum(axis=0)
    parts = (("throughput, Mbit/s", rates, float(whole.max()) * 1.08 or 1.0), ("share, %", 100 * rates / np.where(whole > 0, whole, np.nan), 100.0))
    fig, rows = style.rows(2, height=2.2)
    for (ax,), (label, values, top) in zip(rows, parts, strict=True):
        ax.stackplot(
            edges[1:], np.nan_to_num(values), colors=[looks[name].colour for name in names], edgecolor=style.INK, linewidth=0.4, alpha=0.75,
            labels=[f"{name} ({names.count(name)})" if names.index(name) == i else "_" for i, name in enumerate(names)], rasterized=len(names) > MANY,
        )
        ax.set_ylabel(label, fontsize=8)
        ax.set_ylim(0, top)
        ax.set_xlim(edges[1], trial.duration)
    axes = [ax for (ax,) in rows]
    axes[-1].set_xlabel("time, s")
    series.mark(axes, events.of_path(series.middle(cell)[0]), trial.duration)
    jain = cell.mean("jain")
    note = f"{base.said(cell.at)}; the run with the median goodput (seed {trial.seed}); Jain's index over {jain.n} runs: {jain.text()}"
    style.words(fig, axes, (base.title(outcome, beside), note.removeprefix("; ")), outcome.caveats)
    return fig
