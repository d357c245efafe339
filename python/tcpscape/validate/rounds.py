"""A validation: every condition on both sides, and more seeds where the answer is still open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tcpscape.errors import refuse
from tcpscape.validate.compare import Comparison
from tcpscape.validate.conditions import Condition
from tcpscape.validate.measured import Runs
from tcpscape.validate.sides import Say, Side

LEAST_SHARE, FEW = 0.2, 5
"""A side gets more seeds where its scatter makes at least this share of the interval's variance, or where it has fewer runs than this."""
MOST_SEEDS = 24
"""Most seeds of a condition on one side, where `precision` asks for more."""


@dataclass(frozen=True)
class Request:
    """What to validate. A is compared with B, the reference."""

    conditions: Sequence[Condition]
    a: Side
    b: Side
    seeds: tuple[int, int] = (3, 3)
    """Of each condition on A and on B, in the first round."""
    precision: float | None = None
    """Half width of the ln ratio's interval that every condition should reach; None: one round."""
    most: int = MOST_SEEDS


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    a: Side
    b: Side
    comparisons: tuple[Comparison, ...]
    left_out: tuple[tuple[str, str], ...]
    """Conditions that a side cannot run, with its reason."""

    @property
    def caveats(self) -> list[str]:
        """What weakens the results, each once, with the side that says it and in how many runs; the frequent ones first."""
        found = Counter(
            f"{side.label}: {caveat}"
            for c in self.comparisons for side, runs in ((self.a, c.a), (self.b, c.b)) for t in runs.trials for caveat in t.caveats
        )
        return [f"{text} ({n} run{'s' * (n > 1)})" for text, n in found.most_common()]

    def find(self, id: str) -> Comparison:
        """The comparison of one condition."""
        for c in self.comparisons:
            if c.condition.id == id:
                return c
        refuse("explain", f"there is no condition {id!r} that both sides ran", "choose an id of conditions.csv")


def quiet(what: str) -> None:
    """Says nothing."""


def run(request: Request, say: Say = quiet) -> Outcome:
    """Runs the conditions, B first, then adds seeds until every interval is narrow enough or has its most seeds."""
    left_out = [(c.id, why) for c in request.conditions if (why := request.a.refuses(c) or request.b.refuses(c))]
    refused = {id for id, _ in left_out}
    able = [c for c in request.conditions if c.id not in refused]
    if not able:
        refuse("conditions", f"no condition can run on both sides ({left_out[0][1] if left_out else 'none given'})", "name others")
    counts = {c.id: request.seeds for c in able}
    compared = _round(request, able, counts, say)
    while request.precision is not None:
        more = _more(request, compared)
        if not more:
            break
        counts |= more
        again = {c.condition.id: c for c in _round(request, [c for c in able if c.id in more], counts, say)}
        compared = [again.get(c.condition.id, c) for c in compared]
    return Outcome(request.a, request.b, tuple(compared), tuple(left_out))


def _round(request: Request, conditions: Sequence[Condition], counts: dict[str, tuple[int, int]], say: Say) -> list[Comparison]:
    runs: list[list[Runs]] = []
    for side, place in ((request.b, 1), (request.a, 0)):
        work = [(c, counts[c.id][place]) for c in conditions]
        runs.append(side.measure(work, say(f"{side.label}, {len(conditions)} conditions")))
    return [Comparison(c, a, b) for c, b, a in zip(conditions, *runs, strict=True)]


def _more(request: Request, compared: Sequence[Comparison]) -> dict[str, tuple[int, int]]:
    """New numbers of seeds for the conditions whose interval is too wide: twice as many on each side whose scatter matters."""
    out: dict[str, tuple[int, int]] = {}
    for c in compared:
        if request.precision is None or c.width <= request.precision:
            continue
        now = (len(c.a), len(c.b))
        grown = [
            max(n, min(request.most, 2 * n)) if side.endless and (weight >= LEAST_SHARE or n < FEW) else n
            for n, side, weight in zip(now, (request.a, request.b), c.shares, strict=True)
        ]
        if grown != list(now):
            out[c.condition.id] = (grown[0], grown[1])
    return out
