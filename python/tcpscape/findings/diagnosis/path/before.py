"""The part of a round trip before the capture, without its queue: by the handshake, and by the turns of later ACKs at the sender."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path import own
from tcpscape.findings.diagnosis.path.bottleneck import windows_of
from tcpscape.findings.diagnosis.path.columns import Turns
from tcpscape.findings.diagnosis.path.jitter import Spread, mean_by_blocks, with_interval
from tcpscape.findings.diagnosis.path.opening import opened
from tcpscape.findings.diagnosis.path.overtaken import usual_delay
from tcpscape.findings.diagnosis.path.state import LEAST_TURNS, SHARP, STILL, Fit, hides_jitter, is_one_sided, is_reordered, is_sharp, starts_late
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats

TURN = 0.015
"""Share of the part before the capture that turns do not show: what the sender waits in the mean (of development captures)."""
RARELY = 0.05
"""Share of the turns below which the handshake's is by chance, where it is one of them."""
UNSEEN_TURNS = 0.2
"""Error of the bound of a jitter by turns, a share: ACKs that others overtake are echoed by no segment."""
ABOVE = 2 / 3
"""How far a round trip may lie above the handshake's, as a share of how far the least one lies below it: of a jitter two deviations, and three."""


def part_before(f: Fit) -> Estimate | None:
    """From the capture to the sender and back: without timestamps the handshake alone shows it."""
    turns = f.before
    opening = handshake(f)
    if f.is_before and starts_late(f):
        f.reasons["rtt_ms"] = Reason("busy at the begin")
        return None
    if turns.row.size < LEAST_TURNS:
        if opening is None:
            f.reasons["rtt_ms"] = Reason("nothing before the capture")
            return None
        return opened(f, opening)
    if is_exact(f):
        value = float(turns.rtt.min()) + f.step / 2
        return Estimate(value, 0.997 * value - 0.02, 1.003 * value + 0.02, int(turns.row.size), "ms")
    w = f.wire
    data = w.t - w.stamp - (f.wait if f.is_before else 0.0)
    data = data[~np.isnan(data)]
    data = data[jitters.inliers(data)]
    windows = windows_of(data, 24, 20)
    _, its_error, blocks = mean_by_blocks(data, windows)
    forward = float(np.median(np.bincount(windows, data) / np.bincount(windows)))
    if (known := own.before(f)) is not None and known.is_jitter:  # without what packets held each other
        forward, its_error = known.level, max(its_error, known.error)
    back = prompt_turn(turns.reverse, w.sender_tick)
    mean, error, k = mean_by_blocks(back, windows_of(back, 24, 10))
    if min(k, blocks) < 2:
        error, its_error, k = float(np.std(back)) / math.sqrt(back.size), float(np.std(data)) / math.sqrt(data.size), 10
    early = overtaken(f)
    value = forward + mean + early
    waiting = 0.02 * value if is_one_sided(turns.reverse, w.sender_tick) else 0.0
    packet = 0.5 * 1514 * 8e-3 / f.bottleneck.rate if f.bottleneck and f.is_before else 0.0
    least_error = math.hypot(TURN * value, 1.2 * early, waiting, packet)
    found = with_interval(value, math.hypot(error, its_error), k, int(turns.row.size), "ms", least_error)
    level = not_beyond(found if opening is None else unwaited(f, with_hidden(f, both(found, opening), opening), opening), f)
    return replace(level, high=max(level.high, with_overtaken(f, forward) + found.high - found.value))


def with_hidden(f: Fit, level: Estimate, opening: Estimate) -> Estimate:
    """A level with the handshake's and with a jitter that others hide, where a queue before the capture lets packets leave at its rate.

    What spreads the turns then may be waiting, which the handshake alone had none of; it is of one packet each way. It may have waited for another
    flow's packet, which takes long on a slow link.
    """
    if not f.is_before or not (hides_jitter(f) or f.hidden > STILL):
        return level
    acks = math.sqrt(max(0.0, f.reverse.variance + 2 * f.reverse.error)) if f.reverse is not None else 0.0
    half = math.hypot(jitters.reach(f.hidden), 1.96 * acks if f.reverse is not None and f.reverse.is_there else jitters.reach(acks))
    packet = 1514 * 8e-3 / f.bottleneck.rate if f.bottleneck else 0.0
    return replace(
        level, low=max(0.0, min(level.low, opening.low, opening.value - half - packet)), high=max(level.high, opening.high, opening.value + half)
    )


