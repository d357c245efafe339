"""The latency spike that a sudden drop of capacity causes: its lower bound, and the comparison of measured spikes with it.

Source: Teigen, Davies, Ellefsen, Skeie, Torresen: "A Lower Bound on Latency Spikes for Capacity-Seeking Network Traffic". A link that is
full at C₀ drops to C₁ = C₀/r; the source knows d later (its round trip to the bottleneck and back) and what it sent until then has to queue:

- eq. 2: Q = (r − 1)·d, the peak of the queueing delay of one flow, empty queue at the drop, no limit to the queue;
- eq. 3: (Q − q)/Q, the share of what would queue that is lost where the queue is limited to q. It is a share of the excess only: the
  link still carries 1/r of what arrives in the d after the drop, so of all that arrives (Q − q)/(r·d) is lost;
- §IV: several flows in a FIFO queue, the sum of their Q weighted with their shares of the bandwidth at the drop. It takes senders that send their
  share of the new rate as soon as they can know it. A window does so while the queue serves what came before the drop, r times its own d; after
  that its ACKs come more slowly than its share, because the packets of flows with a longer d stand between. So windows make less than the sum where
  the longest d is more than (1 + r) times the shortest (study `spike-rtts`).

Not in the paper: a queue of q₀ (at the old rate) that stands at the drop takes r·q₀ at the new one, so the peak is (r − 1)·d + r·q₀ and the
rise above the flow's own queue (r − 1)·(d + q₀). A loss-based control in a deep buffer has to be judged by that.

Spikes are measured on the series that a sender's kernel reports (:class:`Recording`), from a trial or a published recording.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape import stats
from tcpscape.errors import refuse
from tcpscape.metrics.queues import shapers
from tcpscape.metrics.samples import delivered
from tcpscape.scenario.path import delay_ns, rate_bps
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats
from tcpscape.text.table import ShownAsTable
from tcpscape.trial import Trial
from tcpscape.units import NS_PER_S, format_rate

if TYPE_CHECKING:
    import polars as pl


EVERY_S = 0.23
"""Time between two readings of `ss` in the published recordings, s: a loop of 0.2 s and what it takes."""
FEWEST = 2
"""Fewest readings of bytes for a rate."""
PEAK_WINDOW_S = (1.0, 5.0)
"""Time before and after a step in which its peak is searched, s."""


def _none() -> Floats:
    return np.empty(0)


@dataclass(frozen=True)
class Recording:
    """The series of one flow; times in s. Arrays of a group (socket, throughput, queue, bytes) are equally long."""

    t_s: Floats
    """Times of the readings of the socket."""
    srtt_ms: Floats
    delivery_mbps: Floats
    """The kernel's estimate of the delivery rate (`tcpi_delivery_rate`) at each reading; NaN where it had none."""
    end_s: Floats = field(default_factory=_none)
    """Ends of the throughput intervals."""
    goodput_mbps: Floats = field(default_factory=_none)
    length_s: Floats = field(default_factory=_none)
    """Length of each interval, s."""
    queue_s: Floats = field(default_factory=_none)
    """Times of the readings of the queue."""
    queue_ms: Floats = field(default_factory=_none)
    """Delay of the packet that left last; empty where only the backlog is known."""
    queue_bytes: Floats = field(default_factory=_none)
    acked_s: Floats = field(default_factory=_none)
    """Times of the readings of the bytes delivered, at full resolution; empty in a published recording."""
    acked_bytes: Floats = field(default_factory=_none)
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


def _delivered(samples: pl.DataFrame) -> Floats:
    """Bytes delivered, selectively acknowledged ones included: segments delivered, at the mean size of those acknowledged."""
    segments, acked = samples["delivered"].to_numpy().astype(float), samples["bytes_acked"].to_numpy().astype(float)
    return segments * acked[-1] / segments[-1] if len(segments) and segments[-1] else acked


