"""Each candidate watches the flow: what it would have done with the same ACKs, and how far that is from what was seen.

The window that was seen replaces the candidate's own at the begin of each stretch of round trips; what the candidate makes of it until the end of the
stretch is compared with the windows seen, and its reductions with those seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpscape import _core
from tcpscape.findings.diagnosis.control.watched import LOSS, OPEN, Floats, Ints, Watched

CANDIDATES = (
    "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "reno", "scalable", "vegas", "veno", "westwood", "yeah",
)  # fmt: skip
"""Controls of Linux that set a window by ACKs and losses; BBR's window follows from rate samples instead."""
SAME = {"lp": "reno"}
"""Candidates that watch as another one does: what LP makes of delays hangs on a random difference of two clocks, and in nearly every connection it is
Reno (docs/models/controls/lp.md)."""
SHORT, LONG = 8, 48
"""Round trips of a stretch: short enough that small errors do not add up, long enough that slow growth shows."""
HZ = (250,)
"""Ticks a second of the sender's kernel, which hardly matter for most controls."""
UNKNOWN_HZ = (100, 250, 1000)
"""Those that kernels are built with."""
COUNT_TICKS = ("htcp", "westwood")
"""Controls that measure the RTT in ticks, so that they are another control on each of these kernels: the nearest one counts."""
SLOW_START = 1.5
"""Growth of the window in a round trip above which it doubles (with delayed ACKs 1.5)."""
MOST_ERROR = 10.0
"""Errors in tolerances above this one count as this one."""
UNDONE = 0.96
"""A window that is this part of the one before its reduction was restored, or never reduced."""
MEASURES = ("unlikely", "error", "middle", "close", "exact", "bias", "drift")
"""Of the windows that a candidate would have had, for each length of stretch."""
BACKOFFS = ("backoff_unlikely", "backoff_error", "backoff_close", "backoff_bias")
"""Of the windows that its reductions would have left."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """Where the watched window replaces the candidate's, and what is compared."""

    rows: Ints
    """What the candidate is told of each ACK: the columns of `_core.watch`."""
    compared: Ints
    """Round trips whose windows are compared."""
    begun: Ints
    """For each of them the round trip in which its stretch began."""


def stretches(watched: Watched, length: int) -> Stretches:
    """The ACKs with the watched window at the begin of each stretch of `length` round trips."""
    rounds, n = watched.rounds, len(watched.t)
    window, growth = np.zeros(n, np.int64), np.zeros(n, np.int64)
    compared, begun, start = [], [], -1
    after_loss = False
    for i in range(1, len(rounds.ack)):
        if not rounds.is_open[i]:
            start = -1
            after_loss = bool(watched.state[rounds.ack[i]] == LOSS)
            continue
        if start < 0 or i - start >= length:
            start = i
            at = rounds.peak[i]
            window[at + 1 : at + 2] = round(rounds.window[i])
            if i + 1 < len(rounds.ack) and rounds.is_open[i + 1] and not after_loss:
                growth[at + 1 : at + 2] = 1 if rounds.window[i + 1] > SLOW_START * rounds.window[i] else 2
        else:
            compared.append(i)
            begun.append(start)
    for cut in watched.cuts:
        if not np.isnan(cut.before):
            window[cut.first] = round(cut.before)
    return Stretches(_rows(watched, window, growth), np.array(compared, np.int64), np.array(begun, np.int64))


