"""What the steps of a fit have so far (:class:`Fit`), and the round trip without its queue: the part behind the capture and the part before it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from tcpscape.findings.diagnosis.fitted import Direction
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.bottleneck import YOUNG, FittedBottleneck, QueueDelays, met_idle, windows_of
from tcpscape.findings.diagnosis.path.columns import Samples, Turns, Wire
from tcpscape.findings.diagnosis.path.jitter import Spread, mean_by_blocks, with_interval
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats


@dataclass(slots=True)
class Fit:
    """What the steps of a fit have so far."""

    flow: ObservedFlow
    wire: Wire
    behind: Samples
    """Delays from the capture to the receiver and back."""
    before: Turns
    """Delays from the capture to the sender and back."""
    reasons: dict[str, Reason] = field(default_factory=dict)
    delays: QueueDelays | None = None
    bottleneck: FittedBottleneck | None = None
    is_before: bool = False
    """Whether the bottleneck lies between the sender and the capture."""
    wait: Floats = field(default_factory=lambda: np.empty(0))
    """Of each segment: delay by the queue and by the change of order, ms; NaN where it is not known."""
    queue: Floats = field(default_factory=lambda: np.empty(0))
    """Of each segment: its time in the queue, ms."""
    hidden: float = jitters.FLOOR
    """Most that a forward jitter that was not seen can have, ms."""
    left: tuple[float, float] = (0.0, 0.0)
    """Most that the jitter of the data and of the ACKs can have beside what was seen, ms."""
    before_queue: tuple[float, float, float] | None = None
    """Standard deviation of the forward delay before the queue, ms, and its interval."""
    beside: Spread | None = None
    """Of the forward delay on the other side of the capture than the queue."""
    jitter_on: Direction | None = None
    varies_in_order: bool = False
    """Whether the forward delay varies, and packets keep an order that independent delays of that size would change."""
    forward: Spread | None = None
    reverse: Spread | None = None
    reverse_behind: Spread | None = None
    """Of the ACKs' delay behind the capture, on the way to it."""

    @property
    def is_receiver(self) -> bool:
        """Whether the capture is where the data arrive."""
        return self.flow.vantage == "receiver"

    @property
    def has_before(self) -> bool:
        """Whether a part of the path lies before the capture."""
        return self.flow.vantage != "sender"


