"""JitterTrap's indicators of an observed flow: the zone of its path, how far a measurement of it can be trusted, its stability, who has a problem.

The zone is judged against the cliff of the flow's own congestion control on this path: by runs on the fitted path with its jitter and without,
over the same time, as :mod:`tcpscape.findings.cliff.levels` judges a level. Jitter by itself says little, because the cliff is made by reordering and
by the low tail of the delay, which the fitted path has. The published rule, jitter / RTT, stands beside it.

Stability and signatures are of the observation itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape import stats
from tcpscape.findings import indicators
from tcpscape.findings.cliff import levels
from tcpscape.findings.cliff.levels import Level
from tcpscape.findings.diagnosis import limits
from tcpscape.findings.diagnosis.fitted import FittedPath, Zone
from tcpscape.findings.diagnosis.observed import ObservedFlow, edges
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.units import NS_PER_S

if TYPE_CHECKING:
    from tcpscape.findings.diagnosis.replay.lab import Lab

RUNS, FEW_RUNS, MANY_RUNS = 20, 8, 60
"""Runs with the jitter, and as many without; as many where runs are dear, and where so many leave the side in doubt."""
SURE, RESAMPLES = 0.95, 200
"""Share of the resampled runs that must be on the same side for it to be beyond doubt, and their number."""
PRECISION = 0.10
"""Precision for which the number of required runs is given."""
BIN_S, LEAST_BINS = 1.0, 5
"""Length of the intervals whose throughput is compared, s, and the fewest of them."""
LEAST_RTTS = 20
"""Fewest round trips whose variation is given."""


def unknown(flow: ObservedFlow, path: FittedPath | None, reason: Reason) -> Zone:
    """The indicators of a flow that cannot be replayed: those of the observation alone."""
    rtt_cv = rtt_variation(flow)
    return Zone(
        side=None,
        published=published(path),
        retention=None,
        cv=None,
        runs_needed=None,
        rtt_cv=rtt_cv,
        throughput_cv=throughput_variation(flow),
        health=_health(rtt_cv),
        problem=problem(flow),
        reasons={"side": reason, "cv": reason},
    )


def of(lab: Lab) -> Zone:
    """The indicators that the runs and the observation show."""
    lab.settings.tell("zone", lab.own)
    here = level(lab)
    side = levels.side(here)
    needed = stats.runs_needed(here.cv.value, PRECISION)
    rtt_cv = rtt_variation(lab.flow)
    return Zone(
        side=side,
        published=published(lab.fitted.path),
        retention=here.retention,
        cv=here.cv,
        runs_needed=float(needed),
        rtt_cv=rtt_cv,
        throughput_cv=throughput_variation(lab.flow),
        health=_health(rtt_cv),
        problem=problem(lab.flow),
    )


def level(lab: Lab) -> Level:
    """The path's own level: its runs with and without the jitter, more of them where the first leave its side in doubt."""
    each = max((r.events for r in lab.known.values()), default=0)
    here, runs = _level(lab, RUNS if each * 2 * RUNS <= lab.left else FEW_RUNS)
    if is_in_doubt(*runs) and each * 2 * (MANY_RUNS - RUNS) <= lab.left / 2:
        here, _ = _level(lab, MANY_RUNS)
    return here


Goodputs = Sequence[float]


def _level(lab: Lab, count: int) -> tuple[Level, tuple[Goodputs, Goodputs]]:
    """The level of so many runs, and their goodputs with and without the jitter."""
    values = lab.fitted.values
    with_jitter = [r.goodput_mbps for r in lab.central(lab.own, range(count))]
    jitter = max(values.jitter_forward_ms, values.jitter_reverse_ms)
    without = [r.goodput_mbps for r in lab.calm(lab.own, range(count))] if jitter else with_jitter
    return levels.level(jitter * 1e6, with_jitter, without), (with_jitter, without)


def is_in_doubt(with_jitter: Goodputs, without: Goodputs) -> bool:
    """Whether other runs of the same path might be on another side: by resampling these, pairs together."""
    jittery, calm = np.asarray(with_jitter), np.asarray(without)
    rng = np.random.default_rng(len(jittery))
    sides = [_side(jittery[p], calm[p]) for p in rng.integers(0, len(jittery), (RESAMPLES, len(jittery)))]
    return max(sides.count(one) for one in set(sides)) < SURE * RESAMPLES


def _side(jittery: NDArray[np.float64], calm: NDArray[np.float64]) -> levels.Side:
    """The side of these runs, without the intervals that a level has."""
    base = float(calm.mean())
    if base <= 0 or jittery.mean() <= 0:
        return "collapsed"
    retention, below = float(jittery.mean()) / base, float((jittery < levels.HALF * base).mean())
    cv, calm_cv = (float(x.std(ddof=1) / x.mean()) for x in (jittery, calm))
    if levels.is_chaotic(retention, cv, calm_cv, below):
        return "chaos zone"
    return "collapsed" if retention < levels.HALF else "stable"


def published(path: FittedPath | None) -> levels.Side | None:
    """The zone by jitter / RTT alone (the published rule); None where one of them is not known."""
    if path is None or path.rtt_ms is None or path.jitter_ms is None or not path.rtt_ms.value > 0:
        return None
    return indicators.zone(path.jitter_ms.value, path.rtt_ms.value)


def rtt_variation(flow: ObservedFlow) -> float | None:
    """The coefficient of variation of the round trips: at the sender as the published indicator has it, sd / mean."""
    rtt = np.asarray(flow.segments.get("rtt", ())).astype(float)
    rtt = rtt[rtt > 0]
    if flow.vantage == "sender" and len(rtt) >= LEAST_RTTS:
        return float(rtt.std(ddof=1) / rtt.mean())
    return None


def throughput_variation(flow: ObservedFlow) -> float | None:
    """The coefficient of variation of the throughput over whole seconds, the first left out; None where there are few."""
    if not len(flow.acks.get("t", ())):
        return None
    t, ack = np.asarray(flow.acks["t"]) / NS_PER_S, np.maximum.accumulate(np.asarray(flow.acks["ack"]).astype(float))
    seconds = edges(t[0] + BIN_S, t[-1] + 1e-9, BIN_S)
    if len(seconds) <= LEAST_BINS:
        return None
    rates = np.diff(ack[np.maximum(0, np.searchsorted(t, seconds, "right") - 1)])
    return float(rates.std(ddof=1) / rates.mean()) if rates.mean() > 0 else None


def problem(flow: ObservedFlow) -> str | None:
    """Receiver, network, both or neither, by the published signatures; None where the counts are not known."""
    closed, resent = flow.facts.get("zero_windows"), flow.facts.get("retransmissions")
    if closed is None or resent is None or flow.seconds <= 0:
        return None
    per = indicators.PER_S / flow.seconds
    window, rtt = flow.facts.get("window_max"), flow.facts.get("rtt") or {}
    least = rtt.get("min_ms") if isinstance(rtt, Mapping) else None
    used = (flow.goodput_mbps or 0.0) * 1e3 / 8 * float(least) / window if window and least else math.nan
    held = limits.shares_of(flow).get("receive_window", 0.0) if flow.limits else math.nan
    return indicators.Signature(closed=float(closed) * per, resent=float(resent) * per, held=held, used=used).problem


def _health(rtt_cv: float | None) -> str | None:
    return None if rtt_cv is None else indicators.health(rtt_cv)
