"""Figures of an advice: what a viewer sees under each congestion control, what each carries and adds to the RTT, and what takes the goodput."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpscape.campaign import video
from tcpscape.findings.advice import Advice
from tcpscape.plots import bars, base, style
from tcpscape.plots.bars import BarRow
from tcpscape.plots.base import Context

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from tcpscape.findings.advice import Standing
    from tcpscape.stats import Estimate

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
    return _drawn(advice, panels, "Goodput and added RTT (95th percentile) on this path", context)


def viewers(advice: Advice, context: Context = Context()) -> Figure:
    """What a viewer sees under each congestion control, in the order of the ranking; hollow: with the other order of packets."""
    views = {cell.cca: view for cell in advice.outcome.cells if (view := video.viewer(cell.trials))}
    others = advice.other_order.views if advice.other_order else {}
    panels = [
        Panel(label, {cca: getattr(v, name) for cca, v in views.items()}, {cca: getattr(v, name).value for cca, v in others.items()})
        for name, label in VIEWED.items()
    ]
    return _drawn(advice, panels, "What a viewer sees", context)


def _drawn(advice: Advice, panels: Sequence[Panel], title: str, context: Context) -> Figure:
    """A row for each congestion control in every panel."""
    height = bars.HEAD_INCH + bars.ROW_INCH * len(advice.ranking)
    fig, axes = style.panels(len(panels), share=False, width=9.8 / len(panels), height=height, columns=len(panels), page=context.width)
    looks, cells = base.looks(advice.outcome), {cell.cca: cell for cell in advice.outcome.cells}
    hollow = OTHER[advice.other_order.order] if advice.other_order else ""
    for ax, panel in zip(axes, panels, strict=True):
        rows = [
            BarRow(i, _name(s, advice), looks[s.cca], cells[s.cca], panel.estimates[s.cca], panel.others.get(s.cca), hollow)
            for i, s in enumerate(advice.ranking)
        ]
        for row in rows:
            ax.barh(row.at, row.estimate.value, bars.BAR, color=row.look.colour, alpha=0.5, linewidth=0)
        ax.set_yticks([row.at for row in rows], [row.label for row in rows], fontsize=bars.NAME_SIZE)
        bars.draw_rows(ax, rows, panel.label, bars.top(rows))
    note = base.note(advice.outcome, context, "mean and 95 % interval")
    style.finish(fig, axes, (context.title or title, note), (), list(OTHER.values()))
    return fig


def _name(standing: Standing, advice: Advice) -> str:
    """The congestion control, and whether it is recommended or cannot be deployed."""
    mark = "✓ " if standing.cca == advice.choice else ""
    return f"{mark}{standing.cca}{' (not deployable)' if standing.obstacle else ''}"


def damage(advice: Advice, context: Context = Context()) -> Figure:
    """What the path costs the recommended congestion control, by ingredient."""
    standing = damaged(advice)
    return bars.damage(standing.damage, f"What takes the goodput of {standing.cca}", (), context.width)


def damaged(advice: Advice) -> Standing:
    """The congestion control whose damage is shown: the recommended one, or the first."""
    return advice.standing(advice.choice) if advice.choice else advice.ranking[0]
