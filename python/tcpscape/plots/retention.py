"""The retention curve: goodput as a share of that without the impairment, with its interval band, and the measured points beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpscape.plots import style
from tcpscape.studies.run import Cell, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HALF = 50


def retention(outcome: Outcome, stem: Path) -> list[Path]:
    """Draws a study; one panel for each RTT. Returns the files (PNG, SVG)."""
    rtts = outcome.rtts()
    fig, axes = style.figure(len(rtts))
    for ax, rtt in zip(axes, rtts, strict=True):
        for cca in outcome.study.cca:
            _curve(ax, outcome, cca, outcome.curve(cca, rtt))
        ax.axhline(HALF, color=style.INK, linewidth=0.8, linestyle=":")
        ax.set_title(f"RTT {rtt:g} ms", fontsize=10)
        ax.set_ylim(0, 115)
        _axis(ax, outcome, rtt)
    axes[0].set_ylabel("goodput retained, % of unimpaired")
    style.legend(max(axes, key=lambda ax: len(ax.lines)))
    note = f"mean and 95 % interval, {outcome.trials} runs, engine {outcome.engine}; hollow: raw measurements"
    fig.suptitle(f"{outcome.study.title}\n{note}", color=style.INK, fontsize=10)
    if outcome.caveats:
        fig.supxlabel("; ".join(outcome.caveats)[:140], color=style.INK, fontsize=7)
    return style.save(fig, stem)


def _axis(ax: Axes, outcome: Outcome, rtt: float) -> None:
    if outcome.study.axis == "loss":
        ax.set_xscale("symlog", linthresh=0.1, linscale=0.4)
        ax.set_xlabel("loss in each direction, %")
        ticks = sorted({outcome.axis(c) for c in outcome.cells.values()})
        ax.set_xticks(ticks, [f"{t:g}" for t in ticks], fontsize=7)
        ax.set_xticks([], minor=True)
        # Room for the marks at both ends: a symlog axis would start far below zero by itself.
        ax.set_xlim(-0.02, ticks[-1] * 1.2)
        return
    ax.set_xlabel("jitter (sd, each direction), ms")
    top = ax.secondary_xaxis(-0.22, functions=(_scale(100 / rtt), _scale(rtt / 100)))
    top.set_xlabel("jitter / RTT, %", color=style.INK, fontsize=8)
    top.tick_params(colors=style.INK, labelsize=7)
    top.spines["bottom"].set_visible(False)


def _scale(factor: float) -> Callable[[Any], Any]:
    return lambda values: values * factor


def _curve(ax: Axes, outcome: Outcome, cca: str, cells: list[Cell]) -> None:
    ink, mark = style.colour(cca), style.MARKERS.get(cca, "D")
    at = [outcome.axis(c) for c in cells]
    kept = [outcome.retention(c) for c in cells]
    ax.plot(at, [100 * k.value for k in kept], color=ink, marker=mark, markersize=4, linewidth=1.6, label=cca)
    ax.fill_between(at, [100 * k.low for k in kept], [100 * k.high for k in kept], color=ink, alpha=0.22, linewidth=0)
    base = cells[0].raw
    raw = [(outcome.axis(c), c.raw.mbps / base.mbps * 100) for c in cells if c.raw and base]
    if raw:
        ax.plot(*zip(*raw, strict=True), color=ink, marker=mark, markersize=8, linewidth=0, markerfacecolor="none", label=f"{cca}, measured")
