"""The round trip without its queue: the part behind the capture, and the sum of both (:mod:`before <tcpscape.findings.diagnosis.path.before>`)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path import own
from tcpscape.findings.diagnosis.path.before import is_exact, part_before
from tcpscape.findings.diagnosis.path.bottleneck import YOUNG, FittedBottleneck, longest_busy, met_empty, met_idle, windows_of
from tcpscape.findings.diagnosis.path.jitter import mean_by_blocks, with_interval
from tcpscape.findings.diagnosis.path.overtaken import usual_delay
from tcpscape.findings.diagnosis.path.state import (
    LEAST_TURNS,
    REACH,
    SHARP,
    STILL,
    Fit,
    is_one_sided,
    is_reordered,
    is_sharp,
    is_varying,
    neighbours,
    starts_late,
)
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats

ANSWERED = 0.1
"""ms that a host takes to answer, at the most."""
NEAR_MS, NEAR_SHARE = 1.0, 0.03
"""Delays that are within so many ms, or such a share, of the least one are near it."""
RARELY = 0.02
"""Share of the delays below which those of packets that met an empty queue are rare."""
RARELY_LESS = 0.05
"""Share of the segments before which less was under way than nearly always: beside losses it is not sure what is."""
JITTERED = 6.0
"""Standard deviations of a jitter that was seen, within which of the least delay a twentieth of the others lie."""
SYSTEMATIC = 0.006
"""Share of the round trip that samples do not show: the choice of those that can be measured (of development captures)."""
FAR = 5.0
"""Standard deviations of a jitter in which two of a few delays hardly ever follow each other; as many times twice what those below them spread."""
UNLIKELY = 3.0
"""Deviations of the data's jitter by which the handshake's turn, with a jitter each way, hardly lies below their mean."""
ALIKE = 1.5
"""Deviations of the jitter that was seen, below which the deviation of delays without a queue is taken for that jitter's."""

OCCASIONS, FAR_APART = 3, 2.0
"""Times at which a least delay comes before no queue is taken to make it, and how far apart they are, in the longest of the usual delays. A queue of
others that is anywhere in 1 ms is the same to within :data:`SHARP` twice by a chance of 1 %, three times of 0.01 %. Within one round trip the same
queue was met, within two that of the flow's own answers to it."""
MULTIPLES = 4
"""Multiples of a server's step that are looked for, of which one may be missing. A delay is near a multiple of any step by a chance of 20 % at the
most: where there are few, a grid is seen that is none, which only leaves the round trip unsaid."""


def round_trip(f: Fit) -> Estimate | None:
    """The sum of both parts, ms; None with a reason."""
    parts = []
    if not f.is_receiver:
        parts.append(part_behind(f))
    if f.has_before:
        parts.append(part_before(f))
    if any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    value = sum(p.value for p in known)
    below, above = (math.hypot(*sides) for sides in ([p.value - p.low for p in known], [p.high - p.value for p in known]))
    return Estimate(value, max(0.0, value - below), value + above, min(p.n for p in known), "ms")


def anchor(f: Fit) -> None:
    """Corrects the burst by packets that met an idle bottleneck, whose delays depend on no burst.

    Behind a bottleneck that is busy nearly all the time, a larger burst looks like a longer path.
    """
    if f.bottleneck is None or f.delays is None or f.is_before or f.behind.row.size != f.delays.index.size:
        return
    known = anchors(f)
    rest = f.behind.rtt - f.wait[f.behind.row]
    ok = jitters.inliers(rest)
    if not ok.any() or not are_trusted(known, float(np.median(rest[ok]))):
        return
    off = float(np.median(rest[ok])) - float(np.median(known))
    around = known - np.median(known)
    spread = max(1.4826 * float(np.median(np.abs(around))), math.sqrt(max(0.0, f.forward.variance)) if f.forward else 0.0)
    if abs(off) < max(0.15, 2 * spread / math.sqrt(known.size)):
        return
    b = f.bottleneck
    burst = min(max(0.0, b.burst - off * b.rate * 125), max(64_000.0, b.rate * 2_500))
    arrivals = f.delays.arrivals
    changed = replace(b, burst=burst, wait=arrivals.waits(b.rate, burst), queue=arrivals.queue(b.rate, burst))
    f.bottleneck = changed
    f.wait[f.behind.row] = changed.wait[f.delays.index]
    f.queue[f.behind.row] = changed.queue[f.delays.index]


