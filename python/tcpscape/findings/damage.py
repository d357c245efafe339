"""What does the damage: the path is run again with each ingredient taken away, under the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tcpscape import stats
from tcpscape.findings.conditions import Conditions
from tcpscape.stats import Estimate

FLOOR_SHARE = 0.4
"""Floor of the one-way delay without its low tail, as a share of the delay (10 ms of 25 in the experiment that found the mechanism)."""

Run = Callable[[Sequence[Conditions]], list[list[float]]]
"""Conditions → goodputs in Mbit/s for each, the same seeds for all."""


@dataclass(frozen=True, slots=True)
class Damage:
    """What taking one ingredient away gives back."""

    ingredient: str
    how: str
    goodput: Estimate
    """Without the ingredient, Mbit/s."""
    gain: Estimate
    """Goodput without it / goodput with it, paired."""


def without(path: Conditions) -> list[tuple[str, str, Conditions]]:
    """The ingredients of a path: name, how it is taken away, the path without it."""
    floor = round(path.rtt / 2 * FLOOR_SHARE)
    cases = []
    if path.jitter and path.order == "reorder":
        cases.append(("reordering", "same delays, correlated in time: order kept", path.model_copy(update={"order": "correlated"})))
    if path.jitter:
        cases.append(("low tail of the delay", f"no delay below {floor / 1e6:.3g} ms", path.model_copy(update={"floor": floor})))
        cases.append(("delay variation", "no jitter at all", path.model_copy(update={"jitter": 0})))
    if path.loss:
        cases.append(("loss", "no random loss", path.model_copy(update={"loss": 0.0})))
    return cases


def decompose(path: Conditions, run: Run, can: Callable[[Conditions], bool] = lambda _: True) -> list[Damage]:
    """The damage of every ingredient that `can` be taken away, the largest gain first."""
    cases = [case for case in without(path) if can(case[2])]
    if not cases:
        return []
    full, *others = run([path, *(c for _, _, c in cases)])
    found = [
        Damage(name, how, stats.mean(got, "Mbit/s"), stats.ratio(got, full)) for (name, how, _), got in zip(cases, others, strict=True)
    ]
    return sorted(found, key=lambda d: -d.gain.value)
