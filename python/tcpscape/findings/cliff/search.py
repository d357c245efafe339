"""The search for a cliff by runs of an engine: the level of an impairment at which the mean falls below a share of its value without the impairment.

1. A coarse walk comes down from the harsh end (collapsed paths are cheap to run) to the first level that holds and is not chaotic. The levels
   below it get a glance with few seeds, because a path may also fall at a low level and hold at a higher one. The edge is the first fall from
   the gentle side. An estimate from a neighbouring path replaces the walk.
2. Bisection narrows the bracket to two steps of the axis' lattice. A level whose interval contains the threshold is repeated.
3. The levels around the edge get runs until the edge's interval (:mod:`tcpscape.findings.cliff.fit`) is two steps wide, or the runs are
   used up: calm cliffs cost few runs, and in the chaos zone the interval shows what the runs leave open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tcpscape import stats
from tcpscape.campaign.execute import Runner
from tcpscape.errors import refuse, shown
from tcpscape.findings.cliff import fit
from tcpscape.findings.cliff.fit import Crossing, Point
from tcpscape.findings.cliff.levels import HALF, Axis, Cliff, is_chaotic, jitter_axis, level, loss_axis
from tcpscape.scenario.conditions import Conditions
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate

REPEAT = 3
"""A level that is undecided after its first runs gets this multiple of them."""
GROWTH = 1.5
"""The runs of levels around the edge then grow by this factor."""
WIDTH = 2
"""Width of the bracket and of the interval at which the search ends, in steps of the lattice: ± one."""
FIRM = 1.5
"""Half-widths of its interval that a settled level is away from the threshold; more than one, because several levels are judged."""
AROUND = 5
"""Levels among which the runs are spread where the interval is wide."""
BASE_SHARE = 0.25
"""The base is repeated where its relative error exceeds this share of a level's: below, it adds at most 3 % to the interval."""

