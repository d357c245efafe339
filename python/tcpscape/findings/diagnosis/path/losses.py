"""Random loss apart from what a full queue drops, and the buffer's size.

A full queue drops packets only when it is full, a lossy link at any time. The queue's length at each packet is known from the fit of the bottleneck:

- Loss of packets that met a queue well below the longest one is random; its share among such packets is the probability, whatever the queue does
  else.
- If packets that met a nearly full queue were lost significantly more often, the rest of their losses is the queue's, and the length just before
  those is the buffer's size. If not, the queue never filled and its size is unknown.
- Where no queue was identified, the delays of the packets next to a lost one say the same: a drop beside delays near the least is random, one beside
  delays at which drops are more frequent is a queue's. Where nearly no packet had a short delay, the two cannot be told apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special, stats
from scipy.ndimage import median_filter

from tcpscape.findings.diagnosis.path import intervals
from tcpscape.findings.diagnosis.path.arrivals import Arrivals
from tcpscape.findings.diagnosis.path.bottleneck import Bottleneck
from tcpscape.findings.diagnosis.path.columns import LOST, Bools, Floats, Ints, Wire
from tcpscape.stats import Estimate

FULL = 0.75
"""Share of the longest queue below which no drop is the queue's."""

FEWEST = 200
"""Packets that must have met a short queue, for a random loss apart from the queue's."""
LEVEL = 1.0
"""ms over which delays must spread for a middle between the short and the long ones."""
SURE = 9.0
"""Logarithm of the likelihood ratio from which on two probabilities of loss are taken rather than one."""
FULL_ALWAYS = "the queue was nearly full all the time: its drops and random loss cannot be told apart"


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


def of_path(w: Wire, skip: Bools, level: Floats | None = None) -> Losses:
    """Losses where no queue was identified: all are the path's, but those beside delays at which loss is more frequent.

    :param skip: segments whose loss may be another one (`arrivals.exposed`).
    :param level: the delay about each segment, ms (`levels`); None where there is none.
    """
    lost = (w.fate == LOST) & ~skip
    count, sent = int(lost.sum()), max(1, int(np.sum(~skip)))
    all_random = Losses(intervals.share(count, sent), Estimate(0.0, 0.0, 300.0 / sent, sent, "%"), None, "", "the flow never filled a queue")
    if level is None or count < 10:
        return all_random
    met, passed = level[lost], level[~lost & ~skip]
    threshold = frequent_from(passed, met)
    if math.isinf(threshold):
        return all_random
    least, most = (float(x) for x in np.quantile(passed, (0.002, 0.98)))
    near_empty = int(np.sum(passed < min(least + (most - least) / 4, threshold)))
    middle = (least + most) / 2
    if most - least > LEVEL and middle < threshold and int(np.sum(passed < middle)) >= FEWEST:
        threshold = middle
    low_lost = int(np.sum(met < threshold))
    low = low_lost + int(np.sum(passed < threshold))
    queue = intervals.share(max(0, round(count - low_lost / max(1, low) * sent)), sent)
    why = "packets were dropped by a queue whose rate is not known"
    if low < FEWEST or near_empty < max(FEWEST, 0.02 * sent):
        return Losses(None, None, None, FULL_ALWAYS, why)
    return Losses(intervals.share(low_lost, low), queue, None, "", why)


def frequent_from(passed: Floats, met: Floats) -> float:
    """The level from which on loss is more frequent than below: where two probabilities explain the losses best; infinite where one does."""
    edges = np.unique(np.quantile(np.concatenate([passed, met]), np.linspace(0, 1, 21)[1:-1]))
    got, lost = (np.searchsorted(np.sort(x), edges, side="left") for x in (passed, met))

    def fits(hits: Ints, misses: Ints) -> Floats:
        n = np.maximum(1, hits + misses)
        return np.asarray(special.xlogy(hits, hits / n) + special.xlogy(misses, misses / n), dtype=np.float64)

    gain = fits(lost, got) + fits(met.size - lost, passed.size - got) - fits(np.array([met.size]), np.array([passed.size]))
    rises = lost * (passed.size + met.size) < met.size * (got + lost)
    gain = np.where(rises, gain, 0.0)
    return float(edges[int(np.argmax(gain))]) if gain.size and gain.max() > SURE else math.inf


def levels(w: Wire, row: Ints, delay: Floats) -> Floats | None:
    """The delay about each segment, ms: the median of the delays that are known of its neighbours; None of too few."""
    if row.size < 200:
        return None
    order = np.argsort(row, kind="stable")
    smooth = median_filter(delay[order], size=5, mode="nearest")
    return np.asarray(np.interp(np.arange(w.t.size), row[order], smooth), dtype=np.float64)


def of_queue(w: Wire, skip: Bools, arrivals: Arrivals, b: Bottleneck, jitter: float, level: Floats | None = None) -> Losses:
    """Losses where the bottleneck is known.

    :param level: as of `of_path`, which answers where drops do not depend on the queue.
    :param jitter: standard deviation of the delay before the queue, ms: the queue's length at a packet is not known better than over this time.
    """
    length = b.queue * b.rate * 125.0
    lost = (w.fate == LOST) & ~skip
    if not lost.any() or length.size == 0:
        return of_path(w, skip, level)
    lost_at = w.t
    if arrivals.is_stamped:  # what was lost before the capture is seen when it was sent again: it was first sent with its neighbours
        lost_at = np.interp(w.seq, w.seq[~lost], w.stamp[~lost])
    last = np.clip(np.searchsorted(arrivals.at, lost_at[lost], side="right") - 1, 0, None)
    met = np.maximum(0.0, length[last] - (lost_at[lost] - arrivals.at[last]) * b.rate * 125.0)
    passed = length[~skip[arrivals.row]]
    longest = float(np.quantile(length, 0.9999))
    if longest < 3_000 or passed.size == 0:
        return of_path(w, skip, level)
    threshold = min(quiet_below(passed, met), FULL * longest - 0.4 * jitter * b.rate * 125)
    low_lost, high_lost = int(np.sum(met < threshold)), int(np.sum(met >= threshold))
    low, high = int(np.sum(passed < threshold)) + low_lost, int(np.sum(passed >= threshold)) + high_lost
    p = low_lost / low if low else 0.0
    excess = float(stats.binom.sf(high_lost - 1, high, min(1.0, max(p, (low_lost + 1) / (low + 2)))))
    if excess > 1e-3 or high_lost < 2:
        if int(lost.sum()) >= 10 and int(np.sum(passed < longest / 4)) < max(FEWEST, 0.02 * passed.size):
            return Losses(None, None, None, FULL_ALWAYS, "drops do not depend on the queue's length")
        return of_path(w, skip, level)
    drops = np.sort(met[met >= threshold])[int(min(p * high, high_lost // 2)) :]
    queue = intervals.share(max(0, round(high_lost - p * high)), low + high)
    buffer, why = _size(drops, longest)
    if low < FEWEST:
        return Losses(None, queue, buffer, FULL_ALWAYS, why)
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
