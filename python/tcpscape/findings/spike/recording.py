"""The series that a sender's kernel reports, from a trial or a published recording: smoothed RTT, delivery rate, throughput, and the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape.errors import refuse
from tcpscape.metrics.queues import shapers
from tcpscape.metrics.samples import delivered
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]
EVERY_S = 0.23
"""Time between two readings of `ss` in the published recordings, s: a loop of 0.2 s and what it takes."""
FEWEST = 2
"""Fewest readings of bytes for a rate."""
PEAK_WINDOW_S = (1.0, 5.0)
"""Time before and after a step in which its peak is searched, s."""


def _none() -> Array:
    return np.empty(0)


@dataclass(frozen=True)
class Recording:
    """The series of one flow; times in s. Arrays of a group (socket, throughput, queue, bytes) are equally long."""

    t_s: Array
    """Times of the readings of the socket."""
    srtt_ms: Array
    delivery_mbps: Array
    """The kernel's estimate of the delivery rate (`tcpi_delivery_rate`) at each reading; NaN where it had none."""
    end_s: Array = field(default_factory=_none)
    """Ends of the throughput intervals."""
    goodput_mbps: Array = field(default_factory=_none)
    length_s: Array = field(default_factory=_none)
    """Length of each interval, s."""
    queue_s: Array = field(default_factory=_none)
    """Times of the readings of the queue."""
    queue_ms: Array = field(default_factory=_none)
    """Delay of the packet that left last; empty where only the backlog is known."""
    queue_bytes: Array = field(default_factory=_none)
    acked_s: Array = field(default_factory=_none)
    """Times of the readings of the bytes delivered, at full resolution; empty in a published recording."""
    acked_bytes: Array = field(default_factory=_none)
    """Bytes acknowledged by then, selectively acknowledged ones included."""

    def peak(self, start_s: float, stop_s: float) -> tuple[float, float]:
        """The largest smoothed RTT of the readings in [start, stop], ms, and when; NaN without a reading."""
        inside = np.flatnonzero((self.t_s >= start_s) & (self.t_s <= stop_s))
        if not len(inside):
            return np.nan, np.nan
        at = inside[np.argmax(self.srtt_ms[inside])]
        return float(self.srtt_ms[at]), float(self.t_s[at])

    def rtt_median(self, start_s: float, stop_s: float) -> float:
        """The median of the smoothed RTT of the readings in [start, stop), ms."""
        inside = self.srtt_ms[(self.t_s >= start_s) & (self.t_s < stop_s)]
        return float(np.median(inside)) if len(inside) else np.nan

    def delivery(self, start_s: float, stop_s: float) -> float:
        """The mean of the delivery rates read in [start, stop), Mbit/s."""
        inside = self.delivery_mbps[(self.t_s >= start_s) & (self.t_s < stop_s)]
        known = inside[~np.isnan(inside)]
        return float(np.mean(known)) if len(known) else np.nan

    def goodput(self, start_s: float, stop_s: float) -> float:
        """The throughput of the intervals that end in (start, stop], Mbit/s: their bytes over their time."""
        inside = (self.end_s > start_s) & (self.end_s <= stop_s)
        lengths = self.length_s[inside]
        return float(np.sum(self.goodput_mbps[inside] * lengths) / np.sum(lengths)) if len(lengths) else np.nan

    def carried(self, start_s: float, stop_s: float) -> float:
        """The rate acknowledged in [start, stop], Mbit/s, interpolated between readings; NaN with fewer than two readings inside."""
        if np.sum((self.acked_s >= start_s) & (self.acked_s <= stop_s)) < FEWEST:
            return np.nan
        first, last = np.interp([start_s, stop_s], self.acked_s, self.acked_bytes)
        return float((last - first) * 8 / 1e6 / (stop_s - start_s))

    def queue_peak(self, start_s: float, stop_s: float, rate_bps: float) -> float:
        """The largest delay in the bottleneck's queue in [start, stop], ms; NaN where the queue was not read.

        It is the delay that packets had or, where only bytes are known, the time that these take at `rate_bps`.
        """
        inside = (self.queue_s >= start_s) & (self.queue_s <= stop_s)
        if not inside.any():
            return np.nan
        return float(np.max(self.queue_ms[inside]) if len(self.queue_ms) else np.max(self.queue_bytes[inside]) * 8e3 / rate_bps)

    def drop(self, threshold_mbps: float) -> tuple[float, float]:
        """When a drop showed, s: the times of the last reading with a delivery rate above the threshold, and of the first one after it.

        NaN where no reading is above it.
        """
        fast = np.flatnonzero(self.delivery_mbps > threshold_mbps)
        if not len(fast):
            return np.nan, np.nan
        last = int(fast[-1])
        return float(self.t_s[last]), float(self.t_s[last + 1]) if last + 1 < len(self.t_s) else np.nan


