"""Goodput on each of a study's profiles: mean with its interval, and what was published beside it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape.plots import style
from tcpscape.studies import known

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies.run import Result

APART = 0.24
"""Between two congestion controls of a profile, in profiles."""
ASIDE = 0.08
"""From a mean to what was published of it, in profiles."""
CAVEAT_WIDTH = 120
"""Characters of a line of caveats."""


def profiles(result: Result, axis: str, stem: Path) -> list[Path]:
    """Draws a study's first part in one panel, the values of `axis` side by side. Returns the files (PNG, SVG)."""
    outcome = result.outcome()
    levels = outcome.levels(axis)
    fig, (ax,) = style.figure(1, width=6.6, height=3.9)
    for place, cca in enumerate(outcome.ccas):
        _column(ax, result, outcome.curve(axis, cca), APART * (place - (len(outcome.ccas) - 1) / 2))
    ax.set_xticks(range(len(levels)), [_label(outcome.select(**{axis: level})[0]) for level in levels], fontsize=8)
    ax.set_xlim(-0.5, len(levels) - 0.5)
    ax.grid(False, axis="x")
    ax.set_ylim(bottom=0)
    ax.set_ylabel("goodput, Mbit/s")
    style.legend(ax)
    note = f"mean and 95 % interval, {result.trials} runs, {result.label}; hollow: as published"
    fig.suptitle(f"{result.study.title}\n{note}", color=style.INK, fontsize=10)
    if result.caveats:
        fig.supxlabel(textwrap.fill("; ".join(result.caveats), CAVEAT_WIDTH, max_lines=2, placeholder=" …"), color=style.INK, fontsize=7)
    return style.save(fig, stem)


def _column(ax: Axes, result: Result, cells: Sequence[Cell], shift: float) -> None:
    cca, part = cells[0].cca, result.outcome().name
    ink, mark = style.colour(cca), style.MARKERS.get(cca, "D")
    at, means = [i + shift for i in range(len(cells))], [c.mean() for c in cells]
    reach = [[m.value - m.low for m in means], [m.high - m.value for m in means]]
    ax.errorbar(at, [m.value for m in means], yerr=reach, color=ink, marker=mark, markersize=4, linewidth=0, elinewidth=1.4, capsize=4, label=cca)
    known_ = [(x + ASIDE, k.value) for x, c in zip(at, cells, strict=True) for k in known.of(result.known, part, c, "published")]
    if known_:
        ax.plot(*zip(*known_, strict=True), color=ink, marker=mark, markersize=8, linewidth=0, markerfacecolor="none", label=f"{cca}, published")


def _label(cell: Cell) -> str:
    first, *rest = cell.at.items()
    return "\n".join([first[1], *(f"{name.upper() if name == 'rtt' else name} {value}" for name, value in rest)])
