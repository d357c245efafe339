"""The divergence of two sides: of one condition, its distribution over many, and bounds on it.

The *error* of a condition is |ln(A/B)| of the median goodputs: 0.05 is 5 %, 0.2 a factor 1.22. The runs of both sides scatter, so the
ln ratio has an interval (percentile bootstrap of both medians; it covers the truth in 95 % of cases from five runs a side and in 90 %
with three). Its end nearest to zero is the *unexplained* error, that no scatter excuses; its far end is the error *at most*. Taking every
condition at one of these ends gives the interval of a median or percentile over conditions. *Chance* is what a perfect model would show:
A's number of runs against B's, both drawn from B's own runs.

Bounds are written `median<=0.04,p90<=0.2,p90@loss<=0.3,overlap>=0.9,p90@each<=0.2`.

Whether two sides rank congestion controls alike, on the paths that several of them ran on.
"""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from tcpscape.campaign import checks
from tcpscape.campaign.checks import OPERATORS, Check
from tcpscape.errors import refuse, shown
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import CONFIDENCE, RESAMPLES, Floats
from tcpscape.stats.means import quotient
from tcpscape.validate.agreement import TINY_MBPS, Agreement, right_winner
from tcpscape.validate.conditions import FAMILIES, NamedScenario
from tcpscape.validate.sides import SideRuns

RETRANSMIT_FACTOR, RETRANSMIT_MIN = 1.5, 20
"""Retransmits agree within this factor; they are judged where B has more than the second number."""
RTT_WITHIN = 0.05
"""Mean RTTs agree within this share."""
NEAR = 1.01
"""Intervals that are nearer than this factor count as overlapping: runs without any scatter have intervals without width."""
SMALL = 0.01
"""Unexplained errors below this are next to none."""
REPLICATES = 400
"""Sets of conditions that a perfect model is tried on."""

SMOOTH = 0.35
"""Of the smoothed bootstrap behind *chance*, in standard deviations of five runs: few runs resampled as they are tie too often."""


def medians(values: Sequence[float], n: int, draws: int, seed: int, smooth: float = 0.0) -> Floats:
    """ln of the medians of `draws` resamples of `n` runs out of `values`; `smooth`: each run moved by a normal error of this sd in ln."""
    rng = np.random.default_rng(seed)
    picked = np.log(np.maximum(values, TINY_MBPS))[rng.integers(0, len(values), (draws, n))]
    middle: Floats = np.median(picked + rng.normal(0, smooth, picked.shape) if smooth else picked, axis=1)
    return middle


