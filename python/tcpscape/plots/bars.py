"""Estimates in rows, each with its interval and its number: congestion controls, named paths, shares of a bottleneck, and damage by ingredient.

Of an advice: what each congestion control carries and adds to the RTT, what a viewer sees under it, and what takes the goodput.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcpscape.campaign import groups as viewing
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.controls.palette import Look
from tcpscape.plots import base, style
from tcpscape.plots.base import Context, LegendEntry
from tcpscape.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpscape.findings.advice.answer import Advice, Standing
    from tcpscape.findings.damage import Damage
    from tcpscape.stats import Estimate

BAR, ROW_INCH, HEAD_INCH = 0.62, 0.26, 1.0
"""Thickness of a bar, in rows; height of a row, and of what is above and below the rows of a panel, inches."""
NUMBERS = 0.12
"""Least share of a panel at its right end that is left for the numbers."""
MOST_NUMBERS, NUMBER_SIZE, NAME_SIZE = 0.6, 7.5, 8.0
"""Most of it that a narrow panel leaves; size of the numbers and of the rows' names, points."""
MOST_ENTRIES, MOST_ROWS = 8, 60
"""Most congestion controls of a named path; most rows of a panel."""
GAP = 0.6
"""Distance between two groups, in rows."""
NAME_WIDTH, MOST_NAME, MOST_MOVING = 30, 0.4, 3
"""Characters of a line of a name, and most of a panel's width that it takes; most other values that are named with a path."""
PUBLISHED, EQUAL = "published", "if every flow had the same"
"""What a hollow mark is."""
DAMAGE_ROW_INCH, DAMAGE_BAR, DAMAGE_NAME_WIDTH = 0.5, 0.6, 42
"""Rows of the figure of damage: height, inches; thickness of a bar, rows; characters of a line of an ingredient's name."""


@dataclass(frozen=True)
class BarRow:
    """One estimate in a panel."""

    at: float
    """Its place, in rows from the top."""
    label: str
    look: Look
    cell: Cell
    estimate: Estimate
    reference: float | None = None
    """A published value, or a bound, in the same unit."""
    reference_label: str = PUBLISHED


def has_controls(outcome: Outcome) -> bool:
    """Whether there are several congestion controls to compare, or no more than two cells."""
    if not base.fits(outcome):
        return False
    most = max(len(outcome.select(**point)) for point in outcome.points())
    return 3 <= most <= MOST_ROWS or len(outcome.cells) <= 2


def has_names(outcome: Outcome) -> bool:
    """Whether the values of an axis are names, or too few for a curve."""
    named = _named_axes(outcome)
    if not named or len(base.entries(outcome)) > MOST_ENTRIES or not base.fits(outcome, named[-1]):
        return False
    return len(outcome.levels(named[-1])) * len(base.entries(outcome)) <= MOST_ROWS


def _named_axes(outcome: Outcome) -> list[str]:
    """The axes whose values are names; without any, the axes with two quantities, unless one has more."""
    names = [a for a in outcome.axes if len(outcome.levels(a)) > 1 and a not in base.numeric_axes(outcome)]
    return names or ([] if base.numeric_axes(outcome, least=3) else base.numeric_axes(outcome))


def bars(outcome: Outcome, context: Context = Context()) -> Figure:
    """The campaign's metric for every congestion control, the highest first; a panel for each point on the axes."""
    points = outcome.points()
    panels = [_ranked(outcome, outcome.select(**point), context) for point in points]
    most = top([row for rows in panels for row in rows])
    fig, axes = style.panels(len(points), share=False, width=4.9, height=HEAD_INCH + ROW_INCH * max(map(len, panels)), columns=2, page=context.width)
    for ax, point, rows in zip(axes, points, panels, strict=True):
        for row in rows:
            ax.barh(row.at, row.estimate.value, BAR, color=row.look.colour, alpha=0.5, linewidth=0)
        ax.set_yticks([row.at for row in rows], [style.short(row.label, _name_width(ax)) for row in rows], fontsize=NAME_SIZE)
        draw_rows(ax, rows, base.metric_label(outcome.campaign.metric, "mean"), most)
        ax.set_title(base.point_text(point), fontsize=10)
    return _finish(fig, axes, outcome, context, [PUBLISHED])


def _ranked(outcome: Outcome, cells: Sequence[Cell], context: Context) -> list[BarRow]:
    pairs = [(entry, c) for entry in base.entries(outcome) for c in cells if (c.cca, c.engine) == (entry.cca, entry.engine)]
    rows = [_row(0, entry, c, outcome, context) for entry, c in pairs]
    rows.sort(key=lambda row: (-row.estimate.value if math.isfinite(row.estimate.value) else math.inf, row.label))
    return [replace(row, at=i) for i, row in enumerate(rows)]