def anchors(f: Fit) -> Floats:
    """Round trips behind the capture that no queue lengthened, ms: of packets that met an idle bottleneck.

    Those far beyond several that are close to each other are not among them: their ACK waited for another segment, or was lost.
    """
    known = of_idle(f)
    noise = max(f.bottleneck.noise, f.sigma_before_queue, 0.5) if f.bottleneck else 0.5
    is_far = np.diff(known)[1:] > np.maximum(FAR * noise, FAR * 2 * (known[1:-1] - known[:1]))
    return np.asarray(known[: 2 + int(np.argmax(is_far))] if is_far.any() else known)


def of_idle(f: Fit) -> Floats:
    """Round trips behind the capture of packets that met an idle bottleneck, ms, in order.

    The handshake's is not among them: on a path that has not been used for a while it may hold the resolution of addresses too.
    """
    if f.bottleneck and f.delays and not f.is_before and f.delays.index.size == f.behind.row.size:
        noise = max(f.bottleneck.noise, f.sigma_before_queue, 0.5)
        idle = met_idle(f.delays, f.bottleneck.rate, 5 * noise)
        if f.flow.facts.get("begins_in_mid_connection"):
            idle[: min(idle.size, YOUNG)] = False
        return np.asarray(np.sort(f.behind.rtt[idle]))
    return np.empty(0)


def usual_of_idle(f: Fit) -> float:
    """What most packets took that met an idle bottleneck, ms; 0 where none did. Where packets change places a few may have gone a shorter way."""
    known = of_idle(f)
    return float(np.median(known)) if known.size else 0.0


def are_trusted(known: Floats, level: float) -> bool:
    """Whether anchors are better than the level of all samples: a single one may be too long (its ACK waited), but hardly too short."""
    return known.size >= 3 or (known.size > 0 and float(np.median(known)) < level)


def part_behind(f: Fit) -> Estimate | None:
    """From the capture to the receiver and back."""
    s = f.behind
    if s.row.size < 10:
        f.reasons["rtt_ms"] = Reason("few delays measured")
        return None
    if is_still(f) or has_sharp_least(f) or is_opened_so(f):
        return without_jitter(f)
    if (each := jitter_behind(f)) is not None:
        half = math.hypot(each.half, SYSTEMATIC * each.level)
        return Estimate(each.level, max(shortest(f), each.level - half), each.level + half, each.n, "ms")
    rest = s.rtt - (0.0 if f.is_before or f.bottleneck is None else f.wait[s.row])
    rest = rest[jitters.inliers(rest) & ~np.isnan(rest)]
    windows = windows_of(rest, 24, 20)
    mean, error, k = mean_by_blocks(rest, windows)
    if k < 2:
        error, k = 2 * float(np.std(rest)) / math.sqrt(rest.size), 10
    if f.bottleneck is None and is_one_sided(rest) and not is_reordered(f):
        return least(rest, f)
    if starts_late(f):
        f.reasons["rtt_ms"] = Reason("busy at the begin")
        return None
    known, adding = anchors(f), drift(f)
    small = windows_of(rest, rest.size, 20)
    spread = math.sqrt(float(np.mean((rest - (np.bincount(small, rest) / np.bincount(small))[small]) ** 2)))
    if are_trusted(known, mean):
        # Where packets change places `rest` has none of the data's jitter, and those that meet an idle bottleneck are the early ones.
        level, its_error = level_of(known, f), math.hypot(1.25 * max(spread, 0.02) / math.sqrt(known.size), jitter_that_reorders(f))
        if is_never_short(f) or adding > its_error or abs(level - mean) > 2.5 * math.hypot(its_error, error) + SYSTEMATIC * mean:
            mean, error, k, adding = level, its_error, max(10, min(24, known.size)), 0.0
    level = mean + error
    mean, error = within_reach(f, mean, math.hypot(error, adding))
    packet = 0.0
    if f.bottleneck and not f.is_before and not agree(known, f):  # a burst is known to half a packet, or not at all
        packet = (0.5 * 1514 if known.size >= 3 else max(1514.0, f.bottleneck.burst / 2)) * 8e-3 / f.bottleneck.rate
    fitted = with_interval(mean, error, k, int(rest.size), "ms", math.hypot(SYSTEMATIC * mean, packet))
    most = max(fitted.high, level, usual_of_idle(f)) if is_reordered(f) else fitted.high
    return not_above(replace(fitted, high=most + spread_out(f)), f)