def unwaited(f: Fit, level: Estimate, opening: Estimate) -> Estimate:
    """A level whose interval has the handshake's turn too, where nearly all others took longer: they may have waited for the application.

    Where it took longer than the level, which did not wait either, delays vary more than was seen.
    """
    if opening.value > level.high:
        return replace(level, high=opening.high)
    if f.is_before or opening.value >= float(np.quantile(f.before.rtt, RARELY)):
        return level
    return replace(level, low=min(level.low, opening.low), high=max(level.high, opening.high))


def not_beyond(level: Estimate, f: Fit) -> Estimate:
    """A level further above the least turn than the jitter that was seen reaches: one was hidden, and the interval reaches down to that turn.

    The least of n normal delays is about √(2 ln n) deviations below their mean.
    """
    sigma = math.hypot(*(math.sqrt(s.variance) for s in (f.forward, f.reverse) if s is not None and s.is_there), f.sigma_before_queue)
    lowest, n = float(f.before.rtt.min()), int(f.before.row.size)
    if not sigma or level.value <= lowest + (1 + math.sqrt(2 * math.log(n))) * sigma:
        return level
    return Estimate(level.value, min(level.low, lowest), level.high, level.n, level.unit)


def overtaken(f: Fit) -> float:
    """How much earlier ACKs that are echoed came than the others, ms: those that later ones overtook are never echoed (RFC 7323 §4.3).

    Of those sent within the jitter's spread the earliest is echoed: of n normal delays a little less than √(2 ln n) deviations before the mean.
    """
    if f.reverse is None or not f.reverse.is_there:
        return 0.0
    sigma = math.sqrt(f.reverse.variance)
    gap = float(np.median(np.diff(np.sort(f.wire.ack_t)))) if f.wire.ack_t.size > 1 else math.inf
    beside = 2 * sigma / max(gap, 1e-3)
    return max(0.5, 0.75 * math.sqrt(2 * math.log(max(1.0, beside)))) * sigma


def with_overtaken(f: Fit, forward: float) -> float:
    """Up to where the level may lie where no jitter of the ACKs is known, ms: turns show none of those that later ones overtook.

    What the receiver sends beside data of its own is not echoed for other reasons too: where packets change places there, its usual turn is the most.

    :param forward: the level of the data's delays on the sender's clock.
    """
    if f.reverse is not None and f.reverse.is_there:
        return 0.0
    if f.flow.loads_back:
        turns = f.before.rtt - (f.queue[f.before.row] if f.is_before else 0.0)
        return float(np.nanmedian(turns)) if is_reordered(f) else 0.0
    usual = usual_delay(f.wire)
    return 0.0 if usual is None else forward + usual


def is_exact(f: Fit) -> bool:
    """Whether the least of many turns is the handshake's: with jitter, it would be several standard deviations below any single one.

    What leaves at once with the handshake's ACK is the same measurement again, and tells nothing.
    """
    part, turns = f.flow.facts.get("handshake_sender_part_ms"), f.before
    if turns.row.size < LEAST_TURNS or not part:
        return False
    later = turns.rtt[f.wire.t[turns.row] > f.wire.t.min() + float(part)]
    if not later.size or abs(float(later.min()) - float(part)) > SHARP + 0.0002 * float(part) or float(turns.rtt.min()) < float(later.min()) - SHARP:
        return False
    # Delays that a jitter would make less than nothing are cut off there: ACKs that took no time are those that overtook others.
    return (is_sharp(turns.rtt) or not is_reordered(f)) and usual_delay(f.wire) is None


def handshake(f: Fit) -> Estimate | None:
    """From the capture to the sender and back by the SYN-ACK and its ACK: one round trip, without waiting and without a queue of the flow's own.

    It has the jitter of a single packet each way, which is its interval. Addresses were resolved by the SYN before.
    """
    part = f.flow.facts.get("handshake_sender_part_ms")
    if part is None:
        return None
    value, data = float(part), 0.0
    if f.forward is not None and f.forward.is_there:
        data = max(f.sigma_before_queue, math.sqrt(f.forward.variance))
    acks = math.sqrt(max(0.0, f.reverse.variance)) if f.reverse is not None and f.reverse.is_there else 0.0
    if f.before.row.size < LEAST_TURNS or is_reordered(f):
        data = max(data, 0.015 * value)
    if f.varies_in_order:  # by waiting or by a jitter
        data = max(data, f.left[0])
    half = math.hypot(1.96 * data, 1.96 * acks, 0.003 * value, 0.02)
    below = value - float(f.before.rtt.min()) if f.before.row.size >= LEAST_TURNS else 0.0
    if below <= 2 * half:
        return Estimate(value, max(0.0, value - half), value + half, 1, "ms")
    return Estimate(value, max(0.0, value - below), value + ABOVE * below, 1, "ms")  # no waiting makes a turn shorter: a jitter that was not seen


