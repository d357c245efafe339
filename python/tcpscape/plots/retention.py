"""The retention curve: goodput as a share of that without the impairment, with its interval band, and the measured points beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpscape.plots import style
from tcpscape.studies import known

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tcpscape.campaign.outcome import Cell, Outcome
    from tcpscape.studies.run import Result

HALF = 50


def retention(result: Result, stem: Path) -> list[Path]:
    """Draws a study's first part along its last axis; one panel for each value of the axis before it. Returns the files (PNG, SVG)."""
    outcome = result.outcome()
    *others, axis = outcome.axes
    panels = [{others[-1]: level} for level in outcome.levels(others[-1])] if others else [{}]
    fig, axes = style.figure(len(panels))
    for ax, here in zip(axes, panels, strict=True):
        for cca in outcome.ccas:
            _curve(ax, result, axis, outcome.curve(axis, cca, **here))
        ax.axhline(HALF, color=style.INK, linewidth=0.8, linestyle=":")
        ax.set_title(", ".join(f"{name.upper() if name == 'rtt' else name} {level}" for name, level in here.items()), fontsize=10)
        ax.set_ylim(0, 115)
        _axis(ax, outcome, axis, here)
    axes[0].set_ylabel("goodput retained, % of unimpaired")
    style.legend(max(axes, key=lambda ax: len(ax.lines)))
    note = f"mean and 95 % interval, {result.trials} runs, engine {result.label}; hollow: raw measurements"
    fig.suptitle(f"{result.study.title}\n{note}", color=style.INK, fontsize=10)
    if result.caveats:
        fig.supxlabel("; ".join(result.caveats)[:140], color=style.INK, fontsize=7)
    return style.save(fig, stem)


def _axis(ax: Axes, outcome: Outcome, axis: str, here: Mapping[str, str]) -> None:
    if axis == "loss":
        ax.set_xscale("symlog", linthresh=0.1, linscale=0.4)
        ax.set_xlabel("loss in each direction, %")
        ticks = sorted({c.value(axis).number for c in outcome.cells})
        ax.set_xticks(ticks, [f"{t:g}" for t in ticks], fontsize=7)
        ax.set_xticks([], minor=True)
        # Room for the marks at both ends: a symlog axis would start far below zero by itself.
        ax.set_xlim(-0.02, ticks[-1] * 1.2)
        return
    ax.set_xlabel("jitter (sd, each direction), ms")
    rtt = outcome.select(**here)[0].scenarios[0].rtt_ns / 1e6
    top = ax.secondary_xaxis(-0.22, functions=(_scale(100 / rtt), _scale(rtt / 100)))
    top.set_xlabel("jitter / RTT, %", color=style.INK, fontsize=8)
    top.tick_params(colors=style.INK, labelsize=7)
    top.spines["bottom"].set_visible(False)


def _scale(factor: float) -> Callable[[Any], Any]:
    return lambda values: values * factor


def _curve(ax: Axes, result: Result, axis: str, cells: Sequence[Cell]) -> None:
    outcome, cca = result.outcome(), cells[0].cca
    ink, mark = style.colour(cca), style.MARKERS.get(cca, "D")
    at = [c.value(axis).number for c in cells]
    kept = [outcome.retention(c, axis) for c in cells]
    ax.plot(at, [100 * k.value for k in kept], color=ink, marker=mark, markersize=4, linewidth=1.6, label=cca)
    ax.fill_between(at, [100 * k.low for k in kept], [100 * k.high for k in kept], color=ink, alpha=0.22, linewidth=0)
    part = outcome.name
    means = [next((k.value for k in known.of(result.known, part, c, "raw") if k.stat == "mean"), None) for c in cells]
    raw = [(x, 100 * m / means[0]) for x, m in zip(at, means, strict=True) if m and means[0]]
    if raw:
        ax.plot(*zip(*raw, strict=True), color=ink, marker=mark, markersize=8, linewidth=0, markerfacecolor="none", label=f"{cca}, measured")
