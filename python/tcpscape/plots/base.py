"""The parts that figures of an outcome share: the registry's entry, legend entries, panels, the text of axes, titles and notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpscape import metrics
from tcpscape.campaign import axes
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.controls import palette
from tcpscape.controls.palette import Look
from tcpscape.scenario.options import UNNAMED
from tcpscape.stats import Estimate
from tcpscape.studies import known
from tcpscape.studies.known import KnownNumber
from tcpscape.words import paths

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INTERVAL_OVER = 1.4
"""Multiple of the highest value up to which an interval is shown; a longer one is cut at the panel's edge."""
MOST_PANELS = 12
"""Most panels of one figure; an outcome that needs more is drawn on several pages."""
NAMES: Mapping[str, str] = {"rtt": "RTT", "app": "application's rate", "rcvbuf": "receive buffer", "sndbuf": "send buffer", "hz": "kernel's HZ"}
"""Axis → its name in a figure; any other keeps its own. Those of metrics are `metrics.TITLES`."""
OF_CONDITIONS: Mapping[str, str] = {"jitter": "jitter (sd, each direction)", "loss": "loss (each direction)"}
"""Axis → its name where the campaign has conditions instead of a scenario, so that the direction is known."""
MOST_NAMED = 4
"""Most congestion controls that a title lists by name."""
LONG_NUMBER = 1e5
"""Value from which the ticks of an axis show the text of the campaign (4MiB) instead of the number."""


@dataclass(frozen=True)
class Context:
    """What a figure shows besides the outcome: a title and published numbers."""

    title: str = ""
    """Title of the figure; empty for one made from the outcome, see :func:`title`."""
    numbers: tuple[KnownNumber, ...] = ()
    """Published numbers."""
    what: tuple[str, ...] = ()
    """Quantities that a trial over time has panels for, names of `traces.PANELS`; empty for the usual ones."""
    width: float | None = None
    """Width of the figure, inches (:data:`style.PAGE`, :data:`style.NARROW`): panels stand below each other where they do not fit side by side. None
    for as wide as the panels make it."""

    def published(self, outcome: Outcome, cell: Cell, metric: str, stat: str = "mean") -> list[KnownNumber]:
        """The published numbers of a cell, those computed from raw measurements last."""
        matching = [k for k in known.of_cell(self.numbers, outcome.name, cell) if (k.metric, k.stat) == (metric, stat) and k.valid]
        return sorted(matching, key=lambda k: k.kind)


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure: an entry of the registry."""

    name: str
    about: str
    """What it shows, in one line."""
    applies: Callable[[Outcome], bool]
    """Whether an outcome has the data for it."""
    draw: Callable[[Outcome, Context], Figure]
    """Draws one page."""
    pages: Callable[[Outcome], Sequence[Outcome]] = lambda outcome: (outcome,)
    """The parts of an outcome that get a figure each."""
    of_metric: bool = True
    """Whether it shows the campaign's metric, whichever that is; of the figures without `example`."""
    example: bool = False
    """Whether it shows single trials: a report of several outcomes has it for the first one with samples only."""


@dataclass(frozen=True)
class LegendEntry:
    """A congestion control on an engine: everything that has the same look and the same label in a figure."""

    cca: str
    engine: str
    label: str
    look: Look

    def cells(self, outcome: Outcome, point: Mapping[str, str]) -> tuple[Cell, ...]:
        """Its cells at a point (axis → value)."""
        return outcome.select(self.cca, self.engine, **point)


def entries(outcome: Outcome) -> list[LegendEntry]:
    """Every congestion control on every engine, in the order of the cells."""
    pairs = list(dict.fromkeys((c.cca, c.engine) for c in outcome.cells))
    several = len({engine for _, engine in pairs}) > 1
    labels = {(cca, engine): f"{cca}, {engine}" if several else cca for cca, engine in pairs}
    by_cca = looks(outcome)
    taken, drawn = list(by_cca.values()), dict[str, int]()
    legend = []
    for cca, engine in pairs:
        look, drawn[cca] = by_cca[cca], drawn.get(cca, -1) + 1
        if drawn[cca]:
            look = palette.another(look, taken) or look.variant(drawn[cca])
            taken.append(look)
        legend.append(LegendEntry(cca, engine, labels[cca, engine], look))
    return legend


def looks(outcome: Outcome) -> Mapping[str, Look]:
    """The look of every congestion control of an outcome, of its cells (`bbr+cubic`) and of its flows; the same in all figures and tables of it."""
    return palette.looks([*outcome.campaign.cca, *outcome.ccas, *outcome.flow_ccas])


def numeric_axes(outcome: Outcome, least: int = 2) -> list[str]:
    """The axes whose values are all quantities, with at least `least` different ones."""
    chosen = []
    for axis in outcome.axes:
        values = [axes.read(text) for text in outcome.levels(axis)]
        if not any(v.is_word for v in values) and len({v.number for v in values}) >= least:
            chosen.append(axis)
    return chosen


def fits(outcome: Outcome, *along: str) -> bool:
    """Whether one figure has room for a panel for each point on the axes other than `along`."""
    return len(outcome.points(*along)) <= MOST_PANELS


def subset(outcome: Outcome, point: Mapping[str, str]) -> Outcome:
    """The cells at a point, as an outcome."""
    return Outcome(outcome.campaign, outcome.select(**point), outcome.versions)