def _row(at: float, entry: LegendEntry, cell: Cell, outcome: Outcome, context: Context) -> BarRow:
    """The campaign's metric in a cell."""
    metric = outcome.campaign.metric
    published = [k.value for k in context.published(outcome, cell, metric)]
    return BarRow(at, entry.label, entry.look, cell, cell.mean(metric), published[-1] if published else None)


def profiles(outcome: Outcome, context: Context = Context()) -> Figure:
    """The campaign's metric on each named path, a row for each congestion control; a panel for each point on the other axes."""
    axis, entries = _named_axes(outcome)[-1], base.entries(outcome)

    def rows(point: Mapping[str, str]) -> list[BarRow]:
        pairs = [(entry, c) for entry in entries for c in entry.cells(outcome, point)]
        return [_row(i, entry, c, outcome, context) for i, (entry, c) in enumerate(pairs)]

    fig, axes = grouped(outcome, axis, rows, base.metric_label(outcome.campaign.metric, "mean"), context.width)
    return _finish(fig, axes, outcome, context, [entry.label for entry in entries] + [PUBLISHED])


def has_mixture(outcome: Outcome) -> bool:
    """Whether several congestion controls share a path, in few enough cells."""
    if not base.fits(outcome, last_axis(outcome)):
        return False
    counts = [len(c.ccas) for c in outcome.cells]
    return max(counts, default=0) > 1 and sum(counts) <= MOST_ROWS * base.MOST_PANELS


def last_axis(outcome: Outcome) -> str:
    """The last axis with several values; the last one of all where none has."""
    return next((a for a in reversed(outcome.axes) if len(outcome.levels(a)) > 1), outcome.axes[-1] if outcome.axes else "")


def split(outcome: Outcome, context: Context = Context()) -> Figure:
    """The share of all flows' goodput that each congestion control has in each cell, over whole transfers."""
    looks = base.looks(outcome)

    def rows(point: Mapping[str, str]) -> list[BarRow]:
        pairs = [(cca, c) for c in outcome.select(**point) for cca in c.ccas if len(c.ccas) > 1]
        return [
            BarRow(i, _with_count(c, cca), looks[cca], c, c.mean(f"share:{cca}"), _equal_share(c, cca), EQUAL) for i, (cca, c) in enumerate(pairs)
        ]

    fig, axes = grouped(outcome, last_axis(outcome), rows, "share of all goodput", context.width)
    note = base.note(outcome, context, "share of all flows' goodput: mean and 95 % interval")
    style.finish(fig, axes, (base.title(outcome, context), note), outcome.caveats)
    return fig


def _count(cell: Cell, cca: str) -> tuple[int, int]:
    """Flows under a congestion control, and flows in all."""
    flows = cell.trials[0].flows
    return sum(flow.cca == cca for flow in flows), len(flows)


def _with_count(cell: Cell, cca: str) -> str:
    """The name of a congestion control with the number of its flows, `cubic×2`."""
    count, _ = _count(cell, cca)
    return f"{cca}×{count}" if count > 1 else cca


def _equal_share(cell: Cell, cca: str) -> float | None:
    """The share of flows under a congestion control where every flow has the same; None where an application limits some of them."""
    if any(flow.app.rate or flow.player for flow in cell.scenarios[0].flows):
        return None
    count, total = _count(cell, cca)
    return count / total


def grouped(
    outcome: Outcome, axis: str, rows: Callable[[Mapping[str, str]], list[BarRow]], label: str, page: float | None = None
) -> tuple[Figure, list[Axes]]:
    """Rows in groups, one group for each value of `axis`; a panel for each point on the other axes.

    `rows`: a point (axis → value) → its rows, numbered from 0; `label`: of the x axis, with its unit; `page`: width of the figure, inches.
    """
    points = outcome.points(axis)
    levels = [outcome.levels(axis, outcome.select(**point)) or ("",) for point in points]
    panels = [
        [group for level in values if (group := rows({**point, axis: level} if level else point))]
        for point, values in zip(points, levels, strict=True)
    ]
    most = top([row for groups in panels for group in groups for row in group])
    height = max(sum(len(group) + GAP for group in groups) for groups in panels)
    wide, high = 7.6 if len(points) == 1 else 5.6, HEAD_INCH + ROW_INCH * height
    fig, axes = style.panels(len(points), share=False, width=wide, height=high, columns=2, page=page)
    for ax, point, groups in zip(axes, points, panels, strict=True):
        shift, shown, middles = 0.0, [], []
        for group in groups:
            shown += [replace(row, at=row.at + shift) for row in group]
            middles.append(shift + (len(group) - 1) / 2)
            shift += len(group) + GAP
        ax.set_yticks(middles, [_path_name(outcome, group[0].cell, axis, _name_width(ax)) for group in groups], fontsize=NAME_SIZE)
        draw_rows(ax, shown, label, most)
        ax.tick_params(axis="y", length=0)
        ax.set_title(base.point_text(point), fontsize=10)
    return fig, axes


