"""What a sender's kernel said over time, from a trial or a published recording: smoothed RTT, delivery rate, throughput, and the queue."""

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
"""Readings of bytes from which a rate can be told."""
PEAK_WINDOW_S = (1.0, 5.0)
"""Before and after a step, where its peak is looked for, s."""


def _none() -> Array:
    return np.empty(0)


@dataclass(frozen=True)
class Recording:
    """Series of one flow; times in s, all arrays of a group equally long."""

    t_s: Array
    """Times of the readings of the socket."""
    srtt_ms: Array
    delivery_mbps: Array
    """The kernel's estimate of the delivery rate (`tcpi_delivery_rate`) at each reading; NaN where it had none."""
    end_s: Array = field(default_factory=_none)
    """Ends of the throughput intervals."""
    goodput_mbps: Array = field(default_factory=_none)
    length_s: Array = field(default_factory=_none)
    """Length of each."""
    queue_s: Array = field(default_factory=_none)
    """Times of the readings of the queue."""
    queue_ms: Array = field(default_factory=_none)
    """Delay of the packet that had left last; empty where only the backlog is known."""
    queue_bytes: Array = field(default_factory=_none)
    acked_s: Array = field(default_factory=_none)
    """Times of the readings of the bytes delivered, as fine as they are; empty in a published recording."""
    acked_bytes: Array = field(default_factory=_none)
    """Acknowledged by then, selectively too."""

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
        long = self.length_s[inside]
        return float(np.sum(self.goodput_mbps[inside] * long) / np.sum(long)) if len(long) else np.nan

    def carried(self, start_s: float, stop_s: float) -> float:
        """What was acknowledged in [start, stop], Mbit/s, between readings by interpolation; NaN with less than two readings inside."""
        if np.sum((self.acked_s >= start_s) & (self.acked_s <= stop_s)) < FEWEST:
            return np.nan
        first, last = np.interp([start_s, stop_s], self.acked_s, self.acked_bytes)
        return float((last - first) * 8 / 1e6 / (stop_s - start_s))

    def queue_peak(self, start_s: float, stop_s: float, rate_bps: float) -> float:
        """The largest delay in the bottleneck's queue in [start, stop], ms; NaN where the queue was not read.

        As packets met it or, where only bytes are known, as long as these take at `rate_bps`.
        """
        inside = (self.queue_s >= start_s) & (self.queue_s <= stop_s)
        if not inside.any():
            return np.nan
        return float(np.max(self.queue_ms[inside]) if len(self.queue_ms) else np.max(self.queue_bytes[inside]) * 8e3 / rate_bps)

    def drop(self, threshold_mbps: float) -> tuple[float, float]:
        """When a drop showed: the last reading with a delivery rate above the threshold, and the first after it, s. NaN where none is above."""
        fast = np.flatnonzero(self.delivery_mbps > threshold_mbps)
        if not len(fast):
            return np.nan, np.nan
        last = int(fast[-1])
        return float(self.t_s[last]), float(self.t_s[last + 1]) if last + 1 < len(self.t_s) else np.nan


def of_trial(trial: Trial, flow: int = 0, *, every_s: float = EVERY_S, phase_s: float = 0.0) -> Recording:
    """A trial's flow as `ss` in a loop would have recorded it: the last sample before each multiple of `every_s` after `phase_s`.

    0 s takes every sample. The trial needs samples (`Capture.samples_ns`, well below `every_s`); with samples of queues, the forward path's
    outermost queue is the one in which packets waited longest.
    """
    if trial.samples is None:
        refuse("samples", f"{trial.scenario} was run without them", "add samples (every 10ms)")
    mine = trial.samples.filter(trial.samples["flow"] == flow)
    t = mine["t_ns"].to_numpy() / 1e9
    rows = _ticks(t, every_s, phase_s)
    got_t, got = delivered(trial, flow)
    edges = got_t[np.concatenate(([0], _ticks(got_t, every_s, phase_s)))] if len(got_t) else got_t
    edges = np.unique(edges)
    length = np.diff(edges)
    delivery = mine["delivery_rate"].to_numpy()[rows] * 8 / 1e6
    return Recording(
        t[rows], mine["srtt_us"].to_numpy()[rows] / 1e3, np.where(delivery > 0, delivery, np.nan), edges[1:],
        np.diff(np.interp(edges, got_t, got)) * 8 / 1e6 / length if len(length) else length, length, *_queue(trial), t, _delivered(mine),
    )  # fmt: skip


def _delivered(mine: pl.DataFrame) -> Array:
    """Bytes delivered, selectively acknowledged ones included: segments delivered, at the mean size of those acknowledged."""
    segments, got = mine["delivered"].to_numpy().astype(float), mine["bytes_acked"].to_numpy().astype(float)
    return segments * got[-1] / segments[-1] if len(segments) and segments[-1] else got


def _ticks(t: Array, every_s: float, phase_s: float) -> NDArray[np.intp]:
    """Places of the last time at or before each tick."""
    if not len(t) or every_s <= 0:
        return np.arange(len(t), dtype=np.intp)
    ticks = np.arange(t[0] + phase_s, t[-1] + every_s / 1e6, every_s)
    return np.unique(np.searchsorted(t, ticks + 1e-9, side="right") - 1).clip(0)


def _queue(trial: Trial) -> tuple[Array, Array, Array]:
    """Times, delays and bytes of the shaping queue on the way forward that held most; without delays where none are told."""
    if trial.queue_samples is None:
        return _none(), _none(), _none()
    outermost = trial.queue_samples.filter(trial.queue_samples["depth"] == 0)
    able = [outermost.filter((outermost["pipe"] == pipe) & (outermost["stage"] == stage)) for pipe, stage in shapers(trial)]
    mine = max((q for q in able if not q.is_empty()), key=lambda q: float(q["bytes"].to_numpy().max()), default=None)
    if mine is None:
        return _none(), _none(), _none()
    delays = mine["sojourn_ns"].to_numpy() / 1e6 if "sojourn_ns" in mine.columns else _none()
    return mine["t_ns"].to_numpy() / 1e9, delays, mine["bytes"].to_numpy().astype(float)


def phases(n: int, every_s: float = EVERY_S) -> Sequence[float]:
    """`n` phases of a loop that reads every `every_s`, evenly spread, s: nobody knows where a step falls between two readings."""
    return [every_s * i / n for i in range(n)]
