"""What a fitted path is, as parts of a sentence: round trip and jitter, random loss, bottleneck, changes."""

from __future__ import annotations

import math

from tcpscape.findings.diagnosis.fitted import FittedPath, PathChange
from tcpscape.text.numbers import decimal_places, number
from tcpscape.units import counted

HARDLY_MS, HARDLY_OF_RTT = 0.1, 0.005
"""Jitter below both, ms and as a share of the RTT, is called none."""
WIDE, WIDE_MS = 0.05, 0.5
"""Twice the farther end of a round trip's interval from it, as a share of it and in ms, above both of which a sentence has the ends instead: of 28
numbers that remain under jitter 27 are within 2 % or 0.5 ms, of those told before (15 %, 1 ms) 40 of 60 (development captures)."""
RARE_PCT = 0.0005
"""Random loss below this, %, is called none."""
HIDDEN_PCT = 0.1
"""End of the interval of a random loss from which on it is told instead of "no random loss" where none was seen, %."""


def known(path: FittedPath) -> list[str]:
    """What the first sentence says of a path."""
    return [part for part in (trip(path), _loss(path), _bottleneck(path)) if part]


def trip(path: FittedPath) -> str:
    """The round trip and its jitter."""
    if path.rtt_ms is None:
        most = longest_trip(path)
        return " and ".join(part for part in (f"a round trip of at most {number(most)} ms" if most else "", _jitter(path)) if part)
    low, high = path.rtt_ms.low, path.rtt_ms.high
    off = max(high - path.rtt_ms.value, path.rtt_ms.value - low)
    is_wide = math.isfinite(off) and 2 * off > max(WIDE_MS, WIDE * path.rtt_ms.value)
    is_open = low < 10.0 ** -decimal_places(high, 3)  # of the upper end's digits none is left of the lower one
    ends = f"of at most {number(high)} ms" if is_open else f"between {number(low)} and {number(high)} ms"
    trip = f"a round trip {ends}" if is_wide else f"a round trip of {number(path.rtt_ms.value)} ms"
    jitter = _jitter(path)
    return f"{trip} with {jitter}" if jitter else trip


def longest_trip(path: FittedPath) -> float | None:
    """What bounds the round trip of the empty path where it is not identifiable, ms."""
    why = path.reasons.get("rtt_ms")
    return why.values.get("ms") if why and path.rtt_ms is None else None


def _jitter(path: FittedPath) -> str:
    if path.jitter_ms is None:
        return ""
    is_small = path.jitter_ms.value < HARDLY_MS and (path.rtt_ms is None or path.jitter_ms.value < HARDLY_OF_RTT * path.rtt_ms.value)
    if path.jitter_on == "none" and path.jitter_ms.high > max(HARDLY_MS, HARDLY_OF_RTT * (path.rtt_ms.value if path.rtt_ms else 0.0)):
        return f"less than {number(path.jitter_ms.high, 2)} ms of jitter"
    if is_small or path.jitter_on == "none":
        return "hardly any jitter"
    order = {True: " that keeps packets in order", False: " that reorders packets", None: ""}[path.order_kept]
    where = jittered(path)
    return f"{number(path.jitter_ms.value)} ms of jitter{' ' if where else ''}{where}{order}"


def jittered(path: FittedPath) -> str:
    """Which packets have the jitter that is told; empty where that is not known or none has."""
    is_half_seen = path.jitter_on == "both" and path.jitter_forward_ms is None
    both = "of the ACKs and an unknown one of the data" if is_half_seen else "each way"
    return {"forward": "of the data", "reverse": "of the ACKs", "both": both}.get(path.jitter_on or "", "")


def _loss(path: FittedPath) -> str:
    if path.loss_pct is None:
        return ""
    value, low, high = path.loss_pct.value, path.loss_pct.low, path.loss_pct.high
    if value >= RARE_PCT and low != 0:
        return f"{number(value, 2)} % of random loss"
    return f"at most {number(high, 2)} % of random loss" if high >= HIDDEN_PCT or value >= RARE_PCT else "no random loss"


def _bottleneck(path: FittedPath) -> str:
    """`a bottleneck of 20 Mbit/s with a buffer of 200 kB (80 ms)`."""
    if path.rate_mbps is None:
        return ""
    link = f"a bottleneck of {number(path.rate_mbps.value)} Mbit/s"
    if path.buffer_bytes is None:
        return link
    size = path.buffer_bytes.value
    delay = size * 8 / (path.rate_mbps.value * 1e3) if path.rate_mbps.value > 0 else 0.0
    return f"{link} with a buffer of {number(size / 1e3)} kB ({number(delay, 2)} ms when full)"


def changes(path: FittedPath) -> str:
    """`; it changed 3 times, first at 8.0 s: rate 20 → 5 Mbit/s`."""
    if not path.changes:
        return ""
    first = min(path.changes, key=lambda change: change.at_s)
    times = "once" if len(path.changes) == 1 else counted(len(path.changes), "time")
    return f"; it changed {times}, {'first ' if len(path.changes) > 1 else ''}at {first.at_s:.1f} s: {change_text(first)}"


def change_text(change: PathChange) -> str:
    """`rate 20.0 → 5.00 Mbit/s`, `an outage of 0.500 s`."""
    if change.kind == "outage":
        return f"an outage of {number(change.after)} s" if change.after is not None else "an outage"
    name, unit, factor = {"rtt": ("RTT", "ms", 1.0), "rate": ("rate", "Mbit/s", 1.0), "loss": ("loss", "%", 100.0)}[change.kind]
    before, after = ("?" if v is None else number(v * factor) for v in (change.before, change.after))
    return f"{name} {before} → {after} {unit}"