def _ticks(t: Floats, every_s: float, phase_s: float) -> NDArray[np.intp]:
    """Index of the last time at or before each tick; every index where `every_s` is 0."""
    if not len(t) or every_s <= 0:
        return np.arange(len(t), dtype=np.intp)
    ticks = np.arange(t[0] + phase_s, t[-1] + every_s / 1e6, every_s)
    return np.unique(np.searchsorted(t, ticks + 1e-9, side="right") - 1).clip(0)


def _queue(trial: Trial) -> tuple[Floats, Floats, Floats]:
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


def phases(n: int) -> Sequence[float]:
    """`n` phases of a loop that reads every :data:`EVERY_S`, evenly spread, s: where a step falls between two readings is unknown."""
    return [EVERY_S * i / n for i in range(n)]


FULL_FRAME = 1514
"""Bytes that a full frame takes from a link's rate as tc counts it: 1500 and the Ethernet header."""
MSS = 1448
"""Bytes of data in it, with TCP timestamps."""
NS_PER_MS = NS_PER_S / 1000
SLIP = 1e-6
"""Rounding error that the sum of shares may have."""
LAST_S, RECENT_S = 1.2, 10.0
"""Times before the drop over which the rate is averaged to correct for a link that was not full, s: about what was in flight, and its state."""
SETTLED_S, CALM_S = 0.5, 1.0
"""Times before the drop that the longer windows leave out, s: the last throughput interval, and RTTs that may contain the drop."""


def spike(ratio: float, d: float) -> float:
    """Eq. 2: Q in the unit of `d`; `ratio` is old rate / new rate."""
    return math.nan if math.isnan(ratio) else max(0.0, ratio - 1) * d


def excess_lost(q: float, limit: float) -> float:
    """Eq. 3: the share of the excess that is lost where the spike `q` meets a queue of `limit` (same unit)."""
    return max(0.0, (q - limit) / q) if q > 0 else 0.0


def weighted(parts: Sequence[tuple[float, float]]) -> float:
    """Σ wᵢ·dᵢ / Σ wᵢ of (dᵢ, wᵢ): the effective `d` of flows that differ; weights are their shares of the bandwidth at the drop."""
    whole = sum(w for _, w in parts)
    return sum(d * w for d, w in parts) / whole


@dataclass(frozen=True, slots=True, repr=False)
class Bound(ShownAsTable):
    """The bound for a drop from one rate to another, without running anything. Rates in bit/s, times in ns."""

    before_bps: int
    after_bps: int
    flows: tuple[tuple[int, float], ...]
    """(d, share of the bandwidth at the drop) of each flow; d is the round trip from the bottleneck to the sender and back."""
    max_queue_ns: int | None = None
    """Longest delay that the queue allows; None is no limit."""
    packet: int = FULL_FRAME
    """Bytes of a packet as the link counts them."""

    def __post_init__(self) -> None:
        if self.after_bps >= self.before_bps:
            rates = f"{format_rate(self.before_bps)} to {format_rate(self.after_bps)}"
            refuse("to", f"from {rates} is no drop", "write a lower rate")
        if not self.flows or any(d <= 0 for d, _ in self.flows):
            refuse("rtt", "a flow without a round trip makes no spike", "write for example 50ms")
        if not abs(sum(w for _, w in self.flows) - 1) <= SLIP or not all(w > 0 for _, w in self.flows):
            shares = "+".join(f"{w:g}" for _, w in self.flows)
            refuse("flows", f"the shares {shares} are not those of a whole", "write shares above 0 that add up to 1")
        if self.packet <= 0:
            refuse("packet", "a packet of 0 bytes is none", f"write for example {FULL_FRAME}B")

    @property
    def ratio(self) -> float:
        """r: old rate / new rate."""
        return self.before_bps / self.after_bps

    @property
    def d_ns(self) -> float:
        """The flows' d, weighted."""
        return weighted(self.flows)

    @property
    def is_evened(self) -> bool:
        """Whether a short flow's window gives way before a long one's packets have all come: the longest d beyond (1 + r) times the shortest."""
        return max(d for d, _ in self.flows) > (1 + self.ratio) * min(d for d, _ in self.flows)

    @property
    def unlimited_ns(self) -> float:
        """Q: the peak of the delay where nothing limits the queue."""
        return spike(self.ratio, self.d_ns)

    @property
    def spike_ns(self) -> float:
        """The peak of the delay with the queue's limit."""
        return self.unlimited_ns if self.max_queue_ns is None else min(self.unlimited_ns, float(self.max_queue_ns))

    @property
    def excess_lost(self) -> float:
        """Eq. 3: share of the excess that is lost."""
        return 0.0 if self.max_queue_ns is None else excess_lost(self.unlimited_ns, float(self.max_queue_ns))

    @property
    def lost(self) -> float:
        """Share of everything that arrives in the d after the drop that is lost, (Q − q)/(r·d)."""
        return self.excess_lost * (1 - 1 / self.ratio)

    @property
    def queued_bytes(self) -> float:
        """Bytes in the queue at the peak."""
        return self.spike_ns * self.after_bps / 8 / NS_PER_S

    @property
    def lost_bytes(self) -> float:
        """Bytes lost."""
        return (self.unlimited_ns - self.spike_ns) * self.after_bps / 8 / NS_PER_S

    def drain_ns(self, load: float) -> float:
        """Time until the queue is empty if the senders then load the new link to `load` (a fraction); ∞ at 1."""
        return self.spike_ns / (1 - load) if load < 1 else math.inf


