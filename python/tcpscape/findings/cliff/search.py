"""Where the cliff is: the level of an impairment at which the mean falls below a share of what it is without, found by running.

1. A coarse walk comes down from the harsh end (collapsed paths are cheap to run) to the first level that holds and is not chaotic; the
   levels below it are only looked at, with a few seeds, because a path may also fall at little and hold at more. The edge is the first
   fall from the gentle side. A neighbour's answer replaces the walk.
2. Bisection narrows the bracket to two steps of the axis' lattice. A level whose interval holds the threshold is repeated.
3. The levels around the edge get runs until the edge's interval (:mod:`tcpscape.findings.cliff.fit`) is two steps wide, or the runs are
   used up: calm cliffs cost little, and in the chaos zone the interval says what the runs could not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpscape import stats
from tcpscape.errors import refuse
from tcpscape.findings.cliff import fit
from tcpscape.findings.cliff.axis import Axis
from tcpscape.findings.cliff.fit import Crossing, Point
from tcpscape.findings.cliff.levels import HALF, Cliff, Level, level, wild
from tcpscape.stats import Estimate

__all__ = ["HALF", "QUICK", "Axis", "Cliff", "Effort", "Level", "Measure", "find", "level"]

REPEAT = 3
"""A level that is open after its first runs gets this many times as many."""
GROWTH = 1.5
"""Then the levels around the edge grow by this factor."""
WIDTH = 2
"""Steps of the lattice that the bracket and the interval may be wide: ± one."""
FIRM = 1.5
"""Half-widths of its interval by which a level is off the threshold to be settled: several levels are judged, so one is not enough."""
AROUND = 5
"""Levels that share the runs where the interval is wide."""
BASE_SHARE = 0.25
"""The base is repeated where its relative error exceeds this share of a level's: it then adds 3 % to the interval at most."""

