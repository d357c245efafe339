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
    return Losses(intervals.share(lost, sent), Estimate(0.0, 0.0, 300.0 / sent, sent, "%"), None, "", "no queue overflowed that would show its size")


def of_queue(w: Wire, skip: Bools, arrivals: Arrivals, b: Bottleneck, jitter: float) -> Losses:
    """Losses where the bottleneck is known.

    :param jitter: standard deviation of the delay before the queue, ms: the queue's length at a packet is not known better than over this time.
    """
    length = b.queue * b.rate * 125.0
    lost = (w.fate == LOST) & ~skip
    if not lost.any() or length.size == 0:
        return of_path(w, skip)
    lost_at = w.t
    if arrivals.is_stamped:  # what was lost before the capture is seen when it was sent again: it was first sent with its neighbours
        lost_at = np.interp(w.seq, w.seq[~lost], w.stamp[~lost])
    last = np.clip(np.searchsorted(arrivals.at, lost_at[lost], side="right") - 1, 0, None)
    met = np.maximum(0.0, length[last] - (lost_at[lost] - arrivals.at[last]) * b.rate * 125.0)
    passed = length[~skip[arrivals.row]]
    longest = float(np.quantile(length, 0.9999))
    if longest < 3_000 or passed.size == 0:
        return of_path(w, skip)
    threshold = min(quiet_below(passed, met), FULL * longest - 0.4 * jitter * b.rate * 125)
    low_lost, high_lost = int(np.sum(met < threshold)), int(np.sum(met >= threshold))
    low, high = int(np.sum(passed < threshold)) + low_lost, int(np.sum(passed >= threshold)) + high_lost
    p = low_lost / low if low else 0.0
    excess = float(stats.binom.sf(high_lost - 1, high, min(1.0, max(p, (low_lost + 1) / (low + 2)))))
    if excess > 1e-3 or high_lost < 2:
        return of_path(w, skip)
    drops = np.sort(met[met >= threshold])[int(min(p * high, high_lost // 2)) :]
    queue = intervals.share(max(0, round(high_lost - p * high)), low + high)
    buffer, why = _size(drops, longest)
    if low < 200:
        return Losses(None, queue, buffer, "the queue was nearly full all the time: its drops and random loss cannot be told apart", why)
    return Losses(intervals.share(low_lost, low), queue, buffer, "", why)


def quiet_below(passed: Floats, met: Floats) -> float:
    """The length of the queue from which on packets are lost more often than at shorter ones; infinite where there is none."""
    edges = np.quantile(np.concatenate([passed, met]), np.linspace(0, 1, 21))
    got, lost = (np.diff(np.searchsorted(np.sort(x), edges, side="left")) for x in (passed, met))
    seen = gone = 0
    for k in range(got.size):
        of = int(got[k] + lost[k])
        if seen and lost[k] >= 3 and stats.binom.sf(int(lost[k]) - 1, of, min(1.0, (gone + 1) / (seen + 2) * 1.5)) < 1e-4:
            return float(edges[k])
        seen, gone = seen + of, gone + int(lost[k])
    return np.inf


def _size(drops: Floats, longest: float) -> tuple[Estimate | None, str]:
    """Buffer, bytes, from the lengths that dropped packets met, or why it is not known: a packet is dropped that would exceed it."""
    middle = float(np.median(drops))
    if middle < 0.7 * longest or float(np.mean(np.abs(drops - middle) < 0.2 * middle + 1514)) < 0.5:
        return None, "packets were dropped at many lengths of the queue, as active queue management does"
    value = middle + 1514  # the packet that did not fit, and of the one being sent the part that has left
    half = max(1514.0, 1.25 * 2 * float(np.std(drops)) / np.sqrt(drops.size), 0.02 * value)
    return Estimate(value, value - half, value + half, int(drops.size), "B"), ""
