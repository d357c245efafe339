"""From a flow's columns to its path: the order of the steps, and what is said where a step cannot answer."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tcpscape.findings.diagnosis.fitted import FittedPath
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path import acks as acknowledgements
from tcpscape.findings.diagnosis.path import base, before, changes, clock, hidden, losses, state
from tcpscape.findings.diagnosis.path import bottleneck as arriving
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.bottleneck import PACKET, FittedBottleneck, QueueDelays, delays_of, jittered
from tcpscape.findings.diagnosis.path.bottleneck import fit as fit_bottleneck
from tcpscape.findings.diagnosis.path.columns import LOST, REORDERED, sampled, turns_of, wire_of
from tcpscape.findings.diagnosis.path.jitter import Spread, with_interval
from tcpscape.findings.diagnosis.path.state import Fit
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats
from tcpscape.stats.special import ndtr

LEAST = 30
"""Samples below which nothing is fitted."""
RATE_ERROR = 0.015
"""Relative standard error above which a rate is not identifiable: half of the interval is then above 3 %."""
RATE_METHOD, RATE_VARYING, RATE_BURSTS = 0.0015, 0.008, 0.03
"""Error of a rate by the method itself, a share, on development captures: in general, behind jitter, and of super-packets, whose parts leave the host
when no capture sees it."""
METHOD = 0.12
"""Error of a jitter by the method itself, a share, on development captures: other distributions than the normal one that is simulated."""
UNKNOWN_QUEUE = 0.2
"""The same where a queue was not identified, or the capture was not at the sender: what short bursts and waiting add is in the jitter."""
UNCOUNTED = 0.025
"""Share of the segments that may have passed the bottleneck beside those that are known to, above which its rate is not known to 5 %."""
HIDDEN = 0.1
"""ms of a jitter that was not seen, above which it is not said that there is none."""
GROWN = 0.5
"""Packets by which a queue must grow and shrink to be one."""
ROUNDED = 2.0
"""Ticks of the timestamps that a queue must grow by to stand out of their rounding."""
IMPOSSIBLE = 0.05
"""Share of the turns that may be shorter than a queue was, by what else was counted into it, before there is none."""
TICK_NOISE = 0.45
"""Ticks by which rounding alone moves delays, as a robust standard deviation, and a little more."""
SHARP_RATE = 3e-4
"""Relative standard error up to which a rate is that of a server which the flow alone keeps busy."""
EXPLAINED, SHORT_EXPLAINED = 0.1, 0.5
"""Share of the delays' variance that a queue must explain to be one, and one of at most :data:`SHORT` packets: of each burst only one or two waited
then, so that a larger bucket of tokens beside a higher rate explains nearly as much."""
SHORT = 3.0
"""Packets."""
SHARED_QUEUE = Reason("shared queue")
IN_ORDER = Reason("delays vary in order", {"ms": None})


def fit(flow: ObservedFlow) -> FittedPath:
    """The path that explains a flow; what its packets do not show is None, with the reason."""
    if not flow.segments or not flow.acks or flow.segments["t"].size < LEAST or flow.acks["t"].size < LEAST:
        return nothing(Reason("few packets"))
    wire = wire_of(flow)
    f = Fit(flow, wire, sampled(wire), turns_of(wire), clock.step_of(flow))
    f.wait, f.queue = np.zeros(wire.t.size), np.zeros(wire.t.size)
    find_bottleneck(f)
    f.forward, f.reverse = spreads(f)
    base.anchor(f)
    f.forward, f.reverse = spreads(f)
    find_direction(f)
    find_reordered(f)
    return answer(f)


def nothing(reason: Reason) -> FittedPath:
    """A path of which nothing is identifiable."""
    names = [n for n in FittedPath.__dataclass_fields__ if n not in ("changes", "reasons")]
    return FittedPath(**dict.fromkeys(names), reasons=dict.fromkeys(names, reason))  # type: ignore[arg-type]


def find_bottleneck(f: Fit) -> None:
    """Looks for a queue behind the capture, then before it."""
    if not f.is_receiver and f.behind.row.size >= LEAST:
        fit_queue(f, delays_behind(f))
    if f.bottleneck is None and f.has_before and f.wire.sender_tick:
        f.is_before = True  # the steps of a fit ask where its queue is
        fit_queue(f, delays_before(f))
        f.is_before = f.bottleneck is not None


def delays_behind(f: Fit) -> QueueDelays:
    """Delays behind the capture, by round trips, or one way where the ACKs' jitter is more than the rounding of timestamps."""
    s, w = f.behind, f.wire
    arrivals = arriving.before_bottleneck(w, w.cover, float(s.rtt.min()))
    place = arrivals.places(s.row, w.t.size)
    s, place = s.kept(place >= 0), place[place >= 0]
    order = np.argsort(place, kind="stable")
    s, place = s.taken(order), place[order]
    f.behind = s
    is_noisy = bool(w.tick) and float(np.std(s.reverse)) > 1.2 * w.tick / math.sqrt(12)
    return delays_of(arrivals, place, s.at, s.forward, w.tick) if is_noisy else delays_of(arrivals, place, s.at, s.rtt)