def jitter_behind(f: Fit) -> own.Own | None:
    """What packets' own delays behind the capture vary by, where that is a jitter: no server that is busy all the time, whose steps they show.

    Nor is it a queue that was found, of which no rate is told because what the capture lacks was in it too.
    """
    is_queue = f.reasons.get("rate_mbps") == Reason("shared queue") and bool(f.flow.facts.get("not_captured_bytes"))
    each = None if is_queue else own.behind(f)
    return each if each is not None and each.is_jitter and not is_on_grid(f.behind.rtt) else None


def in_order(f: Fit) -> Estimate | None:
    """The round trip, ms, under a jitter that keeps the order, by packets' own delays; None where queues of others may be what spreads them.

    Before the capture the sender may have waited in each turn, so that only its least one is sure to lie below the base, and its usual one above.
    """
    parts: list[Estimate | None] = []
    own_behind, own_before = jitter_behind(f), own.before(f)
    is_jittered = own_behind is not None
    if not is_jittered and (own_before is None or not own_before.is_jitter):
        return None
    if not f.is_receiver:
        is_known = f.bottleneck is not None and not f.is_before
        is_sharp = f.behind.row.size >= LEAST_TURNS and has_sharp_least(f)
        parts.append(part_behind(f) if is_jittered or is_known or is_sharp else None)
    if f.has_before:
        parts.append(part_before_in_order(f, own_before, own_behind.sigma if own_behind is not None else 0.0))
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    low, value, high = (sum(same) for same in zip(*((p.low, p.value, p.high) for p in known), strict=True))
    return Estimate(value, low, high, min(p.n for p in known), "ms")


def part_before_in_order(f: Fit, jittered: own.Own | None, sigma: float) -> Estimate | None:
    """The part before the capture where delays vary in order, ms.

    :param jittered: the data's own delays there.

    :param sigma: of the jitter behind the capture, which the handshake's single turn may have too where no other turn shows; 0: none is known.
    """
    level = part_before(f)
    if level is None or is_exact(f):
        return level
    if jittered is not None and jittered.is_jitter:
        most = float(f.flow.facts.get("handshake_sender_part_ms") or math.inf) + UNLIKELY * jittered.sigma
        usual = _usual(f.before.rtt) if f.before.row.size else level.high
        return replace(level, low=min(level.low, shortest_before(f)), high=max(level.high, min(usual, most)))
    if sigma and f.before.row.size < LEAST_TURNS:
        return replace(level, low=max(0.0, min(level.low, level.value - 1.96 * sigma)), high=max(level.high, level.value + 1.96 * sigma))
    return None


def jitter_that_reorders(f: Fit) -> float:
    """Standard deviation of the data's jitter, ms, where packets change places; 0 else."""
    return math.sqrt(f.forward.variance) if f.forward is not None and f.forward.is_there and is_reordered(f) else 0.0


