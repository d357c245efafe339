"""What another kernel changes on a path: the same scenarios on two kernels, and the differences that chance does not explain.

Two stages with runs of their own, so that what is told was not chosen for being large. First every scenario runs with a few seeds on each kernel;
a metric whose means are as far apart in at most a tenth of all relabellings of the runs is a candidate. Then the scenarios of candidates run again
with fresh seeds, and on these runs alone a permutation test of the means (Fisher 1935) judges each candidate, corrected for their number by Holm's
method (1979): kernels that do the same raise an alarm in at most 5 % of comparisons, whatever was looked at before. Runs of two kernels are never
pairs: both draw the same random numbers, for other packets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tcpscape import metrics
from tcpscape.campaign.execute import Runner, TrialsDone
from tcpscape.engines.base import Engine
from tcpscape.errors import TcpscapeError, refuse
from tcpscape.metrics import Metric
from tcpscape.reading import packaged
from tcpscape.stats import Comparison, compare
from tcpscape.store.results import Store
from tcpscape.trial import Trial
from tcpscape.validate import conditions
from tcpscape.validate.conditions import NamedScenario

SUITE = "kernel-paths.yaml"
"""The default paths, among the package's data."""
METRICS = ("goodput", "fct_p50", "fct_p95", "response_p50", "response_p95", "rtt_p50", "rtt_p95", "retransmit_rate", "rtos", "cwnd", "rwnd_limited")
"""What is compared, in the order in which differences are told; a metric that a path does not have is left out there."""
SCREENING, CONFIRMING = (5, 20), (12, 40)
"""Least and most runs on each kernel: of every scenario, and further ones of those that may differ."""
SCREENED, CONFIRMED = 60, 160
"""So many runs on each kernel are shared by the scenarios where that is between the least and the most."""
CANDIDATE, ALARM = 0.1, 0.05
"""Largest chance of a candidate in the first stage, and of any false alarm in the second."""
LABELLINGS = 20_000
"""Most relabellings of runs that are tried; fewer runs have fewer, and all of them are."""
LEAST = 0.01
"""Smallest relative difference that is told."""
SMALLEST = {"retransmit_rate": 0.001, "rwnd_limited": 0.01, "rtos": 0.5}
"""Metric → the smallest difference, in its own unit, that is told."""
OWN_SEEDS = 1_000_000
"""First seed of the second kernel where both are the same one: its runs must not be the first one's."""


@dataclass(frozen=True)
class KernelDifference:
    """One metric of one scenario on both kernels."""

    condition: NamedScenario
    metric: Metric
    comparison: Comparison
    """The second kernel (A of the comparison) over the first (B)."""
    means: tuple[float, float]
    """Of the first kernel and of the second, in the metric's unit."""
    chance: float
    """Probability of such a difference between equal kernels, corrected for the number of candidates."""

    @classmethod
    def of(cls, condition: NamedScenario, metric: Metric, sides: Sequence[Sequence[Trial]], chance: float) -> KernelDifference:
        """From the trials on the first and on the second kernel."""
        first, second = (float(np.mean(side)) if side else math.nan for side in _values(metric, sides))
        return cls(condition, metric, _over(metric, *sides), (first, second), chance)

    @property
    def change(self) -> float:
        """Second mean over the first, less one; infinite where the first is 0."""
        first, second = self.means
        return second / first - 1 if first else math.inf

    def is_told(self, least: float) -> bool:
        """Whether it is no chance, and at least so large."""
        apart = abs(self.means[1] - self.means[0])
        return self.chance <= ALARM and abs(self.change) >= least and apart >= SMALLEST.get(self.metric.name, 0.0)

    @property
    def is_worse(self) -> bool:
        """Whether the second kernel is worse by this metric."""
        first, second = self.means
        return (second < first) if self.metric.better == "more" else (second > first) if self.metric.better == "less" else False


@dataclass(frozen=True)
class KernelComparison:
    """Everything that was compared."""

    kernels: tuple[str, str]
    """The kernels in words: name and release."""
    releases: tuple[str, str]
    """Their releases, `6.1.158`."""
    conditions: tuple[NamedScenario, ...]
    differences: tuple[KernelDifference, ...]
    """Every candidate of the first stage, as its fresh runs judge it; in the scenarios' order."""
    goodput: tuple[Comparison, ...]
    """Of each scenario, over all its runs; the second kernel over the first."""
    metrics_compared: int
    """Metrics of scenarios that were looked at."""
    trials: int
    least: float
    """Smallest relative difference that is told."""
    left_out: tuple[tuple[str, str], ...]
    """Scenarios that a kernel cannot run, with its reason."""
    caveats: tuple[str, ...]

    @cached_property
    def told(self) -> tuple[KernelDifference, ...]:
        """The differences that are no chance and not too small to matter: the goodput's first, and the largest of each metric first."""
        found = [d for d in self.differences if d.is_told(self.least)]
        return tuple(sorted(found, key=lambda d: (METRICS.index(d.metric.name), -abs(math.log1p(d.change)) if d.change > -1 else -math.inf)))