@dataclass(frozen=True, slots=True)
class RateDrop:
    """A drop of capacity in an experiment."""

    at_s: float
    """Last moment at the old rate, s (in a recording, the last sample that shows it)."""
    before_bps: int
    after_bps: int
    d_ms: float
    """Round-trip time without queues, ms."""
    back_ms: float | None = None
    """The part of `d_ms` from the bottleneck over the receiver to the sender; None is all of it, as in the paper's testbed."""

    @property
    def ratio(self) -> float:
        """r."""
        return self.before_bps / self.after_bps

    @property
    def after_goodput_mbps(self) -> float:
        """Data that the new link can carry, Mbit/s."""
        return goodput_of(self.after_bps)


def step_of(scenario: Scenario) -> RateDrop:
    """The first drop of the bottleneck's rate that a scenario makes at one moment (`changes: [{where: bottleneck, at: 30s, set: {rate: …}}]`)."""
    rates = [rate_bps(hop) for hop in scenario.bottleneck]
    for change in sorted(scenario.changes, key=lambda c: c.at or 0):
        if change.where == "bottleneck" and change.at is not None and change.set and change.set.rate and change.hop < len(rates):
            before, rates[change.hop] = rates[change.hop], change.set.rate
            if before and change.set.rate < before:
                back = sum(delay_ns(hop) for hop in scenario.reverse)
                return RateDrop(change.at / NS_PER_S, before, change.set.rate, scenario.rtt_ns / NS_PER_MS, back / NS_PER_MS)
    refuse("changes", f"{scenario.name} has no drop of the bottleneck's rate", "write changes: [{where: bottleneck, at: 30s, set: {rate: 20mbit}}]")


def goodput_of(rate_bps: float) -> float:
    """Data that full frames carry on a link of this rate, Mbit/s."""
    return rate_bps * MSS / FULL_FRAME / 1e6