def spread_out(f: Fit) -> float:
    """By how much the queue may be shorter than it was fitted, ms, because a jitter spread the packets before they came to it.

    The queue is fitted to the times of sending. Of a burst that a jitter spread some packets come sooner, so the link begins sooner to work it
    off, and as long as the queue does not become empty it is shorter by what left meanwhile. Where packets change places it is not seen on which
    side of the queue they do: behind it there is no such difference. So it is no correction of the value, and the interval reaches up to it.
    """
    sigma = jitter_that_reorders(f)
    if f.bottleneck is None or f.delays is None or f.is_before or not sigma:
        return 0.0
    b, arrivals = f.bottleneck, f.delays.arrivals
    late = np.random.default_rng(0).normal(0.0, sigma, arrivals.at.size)
    spread = replace(arrivals, at=np.sort(arrivals.at + late))
    return max(0.0, float(np.mean(arrivals.queue(b.rate, b.burst) - spread.queue(b.rate, b.burst))))


def rate_error(f: Fit, b: FittedBottleneck) -> float:
    """Standard error of the rate, Mbit/s: that of the fit, and what moves the ends of the longest time in which the queue was never empty.

    That is a jitter before the queue, or one on either side of it where packets change places, and at least what the fit leaves.
    """
    moved = max(b.noise, f.sigma_before_queue, jitter_that_reorders(f))
    busy = longest_busy(f.delays.arrivals, b) if f.delays else math.inf
    return math.hypot(b.error, b.rate * moved / busy)


def drift(f: Fit) -> float:
    """Standard error of the mean delay of a queue, ms: what a rate that is off adds up to while the queue is not empty."""
    if f.bottleneck is None or f.delays is None or f.is_before:
        return 0.0
    at = f.delays.arrivals.at
    begun = np.maximum.accumulate(np.where(met_empty(f.delays.arrivals, f.bottleneck), at, at[0]))
    return rate_error(f, f.bottleneck) / f.bottleneck.rate * float(np.mean((at - begun)[f.delays.index]))


def level_of(known: Floats, f: Fit) -> float:
    """The median of anchors, ms, some of which waited; their mean where many vary as the jitter does: a skewed jitter has the base at its mean."""
    seen = math.hypot(*(math.sqrt(s.variance) for s in (f.forward, f.reverse) if s is not None and s.is_there))
    has_mean = known.size >= LEAST_TURNS and float(np.std(known)) < ALIKE * seen
    return _usual(known) if has_mean else float(np.median(known))


def agree(known: Floats, f: Fit) -> bool:
    """Whether several packets that met an idle bottleneck took just as long, and no jitter was seen: then no burst is in what they took."""
    return known.size > 1 and float(np.ptp(known)) < SHARP and not is_varying(f)


def is_never_short(f: Fit) -> bool:
    """Whether hardly any delay is of a packet that met an empty queue: the burst of the bottleneck does not show then, and so the base does not."""
    if f.bottleneck is None or f.is_before:
        return False
    return float(np.mean(f.queue[f.behind.row] <= 2 * 1514 * 8e-3 / f.bottleneck.rate)) < RARELY


def not_above(fitted: Estimate, f: Fit) -> Estimate:
    """A level that lies above the least round trip: where no jitter was seen, that is the base; otherwise the interval reaches down to it.

    However large the burst is on which the level depends, the base is above the least round trip by no more than a jitter reaches. A jitter that a
    queue may only hide, and that nothing shows, widens the interval and leaves the least round trip as the value.
    """
    low = shortest(f)
    least = about(low, fitted.n).low  # packets take time on the links too
    is_bare = f.hidden > STILL and not is_varying(f)
    if not fitted.low > low:
        most = math.inf if is_varying(f) else max(fitted.value, (1 + SYSTEMATIC) * low + REACH * f.hidden)
        return replace(fitted, value=low if is_bare else fitted.value, high=max(low, min(fitted.high, most)))
    if is_varying(f) or is_bare:
        return Estimate(low if is_bare else fitted.value, least, fitted.high, fitted.n, fitted.unit)
    return Estimate(low, least, fitted.high, fitted.n, fitted.unit)


