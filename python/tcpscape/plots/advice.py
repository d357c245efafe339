"""Figures of an advice: what each congestion control carries and adds to the RTT, and what takes the goodput."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpscape.findings.advice import Advice
from tcpscape.plots import bars, base, style
from tcpscape.plots.bars import BarRow
from tcpscape.plots.base import Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from tcpscape.findings.advice import Standing
    from tcpscape.stats import Estimate

OTHER = {"keep": "if jitter keeps the order", "reorder": "if jitter reorders packets"}
"""What a hollow mark is, by the other assumption about the order of packets."""


def standings(advice: Advice, context: Context = Context()) -> Figure:
    """Goodput and added RTT of each congestion control, in the order of the ranking; hollow: the goodput with the other order of packets."""
    other = advice.other_order
    carried = other.goodputs if other else {}
    panels: list[tuple[str, Callable[[Standing], Estimate], bool]] = [
        (base.metric_label("goodput", "mean"), lambda s: s.goodput, True), (base.metric_label("added_rtt", "mean"), lambda s: s.added_rtt, False),
    ]  # fmt: skip
    height = bars.HEAD_INCH + bars.ROW_INCH * len(advice.ranking)
    fig, axes = style.panels(len(panels), share=False, width=4.9, height=height, columns=2, page=context.width)
    looks, cells = base.looks(advice.outcome), {cell.cca: cell for cell in advice.outcome.cells}
    for ax, (label, estimate, has_other) in zip(axes, panels, strict=True):
        rows = [
            BarRow(
                i, _name(s, advice), looks[s.cca], cells[s.cca], estimate(s), carried[s.cca].value if has_other and s.cca in carried else None,
                OTHER[other.order] if other else "",
            )
            for i, s in enumerate(advice.ranking)
        ]  # fmt: skip
        for row in rows:
            ax.barh(row.at, row.estimate.value, bars.BAR, color=row.look.colour, alpha=0.5, linewidth=0)
        ax.set_yticks([row.at for row in rows], [row.label for row in rows], fontsize=bars.NAME_SIZE)
        bars.draw_rows(ax, rows, label, bars.top(rows))
    note = base.note(advice.outcome, "mean and 95 % interval")
    style.finish(fig, axes, (context.title or "Goodput and added RTT (95th percentile) on this path", note), (), list(OTHER.values()))
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
