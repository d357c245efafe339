"""Where the cliff is: the jitter at which the mean goodput falls below half of what it is without jitter, found by running.

A coarse grid is walked down from jitter = RTT (collapsed paths are cheap to run) to the first level that holds and is not chaotic; the
levels below it are only looked at, with two seeds, because a path may also fall at little jitter and hold at more. The edge is the
first fall from below: bisection narrows its bracket to ± 1 % of the RTT; where the interval of a level holds one half, the level is
repeated with more seeds before it is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from tcpscape import stats
from tcpscape.stats import Estimate

HALF = 0.5
"""Retention that counts as over the edge, as in the published studies."""
GRID = (0.02, 0.05, 0.08, 0.12, 0.16, 0.2, 0.28, 0.4, 0.7, 1.0)
"""Levels of the walk, jitter / RTT."""
RESOLUTION = 0.02
"""Width of the final bracket, jitter / RTT: ± 1 %."""
DISAGREE = 0.1
"""A level where at least this share of the runs is on the other side of one half belongs to the chaos zone."""
GLANCE = 2
"""Seeds of a look at a level below one that holds."""
WILD_CV = 0.2
"""So does one whose runs vary more than this, and half as much again as without jitter, …"""
ALIVE = 0.25
"""… while it still keeps this much; below it has collapsed, however its remains vary."""

Measure = Callable[[Sequence[int], int], list[list[float]]]
"""(jitters in ns, how many seeds) → goodputs in Mbit/s for each jitter, the same seeds for all."""


@dataclass(frozen=True, slots=True)
class Level:
    """One jitter on the way."""

    jitter_ns: int
    retention: Estimate
    """Mean goodput / mean goodput without jitter, paired."""
    cv: Estimate
    below: float
    """Share of the runs that keep less than half."""
    calm_cv: float = 0.0
    """Coefficient of variation without jitter, fraction."""

    @property
    def fell(self) -> bool:
        """Whether the mean is below one half."""
        return not self.retention.value >= HALF

    @property
    def chaotic(self) -> bool:
        """Whether runs of this path cannot be trusted one by one: on both sides of the edge, or varying wildly."""
        torn = DISAGREE <= self.below <= 1 - DISAGREE
        wild = self.cv.value > max(WILD_CV, 1.5 * self.calm_cv) and self.retention.value > ALIVE
        return torn or wild


@dataclass(frozen=True, slots=True)
class Cliff:
    """The edge of one congestion control on one path."""

    rtt_ns: int
    baseline: Estimate
    """Goodput without jitter, Mbit/s."""
    levels: tuple[Level, ...]
    """Sorted by jitter."""
    here: Level | None = None
    """The path's own jitter."""

    @property
    def bracket_ns(self) -> tuple[int, int] | None:
        """Last level that holds and first that fell; None where nothing fell up to jitter = RTT."""
        fell = [level.jitter_ns for level in self.levels if level.fell]
        if not fell:
            return None
        return max((x.jitter_ns for x in self.levels if x.jitter_ns < min(fell)), default=0), min(fell)

    @property
    def jitter_ns(self) -> int | None:
        """The edge: middle of the bracket."""
        return sum(self.bracket_ns) // 2 if self.bracket_ns else None

    @property
    def chaos_ns(self) -> tuple[int, int] | None:
        """The unbroken run of chaotic levels around the edge, and the path's own jitter if that is one; None where there is none."""
        known = {x.jitter_ns: x for x in (*self.levels, *([self.here] if self.here else []))}
        edge = self.jitter_ns or 0
        below = takewhile(lambda x: x.chaotic, (known[j] for j in sorted(known, reverse=True) if j <= edge))
        above = takewhile(lambda x: x.chaotic, (known[j] for j in sorted(known) if j > edge))
        found = [x.jitter_ns for x in (*below, *above)]
        if self.here and self.here.chaotic:
            found.append(self.here.jitter_ns)
        return (min(found), max(found)) if found else None


def find(measure: Measure, rtt_ns: int, seeds: int = 8) -> Cliff:
    """Runs along the jitter and finds the edge. A path that carries nothing without jitter has none."""
    search = _Search(measure, rtt_ns, seeds)
    if not any(search.base):
        return search.cliff()
    held = False
    for jitter in (round(share * rtt_ns) for share in sorted(GRID, reverse=True)):
        if held and not search.falls(jitter):
            continue
        search.level_at(jitter)
        here = search.levels[jitter]
        held = not here.fell and not here.chaotic
    while (bracket := search.cliff().bracket_ns) and bracket[1] - bracket[0] > RESOLUTION * rtt_ns:
        search.level_at(sum(bracket) // 2)
    return search.cliff()


class _Search:
    """The levels measured so far."""

    def __init__(self, measure: Measure, rtt_ns: int, seeds: int) -> None:
        self.measure, self.rtt_ns, self.seeds = measure, rtt_ns, seeds
        self.repeated = seeds * 3
        self.base = measure([0], seeds)[0]
        self.base_repeated: list[float] | None = None
        self.levels: dict[int, Level] = {}

    def level_at(self, jitter: int) -> None:
        """Measures a level, and once more with more seeds where the answer is open."""
        self.levels[jitter] = level(jitter, self.measure([jitter], self.seeds)[0], self.base)
        if self.levels[jitter].retention.excludes(HALF):
            return
        if self.base_repeated is None:
            self.base_repeated = self.measure([0], self.repeated)[0]
        self.levels[jitter] = level(jitter, self.measure([jitter], self.repeated)[0], self.base_repeated)

    def falls(self, jitter: int) -> bool:
        """Whether a look at a level shows a fall."""
        look = self.measure([jitter], GLANCE)[0]
        return sum(look) / len(look) < HALF * sum(self.base) / len(self.base)

    def cliff(self) -> Cliff:
        """What is known now."""
        base = self.base_repeated or self.base
        return Cliff(self.rtt_ns, stats.mean(base, "Mbit/s"), tuple(self.levels[j] for j in sorted(self.levels)))


def level(jitter_ns: int, goodputs: Sequence[float], base: Sequence[float]) -> Level:
    """A level from its goodputs and those without jitter, same seeds."""
    half = HALF * sum(base) / len(base)
    below = sum(g < half for g in goodputs) / len(goodputs)
    return Level(jitter_ns, stats.ratio(goodputs, base), stats.cv(goodputs), below, stats.cv(base).value)
