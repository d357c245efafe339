"""The latency spike of several flows with round-trip times of their own, against the sum of their bounds weighted with their shares.

Teigen et al., section IV: flows that share a FIFO queue at the drop make at least Q = Σ wᵢ · (r − 1) · dᵢ, with wᵢ the share of the bandwidth that
flow i had at the drop. As in :mod:`tcpscape.studies.spikes` all of dᵢ lies behind the bottleneck, on the data's way to the receiver or the ACKs'
way back: so what is acknowledged in the dᵢ after the drop is what flow i had in flight at it, and what its ACKs let it send until it can know.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tcpscape.findings.spike import bound as spike
from tcpscape.findings.spike import recording
from tcpscape.findings.spike.bound import LAST_S, Step
from tcpscape.findings.spike.recording import PEAK_WINDOW_S, Recording
from tcpscape.trial import Trial

KEPT = 256
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


@dataclass(frozen=True)
class _CacheKey:
    """A trial and a drop as the key of a cache."""

    address: str
    seed: int
    rows: int
    step: Step
    trial: Trial = field(compare=False)


@lru_cache(maxsize=KEPT)
def _parts_of_key(key: _CacheKey) -> tuple[Part, ...]:
    trial, at = key.trial, key.step.at_s
    flow_parts = []
    for number, flow in enumerate(trial.flows):
        if flow.start_s >= at:
            continue
        series = recording.of_trial(trial, number, every_s=0)
        d_ms = key.step.d_ms if flow.path_rtt_ms is None else flow.path_rtt_ms
        flow_parts.append(Part(series, d_ms, series.carried(at - LAST_S, at), series.carried(at, at + d_ms / 1e3)))
    return tuple(flow_parts)


def parts(trial: Trial, step: Step) -> tuple[Part, ...]:
    """The flows that run at the drop."""
    return _parts_of_key(_CacheKey(trial.address, trial.seed, 0 if trial.samples is None else trial.samples.height, step, trial))


def _weighted(rates: Sequence[float], d_ms: Sequence[float]) -> float:
    """The flows' d, weighted with their rates, ms."""
    return spike.weighted(list(zip(d_ms, rates, strict=True))) if sum(rates) > 0 else math.nan


def bound(trial: Trial, step: Step) -> float:
    """Q: (r - 1) of the links times the flows' d, weighted with their shares in the 1.2 s before the drop, ms."""
    flows = parts(trial, step)
    return spike.spike(step.ratio, _weighted([p.last_mbps for p in flows], [p.d_ms for p in flows]))


def flight(trial: Trial, step: Step) -> float:
    """The same with what each flow had in flight at the drop: its shares, and r = their rates together over what the new link carries; ms."""
    flows = parts(trial, step)
    rates = [p.flight_mbps for p in flows]
    return spike.spike(sum(rates) / step.after_goodput_mbps, _weighted(rates, [p.d_ms for p in flows]))


def queue(trial: Trial, step: Step) -> float:
    """The largest delay in the queue after the drop, ms."""
    flows = parts(trial, step)
    return flows[0].series.queue_peak(step.at_s, step.at_s + PEAK_WINDOW_S[1], step.after_bps) if flows else math.nan


def standing(trial: Trial, step: Step) -> float:
    """What the queue holds at the drop, in the time that it takes at the new rate, ms."""
    flows = parts(trial, step)
    if not flows or not len(flows[0].series.queue_s):
        return math.nan
    at_drop = np.interp(step.at_s, flows[0].series.queue_s, flows[0].series.queue_bytes)
    return float(at_drop) * 8e3 / step.after_bps


def risen(trial: Trial, step: Step) -> float:
    """The largest delay in the queue after the drop beyond what stood in it at the drop, ms."""
    return queue(trial, step) - standing(trial, step)


def share(trial: Trial, step: Step) -> float:
    """The first flow's share of the bandwidth at the drop."""
    rates = [p.last_mbps for p in parts(trial, step)]
    return rates[0] / sum(rates) if sum(rates) > 0 else math.nan


def peaks(trial: Trial, step: Step) -> float:
    """The flows' own peaks, weighted with their shares: of each the largest smoothed RTT after the drop less its d, ms.

    It is for a fair queue, in which each flow waits behind its own packets.
    """
    flows = parts(trial, step)
    highest = [p.series.peak(step.at_s, step.at_s + PEAK_WINDOW_S[1])[0] - p.d_ms for p in flows]
    return spike.weighted([(peak, p.last_mbps) for peak, p in zip(highest, flows, strict=True)]) if flows else math.nan