def of_trial(trial: Trial, flow: int = 0, *, every_s: float = EVERY_S, phase_s: float = 0.0) -> Recording:
    """A trial's flow as `ss` in a loop would have recorded it: the last sample before each multiple of `every_s` after `phase_s`.

    0 s takes every sample. The trial needs samples (`Capture.samples_ns`, well below `every_s`); with samples of queues, the forward path's
    outermost queue is the one in which packets waited longest.

    :raises ScenarioError: one line, where the trial has no samples or its engine does not sample the smoothed RTT and the delivery rate.
    """
    if trial.samples is None:
        refuse("samples", f"{trial.scenario} was run without them", "add samples (every 10ms)")
    if missing := [name for name in ("srtt_us", "delivery_rate") if name not in trial.samples.columns]:
        refuse("samples", f"the {trial.engine} engine does not sample {missing[0]}", "use --engine model")
    samples = trial.samples.filter(trial.samples["flow"] == flow)
    t = samples["t_ns"].to_numpy() / 1e9
    rows = _ticks(t, every_s, phase_s)
    acked_t, acked = delivered(trial, flow)
    edges = acked_t[np.concatenate(([0], _ticks(acked_t, every_s, phase_s)))] if len(acked_t) else acked_t
    edges = np.unique(edges)
    length = np.diff(edges)
    delivery = samples["delivery_rate"].to_numpy()[rows] * 8 / 1e6
    queue_s, queue_ms, queue_bytes = _queue(trial)
    return Recording(
        t_s=t[rows],
        srtt_ms=samples["srtt_us"].to_numpy()[rows] / 1e3,
        delivery_mbps=np.where(delivery > 0, delivery, np.nan),
        end_s=edges[1:],
        goodput_mbps=np.diff(np.interp(edges, acked_t, acked)) * 8 / 1e6 / length if len(length) else length,
        length_s=length,
        queue_s=queue_s,
        queue_ms=queue_ms,
        queue_bytes=queue_bytes,
        acked_s=t,
        acked_bytes=_delivered(samples),
    )


def _delivered(samples: pl.DataFrame) -> Array:
    """Bytes delivered, selectively acknowledged ones included: segments delivered, at the mean size of those acknowledged."""
    segments, acked = samples["delivered"].to_numpy().astype(float), samples["bytes_acked"].to_numpy().astype(float)
    return segments * acked[-1] / segments[-1] if len(segments) and segments[-1] else acked


def _ticks(t: Array, every_s: float, phase_s: float) -> NDArray[np.intp]:
    """Index of the last time at or before each tick; every index where `every_s` is 0."""
    if not len(t) or every_s <= 0:
        return np.arange(len(t), dtype=np.intp)
    ticks = np.arange(t[0] + phase_s, t[-1] + every_s / 1e6, every_s)
    return np.unique(np.searchsorted(t, ticks + 1e-9, side="right") - 1).clip(0)


def _queue(trial: Trial) -> tuple[Array, Array, Array]:
    """Times, delays and bytes of the forward shaping queue that held most; no delays where the engine does not report them."""
    if trial.queue_samples is None:
        return _none(), _none(), _none()
    outermost = trial.queue_samples.filter(trial.queue_samples["depth"] == 0)
    queues = [outermost.filter((outermost["pipe"] == pipe) & (outermost["stage"] == stage)) for pipe, stage in shapers(trial)]
    fullest = max((q for q in queues if not q.is_empty()), key=lambda q: float(q["bytes"].to_numpy().max()), default=None)
    if fullest is None:
        return _none(), _none(), _none()
    delays = fullest["sojourn_ns"].to_numpy() / 1e6 if "sojourn_ns" in fullest.columns else _none()
    return fullest["t_ns"].to_numpy() / 1e9, delays, fullest["bytes"].to_numpy().astype(float)


def phases(n: int, every_s: float = EVERY_S) -> Sequence[float]:
    """`n` phases of a loop that reads every `every_s`, evenly spread, s: where a step falls between two readings is unknown."""
    return [every_s * i / n for i in range(n)]
