"""Time series of a trial's flows: congestion window, smoothed RTT, delivery rate."""

from __future__ import annotations

from pathlib import Path

from tcpscape.errors import StoreError
from tcpscape.plots import style
from tcpscape.trial import Trial

PANELS = (("cwnd", 1.0, "cwnd, packets"), ("srtt_us", 1e-3, "smoothed RTT, ms"), ("delivery_rate", 8e-6, "delivery rate, Mbit/s"))
"""Column, factor, label."""


def series(trial: Trial, stem: Path) -> list[Path]:
    """Draws the samples of a trial against time; returns the files."""
    frame = trial.samples
    if frame is None or frame.is_empty():
        raise StoreError("samples: the trial has none; run with --samples 10ms")
    panels = [p for p in PANELS if p[0] in frame.columns]
    fig, axes = style.figure(len(panels), share=False)
    for ax, (column, factor, label) in zip(axes, panels, strict=True):
        for i, flow in enumerate(trial.flows):
            rows = frame.filter(frame["flow"] == i)
            ax.plot(rows[_time(frame.columns)] / 1e9, rows[column] * factor, color=style.colour(flow.cca, i), linewidth=1, label=flow.cca)
        ax.set_xlabel("time, s")
        ax.set_title(label, fontsize=10)
    style.legend(axes[-1])
    return style.save(fig, stem)


def _time(columns: list[str]) -> str:
    return next(c for c in ("t_ns", "time_ns", "t") if c in columns)