SHARP = 0.01
"""ms in which the least delays lie where only queues and waiting lengthen the others."""
CUT_OFF, INDEPENDENT = 0.01, 0.15
"""Share of the delays below which those at the least are few; spread of neighbours, of the median above the least, from which they are independent:
of a normal jitter that is cut off at three deviations it is a third."""
ANSWERED = 0.1
"""ms that a host takes to answer, at the most."""
STILL = 0.1
"""ms of a hidden jitter, above which the least round trip is not taken for the base."""
NEAR_MS, NEAR_SHARE = 1.0, 0.03
"""Delays that are within so many ms, or such a share, of the least one are near it."""
RARELY = 0.02
"""Share of the delays below which those of packets that met an empty queue are rare."""
SHORT = 0.5
"""Share of packets that met a short queue, below which a jitter before it is hidden where it keeps the order."""
JITTERED = 6.0
"""Standard deviations of a jitter that was seen, within which of the least delay a twentieth of the others lie."""
SYSTEMATIC = 0.006
"""Share of the round trip that samples do not show: the choice of those that can be measured (of development captures)."""
TURN = 0.015
"""The same of a part before the capture: what the sender waits in the mean (of development captures)."""
FAR = 5.0
"""Standard deviations of a jitter in which two of a few delays hardly ever follow each other; as many times twice what those below them spread."""
ALIKE = 1.5
"""Deviations of the jitter that was seen, below which the deviation of delays without a queue is taken for that jitter's."""
REACH = 5.5
"""Deviations that the least of many delays lies below their mean, at the most."""
ABOVE = 2 / 3
"""How far a round trip may lie above the handshake's, as a share of how far the least one lies below it: of a jitter two deviations, and three."""
ONE_SIDED = 1.8
"""(q50 − q16) / (q16 − q2.5) above which a delay is longer than its least by waiting: 1.03 of a normal jitter, 2.5 of an even wait."""


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

    The handshake's is not among them: on a path that has not been used for a while it may hold the resolution of addresses too. Nor are those far
    beyond several that are close to each other: their ACK waited for another segment, or was lost.
    """
    if f.bottleneck and f.delays and not f.is_before and f.delays.index.size == f.behind.row.size:
        noise = max(f.bottleneck.noise, f.before_queue[0] if f.before_queue else 0.0, 0.5)
        idle = met_idle(f.delays, f.bottleneck.rate, 5 * noise)
        if f.flow.facts.get("begins_in_mid_connection"):
            idle[: min(idle.size, YOUNG)] = False
        known = np.sort(f.behind.rtt[idle])
        is_far = np.diff(known)[1:] > np.maximum(FAR * noise, FAR * 2 * (known[1:-1] - known[:1]))
        return np.asarray(known[: 2 + int(np.argmax(is_far))] if is_far.any() else known)
    return np.empty(0)


def is_reordered(f: Fit) -> bool:
    """Whether data came in another order than they were sent, more often than a path without jitter does."""
    return int(np.sum(f.wire.fate == REORDERED)) > max(10, 0.003 * f.wire.t.size)


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
    rest = s.rtt - (0.0 if f.is_before else f.wait[s.row])
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
    known = anchors(f)
    small = windows_of(rest, rest.size, 20)
    spread = math.sqrt(float(np.mean((rest - (np.bincount(small, rest) / np.bincount(small))[small]) ** 2)))
    if are_trusted(known, mean):
        level, its_error = level_of(known, f), 1.25 * max(spread, 0.02) / math.sqrt(known.size)
        if is_never_short(f) or abs(level - mean) > 2.5 * math.hypot(its_error, error) + SYSTEMATIC * mean:
            mean, error, k = level, its_error, max(10, min(24, known.size))
    mean, error = within_reach(f, mean, error)
    packet = 0.0
    if f.bottleneck and not f.is_before and not agree(known, f):  # a burst is known to half a packet, or not at all
        packet = (0.5 * 1514 if known.size >= 3 else max(1514.0, f.bottleneck.burst / 2)) * 8e-3 / f.bottleneck.rate
    fitted = with_interval(mean, error, k, int(rest.size), "ms", math.hypot(SYSTEMATIC * mean, packet))
    return not_above(fitted, f)


def level_of(known: Floats, f: Fit) -> float:
    """The median of anchors, ms, some of which waited; their mean where many vary as the jitter does: a skewed jitter has the base at its mean."""
    seen = math.hypot(*(math.sqrt(s.variance) for s in (f.forward, f.reverse) if s is not None and s.is_there))
    has_mean = known.size >= LEAST_TURNS and float(np.std(known)) < ALIKE * seen
    return _usual(known) if has_mean else float(np.median(known))


def agree(known: Floats, f: Fit) -> bool:
    """Whether several packets that met an idle bottleneck took just as long, and no jitter was seen: then no burst is in what they took."""
    return known.size > 1 and float(np.ptp(known)) < SHARP and not is_varying(f)


def is_varying(f: Fit) -> bool:
    """Whether a jitter was seen, or delays that vary in order."""
    return is_reordered(f) or f.varies_in_order or any(s is not None and s.is_there for s in (f.forward, f.reverse))


def is_never_short(f: Fit) -> bool:
    """Whether hardly any delay is of a packet that met an empty queue: the burst of the bottleneck does not show then, and so the base does not."""
    if f.bottleneck is None or f.is_before:
        return False
    return float(np.mean(f.queue[f.behind.row] <= 2 * 1514 * 8e-3 / f.bottleneck.rate)) < RARELY


def hides_jitter(f: Fit) -> bool:
    """Whether most packets met a queue, which lets them leave at its rate whenever they came: it hides a jitter before it that keeps their order."""
    if f.bottleneck is None:
        return False
    met = f.queue[f.before.row if f.is_before else f.behind.row]
    met = met[~np.isnan(met)]
    return met.size > 0 and float(np.mean(met <= 2 * 1514 * 8e-3 / f.bottleneck.rate)) < SHORT


def not_above(fitted: Estimate, f: Fit) -> Estimate:
    """A level that lies above the least round trip: where no jitter was seen, that is the base; otherwise the interval reaches down to it.

    However large the burst is on which the level depends, the base is above the least round trip by no more than a jitter reaches.
    """
    low = shortest(f)
    if not fitted.low > low:
        most = math.inf if is_varying(f) else max(fitted.value, (1 + SYSTEMATIC) * low + REACH * f.hidden)
        return replace(fitted, high=min(fitted.high, most))
    if is_varying(f) or f.hidden > STILL:
        return Estimate(fitted.value, low, fitted.high, fitted.n, fitted.unit)
    return Estimate(low, 0.998 * low - 0.02, fitted.high, fitted.n, fitted.unit)


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


def is_confirmed(opening: float | None, low: float) -> bool:
    """Whether the handshake took just as long as the least delay, ms: of two packets that had waited, or jitter, that would be chance."""
    return opening is not None and abs(float(opening) - low) <= ANSWERED + 0.0002 * low


def is_opened_so(f: Fit) -> bool:
    """Whether the least round trip behind the capture is the handshake's, and no jitter was seen: a busy queue may hide one, which neither had."""
    if is_reordered(f) or any(s is not None and s.is_there for s in (f.forward, f.reverse)):
        return False
    return is_confirmed(f.flow.facts.get("handshake_receiver_part_ms"), float(f.behind.rtt.min()))


