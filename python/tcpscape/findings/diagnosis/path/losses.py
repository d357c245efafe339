"""Random loss apart from what a full queue drops, and the buffer's size.

A full queue drops packets only when it is full, a lossy link at any time. The queue's length at each packet is known from the fit of the bottleneck:

- Loss of packets that met a queue well below the longest one is random; its share among such packets is the probability, whatever the queue does
  else.
- If packets that met a nearly full queue were lost significantly more often, the rest of their losses is the queue's, and the length just before
  those is the buffer's size. If not, the queue never filled and its size is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from tcpscape.findings.diagnosis.observed import Columns
from tcpscape.findings.diagnosis.path import intervals
from tcpscape.findings.diagnosis.path.arrivals import Arrivals
from tcpscape.findings.diagnosis.path.bottleneck import Bottleneck
from tcpscape.findings.diagnosis.path.columns import LOST, Bools, Floats, Wire
from tcpscape.stats import Estimate

FULL = 0.75
"""Share of the longest queue below which no drop is the queue's."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Loss of data packets, and what it says about the buffer."""

    random: Estimate | None
    queue: Estimate | None
    buffer: Estimate | None
    reason: str = ""
    """Why the random loss is not identifiable."""
    buffer_reason: str = ""
    """Why the buffer is not."""


def of_path(w: Wire, skip: Bools) -> Losses:
    """Losses where no queue shows: all are the path's.

    :param skip: segments whose loss may be another one (`arrivals.exposed`).
    """
    lost, sent = int(np.sum((w.fate == LOST) & ~skip)), max(1, int(np.sum(~skip)))
    return Losses(intervals.share(lost, sent), Estimate(0.0, 0.0, 300.0 / sent, sent, "%"), None, "", "the flow never filled a queue")


def of_queue(w: Wire, skip: Bools, arrivals: Arrivals, b: Bottleneck, jitter: float) -> Losses:
    """Losses where the bottleneck is known.

    :param jitter: standard deviation of the delay before the queue, ms: the queue's length at a packet is not known better than over this time.
    """
    length = b.wait * b.rate * 125.0
    lost = (w.fate == LOST) & ~skip
    if not lost.any() or length.size == 0:
        return of_path(w, skip)
    lost_at = np.where(np.isnan(w.stamp), w.t, w.stamp) if arrivals.is_stamped else w.t
    met = length[np.clip(np.searchsorted(arrivals.at, lost_at[lost], side="right") - 1, 0, None)]
    passed = length[~skip[arrivals.row]]
    longest = float(np.quantile(length, 0.9999))
    threshold = FULL * longest - 0.4 * jitter * b.rate * 125
    if longest < 3_000 or passed.size == 0:
        return of_path(w, skip)
    low_lost, high_lost = int(np.sum(met < threshold)), int(np.sum(met >= threshold))
    low, high = int(np.sum(passed < threshold)) + low_lost, int(np.sum(passed >= threshold)) + high_lost
    p = low_lost / low if low else 0.0
    excess = float(stats.binom.sf(high_lost - 1, high, min(1.0, max(p, (low_lost + 1) / (low + 2)))))
    if excess > 1e-3 or high_lost < 2:
        return of_path(w, skip)
    buffer = _size(met[met >= threshold], p * high, longest)
    queue = intervals.share(max(0, round(high_lost - p * high)), low + high)
    if low < 200:
        return Losses(None, queue, buffer, "the queue was nearly full all the time: its drops and random loss cannot be told apart")
    return Losses(intervals.share(low_lost, low), queue, buffer)


def _size(met: Floats, random: float, longest: float) -> Estimate:
    """Buffer, bytes, from the lengths that dropped packets met: a packet is dropped that would exceed it.

    Those lost at random met any length; `random` is about how many of `met` they are, so they are taken from the shorter end.
    """
    x = np.sort(met)[int(min(random, met.size // 2)) :]
    value = float(np.median(x)) + 1514 / 2
    half = max(1514.0, 1.25 * 2 * float(np.std(x)) / np.sqrt(x.size), 0.02 * value)
    return Estimate(value, value - half, max(value + half, longest), int(x.size), "B")