Measure = Callable[[Sequence[float], range], list[list[float]]]
"""(levels in the axis' unit, which seeds, counted from 0) → the metric of each level's runs, larger is better; the same seeds for all."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What is asked and what it may cost."""

    threshold: float = HALF
    """Retention at the edge, a fraction."""
    seeds: int = 20
    """Runs of a level at first."""
    glance: int = 4
    """Runs of a look at a level below one that holds."""
    most: int = 1200
    """Runs in all after which no level gets more; where walk and bisection take as many, these alone are made."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            refuse("threshold", f"{self.threshold:g} is no share of the impairment-free rate", "write for example 50%")
        if min(self.seeds, self.glance) < 2:
            refuse("seeds", "one run says nothing about the spread", "write at least 2")


QUICK = Effort(seeds=8, glance=2, most=0)
"""An answer within seconds, its interval as it comes."""


def find(measure: Measure, axis: Axis, effort: Effort = Effort(), near: float | None = None, base: Measure | None = None) -> Cliff:
    """Runs along the axis and finds the edge. A path that carries nothing without the impairment has none.

    `near`: a level where the edge may be, instead of the walk. `base`: the metric without the impairment at each level, where the axis
    itself changes it (`axis.origin` is None); otherwise the level `axis.origin` is run once.
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
    """The levels measured so far, by their step on the lattice."""

    def __init__(self, measure: Measure, base: Measure | None, axis: Axis, effort: Effort) -> None:
        self.measure, self.base, self.axis, self.effort = measure, base, axis, effort
        self.values: dict[int, NDArray[np.float64]] = {}
        self.bases: dict[int, NDArray[np.float64]] = {}
        self.runs = 0
        self.shared = np.array([]) if base else self._grown(measure, np.array([]), axis.origin or 0.0, effort.seeds)

    def dead(self) -> bool:
        """Whether nothing gets through without the impairment."""
        if self.base:
            self.take(self.axis.first, self.effort.seeds)
        calm = self.bases[self.axis.first] if self.base else self.shared
        return not calm.any()

    def _grown(self, measure: Measure, have: NDArray[np.float64], at: float, n: int) -> NDArray[np.float64]:
        if n <= len(have):
            return have
        got = measure([at], range(len(have), n))[0]
        self.runs += len(got)
        return np.concatenate([have, np.asarray(got, dtype=float)])

    def take(self, step: int, n: int) -> None:
        """Sees to `n` runs at a step, and to as many of the base as they need."""
        at = self.axis.level(step)
        self.values[step] = self._grown(self.measure, self.values.get(step, np.array([])), at, n)
        if self.base:
            self.bases[step] = self._grown(self.base, self.bases.get(step, np.array([])), at, n)
        elif len(self.shared) < n and _relative(self.shared) > BASE_SHARE * _relative(self.values[step]):
            self.shared = self._grown(self.measure, self.shared, self.axis.origin or 0.0, n)

    def point(self, step: int) -> Point:
        return Point(step, self.values[step], self.bases.get(step, self.shared))

    def look(self, step: int) -> None:
        """Measures a level, and once more with more seeds where the answer is open."""
        self.take(step, self.effort.seeds)
        if not self.point(step).decided(self.effort.threshold, FIRM):
            self.take(step, REPEAT * self.effort.seeds)

    def fell(self, step: int) -> bool:
        return not self.point(step).retention >= self.effort.threshold

    def calm(self, step: int) -> bool:
        """Whether a level holds and is not chaotic."""
        point = self.point(step)
        below = float(np.mean(point.values < self.effort.threshold * point.base.mean()))
        return not self.fell(step) and not wild(point.retention, _cv(point.values), _cv(point.base), below)

    def walk(self) -> None:
        """From the harsh end to the first level that holds; a glance at those below."""
        held = False
        for step in self.axis.walk():
            if held:
                self.glance(step)
            else:
                self.look(step)
            held = self.calm(step)

    def glance(self, step: int) -> None:
        """A look with few seeds, and a proper one where it shows a fall."""
        self.take(step, self.effort.glance)
        if self.fell(step):
            self.look(step)

    def approach(self, step: int) -> None:
        """Outwards from a step until the edge is between two levels, then the glances below them."""
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
        """Last step that holds before the first that fell; `first − 1` stands for no impairment."""
        fallen = [s for s in self.values if self.fell(s)]
        if not fallen:
            return None
        return max((s for s in self.values if s < min(fallen)), default=self.axis.first - 1), min(fallen)

    def bisect(self) -> None:
        while (bracket := self.bracket()) and bracket[1] - bracket[0] > WIDTH:
            self.look(sum(bracket) // 2)

    def refine(self) -> Crossing | None:
        """Gives the levels around the edge runs until its interval is narrow; the crossing."""
        while (found := self.crossing(fit.LOOK)) and self.runs < self.effort.most and (wanted := self.wanted(found)):
            for step in wanted:
                if self.runs < self.effort.most:
                    self.more(step)
        return self.crossing(fit.FINAL)

    def more(self, step: int) -> None:
        """More runs at a step, as far as the effort goes."""
        known = len(self.values.get(step, ()))
        left = self.effort.most - self.runs
        self.take(step, min(max(self.effort.seeds, math.ceil(GROWTH * known)), known + left))

    def wanted(self, found: Crossing) -> list[int]:
        """Open steps that should be measured, or measured more: those within the interval, and dips before the edge.

        Where the interval is narrow already: only those within it that have few runs, on which it may be narrow by chance.
        """
        low, high = (min(self.axis.last, max(self.axis.first, x)) for x in (found.low, found.high))
        inside = range(math.floor(low), math.ceil(high) + 1)
        if found.high - found.low <= WIDTH:
            few = REPEAT * self.effort.seeds
            return [s for s in inside if len(self.values.get(s, ())) in range(1, few) and not self.settled(s)]
        near = sorted(inside, key=lambda s: abs(s - found.value))[:2]
        spread = {inside[round(i * (len(inside) - 1) / (AROUND - 1))] for i in range(AROUND)}
        dips = {s for s in self.window() if s < found.value and self.fell(s)}
        return [s for s in sorted({*near, *spread, *dips}) if not self.settled(s)]

    def settled(self, step: int) -> bool:
        """Whether a step has its runs and is clearly on one side of the threshold."""
        known = len(self.values.get(step, ()))
        return known >= self.effort.seeds and self.point(step).decided(self.effort.threshold, FIRM)

    def window(self) -> list[int]:
        """The steps around the edge."""
        points = fit.around([self.point(s) for s in sorted(self.values)], self.effort.threshold)
        return [round(p.step) for p in points]

    def crossing(self, resamples: int) -> Crossing | None:
        steps = self.window()
        if not steps:
            return None
        start = 0.0 if self.axis.first == 1 else -math.inf
        return fit.crossing([self.point(s) for s in steps], self.effort.threshold, start, resamples)

    def answer(self, found: Crossing | None) -> Cliff:
        """What is known now."""
        calm = self.bases[self.axis.first] if self.base else self.shared
        levels = tuple(
            level(self.axis.level(s), self.values[s].tolist(), self.bases.get(s, self.shared).tolist(), self.effort.threshold)
            for s in sorted(self.values) if calm.any()
        )
        return Cliff(self.axis, stats.mean(calm, "Mbit/s"), levels, self._edge(found), self.runs)

    def _edge(self, found: Crossing | None) -> Estimate | None:
        if found is None or found.value == math.inf:
            return None
        ends = [self._level(x) for x in (found.low, found.high)]
        value = self._level(found.value)
        if found.value == -math.inf:
            ends.append(self.axis.level(self.axis.first))
        return Estimate(value, min(ends), max(ends), sum(len(self.values[s]) for s in self.window()), self.axis.unit)

    def _level(self, step: float) -> float:
        """The level at a step that may lie beyond the axis: no impairment at all, or infinitely much of it."""
        if step == -math.inf:
            return self.axis.gentle if self.axis.origin is None else self.axis.origin
        return math.copysign(math.inf, self.axis.harsh - self.axis.gentle) if step == math.inf else self.axis.level(step)


def _cv(values: NDArray[np.float64]) -> float:
    mean = float(values.mean())
    return float(values.std(ddof=1)) / mean if len(values) > 1 and mean else 0.0


def _relative(values: NDArray[np.float64]) -> float:
    """Relative standard error of the mean."""
    return _cv(values) / math.sqrt(len(values))
