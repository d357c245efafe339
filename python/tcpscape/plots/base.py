"""What every figure of an outcome is made from: its panels, its lines, its axes' words, and what was published beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpscape import metrics
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.plots import palette
from tcpscape.plots.palette import Look
from tcpscape.scenario.options import UNNAMED
from tcpscape.stats import Estimate
from tcpscape.studies import known
from tcpscape.studies.known import KnownNumber

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

INTERVAL_OVER = 1.4
"""How far over the highest value an interval is shown; a longer one runs out of the figure."""
MOST_PANELS = 12
"""Panels of one figure; what needs more is not drawn."""
NAMES: Mapping[str, str] = {
    "rtt": "RTT", "app": "application's rate", "rcvbuf": "receive buffer", "sndbuf": "send buffer", "hz": "kernel's HZ",
}
"""Axis → what to call it; any other is called by its name."""
OF_CONDITIONS: Mapping[str, str] = {"jitter": "jitter (sd, each direction)", "loss": "loss (each direction)"}
"""The same where conditions, not a scenario of its own, say what it does to the path."""
MOST_NAMED = 4
"""Congestion controls that a title names."""
LONG_NUMBER = 1e5
"""Value from which an axis' ticks are named as they were written: 4MiB."""


@dataclass(frozen=True)
class Beside:
    """What stands beside our own numbers in a figure."""

    title: str = ""
    known: tuple[KnownNumber, ...] = ()
    """Published numbers."""

    def of(self, outcome: Outcome, cell: Cell, metric: str, stat: str = "mean") -> list[KnownNumber]:
        """What was published of a cell, the raw measurements last."""
        found = [k for k in known.of_cell(self.known, outcome.name, cell) if (k.metric, k.stat) == (metric, stat) and k.valid]
        return sorted(found, key=lambda k: k.kind)


@dataclass(frozen=True)
class Figure:
    """A figure of a campaign's outcome."""

    name: str
    about: str
    applies: Callable[[Outcome], bool]
    """Whether the outcome has what it shows."""
    draw: Callable[[Outcome, Beside], Sheet]
    pages: Callable[[Outcome], Sequence[Outcome]] = lambda outcome: (outcome,)
    """The parts of the outcome that get a figure each."""
    example: bool = False
    """Whether it shows single trials: a document of several outcomes has it of the first one that kept them."""


@dataclass(frozen=True)
class Line:
    """One congestion control on one engine: what has one look."""

    cca: str
    engine: str
    label: str
    look: Look

    def cells(self, outcome: Outcome, here: Mapping[str, str]) -> tuple[Cell, ...]:
        """Its cells at these values."""
        return outcome.select(self.cca, self.engine, **here)


def lines(outcome: Outcome) -> list[Line]:
    """Every congestion control on every engine, in the outcome's order."""
    pairs = list(dict.fromkeys((c.cca, c.engine) for c in outcome.cells))
    several = len({engine for _, engine in pairs}) > 1
    label = {(cca, engine): f"{cca}, {engine}" if several else cca for cca, engine in pairs}
    look = palette.looks(label.values())
    return [Line(cca, engine, label[cca, engine], look[label[cca, engine]]) for cca, engine in pairs]


def scales(outcome: Outcome, least: int = 2) -> list[str]:
    """The axes with a scale and at least so many values."""
    found = []
    for axis in outcome.axes:
        cells = [c.value(axis) for c in outcome.cells if axis in c.at]
        if not any(v.is_word for v in cells) and len({v.number for v in cells}) >= least:
            found.append(axis)
    return found


def points(outcome: Outcome, *along: str) -> list[dict[str, str]]:
    """Every point on the other axes, for a panel each; axes with one value are left out."""
    others = [a for a in outcome.axes if a not in along and len(outcome.levels(a)) > 1]
    order = [{level: i for i, level in enumerate(outcome.levels(a))} for a in others]
    there = {tuple(places[c.at[a]] for a, places in zip(others, order, strict=True)) for c in outcome.cells if all(a in c.at for a in others)}
    levels = [list(places) for places in order]
    return [{a: some[i] for a, some, i in zip(others, levels, at, strict=True)} for at in sorted(there)]


def fits(outcome: Outcome, *along: str) -> bool:
    """Whether a panel for each point on the other axes is not too many."""
    return len(points(outcome, *along)) <= MOST_PANELS


