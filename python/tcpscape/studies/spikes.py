"""Latency spikes of a cell's runs: the drop of capacity is read from the scenario, the spike from the samples, as the published work measured it.

A drop is the first change of the bottleneck's rate. Where no rate changes and flows start later, the drop is that of the share of those that started
first. The spike of several flows with round-trip times of their own is held against the sum of their bounds weighted with their shares: Teigen et
al., section IV: flows that share a FIFO queue at the drop make at least Q = Σ wᵢ · (r − 1) · dᵢ, with wᵢ the share of the bandwidth that flow i had
at the drop. As for one flow, all of dᵢ lies behind the bottleneck, on the data's way to the receiver or the ACKs' way back: so what is acknowledged
in the dᵢ after the drop is what flow i had in flight at it, and what its ACKs let it send until it can know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tcpscape import stats, units
from tcpscape.errors import StudyError, refuse
from tcpscape.findings import spike
from tcpscape.findings.spike import RateDrop, Recording, Spike
from tcpscape.metrics.queues import shapers
from tcpscape.scenario.path import rate_bps
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.stats.means import quotient
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.campaign.outcome import Cell
from collections.abc import Sequence

from tcpscape.findings.spike import LAST_S, PEAK_WINDOW_S

KEPT_PARTS = 256
"""Trials whose recordings of all flows the cache keeps."""


@dataclass(frozen=True, slots=True)
class Part:
    """One flow at the drop."""

    series: Recording
    d_ms: float
    """Its own round-trip time without queues, ms."""
    last_mbps: float
    """What it carried in the 1.2 s before the drop, Mbit/s of data."""
    flight_mbps: float
    """The rate of what it had in flight at the drop: what was acknowledged in its own d after it, Mbit/s of data."""


@lru_cache(maxsize=KEPT_PARTS)
def _parts_of_key(key: _CacheKey, step: RateDrop) -> tuple[Part, ...]:
    trial, at = key.trial, step.at_s
    flow_parts = []
    for number, flow in enumerate(trial.flows):
        if flow.start_s >= at:
            continue
        series = spike.of_trial(trial, number, every_s=0)
        d_ms = step.d_ms if flow.path_rtt_ms is None else flow.path_rtt_ms
        flow_parts.append(Part(series, d_ms, series.carried(at - LAST_S, at), series.carried(at, at + d_ms / 1e3)))
    return tuple(flow_parts)


def parts(trial: Trial, step: RateDrop) -> tuple[Part, ...]:
    """The flows that run at the drop."""
    return _parts_of_key(_CacheKey.of(trial), step)


def _weighted(rates: Sequence[float], d_ms: Sequence[float]) -> float:
    """The flows' d, weighted with their rates, ms."""
    return spike.weighted(list(zip(d_ms, rates, strict=True))) if sum(rates) > 0 else math.nan


def weighted_bound(trial: Trial, step: RateDrop) -> float:
    """Q: (r - 1) of the links times the flows' d, weighted with their shares in the 1.2 s before the drop, ms."""
    flows = parts(trial, step)
    return spike.spike(step.ratio, _weighted([p.last_mbps for p in flows], [p.d_ms for p in flows]))


def flight(trial: Trial, step: RateDrop) -> float:
    """The same with what each flow had in flight at the drop: its shares, and r = their rates together over what the new link carries; ms."""
    flows = parts(trial, step)
    rates = [p.flight_mbps for p in flows]
    return spike.spike(sum(rates) / step.after_goodput_mbps, _weighted(rates, [p.d_ms for p in flows]))


def queue(trial: Trial, step: RateDrop) -> float:
    """The largest delay in the queue after the drop, ms."""
    flows = parts(trial, step)
    return flows[0].series.queue_peak(step.at_s, step.at_s + PEAK_WINDOW_S[1], step.after_bps) if flows else math.nan


def standing(trial: Trial, step: RateDrop) -> float:
    """What the queue holds at the drop, in the time that it takes at the new rate, ms."""
    flows = parts(trial, step)
    if not flows or not len(flows[0].series.queue_s):
        return math.nan
    at_drop = np.interp(step.at_s, flows[0].series.queue_s, flows[0].series.queue_bytes)
    return float(at_drop) * 8e3 / step.after_bps


def risen(trial: Trial, step: RateDrop) -> float:
    """The largest delay in the queue after the drop beyond what stood in it at the drop, ms."""
    return queue(trial, step) - standing(trial, step)


