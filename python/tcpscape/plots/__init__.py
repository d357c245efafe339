"""Figures of results. Nothing here runs an engine.

:func:`draw` draws a figure of a campaign's outcome by its name, :func:`save` writes it as PNG, SVG or PDF::

    outcome = record.load(Path("out/map")).outcomes[0]
    plots.save(plots.draw(outcome, "retention"), Path("retention"))

:data:`FIGURES` is the registry: each :class:`FigureKind` says whether an outcome has the data for it, which parts of the outcome get a figure each
(`pages`), and draws one. :func:`fitting` lists those that an outcome has the data for. The modules `bars`, `curves`, `maps`, `runs` and
`series` draw; `traces` has the quantities of a trial over time, `chosen` finds what a user names, `base` what figures share about outcomes, `style`
looks, panels and files. Figures of other results are functions: `bars.damage` (what removing each ingredient of a path gives back),
`bars.standings` and others of an advice, `series.over_bound` (peaks over bounds), `validation.divergence` and `validation.overlay` (two engines).

A new figure is a file with `applies(outcome)` and `draw(outcome, context)` and an entry in :data:`FIGURES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape.errors import instead, refuse
from tcpscape.plots import bars, curves, maps, runs, series, traffic
from tcpscape.plots.base import Context, FigureKind
from tcpscape.plots.style import formats, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpscape.campaign.outcome import Outcome
    from tcpscape.studies.result import Result

__all__ = ["FIGURES", "Context", "FigureKind", "draw", "find", "fitting", "formats", "save", "save_study"]

FIGURES: Mapping[str, FigureKind] = {
    kind.name: kind
    for kind in (
        FigureKind("split", "what each congestion control has of all flows' goodput", bars.has_mixture, bars.split, of_metric=False),
        FigureKind("spike", "the peak of the delay after a drop of capacity, against its bound", series.has_drop, series.spike, of_metric=False),
        FigureKind("groups", "what each group of flows carries, by direction, RTT and place", traffic.has_groups, traffic.groups, of_metric=False),
        FigureKind("sizes", "completion times of transfers by their size", traffic.has_transfers, traffic.sizes, of_metric=False),
        FigureKind("latency-cdf", "the distribution of the delays of probes", traffic.has_probes, traffic.latency_cdf, of_metric=False),
        FigureKind(
            "retention",
            "goodput as a share of that without the impairment, with its interval",
            curves.has_cliff,
            curves.retention,
            curves.pages,
            of_metric=False,
        ),
        FigureKind("curve", "the metric along an axis, with its interval", curves.has_axis, curves.curve, curves.pages),
        FigureKind("profiles", "the metric on each named path", bars.has_names, bars.profiles),
        FigureKind("bars", "the metric of every congestion control, the highest first", bars.has_controls, bars.bars),
        FigureKind("map", "the metric over two axes, and the line where half of it is left", maps.has_plane, maps.heat, maps.pages),
        FigureKind("ratio-map", "the ratio of two congestion controls; hatched where the runs do not decide", maps.has_ratio, maps.ratio, maps.pages),
        FigureKind("strip", "every run as a dot, by cell", runs.has_runs, runs.strip),
        FigureKind("cdf", "the distribution of the runs of a cell, with its band", runs.has_distribution, runs.cdf),
        FigureKind("latency", "the delays of probes over time", traffic.has_probes, traffic.latency, traffic.latency_pages, example=True),
        FigureKind("series", "a trial over time, with what happened marked", series.has_samples, series.series, series.pages, example=True),
        FigureKind("shares", "the flows' throughput and shares over time", series.has_flows, series.shares, series.share_pages, example=True),
    )
}
"""The figures of an outcome by name; those that fit few outcomes and show the most about them come first."""


def draw(outcome: Outcome, name: str | None = None, *, page: int = 0, context: Context = Context()) -> Figure:
    """Draws a figure of an outcome and returns it as a Matplotlib figure.

    `name` is one of :data:`FIGURES`; without it, the first one that the outcome has the data for:

    - `split`: the share of the goodput of each congestion control on a shared bottleneck;
    - `groups`: the goodput of each group of flows of a network; `sizes`: completion times of transfers by size;
    - `latency-cdf`, `latency`: the delays of probes, as a distribution and over time (need samples);
    - `spike`: the peak of the delay after the bottleneck's rate drops, against its bound (needs samples);
    - `retention`: goodput along an impairment, as a share of that without it;
    - `curve`: the metric along an axis with three values or more;
    - `profiles`: the metric on each named path;
    - `bars`: the metric of every congestion control;
    - `map`, `ratio-map`: the metric, and the ratio of two congestion controls, over two axes;
    - `strip`, `cdf`: every run as a dot (8 runs a cell or more), and their distribution (10 or more);
    - `series`, `shares`: the median trial over time, and the throughput of its flows (need samples).

    `page`: number of the figure, from 0, where the outcome is too large for one (`find(name).pages(outcome)` are its parts); `context`: a title,
    published numbers to show, and the quantities of a trial over time: `draw(outcome, "series", context=Context(what=("cwnd", "rtt")))`.

    :raises TcpscapeError: where the figure is unknown, the outcome lacks the data for it, or there is no such page.
    """
    choices = fitting(outcome)
    kind = find(name) if name is not None else next(iter(choices), None)
    if kind is None or kind not in choices:
        names = ", ".join(choice.name for choice in choices)
        refuse("figure", f"{name or 'each'!r} needs data that the result lacks", f"choose {names}" if choices else "run more cells or trials")
    parts = kind.pages(outcome)
    if not 0 <= page < len(parts):
        refuse("page", f"{kind.name} has no page {page}", f"choose 0 to {len(parts) - 1}")
    return kind.draw(parts[page], context)


def find(name: str) -> FigureKind:
    """The figure called `name`. :raises TcpscapeError: where it is unknown."""
    if name not in FIGURES:
        refuse("figures", f"{name!r} is unknown", instead(name, FIGURES))
    return FIGURES[name]


def fitting(outcome: Outcome) -> list[FigureKind]:
    """The figures that an outcome has the data for, in the registry's order."""
    return [kind for kind in FIGURES.values() if kind.applies(outcome)]


def save_study(result: Result, stem: Path) -> list[Path]:
    """Writes the first figure that fits the study's first part, with the published numbers; returns the files (PNG, SVG)."""
    return save(draw(result.outcome(), context=Context(result.study.title, result.known)), stem)
