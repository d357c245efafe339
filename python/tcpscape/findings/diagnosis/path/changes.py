"""Changes of the path during a flow: steps of its round trip, steps of the bottleneck's rate, outages.

A false change costs more than a missed one: each must show in several ways.

- **Outage.** Nothing is acknowledged for long, and then segments that were sent before and never again: the path held them. After a timeout's pause
  what is acknowledged first was sent again.
- **Step of the rate.** The flow is delivered at one plateau before and at another after. What grows, swings or is shared is no plateau: the spread of
  each side must be small against the step. An application that writes more from then on looks alike, so a queue must have stood at the lower one,
  neither plateau be far below a bottleneck that is known, and neither end hold the flow at one of them.
- **Step of the round trip.** The lower envelope shifts from one level to another and stays, and the upper one shifts with it, while the rate of
  delivery does not explain it: a queue has its own least and its own greatest length, and moves only one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcpscape.findings.diagnosis.fitted import PathChange
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path.bottleneck import PACKET
from tcpscape.findings.diagnosis.path.columns import MS, Ints, Samples, Turns, Wire, filling
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats.estimate import Floats

OUTAGE = 250.0
"""ms without a delivery from which on it is an outage."""
SETTLED = 2_000.0
"""ms from a flow's begin on during which a pause is the overshoot of a slow start, its own or that of other flows, rather than an outage."""
HELD = 3
"""Segments that an outage must have held."""
COUNTED = 16
"""Packets of the receiver between two that came, above which in the middle of them its identifications are no count."""
SIDE = 4
"""Bins that each side of a step has at least, of the plateau and without the transition."""
TRANSITION = 2
"""Bins after a step that belong to neither side: a queue drains or fills, a round trip passes."""
STEADY = 0.2
"""Spread of a plateau, as a share of the step beside it, above which it is none."""
WIDEST = 0.16
"""The same, absolute: a natural logarithm."""
RATE_STEP = 0.25
"""Least step of a rate, in its natural logarithm."""
RTT_STEP = 0.15
"""Least step of a round trip, in its natural logarithm."""
RTT_FLOOR = 1.0
"""Least step of a round trip, ms: a tick of most timestamp clocks."""

STOOD = 0.9
"""Quantile of the round trips of a plateau by which a queue stood there."""
SERVED = 0.85
"""Share of the bottleneck's rate that the larger of two plateaus must reach to be one of the bottleneck."""

ENDS = ("application", "send_buffer", "receive_window")
"""What an end holds a flow by."""

UNITS = {"rtt": "ms", "rate": "mbps"}
"""Units in the names of the fitted values."""


@dataclass(frozen=True, slots=True)
class Plateaus:
    """Two plateaus of a series of bins."""

    place: int
    """The first bin of the new plateau or of the transition to it."""
    before: float
    after: float
    spread: float
    """Of the wider plateau: half of the middle 80 %."""


def found(flow: ObservedFlow, w: Wire, behind: Samples, before: Turns, known: float | None) -> list[PathChange]:
    """The changes of the path, in the order of their times.

    :param known: rate of the bottleneck, Mbit/s; None where it is not identifiable.
    """
    gaps = outages(flow, w)
    series = [(behind.at, behind.rtt)] if flow.vantage != "receiver" else []
    if flow.vantage != "sender":
        series.append((w.t[before.row], before.rtt))
    rate = None if gaps else rate_step(flow, w)
    changes = list(gaps)
    if rate is not None:
        changes += [rate] if is_of_bottleneck(flow, rate, known, series) else []
    elif not gaps:
        changes += [c for c in (rtt_step(flow, w, at, rtt) for at, rtt in series) if c is not None][:1]
    return sorted(changes, key=lambda c: c.at_s)


def outages(flow: ObservedFlow, w: Wire) -> list[PathChange]:
    """Pauses of the delivery after which what had been sent before arrives without being sent again."""
    known = np.flatnonzero(w.seen > 0)
    if known.size < 100:
        return []
    stamped = flow.vantage == "receiver"
    if stamped and not w.sender_tick:
        return []
    sent = w.stamp if stamped else w.t
    order = known[np.argsort(w.seen[known], kind="stable")]
    seen, delay = w.seen[order], (w.seen - sent)[order]
    usual = float(np.median(delay))
    high = float(np.quantile(delay, 0.98)) - usual
    is_behind = np.append(filling(w), False)[w.cover]  # may have arrived long before the ACK
    gap = np.diff(seen)
    changes = []
    settled = seen[:-1] - seen[0] > max(SETTLED, 20 * usual) if not stamped else seen[:-1] - seen[0] > SETTLED
    for k in np.flatnonzero((gap > OUTAGE) & (gap > 2 * high) & settled)[:20]:
        # Of what came within half a pause, what was never sent again and waited for most of the pause.
        last = int(np.searchsorted(seen, seen[k + 1] + gap[k] / 2))
        rows = order[k + 1 : last]
        held = (
            (w.sends[rows] == 1) & ~is_behind[rows] & (delay[k + 1 : last] - usual > 0.6 * gap[k]) & ((sent[rows] < seen[k] + 0.4 * gap[k]) | stamped)
        )
        begin, end = float(seen[k]), float(seen[k + 1])
        if int(held.sum()) >= HELD and silence(w, begin, end) > 0.8 * gap[k] and unseen_answers(flow, begin, end) < HELD:
            changes.append(PathChange(begin / 1e3, "outage", None, float(gap[k]) / 1e3, frame_at(flow, end)))
    return changes


