"""Runs a validation: every condition on both sides, then further seeds where an interval is still too wide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tcpscape.errors import refuse
from tcpscape.validate.compare import Divergence
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.runs import Runs
from tcpscape.validate.sides import Say, Side

LEAST_SHARE, FEW = 0.2, 5
"""A side runs further seeds where its scatter makes at least this share of the interval's variance, or where it has fewer runs than this."""
MOST_SEEDS = 24
"""Most seeds of a condition on one side, where `precision` asks for more."""


@dataclass(frozen=True)
class ValidationPlan:
    """The conditions and the two sides of a validation. A is compared with B, the reference."""

    conditions: Sequence[NamedScenario]
    a: Side
    b: Side
    seeds: tuple[int, int] = (3, 3)
    """Of each condition on A and on B, in the first round."""
    precision: float | None = None
    """Half width of the ln ratio's interval that every condition should reach; None: one round."""
    most: int = MOST_SEEDS
    """Most seeds of a condition on one side."""


@dataclass(frozen=True)
class ValidationResult:
    """The divergence of every condition that both sides could run."""

    a: Side
    b: Side
    divergences: tuple[Divergence, ...]
    left_out: tuple[tuple[str, str], ...]
    """Conditions that a side cannot run, with its reason."""

    @property
    def caveats(self) -> list[str]:
        """Whatever weakens the results, each once, with its side and the number of runs; the frequent ones first."""
        counts = Counter(
            f"{side.label}: {caveat}"
            for c in self.divergences for side, runs in ((self.a, c.a), (self.b, c.b)) for t in runs.trials for caveat in t.caveats
        )
        return [f"{text} ({n} run{'s' * (n > 1)})" for text, n in counts.most_common()]

    def find(self, id: str) -> Divergence:
        """The divergence of one condition."""
        for c in self.divergences:
            if c.condition.id == id:
                return c
        refuse("explain", f"there is no condition {id!r} that both sides ran", "choose an id of conditions.csv")


def quiet(_: str) -> None:
    """Reports nothing."""


def run(plan: ValidationPlan, say: Say = quiet) -> ValidationResult:
    """Runs the conditions, B first, then adds seeds until every interval is narrow enough or has its most seeds."""
    left_out = [(c.id, why) for c in plan.conditions if (why := plan.a.refuses(c) or plan.b.refuses(c))]
    refused = {id for id, _ in left_out}
    runnable = [c for c in plan.conditions if c.id not in refused]
    if not runnable:
        refuse("conditions", f"no condition can run on both sides ({left_out[0][1] if left_out else 'none given'})", "name others")
    counts = {c.id: plan.seeds for c in runnable}
    compared = _round(plan, runnable, counts, say)
    while plan.precision is not None:
        increased = _increased_seeds(plan, compared)
        if not increased:
            break
        counts |= increased
        repeated = {c.condition.id: c for c in _round(plan, [c for c in runnable if c.id in increased], counts, say)}
        compared = [repeated.get(c.condition.id, c) for c in compared]
    return ValidationResult(plan.a, plan.b, tuple(compared), tuple(left_out))


def _round(plan: ValidationPlan, conditions: Sequence[NamedScenario], counts: dict[str, tuple[int, int]], say: Say) -> list[Divergence]:
    runs: list[list[Runs]] = []
    for side, place in ((plan.b, 1), (plan.a, 0)):
        work = [(c, counts[c.id][place]) for c in conditions]
        runs.append(side.measure(work, say(f"{side.label}, {len(conditions)} conditions")))
    return [Divergence(c, a, b) for c, b, a in zip(conditions, *runs, strict=True)]


def _increased_seeds(plan: ValidationPlan, compared: Sequence[Divergence]) -> dict[str, tuple[int, int]]:
    """New numbers of seeds for the conditions whose interval is too wide: twice as many on each side whose scatter matters."""
    increased: dict[str, tuple[int, int]] = {}
    for c in compared:
        if plan.precision is None or c.width <= plan.precision:
            continue
        now = (len(c.a), len(c.b))
        grown = [
            max(n, min(plan.most, 2 * n)) if side.endless and (weight >= LEAST_SHARE or n < FEW) else n
            for n, side, weight in zip(now, (plan.a, plan.b), c.shares, strict=True)
        ]
        if grown != list(now):
            increased[c.condition.id] = (grown[0], grown[1])
    return increased