def _ends(draws: Floats) -> tuple[float, float]:
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class Divergence:
    """The divergence of one condition: its runs on both sides, compared."""

    condition: NamedScenario
    a: SideRuns
    b: SideRuns

    @cached_property
    def _draws(self) -> tuple[Floats, Floats]:
        return medians(self.a.goodput, len(self.a), RESAMPLES, 1), medians(self.b.goodput, len(self.b), RESAMPLES, 2)

    @cached_property
    def goodputs(self) -> tuple[Estimate, Estimate]:
        """Median goodput of A and of B with its interval, Mbit/s."""
        return self._median(self.a, 0), self._median(self.b, 1)

    def _median(self, runs: SideRuns, side: int) -> Estimate:
        low, high = np.exp(_ends(self._draws[side])) if len(runs) > 1 else (math.nan, math.nan)
        return Estimate(float(np.median(runs.goodput)), float(low), float(high), len(runs), "Mbit/s")

    @cached_property
    def ln(self) -> Estimate:
        """The ln ratio of the median goodputs, positive where A is faster, with its interval (NaN where a side has a single run)."""
        value = float(np.median(_logs(self.a)) - np.median(_logs(self.b)))
        low, high = _ends(self._draws[0] - self._draws[1]) if min(len(self.a), len(self.b)) > 1 else (math.nan, math.nan)
        return Estimate(value, min(low, value), max(high, value), min(len(self.a), len(self.b)), "1")

    @property
    def error(self) -> float:
        """|ln(A/B)|."""
        return abs(self.ln.value)

    @property
    def unexplained(self) -> float:
        """Distance of the interval to 0: the error that no scatter of the runs excuses. All of it where a side has a single run."""
        return self.error if math.isnan(self.ln.low) else max(0.0, self.ln.low, -self.ln.high)

    @property
    def at_most(self) -> float:
        """The far end of the interval."""
        return self.error if math.isnan(self.ln.low) else max(abs(self.ln.low), abs(self.ln.high))

    @property
    def width(self) -> float:
        """Half of the interval; infinite where there is none."""
        return math.inf if math.isnan(self.ln.low) else (self.ln.high - self.ln.low) / 2

    @property
    def shares(self) -> tuple[float, float]:
        """How much of the interval's variance is A's and how much B's; a half each where neither scatters."""
        a, b = (float(np.var(d)) for d in self._draws)
        return (a / (a + b), b / (a + b)) if a + b else (0.5, 0.5)

    @property
    def overlap(self) -> bool | None:
        """Whether the intervals of the two medians overlap, or are less than 1 % apart; None where a side has a single run."""
        a, b = self.goodputs
        if math.isnan(a.low) or math.isnan(b.low):
            return None
        return a.low <= b.high * NEAR and b.low <= a.high * NEAR

    @cached_property
    def chance(self) -> Floats:
        """|ln| of two medians under no difference, drawn from B's own runs with these numbers of runs; empty for a single run."""
        n = len(self.b)
        if n < 2:
            return np.empty(0)
        drawn: Floats = np.abs(
            medians(self.b.goodput, len(self.a), REPLICATES, 3, self.smoothing) - medians(self.b.goodput, n, REPLICATES, 4, self.smoothing)
        )
        return drawn

    @property
    def smoothing(self) -> float:
        """The standard deviation by which a run of B drawn again is moved, in ln; 0 for a single run."""
        n = len(self.b)
        return SMOOTH * (5 / n) ** 0.2 * float(np.std(_logs(self.b), ddof=1)) if n > 1 else 0.0

    @property
    def floor(self) -> float:
        """The mean of :attr:`chance`: what a perfect model would show on this condition."""
        return float(np.mean(self.chance)) if len(self.chance) else math.nan

    @property
    def _groups(self) -> int:
        return len(self.condition.scenario.flows)

    @cached_property
    def agreement(self) -> Agreement:
        """How far the sides are apart in what groups get and probes measure."""
        return Agreement.of(self.a, self.b, self._groups)

    @cached_property
    def itself(self) -> Agreement:
        """The same of B by itself, one half of its runs against the other."""
        return Agreement.itself(self.b, self._groups)

    @property
    def parts(self) -> tuple[float, ...]:
        """The ln ratio of the median goodput of each group of flows that share the path; empty for one group, or where it is unknown."""
        return self.agreement.groups

    @property
    def latencies(self) -> tuple[float, ...]:
        """A/B − 1 of each probe's median and 95th percentile; empty without probes."""
        return self.agreement.latencies

    @property
    def farthest(self) -> float:
        """The largest error of the goodput, of a group's and of a ping's delays."""
        return max([self.error, *map(abs, self.parts), *(abs(x) for x in self.latencies if not math.isnan(x))])

    @property
    def farthest_unexplained(self) -> float:
        """The largest error beyond what B's halves differ by: of the goodput, of a group's and of a ping's delays."""
        pairs = [*zip(self.parts, self.itself.groups, strict=False), *zip(self.latencies, self.itself.latencies, strict=False)]
        return max([self.unexplained, *(abs(x) - abs(y) for x, y in pairs if not math.isnan(x) and not math.isnan(y))])

    @cached_property
    def winner(self) -> bool | None:
        """Whether the same group gets most per flow; None where B's runs do not agree about it."""
        return right_winner(self.a, self.b, [f.count for f in self.condition.scenario.flows])

    @property
    def larger(self) -> bool | None:
        """Whether the same one of two groups has the larger share, by A's median; None where B's runs do not agree about it."""
        signs = {math.copysign(1, t.parts[0] - t.parts[1]) for t in self.b.trials} if len(self.parts) == 2 else set()
        if len(signs) != 1 or len(self.b) < 2:
            return None
        return math.copysign(1, float(np.median(self.a.part(0))) - float(np.median(self.a.part(1)))) in signs

    def medians_of(self, name: str) -> tuple[float, float]:
        """Medians of A's and B's runs of a field; NaN where unknown."""
        a, b = (r.known(name) for r in (self.a, self.b))
        return (float(np.median(a)) if a else math.nan, float(np.median(b)) if b else math.nan)

    @property
    def retransmit_factor(self) -> float:
        """A's retransmits over B's; NaN where B has `RETRANSMIT_MIN` or fewer."""
        a, b = self.medians_of("retransmits")
        return max(a, 0.5) / b if b > RETRANSMIT_MIN else math.nan

    @property
    def rtt_ratio(self) -> float:
        """A's mean RTT over B's; NaN where unknown."""
        return quotient(*self.medians_of("mean_rtt_ms"))

    @property
    def min_rtt_ratio(self) -> float:
        """A's smallest RTT over B's; NaN where unknown."""
        return quotient(*self.medians_of("min_rtt_ms"))


