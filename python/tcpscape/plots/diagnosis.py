"""Figures of a diagnosed flow: what held it when, its rate, RTT and flight with what happened, and the replay beside the observation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.controls import palette
from tcpscape.findings.diagnosis.observed import Cause
from tcpscape.plots import style
from tcpscape.plots.base import Context
from tcpscape.plots.series import thinned
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats
from tcpscape.words.flow import NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpscape.findings.diagnosis.diagnosis import FlowDiagnosis
    from tcpscape.findings.diagnosis.observed import ObservedFlow

Curve = tuple[Floats, Floats]
"""Times, s from the flow's first packet, and values."""
BINS, LEAST_BIN_S = 160, 0.05
"""Intervals of rates and limits of a flow, about; the shortest, s."""
OLIVE = "#8a7a1f"
"""Colour of the handshake, beside the hues of the controls: a contrast of at least 3 on white and on the dark page."""
CAUSES: Mapping[Cause, tuple[str, str]] = {
    "application": (palette.BLUE, ""),
    "send_buffer": (palette.INDIGO, "///"),
    "receive_window": (palette.PINK, ""),
    "congestion_window": (palette.ORANGE, ""),
    "pacing": (palette.GREEN, ""),
    "recovery": (palette.VERMILION, ""),
    "timeout": (palette.VERMILION, "xx"),
    "handshake": (OLIVE, ""),
    "unknown": (style.INK, ""),
}
"""Cause → its colour and hatch."""
EVENTS: Mapping[int, tuple[str, str, str]] = {
    1: ("fast retransmission", "|", palette.VERMILION),
    2: ("timeout", "x", palette.VERMILION),
    3: ("tail probe", "1", palette.ORANGE),
    4: ("needless retransmission", "+", palette.PINK),
    5: ("loss", "v", palette.INDIGO),
    6: ("reordering", ".", palette.BLUE),
    9: ("window closed", "s", palette.PINK),
    12: ("CE mark", "^", palette.GREEN),
}
"""Kind of an event (docs/diagnosis.md, "Flows") → what the figure calls it, its mark and colour; other kinds are not shown."""
MOST_MARKS = 400
"""Most marks of one kind of event."""
DOT = 1.6
"""Size of the dot of an RTT sample, points."""


@dataclass(frozen=True)
class Panel:
    """A quantity of a flow over time."""

    label: str
    draw: Callable[[Axes], None]


