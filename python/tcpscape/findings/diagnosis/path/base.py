"""The round trip without its queue: the part behind the capture and the part before it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tcpscape.findings.diagnosis.path import intervals
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.bottleneck import soon_after_empty, windows_of
from tcpscape.findings.diagnosis.path.columns import Bools, Floats
from tcpscape.findings.diagnosis.path.jitter import Spread
from tcpscape.findings.diagnosis.path.turns import Turns
from tcpscape.stats import Estimate

if TYPE_CHECKING:
    from tcpscape.findings.diagnosis.path.fitting import Fit

SYSTEMATIC = 0.003
"""Share of the round trip that samples do not show: the choice of those that can be measured."""


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
    half = math.sqrt(sum(((p.high - p.low) / 2) ** 2 for p in known))
    return Estimate(value, max(0.0, value - half), value + half, min(p.n for p in known), "ms")


def part_behind(f: Fit) -> Estimate | None:
    """From the capture to the receiver and back."""
    s = f.behind
    if s.row.size < 10:
        f.reasons["rtt_ms"] = "too few delays of single packets can be measured"
        return None
    wait = np.zeros(s.row.size) if f.is_before else f.wait[s.row]
    young = np.ones(s.row.size, dtype=bool)
    if f.bottleneck and f.delays and not f.is_before and f.delays.index.size == s.row.size:
        young = soon_after_empty(f.delays, f.bottleneck.rate)
    return level(f, s.rtt - wait, young)


def level(f: Fit, rest: Floats, young: Bools) -> Estimate | None:
    """Mean of delays without their queue.

    The queue's error is least soon after it was empty; so where the levels of windows in time differ by more than chance, only such samples count.
    """
    ok = jitters.inliers(rest) & ~np.isnan(rest)
    rest, young = rest[ok], young[ok]
    windows = windows_of(rest, 24, 20)
    mean, error, k = intervals.mean_by_blocks(rest, windows)
    starts_late = bool(f.flow.facts.get("begins_in_mid_connection"))
    if k > 3 and (starts_late or is_drifting(rest, windows)) and young.sum() >= 10:
        near = rest[young]
        windows = windows_of(near, 24, 5)
        if starts_late:
            levels = np.bincount(windows, near) / np.bincount(windows)
            low = levels <= np.sort(levels)[max(0, levels.size // 3 - 1)]
            near = near[low[windows]]
            windows = windows_of(near, 24, 5)
        other, other_error, other_k = intervals.mean_by_blocks(near, windows)
        if other_k > 1:
            mean, error, k = other, other_error, other_k
    if k < 2:
        error, k = float(np.std(rest)) / math.sqrt(rest.size) * 2, 10
    return intervals.around(mean, error, k, int(rest.size), "ms", SYSTEMATIC * mean)


def is_drifting(rest: Floats, windows: np.ndarray) -> bool:
    """Whether levels of windows differ by more than independent samples would."""
    n = np.bincount(windows)
    levels = np.bincount(windows, rest) / n
    inside = float(np.mean((rest - levels[windows]) ** 2))
    return bool(np.mean((levels - rest.mean()) ** 2 * n) > 3 * inside)


def part_before(f: Fit) -> Estimate | None:
    """From the capture to the sender and back: without timestamps the handshake alone shows it."""
    turns = f.before
    if turns.row.size < LEAST_TURNS:
        part = f.flow.facts.get("handshake_sender_part_ms")
        if part is None:
            f.reasons["rtt_ms"] = "without timestamps and handshake, the part of the path before the capture is not seen"
            return None
        return Estimate(float(part), 0.97 * float(part), 1.03 * float(part), 1, "ms")
    rest = turns.rtt - (f.wait[turns.row] if f.is_before else 0.0)
    rest = rest[~np.isnan(rest)]
    low = float(np.quantile(rest, 0.05))
    spread = float(np.median(rest)) - low
    prompt = rest[rest <= low + 3 * max(spread, 0.05)]
    return level(f, prompt, np.ones(prompt.size, dtype=bool))


LEAST_TURNS = 30
"""Turns below which they do not tell the part before the capture."""


def reverse_before(turns: Turns, tick: float, behind: Spread | None) -> Spread | None:
    """Variance of the ACKs' delay: behind the capture and before it, by the lower half, which the sender's waiting does not widen."""
    if turns.row.size < LEAST_TURNS:
        return behind
    x = turns.reverse - np.median(turns.reverse)
    lower = x[x <= 0]
    variance = float(np.mean(lower**2)) - tick**2 / 12
    part = Spread(variance, float(np.std(lower**2)) / math.sqrt(lower.size) * 1.5, 12, int(lower.size))
    return jitters.plus(part, behind)
