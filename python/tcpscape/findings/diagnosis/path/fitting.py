"""From a flow's columns to its path: the order of the steps, and what is said where a step cannot answer."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from tcpscape.findings.diagnosis.fitted import FittedPath
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path import arrivals as arriving
from tcpscape.findings.diagnosis.path import base, changes, character, intervals, losses
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.bottleneck import Bottleneck, Delays, delays_of, jittered, longest_busy
from tcpscape.findings.diagnosis.path.bottleneck import fit as fit_bottleneck
from tcpscape.findings.diagnosis.path.columns import LOST, Bools, Floats, wire_of
from tcpscape.findings.diagnosis.path.jitter import Spread
from tcpscape.findings.diagnosis.path.samples import first_cover, sampled, turns_of
from tcpscape.findings.diagnosis.path.state import Fit
from tcpscape.stats import Estimate

LEAST = 30
"""Samples below which nothing is fitted."""
RATE_ERROR = 0.015
"""Relative standard error above which a rate is not identifiable: half of the interval is then above 3 %."""
BUSY = 20.0
"""Standard deviations of the jitter before a queue that it must once be busy for, to tell its rate."""
METHOD = 0.12
"""Error of a jitter by the method itself, a share, on development captures: other distributions than the normal one that is simulated."""
UNKNOWN_QUEUE = 0.2
"""The same where a queue was not identified, or the capture was not at the sender: what short bursts and waiting add is in the jitter."""
HIDDEN = 0.1
"""ms of a jitter that was not seen, above which it is not said that there is none."""
EXPLAINED = 0.1
"""Share of the delays' variance that a queue must explain to be one."""


def fit(flow: ObservedFlow) -> FittedPath:
    """The path that explains a flow; what its packets do not show is None, with the reason."""
    if not flow.segments or not flow.acks or flow.segments["t"].size < LEAST or flow.acks["t"].size < LEAST:
        return nothing("too few packets in both directions")
    wire = wire_of(flow)
    f = Fit(flow, wire, sampled(wire), turns_of(wire))
    f.wait, f.queue = np.zeros(wire.t.size), np.zeros(wire.t.size)
    find_bottleneck(f)
    f.forward, f.reverse = spreads(f)
    base.anchor(f)
    f.forward, f.reverse = spreads(f)
    find_direction(f)
    return answer(f)


def nothing(reason: str) -> FittedPath:
    """A path of which nothing is identifiable."""
    names = [n for n in FittedPath.__dataclass_fields__ if n not in ("changes", "reasons")]
    return FittedPath(**dict.fromkeys(names), reasons=dict.fromkeys(names, reason))  # type: ignore[arg-type]


def find_bottleneck(f: Fit) -> None:
    """Looks for a queue behind the capture, then before it."""
    if not f.is_receiver and f.behind.row.size >= LEAST:
        fit_queue(f, delays_behind(f, np.zeros(f.wire.t.size, dtype=bool)))
    if f.bottleneck is None and f.has_before and f.wire.sender_tick:
        fit_queue(f, delays_before(f))
        f.is_before = f.bottleneck is not None


def delays_behind(f: Fit, discarded: Bools) -> Delays:
    """Delays behind the capture, by round trips, or one way where the ACKs' jitter is more than the rounding of timestamps."""
    s, w = f.behind, f.wire
    arrivals = arriving.before_bottleneck(w, first_cover(w)[0], float(s.rtt.min()), discarded)
    place = arrivals.places(s.row, w.t.size)
    s, place = s.kept(place >= 0), place[place >= 0]
    order = np.argsort(place, kind="stable")
    s, place = s.taken(order), place[order]
    f.behind = s
    is_noisy = bool(w.tick) and float(np.std(s.reverse)) > 1.2 * w.tick / math.sqrt(12)
    return delays_of(arrivals, place, s.at, s.forward if is_noisy else s.rtt)


def delays_before(f: Fit) -> Delays:
    """One-way delays before the capture, by the sender's clock."""
    w = f.wire
    arrivals = arriving.behind_bottleneck(w)
    place = np.arange(arrivals.at.size)
    return delays_of(arrivals, place, arrivals.at, (w.t - w.stamp)[arrivals.row])


def fit_queue(f: Fit, d: Delays) -> None:
    """Fits the queue, and the jitter before it."""
    f.delays = d
    f.wait[d.arrivals.row[d.index]] = (d.arrivals.at - d.arrivals.sent)[d.index]
    if d.index.size < LEAST:
        return
    b = fit_bottleneck(d)
    if b is None or not is_queue(b):
        return
    keep(f, d, b)
    find_jitter_before(f, d, b)