def timeline(diagnosis: FlowDiagnosis, context: Context = Context()) -> Figure | None:
    """What held a flow, its rate, RTT and flight over time, with what happened; None where the source has nothing over time."""
    panels = list(_panels(diagnosis))
    if not panels:
        return None
    fig, axes = style.time_panels(len(panels), page=context.width, height=1.6)
    for ax, panel in zip(axes, panels, strict=True):
        panel.draw(ax)
        ax.set_ylabel(panel.label, fontsize=8)
        ax.set_ylim(bottom=0)
    axes[-1].set_xlabel("time, s")
    axes[-1].set_xlim(0, max(diagnosis.flow.seconds, 1e-3))
    for change in diagnosis.path.changes if diagnosis.path else ():
        for ax in axes:
            ax.axvline(change.at_s - diagnosis.flow.start_s, color=style.INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    style.finish(fig, axes, (context.title or f"{diagnosis.flow.name} over time", ""))
    return fig


def replayed(diagnosis: FlowDiagnosis, context: Context = Context()) -> Figure | None:
    """Goodput that was observed, that of the replay, and those of the other congestion controls and settings; None without a replay."""
    replay, advice = diagnosis.replay, diagnosis.advice
    if replay is None or replay.goodput_mbps is None:
        return None
    base = replay.goodput_mbps
    rows: list[tuple[str, Estimate, str]] = [(f"replay, {diagnosis.control.name}", base, palette.colour(diagnosis.control.name))]
    for one in (*(advice.controls if advice else ()), *(advice.settings if advice else ())):
        if one.name != diagnosis.control.name:
            gain = one.gain
            estimate = Estimate(gain.value * base.value, gain.low * base.value, gain.high * base.value, gain.n, "Mbit/s")
            rows.append((one.name, estimate, palette.colour(one.name) if one.name in palette.KNOWN else style.INK))
    rows[1:] = sorted(rows[1:], key=lambda row: -row[1].value)
    fig, (ax,) = style.panels(1, width=8.4, height=0.9 + 0.28 * len(rows), page=context.width)
    for place, (_, estimate, colour) in enumerate(rows):
        ends = np.nan_to_num([[estimate.value - estimate.low], [estimate.high - estimate.value]], posinf=0.0, neginf=0.0)
        ax.errorbar([estimate.value], [place], xerr=np.maximum(ends, 0.0), color=colour, marker="o", markersize=5, capsize=3, linewidth=1.4)
    if replay.observed_goodput_mbps is not None:
        ax.axvline(replay.observed_goodput_mbps, color=style.INK, linewidth=1.2, linestyle=(0, (4, 3)), label="observed")
    ax.set_yticks(range(len(rows)), [name for name, *_ in rows], fontsize=8)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("goodput, Mbit/s")
    style.finish(fig, [ax], (context.title or "The replay beside the observation, and what else would carry", ""))
    return fig


def _panels(diagnosis: FlowDiagnosis) -> Iterator[Panel]:
    """The panels for which the source has something."""
    flow = diagnosis.flow
    if flow.limits:
        yield Panel("limited by,\nshare of time", lambda ax: _draw_limits(ax, flow))
    if (rates := delivered(flow)) is not None:
        yield Panel("delivered,\nMbit/s", lambda ax: _draw_rate(ax, rates, diagnosis))
    if (rtts := round_trips(flow)) is not None:
        yield Panel("RTT, ms", lambda ax: _draw_rtt(ax, rtts, diagnosis))
    if (curves := in_flight(flow)) is not None:
        yield Panel("in flight, kB", lambda ax: _draw_flight(ax, curves))
    if shown := marks(flow):
        yield Panel("events", lambda ax: _draw_events(ax, shown))


def delivered(flow: ObservedFlow) -> Curve | None:
    """What was delivered in each interval, Mbit/s; None where the source does not show it."""
    if (acked := flow.segments.get("acked")) is not None and len(acked):
        known = acked > 0
        t, size = _seconds(flow, acked[known]), flow.segments["len"][known].astype(float) * _stride(flow)
        step = bin_length(flow)
        edges = np.arange(0.0, flow.seconds + step, step)
        return (edges[1:], np.histogram(t, edges, weights=size)[0] * 8e-6 / step) if len(edges) > 1 else None
    return _sampled_rate(flow)


def round_trips(flow: ObservedFlow) -> Curve | None:
    """The RTT samples, ms; None without any."""
    if (rtt := flow.segments.get("rtt")) is not None and (rtt > 0).any():
        known = rtt > 0
        return _seconds(flow, flow.segments["acked"][known]), rtt[known] / 1e6
    return _sample(flow, "rtt", 1e-3)


def in_flight(flow: ObservedFlow) -> Mapping[str, Curve] | None:
    """Bytes in flight and the receive window, kB."""
    curves: dict[str, Curve] = {}
    if (flight := flow.segments.get("flight")) is not None and len(flight):
        curves["in flight"] = (_seconds(flow, flow.segments["t"]), flight / 1e3)
    elif size := flow.facts.get("segment_size"):
        sampled = _sample(flow, "in_flight", size / 1e3) or _sample(flow, "unacked", size / 1e3)
        curves |= {"in flight": sampled} if sampled else {}
    if (window := flow.acks.get("window")) is not None and len(window):
        curves["receive window"] = (_seconds(flow, flow.acks["t"]), window / 1e3)
    return curves if "in flight" in curves else None


def _seconds(flow: ObservedFlow, at: NDArray[Any]) -> Floats:
    """Times in ns from the capture's first packet as s from the flow's."""
    return at.astype(float) / 1e9 - flow.start_s


def _stride(flow: ObservedFlow) -> float:
    return float(flow.facts.get("segment_stride") or 1)


def bin_length(flow: ObservedFlow) -> float:
    """The length of the intervals of a flow's rates and limits, s."""
    return max(LEAST_BIN_S, flow.seconds / BINS)


def _sample(flow: ObservedFlow, name: str, factor: float) -> Curve | None:
    """A column of the samples of TCP_INFO."""
    if name not in flow.samples or not len(flow.samples[name]):
        return None
    return flow.samples["t_s"].astype(float), flow.samples[name].astype(float) * factor


def _sampled_rate(flow: ObservedFlow) -> Curve | None:
    """What was delivered between two samples of TCP_INFO, Mbit/s."""
    acked = _sample(flow, "bytes_acked", 8e-6)
    if acked is None or len(acked[0]) < 2:
        return None
    return acked[0][1:], np.diff(acked[1]) / np.maximum(np.diff(acked[0]), 1e-9)


def _draw_limits(ax: Axes, flow: ObservedFlow) -> None:
    """Stacked shares of the time that each cause has of each interval."""
    step = bin_length(flow)
    edges = np.arange(0.0, flow.seconds + step, step)
    below = np.zeros(len(edges) - 1)
    for cause, (colour, hatch) in CAUSES.items():
        held = _held([(one.start_s - flow.start_s, one.end_s - flow.start_s) for one in flow.limits if one.cause == cause], edges) / step
        if held.any():
            low, high = (np.append(side, side[-1]) for side in (below, below + held))
            alpha = 0.35 if cause == "unknown" else 0.75
            ax.fill_between(edges, low, high, step="post", color=colour, alpha=alpha, hatch=hatch, linewidth=0, label=NAMES[cause])
            below += held
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"], fontsize=8)


def _held(intervals: Sequence[tuple[float, float]], edges: Floats) -> Floats:
    """Seconds of each bin that the intervals, which do not overlap, cover."""
    if not intervals:
        return np.zeros(len(edges) - 1)
    starts, ends = (np.sort(np.asarray(side)) for side in zip(*intervals, strict=True))
    length = np.concatenate(([0.0], np.cumsum(ends - starts)))
    place = np.searchsorted(starts, edges, side="right")
    open_ = np.where(place > 0, np.minimum(edges, ends[np.maximum(place - 1, 0)]) - ends[np.maximum(place - 1, 0)], 0.0)
    return np.maximum(np.diff(length[place] + open_), 0.0)


def _draw_rate(ax: Axes, rates: Curve, diagnosis: FlowDiagnosis) -> None:
    ax.step(*rates, where="pre", color=palette.BLUE, linewidth=1.1)
    if diagnosis.path and diagnosis.path.rate_mbps:
        _level(ax, diagnosis.path.rate_mbps, "bottleneck, fitted")


def _draw_rtt(ax: Axes, rtts: Curve, diagnosis: FlowDiagnosis) -> None:
    ax.plot(*thinned(*rtts), color=palette.GREEN, linestyle="none", marker=".", markersize=DOT)
    if diagnosis.path and diagnosis.path.rtt_ms:
        _level(ax, diagnosis.path.rtt_ms, "RTT of the path, fitted")


def _draw_flight(ax: Axes, curves: Mapping[str, Curve]) -> None:
    for (name, curve), colour in zip(curves.items(), (palette.ORANGE, palette.PINK), strict=False):
        ax.plot(*thinned(*curve), color=colour, linewidth=0.9, label=name)
    most = float(np.max(curves["in flight"][1]))
    if "receive window" in curves and float(np.median(curves["receive window"][1])) > 3 * most:
        ax.set_ylim(0, 1.3 * most or 1.0)  # a window that never mattered is beyond the panel


def _level(ax: Axes, estimate: Estimate, name: str) -> None:
    """A fitted value with its interval."""
    ax.axhline(estimate.value, color=style.INK, linewidth=1.0, linestyle=(0, (4, 3)), label=name)
    if np.isfinite([estimate.low, estimate.high]).all():
        ax.axhspan(estimate.low, estimate.high, color=style.INK, alpha=0.2, linewidth=0)


def marks(flow: ObservedFlow) -> dict[int, Floats]:
    """The times of each kind of event that is shown."""
    kinds = flow.events.get("kind")
    if kinds is None or not len(kinds):
        return {}
    found = {kind: _seconds(flow, flow.events["t"][kinds == kind]) for kind in EVENTS if (kinds == kind).any()}
    return {kind: at[:: max(1, len(at) // MOST_MARKS)] for kind, at in found.items()}


def _draw_events(ax: Axes, marks: Mapping[int, Floats]) -> None:
    """A row for each kind of event."""
    for place, (kind, at) in enumerate(marks.items()):
        name, marker, colour = EVENTS[kind]
        ax.plot(at, np.full(len(at), place + 0.5), linestyle="none", marker=marker, color=colour, markersize=5, label=name)
    ax.set_ylim(0, len(marks))
    ax.set_yticks([])