def unseen_answers(flow: ObservedFlow, begin: float, end: float) -> int:
    """How many packets the receiver sent in a silence that did not come, by their IP identification; 0 where that does not count.

    A path that holds the data gives the receiver nothing to answer: where answers were lost, data had arrived.
    """
    t, number = np.asarray(flow.acks["t"], dtype=np.float64) / MS, np.asarray(flow.acks.get("id", ()), dtype=np.int64)
    if number.size != t.size or t.size < 2:
        return 0
    order = np.argsort(t, kind="stable")
    steps = np.diff(number[order]) % (1 << 16)
    across = (t[order][1:] >= end) & (t[order][:-1] <= begin)
    return int(np.sum(np.maximum(steps[across] - 1, 0))) if float(np.median(steps)) <= COUNTED else 0


def silence(w: Wire, begin: float, end: float) -> float:
    """The longest time between ACKs of any kind, ms: where a hole only keeps the acknowledged number back, the receiver goes on answering."""
    times = np.sort(w.ack_t)
    inside = times[(times > begin) & (times < end)]
    return float(np.diff(np.concatenate([[begin], inside, [end]])).max())


def delivered(w: Wire, width: float) -> Floats:
    """Rate of the delivery in bins from the flow's first packet on, Mbit/s; of the last one only where it is whole."""
    seen, start = w.seen > 0, begin(w)
    count = int((float(w.seen.max()) - start) / width)
    place = ((w.seen[seen] - start) / width).astype(np.int64)
    return np.asarray(np.bincount(place, w.size[seen], minlength=count)[:count] * 8e-3 / width)


def begin(w: Wire) -> float:
    """When the flow's first packet passed, from which bins are counted, ms."""
    return float(w.t.min())


def rate_step(flow: ObservedFlow, w: Wire) -> PathChange | None:
    """The step of the rate, where both sides are plateaus."""
    seen = w.seen[w.seen > 0]
    if seen.size < 200:
        return None
    width = max(500.0, 40 * float(np.ptp(seen)) / seen.size)
    if float(seen.max()) - begin(w) > width * seen.size:
        return None  # nearly all bins are empty: the clock jumped, or nothing arrived for most of the time
    rates = delivered(w, width)
    if rates.size < 2 * SIDE + TRANSITION:
        return None
    first = int(np.argmax(rates > 0))
    if rates.size - first < 2 * SIDE + TRANSITION or not (rates[first:] > 0).all():
        return None
    step = two_plateaus(np.log(rates[first:]))
    if step is None or abs(step.after - step.before) < RATE_STEP:
        return None
    before, after = float(np.exp(step.before)), float(np.exp(step.after))
    fine = width / 5
    at = begin(w) + fine * parted(delivered(w, fine), 5 * (first + step.place), before, after)
    return PathChange(at / 1e3, "rate", before, after, frame_at(flow, at))


def is_of_bottleneck(flow: ObservedFlow, step: PathChange, known: float | None, series: Sequence[tuple[Floats, Floats]]) -> bool:
    """Whether a step of the delivered rate is the bottleneck's: a queue of more than a packet stood at the lower plateau, and no end held the flow.

    :param series: times and round trips, ms.
    """
    before, after = step.before or 0.0, step.after or 0.0
    if (known is not None and max(before, after) < SERVED * known) or any(
        held_by_end(flow, *side) for side in ((0.0, step.at_s), (step.at_s, np.inf))
    ):
        return False
    for at, rtt in series:
        lower = rtt[(at < step.at_s * 1e3) == (before < after)]
        if lower.size and float(np.quantile(lower, STOOD)) - float(rtt.min()) > PACKET * 8e-3 / min(before, after):
            return True
    return False