def _logs(runs: SideRuns) -> Floats:
    logs: Floats = np.log(np.maximum(runs.goodput, TINY_MBPS))
    return logs


def spread(values: Sequence[float]) -> float:
    """Coefficient of variation, NaN for fewer than two values."""
    mean = float(np.mean(values)) if len(values) else math.nan
    return float(np.std(values, ddof=1)) / mean if len(values) > 1 and mean else math.nan


def quantile(values: Iterable[float], q: float) -> float:
    """Linear quantile of the values that are known; NaN where none is."""
    known = [v for v in values if not math.isnan(v)]
    return float(np.quantile(known, q)) if known else math.nan


def share(flags: Iterable[bool | None]) -> float:
    """Share of true values among the known; NaN for none."""
    known = [f for f in flags if f is not None]
    return sum(known) / len(known) if known else math.nan


@dataclass(frozen=True)
class DivergenceSummary:
    """The divergence over a group of conditions. `…_low` and `…_high`: every condition at its unexplained error, or at its largest."""

    n: int
    """Number of conditions."""
    median: float
    """Median error."""
    median_low: float
    """The same with every condition at its unexplained error."""
    median_high: float
    """The same with every condition at its largest error."""
    p90: float
    """90th percentile of the error."""
    p90_low: float
    """The same with every condition at its unexplained error."""
    p90_high: float
    """The same with every condition at its largest error."""
    worst: float
    """Largest error."""
    worst_low: float
    """The same with every condition at its unexplained error."""
    bias: float
    """Median of the signed ln ratio."""
    chance_median: float
    """What a perfect model would show, the mean over sets of runs."""
    chance_p90: float
    """What a perfect model's 90th percentile would be, the mean over sets of runs."""
    chance_p90_high: float
    """What a perfect model's 90th percentile exceeds in one of forty sets of runs."""
    overlap: float
    """Share of conditions in which the intervals of the two medians overlap or are less than 1 % apart."""
    retransmit_n: int
    """Conditions in which B has more than 20 retransmits."""
    retransmit_share: float
    """Share of conditions whose retransmits agree within a factor of 1.5, of those in which B has more than 20."""
    rtt_n: int
    """Conditions in which both mean RTTs are known."""
    rtt_share: float
    """Share of conditions whose mean RTTs agree within 5 %, of those in which both are known."""
    group_n: int
    """Groups of flows, where several share a path."""
    group_median: float
    """Median over them of |ln ratio| of the group's goodput."""
    group_p90: float
    """90th percentile of the same."""
    larger_n: int
    """Conditions of two groups in which B's runs agree which has the larger share."""
    larger_share: float
    """Share of conditions in which the same one of two groups has the larger share, of those in which B's runs agree about it."""
    group_self_median: float
    """The median of B's groups by themselves: the first half of the runs against the last one."""
    group_self_p90: float
    """The 90th percentile of the same."""
    winner_n: int
    """Conditions of several groups in which B's runs agree which one gets most per flow."""
    winner_share: float
    """Share of conditions in which the same group gets most per flow, of those in which B's runs agree about it."""
    latency_n: int
    """Percentiles of probes' delays that are compared: the 50th and the 95th of each."""
    latency_median: float
    """Median over them of the relative error |A/B − 1|."""
    latency_p90: float
    """90th percentile of the same."""
    latency_self_median: float
    """The median of B's percentiles by themselves: the first half of the runs against the last one."""
    latency_self_p90: float
    """The 90th percentile of the same."""

    @classmethod
    def of(cls, group: Sequence[Divergence]) -> DivergenceSummary:
        """Over these divergences."""
        errors, low, high = [c.error for c in group], [c.unexplained for c in group], [c.at_most for c in group]
        factors = [f for c in group if not math.isnan(f := c.retransmit_factor)]
        rtts = [r for c in group if not math.isnan(r := c.rtt_ratio)]
        drawn = [c.chance for c in group if len(c.chance)]
        parts = [abs(x) for c in group for x in c.parts]
        larger = [x for c in group if (x := c.larger) is not None]
        self_parts, winners = [abs(x) for c in group for x in c.itself.groups], [x for c in group if (x := c.winner) is not None]
        latencies, self_latencies = (_sizes(a.latencies for a in some) for some in ([c.agreement for c in group], [c.itself for c in group]))
        perfect = np.array(drawn) if drawn else np.full((1, 1), math.nan)
        perfect_p90 = np.quantile(perfect, 0.9, axis=0)
        return cls(
            n=len(group),
            median=quantile(errors, 0.5),
            median_low=quantile(low, 0.5),
            median_high=quantile(high, 0.5),
            p90=quantile(errors, 0.9),
            p90_low=quantile(low, 0.9),
            p90_high=quantile(high, 0.9),
            worst=max(errors, default=math.nan),
            worst_low=max(low, default=math.nan),
            bias=quantile([c.ln.value for c in group], 0.5),
            chance_median=float(np.mean(np.quantile(perfect, 0.5, axis=0))),
            chance_p90=float(np.mean(perfect_p90)),
            chance_p90_high=float(np.quantile(perfect_p90, (1 + CONFIDENCE) / 2)),
            overlap=share(c.overlap for c in group),
            retransmit_n=len(factors),
            retransmit_share=share(1 / RETRANSMIT_FACTOR <= f <= RETRANSMIT_FACTOR for f in factors),
            rtt_n=len(rtts),
            rtt_share=share(abs(r - 1) <= RTT_WITHIN for r in rtts),
            group_n=len(parts),
            group_median=quantile(parts, 0.5),
            group_p90=quantile(parts, 0.9),
            larger_n=len(larger),
            larger_share=share(larger),
            group_self_median=quantile(self_parts, 0.5),
            group_self_p90=quantile(self_parts, 0.9),
            winner_n=len(winners),
            winner_share=share(winners),
            latency_n=len(latencies),
            latency_median=quantile(latencies, 0.5),
            latency_p90=quantile(latencies, 0.9),
            latency_self_median=quantile(self_latencies, 0.5),
            latency_self_p90=quantile(self_latencies, 0.9),
        )

    def to_dict(self) -> dict[str, float | int | None]:
        """Plain values; unknown ones are None."""
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}


