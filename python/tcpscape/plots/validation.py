"""Figures of a validation: how far two engines diverge over all conditions, and the traces of one condition over each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape.controls import palette
from tcpscape.plots import style
from tcpscape.validate.compare import Divergence, groups
from tcpscape.validate.conditions import FAMILIES
from tcpscape.validate.parting import QUANTITIES, UNSET_SSTHRESH, Bundle, Parting, Partings, SampledQuantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST, MOST = 1e-3, 3.0
"""Errors shown, on a logarithmic axis; smaller ones are drawn at the left end."""
COLUMNS = 3
LEAST_CURVE = 2
"""Fewest conditions of a congestion control for a curve of its own."""
MOST_CURVES = 7
"""Most congestion controls that have a curve each; with more of them, there is one curve for all."""
TRACES = ("cwnd", "srtt_us", "retransmits", "bytes_acked")
"""Columns that are always shown; the quantity that parts first is added."""
SIDES = ("#0072b2", "#d55e00")
"""Colours of A and B: blue and vermilion (Okabe and Ito 2008)."""
TITLE_WIDTH = 110
BEFORE_S, AFTER_S, LONGEST_S = 0.3, 1.0, 3.0
"""The second column, s: it begins this long before the first parting, ends this long after it, or at most this long after it for the lasting one."""


def divergence(divergences: Sequence[Divergence], labels: tuple[str, str], stem: Path) -> list[Path]:
    """Draws the share of conditions up to each error, a panel for each family, and returns the files (PNG, SVG).

    `labels`: names of the two engines. Dashed: the errors of a model without any, by chance alone.
    """
    by_family = groups(divergences, lambda c: c.family)
    families = [f for f in FAMILIES if f in by_family]
    fig, axes = style.white_panels(len(families), COLUMNS)
    ccas = sorted(groups(_unshared(divergences), lambda c: c.cca))
    colours = {cca: palette.colour(cca, i) for i, cca in enumerate(ccas)} if 1 < len(ccas) <= MOST_CURVES else {}
    for ax, family in zip(axes, families, strict=True):
        _draw_family(ax, by_family[family], colours)
        ax.set_title(f"{family} ({len(by_family[family])})", fontsize=9, color=style.DARK)
    entries = [(colour, 1.3, "-", cca) for cca, colour in colours.items()]
    for colour, width, dash, label in [*entries, (style.DARK, 2.0, "-", "all"), (style.DARK, 1.0, "--", "chance: a perfect model")]:
        axes[0].plot([], [], color=colour, linewidth=width, linestyle=dash, label=label)
    fig.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=8, labelcolor=style.DARK)
    fig.supylabel("share of conditions", fontsize=9, color=style.DARK)
    fig.suptitle(f"Divergence of {labels[0]} from {labels[1]}: |ln ratio| of the median goodputs", fontsize=10, color=style.DARK)
    return style.save(fig, stem)


def agreement(divergences: Sequence[Divergence], labels: tuple[str, str], stem: Path) -> list[Path]:
    """Draws the share of groups, and of probes' delays, up to each error, and returns the files (PNG, SVG).

    `labels`: names of the two engines. Dashed: the second engine by itself, the first half of its runs against the last one.
    """
    fig, axes = style.white_panels(2, 2)
    of = ("groups", "latencies")
    titles = ("goodput of a group, |ln ratio|", "delay of a probe (50th, 95th percentile), |A/B − 1|")
    for ax, name, title in zip(axes, of, titles, strict=True):
        for sides, dash in (([d.agreement for d in divergences], "-"), ([d.itself for d in divergences], "--")):
            errors = np.array([abs(x) for side in sides for x in getattr(side, name) if not np.isnan(x)])
            if len(errors):
                _draw_share(ax, errors, style.DARK, 2.0 if dash == "-" else 1.0, dash)
        ax.set_title(title, fontsize=8, color=style.DARK)
        _log_errors(ax)
    for width, dash, label in ((2.0, "-", f"{labels[0]} against {labels[1]}"), (1.0, "--", f"{labels[1]} by itself")):
        axes[0].plot([], [], color=style.DARK, linewidth=width, linestyle=dash, label=label)
    fig.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8, labelcolor=style.DARK)
    fig.supylabel("share", fontsize=9, color=style.DARK)
    return style.save(fig, stem)


def _unshared(divergences: Sequence[Divergence]) -> list[Divergence]:
    """The conditions with flows of one kind; the others do not measure a single congestion control."""
    return [c for c in divergences if not c.condition.shared]


def _draw_family(ax: Axes, divergences: Sequence[Divergence], colours: Mapping[str, str]) -> None:
    by_cca = groups(_unshared(divergences), lambda c: c.cca)
    for cca, colour in colours.items():
        errors = [c.error for c in by_cca.get(cca, [])]
        if len(by_cca) > 1 and len(errors) >= LEAST_CURVE:
            _draw_share(ax, np.array(errors), colour, 1.3, "-")
    _draw_share(ax, np.array([c.error for c in divergences]), style.DARK, 2.0, "-")
    chances = [c.chance for c in divergences if len(c.chance)]
    if chances:
        _draw_share(ax, np.mean(np.sort(np.array(chances), axis=0), axis=1), style.DARK, 1.0, "--")
    _log_errors(ax)


def _log_errors(ax: Axes) -> None:
    """The axes of shares up to errors."""
    ax.set_xscale("log")
    ax.set_xlim(LEAST, MOST)
    ax.set_ylim(0, 1.02)
    ax.set_xticks([0.001, 0.01, 0.05, 0.2, 1], ["≤ 0.001", "0.01", "0.05", "0.2", "1"], fontsize=7)
    ax.set_xticks([], minor=True)


def _draw_share(ax: Axes, errors: NDArray[np.float64], colour: str, width: float, dash: str) -> None:
    """The share of conditions up to each error."""
    x = np.concatenate([[LEAST], np.sort(np.clip(errors, LEAST, MOST)), [MOST]])
    y = np.concatenate([[0], np.arange(1, len(errors) + 1) / len(errors), [1]])
    ax.step(x, y, where="post", color=colour, linewidth=width, linestyle=dash)


def overlay(bundles: Sequence[Bundle], partings: Partings | None, title: str, stem: Path) -> list[Path]:
    """Draws the traces of one or two bundles over each other and returns the files (PNG, SVG).

    Thin lines are seeds, a thick line is the seed nearest to the median goodput. Where the bundles part, a second column shows the time around it.
    """
    first, lasting = (partings.first, partings.stays) if partings else (None, None)
    columns = list(dict.fromkeys([*TRACES, *(p.quantity.column for p in (first, lasting) if p)]))
    quantities = [q for column in columns for q in QUANTITIES if q.column == column and all(column in b.values for b in bundles)]
    end = float(max(b.t_s[-1] for b in bundles))
    fig, axes = style.white_time_panels(len(quantities), zoom=first is not None)
    spans = [(0.0, end), *([_zoom(first, lasting, end)] if first else [])]
    for row, quantity in zip(axes, quantities, strict=True):
        for ax, span in zip(row, spans, strict=True):
            for bundle, colour in zip(bundles, SIDES, strict=False):
                _draw_traces(ax, bundle, quantity, colour, span)
            for p in {id(p): p for p in (first, lasting) if p}.values():
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
        axes[0][-1].set_title(_parting_text(first, lasting), fontsize=8, color=style.DARK, loc="left")
    fig.suptitle(title if len(title) <= TITLE_WIDTH else f"{title[: TITLE_WIDTH - 1]}…", fontsize=10, color=style.DARK)
    return style.save(fig, stem)


def _parting_text(first: Parting, lasting: Parting | None) -> str:
    text = f"dashed: they part at {first.t_s:.2f} s, {first.quantity.name}"
    return text if lasting in (None, first) else f"{text}\ndotted: the first to stay apart, at {lasting.t_s:.2f} s, {lasting.quantity.name}"


def _zoom(first: Parting, lasting: Parting | None, end: float) -> tuple[float, float]:
    """The time around the partings, s."""
    last = min(lasting.t_s + BEFORE_S, first.t_s + LONGEST_S) if lasting else 0.0
    return max(0.0, first.t_s - BEFORE_S), min(end, max(first.t_s + AFTER_S, last))


def _draw_traces(ax: Axes, bundle: Bundle, quantity: SampledQuantity, colour: str, span: tuple[float, float]) -> None:
    """The lines of a bundle in one panel."""
    inside = (bundle.t_s >= span[0] - 0.05) & (bundle.t_s <= span[1] + 0.05)
    t, rows = bundle.t_s[inside], bundle.values[quantity.column][:, inside]
    rows = np.where(rows >= UNSET_SSTHRESH, np.nan, rows) if quantity.column == "ssthresh" else rows
    label = f"{bundle.label} (every seed alike)" if bundle.identical else f"{bundle.label} ({len(rows)} seeds)"
    if not bundle.identical:
        for row in np.delete(rows, bundle.representative, axis=0):
            ax.step(t, row, where="post", color=colour, linewidth=0.6, alpha=0.45, zorder=2)
    ax.step(t, rows[bundle.representative], where="post", color=colour, linewidth=1.5, label=label, zorder=3)