def share(trial: Trial, step: RateDrop) -> float:
    """The first flow's share of the bandwidth at the drop."""
    rates = [p.last_mbps for p in parts(trial, step)]
    return rates[0] / sum(rates) if sum(rates) > 0 else math.nan


def peaks(trial: Trial, step: RateDrop) -> float:
    """The flows' own peaks, weighted with their shares: of each the largest smoothed RTT after the drop less its d, ms.

    It is for a fair queue, in which each flow waits behind its own packets.
    """
    flows = parts(trial, step)
    highest = [p.series.peak(step.at_s, step.at_s + PEAK_WINDOW_S[1])[0] - p.d_ms for p in flows]
    return spike.weighted([(peak, p.last_mbps) for peak, p in zip(highest, flows, strict=True)]) if flows else math.nan


PAPERS_WINDOW_S = (29.0, 34.0)
"""Where the work looks for the peak, s of a recording: Teigen et al., section III."""
PHASES = 3
"""Phases of the loop that reads the socket, evenly spread: where the drop fell between two readings is not known."""
KEPT, KEPT_WHOLE = 4096, 512
"""Trials whose spikes, and whose whole recordings, the caches keep."""
MS = 1e-6
"""ms of a ns."""

TrialQuantity = Callable[[Trial, RateDrop], float]
"""A trial and the drop of capacity in it → a number, NaN where it is not known."""


