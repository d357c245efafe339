"""Goodput on each of a study's profiles: mean with its interval, and what was published beside it."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape.plots import style
from tcpscape.studies.run import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

APART = 0.24
"""Between two congestion controls of a profile, in profiles."""
ASIDE = 0.08
"""From a mean to what was published of it, in profiles."""
CAVEAT_WIDTH = 120
"""Characters of a line of caveats."""


def profiles(outcome: Outcome, stem: Path) -> list[Path]:
    """Draws a study of profiles in one panel. Returns the files (PNG, SVG)."""
    study = outcome.study
    fig, (ax,) = style.figure(1, width=6.6, height=3.9)
    for place, cca in enumerate(study.cca):
        _column(ax, outcome, cca, APART * (place - (len(study.cca) - 1) / 2))
    ax.set_xticks(range(len(study.profiles)), [_label(name, said) for name, said in study.profiles.items()], fontsize=8)
    ax.set_xlim(-0.5, len(study.profiles) - 0.5)
    ax.grid(False, axis="x")
    ax.set_ylim(bottom=0)
    ax.set_ylabel("goodput, Mbit/s")
    style.legend(ax)
    note = f"mean and 95 % interval, {outcome.trials} runs, {outcome.label}; hollow: as published"
    fig.suptitle(f"{study.title}\n{note}", color=style.INK, fontsize=10)
    if outcome.caveats:
        fig.supxlabel(textwrap.fill("; ".join(outcome.caveats), CAVEAT_WIDTH, max_lines=2, placeholder=" …"), color=style.INK, fontsize=7)
    return style.save(fig, stem)


def _column(ax: Axes, outcome: Outcome, cca: str, shift: float) -> None:
    ink, mark = style.colour(cca), style.MARKERS.get(cca, "D")
    cells = sorted((c for c in outcome.cells.values() if c.cca == cca), key=outcome.axis)
    at, means = [outcome.axis(c) + shift for c in cells], [c.mean for c in cells]
    values = [m.value for m in means]
    reach = [[m.value - m.low for m in means], [m.high - m.value for m in means]]
    ax.errorbar(at, values, yerr=reach, color=ink, marker=mark, markersize=4, linewidth=0, elinewidth=1.4, capsize=4, label=cca)
    known = [(x + ASIDE, c.published.mbps) for x, c in zip(at, cells, strict=True) if c.published]
    if known:
        ax.plot(*zip(*known, strict=True), color=ink, marker=mark, markersize=8, linewidth=0, markerfacecolor="none", label=f"{cca}, published")


def _label(name: str, said: dict[str, str]) -> str:
    return "\n".join([name, *(f"{field.upper() if field == 'rtt' else field} {value}" for field, value in said.items())])