def part(outcome: Outcome, here: Mapping[str, str]) -> Outcome:
    """The outcome's cells at these values, as an outcome."""
    return Outcome(outcome.campaign, outcome.select(**here), outcome.versions)


def pages(outcome: Outcome, *along: str) -> list[Outcome]:
    """The outcome in parts that have few enough panels each: by the values of its first axes."""
    if fits(outcome, *along):
        return [outcome]
    first = next(a for a in outcome.axes if a not in along and len(outcome.levels(a)) > 1)
    return [page for level in outcome.levels(first) for page in pages(part(outcome, {first: level}), *along)]


def said(here: Mapping[str, str]) -> str:
    """`RTT 50ms, loss 1%`."""
    return ", ".join(f"{name.upper() if name == 'rtt' else name} {value}" for name, value in here.items())


def axis_name(outcome: Outcome, axis: str) -> str:
    """What to call the axis; in which direction only where that is known and the same everywhere."""
    campaign, towards = outcome.campaign, f"{axis}_on"
    both = campaign.scenario is None and towards not in outcome.axes and campaign.conditions.get(towards, "both") == "both"
    return OF_CONDITIONS[axis] if both and axis in OF_CONDITIONS else NAMES.get(axis, axis)


def axis_label(outcome: Outcome, axis: str) -> str:
    """The axis' name with the unit of its numbers."""
    unit = next((c.value(axis).unit for c in outcome.cells if axis in c.at and c.value(axis).unit), "")
    return f"{axis_name(outcome, axis)}, {unit}" if unit and not written(outcome, axis) else axis_name(outcome, axis)


def written(outcome: Outcome, axis: str) -> dict[float, str]:
    """Number → value as written, of an axis whose numbers are too long for ticks; empty for any other."""
    found = {c.value(axis).number: c.at[axis] for c in outcome.cells if axis in c.at}
    return found if max(found, default=0.0) >= LONG_NUMBER else {}


def metric_label(metric: str) -> str:
    """The metric's name with its unit."""
    found = metrics.find(metric)
    name = NAMES.get(found.name, found.name)
    return name if found.unit in ("", "1") else f"{name}, {found.unit}"


def span(got: Iterable[Estimate], others: Iterable[float] = ()) -> float:
    """The top of an axis that shows these: every value, and of every interval as much as leaves the values readable."""
    some = list(got)
    values = [v for v in (*(e.value for e in some), *others) if math.isfinite(v)]
    most = max(values, default=0.0) or 1.0
    ends = [min(e.high, INTERVAL_OVER * most) for e in some if e.high > 0]
    return 1.05 * max([most, *ends])


def bounded(got: Estimate, low: float, high: float) -> tuple[float, float]:
    """The interval's ends as far as an axis from `low` to `high` shows them; the value itself where there is no interval."""
    ends = [got.value if math.isnan(end) else min(max(end, low), high) for end in (got.low, got.high)]
    return min(ends[0], got.value), max(ends[1], got.value)


def note(outcome: Outcome, what: str) -> str:
    """What is shown, of how many runs, on what."""
    counts = sorted({len(c.trials) for c in outcome.cells})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    fixed = {a: outcome.levels(a)[0] for a in outcome.axes if len(outcome.campaign.axes.get(a, ())) > 1 and len(outcome.levels(a)) == 1}
    return "; ".join(filter(None, [said(fixed), what, f"{outcome.trial_count} runs, {each} a cell, engine {outcome.label}"]))


def title(outcome: Outcome, beside: Beside = Beside()) -> str:
    """The figure's title: what was given, else what the campaign is about, its name, or what was varied."""
    own = outcome.name if outcome.name != UNNAMED else _varied(outcome)
    return beside.title or outcome.campaign.about.strip() or own


def _varied(outcome: Outcome) -> str:
    """`goodput against RTT and jitter: cubic, bbr`."""
    found = metrics.find(outcome.campaign.metric).name
    several = [NAMES.get(a, a) for a in outcome.axes if len(outcome.levels(a)) > 1]
    who = [line.label for line in lines(outcome)]
    against = f" against {', '.join(several[:-1])}{' and ' if several[1:] else ''}{several[-1]}" if several else ""
    return f"{NAMES.get(found, found)}{against}: {', '.join(who) if len(who) <= MOST_NAMED else f'{len(who)} congestion controls'}"
