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
from tcpscape.findings.diagnosis.path.samples import MS, Floats
from tcpscape.stats import Estimate

LOST = 2
"""Fate of a segment that was lost and repeated."""
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


def of_path(segments: Columns) -> Losses:
    """Losses where no queue shows: all are the path's."""
    lost, sent = _counts(segments)
    return Losses(intervals.share(lost, sent), Estimate(0.0, 0.0, 300.0 / sent, sent, "%"), None, "", "the flow never filled a queue")


def of_queue(segments: Columns, arrivals: Arrivals, b: Bottleneck, jitter: float) -> Losses:
    """Losses where the bottleneck is known.

    :param jitter: standard deviation of the delay before the queue, ms: the queue's length at a packet is not known better than over this time.
    """
    length = b.wait * b.rate * 125.0
    lost_at = _lost_at(segments)
    sent, lost_total = int(segments["sends"].sum()), lost_at.size
    if length.size == 0 or not lost_total:
        return of_path(segments)
    place = np.clip(np.searchsorted(arrivals.at, lost_at, side="right") - 1, 0, None)
    met = length[place]
    longest = float(np.quantile(length, 0.9999))
    threshold = FULL * longest - 2 * jitter * b.rate * 125 * 0.2
    if longest < 3_000:
        return of_path(segments)
    low, low_lost = int(np.sum(length < threshold)), int(np.sum(met < threshold))
    high, high_lost = int(np.sum(length >= threshold)), int(np.sum(met >= threshold))
    low, high = low + low_lost, high + high_lost
    p = low_lost / low if low else 0.0
    excess = float(stats.binom.sf(high_lost - 1, high, min(1.0, max(p, (low_lost + 1) / (low + 2)))))
    if excess > 1e-3 or high_lost < 2:
        return of_path(segments)
    buffer = _size(met[met >= threshold], threshold, p * high, longest)
    queue = intervals.share(max(0, round(high_lost - p * high)), sent)
    if low < 200:
        return Losses(None, queue, buffer, "the queue was nearly full all the time: its drops and random loss cannot be told apart")
    return Losses(intervals.share(low_lost, low), queue, buffer)


def _size(met: Floats, threshold: float, random: float, longest: float) -> Estimate:
    """Buffer, bytes, from the lengths that dropped packets met: a packet is dropped that would exceed it.

    Those lost at random met any length; `random` is about how many of `met` they are, so they are taken from the shorter end.
    """
    x = np.sort(met)[int(min(random, met.size // 2)) :]
    value = float(np.median(x)) + 1514 / 2
    half = max(1514.0, 1.25 * 2 * float(np.std(x)) / np.sqrt(x.size), 0.02 * value)
    return Estimate(value, value - half, max(value + half, longest), int(x.size), "B")


def _counts(segments: Columns) -> tuple[int, int]:
    """Lost transmissions and all transmissions of data."""
    lost = segments["fate"] == LOST
    return int(np.sum(segments["sends"][lost].astype(np.int64) - 1)), max(1, int(segments["sends"].astype(np.int64).sum()))


def _lost_at(segments: Columns) -> Floats:
    """When the lost segments were first sent, ms."""
    return np.asarray(segments["t"][segments["fate"] == LOST].astype(float) / MS)
