"""The level of delays that keep their order, by what shows each packet's own delay.

A jitter that keeps the order holds a packet behind the one before it that was late: in a dense stream nearly every packet has the delay of a late
one, so that the mean lies far above the path's own. Two things undo that. A packet that was sent alone, longer after the one before it than delays
vary, was held by none. And one that left later than the one before it, by more than a packet's own time, was not held there either; of one that left
with it the own delay is known to be at most what was seen. From such values, known or known to be at most so large, the product-limit estimate
(Kaplan and Meier, Journal of the American Statistical Association 53, 1958) makes the distribution of the delays themselves.

A queue that others keep busy spreads delays in order as well, and its least is none of an empty path. It lets no two packets leave together that
were sent apart, as others' packets arrived between them, and delays of packets one after the other are alike in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.columns import Wire
from tcpscape.findings.diagnosis.path.state import LEAST_TURNS, Fit, is_one_sided, is_reordered, is_sharp
from tcpscape.stats.estimate import Flags, Floats
from tcpscape.stats.special import ndtr

TOGETHER = 0.03
"""ms between two packets that left together: a packet's own time at 400 Mbit/s."""
ALONE = ((0.25, 0.24), (0.5, 0.083), (1.0, 0.004))
"""How long after the one before it a packet was sent, in ranges that hold 90 % of the delays, and by how many deviations the mean of such packets
lies above their own: √2 E[max(0, z − k · 3.29 / √2)] of a normal z, where each is held by the one before it alone."""
RANGE = 3.29
"""Deviations in the range that holds 90 % of normal delays."""
FEWEST = 8
"""Packets that were sent alone, below which they show no level."""
APART, HELD = 0.1, 10
"""How far apart two packets must be sent, in such ranges, to show that they were held as they left together; how many that takes."""
LOOKS, CHANCE = 300, 1.96
"""Packets that were sent alone, from which on it is enough that their delays are not alike; standard errors of a correlation that chance leaves."""


@dataclass(frozen=True, slots=True)
class Own:
    """The mean of packets' own delays, ms."""

    level: float
    error: float
    """Its standard error, with what packets that were not quite alone may have been held."""
    is_jitter: bool
    """Whether a jitter is what spreads them: those sent alone have delays that are not alike, and others were held, or they are many."""
    sigma: float
    """Deviation of the delays, ms."""
    n: int

    @property
    def half(self) -> float:
        """Half of the 95 % interval, ms."""
        return jitters.student(self.n) * self.error


def behind(f: Fit) -> Own | None:
    """The part behind the capture; None where too few were sent alone, a queue of the flow's own is in the delays, or they change places."""
    s, w = f.behind, f.wire
    if f.is_receiver or f.bottleneck is not None or s.row.size < LEAST_TURNS or is_reordered(f):
        return None
    sent = np.concatenate([w.t, w.again_t])
    order = np.lexsort((np.concatenate([np.arange(w.t.size), w.again_row]), sent))
    since = np.empty(sent.size)
    since[order] = np.diff(sent[order], prepend=-np.inf)
    return level_of(s.at, s.rtt, np.where(follows_gap(w)[s.row], 0.0, since[s.row]), since_one_before(w.ack_t, s.at + s.rtt))


def before(f: Fit) -> Own | None:
    """The one-way delay of the data before the capture, by the sender's clock, from an unknown constant on; None as :func:`behind`."""
    w = f.wire
    if not f.has_before or f.is_before or not w.sender_tick or is_reordered(f):
        return None
    row = np.flatnonzero(~np.isnan(w.stamp) & (w.sends == 1))
    row = row[np.argsort(w.t[row], kind="stable")]
    if row.size < LEAST_TURNS:
        return None
    since = np.where(follows_gap(w)[row], 0.0, np.diff(w.stamp[row], prepend=-np.inf) - w.sender_tick)
    return level_of(w.stamp[row], (w.t - w.stamp)[row], since, since_one_before(w.t, w.t[row]))


def follows_gap(w: Wire) -> Flags:
    """Whether the segment before each is not in the capture, which may have left just before it."""
    return np.concatenate([np.zeros(1, dtype=bool), w.seq[1:] != (w.seq + w.len)[:-1]])