def delays_before(f: Fit) -> QueueDelays:
    """One-way delays before the capture, by the sender's clock."""
    w = f.wire
    arrivals = arriving.behind_bottleneck(w)
    place = np.arange(arrivals.at.size)
    return delays_of(arrivals, place, arrivals.at, (w.t - w.stamp)[arrivals.row], w.sender_tick)


def fit_queue(f: Fit, d: QueueDelays) -> None:
    """Fits the queue, and the jitter before it."""
    f.delays = d
    f.wait[d.arrivals.row[d.index]] = (d.arrivals.at - d.arrivals.sent)[d.index]
    if d.index.size < LEAST:
        return
    b = fit_bottleneck(d)
    if b is None or not is_queue(b, d.tick) or (f.is_before and is_longer_than_turns(f, d, b)):
        return
    if is_shared(f, b, d.tick):
        f.reasons["rate_mbps"] = SHARED_QUEUE
        return
    keep(f, d, b)
    find_jitter_before(f, d, b)


def is_longer_than_turns(f: Fit, d: QueueDelays, b: FittedBottleneck) -> bool:
    """Whether packets were in that queue for longer than the whole turns that they ended, beyond the clock's ticks: then it is none.

    An application's period beside that of the sender's clock makes its rounded times drift as a queue does.
    """
    queue = np.full(f.wire.t.size, np.nan)
    queue[d.arrivals.row[d.index]] = b.queue[d.index]
    left = f.before.rtt - queue[f.before.row]
    left = left[~np.isnan(left)]
    return left.size >= state.LEAST_TURNS and float(np.quantile(left, IMPOSSIBLE)) < -ROUNDED * d.tick


def keep(f: Fit, d: QueueDelays, b: FittedBottleneck) -> None:
    """Notes a fit of the queue, and the delay that it gives each segment."""
    f.bottleneck, f.delays = b, d
    rows = d.arrivals.row[d.index]
    f.wait = np.full(f.wire.t.size, np.nan)
    f.wait[rows] = b.wait[d.index]
    f.queue = np.full(f.wire.t.size, np.nan)
    f.queue[rows] = b.queue[d.index]


def find_jitter_before(f: Fit, d: QueueDelays, b: FittedBottleneck) -> None:
    """Standard deviation of the forward delay before the queue, ms: on its side of the capture, as what is on the other side shows as it is.

    A busy queue hides it: packets leave at its rate whenever they came, and only their order tells. So the spread that a jitter would give to
    these packets is simulated, and the jitter chosen whose spread is the one seen.
    """
    ahead, behind = forward_parts(f)
    forward, f.beside = (ahead, behind) if f.is_before else (behind, ahead)
    if forward is None:
        return
    seen = max(math.sqrt(max(0.0, forward.variance)), jitters.FLOOR)
    tried = max(seen, 12.0 / b.rate) * np.geomspace(0.01, 2.0, 14)
    given = []
    for sigma in tried:
        draw = jittered(d, b, float(sigma))
        given.append(math.sqrt(max(1e-12, jitters.covariance(draw, draw).variance)))
    grows = np.maximum.accumulate(np.array(given) * (1 + 1e-9 * np.arange(14)))
    widths = [max(x, 1e-9) for x in ends(forward.estimate(METHOD))]
    found = [float(np.exp(np.interp(math.log(x), np.log(grows), np.log(tried)))) for x in widths]
    if forward.is_there:
        f.before_queue = (found[0], found[1] if found[1] > tried[0] else 0.0, max(found[2], found[0] * 1.02))
    else:
        f.hidden = max(found[2], jitters.FLOOR)


