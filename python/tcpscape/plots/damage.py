"""What does the damage: a bar for each ingredient that was taken away, with what that gave back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcpscape.findings.damage import Damage
from tcpscape.plots import base, palette, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW_INCH, BAR = 0.5, 0.6
"""Height of an ingredient's row, inches; thickness of its bar, rows."""
NAME_WIDTH = 42
"""Characters of a line of its name."""
NUMBERS = 0.3
"""Share of the panel that is left for the numbers."""


def damage(found: Sequence[Damage], title: str, caveats: Sequence[str] = ()) -> Figure:
    """What taking away each ingredient gives back, in the order of `found`: goodput without it over goodput with it, with its interval."""
    fig, (ax,) = style.figure(1, width=7.6, height=0.9 + ROW_INCH * len(found))
    top = max(1.2, base.span([d.gain for d in found]))
    end = top / (1 - NUMBERS)
    for place, one in enumerate(found):
        got = one.gain
        low, high = base.bounded(got, 0.0, top)
        ax.barh(place, got.value - 1, BAR, left=1, color=palette.BLUE, alpha=0.5, linewidth=0)
        reach = [[got.value - low], [high - got.value]]
        ax.errorbar(got.value, place, xerr=reach, color=palette.BLUE, marker="o", markersize=4.5, elinewidth=1.6, capsize=3)
        ax.text(end, place, got.text(), color=style.INK, fontsize=7.5, ha="right", va="center")
    ax.axvline(1, color=style.INK, linewidth=0.9)
    names = ["\n".join([f"without {one.ingredient}", *style.wrap(one.how, NAME_WIDTH)]) for one in found]
    ax.set_yticks(range(len(found)), names, fontsize=7.5)
    ax.set_ylim(len(found) - 0.4, -0.6)
    ax.set_xlim(0, end)
    ax.set_xticks([t for t in ax.get_xticks() if t <= top])
    ax.grid(False, axis="y")
    ax.set_xlabel("goodput without it / goodput with it")
    style.words(fig, [], (title, "ratio of means, paired, 95 % interval; 1: it takes nothing"), caveats)
    return fig