def _rows(watched: Watched, window: Ints, growth: Ints) -> Ints:
    mss, acks = watched.mss, watched.acks
    flight = np.maximum(watched.nxt - watched.una, 0) // mss
    windows = acks["window"]
    slow = (acks["sacked"] > 0) | (np.diff(windows, prepend=windows[:1]) != 0) | (watched.newly == 0)
    packets = np.diff(watched.una // mss, prepend=watched.una[:1] // mss)
    delivered = np.diff(np.cumsum(watched.delivered) // mss, prepend=0)
    columns = (
        watched.t, watched.una, watched.nxt, packets, delivered, watched.rtt_ns // 1000, flight, watched.since_sent, watched.state,
        acks["ece"] if "ece" in acks else np.zeros_like(flight), slow, acks["tsval"], acks["tsecr"], window, growth, watched.reordered,
    )  # fmt: skip
    return np.stack([np.asarray(c).astype(np.int64) for c in columns], axis=1)


def compare(watched: Watched) -> dict[str, dict[str, float]]:
    """Candidate → measure → value; NaN where nothing could be compared.

    `error` is the mean distance in tolerances (1.5 packets or 3 %), `middle` the median, `unlikely` the mean of ln(1 + (error / scale)²) with
    a scale of 0.3 packets and 0.2 % (a Cauchy distribution's), `close` the share within one, `exact` that within a packet, `bias`
    the median of ln(candidate / seen),
    `drift` the same at the ends of stretches alone; of reductions `backoff_error`, `backoff_close`, `backoff_bias` of the window after them.
    """
    long, short = stretches(watched, LONG), stretches(watched, SHORT)
    measures = {name: measure(name, watched, short, long) for name in CANDIDATES if name not in SAME}
    return {name: measures[SAME.get(name, name)] for name in CANDIDATES}


def measure(name: str, watched: Watched, short: Stretches, long: Stretches) -> dict[str, float]:
    """All measures of one candidate, on the kernel under which it is nearest."""
    kernels = UNKNOWN_HZ if name in COUNT_TICKS else HZ
    measures = (_measure(name, hz, watched, short, "short") | _measure(name, hz, watched, long, "long") for hz in kernels)
    return min(measures, key=distance)


def distance(measures: Mapping[str, float]) -> float:
    """One number of how far a candidate is from what was seen."""
    return sum(0.0 if np.isnan(measures[m]) else measures[m] for m in ("unlikely_short", "unlikely_long", "backoff_unlikely"))


def _measure(name: str, hz: int, watched: Watched, told: Stretches, suffix: str) -> dict[str, float]:
    """What one candidate makes of the stretches."""
    raw, reductions = _core.watch(name, told.rows.tobytes(), watched.mss, hz, watched.ecn or name == "dctcp")
    windows = np.frombuffer(raw, "<u4").astype(float)
    rounds = watched.rounds
    seen, made = rounds.window[told.compared], windows[rounds.peak[told.compared]]
    result = {f"{measure}_{suffix}": float("nan") for measure in MEASURES}
    if len(seen):
        tolerance = np.maximum(1.5, 0.03 * seen)
        errors, ratio = np.abs(made - seen) / tolerance, np.log(np.maximum(made, 1) / np.maximum(seen, 1))
        ends = np.append(told.begun[1:] != told.begun[:-1], True)
        result = {
            f"unlikely_{suffix}": float(np.log1p((np.abs(made - seen) / (0.3 + 0.002 * seen)) ** 2).mean()),
            f"error_{suffix}": float(np.minimum(errors, MOST_ERROR).mean()), f"middle_{suffix}": float(np.median(errors)),
            f"close_{suffix}": float((errors <= 1).mean()), f"exact_{suffix}": float((np.abs(made - seen) <= 1).mean()),
            f"bias_{suffix}": float(np.median(ratio)), f"drift_{suffix}": float(np.median(ratio[ends])),
        }  # fmt: skip
    return result | (_backoffs(watched, reductions) if suffix == "short" else {})


def _backoffs(watched: Watched, reductions: list[tuple[int, int, int]]) -> dict[str, float]:
    """How far the candidate's thresholds are from the windows after the reductions seen."""
    made = {ack: after for ack, _, after in reductions}
    seen = [c for c in watched.cuts if c.state not in (OPEN, LOSS) and c.first in made and c.after > 0 and not c.after >= UNDONE * c.before]
    pairs = [(made[c.first], c.after) for c in seen]
    if not pairs:
        return dict.fromkeys(BACKOFFS, float("nan"))
    values: NDArray[np.float64] = np.array(pairs, float)
    ratio: Floats = np.log(np.maximum(values[:, 0], 1) / values[:, 1])
    close = np.abs(values[:, 0] - values[:, 1]) <= np.maximum(1.5, 0.05 * values[:, 1])
    return {
        "backoff_unlikely": float(np.log1p((ratio / (0.01 + 1.0 / values[:, 1])) ** 2).mean()), "backoff_error": float(np.median(np.abs(ratio))),
        "backoff_close": float(close.mean()), "backoff_bias": float(np.median(ratio)),
    }  # fmt: skip