def top(rows: Sequence[BarRow]) -> float:
    """The highest value of the x axis."""
    return base.upper_limit([row.estimate for row in rows], [row.reference for row in rows if row.reference is not None])


def _name_width(ax: Axes) -> int:
    """Characters of the longest name at the left of a panel; a line of a longer one of a path."""
    return min(NAME_WIDTH, int(MOST_NAME * style.panel_width(ax) / (style.WIDTH_OF_CHARACTER * NAME_SIZE)))


def _path_name(outcome: Outcome, cell: Cell, axis: str, width: int) -> str:
    """The name of a path, with the values of the axes that vary together with it, in lines of at most `width` characters."""
    if axis not in cell.at:
        return style.short(cell.cca, width)
    group = next((g for g in outcome.campaign.zip if axis in g), {})
    moving = {name: cell.at[name] for name, values in group.items() if name not in (axis, "cca") and name in cell.at and len(set(values)) > 1}
    text = f"{cell.at[axis]} ({base.point_text(moving)})" if 0 < len(moving) <= MOST_MOVING else cell.at[axis]
    return "\n".join(style.wrap(text, width))


def draw_rows(ax: Axes, rows: Sequence[BarRow], label: str, top: float) -> None:
    """Marks with their intervals, the references, and the numbers at the right."""
    end = top / (1 - _room(ax, [row.estimate for row in rows]))
    for row in rows:
        estimate, look = row.estimate, row.look
        interval = base.error_bar(estimate, 0.0, top)
        base.draw_estimate(ax, row.at, estimate, interval, color=look.colour, marker=look.marker, label=row.label)
        ax.text(end, row.at, estimate.text(), color=style.INK, fontsize=NUMBER_SIZE, ha="right", va="center")
        if row.reference is not None:
            ax.plot(
                [row.reference], [row.at], color=style.INK, marker="d", markersize=7.5, markerfacecolor="none", linewidth=0, label=row.reference_label
            )
    ax.set_xlim(0, end)
    ax.set_xticks([t for t in ax.get_xticks() if t <= top])
    ax.set_ylim(max((row.at for row in rows), default=0) + 0.7, -0.7)
    ax.grid(False, axis="y")
    ax.set_xlabel(label)


def _room(ax: Axes, estimates: Sequence[Estimate]) -> float:
    """The share of a panel that the numbers at its right end need: more in a narrow panel."""
    longest = max((len(estimate.text()) for estimate in estimates), default=0)
    names = max((len(line) for name in ax.get_yticklabels() for line in name.get_text().split("\n")), default=0)
    left = style.panel_width(ax) - style.WIDTH_OF_CHARACTER * NAME_SIZE * (names + 2)
    return max(NUMBERS, min(MOST_NUMBERS, style.WIDTH_OF_CHARACTER * NUMBER_SIZE * (longest + 3) / max(1.0, left)))


def _finish(fig: Figure, axes: Sequence[Axes], outcome: Outcome, context: Context, labels: Sequence[str]) -> Figure:
    hollow = any(PUBLISHED in ax.get_legend_handles_labels()[1] for ax in axes)
    note = base.note(outcome, context, "mean and 95 % interval" + ("; hollow: as published" if hollow else ""))
    style.finish(fig, axes, (base.title(outcome, context), note), outcome.caveats, labels)
    return fig


def damage(damages: Sequence[Damage], title: str, caveats: Sequence[str] = (), page: float | None = None) -> Figure:
    """What removing each ingredient of a path gives back: goodput without it over goodput with it, with its interval; in the given order.

    Its bars have no congestion control's colour: they are about the path.
    """
    fig, (ax,) = style.panels(1, width=7.6, height=0.9 + DAMAGE_ROW_INCH * len(damages), page=page)
    top = max(1.2, base.upper_limit([d.gain for d in damages]))
    width = min(DAMAGE_NAME_WIDTH, int(MOST_NAME * style.panel_width(ax) / (style.WIDTH_OF_CHARACTER * NUMBER_SIZE)))
    names = ["\n".join([*style.wrap(f"without {item.ingredient}", width), *style.wrap(item.how, width)]) for item in damages]
    ax.set_yticks(range(len(damages)), names, fontsize=NUMBER_SIZE)
    end = top / (1 - _room(ax, [item.gain for item in damages]))
    for place, item in enumerate(damages):
        gain = item.gain
        ax.barh(place, gain.value - 1, DAMAGE_BAR, left=1, color=style.INK, alpha=0.4, linewidth=0)
        base.draw_estimate(ax, place, gain, base.error_bar(gain, 0.0, top), color=style.INK, marker="o")
        ax.text(end, place, gain.text(), color=style.INK, fontsize=7.5, ha="right", va="center")
    ax.axvline(1, color=style.INK, linewidth=0.9)
    ax.set_ylim(len(damages) - 0.4, -0.6)
    ax.set_xlim(0, end)
    ax.set_xticks([t for t in ax.get_xticks() if t <= top])
    ax.grid(False, axis="y")
    ax.set_xlabel("goodput without it / goodput with it")
    style.finish(fig, [], (title, "ratio of means, paired, 95 % interval; 1: it takes nothing"), caveats)
    return fig