def step_of(scenario: Scenario) -> RateDrop:
    """The drop of capacity in a scenario; the round trip is that of its path, all of it behind the bottleneck."""
    before = _rate(scenario)
    d_ms = scenario.rtt_ns * MS
    for change in scenario.changes:
        after, at = (change.set, change.at) if change.at is not None else (change.end, change.ramp[0] if change.ramp else None)
        if change.where == "bottleneck" and after and after.rate and at is not None:
            return RateDrop(at / units.NS_PER_S, before, after.rate, d_ms)
    first, late = min(f.start for f in scenario.flows), max(f.start for f in scenario.flows)
    if late == first:
        raise StudyError(f"claims: {scenario.name} has no drop of capacity; add changes, or flows that come later")
    early = sum(f.count for f in scenario.flows if f.start == first)
    return RateDrop(late / units.NS_PER_S, before, before * early // scenario.flow_count, d_ms)


def _rate(scenario: Scenario) -> int:
    """The bottleneck's rate before the drop, bit/s."""
    rate = rate_bps(scenario.bottleneck[0]) if scenario.bottleneck else None
    if not rate:
        raise StudyError(f"claims: {scenario.name} has no bottleneck with a rate; add one, for example htb rate 60mbit")
    return rate


@dataclass(frozen=True)
class _CacheKey:
    """A trial as the key of a cache: two trials are equal if their identities are."""

    address: str
    seed: int
    rows: int
    trial: Trial = field(compare=False)

    @classmethod
    def of(cls, trial: Trial) -> _CacheKey:
        return cls(trial.address, trial.seed, 0 if trial.samples is None else trial.samples.height, trial)


@lru_cache(maxsize=KEPT)
def _spikes_of_key(key: _CacheKey, step: RateDrop) -> tuple[Spike, ...]:
    return tuple(spike.measure(spike.of_trial(key.trial, phase_s=p), step) for p in spike.phases(PHASES))


def _spikes(trial: Trial, step: RateDrop) -> tuple[Spike, ...]:
    """The spike as readings at each phase measure it."""
    return _spikes_of_key(_CacheKey.of(trial), step)


def _recording(trial: Trial) -> Recording:
    """The trial's recording with every sample that was kept."""
    return _recording_of_key(_CacheKey.of(trial))


@lru_cache(maxsize=KEPT_WHOLE)
def _recording_of_key(key: _CacheKey) -> Recording:
    return spike.of_trial(key.trial, every_s=0)


def _mean(field: Callable[[Spike], float]) -> TrialQuantity:
    """The mean of a spike's field over the phases."""
    return lambda trial, step: float(np.mean([field(s) for s in _spikes(trial, step)]))


def _window(trial: Trial, step: RateDrop) -> float:
    """Peak of the smoothed RTT in the work's own window, minus d, ms."""
    return float(np.mean([spike.of_trial(trial, phase_s=p).peak(*PAPERS_WINDOW_S)[0] - step.d_ms for p in spike.phases(PHASES)]))


def _of_queue(trial: Trial, step: RateDrop) -> float:
    """Largest delay in the queue after the drop, ms, from every sample of it."""
    return _recording(trial).queue_peak(step.at_s, step.at_s + spike.PEAK_WINDOW_S[1], step.after_bps)


def _flight(trial: Trial, step: RateDrop) -> float:
    """The bound with what was in flight at the drop, ms."""
    d_s = step.d_ms / 1e3
    return spike.spike(_recording(trial).carried(step.at_s, step.at_s + d_s) / step.after_goodput_mbps, step.d_ms)


def _signal(trial: Trial, step: RateDrop) -> float:
    """Time from the drop to the first reduction of the window, ms; NaN where there is none in the 5 s after it."""
    if trial.samples is None:
        return float("nan")
    rows = trial.samples.filter(trial.samples["flow"] == 0)
    t, cwnd = rows["t_ns"].to_numpy() / 1e9, rows["cwnd"].to_numpy().astype(float)
    reductions = np.flatnonzero(np.diff(cwnd) < 0) + 1
    after = [float(t[i]) for i in reductions if step.at_s < t[i] <= step.at_s + spike.PEAK_WINDOW_S[1]]
    return (after[0] - step.at_s) * 1e3 if after else float("nan")


def _dropped(trial: Trial, step: RateDrop, until_s: float) -> tuple[float, float]:
    """Packets that the bottleneck dropped and packets that arrived at it, from the drop to `until_s` after it; NaN where it was not sampled."""
    places = shapers(trial)
    if trial.queue_samples is None or not places:
        return float("nan"), float("nan")
    pipe, stage = places[-1]
    shaping = trial.queue_samples.filter((trial.queue_samples["pipe"] == pipe) & (trial.queue_samples["stage"] == stage))
    lost = max(_increase(shaping, depth, "drops", step.at_s, until_s) for depth in shaping["depth"].unique().to_list())
    left = step.after_bps * until_s / 8 / spike.FULL_FRAME
    return lost, lost + left + _increase(shaping, 0, "packets", step.at_s, until_s)


def _increase(shaping: pl.DataFrame, depth: int, column: str, at_s: float, until_s: float) -> float:
    """By how much a column grew between two times."""
    rows = shaping.filter(shaping["depth"] == depth)
    ends = np.interp([at_s, at_s + until_s], rows["t_ns"].to_numpy() / 1e9, rows[column].to_numpy().astype(float))
    return float(ends[1] - ends[0])


def _lost_of_excess(trial: Trial, step: RateDrop) -> float:
    """Share of what would have queued in the d after the drop that was dropped."""
    lost, _ = _dropped(trial, step, step.d_ms / 1e3)
    excess = (step.before_bps - step.after_bps) * step.d_ms / 1e3 / 8 / spike.FULL_FRAME
    return lost / excess


def _lost_of_all(trial: Trial, step: RateDrop) -> float:
    """Share of what arrived in the d after the drop that was dropped."""
    lost, arrived = _dropped(trial, step, step.d_ms / 1e3)
    return quotient(lost, arrived)


def _drops(trial: Trial, step: RateDrop) -> float:
    """Packets that the bottleneck dropped in the 5 s after the drop."""
    return _dropped(trial, step, spike.PEAK_WINDOW_S[1])[0]


def _shrunk(trial: Trial, step: RateDrop) -> float:
    """The first flow's goodput before the drop over that in 2 to 5 s after it."""
    series = _recording(trial)
    return quotient(series.goodput(step.at_s - 5, step.at_s), series.goodput(step.at_s + 2, step.at_s + spike.PEAK_WINDOW_S[1]))


def _thin(trial: Trial, step: RateDrop) -> float:
    """Peak of the last flow's smoothed RTT after the drop, minus d, ms."""
    return spike.of_trial(trial, len(trial.flows) - 1, every_s=0).peak(step.at_s, step.at_s + spike.PEAK_WINDOW_S[1])[0] - step.d_ms


def _over(numerator: TrialQuantity, divisor: TrialQuantity) -> TrialQuantity:
    """The quotient of two quantities."""
    return lambda trial, step: quotient(numerator(trial, step), divisor(trial, step))


def _bound(_: Trial, step: RateDrop) -> float:
    """(r - 1) d, ms."""
    return spike.spike(step.ratio, step.d_ms)


@dataclass(frozen=True, slots=True)
class SpikeQuantity:
    """A quantity of a run after a drop of capacity."""

    unit: str
    about: str
    of: TrialQuantity


QUANTITIES: Mapping[str, SpikeQuantity] = {
    "peak": SpikeQuantity("ms", "peak of the smoothed RTT around the drop, minus d", _mean(lambda s: s.peak_ms)),
    "window": SpikeQuantity("ms", "its peak in 29-34 s, minus d", _window),
    "own_queue": SpikeQuantity("ms", "its median before the drop, minus d", _mean(lambda s: s.own_queue_ms)),
    "before": SpikeQuantity("Mbit/s", "goodput in the 10 s before the drop", _mean(lambda s: s.recent_mbps)),
    "used": SpikeQuantity("1", "share of the old link's goodput that was used in them", _mean(lambda s: s.used)),
    "queue": SpikeQuantity("ms", "peak of the delay in the queue", _of_queue),
    "peak_of_bound": SpikeQuantity("1", "peak over (r - 1) d", _over(_mean(lambda s: s.peak_ms), _bound)),
    "peak_of_last": SpikeQuantity("1", "peak over the bound with r of the last 1.2 s", _mean(lambda s: quotient(s.peak_ms, s.last_bound_ms))),
    "peak_of_recent": SpikeQuantity("1", "peak over the bound with r of the last 10 s", _mean(lambda s: quotient(s.peak_ms, s.recent_bound_ms))),
    "window_of_bound": SpikeQuantity("1", "peak in 29-34 s over (r - 1) d", _over(_window, _bound)),
    "queue_of_bound": SpikeQuantity("1", "peak in the queue over (r - 1) d", _over(_of_queue, _bound)),
    "queue_of_flight": SpikeQuantity("1", "peak in the queue over the bound with what was in flight", _over(_of_queue, _flight)),
    "signal": SpikeQuantity("ms", "from the drop to the first reduction of the window", _signal),
    "lost_of_excess": SpikeQuantity("1", "share of the excess in the d after the drop that was lost", _lost_of_excess),
    "lost_of_all": SpikeQuantity("1", "share of all that came in the d after the drop that was lost", _lost_of_all),
    "drops": SpikeQuantity("packets", "packets dropped in the 5 s after the drop", _drops),
    "shrunk": SpikeQuantity("1", "goodput before over goodput after", _shrunk),
    "thin": SpikeQuantity("ms", "peak of the last flow's smoothed RTT, minus d", _thin),
    "weighted": SpikeQuantity("ms", "the flows' (r - 1) d, weighted with their shares at the drop", weighted_bound),
    "weighted_flight": SpikeQuantity("ms", "the same with what the flows had in flight at the drop", flight),
    "standing": SpikeQuantity("ms", "queue at the drop, at the new rate", standing),
    "queue_of_weighted": SpikeQuantity("1", "peak in the queue over the flows' weighted bound", _over(queue, weighted_bound)),
    "queue_of_weighted_flight": SpikeQuantity("1", "that peak over the weighted bound with what was in flight", _over(queue, flight)),
    "risen_of_weighted": SpikeQuantity("1", "rise of the queue since the drop over the flows' weighted bound", _over(risen, weighted_bound)),
    "risen_of_weighted_flight": SpikeQuantity("1", "that rise over the weighted bound with what was in flight", _over(risen, flight)),
    "first_share": SpikeQuantity("1", "share of the first flow at the drop", share),
    "peaks_of_weighted": SpikeQuantity("1", "the flows' own peaks over their bounds, both weighted", _over(peaks, weighted_bound)),
}
"""What can be measured of a drop, by the name that claims (`options: {what: …}`) and tables (`spike_…`) use."""


def find(name: str) -> SpikeQuantity:
    """The quantity called `name` in :data:`QUANTITIES`; an unknown name is refused."""
    if name not in QUANTITIES:
        refuse("what", f"{name!r} is unknown", f"choose {', '.join(QUANTITIES)}", StudyError)
    return QUANTITIES[name]


def values(cell: Cell, name: str) -> tuple[float, ...]:
    """The quantity called `name` of each trial of a cell."""
    of = find(name).of
    return tuple(of(t, step) for scenario, runs in zip(cell.scenarios, cell.runs, strict=True) for step in [step_of(scenario)] for t in runs)


def median(cell: Cell, name: str) -> Estimate:
    """The median over the cell's trials, of those in which the quantity is known."""
    return stats.median(stats.known(values(cell, name)), find(name).unit)
