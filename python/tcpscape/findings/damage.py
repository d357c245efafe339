"""The damage that each ingredient of a path does: the path is run again with each ingredient taken away, under the same seeds.

The gains overlap (keeping the order also removes the harm of the low tail) and do not add up; each is what that change alone would
give back. A jitter that keeps the order is not the same delay without reordering: the clamp is a running maximum and raises the
mean; a delay correlated in time keeps its mean over time, but not over the packets, of which a window sends more while the delay is low.
The delay and the reordering that each variant achieved are therefore part of the result, where the engine reports them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcpscape import stats
from tcpscape.metrics.queues import DELAYS
from tcpscape.scenario.options import Conditions
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import RESAMPLES, TAIL
from tcpscape.trial import Trial

FLOOR_SHARE = 0.4
"""Floor of the one-way delay without its low tail, as a share of the delay (10 ms of 25 in the experiment that found the mechanism)."""

Run = Callable[[Sequence[Conditions]], list[list[Trial]]]
"""Conditions → trials of each, the same seeds for all."""


@dataclass(frozen=True, slots=True)
class Delay:
    """The delay and the reordering that the impairments of one direction caused, as measured: means over the trials."""

    mean_ms: float
    """Mean delay of the packets, ms."""
    sd_ms: float
    """Standard deviation of their delays, ms."""
    overtaken: float
    """Share of the packets that left after a packet that had arrived later."""


@dataclass(frozen=True, slots=True)
class Achieved:
    """The delays of both directions; None where the engine does not report them."""

    data: Delay | None
    """Of the data."""
    acks: Delay | None
    """Of the ACKs."""


@dataclass(frozen=True, slots=True)
class Damage:
    """The damage of one ingredient: what taking it away gives back."""

    ingredient: str
    """What is taken away: delay variation, reordering, loss, …"""
    how: str
    """How it is taken away."""
    goodput: Estimate
    """Without the ingredient, Mbit/s."""
    gain: Estimate
    """Goodput without it / goodput with it, paired."""
    undone: Estimate | None
    """Share of the goodput lost to all the jitter that comes back, paired: 1 is all of it; None for loss, and where the jitter costs nothing."""
    achieved: Achieved
    """The delay without the ingredient."""


@dataclass(frozen=True, slots=True)
class PathVariant:
    """A path with one ingredient taken away."""

    ingredient: str
    how: str
    path: Conditions


CALM = "delay variation"
"""The ingredient that is the jitter as a whole."""
OF_ACKS = "jitter of the ACKs"
"""The ingredient without which the jitter is on the data alone."""


def without(path: Conditions) -> list[PathVariant]:
    """The path without each of its ingredients."""
    variants = [*_orders(path), *_directions(path)] if path.jitter else []
    if path.jitter:
        floor = round(path.rtt / 2 * FLOOR_SHARE)
        variants.append(_variant(path, "low tail of the delay", f"no delay below {floor / 1e6:.3g} ms", floor=floor))
        variants.append(_variant(path, CALM, "no jitter at all", jitter=0))
    if path.loss:
        variants.append(_variant(path, "loss", "no random loss", loss=0.0))
    return variants


def _variant(path: Conditions, ingredient: str, how: str, **update: Any) -> PathVariant:
    return PathVariant(ingredient, how, path.model_copy(update=update))


def _orders(path: Conditions) -> list[PathVariant]:
    """The two variants that keep the order."""
    if path.order != "reorder":
        return []
    return [
        _variant(path, "reordering", "delay correlated in time: order kept", order="correlated"),
        _variant(path, "reordering, by a clamp", "order clamped: the mean delay rises", order="clamp"),
    ]


def _directions(path: Conditions) -> list[PathVariant]:
    """The variants with jitter in one direction only."""
    if path.jitter_on != "both":
        return []
    return [
        _variant(path, OF_ACKS, "jitter on the data only", jitter_on="forward"),
        _variant(path, "jitter of the data", "jitter on the ACKs only", jitter_on="reverse"),
    ]


def decompose(path: Conditions, run: Run, can: Callable[[Conditions], bool] = lambda _: True) -> list[Damage]:
    """The damage of every ingredient of which `can` says that the engine can run the path without it, the largest gain first."""
    variants = [variant for variant in without(path) if can(variant.path)]
    if not variants:
        return []
    full, *others = run([path, *(v.path for v in variants)])
    calm = next((_goodputs(trials) for variant, trials in zip(variants, others, strict=True) if variant.ingredient == CALM), None)
    damages = [_damage(variant, trials, _goodputs(full), calm) for variant, trials in zip(variants, others, strict=True)]
    return sorted(damages, key=lambda d: -d.gain.value)


def _damage(variant: PathVariant, trials: Sequence[Trial], full: list[float], calm: list[float] | None) -> Damage:
    goodputs = _goodputs(trials)
    back = undone(full, goodputs, calm) if calm and variant.ingredient not in ("loss", CALM) else None
    return Damage(variant.ingredient, variant.how, stats.mean(goodputs, "Mbit/s"), stats.ratio(goodputs, full), back, achieved(trials))


def _goodputs(trials: Sequence[Trial]) -> list[float]:
    return [t.goodput_mbps for t in trials]


def undone(full: Sequence[float], variant: Sequence[float], calm: Sequence[float]) -> Estimate | None:
    """(variant − full) / (calm − full) of the means, with a percentile interval from resampled seeds; None where calm is not clearly above full."""
    a, b, c = (np.asarray(x, dtype=float) for x in (full, variant, calm))
    if not stats.ratio(c, a).low > 1:
        return None
    picked = np.random.default_rng(len(a)).integers(0, len(a), (RESAMPLES, len(a)))
    mean_a, mean_b, mean_c = (x[picked].mean(axis=1) for x in (a, b, c))
    drawn = (mean_b - mean_a) / np.where(mean_c > mean_a, mean_c - mean_a, np.nan)
    low, high = np.nanquantile(drawn, [TAIL, 1 - TAIL])
    return Estimate(float((b.mean() - a.mean()) / (c.mean() - a.mean())), float(low), float(high), len(a), "1")


def achieved(trials: Sequence[Trial]) -> Achieved:
    """The delay that the impairments of a path gave its packets, from the queues' counters."""
    return Achieved(_direction(trials, "forward"), _direction(trials, "reverse"))


def _direction(trials: Sequence[Trial], direction: str) -> Delay | None:
    """The delay in one direction, the mean over the trials that report it."""
    delays = [d for t in trials for d in [_delay([q for q in t.queues if q.get("direction") == direction])] if d]
    if not delays:
        return None
    n = len(delays)
    return Delay(sum(d.mean_ms for d in delays) / n, sum(d.sd_ms for d in delays) / n, sum(d.overtaken for d in delays) / n)


def _delay(queues: Sequence[Mapping[str, Any]]) -> Delay | None:
    """The delay of stages in a row: their means add up, and their variances, which are independent."""
    stages = [q for q in queues if q.get("name") in DELAYS and q.get("delay", {}).get("count")]
    if not stages:
        return None
    mean, variance = sum(q["delay"]["mean"] for q in stages), sum(q["delay"]["sd"] ** 2 for q in stages)
    overtaken = sum(q["reordered"] / max(1, q["packets_out"]) for q in stages)
    return Delay(mean / 1e6, math.sqrt(variance) / 1e6, overtaken)