def is_queue(b: FittedBottleneck, tick: float = 0.0) -> bool:
    """Whether the queue explains delays, its rate is known, and it grew: packets at equal distances fit a link that takes just as long for each.

    :param tick: ms by which delays are rounded: a queue that grows by less than two of them is rounding.
    """
    packet = PACKET * 8e-3 / b.rate
    grown = float(np.subtract(*np.quantile(b.queue, (0.98, 0.02))))
    is_known = b.explained > (EXPLAINED if grown > SHORT * packet else SHORT_EXPLAINED) and b.error / b.rate < RATE_ERROR
    return is_known and grown > max(GROWN * packet, ROUNDED * tick)


def is_shared(f: Fit, b: FittedBottleneck, tick: float) -> bool:
    """Whether others' packets were served between the flow's own, so that what fits best is a share of the bottleneck and not its rate.

    What a flow alone in a queue waits is known to less than a packet's own time. Where half of the delays are off by more than that, data keep their
    order, as behind no jitter that is independent, and the rate is not sharp, as it is where a flow saturates a server of its own, others were there.
    """
    off = math.sqrt(max(0.0, b.noise**2 - (TICK_NOISE * tick) ** 2))
    return off > PACKET * 8e-3 / b.rate and b.error / b.rate > SHARP_RATE and not state.is_reordered(f)


def spreads(f: Fit) -> tuple[Spread | None, Spread | None]:
    """Variances of the delay of each direction, without the queue's; None without timestamps."""
    w, s = f.wire, f.behind
    f.left, reverse = (0.0, 0.0), None
    ahead, behind = forward_parts(f)
    if behind is not None:
        rest = s.rtt - (0.0 if f.is_before else f.queue[s.row])
        ok = jitters.inliers(rest)
        plain = ok & s.is_plain
        chosen = plain if plain.sum() > max(200, 0.2 * ok.sum()) else ok
        reverse = jitters.covariance(rest[chosen], s.reverse[chosen])
        if reverse.is_there and jitters.order_is_kept(w.ack_stamp, w.ack_t, math.sqrt(reverse.variance)):
            reverse = reverse.uncrowded(jitters.spread_over_ticks(w.ack_stamp, w.tick), ("held",), jitters.local_deviation)
    f.reverse_behind = reverse
    if f.has_before and w.sender_tick:
        if not before.is_exact(f):
            reverse = before.acks_before(f, reverse)
        if w.tick == 0:
            reverse = None
    if ahead is not None and behind is not None and not ahead.is_there:
        f.left = ahead.most, f.left[1]
        return behind, reverse
    return behind if ahead is None else jitters.plus(ahead, behind), reverse


def forward_parts(f: Fit) -> tuple[Spread | None, Spread | None]:
    """Variances of the data's delay before the capture and behind it, without the queue's; None where they are not seen."""
    w, s = f.wire, f.behind
    ahead = behind = None
    if s.row.size >= LEAST and w.tick and not f.is_receiver:
        rest = s.rtt - (0.0 if f.is_before else f.queue[s.row])
        ok = jitters.inliers(rest)
        one_way = (rest - s.reverse)[ok]
        if f.bottleneck is None and state.is_one_sided(one_way, w.tick) and not state.is_reordered(f):
            return None, None  # ACKs that waited, or bursts that queued
        behind = jitters.covariance(rest[ok], one_way)
        if f.bottleneck is None:
            row = np.argsort(s.row[ok], kind="stable")
            behind = jitters.without_jumps(behind, jitters.of_instants(s.at[ok][row], one_way[row]), w.tick)
    if f.has_before and w.sender_tick:
        one_way = w.t - w.stamp - (f.queue if f.is_before else 0.0)
        one_way = one_way[~np.isnan(one_way)]
        one_way = one_way[jitters.inliers(one_way)]
        if one_way.size >= LEAST:
            ahead = jitters.minus(jitters.covariance(one_way, one_way), w.sender_tick, before.most_before(f))
    return ahead, behind