def is_sharp(x: Floats) -> bool:
    """Whether several delays are the least one to within 0.01 ms, and few are just above: of independent jitter there are fewest at its end.

    A jitter that is cut off where it would be less than nothing has a sharp end too. Few delays are there, and neighbours differ as much as any
    two, while a queue delays neighbours alike.

    :param x: in the order of sending.
    """
    above = x - x.min()
    first, second = int(np.sum(above < SHARP)), int(np.sum((above >= SHARP) & (above < 2 * SHARP)))
    is_cut_off = first < CUT_OFF * x.size and neighbours(x) > INDEPENDENT * float(np.median(above))
    return first >= 5 and first > 3 * second and not is_cut_off


def has_sharp_least(f: Fit) -> bool:
    """Whether the part behind the capture is sharp at its least, and that least is a path's: a busy queue lets jittered packets leave evenly too.

    A capture that begins in mid-connection may never have seen the queue empty; data that change their order have jitter.
    """
    if f.flow.facts.get("begins_in_mid_connection") and f.bottleneck is not None:
        return False
    return not is_reordered(f) and is_sharp(f.behind.rtt)


def without_jitter(f: Fit) -> Estimate:
    """The least round trip, which is the base where delays only ever grow by queues and waiting."""
    value = shortest(f)
    return Estimate(value, 0.998 * value - 0.02, value + 0.002 * value + 0.02, int(f.behind.row.size), "ms")


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


def starts_late(f: Fit) -> bool:
    """Whether the capture begins in mid-connection and the queue, by what it shows, was busy for more than half of the packets."""
    if not f.flow.facts.get("begins_in_mid_connection") or f.bottleneck is None:
        return False
    b = f.bottleneck
    return float(np.mean(b.queue > 1514 * 8e-3 / b.rate)) > 0.5


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
    sigma = neighbours(s.rtt[np.argsort(s.row, kind="stable")])
    if f.before_queue:  # a busy queue delays neighbours alike whatever their jitter was
        sigma = max(sigma, f.before_queue[0])
    if low <= mean <= low + REACH * sigma + 0.002 * low + 2 * error:
        return mean, error
    return low + 3.0 * sigma, max(sigma, 0.003 * low)


