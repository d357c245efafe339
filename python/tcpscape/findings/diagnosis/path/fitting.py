"""From a flow's columns to its path: the order of the steps, and what is said where a step cannot answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tcpscape.findings.diagnosis.fitted import Direction, FittedPath
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path import intervals, losses
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.arrivals import arrivals_of
from tcpscape.findings.diagnosis.path.bottleneck import Bottleneck, Delays, delays_of, jitter_of_queue, windows_of
from tcpscape.findings.diagnosis.path.bottleneck import fit as fit_bottleneck
from tcpscape.findings.diagnosis.path.jitter import Spread
from tcpscape.findings.diagnosis.path.samples import Floats, Samples, kept, sampled
from tcpscape.stats import Estimate

LEAST = 30
"""Samples below which nothing is fitted."""
RATE_ERROR = 0.015
"""Relative standard error above which a rate is not identifiable: half of the interval is then above 3 %."""
EXPLAINED = 0.1
"""Share of the delays' variance that a queue must explain to be one."""


@dataclass(slots=True)
class Fit:
    """What the steps have found so far."""

    flow: ObservedFlow
    samples: Samples
    reasons: dict[str, str] = field(default_factory=dict)
    delays: Delays | None = None
    bottleneck: Bottleneck | None = None
    wait: Floats = field(default_factory=lambda: np.empty(0))
    """Of each sample: the queue's delay in the mean, ms."""
    jitter_on: Direction | None = None
    forward: Spread | None = None
    reverse: Spread | None = None
    total: Spread | None = None


def fit(flow: ObservedFlow) -> FittedPath:
    """The path that explains a flow; what its packets do not show is None, with the reason."""
    if flow.vantage == "receiver" or not flow.segments or not flow.acks or flow.segments["t"].size < LEAST:
        return nothing("too few packets in both directions")
    samples = sampled(flow.segments, flow.acks)
    if samples.row.size < LEAST:
        return nothing("too few delays of single packets can be measured")
    f = Fit(flow, samples)
    find_bottleneck(f)
    find_jitter(f)
    return answer(f)


def nothing(reason: str) -> FittedPath:
    """A path of which nothing is identifiable."""
    names = [n for n in FittedPath.__dataclass_fields__ if n not in ("changes", "reasons")]
    return FittedPath(**dict.fromkeys(names), reasons=dict.fromkeys(names, reason))  # type: ignore[arg-type]


def find_bottleneck(f: Fit) -> None:
    """Fits the queue, then again with what jitter before it does to its delays."""
    s = f.samples
    arrivals = arrivals_of(f.flow, float(s.rtt.min()))
    is_noisy = s.reverse is not None and np.std(s.reverse) > 1.2 * s.tick / math.sqrt(12)
    delay = s.forward if is_noisy and s.forward is not None else s.rtt
    d, ok = delays_of(arrivals, s.row, s.at, delay)
    f.samples = s = kept(s, np.isin(np.arange(s.row.size), ok))
    f.delays, f.wait = d, np.zeros(s.row.size)
    if d.index.size < LEAST:
        return
    b = fit_bottleneck(d)
    if b is None or not is_queue(b):
        return
    f.bottleneck, f.wait = b, b.wait[d.index]
    for _ in range(2):
        forward = spreads(f)[0]
        if forward is None or not forward.is_there:
            return
        before = math.sqrt(forward.variance)
        shift, spread = jitter_of_queue(d, b, before)
        before = before * before / max(spread, 1e-9)
        shift, spread = jitter_of_queue(d, b, before)
        again = fit_bottleneck(Delays(d.arrivals, d.index, d.delay - shift, d.window))
        if again is None or not is_queue(again):
            return
        f.bottleneck = b = again
        f.wait = b.wait[d.index] + shift


def is_queue(b: Bottleneck) -> bool:
    """Whether the queue explains delays, and its rate is known."""
    return b.explained > EXPLAINED and b.error / b.rate < RATE_ERROR


def spreads(f: Fit) -> tuple[Spread | None, Spread | None, Spread]:
    """Variances of the delay of each direction and of the round trip, without the queue's."""
    s = f.samples
    rest = s.rtt - f.wait
    keep = jitters.inliers(rest)
    total = jitters.covariance(rest[keep], rest[keep])
    if s.forward is None or s.reverse is None:
        return None, None, total
    forward = jitters.covariance(rest[keep], (s.forward - f.wait)[keep])
    reverse = jitters.covariance(rest[keep], s.reverse[keep])
    return forward, reverse, total


def find_jitter(f: Fit) -> None:
    """The jitter's spread and direction."""
    f.forward, f.reverse, f.total = spreads(f)
    if f.forward is not None and f.reverse is not None:
        f.jitter_on = jitters.direction(f.forward, f.reverse)
    elif not f.total.is_there:
        f.jitter_on = "none"


def answer(f: Fit) -> FittedPath:
    """The fit as its type."""
    s, b, reasons = f.samples, f.bottleneck, f.reasons
    rest = s.rtt - f.wait
    keep = jitters.inliers(rest)
    mean, error, k = intervals.mean_by_blocks(rest[keep], windows_of(rest[keep], 24, 20))
    rtt = intervals.around(mean, error, k, int(keep.sum()), "ms", 0.003 * mean)
    sigma = math.sqrt(max(0.0, f.forward.variance)) if f.forward else 0.0
    found = losses.of_queue(f.flow.segments, f.delays.arrivals, b, sigma) if b and f.delays else losses.of_path(f.flow.segments)
    rate = None
    if b:
        rate = intervals.around(b.rate, b.error, 24, int(s.row.size), "Mbit/s", 0.0005 * b.rate)
    else:
        reasons["rate_mbps"] = "the flow made no queue grow whose delay would show the rate"
    if found.random is None:
        reasons["loss_pct"] = found.reason
    if found.buffer is None:
        reasons["buffer_bytes"] = found.buffer_reason
    one, jf, jr = jitter_estimates(f)
    return FittedPath(
        rtt_ms=rtt, jitter_ms=one, jitter_on=f.jitter_on, jitter_forward_ms=jf, jitter_reverse_ms=jr, distribution=None, order_kept=None,
        correlation_ms=None, loss_pct=found.random, queue_loss_pct=found.queue, rate_mbps=rate, buffer_bytes=found.buffer,
        queue=("self-induced" if b else "none"), changes=(), reasons=reasons,
    )  # fmt: skip


def jitter_estimates(f: Fit) -> tuple[Estimate | None, Estimate | None, Estimate | None]:
    """Jitter of the direction that has it, of the forward and of the reverse one."""
    none = Estimate(0.0, 0.0, jitters.FLOOR, f.samples.row.size, "ms")
    if f.jitter_on == "none":
        return none, none, none
    if f.forward is None or f.reverse is None:
        f.reasons["jitter_ms"] = f.reasons["jitter_on"] = "without timestamps, jitter of the data and of the ACKs cannot be told apart"
        return None, None, None
    forward, reverse = (s.estimate(0.02) if s.is_there else none for s in (f.forward, f.reverse))
    if f.jitter_on == "both":
        value, low, high = ((x + y) / 2 for x, y in zip(ends(forward), ends(reverse), strict=True))
        return Estimate(value, low, high, f.samples.row.size, "ms"), forward, reverse
    return (forward if f.jitter_on == "forward" else reverse), forward, reverse


def ends(e: Estimate) -> tuple[float, float, float]:
    """Value and interval."""
    return e.value, e.low, e.high
