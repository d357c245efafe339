"""Metrics of how flows treat each other and the network over time: starvation, convergence, the loss they cause, their backoff.

- *Starvation*: a flow that for five seconds or longer has less than a tenth of its fair share, which is 1/n of what the n running flows
  have together.
- *Convergence*: from the last flow's start until Jain's index of each interval stays at 0.9 or above; an interval is a twentieth of that time.
- *Self-inflicted loss*: what full queues dropped, of all that reached the bottleneck, in the second half of a trial, when slow start is over.
- *Backoff*: what is sent into a black hole, beside what exponential backoff of the retransmission timer sends (RFC 6298 §5.5).
- *Circuit breaker* (RFC 8084): a monitor at the path that ends a flow after several successive intervals of excessive loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpscape.metrics import queues, samples
from tcpscape.metrics.base import UNKNOWN, under
from tcpscape.metrics.flows import jain_index
from tcpscape.stats.estimate import Floats
from tcpscape.trial import Trial

STARVING, STARVED_S = 0.1, 5.0
"""A flow starves below this part of its fair share for this long, s."""
INTERVALS, FAIR = 20, 0.9
"""Intervals between the last start and the first stop, and Jain's index of one that is fair."""
BREAKER_S, BREAKER_LOSS, BREAKER_COUNT = 3.0, 0.1, 3
"""A circuit breaker's interval, s; the share of lost segments that is excessive in it; successive intervals of it that trip the breaker."""
SILENCE_S = 1.0
"""Shortest time without any delivery that counts as a black hole, s."""


@dataclass(frozen=True, slots=True)
class Starved:
    """A period in which a flow had less than a tenth of its fair share."""

    flow: int
    start_s: float
    stop_s: float

    @property
    def seconds(self) -> float:
        """Length of the period, s."""
        return self.stop_s - self.start_s


def starvation(trial: Trial, part: float = STARVING, least_s: float = STARVED_S) -> list[Starved]:
    """Flows below `part` of their fair share for `least_s` or longer, in whole seconds while they run."""
    edges = samples.grid(trial)
    if len(edges) < 2:
        return []
    rates = samples.rates(trial, edges)
    runs = np.array([(edges[:-1] >= f.start_s - 1e-6) & (edges[1:] <= f.stop_s + 1e-6) for f in trial.flows])
    equal = np.where(runs, rates, 0).sum(axis=0) / np.maximum(1, runs.sum(axis=0))
    starving = runs & (rates < part * equal)
    return [Starved(i, *span) for i, row in enumerate(starving) for span in _spans(row, edges) if span[1] - span[0] >= least_s - 1e-6]


def _spans(row: NDArray[np.bool_], edges: Floats) -> list[tuple[float, float]]:
    """Begin and end of each run of true intervals."""
    turns = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(int), [0]))))
    return [(float(edges[a]), float(edges[b])) for a, b in zip(turns[::2], turns[1::2], strict=True)]


def starved(trial: Trial) -> float:
    """Share of the flows' time in which they starve; unknown without samples."""
    if trial.samples is None:
        return UNKNOWN
    total = sum(flow.stop_s - flow.start_s for flow in trial.flows)
    return sum(period.seconds for period in starvation(trial)) / total if total > 0 else UNKNOWN


def starvation_of(which: str) -> Callable[[Trial], float]:
    """A metric: share of the time in which some flows (see :func:`tcpscape.metrics.base.under`) starve beside all the others."""

    def of(trial: Trial) -> float:
        chosen = under(trial, which)
        total = sum(trial.flows[i].stop_s - trial.flows[i].start_s for i in chosen)
        if trial.samples is None or total <= 0:
            return UNKNOWN
        return sum(period.seconds for period in starvation(trial) if period.flow in chosen) / total

    return of


def convergence(trial: Trial) -> float:
    """Time from the last flow's start until shares stay fair, s; where they never do, until the first flow's stop."""
    if trial.samples is None or len(trial.flows) < 2:
        return UNKNOWN
    start, stop = max(flow.start_s for flow in trial.flows), min(flow.stop_s for flow in trial.flows)
    if stop <= start:
        return UNKNOWN
    edges = np.linspace(start, stop, INTERVALS + 1)
    fair = [jain_index([float(x) for x in rates]) >= FAIR for rates in samples.rates(trial, edges).T]
    unfair = [i for i, is_fair in enumerate(fair) if not is_fair]
    return float(edges[unfair[-1] + 1] - start) if unfair else 0.0


