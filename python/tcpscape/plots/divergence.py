"""The divergence of two engines as distributions: the share of conditions up to an error, by family and congestion control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape.plots import style
from tcpscape.validate.compare import Divergence, groups
from tcpscape.validate.conditions import FAMILIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST, MOST = 1e-3, 3.0
"""Errors shown, on a logarithmic axis; smaller ones stand at the left end."""
COLUMNS = 3
LEAST_CURVE = 2
"""Conditions of a congestion control for a curve of its own."""
MOST_CURVES = 7
"""Congestion controls that are told apart by colour; of more, only all together are drawn."""


def divergence(divergences: Sequence[Divergence], labels: tuple[str, str], stem: Path) -> list[Path]:
    """Draws one panel a family: a step for each condition, dashed what a perfect model would show. Returns the files (PNG, SVG)."""
    by_family = groups(divergences, lambda c: c.family)
    families = [f for f in FAMILIES if f in by_family]
    fig, axes = style.grid(len(families), COLUMNS)
    ccas = sorted(groups(_alone(divergences), lambda c: c.cca))
    ink = {cca: style.colour(cca, i) for i, cca in enumerate(ccas)} if 1 < len(ccas) <= MOST_CURVES else {}
    for ax, family in zip(axes, families, strict=True):
        _panel(ax, by_family[family], ink)
        ax.set_title(f"{family} ({len(by_family[family])})", fontsize=9, color=style.DARK)
    entries = [(colour, 1.3, "-", cca) for cca, colour in ink.items()]
    for colour, width, dash, label in [*entries, (style.DARK, 2.0, "-", "all"), (style.DARK, 1.0, "--", "chance: a perfect model")]:
        axes[0].plot([], [], color=colour, linewidth=width, linestyle=dash, label=label)
    fig.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=8, labelcolor=style.DARK)
    fig.supylabel("share of conditions", fontsize=9, color=style.DARK)
    fig.suptitle(f"Divergence of {labels[0]} from {labels[1]}: |ln ratio| of the median goodputs", fontsize=10, color=style.DARK)
    return style.save(fig, stem)


def _alone(divergences: Sequence[Divergence]) -> list[Divergence]:
    """Those whose flows are of one kind: only they say something about one congestion control."""
    return [c for c in divergences if not c.condition.shared]


def _panel(ax: Axes, group: Sequence[Divergence], ink: Mapping[str, str]) -> None:
    per = groups(_alone(group), lambda c: c.cca)
    for cca, colour in ink.items():
        alone = per.get(cca, [])
        if len(per) > 1 and len(alone) >= LEAST_CURVE:
            _curve(ax, np.array([c.error for c in alone]), colour, 1.3, "-")
    _curve(ax, np.array([c.error for c in group]), style.DARK, 2.0, "-")
    drawn = [c.chance for c in group if len(c.chance)]
    if drawn:
        _curve(ax, np.mean(np.sort(np.array(drawn), axis=0), axis=1), style.DARK, 1.0, "--")
    ax.set_xscale("log")
    ax.set_xlim(LEAST, MOST)
    ax.set_ylim(0, 1.02)
    ax.set_xticks([0.001, 0.01, 0.05, 0.2, 1], ["≤ 0.001", "0.01", "0.05", "0.2", "1"], fontsize=7)
    ax.set_xticks([], minor=True)


def _curve(ax: Axes, errors: NDArray[np.float64], ink: str, width: float, dash: str) -> None:
    """The share of conditions up to each error."""
    x = np.concatenate([[LEAST], np.sort(np.clip(errors, LEAST, MOST)), [MOST]])
    y = np.concatenate([[0], np.arange(1, len(errors) + 1) / len(errors), [1]])
    ax.step(x, y, where="post", color=ink, linewidth=width, linestyle=dash)
