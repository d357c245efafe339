"""One condition looked into: traces of several seeds of both engines, the moment at which they part, and their counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcpscape.stats.estimate import number
from tcpscape.validate.bundles import Bundle, bundle
from tcpscape.validate.compare import Comparison
from tcpscape.validate.measured import Runs
from tcpscape.validate.parting import Partings, part
from tcpscape.validate.rounds import Outcome, quiet
from tcpscape.validate.sides import Say, Side

SEEDS = 6
"""Traces of each engine: few enough to look at, enough to tell chance from a difference (924 ways to relabel them)."""


@dataclass(frozen=True)
class Explanation:
    """What both sides did on one condition."""

    comparison: Comparison
    labels: tuple[str, str]
    bundles: tuple[Bundle | None, Bundle | None]
    partings: Partings | None
    """None where a side has no traces."""

    def counters(self) -> list[tuple[str, str, str]]:
        """Each counter with its median and range on A and on B."""
        a, b = self.comparison.a, self.comparison.b
        names = list(dict.fromkeys([*a.counters, *b.counters]))
        rows = [("goodput Mbit/s", _range(a.goodput), _range(b.goodput))]
        rows += [(f"{name} ms", _range(a.known(f"{name}_ms")), _range(b.known(f"{name}_ms"))) for name in ("mean_rtt", "min_rtt")]
        rows += [(name, _counter(a, name), _counter(b, name)) for name in names]
        return [row for row in rows if set(row[1:]) not in ({"–"}, {"0 %"}, {"–", "0 %"})]


def explain(outcome: Outcome, comparison: Comparison, say: Say = quiet, seeds: int = SEEDS) -> Explanation:
    """Runs a condition again with samples and compares the traces."""
    bundles = [_bundle(side, comparison, seeds, say) for side in (outcome.a, outcome.b)]
    a, b = bundles
    return Explanation(comparison, (outcome.a.label, outcome.b.label), (a, b), part(a, b) if a and b else None)


def _bundle(side: Side, comparison: Comparison, seeds: int, say: Say) -> Bundle | None:
    trials = side.traces(comparison.condition, range(seeds), say(f"{side.label}, traces of {comparison.condition.id}"))
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