def least_again(f: Fit) -> Estimate | None:
    """The least round trip, ms, where the least delays of each part that is seen came at several times far apart, each time the same; else None.

    A queue that others fill would have to be equally long each time, and a jitter has no such least. Times are far apart where more than the longest
    of the usual delays lies between them: what was sent in one round trip may have met the same queue. Behind a server that is never idle delays are
    on a grid. A jitter of ACKs that would make some take less than no time is cut off there, and those overtake others.
    """
    if f.has_before and usual_delay(f.wire) is not None:
        return None
    parts = [] if f.is_receiver else [(f.behind.at, f.behind.rtt)]
    parts += [(f.wire.t[f.before.row], f.before.rtt)] if f.has_before else []
    for at, delays in parts:
        if delays.size < LEAST_TURNS or not is_sharp(delays[np.argsort(at, kind="stable")]) or is_on_grid(delays):
            return None
        least = np.sort(at[delays < delays.min() + SHARP])
        if jitters.apart(least, least, FAR_APART * float(np.quantile(delays, 0.99))).size < OCCASIONS:
            return None
    low = least_round_trip(f)
    return None if low is None else about(low, sum(int(delays.size) for _, delays in parts))


def without_standing(f: Fit, rtt: Estimate | None) -> Estimate | None:
    """The round trip, whose interval reaches down by what a queue of the flow's own may be all the time: what it hardly ever had less of under way.

    A window of one size keeps such a queue at one length, which each round trip then has in it. Of a flow that was seen from its begin, the handshake
    had none, and of a bottleneck that was idle later its length is known.
    """
    flow = f.flow
    flight, size, t = (np.asarray(flow.segments.get(name, ()), dtype=np.float64) for name in ("flight", "len", "t"))
    if rtt is None or not flow.facts.get("begins_in_mid_connection") or was_idle(f) or flight.size != t.size or not flow.goodput_mbps:
        return rtt
    kept = t > t.min() + 2e6 * rtt.value  # at first nothing seems to be under way
    own = size if f.bottleneck is None else 0.0  # the time that it takes there itself is in no base of a known bottleneck
    least = float(np.quantile((flight - own)[kept], RARELY_LESS)) if kept.any() else math.inf
    return replace(rtt, low=max(0.0, min(rtt.low, rtt.value - least / (flow.goodput_mbps * 125))))


def was_idle(f: Fit) -> bool:
    """Whether a bottleneck is known and packets met it idle, after those with which the capture begins."""
    if f.bottleneck is None or f.delays is None:
        return False
    idle = met_idle(f.delays, f.bottleneck.rate, 5 * max(f.bottleneck.noise, f.sigma_before_queue, 0.5))
    return bool(idle[YOUNG:].any())


def is_on_grid(delays: Floats) -> bool:
    """Whether the delays just above the least one, ms, are whole steps above it, with next to nothing between it and the first.

    A server that is never idle begins its packets one after the other, all equally long, and what is sent as these leave waits for whole ones: the
    same least queue comes again then, though others keep it long. At an idle server some packets met another one's rest, of any length.
    """
    above = np.sort(delays - delays.min())
    above = above[above >= SHARP]
    for step in above[np.diff(above, prepend=-np.inf) > SHARP][:OCCASIONS]:
        near = above[above < (MULTIPLES + 0.5) * step]
        place = np.rint(near / step)
        fits = (np.abs(near - place * step) < min(SHARP, step / 10)) & (place > 0)
        if np.unique(place[fits]).size >= MULTIPLES - 1 and fits.mean() > 0.5:
            return True
    return False


def is_still(f: Fit) -> bool:
    """Whether no jitter was seen, none can be hidden, and the flow was seen from its begin, when it had no queue of its own."""
    if f.flow.facts.get("begins_in_mid_connection") or f.hidden > STILL or f.before_queue is not None:
        return False
    return all(s is not None and not s.is_there for s in (f.forward, f.reverse)[f.has_before :]) and not is_reordered(f)


