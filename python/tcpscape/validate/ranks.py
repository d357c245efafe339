"""Whether two sides rank congestion controls alike, on the paths that several of them ran on."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from tcpscape.stats.estimate import CONFIDENCE
from tcpscape.validate.agreement import TINY_MBPS
from tcpscape.validate.compare import Divergence, groups, medians, share
from tcpscape.validate.runs import Runs

RESAMPLES = 1000
TIE = 0.02
"""Medians within this share of each other are a tie."""
NEAR_BEST = 0.9
"""Share of the best goodput on a path from which on a congestion control counts as the best too."""
CHANCES = 200
"""Sets of runs that a perfect model is tried on."""
LEAST_FOR_ORDER = 3
"""Congestion controls on a path for a rank correlation; two are a pair."""


@dataclass(frozen=True)
class Ranks:
    """Agreement over all paths."""

    paths: int
    """Paths that several congestion controls ran on."""
    pairs: int
    """Pairs of congestion controls on one path."""
    alike: float
    """Share of the pairs in which both sides name the same winner by the medians, or both a tie (within 2 %)."""
    decided: int
    """Pairs in which B's winner is beyond a tie and beyond the scatter of its runs (the interval of the ln ratio lies outside ± 2 %)."""
    decided_alike: float
    """Share of those in which A names the same winner."""
    opposed: int
    """Pairs in which both are decided, for opposite winners."""
    best: float
    """Share of the paths in which what A ranks best is B's best too, or carries at least 90 % of its goodput on B (medians)."""
    best_chance: float
    """What a perfect model would show there, with as many runs drawn from B's own; NaN where B has a single run."""
    kendall: float
    """Mean over the paths of Kendall's tau between A's and B's goodputs; NaN below three congestion controls."""
    spearman: float
    """Mean over the paths of Spearman's rho; NaN below three."""

    def to_dict(self) -> dict[str, float | int | None]:
        """Plain values; unknown ones are None."""
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}


def ranks(divergences: Sequence[Divergence]) -> Ranks | None:
    """The agreement; None where no path ran under two congestion controls."""
    paths = [g for g in groups(divergences, lambda c: c.path).values() if len({c.condition.cca for c in g}) > 1]
    if not paths:
        return None
    pairs = [(_winner(x.a, y.a), _winner(x.b, y.b)) for g in paths for x, y in itertools.combinations(g, 2)]
    orders = [_orders(g) for g in paths if len(g) >= LEAST_FOR_ORDER]
    decided = [(a, b) for a, b in pairs if b.decided]
    return Ranks(
        paths=len(paths), pairs=len(pairs), alike=share(a.winner == b.winner for a, b in pairs), decided=len(decided),
        decided_alike=share(a.sign == b.sign for a, b in decided), opposed=sum(a.decided and a.sign != b.sign for a, b in decided),
        best=share(_best_alike(_medians(g, 0), _medians(g, 1)) for g in paths), best_chance=_mean([_chance(g) for g in paths]),
        kendall=_mean([o[0] for o in orders]), spearman=_mean([o[1] for o in orders]),
    )  # fmt: skip


@dataclass(frozen=True)
class _Winner:
    """The winner of two congestion controls on one side."""

    sign: int
    """1 the first, -1 the second, 0 equal."""
    tie: bool
    decided: bool

    @property
    def winner(self) -> int:
        """The sign, 0 for a tie."""
        return 0 if self.tie else self.sign


def _winner(x: Runs, y: Runs) -> _Winner:
    """By the medians, and whether it is beyond the scatter."""
    draws = medians(x.goodput, len(x), RESAMPLES, 5) - medians(y.goodput, len(y), RESAMPLES, 6)
    value = float(np.log(max(np.median(x.goodput), TINY_MBPS)) - np.log(max(np.median(y.goodput), TINY_MBPS)))
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return _Winner(int(np.sign(value)), abs(value) <= TIE, bool(low > TIE or high < -TIE) and min(len(x), len(y)) > 1)


def _medians(group: Sequence[Divergence], side: int) -> list[float]:
    """Median goodputs on A (0) or B (1)."""
    return [float(np.median((c.b if side else c.a).goodput)) for c in group]


def _best_alike(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether A's best is B's, or nearly."""
    return b[int(np.argmax(a))] >= NEAR_BEST * max(b)


def _chance(group: Sequence[Divergence]) -> float:
    """The share of draws in which the best agree where both sides are drawn from B's runs, smoothed as in :attr:`Divergence.chance`."""
    if min(len(c.b) for c in group) < 2:
        return math.nan

    def draw(n: int, seed: int) -> list[list[float]]:
        sets = [medians(c.b.goodput, n, CHANCES, seed + i, c.smoothing) for i, c in enumerate(group)]
        return [list(map(float, goodputs)) for goodputs in np.exp(np.array(sets)).T]

    pairs = zip(draw(len(group[0].a), 7), draw(len(group[0].b), 1007), strict=True)
    return share(_best_alike(a, b) for a, b in pairs)


def _orders(group: Sequence[Divergence]) -> tuple[float, float]:
    from scipy.stats import kendalltau, spearmanr

    a, b = [float(np.median(c.a.goodput)) for c in group], [float(np.median(c.b.goodput)) for c in group]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(kendalltau(a, b).statistic), float(spearmanr(a, b).statistic)


def _mean(values: Sequence[float]) -> float:
    known = [v for v in values if not math.isnan(v)]
    return float(np.mean(known)) if known else math.nan