def pages(outcome: Outcome, *along: str) -> list[Outcome]:
    """The outcome in parts that fit into one figure each, split by the values of its first axes."""
    if fits(outcome, *along):
        return [outcome]
    first = next(a for a in outcome.axes if a not in along and len(outcome.levels(a)) > 1)
    return [page for level in outcome.levels(first) for page in pages(subset(outcome, {first: level}), *along)]


def point_text(point: Mapping[str, str]) -> str:
    """A point as text: `RTT 50ms, loss 1%`."""
    return ", ".join(f"{name.upper() if name == 'rtt' else name} {value}" for name, value in point.items())


def axis_name(outcome: Outcome, axis: str) -> str:
    """The name of an axis, with the direction where that is known and the same for all cells."""
    campaign, towards = outcome.campaign, f"{axis}_on"
    both = campaign.scenario is None and towards not in outcome.axes and campaign.conditions.get(towards, "both") == "both"
    return OF_CONDITIONS[axis] if both and axis in OF_CONDITIONS else NAMES.get(axis, axis)


def axis_label(outcome: Outcome, axis: str) -> str:
    """The name of an axis with the unit of its numbers."""
    unit = next((unit for level in outcome.levels(axis) if (unit := axes.read(level).unit)), "")
    return f"{axis_name(outcome, axis)}, {unit}" if unit and not tick_names(outcome, axis) else axis_name(outcome, axis)


def tick_names(outcome: Outcome, axis: str) -> dict[float, str]:
    """Number → text of the campaign, for an axis whose numbers are too long for ticks; empty for any other."""
    names = {axes.read(level).number: level for level in outcome.levels(axis)}
    return names if max(names, default=0.0) >= LONG_NUMBER else {}


def metric_label(metric: str, statistic: str = "") -> str:
    """The name of a metric with its unit, behind the statistic that is shown of it: `mean goodput, Mbit/s`."""
    entry = metrics.find(metric)
    name = " ".join(filter(None, (statistic, metrics.title(entry.name))))
    return f"{name}, {entry.printed_unit}" if entry.printed_unit else name


def upper_limit(estimates: Iterable[Estimate], others: Iterable[float] = ()) -> float:
    """The end of an axis that shows these estimates and values; an interval counts up to :data:`INTERVAL_OVER` times the highest value."""
    shown = list(estimates)
    values = [v for v in (*(e.value for e in shown), *others) if math.isfinite(v)]
    highest = max(values, default=0.0) or 1.0
    ends = [min(e.high, INTERVAL_OVER * highest) for e in shown if e.high > 0]
    return 1.05 * max([highest, *ends])


def clipped_interval(estimate: Estimate, low: float, high: float) -> tuple[float, float]:
    """The ends of the interval, cut at `low` and `high`; the value itself where there is no interval."""
    ends = [estimate.value if math.isnan(end) else min(max(end, low), high) for end in (estimate.low, estimate.high)]
    return min(ends[0], estimate.value), max(ends[1], estimate.value)


def error_bar(estimate: Estimate, low: float, high: float) -> list[list[float]]:
    """The lengths of the error bar below and above the value, as Matplotlib takes them; the interval is cut at `low` and `high`."""
    ends = clipped_interval(estimate, low, high)
    return [[estimate.value - ends[0]], [ends[1] - estimate.value]]


def draw_estimate(ax: Axes, at: float, estimate: Estimate, lengths: list[list[float]], *, upright: bool = False, **how: Any) -> None:
    """A mark with its error bar beside or above `at`; `lengths`: of the bar below and above; `how`: what Matplotlib's `errorbar` takes besides."""
    x, y = (at, estimate.value) if upright else (estimate.value, at)
    ax.errorbar(x, y, **{"yerr" if upright else "xerr": lengths, "markersize": 4.5, "linewidth": 0, "elinewidth": 1.6, "capsize": 3, **how})


def note(outcome: Outcome, context: Context, content: str) -> str:
    """The line under the title: axes with one value left, `content`, number of runs, engine."""
    counts = sorted({len(c.trials) for c in outcome.cells})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    fixed = {a: outcome.levels(a)[0] for a in outcome.axes if len(outcome.campaign.axes.get(a, ())) > 1 and len(outcome.levels(a)) == 1}
    runs = f"{outcome.trial_count} runs, {each} a cell, engine {outcome.label}"
    return "; ".join(filter(None, [point_text(fixed), path_words(outcome, context), content, runs]))


def path_words(outcome: Outcome, context: Context) -> str:
    """The path in words of an outcome with one point; empty where its path varies, and on a page, which has it above its figures."""
    if context.width is not None or not outcome.cells or any(len(outcome.levels(axis)) > 1 for axis in outcome.axes):
        return ""
    return paths.in_words(outcome.cells[0].scenarios[0])


def title(outcome: Outcome, context: Context = Context()) -> str:
    """The title of a figure: that of the context, else the campaign's description or name, else the metric and the axes."""
    default = outcome.name if outcome.name != UNNAMED else _metric_and_axes(outcome)
    return context.title or outcome.campaign.about.strip() or default


def _metric_and_axes(outcome: Outcome) -> str:
    """`goodput against RTT and jitter: cubic, bbr`."""
    metric = metrics.find(outcome.campaign.metric).name
    names = [NAMES.get(a, a) for a in outcome.axes if len(outcome.levels(a)) > 1]
    labels = [entry.label for entry in entries(outcome)]
    against = f" against {', '.join(names[:-1])}{' and ' if names[1:] else ''}{names[-1]}" if names else ""
    ccas = ", ".join(labels) if len(labels) <= MOST_NAMED else f"{len(labels)} congestion controls"
    return f"{metrics.title(metric)}{against}: {ccas}"