def keep(f: Fit, d: Delays, b: Bottleneck) -> None:
    """Notes a fit of the queue, and the delay that it gives each segment."""
    f.bottleneck, f.delays = b, d
    rows = d.arrivals.row[d.index]
    f.wait = np.full(f.wire.t.size, np.nan)
    f.wait[rows] = b.wait[d.index]
    f.queue = np.full(f.wire.t.size, np.nan)
    f.queue[rows] = b.queue[d.index]


def find_jitter_before(f: Fit, d: Delays, b: Bottleneck) -> None:
    """Standard deviation of the forward delay before the queue, ms.

    A busy queue hides it: packets leave at its rate whenever they came, and only their order tells. So the spread that a jitter would give to
    these packets is simulated, and the jitter chosen whose spread is the one seen.
    """
    forward, _ = spreads(f)
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


def is_queue(b: Bottleneck) -> bool:
    """Whether the queue explains delays, and its rate is known."""
    return b.explained > EXPLAINED and b.error / b.rate < RATE_ERROR


def spreads(f: Fit) -> tuple[Spread | None, Spread | None]:
    """Variances of the delay of each direction, without the queue's; None without timestamps."""
    w, s = f.wire, f.behind
    forward = reverse = None
    if s.row.size >= LEAST and w.tick and not f.is_receiver:
        rest = s.rtt - (0.0 if f.is_before else f.queue[s.row])
        ok = jitters.inliers(rest)
        one_way = (rest - s.reverse)[ok]
        if f.bottleneck is None and base.is_one_sided(one_way, w.tick) and not base.is_reordered(f):
            return None, None  # ACKs that waited, or bursts that queued
        forward = jitters.covariance(rest[ok], one_way)
        if f.bottleneck is None:
            row = np.argsort(s.row[ok], kind="stable")
            forward = jitters.without_jumps(forward, one_way[row], w.tick)
        plain = ok & s.is_plain
        chosen = plain if plain.sum() > max(200, 0.2 * ok.sum()) else ok
        reverse = jitters.covariance(rest[chosen], s.reverse[chosen])
    if f.has_before and w.sender_tick:
        one_way = w.t - w.stamp - (f.queue if f.is_before else 0.0)
        one_way = one_way[~np.isnan(one_way)]
        one_way = one_way[jitters.inliers(one_way)]
        if one_way.size >= LEAST:
            part = jitters.minus(jitters.covariance(one_way, one_way), w.sender_tick**2 / 12)
            forward = jitters.plus(part, forward)
        if not base.is_exact(f):
            reverse = base.reverse_before(f.before, w.sender_tick, reverse)
        if f.wire.tick == 0:
            reverse = None
    return forward, reverse


def find_direction(f: Fit) -> None:
    """Which direction has the jitter."""
    s, w = f.behind, f.wire
    if base.has_no_jitter(f):
        f.forward = f.reverse = jitters.Spread(0.0, 0.0, 12, max(s.row.size, f.before.row.size))
        f.before_queue, f.hidden, f.jitter_on = None, jitters.FLOOR, "none"
        return
    if f.forward is not None and f.forward.is_there and not f.has_before and keeps_order(f):
        f.forward = jitters.Spread(0.0, f.forward.error, f.forward.blocks, f.forward.n)
        f.before_queue = None
        f.hidden = max(f.hidden, float(np.quantile(np.diff(np.sort(w.t)), 0.25)) / 2)
    if f.forward is not None and f.reverse is not None:
        f.jitter_on = jitters.direction(f.forward, f.reverse)
    elif f.flow.vantage == "sender" and s.row.size >= LEAST:
        rest = s.rtt - f.queue[s.row]
        rest = rest[jitters.inliers(rest)]
        total = jitters.covariance(rest, rest)
        if not total.is_there:
            f.jitter_on = "none"


def keeps_order(f: Fit) -> bool:
    """Whether data keep their order though independent delays of the spread that was seen would change it: then waiting is what spreads them."""
    if f.forward is None or base.is_reordered(f):
        return False
    w = f.wire
    gap = np.diff(np.sort(w.t))
    sigma = f.before_queue[0] if f.before_queue else math.sqrt(f.forward.variance)
    expected = float(np.sum(ndtr(-gap[gap > 0] / (math.sqrt(2) * sigma))))
    return expected > 30 and int(np.sum(w.fate == base.REORDERED)) < 0.1 * expected


