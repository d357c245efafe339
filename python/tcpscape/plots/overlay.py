"""Two bundles of traces over each other: window, smoothed RTT, retransmissions and received bytes over time, and where they part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tcpscape.plots import style
from tcpscape.validate.bundles import QUANTITIES, UNSET_SSTHRESH, Bundle, Quantity
from tcpscape.validate.parting import Parting, Partings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = ("cwnd", "srtt_us", "retransmits", "bytes_acked")
"""Columns always shown; the quantity that parts first is added."""
SIDES = ("#0072b2", "#d55e00")
"""A's and B's colour: blue and vermilion (Okabe and Ito 2008)."""
TITLE_WIDTH = 110
BEFORE_S, AFTER_S, LONGEST_S = 0.3, 1.0, 3.0
"""The second column: from so long before the first moment to so long after it, or to the one that stays, s."""


def overlay(bundles: Sequence[Bundle], partings: Partings | None, title: str, stem: Path) -> list[Path]:
    """Draws one or two bundles: thin lines for seeds, a thick one for the seed nearest to the median goodput. Returns the files (PNG, SVG).

    Where the bundles part, a second column shows the time around it.
    """
    first, stays = (partings.first, partings.stays) if partings else (None, None)
    columns = list(dict.fromkeys([*PANELS, *(p.quantity.column for p in (first, stays) if p)]))
    shown = [q for column in columns for q in QUANTITIES if q.column == column and all(column in b.values for b in bundles)]
    end = float(max(b.t_s[-1] for b in bundles))
    fig, axes = style.stacked(len(shown), zoom=first is not None)
    spans = [(0.0, end), *([_around(first, stays, end)] if first else [])]
    for row, quantity in zip(axes, shown, strict=True):
        for ax, span in zip(row, spans, strict=True):
            for bundle, ink in zip(bundles, SIDES, strict=False):
                _traces(ax, bundle, quantity, ink, span)
            for p in {id(p): p for p in (first, stays) if p}.values():
                ax.axvline(p.t_s, color=style.DARK, linewidth=1, linestyle=(0, (4, 3)) if p is first else ":")
            ax.set_xlim(*span)
            if not any(b.values[quantity.column].any() for b in bundles):
                ax.set_ylim(0, 1)
            elif span == spans[0]:
                ax.set_ylim(bottom=0)
        row[0].set_ylabel(quantity.label, fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("time, s")
    axes[0][0].legend(frameon=False, fontsize=8, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, labelcolor=style.DARK)
    if first:
        axes[0][-1].set_title(_words(first, stays), fontsize=8, color=style.DARK, loc="left")
    fig.suptitle(title if len(title) <= TITLE_WIDTH else f"{title[: TITLE_WIDTH - 1]}…", fontsize=10, color=style.DARK)
    return style.save(fig, stem)


def _words(first: Parting, stays: Parting | None) -> str:
    said = f"dashed: they part at {first.t_s:.2f} s, {first.quantity.name}"
    return said if stays in (None, first) else f"{said}\ndotted: the first to stay apart, at {stays.t_s:.2f} s, {stays.quantity.name}"


def _around(first: Parting, stays: Parting | None, end: float) -> tuple[float, float]:
    """The time around the partings, s."""
    last = min(stays.t_s + BEFORE_S, first.t_s + LONGEST_S) if stays else 0.0
    return max(0.0, first.t_s - BEFORE_S), min(end, max(first.t_s + AFTER_S, last))


def _traces(ax: Axes, bundle: Bundle, quantity: Quantity, ink: str, span: tuple[float, float]) -> None:
    """A bundle's lines in one panel."""
    inside = (bundle.t_s >= span[0] - 0.05) & (bundle.t_s <= span[1] + 0.05)
    t, rows = bundle.t_s[inside], bundle.values[quantity.column][:, inside]
    rows = np.where(rows >= UNSET_SSTHRESH, np.nan, rows) if quantity.column == "ssthresh" else rows
    label = f"{bundle.label} (every seed alike)" if bundle.identical else f"{bundle.label} ({len(rows)} seeds)"
    if not bundle.identical:
        for row in np.delete(rows, bundle.representative, axis=0):
            ax.step(t, row, where="post", color=ink, linewidth=0.6, alpha=0.45, zorder=2)
    ax.step(t, rows[bundle.representative], where="post", color=ink, linewidth=1.5, label=label, zorder=3)