def find_direction(f: Fit) -> None:
    """Which direction has the jitter."""
    s, w = f.behind, f.wire
    if base.has_no_jitter(f):
        f.forward = f.reverse = jitters.Spread(0.0, 0.0, 12, max(s.row.size, f.before.row.size))
        f.before_queue, f.hidden, f.jitter_on = None, jitters.FLOOR, "none"
        f.left = (
            (HIDDEN, HIDDEN) if f.has_before else (0.0, 0.0)
        )  # that the handshake's turn is the least is frequent where delays are skewed, as a Pareto's
        return
    f.hidden = max(f.hidden, hidden.kept_in_order(f))
    if f.forward is not None and f.forward.is_there and keeps_order(f):
        f.left = math.sqrt(f.forward.variance), f.left[1]
        f.forward = jitters.Spread(0.0, f.forward.error, f.forward.blocks, f.forward.n)
        f.before_queue, f.varies_in_order = None, True
        f.hidden = max(f.hidden, float(np.quantile(np.diff(np.sort(w.t)), 0.25)) / 2)
    if f.forward is not None and f.reverse is not None:
        f.jitter_on = jitters.direction(of_data(f, f.forward), f.reverse, f.left)
        if f.jitter_on in (None, "reverse") and state.is_reordered(f) and f.reverse.is_there:  # the data's jitter shows by their order
            is_sure = int(np.sum(w.fate == REORDERED)) > int(np.sum(w.fate == LOST))  # of many losses a few seem to be late
            f.jitter_on = "both" if is_sure and f.reverse_behind is not None and f.reverse_behind.is_there else None
        if f.jitter_on is None:
            unseen = max(f.left[1], f.reverse.most) if f.forward.is_there else max(f.left[0], f.forward.most)
            f.reasons["jitter_on"] = Reason("other direction unresolved", {"ms": unseen})
        if f.jitter_on == "none" and (beyond := base.unexplained(f)) > state.STILL:
            f.hidden = max(f.hidden, beyond)
    elif f.flow.vantage == "sender" and s.row.size >= LEAST:
        rest = s.rtt - f.queue[s.row]
        rest = rest[jitters.inliers(rest)]
        total = jitters.covariance(rest, rest)
        if not total.is_there:
            f.jitter_on, f.left = "none", (total.most, total.most)


def of_data(f: Fit, seen: Spread) -> Spread:
    """The variance of the data's own delay: a queue shows less of it where it is busy, and more where packets change places before it."""
    if f.before_queue is None:
        return seen
    own = f.before_queue[0] ** 2 + (f.beside.variance if f.beside is not None and f.beside.is_there else 0.0)
    return replace(seen, variance=own, error=seen.error * own / seen.variance) if seen.variance > 0 else seen


def keeps_order(f: Fit) -> bool:
    """Whether data keep their order though independent delays of the spread that was seen would change it: then waiting is what spreads them."""
    if f.forward is None or state.is_reordered(f):
        return False
    w = f.wire
    gap = np.diff(np.sort(w.t))
    sigma = f.before_queue[0] if f.before_queue else math.sqrt(f.forward.variance)
    expected = float(np.sum(ndtr(-gap[gap > 0] / (math.sqrt(2) * sigma))))
    return expected > 30 and int(np.sum(w.fate == REORDERED)) < 0.1 * expected


