"""Figures of results; never runs an engine.

:data:`FIGURES` are those of a campaign's outcome, by name: each says whether an outcome has what it shows, and draws it as a Matplotlib
figure; :func:`tcpscape.plots.style.save` writes one. Figures of findings are functions of their modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape.errors import refuse
from tcpscape.plots import bars, cdf, curves, maps, series, shares, spikes, strip, style
from tcpscape.plots.base import Beside, Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

    from tcpscape.campaign.outcome import Outcome
    from tcpscape.studies.result import Result

__all__ = ["FIGURES", "Beside", "Figure", "draw", "find", "fitting", "study"]

FIGURES: Mapping[str, Figure] = {
    f.name: f
    for f in (
        Figure("split", "what each congestion control has of all flows' goodput", bars.has_mixture, bars.split),
        Figure("spike", "the peak of the delay after a drop of capacity, against its bound", spikes.has_drop, spikes.spike),
        Figure("retention", "goodput as a share of that without the impairment, with its interval", curves.has_cliff, curves.retention, curves.pages),
        Figure("curve", "the metric along an axis, with its interval", curves.has_axis, curves.curve, curves.pages),
        Figure("profiles", "the metric on each named path", bars.has_names, bars.profiles),
        Figure("bars", "the metric of every congestion control, the highest first", bars.has_controls, bars.bars),
        Figure("map", "the metric over two axes, and the line where half of it is left", maps.has_plane, maps.heat, maps.pages),
        Figure("ratio-map", "the ratio of two congestion controls; hatched where the runs do not decide", maps.has_ratio, maps.ratio, maps.pages),
        Figure("strip", "every run as a dot, by cell", strip.has_runs, strip.strip),
        Figure("cdf", "the distribution of the runs of a cell, with its band", cdf.has_distribution, cdf.cdf),
        Figure("series", "a trial over time, with what happened marked", series.has_samples, series.series, series.pages, example=True),
        Figure("shares", "the flows' throughput and shares over time", shares.has_flows, shares.shares, shares.pages, example=True),
    )
}
"""Every figure of an outcome; those that say the most about the few outcomes that they fit come first."""


def find(name: str) -> Figure:
    """The figure called `name`; one that is unknown is refused."""
    if name not in FIGURES:
        refuse("figures", f"{name!r} is unknown", f"choose {', '.join(FIGURES)}")
    return FIGURES[name]


def fitting(outcome: Outcome) -> list[Figure]:
    """The figures that an outcome has enough for."""
    return [f for f in FIGURES.values() if f.applies(outcome)]


def draw(outcome: Outcome, name: str | None = None) -> Sheet:
    """The figure called `name` of an outcome, its first page where it has several; None is the first figure that the outcome has enough for.

    :raises TcpscapeError: one line, where the figure is unknown or the outcome has not what it shows.
    """
    choice = fitting(outcome)
    figure = find(name) if name else choice[0] if choice else None
    if figure is None or not figure.applies(outcome):
        names = ", ".join(f.name for f in choice)
        refuse("figure", f"{outcome.name} has not what {name or 'any figure'} shows", f"choose {names}" if names else "run more seeds or samples")
    return figure.draw(figure.pages(outcome)[0], Beside())


def study(result: Result, stem: Path) -> list[Path]:
    """The first figure that fits the study's first part, with the published numbers. Returns the files (PNG, SVG)."""
    outcome = result.outcome()
    figure = fitting(outcome)[0]
    return style.save(figure.draw(figure.pages(outcome)[0], Beside(result.study.title, result.known)), stem)
