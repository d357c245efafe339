"""Runs a campaign: each engine's cases over all cores, what the store has already left out, each cell as often as its precision asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tcpscape import engines, metrics, stats
from tcpscape.campaign.adaptive import LEAST, Repetition, repeat
from tcpscape.campaign.campaign import Campaign, Case
from tcpscape.campaign.executors.local import Executor
from tcpscape.campaign.outcome import Outcome, gather
from tcpscape.campaign.runner import Progress, Runner
from tcpscape.engines import Engine
from tcpscape.errors import refuse
from tcpscape.scenario import build
from tcpscape.store.results import Store
from tcpscape.trial import Trial


@dataclass(frozen=True)
class Means:
    """What a campaign is run with."""

    jobs: int = 0
    """Cores; 0 is all."""
    store: Store | None = None
    progress: Progress | None = None
    make: Callable[[str], Engine] = engines.make
    """An engine by its name."""
    executor: Executor | None = None
    """Where trials run; None is this machine."""


def run(campaign: Campaign, means: Means = Means()) -> Outcome:
    """Every case with every seed; what an engine cannot run is refused before anything runs."""
    cases = campaign.cases()
    made = {name: means.make(name) for name in campaign.engines}
    for case in cases:
        made[case.engine].check(case.scenario)
    bench, rule, seeds = Bench(campaign, cases, made, means), repetition(campaign), build.seeds(campaign.seeds)
    trials = _repeated(bench, rule) if rule else bench.trials([(i, seeds) for i in range(len(cases))])
    return gather(campaign, cases, trials, {name: engine.version for name, engine in made.items()})


def repetition(campaign: Campaign) -> Repetition | None:
    """When a cell of the campaign has enough runs: its metric's median is as precise as asked; None where the number of seeds is fixed."""
    if campaign.precision is None:
        return None
    seeds = build.seeds(campaign.seeds)
    if seeds != list(range(len(seeds))):
        refuse("seeds", f"{campaign.seeds!r} does not count from 0, and precision adds seeds to the first ones", "write how many to begin with")
    least = max(LEAST, len(seeds))
    return Repetition(campaign.precision, least, max(least, campaign.max_seeds), stats.median)


def _repeated(bench: Bench, rule: Repetition) -> list[list[Trial]]:
    """The trials of each case, as many as the cells need. Runs of a cell with pooled cases take turns."""
    cells: dict[tuple[object, ...], list[int]] = {}
    for i, case in enumerate(bench.cases):
        cells.setdefault((case.engine, case.cca, *sorted(case.at.items())), []).append(i)
    pooled, metric = list(cells.values()), metrics.find(bench.campaign.metric)
    found: list[list[Trial]] = [[] for _ in bench.cases]

    def round_(wanted: Sequence[tuple[int, range]]) -> list[list[float]]:
        asked = [(i, [n // len(p) for n in runs if n % len(p) == at]) for cell, runs in wanted for p in [pooled[cell]] for at, i in enumerate(p)]
        for (i, _), trials in zip(asked, bench.trials(asked, sum(len(t) for t in found)), strict=True):
            found[i] += trials
        values = [[metric.of(found[p[n % len(p)]][n // len(p)]) for n in runs] for cell, runs in wanted for p in [pooled[cell]]]
        for (cell, _), got in zip(wanted, values, strict=True):
            _expect_known(metric.name, got, bench.cases[pooled[cell][0]])
        return values

    repeat(round_, len(pooled), rule)
    return found


def _expect_known(metric: str, values: Sequence[float], case: Case) -> None:
    """Refuses to repeat a cell of which no run says the metric: no number of runs would."""
    if all(math.isnan(v) for v in values):
        where = ", ".join([case.cca, *(f"{k} {v}" for k, v in case.at.items())])
        refuse("metric", f"no run of {where} on {case.engine} says {metric}, so none can be precise", "choose another metric, or leave out precision")


@dataclass(frozen=True)
class Bench:
    """A campaign's cases and what runs them."""

    campaign: Campaign
    cases: Sequence[Case]
    engines: Mapping[str, Engine]
    means: Means

    def trials(self, wanted: Sequence[tuple[int, Sequence[int]]], before: int = 0) -> list[list[Trial]]:
        """The trials of cases, named by their place, with these seeds, in that order. `before`: how many are done already, for the progress."""
        found: dict[int, list[Trial]] = {}
        for name, engine in self.engines.items():
            mine = [at for at, (i, _) in enumerate(wanted) if self.cases[i].engine == name]
            later = sum(len(seeds) for at, (_, seeds) in enumerate(wanted) if at not in found and at not in mine)
            runner = self._runner(engine, before, later)
            some = runner.run_all([(self.cases[wanted[at][0]].scenario, wanted[at][1]) for at in mine])
            found |= dict(zip(mine, some, strict=True))
            before += sum(len(t) for t in some)
        return [found[at] for at in range(len(wanted))]

    def _runner(self, engine: Engine, before: int, later: int) -> Runner:
        """`before` and `later`: trials of other engines."""
        tell, means = self.means.progress, self.means
        progress = (lambda done, total: tell(before + done, before + total + later)) if tell else None
        return Runner(engine, means.jobs, self.campaign.capture(), means.store, progress, means.executor)