def answer(f: Fit) -> FittedPath:
    """The fit as its type."""
    w, b, reasons = f.wire, f.bottleneck, f.reasons
    acks_lost = acknowledgements.lost(f.flow)
    rate, found = rate_and_losses(f, acks_lost if isinstance(acks_lost, Estimate) else None)
    why = {
        "loss_pct": (found.random, found.reason),
        "queue_loss_pct": (found.queue, found.reason),
        "buffer_bytes": (found.buffer, found.buffer_reason),
    }
    reasons |= {name: reason for name, (value, reason) in why.items() if value is None and reason}
    rtt = base.round_trip(f)
    is_loaded_back = f.flow.loads_back or f.flow.others_load_back
    is_late = bool(f.flow.facts.get("begins_in_mid_connection")) and base.least_again(f) is None
    if rtt is not None and is_loaded_back and (is_late or (f.flow.others_load_back and f.flow.others_before)):
        rtt = replace(rtt, low=0.0)  # no handshake shows the way of an acknowledgement without the queue of data there
    rtt = base.without_standing(f, rtt)
    one, jf, jr = (clock.jitter(f, each) for each in jitter_estimates(f))
    if one is not None and f.jitter_on != "none" and one.value < f.step / 2:
        one = jf = jr = f.jitter_on = None
        reasons |= dict.fromkeys(("jitter_ms", "jitter_on"), Reason("coarse clock", {"ms": f.step}))
    kept = order_kept(f)
    is_queue = is_loaded_back and f.reverse is not None and f.reverse.is_there
    if is_queue and kept is False and f.jitter_on != "forward":  # its acknowledgements have jitter, and how much of it is their queue does not show
        one, jr, f.jitter_on = jf, None, None
        reasons |= dict.fromkeys(("jitter_reverse_ms", "jitter_on", *(() if jf else ("jitter_ms",))), IN_ORDER)
    shows_no_order = f.is_receiver and f.jitter_on == "reverse" and f.bottleneck is None
    is_others = one is not None and acknowledgements.are_queued(f)
    may_be_others = bool(kept or f.varies_in_order or base.is_never_empty(f) or shows_no_order or is_others or (is_queue and kept is not False))
    if may_be_others:
        rtt = base.without_standing(f, withheld(f, rtt))
        if f.jitter_on != "reverse" or kept is not False:  # ACKs that change places have jitter, whatever delays the data
            one = jr = None
        jf = f.jitter_on = None
        reasons |= dict.fromkeys(("jitter_forward_ms" if one else "jitter_ms", "jitter_on"), IN_ORDER)
        if f.bottleneck is None and found.random is not None:  # a queue that others fill, never seen empty, may have dropped any of them
            found = replace(found, random=replace(found.random, low=0.0))
    rtt = clock.round_trip(f, rtt)
    reasons |= {"queue": why_queue} if (why_queue := unseen_queue(f, may_be_others)) else {}
    reasons |= {"ack_loss_pct": acks_lost} if isinstance(acks_lost, Reason) else {}
    found_changes = changes.found(f.flow, w, f.behind, f.before, rate.value if rate else None)
    reasons |= changes.reasons(found_changes)
    return FittedPath(
        rtt_ms=rtt,
        jitter_ms=one,
        jitter_on=f.jitter_on,
        jitter_forward_ms=jf,
        jitter_reverse_ms=jr,
        distribution=distribution(f),
        order_kept=kept,
        correlation_ms=correlation(f),
        loss_pct=found.random,
        queue_loss_pct=found.queue,
        ack_loss_pct=acks_lost if isinstance(acks_lost, Estimate) else None,
        rate_mbps=rate,
        buffer_bytes=found.buffer,
        queue="self-induced" if b else None if "queue" in reasons else "none",
        changes=tuple(found_changes),
        reasons=reasons,
    )