Measure = Callable[[Sequence[float], range], list[list[float]]]
"""(levels in the axis' unit, which seeds, counted from 0) → the metric of each level's runs, larger is better; the same seeds for all."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The threshold of a search, and the runs that it may use."""

    threshold: float = HALF
    """Retention at the edge, a fraction."""
    seeds: int = 20
    """Runs of a level at first."""
    glance: int = 4
    """Runs of a glance at a level below one that holds."""
    most: int = 1200
    """Total runs after which no level gets further ones; walk and bisection are completed even if they take more."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            refuse("threshold", f"{self.threshold:g} is no share of the impairment-free rate", "write for example 50%")
        if min(self.seeds, self.glance) < 2:
            refuse("seeds", "one run says nothing about the spread", "write at least 2")


QUICK = Effort(seeds=8, glance=2, most=0)
"""A result within seconds, without runs to narrow its interval."""


def effort(threshold: float, most: int) -> Effort:
    """What a search for the edge at this retention may cost: `most` runs, or a quick look where that is 0."""
    return Effort(threshold, most=most) if most else replace(QUICK, threshold=threshold)


def find(measure: Measure, axis: Axis, effort: Effort = Effort(), near: float | None = None, base: Measure | None = None) -> Cliff:
    """Runs along the axis and finds the edge. A path that carries nothing without the impairment has none.

    `near` is a level near which the edge is expected; it replaces the walk. `base` measures the metric without the impairment at each level, where
    the axis itself changes it (`axis.origin` is None); otherwise the level `axis.origin` is run once.
    """
    if (base is None) == (axis.origin is None):
        refuse("base", "an axis has either an origin or a base for each level", "give one of the two")
    search = _Search(measure, base, axis, effort)
    if search.dead():
        return search.answer(None)
    if near is None:
        search.walk()
    else:
        search.approach(round(min(axis.last, max(axis.first, axis.step(near)))))
    search.bisect()
    return search.answer(search.refine())


class _Search:
    """A search in progress: the runs of each level so far, by the level's step on the lattice."""

    def __init__(self, measure: Measure, base: Measure | None, axis: Axis, effort: Effort) -> None:
        self.measure, self.base, self.axis, self.effort = measure, base, axis, effort
        self.values: dict[int, NDArray[np.float64]] = {}
        self.bases: dict[int, NDArray[np.float64]] = {}
        self.runs = 0
        self.shared = np.array([]) if base else self._extended(measure, np.array([]), axis.origin or 0.0, effort.seeds)
        """Runs of the base of all levels; empty where each level has a base of its own."""

    def dead(self) -> bool:
        """Whether nothing gets through without the impairment."""
        if self.base:
            self.take(self.axis.first, self.effort.seeds)
        calm = self.bases[self.axis.first] if self.base else self.shared
        return not calm.any()

    def _extended(self, measure: Measure, values: NDArray[np.float64], at: float, n: int) -> NDArray[np.float64]:
        """The values and those of further runs at a level, `n` in all."""
        if n <= len(values):
            return values
        further = measure([at], range(len(values), n))[0]
        self.runs += len(further)
        return np.concatenate([values, np.asarray(further, dtype=float)])

    def take(self, step: int, n: int) -> None:
        """Completes the runs of a step to `n`, and the base to as many as these require."""
        at = self.axis.level(step)
        self.values[step] = self._extended(self.measure, self.values.get(step, np.array([])), at, n)
        if self.base:
            self.bases[step] = self._extended(self.base, self.bases.get(step, np.array([])), at, n)
        elif len(self.shared) < n and _relative(self.shared) > BASE_SHARE * _relative(self.values[step]):
            self.shared = self._extended(self.measure, self.shared, self.axis.origin or 0.0, n)

    def point(self, step: int) -> Point:
        """A step with its runs, as the fit takes it."""
        return Point(step, self.values[step], self.bases.get(step, self.shared))

    def look(self, step: int) -> None:
        """Measures a level, and repeats it with more seeds where it is undecided."""
        self.take(step, self.effort.seeds)
        if not self.point(step).decided(self.effort.threshold, FIRM):
            self.take(step, REPEAT * self.effort.seeds)

    def fell(self, step: int) -> bool:
        """Whether the retention at a step is below the threshold, or unknown."""
        return not self.point(step).retention >= self.effort.threshold

    def calm(self, step: int) -> bool:
        """Whether a level holds and is not chaotic."""
        point = self.point(step)
        below = float(np.mean(point.values < self.effort.threshold * point.base.mean()))
        return not self.fell(step) and not is_chaotic(point.retention, _cv(point.values), _cv(point.base), below)

    def walk(self) -> None:
        """Measures from the harsh end to the first level that holds, and glances at those below."""
        held = False
        for step in self.axis.walk():
            if held:
                self.glance(step)
            else:
                self.look(step)
            held = self.calm(step)

    def glance(self, step: int) -> None:
        """Measures a level with few seeds, and fully where it shows a fall."""
        self.take(step, self.effort.glance)
        if self.fell(step):
            self.look(step)

    def approach(self, step: int) -> None:
        """Searches outwards from a step until the edge is between two levels, then glances at the levels below them."""
        self.look(step)
        falling, stride = self.fell(step), WIDTH
        end = self.axis.first if falling else self.axis.last
        while self.fell(step) == falling and step != end:
            step = max(end, step - stride) if falling else min(end, step + stride)
            self.look(step)
            stride *= 2
        for lower in [s for s in self.axis.walk() if s < min(self.values)]:
            self.glance(lower)

    def bracket(self) -> tuple[int, int] | None:
        """The last step that holds before the first that fell; `first − 1` is the level without the impairment."""
        fallen = [s for s in self.values if self.fell(s)]
        if not fallen:
            return None
        return max((s for s in self.values if s < min(fallen)), default=self.axis.first - 1), min(fallen)

    def bisect(self) -> None:
        """Measures in the middle of the bracket until it is narrow."""
        while (bracket := self.bracket()) and bracket[1] - bracket[0] > WIDTH:
            self.look(sum(bracket) // 2)

    def refine(self) -> Crossing | None:
        """Adds runs to the levels around the edge until its interval is narrow; returns the crossing."""
        while (crossing := self.crossing(fit.LOOK)) and self.runs < self.effort.most and (steps := self.unsettled(crossing)):
            for step in steps:
                if self.runs < self.effort.most:
                    self.extend(step)
        return self.crossing(fit.FINAL)

    def extend(self, step: int) -> None:
        """Adds runs at a step, as far as the effort allows."""
        known = len(self.values.get(step, ()))
        left = self.effort.most - self.runs
        self.take(step, min(max(self.effort.seeds, math.ceil(GROWTH * known)), known + left))

    def unsettled(self, crossing: Crossing) -> list[int]:
        """The undecided steps that get runs next: those within the crossing's interval, and dips before the edge.

        Where the interval is narrow already, only the steps within it that have few runs: it may be narrow by chance.
        """
        low, high = (min(self.axis.last, max(self.axis.first, x)) for x in (crossing.low, crossing.high))
        inside = range(math.floor(low), math.ceil(high) + 1)
        if crossing.high - crossing.low <= WIDTH:
            few = REPEAT * self.effort.seeds
            return [s for s in inside if len(self.values.get(s, ())) in range(1, few) and not self.settled(s)]
        near = sorted(inside, key=lambda s: abs(s - crossing.value))[:2]
        spread = {inside[round(i * (len(inside) - 1) / (AROUND - 1))] for i in range(AROUND)}
        dips = {s for s in self.window() if s < crossing.value and self.fell(s)}
        return [s for s in sorted({*near, *spread, *dips}) if not self.settled(s)]

    def settled(self, step: int) -> bool:
        """Whether a step has the full number of runs and is clearly on one side of the threshold."""
        known = len(self.values.get(step, ()))
        return known >= self.effort.seeds and self.point(step).decided(self.effort.threshold, FIRM)

    def window(self) -> list[int]:
        """The steps around the edge."""
        points = fit.around([self.point(s) for s in sorted(self.values)], self.effort.threshold)
        return [round(p.step) for p in points]

    def crossing(self, resamples: int) -> Crossing | None:
        """Where the fit through the steps around the edge passes the threshold; None where no step fell."""
        steps = self.window()
        if not steps:
            return None
        start = 0.0 if self.axis.first == 1 else -math.inf
        return fit.crossing([self.point(s) for s in steps], self.effort.threshold, start, resamples)

    def answer(self, crossing: Crossing | None) -> Cliff:
        """The cliff with every level measured so far."""
        calm = self.bases[self.axis.first] if self.base else self.shared
        levels = tuple(
            level(self.axis.level(s), self.values[s].tolist(), self.bases.get(s, self.shared).tolist(), self.effort.threshold)
            for s in sorted(self.values)
            if calm.any()
        )
        return Cliff(self.axis, stats.mean(calm, "Mbit/s"), levels, self._edge(crossing), self.runs)

    def _edge(self, crossing: Crossing | None) -> Estimate | None:
        """The crossing in the axis' unit; None where the threshold is not passed on the axis."""
        if crossing is None or crossing.value == math.inf:
            return None
        ends = [self._level(x) for x in (crossing.low, crossing.high)]
        value = self._level(crossing.value)
        if crossing.value == -math.inf:
            ends.append(self.axis.level(self.axis.first))
        return Estimate(value, min(ends), max(ends), sum(len(self.values[s]) for s in self.window()), self.axis.unit)

    def _level(self, step: float) -> float:
        """The level at a step that may lie beyond the axis: −∞ is no impairment, ∞ an infinite one."""
        if step == -math.inf:
            return self.axis.gentle if self.axis.origin is None else self.axis.origin
        return math.copysign(math.inf, self.axis.harsh - self.axis.gentle) if step == math.inf else self.axis.level(step)


def _cv(values: NDArray[np.float64]) -> float:
    mean = float(values.mean())
    return float(values.std(ddof=1)) / mean if len(values) > 1 and mean else 0.0


def _relative(values: NDArray[np.float64]) -> float:
    """Relative standard error of the mean."""
    return _cv(values) / math.sqrt(len(values))


Impairment = Literal["jitter", "loss"]
"""What a search varies on a path."""
Along = Callable[[float], Sequence[Scenario]]
"""A level → the scenarios of one measurement there; several are pooled (the published studies average two application rates)."""


def impairment(along: str, given: Mapping[str, object], prefix: str = "") -> Impairment:
    """What a search varies, by its name; `given` has what else is said of jitter and of loss, `prefix` is how an option is typed.

    :raises ScenarioError: one line, where there is no such axis, or its level is given too.
    """
    varied: Impairment | None = "jitter" if along == "jitter" else "loss" if along == "loss" else None
    if varied is None:
        refuse("along", f"{shown(along)} is no axis of a cliff", "write jitter or loss")
    if given[varied] is not None:
        refuse(varied, "it is what the search varies", f"leave {prefix}{varied} out")
    return varied


def on_path(runner: Runner, path: Conditions, cca: str, along: Impairment, effort: Effort) -> Cliff:
    """The cliff of a path under one congestion control, along its jitter (levels in ns) or its loss (fractions)."""
    if along == "jitter":
        return find(measure(runner, lambda ns: [path.model_copy(update={"jitter": int(ns)}).scenario(cca)]), jitter_axis(path.rtt), effort)
    return find(measure(runner, lambda share: [path.model_copy(update={"loss": share}).scenario(cca)]), loss_axis(), effort)


def measure(runner: Runner, along: Along, first: int = 0) -> Measure:
    """Goodput in Mbit/s, the mean over the scenarios of a level under one seed; seed 0 of a search is the engine's seed `first`."""

    def run(levels: Sequence[float], seeds: range) -> list[list[float]]:
        return [_pooled(runner, along(x), range(first + seeds.start, first + seeds.stop)) for x in levels]

    return run


def _pooled(runner: Runner, scenarios: Sequence[Scenario], seeds: range) -> list[float]:
    """The mean goodput over the scenarios under each seed, Mbit/s."""
    runs = runner.run_all([(s, seeds) for s in scenarios])
    return [float(x) for x in np.mean([[t.goodput_mbps for t in trials] for trials in runs], axis=0)]