def answer(f: Fit) -> FittedPath:
    """The fit as its type."""
    w, b, reasons = f.wire, f.bottleneck, f.reasons
    sigma = math.sqrt(max(0.0, f.forward.variance)) if f.forward and f.forward.is_there else 0.0
    skip = arriving.exposed(w.t, np.sort(w.again_t), 4.5 * sigma) if w.tick else np.zeros(w.t.size, dtype=bool)
    level = delay_levels(f)
    found = losses.of_queue(w, skip, f.delays.arrivals, b, sigma, level) if b and f.delays else losses.of_path(w, skip, level)
    rate = None
    if b and f.delays and longest_busy(f.delays, b) < BUSY * max(b.noise, f.before_queue[0] if f.before_queue else 0.0):
        reasons["rate_mbps"] = "the queue was never busy for long against the jitter before it: only short bursts queued"
    elif b:
        rate = intervals.around(b.rate, b.error, 24, int(f.behind.row.size), "Mbit/s", 0.0005 * b.rate)
    else:
        reasons["rate_mbps"] = "the flow made no queue grow whose delay would show the rate"
    if found.random is None:
        reasons["loss_pct"] = found.reason
    if found.queue is None:
        reasons["queue_loss_pct"] = found.reason
    if found.buffer is None:
        reasons["buffer_bytes"] = found.buffer_reason
    rtt = base.round_trip(f)
    one, jf, jr = jitter_estimates(f)
    found_changes = changes.found(f.flow, w, f.behind, f.before)
    reasons |= changes.sentences(found_changes)
    return FittedPath(
        rtt_ms=rtt, jitter_ms=one, jitter_on=f.jitter_on, jitter_forward_ms=jf, jitter_reverse_ms=jr, distribution=character.distribution(f),
        order_kept=character.order_kept(f), correlation_ms=character.correlation(f),
        loss_pct=found.random, queue_loss_pct=found.queue, rate_mbps=rate, buffer_bytes=found.buffer,
        queue=("self-induced" if b else "none"), changes=tuple(found_changes), reasons=reasons,
    )  # fmt: skip


def delay_levels(f: Fit) -> Floats | None:
    """The delay about each segment: behind the capture, or before it at the receiver; None where no packet shows it."""
    w = f.wire
    if not f.is_receiver:
        return losses.levels(w, f.behind.row, f.behind.rtt)
    row = np.flatnonzero((w.fate != LOST) & (w.sends == 1))
    return losses.levels(w, row, (w.t - w.stamp)[row]) if w.sender_tick else None


def jitter_estimates(f: Fit) -> tuple[Estimate | None, Estimate | None, Estimate | None]:
    """Jitter of the direction that has it, of the forward and of the reverse one."""
    none = Estimate(0.0, 0.0, f.hidden, f.behind.row.size, "ms")
    if f.jitter_on == "none" and base.is_reordered(f) and not base.has_no_jitter(f):
        f.jitter_on = "forward"
    if f.jitter_on != "both" and f.before_queue is None and f.hidden > HIDDEN and f.jitter_on in ("none", "forward"):
        f.reasons["jitter_ms"] = f"the queue was busy nearly all the time: it hides a jitter of the data of up to {f.hidden:.2g} ms"
        if f.jitter_on == "none":
            f.jitter_on = None
            f.reasons["jitter_on"] = f.reasons["jitter_ms"]
        return None, None, none
    if f.jitter_on == "none":
        return none, none, none
    if f.forward is None or f.reverse is None:
        why = "the sender or the receiver waits before it answers, and jitter cannot be told from that"
        if not f.wire.tick:
            why = "without timestamps, jitter of the data and of the ACKs cannot be told apart"
        f.reasons["jitter_ms"] = f.reasons["jitter_on"] = why
        return None, None, None
    width = METHOD if f.bottleneck and not f.has_before else UNKNOWN_QUEUE
    forward, reverse = (s.estimate(width) if s.is_there else none for s in (f.forward, f.reverse))
    if f.before_queue and forward is not none:
        forward = Estimate(*f.before_queue, forward.n, "ms")
    if f.jitter_on == "both":
        value, low, high = ((x + y) / 2 for x, y in zip(ends(forward), ends(reverse), strict=True))
        return Estimate(value, low, high, f.behind.row.size, "ms"), forward, reverse
    return (forward if f.jitter_on == "forward" else reverse), forward, reverse


def ends(e: Estimate) -> tuple[float, float, float]:
    """Value and interval."""
    return e.value, e.low, e.high