def rate_and_losses(f: Fit, acks_lost: Estimate | None) -> tuple[Estimate | None, losses.Losses]:
    """The bottleneck's rate, Mbit/s, and what was lost; None with a reason."""
    w, b, reasons = f.wire, f.bottleneck, f.reasons
    sigma = math.sqrt(max(0.0, f.forward.variance)) if f.forward and f.forward.is_there else 0.0
    skip = arriving.exposed(w.t, np.sort(w.again_t), 4.5 * sigma) if w.tick else np.zeros(w.t.size, dtype=bool)
    level = delay_levels(f)
    found = losses.of_queue(w, skip, f.delays, b, sigma, level) if b and f.delays else losses.of_path(w, skip, level)
    if losses.are_guessed(f.flow.facts):
        found = replace(found, random=None, queue=None, reason=Reason("repeated without SACK"))
    elif found.random is not None:
        found = replace(found, random=losses.beside_others(found.random, f.flow.facts, acks_lost))
    if b is None:
        reasons.setdefault("rate_mbps", Reason("no queue grew"))
        return None, found
    if (error := base.rate_error(f, b)) > RATE_ERROR * b.rate:
        reasons["rate_mbps"] = Reason("short bursts")
        return None, replace(found, queue=None, reason=reasons["rate_mbps"])
    if losses.may_have_passed(f.flow.facts) > UNCOUNTED:
        reasons["rate_mbps"] = Reason("segments discarded")
        return None, replace(found, buffer=None, buffer_reason=Reason("segments discarded"))
    rate = with_interval(b.rate, error, 24, int(f.behind.row.size), "Mbit/s", method_error(f) * b.rate)
    seen = 1 - losses.not_captured(f.flow)  # what the capture lacks was served all the same, so that the server may be faster
    copies = (f.flow.facts.get("duplicates") or 0) / max(1, f.flow.facts.get("segments") or 0)  # made before the bottleneck, or behind it
    more = (1 + losses.beside_data(f.flow) + copies) / seen
    if found.buffer and state.starts_late(f):
        found = replace(found, buffer=None, buffer_reason=Reason("busy at the begin"))
    if found.buffer:
        found = losses.with_unseen(
            found, losses.not_captured(f.flow), arriving.longest_busy(f.delays.arrivals, b) * b.rate * 125 if f.delays else 0.0
        )
    buffer = found.buffer and clock.buffer(f, replace(found.buffer, high=found.buffer.high * more), rate.value)
    return replace(rate, high=rate.high * more), replace(found, buffer=buffer)


def unseen_queue(f: Fit, may_be_others: bool) -> Reason | None:
    """Why it is not known whether a queue is filled; None where it is this flow's, or nothing fills it.

    :param may_be_others: whether others may be what delays vary by.
    """
    if f.bottleneck is not None:
        return None
    if may_be_others:
        return Reason("delays vary in order", {"ms": None})
    return SHARED_QUEUE if f.reasons["rate_mbps"] == SHARED_QUEUE else None


def withheld(f: Fit, rtt: Estimate | None) -> Estimate | None:
    """Of the round trip its least and its usual one: where delays vary in order, queues of others, bursts and jitter look alike.

    A queue leaves the base at the least round trip, a jitter at the middle of them.

    Where no queue of the flow's own is known, others may fill one all the time, and the least round trip is none of an empty path, unless it
    came again at another time (:func:`base.least_again`), or a jitter shows that it is one (:func:`base.in_order`).
    """
    if (again := base.least_again(f)) is not None:
        return again
    if (known := base.in_order(f)) is not None:
        return known
    high = max(rtt.high, usual) if rtt and math.isfinite(rtt.high) and (usual := base.usual_round_trip(f)) is not None else None
    low = base.least_round_trip(f)
    if f.bottleneck is None or rtt is None or high is None or low is None:
        f.reasons["rtt_ms"] = Reason("delays vary in order", {"ms": high})
        return None
    if base.is_never_short(f):
        rest = f.behind.rtt - f.wait[f.behind.row]
        rtt = replace(rtt, low=max(0.0, min(rtt.low, float(np.nanquantile(rest, 0.05)))))
    least = 0.0 if base.may_queue_back(f) else min(rtt.low, 0.998 * low - 0.02)
    return Estimate(low, least, max(high, 1.002 * low + 0.02), rtt.n, "ms")


def method_error(f: Fit) -> float:
    """The error of the rate by the method itself, a share."""
    if f.flow.facts.get("super_packets"):
        return RATE_BURSTS
    return RATE_VARYING if f.before_queue or state.is_reordered(f) else RATE_METHOD


def delay_levels(f: Fit) -> Floats | None:
    """The delay about each segment: behind the capture, or before it at the receiver; None where no packet shows it."""
    w = f.wire
    if not f.is_receiver:
        return losses.levels(w, f.behind.row, f.behind.rtt)
    row = np.flatnonzero((w.fate != LOST) & (w.sends == 1))
    return losses.levels(w, row, (w.t - w.stamp)[row]) if w.sender_tick else None


