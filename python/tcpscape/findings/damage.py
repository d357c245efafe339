"""What does the damage: the path is run again with each ingredient taken away, under the same seeds.

The gains overlap (whoever keeps the order also has no low tail that hurts), so that they do not add up; each is what one change alone
would give back. A jitter that keeps the order is not the same delay without reordering: the clamp is a running maximum and raises the
mean; a delay correlated in time keeps its mean over time, but not over the packets, of which a window sends more while the delay is low.
The delay and the reordering that each variant achieved are therefore part of the answer, where the engine can tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcpscape import stats
from tcpscape.scenario.conditions import Conditions
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import RESAMPLES, TAIL
from tcpscape.trial import Trial

FLOOR_SHARE = 0.4
"""Floor of the one-way delay without its low tail, as a share of the delay (10 ms of 25 in the experiment that found the mechanism)."""
DELAYS = ("netem", "jitter")
"""Queues that delay on purpose; waiting at a bottleneck is not counted."""

Run = Callable[[Sequence[Conditions]], list[list[Trial]]]
"""Conditions → trials of each, the same seeds for all."""


@dataclass(frozen=True, slots=True)
class Delay:
    """What the impairments of one direction did to the packets, whatever was asked for: means over the trials."""

    mean_ms: float
    sd_ms: float
    overtaken: float
    """Share of the packets that left after one that had come later."""


@dataclass(frozen=True, slots=True)
class Achieved:
    """Both directions; None where the engine does not see it."""

    data: Delay | None
    acks: Delay | None


@dataclass(frozen=True, slots=True)
class Damage:
    """What taking one ingredient away gives back."""

    ingredient: str
    how: str
    goodput: Estimate
    """Without the ingredient, Mbit/s."""
    gain: Estimate
    """Goodput without it / goodput with it, paired."""
    undone: Estimate | None
    """Share of what all the jitter takes that comes back, paired: 1 is everything; None for loss, and where the jitter takes nothing."""
    achieved: Achieved
    """The delay without the ingredient."""


@dataclass(frozen=True, slots=True)
class Case:
    """A path with one ingredient taken away."""

    ingredient: str
    how: str
    path: Conditions


CALM = "delay variation"
"""The ingredient that is the jitter as a whole."""


def without(path: Conditions) -> list[Case]:
    """The path without each of its ingredients."""
    cases = [*_orders(path), *_directions(path)] if path.jitter else []
    if path.jitter:
        floor = round(path.rtt / 2 * FLOOR_SHARE)
        cases.append(_case(path, "low tail of the delay", f"no delay below {floor / 1e6:.3g} ms", floor=floor))
        cases.append(_case(path, CALM, "no jitter at all", jitter=0))
    if path.loss:
        cases.append(_case(path, "loss", "no random loss", loss=0.0))
    return cases


def _case(path: Conditions, ingredient: str, how: str, **update: Any) -> Case:
    return Case(ingredient, how, path.model_copy(update=update))


def _orders(path: Conditions) -> list[Case]:
    """The two ways to keep the order."""
    if path.order != "reorder":
        return []
    return [
        _case(path, "reordering", "delay correlated in time: order kept", order="correlated"),
        _case(path, "reordering, by a clamp", "order clamped: the mean delay rises", order="clamp"),
    ]


def _directions(path: Conditions) -> list[Case]:
    if path.jitter_on != "both":
        return []
    return [
        _case(path, "jitter of the ACKs", "jitter on the data only", jitter_on="forward"),
        _case(path, "jitter of the data", "jitter on the ACKs only", jitter_on="reverse"),
    ]


def decompose(path: Conditions, run: Run, can: Callable[[Conditions], bool] = lambda _: True) -> list[Damage]:
    """The damage of every ingredient that `can` be taken away, the largest gain first."""
    cases = [case for case in without(path) if can(case.path)]
    if not cases:
        return []
    full, *others = run([path, *(c.path for c in cases)])
    calm = next((_goodputs(got) for case, got in zip(cases, others, strict=True) if case.ingredient == CALM), None)
    found = [_damage(case, got, _goodputs(full), calm) for case, got in zip(cases, others, strict=True)]
    return sorted(found, key=lambda d: -d.gain.value)


def _damage(case: Case, trials: Sequence[Trial], full: list[float], calm: list[float] | None) -> Damage:
    got = _goodputs(trials)
    back = undone(full, got, calm) if calm and case.ingredient not in ("loss", CALM) else None
    return Damage(case.ingredient, case.how, stats.mean(got, "Mbit/s"), stats.ratio(got, full), back, achieved(trials))


def _goodputs(trials: Sequence[Trial]) -> list[float]:
    return [t.goodput_mbps for t in trials]


def undone(full: Sequence[float], got: Sequence[float], calm: Sequence[float]) -> Estimate | None:
    """(got − full) / (calm − full) of the means, with a percentile interval from resampled seeds; None where calm is not clearly above full."""
    a, b, c = (np.asarray(x, dtype=float) for x in (full, got, calm))
    if not stats.ratio(c, a).low > 1:
        return None
    picked = np.random.default_rng(len(a)).integers(0, len(a), (RESAMPLES, len(a)))
    low_a, mean_b, mean_c = (x[picked].mean(axis=1) for x in (a, b, c))
    drawn = (mean_b - low_a) / np.where(mean_c > low_a, mean_c - low_a, np.nan)
    low, high = np.nanquantile(drawn, [TAIL, 1 - TAIL])
    return Estimate(float((b.mean() - a.mean()) / (c.mean() - a.mean())), float(low), float(high), len(a), "1")


def achieved(trials: Sequence[Trial]) -> Achieved:
    """The delay that the impairments of a path gave its packets, from the queues' own account."""
    return Achieved(_direction(trials, "forward"), _direction(trials, "reverse"))


def _direction(trials: Sequence[Trial], direction: str) -> Delay | None:
    found = [d for t in trials for d in [_delay([q for q in t.queues if q.get("direction") == direction])] if d]
    if not found:
        return None
    n = len(found)
    return Delay(sum(d.mean_ms for d in found) / n, sum(d.sd_ms for d in found) / n, sum(d.overtaken for d in found) / n)


def _delay(queues: Sequence[Mapping[str, Any]]) -> Delay | None:
    """Of stages in a row: means add up, and independent variances."""
    stages = [q for q in queues if q.get("name") in DELAYS and q.get("delay", {}).get("count")]
    if not stages:
        return None
    mean, variance = sum(q["delay"]["mean"] for q in stages), sum(q["delay"]["sd"] ** 2 for q in stages)
    overtaken = sum(q["reordered"] / max(1, q["packets_out"]) for q in stages)
    return Delay(mean / 1e6, math.sqrt(variance) / 1e6, overtaken)
