"""A whole validation: the conditions run on both sides, the bounds checked, congestion controls ranked, and single conditions explained.

To explain a condition is to compare traces of several seeds of both engines: the moment at which they part, and their counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tcpscape.stats.estimate import number
from tcpscape.validate.bundles import Bundle, bundle
from tcpscape.validate.checks import CheckedBound, DivergenceBound, judge
from tcpscape.validate.compare import Divergence, worst
from tcpscape.validate.parting import Partings, part
from tcpscape.validate.ranks import Ranks, ranks
from tcpscape.validate.rounds import ValidationResult, quiet, run
from tcpscape.validate.runs import Runs
from tcpscape.validate.session import Session, keep_conditions
from tcpscape.validate.sides import Say, Side

SEEDS = 6
"""Traces of each engine: few enough to look at, enough to tell chance from a difference (924 ways to relabel them)."""


@dataclass(frozen=True)
class Explanation:
    """The traces and counters of both sides on one condition."""

    divergence: Divergence
    labels: tuple[str, str]
    bundles: tuple[Bundle | None, Bundle | None]
    partings: Partings | None
    """None where a side has no traces."""

    def counters(self) -> list[tuple[str, str, str]]:
        """Each counter with its median and range on A and on B."""
        a, b = self.divergence.a, self.divergence.b
        names = list(dict.fromkeys([*a.counters, *b.counters]))
        rows = [("goodput Mbit/s", _range(a.goodput), _range(b.goodput))]
        rows += [(f"{name} ms", _range(a.known(f"{name}_ms")), _range(b.known(f"{name}_ms"))) for name in ("mean_rtt", "min_rtt")]
        rows += [(name, _counter(a, name), _counter(b, name)) for name in names]
        return [row for row in rows if set(row[1:]) not in ({"–"}, {"0 %"}, {"–", "0 %"})]


@dataclass(frozen=True)
class Validation:
    """A validation that is done: the divergence of its conditions, and what was derived from it."""

    session: Session
    result: ValidationResult
    checked: Sequence[CheckedBound] = ()
    ranks: Ranks | None = None
    explanations: Sequence[Explanation] = ()


def complete(session: Session, bounds: Sequence[DivergenceBound], k: int, out: Path, say: Say = quiet) -> Validation:
    """Runs the validation, checks the bounds, and explains the `k` worst conditions; recorded results have no traces to explain them by.

    The conditions are written into `out`, so that the validation can be resumed.
    """
    keep_conditions(out, session.plan.conditions)
    result = run(session.plan, say)
    checked = judge(bounds, result.divergences)
    explanations = [explain(result, d, say) for d in worst(result.divergences, k) if d.error > 0] if result.b.endless else []
    return Validation(session, result, checked, ranks(result.divergences), explanations)


def look_into(session: Session, id: str, say: Say = quiet) -> Validation:
    """Runs the plan and explains the condition called `id`."""
    result = run(session.plan, say)
    return Validation(session, result, explanations=[explain(result, result.find(id), say)])


def explain(result: ValidationResult, divergence: Divergence, say: Say = quiet, seeds: int = SEEDS) -> Explanation:
    """Runs a condition again with samples and compares the traces."""
    a, b = (_bundle(side, divergence, seeds, say) for side in (result.a, result.b))
    return Explanation(divergence, (result.a.label, result.b.label), (a, b), part(a, b) if a and b else None)


def _bundle(side: Side, divergence: Divergence, seeds: int, say: Say) -> Bundle | None:
    trials = side.traces(divergence.condition, range(seeds), say(f"{side.label}, traces of {divergence.condition.id}"))
    return bundle(side.label, trials)


def _counter(runs: Runs, name: str) -> str:
    values = runs.counter(name)
    return _range([100 * v for v in values], " %") if name.startswith("limited_by") else _range(values)


def _range(values: Sequence[float], unit: str = "") -> str:
    """`12 (9–14)`: the median and the range."""
    if not values:
        return "–"
    middle, low, high = (number(float(f(values))) for f in (np.median, np.min, np.max))
    return f"{middle}{unit}" + (f" ({low}–{high})" if low != high else "")