@dataclass(frozen=True, slots=True)
class Spike:
    """The spike of one run. Delays in ms above the path's own d; rates in Mbit/s of data."""

    step: RateDrop
    peak_ms: float
    """Largest smoothed RTT from 1 s before the drop to 5 s after it, minus d."""
    peak_at_s: float
    own_queue_ms: float
    """Median of the smoothed RTT in the seconds before the drop, minus d: the queue that the flow keeps anyway."""
    last_mbps: float
    """Goodput in the 1.2 s before the drop."""
    recent_mbps: float
    """Goodput in the 10 s before the drop."""
    flight_mbps: float = math.nan
    """Goodput of the link in the d before the drop, as the ACKs show it one way back later: the rate of what was in flight. Readings every
    millisecond suffice; NaN where they are too rare."""
    queue_peak_ms: float = math.nan
    """Largest delay in the bottleneck's queue, not smoothed; NaN where queues were not sampled."""

    @property
    def bound_ms(self) -> float:
        """Q, with the rates of the links."""
        return spike(self.step.ratio, self.step.d_ms)

    @property
    def last_bound_ms(self) -> float:
        """Q with r = goodput in the last 1.2 s / what the new link can carry: Q is smaller for a link that was not full."""
        return spike(self.last_mbps / self.step.after_goodput_mbps, self.step.d_ms)

    @property
    def recent_bound_ms(self) -> float:
        """The same with the last 10 s."""
        return spike(self.recent_mbps / self.step.after_goodput_mbps, self.step.d_ms)

    @property
    def flight_bound_ms(self) -> float:
        """The same with what was in flight at the drop: means over longer times miss the phase of a sawtooth."""
        return spike(self.flight_mbps / self.step.after_goodput_mbps, self.step.d_ms)

    @property
    def rise_ms(self) -> float:
        """Peak above the flow's own queue before the drop."""
        return self.peak_ms - self.own_queue_ms

    @property
    def used(self) -> float:
        """Share of the old link's capacity for data that was used in the last 10 s."""
        return self.recent_mbps / goodput_of(self.step.before_bps)


def measure(recording: Recording, step: RateDrop) -> Spike:
    """The spike of a recording, with its windows aligned to the step."""
    at, d = step.at_s, step.d_ms / 1e3
    back = d if step.back_ms is None else step.back_ms / 1e3
    peak, when = recording.peak(at - PEAK_WINDOW_S[0], at + PEAK_WINDOW_S[1])
    return Spike(
        step=step,
        peak_ms=peak - step.d_ms,
        peak_at_s=when,
        own_queue_ms=recording.rtt_median(at - RECENT_S, at - CALM_S) - step.d_ms,
        last_mbps=recording.delivery(at - LAST_S, at),
        recent_mbps=recording.goodput(at - RECENT_S, at - SETTLED_S),
        flight_mbps=recording.carried(at + back - d, at + back),
        queue_peak_ms=recording.queue_peak(at, at + PEAK_WINDOW_S[1], step.after_bps),
    )


@dataclass(frozen=True, slots=True)
class SpikeSummary:
    """The spikes of many runs of one condition, compared with the bound."""

    peak_ms: Estimate
    """Median."""
    rise_ms: Estimate
    """Median, above the flow's own queue."""
    bound_ms: float
    corrected_ms: Estimate
    """Median of the bound with the rate of the last 1.2 s."""
    above: float
    """Share of the runs whose peak is at or above Q."""
    above_corrected: float
    """Share at or above their own corrected bound."""
    above_flight: float
    """Share whose queue peaked at or above the bound with what was in flight; NaN where one of the two is unknown in every run."""
    queue_peak_ms: Estimate
    """Median of the queue's own peak."""


def judge(spikes: Sequence[Spike]) -> SpikeSummary:
    """The runs of one condition together."""
    return SpikeSummary(
        peak_ms=stats.median([s.peak_ms for s in spikes], "ms"),
        rise_ms=stats.median([s.rise_ms for s in spikes], "ms"),
        bound_ms=spikes[0].bound_ms,
        corrected_ms=stats.median([s.last_bound_ms for s in spikes], "ms"),
        above=_share([s.peak_ms >= s.bound_ms for s in spikes]),
        above_corrected=_share([s.peak_ms >= s.last_bound_ms for s in spikes]),
        above_flight=_share([s.queue_peak_ms >= s.flight_bound_ms for s in spikes if not math.isnan(s.queue_peak_ms + s.flight_mbps)]),
        queue_peak_ms=stats.median(stats.known(s.queue_peak_ms for s in spikes), "ms"),
    )


def _share(conditions: Sequence[bool]) -> float:
    """Share of the conditions that hold; NaN without any."""
    return sum(conditions) / len(conditions) if conditions else math.nan