def _sizes(errors: Iterable[Sequence[float]]) -> list[float]:
    """The sizes of all errors that are known."""
    return [abs(x) for some in errors for x in some if not math.isnan(x)]


def groups(divergences: Sequence[Divergence], key: Callable[[NamedScenario], Any]) -> dict[Any, list[Divergence]]:
    """Comparisons by a key of their condition, in order of first appearance."""
    by_key: dict[Any, list[Divergence]] = {}
    for c in divergences:
        by_key.setdefault(key(c.condition), []).append(c)
    return by_key


def worst(divergences: Sequence[Divergence], n: int) -> list[Divergence]:
    """The n with the largest unexplained error; among those with next to none, the largest error. On topologies those of groups and pings count."""

    def key(c: Divergence) -> tuple[float, float, str]:
        error, unexplained = (c.farthest, c.farthest_unexplained) if c.condition.is_topology else (c.error, c.unexplained)
        return -unexplained if unexplained >= SMALL else 0.0, -error, c.condition.id

    return sorted(divergences, key=key)[:n]


METRICS = {field.name: checks.unmeasured(field.name) for field in fields(DivergenceSummary)}
"""What a bound may be on, for the grammar of checks."""
EVERYWHERE, EACH, CCAS = "all", "each", "ccas"
LEAST_OF_CCA = 4
"""Fewest conditions of a congestion control for which `ccas` checks it."""