def is_never_empty(f: Fit) -> bool:
    """Whether delays vary, by no queue of the flow's own and by no jitter that changes the order, and hardly any is near the least.

    Others may fill a queue all the time then, so that the least round trip is none of an empty path. A handshake that took just as long speaks
    against that: two packets that waited equally long would be chance.
    """
    if f.bottleneck is not None or is_reordered(f):
        return False
    sigma = math.sqrt(sum(s.variance for s in (f.forward, f.reverse) if s is not None and s.is_there))
    for delays, part in ((f.behind.rtt, "handshake_receiver_part_ms"), (f.before.rtt, "handshake_sender_part_ms")):
        if delays.size < LEAST_TURNS or (f.is_receiver and part == "handshake_receiver_part_ms") or (not f.has_before and delays is f.before.rtt):
            continue
        low, near = float(delays.min()), float(np.quantile(delays, 0.05))
        if near - low > max(NEAR_MS, NEAR_SHARE * low, JITTERED * sigma) and not is_confirmed(f.flow.facts.get(part), low):
            return True
    return False


def may_queue_back(f: Fit) -> bool:
    """Whether acknowledgements may have waited all the time, behind data of others against the flow: then no round trip is as short as the path's.

    Their delay varies, or does not show apart from that of the data, and the handshake did not take just as long as the least round trip.
    """
    varies = f.reverse is None or f.reverse.is_there
    return varies and not f.is_receiver and not is_confirmed(f.flow.facts.get("handshake_receiver_part_ms"), float(f.behind.rtt.min()))


def is_confirmed(opening: float | None, low: float) -> bool:
    """Whether the handshake took just as long as the least delay, ms: of two packets that had waited, or jitter, that would be chance."""
    return opening is not None and abs(float(opening) - low) <= ANSWERED + 0.0002 * low


def is_opened_so(f: Fit) -> bool:
    """Whether the least round trip behind the capture is the handshake's, and no jitter was seen: a busy queue may hide one, which neither had."""
    if is_reordered(f) or any(s is not None and s.is_there for s in (f.forward, f.reverse)):
        return False
    return is_confirmed(f.flow.facts.get("handshake_receiver_part_ms"), float(f.behind.rtt.min()))


def has_sharp_least(f: Fit) -> bool:
    """Whether the part behind the capture is sharp at its least, and that least is a path's: a busy queue lets jittered packets leave evenly too.

    A capture that begins in mid-connection may never have seen the queue empty; data that change their order have jitter.
    """
    if f.flow.facts.get("begins_in_mid_connection") and f.bottleneck is not None:
        return False
    return not is_reordered(f) and is_sharp(f.behind.rtt)


def without_jitter(f: Fit) -> Estimate:
    """The least round trip, which is the base where delays only ever grow by queues and waiting."""
    return about(shortest(f) + f.step / 2, int(f.behind.row.size))


def about(value: float, count: int) -> Estimate:
    """A round trip, ms, of which `count` packets show the least."""
    return Estimate(value, 0.998 * value - 0.02, 1.002 * value + 0.02, count, "ms")


def shortest(f: Fit) -> float:
    """The least round trip behind the capture, ms; the handshake's may hold the resolution of addresses, which makes it longer, never shorter."""
    part = f.flow.facts.get("handshake_receiver_part_ms")
    return min(float(f.behind.rtt.min()), float(part) if part else math.inf)


def shortest_before(f: Fit) -> float:
    """The least round trip before the capture, ms, the handshake's among them; infinite where none was seen."""
    part = f.flow.facts.get("handshake_sender_part_ms")
    return min(float(f.before.rtt.min(initial=math.inf)), float(part) if part else math.inf)


def least_round_trip(f: Fit) -> float | None:
    """The sum of the least delays of both parts that the capture shows, ms; None where it shows one of them never."""
    parts: list[float] = []
    if not f.is_receiver:
        parts.append(shortest(f) if f.behind.rtt.size else math.nan)
    if f.has_before:
        parts.append(shortest_before(f))
    total = sum(parts)
    return total if math.isfinite(total) else None