def since_one_before(times: Floats, at: Floats) -> Floats:
    """How long after the last earlier one of these times each of others is, ms; infinite for the first."""
    known = np.sort(times)
    place = np.searchsorted(known, at - 1e-6)
    return np.where(place > 0, at - known[np.maximum(place - 1, 0)], np.inf)


def level_of(at: Floats, delay: Floats, since: Floats, together: Floats) -> Own | None:
    """The mean of packets' own delays, by those whose error is least: the more alone packets were sent, the fewer they are.

    :param since: how long after the packet before it each was sent, ms. :param together: how long after it each left.
    """
    kept = jitters.inliers(delay)
    if kept.sum() < FEWEST:
        return None
    order = np.flatnonzero(kept)[np.argsort(at[kept], kind="stable")]
    at, delay, since, together = at[order], delay[order], since[order], together[order]
    usual = ranged(delay)
    if (nearly := since > ALONE[0][0] * usual).sum() >= LEAST_TURNS:
        usual = ranged(delay[nearly])  # that of a dense stream has what packets held each other in it
    sigma = usual / RANGE
    found: list[tuple[float, Flags]] = []
    for reach, above in ALONE:
        chosen = since > reach * usual
        if (n := int(chosen.sum())) >= FEWEST:
            found.append((math.hypot(sigma / math.sqrt(n), above * sigma), chosen))
    if not found:
        return None
    error, chosen = min(found, key=lambda one: one[0])
    drawn = np.maximum.accumulate(at + sigma * np.random.default_rng(0).standard_normal(at.size)) - at
    alone = [those for _, those in found if those.sum() <= chosen.sum()]
    is_jitter = not any(are_alike(delay[those], drawn[those]) for those in alone) and (
        are_held(since, together, usual) or (chosen.sum() >= LOOKS and not any(is_waiting(delay[those]) for those in alone))
    )
    return Own(product_limit(delay[chosen], together[chosen] < TOGETHER), error, is_jitter, sigma, int(chosen.sum()))


def are_held(since: Floats, together: Floats, usual: float) -> bool:
    """Whether packets that were sent apart left together, far more than in the next time of that length, and as many as a jitter holds.

    It must be all that the delays vary by: a small jitter beside a queue of others holds fewer.

    :param usual: the range that holds 90 % of the delays, ms.
    """
    is_apart = (since > APART * usual) & np.isfinite(since)
    after = together[is_apart]
    first, second = int(np.sum(after < TOGETHER)), int(np.sum((after >= TOGETHER) & (after < 2 * TOGETHER)))
    expected = float(np.sum(ndtr(-since[is_apart] / (math.sqrt(2) * usual / RANGE)))) if usual else math.inf
    return first >= max(HELD, expected / 2) and first > 3 * second


def ranged(delay: Floats) -> float:
    """The range that holds the middle 90 % of delays, ms."""
    return float(np.subtract(*np.quantile(delay, (0.95, 0.05))))


def are_alike(delay: Floats, drawn: Floats) -> bool:
    """Whether delays, in the order of sending, are alike one after the other, as in a queue, by more than chance and a jitter leave.

    :param drawn: delays of a jitter that holds packets sent at these times.
    """
    return neighbours_correlation(delay) - max(0.0, neighbours_correlation(drawn)) > CHANCE / math.sqrt(delay.size)


def neighbours_correlation(x: Floats) -> float:
    """The correlation of each value with the next one."""
    off = x - x.mean()
    power = float(np.mean(off**2))
    return float(np.mean(off[1:] * off[:-1])) / power if power else 0.0


def is_waiting(delay: Floats) -> bool:
    """Whether delays are sharp or one-sided at their least, as waits are."""
    return not np.ptp(delay) or is_one_sided(delay) or is_sharp(delay)


def product_limit(x: Floats, at_most: Flags) -> float:
    """The mean of values of which some are known to be at most so large; what lies below the least of all counts as that."""
    order = np.lexsort((at_most, -x))
    x, at_most = x[order], at_most[order]
    left = np.cumprod(np.where(at_most, 1.0, 1.0 - 1.0 / np.arange(x.size, 0, -1)))
    return float(np.sum(-np.diff(left, prepend=1.0) * x) + left[-1] * x[-1])