def self_loss(trial: Trial) -> float:
    """Share of the packets at full queues that these dropped, in the second half of the trial; random losses do not count."""
    if trial.samples is None or trial.queue_samples is None or trial.queue_samples.is_empty():
        return UNKNOWN
    named = queues.names(trial)
    own = {place for place, name in named.items() if name.split()[-1] not in queues.DELAYS}
    table = trial.queue_samples
    times, drops = table["t_ns"].to_numpy(), table["drops"].to_numpy().astype(float)
    counted = np.array([place in own for place in zip(table["pipe"].to_list(), table["stage"].to_list(), table["depth"].to_list(), strict=True)])
    middle, last = _at_or_before(times, trial.duration / 2), float(times.max())
    dropped = drops[counted & (times == last)].sum() - drops[counted & (times == middle)].sum()
    delivered = sum(_grown(trial, flow, "delivered", middle / 1e9, last / 1e9) for flow in range(len(trial.flows)))
    return float(dropped / (dropped + delivered)) if dropped + delivered > 0 else UNKNOWN


def backoff(trial: Trial) -> float:
    """Segments sent again in the longest time without any delivery, over the most that exponential backoff sends in it; the flow with the most.

    A timer that doubles from its value at the begin sends at most 1 + log2(1 + T / RTO) segments in a time T, and a tail loss probe one more.
    """
    if trial.samples is None:
        return UNKNOWN
    return max((x for x in (_backoff(trial, flow) for flow in range(len(trial.flows))) if not math.isnan(x)), default=UNKNOWN)


def _backoff(trial: Trial, flow: int) -> float:
    times, delivered = _series(trial, flow, "delivered")
    _, again = _series(trial, flow, "retransmits")
    _, rto = _series(trial, flow, "rto_us")
    grows = np.flatnonzero(np.diff(delivered, append=np.inf) > 0)
    if len(times) < 2 or not len(grows):
        return UNKNOWN
    begins = np.concatenate(([0], grows[:-1] + 1))
    begin, end = max(zip(begins, grows, strict=True), key=lambda span: times[span[1]] - times[span[0]])
    silent = float(times[end] - times[begin])
    if silent < SILENCE_S:
        return UNKNOWN
    first = max(float(rto[begin]) / 1e6, 0.2)
    return float(again[end] - again[begin]) / (2 + math.log2(1 + silent / first))


def breaker(trial: Trial) -> float:
    """1 where a circuit breaker beside any flow would trip: more than a tenth lost in three successive intervals of three seconds; otherwise 0."""
    if trial.samples is None or trial.duration < BREAKER_S * BREAKER_COUNT:
        return UNKNOWN
    edges = np.arange(0.0, trial.duration + 1e-9, BREAKER_S)
    return float(any(_trips(trial, flow, edges) for flow in range(len(trial.flows))))


def _trips(trial: Trial, flow: int, edges: Floats) -> bool:
    times, delivered = _series(trial, flow, "delivered")
    _, lost = _series(trial, flow, "retransmits")
    if len(times) < 2:
        return False
    bad, good = (np.diff(np.interp(edges, times, series)) for series in (lost, delivered))
    excessive = bad > BREAKER_LOSS * np.maximum(bad + good, 1)
    return any(bool(excessive[i : i + BREAKER_COUNT].all()) for i in range(len(excessive) - BREAKER_COUNT + 1))


def _series(trial: Trial, flow: int, column: str) -> tuple[Floats, Floats]:
    """Times, s, and a column of a flow's samples."""
    if trial.samples is None or column not in trial.samples.columns:
        return np.empty(0), np.empty(0)
    rows = trial.samples["flow"].to_numpy() == flow
    return trial.samples["t_ns"].to_numpy()[rows] / 1e9, trial.samples[column].to_numpy()[rows].astype(float)


def _grown(trial: Trial, flow: int, column: str, start_s: float, stop_s: float) -> float:
    """By how much a counter of a flow grew between two times."""
    times, values = _series(trial, flow, column)
    return float(np.diff(np.interp([start_s, stop_s], times, values, left=0.0))[0]) if len(times) else 0.0


def _at_or_before(times: NDArray[np.int64], second: float) -> int:
    """The last sampled time that is not after a second, ns."""
    before = times[times <= second * 1e9]
    return int(before.max()) if len(before) else int(times.min())