def both(turns: Estimate, opening: Estimate) -> Estimate:
    """Two measurements of one length: by their errors, but the handshake's alone where the turns' is apart from it, since those may have waited."""
    a, b = (turns.high - turns.low) / 2, (opening.high - opening.low) / 2
    if abs(turns.value - opening.value) > 2 * math.hypot(a, b) or not math.isfinite(a):
        return opening
    value = (turns.value / a**2 + opening.value / b**2) / (1 / a**2 + 1 / b**2)
    half = math.hypot(1 / math.sqrt(1 / a**2 + 1 / b**2), abs(turns.value - opening.value) / 4)
    return Estimate(value, max(0.0, value - half), value + half, turns.n, "ms")


def prompt_turn(reverse: Floats, tick: float) -> Floats:
    """The delays of ACKs to the sender, without those after which it waited: where most did, the least ones, moved by what the tick rounds."""
    low, lower, middle = np.quantile(reverse, (0.025, 0.05, 0.5))
    if is_one_sided(reverse, tick):
        return np.asarray(reverse[reverse <= low + tick] * 0 + low + 0.475 * tick)
    return np.asarray(reverse[reverse <= lower + 3 * max(middle - lower, 0.05, 0.45 * tick)])


def acks_before(f: Fit, behind: Spread | None) -> Spread | None:
    """Variance of the ACKs' delay: behind the capture and before it; None where the sender waits, which hides it.

    In which order the ACKs came to the sender is not seen, and the variance lies between what either order makes of what is seen.
    """
    if f.before.row.size < LEAST_TURNS:
        return behind
    part = reverse_before(f.before, f.wire.sender_tick, most_before(f), f.flow.facts.get("handshake_sender_part_ms"))
    if part is None:
        return None
    if not part.is_there:
        part = min(part, varies_at_most(f), key=lambda s: s.most)
        f.left = f.left[0], part.most
        return part if behind is None else behind
    return jitters.plus(part.uncrowded(f.wire.ack_t, jitters.ORDERS, jitters.lower_deviation), behind)


def varies_at_most(f: Fit) -> Spread:
    """No variance of the ACKs' delay before the capture, with the largest that it can have, to which what the sender waits adds.

    A turn is the delay of the ACK and that of the segment that it released. By the sender's clock the part up to the segment's departure is known
    but for its rounding, which the turn does not have, so that it is not in the covariance of the two, as of the round trips behind the capture.
    """
    turns = f.before
    whole = turns.rtt - (f.queue[turns.row] if f.is_before else 0.0)
    known = ~np.isnan(whole)
    known[known] = jitters.inliers(whole[known]) & jitters.inliers(turns.reverse[known])
    if int(known.sum()) < LEAST_TURNS:
        return Spread(0.0, math.inf, 2, 0)
    seen = jitters.covariance(whole[known], turns.reverse[known])
    most = Spread(max(seen.most, jitters.FLOOR) ** 2, 0.0, seen.blocks, seen.n)
    own = most.uncrowded(f.wire.ack_t, jitters.ORDERS, jitters.local_deviation)
    blocks = max(2, seen.blocks)
    return Spread(0.0, ((1 + UNSEEN_TURNS) * own.most) ** 2 / jitters.student(blocks), blocks, seen.n)


def most_before(f: Fit) -> float:
    """The largest variance, ms², that either direction can have before the capture: turns, which no clock rounds, vary by both and by waiting."""
    turns = f.before.rtt - (f.queue[f.before.row] if f.is_before else 0.0)
    turns = turns[~np.isnan(turns)]
    return jitters.lower_deviation(turns) ** 2 if turns.size >= LEAST_TURNS else math.inf


def reverse_before(turns: Turns, tick: float, bound: float, opening: float | None = None) -> Spread | None:
    """Variance of the ACKs' delay before the capture, by the lower half of the turns; None where the sender waits.

    Where the handshake's turn, before which nothing waited, is next to the least of all, waiting is what spreads them: of delays that are spread
    evenly, by 5 % chance.

    :param bound: the largest variance, ms² (:func:`most_before`). :param opening: the handshake's turn, ms.
    """
    if is_one_sided(turns.reverse, tick):
        return None
    x = turns.reverse - np.median(turns.reverse)
    lower = x[x <= 0]
    seen = Spread(float(np.mean(lower**2)), float(np.std(lower**2)) / math.sqrt(lower.size) * 1.5, 12, int(lower.size))
    part = jitters.minus(seen, tick, bound, jitters.RESOLVED_TURNS)
    if part.variance > bound:
        part = replace(part, variance=bound, error=min(part.error, bound / 2))
    is_waiting = opening is not None and opening - float(turns.rtt.min()) < 0.05 * math.sqrt(12 * max(0.0, part.variance))
    return None if part.is_there and is_waiting else part