def is_seen(s: Spread, left: float) -> bool:
    """Whether what shows of a jitter is most of it: `left` ms do not."""
    return s.is_there and left <= jitters.APART * math.sqrt(s.variance)


def find_reordered(f: Fit) -> None:
    """Data that change their order have jitter, also where no delay shows it: theirs alone, where the ACKs surely have none."""
    if f.jitter_on != "none" or not state.is_reordered(f) or base.has_no_jitter(f):
        return
    acks = max(f.left[1], f.reverse.most) if f.reverse is not None else math.inf
    f.jitter_on = "forward" if acks <= HIDDEN else None
    if f.jitter_on is None and math.isfinite(acks):
        f.reasons["jitter_on"] = Reason("other direction unresolved", {"ms": acks})


def is_of_data_alone(f: Fit) -> bool:
    """Whether the data have the jitter that was seen, as far as is known."""
    return f.jitter_on == "forward" or (f.jitter_on is None and f.reverse is not None and not f.reverse.is_there)


def jitter_estimates(f: Fit) -> tuple[Estimate | None, Estimate | None, Estimate | None]:
    """Jitter of the direction that has it, of the forward and of the reverse one."""
    left = max(*f.left, f.hidden, *(s.most for s in (f.forward, f.reverse) if s is not None and not s.is_there), 0.0)
    none = Estimate(0.0, 0.0, left, f.behind.row.size, "ms")
    if f.jitter_on == "none" or is_of_data_alone(f):
        hidden_ms = f.hidden if f.before_queue is None else f.before_queue[2] if f.before_queue[1] > HIDDEN and f.jitter_on == "none" else 0.0
        if hidden_ms > max(HIDDEN, jitters.APART * math.sqrt(f.forward.variance) if f.forward is not None and f.forward.is_there else 0.0):
            f.reasons["jitter_ms"] = Reason("jitter hidden", {"ms": hidden_ms})
            if f.jitter_on == "none":
                f.jitter_on, f.reasons["jitter_on"] = None, f.reasons["jitter_ms"]
            return None, None, none
        if f.jitter_on == "none":
            return none, none, none
    if (
        f.jitter_on == "reverse"
        and f.reverse is not None
        and (state.hides_jitter(f) or f.hidden > max(HIDDEN, jitters.APART * math.sqrt(f.reverse.variance)))
    ):
        f.jitter_on = None
        f.reasons["jitter_on"] = Reason("jitter hidden", {"ms": f.hidden})
    waits = f.jitter_on in (None, "reverse") and is_spacing(f)
    if waits:
        f.jitter_on = None
    if waits or f.forward is None or f.reverse is None:
        f.reasons["jitter_ms"] = f.reasons["jitter_on"] = Reason("ends wait" if f.wire.tick else "directions alike")
        return None, None, None
    width = METHOD if f.bottleneck and not f.has_before else UNKNOWN_QUEUE
    forward, reverse = (s.estimate(width) if is_seen(s, left) else none for s, left in zip((f.forward, f.reverse), f.left, strict=True))
    if f.before_queue and forward is not none:
        beside = ends(f.beside.estimate(width)) if f.beside is not None and f.beside.is_there else (0.0, 0.0, 0.0)
        value, low, high = (math.hypot(x, y) for x, y in zip(before_queue(f), beside, strict=True))
        forward = Estimate(value, low, high, forward.n, "ms")
    if forward is none and reverse is none:  # it shows by the order of the data alone, or may be more than what shows
        f.reasons["jitter_ms"] = Reason("delays unseen")
        return None, None, None
    if f.jitter_on == "both" and forward is not none and reverse is not none:
        value, low, high = ((x + y) / 2 for x, y in zip(ends(forward), ends(reverse), strict=True))
        return Estimate(value, low, high, f.behind.row.size, "ms"), forward, reverse
    is_forward = f.jitter_on == "forward" or reverse is none  # of unknown direction: the ACKs' is seen, the data's may be hidden
    one = forward if is_forward else reverse
    if f.jitter_on == "both" and forward is none:  # it shows by the order of the data alone
        f.reasons["jitter_forward_ms"] = Reason("jitter hidden", {"ms": f.hidden})
    return one, (None if "jitter_forward_ms" in f.reasons else forward), reverse