def usual_round_trip(f: Fit) -> float | None:
    """The sum of the usual delays of both parts without the flow's own queue, ms: at most that is the base, whatever else varies.

    A jitter that is skewed has its mean, which is the base, above the median.
    """
    parts: list[float] = []
    if not f.is_receiver:
        parts.append(_usual(f.behind.rtt - (0.0 if f.is_before else f.queue[f.behind.row])))
    if f.has_before:
        parts.append(_usual(f.before.rtt - (f.queue[f.before.row] if f.is_before else 0.0)))
    total = sum(parts)
    return total if math.isfinite(total) else None


def _usual(delays: Floats) -> float:
    """The median of delays or, where it is larger, their mean without outliers, ms; NaN of none."""
    known = delays[~np.isnan(delays)]
    return max(float(np.median(known)), float(np.mean(known[jitters.inliers(known)]))) if known.size else math.nan


def unexplained(f: Fit) -> float:
    """How far the usual delay behind the capture lies above the least one, ms, by nothing that was seen: neither a queue nor a sharp least delay.

    A queue that is known leaves every delay at the base, to within a packet's own time.
    """
    if f.is_receiver or f.behind.row.size < LEAST_TURNS or has_sharp_least(f) or is_opened_so(f):
        return 0.0
    rest, low = f.behind.rtt - (0.0 if f.is_before else f.wait[f.behind.row]), shortest(f)
    packet = 1514 * 8e-3 / f.bottleneck.rate if f.bottleneck and not f.is_before else 0.0
    return max(0.0, float(np.nanmedian(rest)) - low - packet - SYSTEMATIC * low)


def within_reach(f: Fit, mean: float, error: float) -> tuple[float, float]:
    """A level and its error, kept between the least round trip and as far above it as independent jitter reaches: what is above that has waited.

    The jitter is that of neighbouring packets, which a queue delays alike.
    """
    s = f.behind
    low = shortest(f)
    if mean < low <= mean + 2 * error + 0.002 * low:
        return low, error
    if f.hidden > STILL:  # a busy queue hides what it was, and how far above the least the level may be
        return max(mean, low), error
    row = np.argsort(s.row, kind="stable")
    delays = jitters.of_instants(s.at[row], s.rtt[row])
    sigma = neighbours(delays) if delays.size > 1 else 0.0
    sigma = max(sigma, f.sigma_before_queue)  # a busy queue delays neighbours alike whatever their jitter was
    if low <= mean <= low + REACH * sigma + 0.002 * low + 2 * error:
        return mean, error
    return low + 3.0 * sigma, max(sigma, 0.003 * low)


def has_no_jitter(f: Fit) -> bool:
    """Whether each part of the round trip that the capture shows has a sharp least value, which independent jitter would blur."""
    behind = f.is_receiver or (f.behind.row.size >= LEAST_TURNS and has_sharp_least(f))
    return behind and (not f.has_before or is_exact(f))


def least(rest: Floats, f: Fit) -> Estimate:
    """A round trip by its least values, where the others waited: as far above their lower end as the jitter is that is known.

    Where waiting hides the jitter, the base lies between the least of them and the middle of a jitter that would spread them so.
    """
    variance = sum(s.variance for s in (f.forward, f.reverse) if s is not None and s.is_there)
    sigma = min(math.sqrt(variance), float(np.quantile(rest, 0.16) - np.quantile(rest, 0.025)))
    low = float(np.quantile(rest, 0.025))
    value = low + 1.96 * sigma
    half = 0.5 * (value - low) + 0.01 * value
    found = Estimate(value, value - half, value + half, int(rest.size), "ms")
    if f.forward is not None and f.reverse is not None and f.hidden <= STILL:
        return found
    reach = 1.96 * float(np.quantile(rest, 0.16) - low)
    return replace(found, low=min(found.low, float(rest.min())), high=found.high + reach)