OTHER = {"keep": "if jitter keeps the order", "reorder": "if jitter reorders packets"}
"""What a hollow mark is, by the other assumption about the order of packets."""
VIEWED = {"bitrate": "mean bit rate, Mbit/s", "startup": "first picture after, s", "stalled": "time stopped, s"}
"""Field of a viewing → label of its panel."""


@dataclass(frozen=True)
class Panel:
    """One quantity of every congestion control."""

    label: str
    estimates: Mapping[str, Estimate]
    """Congestion control → its value."""
    others: Mapping[str, float]
    """Congestion control → its mean with the other order of packets; empty where it is not shown."""


def standings(advice: Advice, context: Context = Context()) -> Figure:
    """Goodput and added RTT of each congestion control, in the order of the ranking; hollow: the goodput with the other order of packets."""
    other = advice.other_order.goodputs if advice.other_order else {}
    of = {s.cca: s for s in advice.ranking}
    panels = [
        Panel(base.metric_label("goodput", "mean"), {cca: s.goodput for cca, s in of.items()}, {cca: e.value for cca, e in other.items()}),
        Panel(base.metric_label("added_rtt", "mean"), {cca: s.added_rtt for cca, s in of.items()}, {}),
    ]
    return _draw_advice(advice, panels, "Goodput and added RTT (95th percentile) on this path", context)


def viewers(advice: Advice, context: Context = Context()) -> Figure:
    """What a viewer sees under each congestion control, in the order of the ranking; hollow: with the other order of packets."""
    views = {cell.cca: view for cell in advice.outcome.cells if (view := viewing.viewer(cell.trials))}
    others = advice.other_order.views if advice.other_order else {}
    panels = [
        Panel(label, {cca: getattr(v, name) for cca, v in views.items()}, {cca: getattr(v, name).value for cca, v in others.items()})
        for name, label in VIEWED.items()
    ]
    return _draw_advice(advice, panels, "What a viewer sees", context)


def _draw_advice(advice: Advice, panels: Sequence[Panel], title: str, context: Context) -> Figure:
    """A row for each congestion control in every panel."""
    height = HEAD_INCH + ROW_INCH * len(advice.ranking)
    fig, axes = style.panels(len(panels), share=False, width=9.8 / len(panels), height=height, columns=len(panels), page=context.width)
    looks, cells = base.looks(advice.outcome), {cell.cca: cell for cell in advice.outcome.cells}
    hollow = OTHER[advice.other_order.order] if advice.other_order else ""
    for ax, panel in zip(axes, panels, strict=True):
        rows = [
            BarRow(i, _standing_name(s, advice), looks[s.cca], cells[s.cca], panel.estimates[s.cca], panel.others.get(s.cca), hollow)
            for i, s in enumerate(advice.ranking)
        ]
        for row in rows:
            ax.barh(row.at, row.estimate.value, BAR, color=row.look.colour, alpha=0.5, linewidth=0)
        ax.set_yticks([row.at for row in rows], [row.label for row in rows], fontsize=NAME_SIZE)
        draw_rows(ax, rows, panel.label, top(rows))
    note = base.note(advice.outcome, context, "mean and 95 % interval")
    style.finish(fig, axes, (context.title or title, note), (), list(OTHER.values()))
    return fig


def _standing_name(standing: Standing, advice: Advice) -> str:
    """The congestion control, and whether it is recommended or cannot be deployed."""
    mark = "✓ " if standing.cca == advice.choice else ""
    return f"{mark}{standing.cca}{' (not deployable)' if standing.obstacle else ''}"


def advice_damage(advice: Advice, context: Context = Context()) -> Figure:
    """What the path costs the recommended congestion control, by ingredient."""
    standing = damaged(advice)
    return damage(standing.damage, f"What takes the goodput of {standing.cca}", (), context.width)


def damaged(advice: Advice) -> Standing:
    """The congestion control whose damage is shown: the recommended one, or the first."""
    return advice.standing(advice.choice) if advice.choice else advice.ranking[0]