def before_queue(f: Fit) -> tuple[float, float, float]:
    """The jitter before the queue, ms, and its interval, from which what the queue's fit leaves by itself is taken at its lower end.

    That is where in a packet's time others met the server, which spreads evenly; where the rate is not known, all that the fit leaves.
    """
    if f.before_queue is None or f.bottleneck is None:
        return 0.0, 0.0, 0.0
    value, low, high = f.before_queue
    left = PACKET * 8e-3 / f.bottleneck.rate / math.sqrt(12)
    if "rate_mbps" in f.reasons:
        left = max(left, f.bottleneck.noise)
    return value, math.sqrt(max(0.0, low**2 - left**2)), high


def is_spacing(f: Fit) -> bool:
    """Whether what looks like jitter of the ACKs before the capture may be that the sender waits for the next ACK or its own pace.

    Both come at the distances of the queue's packets: an ACK of two is answered within two of them, evenly, which are 2/√12 of one as a deviation.
    """
    if not f.is_before or f.bottleneck is None or f.reverse is None:
        return False
    return f.reverse.variance <= (PACKET * 8e-3 / f.bottleneck.rate) ** 2


def ends(e: Estimate) -> tuple[float, float, float]:
    """Value and interval."""
    return e.value, e.low, e.high


LARGE = 3.0
"""Ticks of the timestamps' clock that the jitter's standard deviation must have for its distribution to show through the rounding."""


def distribution(f: Fit) -> str | None:
    """tc's name of the jitter's distribution; None with a reason."""
    known = variation(f)
    if known is None or (f.bottleneck is not None and f.jitter_on != "reverse"):
        f.reasons["distribution"] = Reason("delays unseen")
        return None
    name = jitters.shape(known[1])
    if name is None:
        f.reasons["distribution"] = Reason("few delays")
    return name


def order_kept(f: Fit) -> bool | None:
    """Whether the jitter keeps the order; None with a reason."""
    if f.jitter_on in (None, "none"):
        f.reasons["order_kept"] = Reason("no jitter" if f.jitter_on == "none" else "direction unknown")
        return None
    if f.jitter_on != "reverse" and state.is_reordered(f):
        return False
    w = f.wire
    sigma = np.sqrt(max(f.forward.variance if f.forward and f.jitter_on != "reverse" else 0.0, f.reverse.variance if f.reverse else 0.0))
    if f.jitter_on == "reverse":
        kept = acknowledgements.keep_order(f, float(sigma))
    else:
        order = np.argsort(w.t, kind="stable")
        place = np.searchsorted(w.ack, (w.seq + w.len)[order]).astype(float)
        kept = jitters.order_is_kept(w.t[order], place, float(sigma))
    if kept is None:
        f.reasons["order_kept"] = Reason("packets far apart")
    return kept


def correlation(f: Fit) -> Estimate | None:
    """Time constant of the jitter's correlation, ms; None with a reason."""
    known = variation(f)
    found = jitters.correlation(*known) if known is not None else None
    if found is None or known is None or (f.bottleneck is not None and f.jitter_on != "reverse"):
        f.reasons["correlation_ms"] = Reason("delays unseen")
        return None
    return Estimate(found[0], min(found), max(found), int(known[0].size), "ms")


def variation(f: Fit) -> tuple[Floats, Floats] | None:
    """Times and delays of the direction with the jitter, in the order of sending, ms; None where they do not stand out of the rounding."""
    s, w = f.behind, f.wire
    if f.jitter_on not in ("forward", "reverse", "both") or not w.tick or s.row.size < jitters.LEAST:
        return None
    one = f.reverse if f.jitter_on == "reverse" else f.forward
    if one is None or one.variance < (LARGE * w.tick) ** 2:
        return None
    x = s.reverse if f.jitter_on == "reverse" else s.forward - f.queue[s.row]
    at = w.ack_stamp[s.ack] if f.jitter_on == "reverse" else s.at
    keep = jitters.inliers(x) & ~np.isnan(x)
    order = np.argsort(at[keep], kind="stable")
    return at[keep][order], x[keep][order]
