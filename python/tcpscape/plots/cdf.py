"""How the runs of a cell are distributed: the share of runs up to each goodput and RTT, with a band that holds the whole curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tcpscape.campaign.outcome import Outcome
from tcpscape.plots import base, style
from tcpscape.plots.base import Beside, Line
from tcpscape.stats.estimate import CONFIDENCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST_RUNS = 10
"""Runs of a cell from which its distribution has a shape."""
MOST_POINTS, MOST_LINES = 6, 6
"""Points on the axes, and congestion controls, of one figure."""
BESIDE = "rtt"
"""Metric beside the campaign's own."""


def has_distribution(outcome: Outcome) -> bool:
    """Whether there are enough runs, and not too many cells."""
    few = len(base.points(outcome)) <= MOST_POINTS and len(base.lines(outcome)) <= MOST_LINES
    return few and max((len(c.trials) for c in outcome.cells), default=0) >= LEAST_RUNS


def cdf(outcome: Outcome, beside: Beside = Beside()) -> Figure:
    """One row for each point on the axes: the campaign's metric, and the RTT."""
    own = outcome.campaign.metric
    seen = any(math.isfinite(v) for c in outcome.cells for v in c.values(BESIDE))
    metrics = [own, *([BESIDE] if own != BESIDE and seen else [])]
    places = base.points(outcome)
    fig, axes = style.figure(len(places) * len(metrics), columns=len(metrics), width=4.2, height=2.3)
    for i, here in enumerate(places):
        for ax, metric in zip(axes[i * len(metrics) :], metrics, strict=False):
            for line in base.lines(outcome):
                for cell in line.cells(outcome, here):
                    _steps(ax, line, cell.values(metric))
            ax.set_ylim(0, 1.02)
            ax.set_xlabel(base.metric_label(metric))
            ax.set_title(base.said(here), fontsize=10)
    style.y_label(axes, "share of runs")
    style.words(fig, axes, (base.title(outcome, beside), base.note(outcome, f"band: {CONFIDENCE:.0%} for the whole curve")), outcome.caveats)
    return fig


def _steps(ax: Axes, line: Line, values: Sequence[float]) -> None:
    known = np.sort([v for v in values if math.isfinite(v)])
    if not len(known):
        return
    # Dvoretzky, Kiefer, Wolfowitz 1956 with Massart's constant (1990): the band holds the true distribution everywhere at once.
    reach = math.sqrt(math.log(2 / (1 - CONFIDENCE)) / (2 * len(known)))
    x = np.concatenate(([known[0]], known))
    y = np.arange(len(known) + 1) / len(known)
    look = line.look
    ax.step(x, y, where="post", color=look.colour, linestyle=look.dash, linewidth=1.5, label=line.label)
    ax.fill_between(x, np.clip(y - reach, 0, 1), np.clip(y + reach, 0, 1), step="post", color=look.colour, alpha=0.15, linewidth=0)