def neighbours(x: Floats) -> float:
    """Standard deviation of independent delays, by the middle half of the differences of neighbours: jumps between bursts are not in it."""
    low, high = np.quantile(np.diff(x), (0.25, 0.75))
    return float(high - low) / 1.349 / math.sqrt(2)


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
        elif is_reordered(f) and f.is_receiver:
            f.reasons["rtt_ms"] = Reason("handshake alone")
            return None
        return opening
    if is_exact(f):
        value = float(turns.rtt.min())
        return Estimate(value, 0.997 * value - 0.02, 1.003 * value + 0.02, int(turns.row.size), "ms")
    w = f.wire
    data = w.t - w.stamp - (f.wait if f.is_before else 0.0)
    data = data[~np.isnan(data)]
    data = data[jitters.inliers(data)]
    windows = windows_of(data, 24, 20)
    _, its_error, blocks = mean_by_blocks(data, windows)
    forward = float(np.median(np.bincount(windows, data) / np.bincount(windows)))
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
    return not_beyond(found if opening is None else with_hidden(f, both(found, opening), opening), f)


def with_hidden(f: Fit, level: Estimate, opening: Estimate) -> Estimate:
    """A level with the handshake's and with a jitter that others hide, where a queue before the capture lets packets leave at its rate.

    What spreads the turns then may be waiting, which the handshake alone had none of; it is of one packet each way.
    """
    if not f.is_before or not (hides_jitter(f) or f.hidden > STILL):
        return level
    acks = math.sqrt(max(0.0, f.reverse.variance + 2 * f.reverse.error)) if f.reverse is not None else 0.0
    half = math.hypot(jitters.reach(f.hidden), 1.96 * acks if f.reverse is not None and f.reverse.is_there else jitters.reach(acks))
    return replace(level, low=max(0.0, min(level.low, opening.low, opening.value - half)), high=max(level.high, opening.high, opening.value + half))


def not_beyond(level: Estimate, f: Fit) -> Estimate:
    """A level further above the least turn than the jitter that was seen reaches: one was hidden, and the interval reaches down to that turn.

    The least of n normal delays is about √(2 ln n) deviations below their mean.
    """
    sigma = math.hypot(
        *(math.sqrt(s.variance) for s in (f.forward, f.reverse) if s is not None and s.is_there), f.before_queue[0] if f.before_queue else 0.0
    )
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
    return is_sharp(turns.rtt) or not is_reordered(f)


def has_no_jitter(f: Fit) -> bool:
    """Whether each part of the round trip that the capture shows has a sharp least value, which independent jitter would blur."""
    behind = f.is_receiver or (f.behind.row.size >= LEAST_TURNS and has_sharp_least(f))
    return behind and (not f.has_before or is_exact(f))


def handshake(f: Fit) -> Estimate | None:
    """From the capture to the sender and back by the SYN-ACK and its ACK: one round trip, without waiting and without a queue of the flow's own.

    It has the jitter of a single packet each way, which is its interval. Addresses were resolved by the SYN before.
    """
    part = f.flow.facts.get("handshake_sender_part_ms")
    if part is None:
        return None
    value, data = float(part), 0.0
    if f.forward is not None and f.forward.is_there:
        data = max(f.before_queue[0] if f.before_queue else 0.0, math.sqrt(f.forward.variance))
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


def is_one_sided(x: Floats, tick: float = 0.0) -> bool:
    """Whether delays are spread by waiting, which has a sharp lower end, rather than by jitter.

    :param tick: ms of the timestamps' tick that rounds them, which alone spreads them so.
    """
    low, lower, middle = np.quantile(x, (0.025, 0.16, 0.5))
    return bool(middle - lower > max(0.02 + ONE_SIDED * (lower - low), 0.6 * tick))


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


REORDERED = 1
"""Fate of a segment that came after a later one."""
UNSEEN_TURNS = 0.2
"""Error of the bound of a jitter by turns, a share: ACKs that others overtake are echoed by no segment."""
LEAST_TURNS = 30
"""Turns below which they do not tell the part before the capture."""


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