def held_by_end(flow: ObservedFlow, begin_s: float, end_s: float) -> bool:
    """Whether an end held the flow for half of a time and longer."""
    parts = [(max(0.0, min(i.end_s, end_s) - max(i.start_s, begin_s)), i.cause in ENDS) for i in flow.limits]
    whole = sum(part for part, _ in parts)
    return whole > 0 and sum(part for part, is_end in parts if is_end) >= whole / 2


def rtt_step(flow: ObservedFlow, w: Wire, at: Floats, rtt: Floats) -> PathChange | None:
    """The step of the round trip, where the least and the greatest shift alike."""
    if at.size < 200:
        return None
    width = max(1_000.0, 10 * float(np.median(rtt)))
    start = begin(w)
    bins, low, high = envelopes(at - start, rtt, width)
    if bins.size < 2 * SIDE + TRANSITION:
        return None
    step = two_plateaus(np.log(np.maximum(low, 1e-3)))
    if step is None or abs(step.after - step.before) < RTT_STEP:
        return None
    k = step.place
    before, after = float(np.exp(step.before)), float(np.exp(step.after))
    upper = float(np.median(high[k + TRANSITION :]) - np.median(high[:k]))
    if abs(after - before) < RTT_FLOOR or not 0.5 < upper / (after - before) < 2.0:
        return None
    if after < before and has_loss(w, start + (bins[k] - 1) * width, start + (bins[k] + TRANSITION + 1) * width):
        return None  # the sender answered a loss with a smaller window, and the queue is shorter since
    places, fine, _ = envelopes(at - start, rtt, width / 5)
    when = start + float(places[min(places.size - 1, parted(fine, int(np.searchsorted(places, 5 * bins[k])), before, after))]) * width / 5
    return PathChange(when / 1e3, "rtt", before, after, frame_at(flow, when))


def envelopes(at: Floats, rtt: Floats, width: float) -> tuple[Ints, Floats, Floats]:
    """Bins with samples enough, and the low and the high quantile in each; `at` counts from the first bin's begin."""
    order = np.argsort(at, kind="stable")
    place = (at[order] / width).astype(np.int64)
    bins, start, count = np.unique(place, return_index=True, return_counts=True)
    enough = count >= 8
    parts = [rtt[order][a : a + n] for a, n in zip(start[enough], count[enough], strict=True)]
    low, high = np.array([np.quantile(p, (0.02, 0.9)) for p in parts]).reshape(-1, 2).T
    return bins[enough], low, high


def has_loss(w: Wire, begin: float, end: float) -> bool:
    """Whether anything was sent again in a time, ms."""
    return bool(((w.again_t >= begin) & (w.again_t <= end)).any())


def parted(x: Floats, near: int, before: float, after: float) -> int:
    """The place near another one that best parts a series into two known levels."""
    low, high = max(0, near - 15), min(x.size, near + 15)
    part = x[low:high]
    cost = [float(np.sum(np.abs(part[:k] - before)) + np.sum(np.abs(part[k:] - after))) for k in range(part.size + 1)]
    return min(low + int(np.argmin(cost)), x.size - 1)


def two_plateaus(x: Floats) -> Plateaus | None:
    """The place that parts a series into two steady levels; None where there is none."""
    best: tuple[float, Plateaus] | None = None
    for k in range(SIDE, x.size - TRANSITION - SIDE + 1):
        left, right = x[:k], x[k + TRANSITION :]
        a, b = float(np.median(left)), float(np.median(right))
        cost = float(np.sum(np.abs(left - a)) + np.sum(np.abs(right - b)) + np.sum(np.minimum(np.abs(x[k : k + TRANSITION] - a), abs(a - b))))
        if best is None or cost < best[0]:
            spread = max(float(np.subtract(*np.quantile(s, (0.9, 0.1)))) / 2 for s in (left[1:], right))
            best = cost, Plateaus(k, a, b, spread)
    if best is None or best[1].spread > min(WIDEST, STEADY * abs(best[1].after - best[1].before)):
        return None
    return best[1]


def frame_at(flow: ObservedFlow, at_ms: float) -> int | None:
    """The frame of the first acknowledgement from a time on."""
    times, frames = flow.acks.get("t"), flow.acks.get("frame")
    if times is None or frames is None:
        return None
    later = np.flatnonzero(times >= at_ms * 1e6 - 1)
    return int(frames[later[0]]) if later.size else None


def reasons(changes: Sequence[PathChange]) -> dict[str, Reason]:
    """What a change means for the fitted values: one path is fitted to all of the flow."""
    return {
        f"{c.kind}_{UNITS[c.kind]}": Reason("changed", {"at_s": c.at_s, "before": c.before, "after": c.after})
        for c in changes
        if c.kind in UNITS and c.before is not None and c.after is not None
    }