@dataclass(frozen=True)
class StageRuns:
    """Runs of a scenario on each kernel."""

    screening: int
    """Of every scenario."""
    confirming: int
    """Further ones, of those that may differ."""

    @classmethod
    def of(cls, scenarios: int) -> StageRuns:
        """As many as suit a number of scenarios: few of many, many of few."""
        shared = ((SCREENED, SCREENING), (CONFIRMED, CONFIRMING))
        return cls(*(max(least, min(most, runs // max(1, scenarios))) for runs, (least, most) in shared))


@dataclass(frozen=True)
class KernelPair:
    """Two kernels, and how their trials run."""

    engines: tuple[Engine, Engine]
    """The engine with the first kernel and with the second."""
    names: tuple[str, str]
    """The kernels in words."""
    releases: tuple[str, str]
    jobs: int = 0
    store: Store | None = None

    @property
    def are_one(self) -> bool:
        """Whether both are the same executable."""
        return self.engines[0].version == self.engines[1].version

    def run(self, scenarios: Sequence[NamedScenario], seeds: range, progress: TrialsDone | None) -> list[tuple[list[Trial], list[Trial]]]:
        """The trials of each scenario on both kernels."""
        if not scenarios:
            return []
        total, sides = 2 * len(scenarios) * len(seeds), []
        for place, engine in enumerate(self.engines):
            own = range(seeds.start + OWN_SEEDS, seeds.stop + OWN_SEEDS) if place and self.are_one else seeds
            before = place * total // 2
            update = (lambda done, _, before=before: progress(before + done, total)) if progress else None
            sides.append(Runner(engine, self.jobs, store=self.store, progress=update).run_all([(c.scenario, own) for c in scenarios]))
        return list(zip(*sides, strict=True))

    def refuses(self, condition: NamedScenario) -> str | None:
        """Why one of the kernels cannot run a scenario; None where both can."""
        for engine in self.engines:
            try:
                engine.check(condition.scenario)
            except TcpscapeError as e:
                return str(e)
        return None


def suite(file: str | Path | None = None) -> list[NamedScenario]:
    """The scenarios of a list, or the default ones. :raises ScenarioError: where the file is no list of scenarios."""
    return conditions.read(file if file is not None else Path(str(packaged.folder("data").joinpath(SUITE))))


def difference(
    pair: KernelPair,
    scenarios: Sequence[NamedScenario],
    least: float = LEAST,
    say: Callable[[str], TrialsDone | None] = lambda _: None,
    runs: StageRuns | None = None,
) -> KernelComparison:
    """Runs the scenarios on both kernels and judges what differs.

    :param least: smallest relative difference that is told.
    :param say: called with what is done next; returns the function that takes its progress, or None.
    :param runs: of each scenario; None is what suits their number.
    :raises TcpscapeError: where no scenario runs on both kernels.
    """
    left_out = tuple((c.id, why) for c in scenarios if (why := pair.refuses(c)))
    runnable = [c for c in scenarios if c.id not in {id for id, _ in left_out}]
    if not runnable:
        refuse("paths", f"none can run on both kernels ({left_out[0][1] if left_out else 'none given'})", "name others")
    runs = runs or StageRuns.of(len(runnable))
    screened = pair.run(runnable, range(runs.screening), say(f"{len(runnable)} paths on both kernels"))
    compared = [(place, metric) for place, sides in enumerate(screened) for metric in map(metrics.find, METRICS) if all(_values(metric, sides))]
    candidates = [(place, metric) for place, metric in compared if chance_of(*_values(metric, screened[place])) <= CANDIDATE]
    places = sorted({place for place, _ in candidates})
    seeds = range(runs.screening, runs.screening + runs.confirming)
    fresh = dict(zip(places, pair.run([runnable[p] for p in places], seeds, say(f"fresh runs of {len(places)} that may differ")), strict=True))
    chances = holm([chance_of(*_values(metric, fresh[place])) for place, metric in candidates])
    differences = [
        KernelDifference.of(runnable[place], metric, fresh[place], chance) for (place, metric), chance in zip(candidates, chances, strict=True)
    ]
    everything = [tuple([*side, *more] for side, more in zip(sides, fresh.get(place, ([], [])), strict=True)) for place, sides in enumerate(screened)]
    trials = [trial for sides in everything for side in sides for trial in side]
    return KernelComparison(
        pair.names,
        pair.releases,
        tuple(runnable),
        tuple(differences),
        tuple(_over(metrics.find("goodput"), *sides) for sides in everything),
        len(compared),
        len(trials),
        least,
        left_out,
        tuple(dict.fromkeys(caveat for trial in trials for caveat in trial.caveats)),
    )


def _values(metric: Metric, sides: Sequence[Sequence[Trial]]) -> list[list[float]]:
    """The metric of each trial on each kernel; none on a side where one of its trials does not know it."""
    values = [[metric.of(trial) for trial in trials] for trials in sides]
    return [side if all(map(math.isfinite, side)) else [] for side in values]


def _over(metric: Metric, first: Sequence[Trial], second: Sequence[Trial]) -> Comparison:
    """The metric on the second kernel over that on the first."""
    below, above = _values(metric, (first, second))
    return compare(above, below, paired=False, unit=metric.printed_unit)


def chance_of(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided probability, over all relabellings of the runs, of means as far apart; 1 where a side has no value."""
    from scipy.stats import permutation_test

    if not (first and second) or len({*first, *second}) == 1:
        return 1.0

    def apart(x: NDArray[np.float64], y: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        return np.asarray(np.abs(x.mean(axis) - y.mean(axis)))

    rng = np.random.default_rng(0)
    return float(permutation_test((first, second), apart, vectorized=True, n_resamples=LABELLINGS, alternative="greater", rng=rng).pvalue)


def holm(chances: Sequence[float]) -> list[float]:
    """Each probability corrected for the number of them (Holm 1979): at a level, the chance of any false alarm is at most that level."""
    corrected, largest = [0.0] * len(chances), 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=lambda i: chances[i])):
        largest = max(largest, min(1.0, chances[place] * (len(chances) - rank)))
        corrected[place] = largest
    return corrected