EXAMPLE = "write for example median<=0.04,p90<=0.2"
GROUP = "group"
"""What a bound chooses, as the grammar of checks has it."""


@dataclass(frozen=True)
class CheckedBound:
    """A bound and the value that was reached."""

    bound: Check
    group: str
    reached: float

    @property
    def met(self) -> bool:
        """Whether the bound holds; an unknown number meets no bound."""
        return not math.isnan(self.reached) and OPERATORS[self.bound.op](self.reached, self.bound.number)


def read_bounds(text: str) -> list[Check]:
    """The bounds of a text: checks of :data:`METRICS`, in which `p90@loss` stands for `p90[group=loss]`."""
    bounds = [
        checks.read(re.sub(r"@\s*([^<>]+?)\s*(?=[<>])", rf"[{GROUP}=\1]", part), METRICS, only=True, example=EXAMPLE) for part in text.split(",")
    ]
    for bound in bounds:
        if bound.named or bound.below is not None or set(bound.chosen) - {GROUP}:
            refuse("check", f"{shown(bound.text)} is not NAME@GROUP<=NUMBER", EXAMPLE)
    return bounds


def _groups_of(group: str, families: Mapping[str, object], ccas: Mapping[str, Sequence[Divergence]]) -> list[str]:
    """The groups that a bound is about."""
    if group == EACH:
        return [f for f in FAMILIES if f in families]
    return [cca for cca in sorted(ccas) if len(ccas[cca]) >= LEAST_OF_CCA] if group == CCAS else [group]


def judge(bounds: Sequence[Check], divergences: Sequence[Divergence]) -> list[CheckedBound]:
    """Each bound on its group: `all`, a family, a congestion control, `each` family, or each of the `ccas` with four conditions or more."""
    by_family, by_cca = groups(divergences, lambda c: c.family), groups(divergences, lambda c: c.cca)
    known = {EVERYWHERE: list(divergences), **by_cca, **by_family}
    checked = []
    for bound in bounds:
        chosen = bound.chosen.get(GROUP, EVERYWHERE)
        if chosen not in (EACH, CCAS) and chosen not in known:
            refuse("check", f"no condition belongs to {shown(chosen)}", f"choose {', '.join([EACH, CCAS, *known])}")
        for group in _groups_of(chosen, by_family, by_cca):
            checked.append(CheckedBound(bound, group, float(getattr(DivergenceSummary.of(known[group]), bound.metric.name))))
    return checked


WINNER_RESAMPLES = 1000
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
        paths=len(paths),
        pairs=len(pairs),
        alike=share(a.winner == b.winner for a, b in pairs),
        decided=len(decided),
        decided_alike=share(a.sign == b.sign for a, b in decided),
        opposed=sum(a.decided and a.sign != b.sign for a, b in decided),
        best=share(_best_alike(_medians(g, 0), _medians(g, 1)) for g in paths),
        best_chance=_mean([_chance(g) for g in paths]),
        kendall=_mean([o[0] for o in orders]),
        spearman=_mean([o[1] for o in orders]),
    )


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


def _winner(x: SideRuns, y: SideRuns) -> _Winner:
    """By the medians, and whether it is beyond the scatter."""
    draws = medians(x.goodput, len(x), WINNER_RESAMPLES, 5) - medians(y.goodput, len(y), WINNER_RESAMPLES, 6)
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
