"""Runs a campaign: each engine's cases where the executor runs them, without the trials that the store has, each cell as often as its precision asks.

Every command that measures a campaign (`run` is one with a single point) comes through :func:`run`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tcpscape import engines, metrics
from tcpscape.campaign.adaptive import Repetition, repeat, repetition
from tcpscape.campaign.campaign import Campaign, Case
from tcpscape.campaign.executors.local import Executor
from tcpscape.campaign.outcome import Outcome, gather
from tcpscape.campaign.runner import Progress, Runner
from tcpscape.campaign.seeds import parse_seeds
from tcpscape.engines import Engine
from tcpscape.errors import refuse
from tcpscape.store.results import Store
from tcpscape.trial import Trial

Cases = Sequence[tuple[int, Sequence[int]]]
"""Cases by their place in the campaign, each with the seeds to run."""


@dataclass(frozen=True)
class Execution:
    """What a campaign is run with."""

    jobs: int = 0
    """Cores; 0 is all. For the local executor."""
    store: Store | None = None
    """Where trials are kept, and found again; None keeps them in memory alone."""
    progress: Progress | None = None
    make: Callable[[str], Engine] = engines.make
    """An engine by its name."""
    executor: Executor | None = None
    """Where trials run; None is this machine."""


def run(campaign: Campaign, execution: Execution = Execution()) -> Outcome:
    """Every case with every seed.

    :raises TcpscapeError: one line, before anything runs, for a case that makes no sense or that its engine cannot run.
    """
    cases = campaign.cases()
    by_name = {name: execution.make(name) for name in campaign.engines}
    for case in cases:
        by_name[case.engine].check(case.scenario)
    rule, seeds, runner = repetition(campaign), parse_seeds(campaign.seeds), _CaseRunner(campaign, cases, by_name, execution)
    trials = _repeated(runner, rule) if rule else runner.run([(place, seeds) for place in range(len(cases))])
    return gather(campaign, cases, trials, {name: engine.version for name, engine in by_name.items()})


def _repeated(runner: _CaseRunner, rule: Repetition) -> list[list[Trial]]:
    """The trials of each case, as many as the cells need. Run n of a cell with k pooled cases is run n // k of its case n % k."""
    cells: dict[tuple[object, ...], list[int]] = {}
    for place, case in enumerate(runner.cases):
        cells.setdefault((case.engine, case.cca, *sorted(case.at.items())), []).append(place)
    places, metric = list(cells.values()), metrics.find(runner.campaign.metric)
    trials: list[list[Trial]] = [[] for _ in runner.cases]

    def run_round(cell_runs: Sequence[tuple[int, range]]) -> list[list[float]]:
        """Runs these runs of these cells; returns the metric of each."""
        work: list[tuple[int, Sequence[int]]] = []
        for cell, runs in cell_runs:
            count = len(places[cell])
            work += [(place, [run // count for run in runs if run % count == turn]) for turn, place in enumerate(places[cell])]
        for (place, _), new in zip(work, runner.run(work, sum(len(t) for t in trials)), strict=True):
            trials[place] += new
        values = []
        for cell, runs in cell_runs:
            count = len(places[cell])
            values.append([metric.of(trials[places[cell][run % count]][run // count]) for run in runs])
            _expect_known(metric.name, values[-1], runner.cases[places[cell][0]])
        return values

    repeat(run_round, len(places), rule)
    return trials


def _expect_known(metric: str, values: Sequence[float], case: Case) -> None:
    """Refuses to repeat a cell of which no run says the metric: no number of runs would."""
    if all(math.isnan(v) for v in values):
        where = ", ".join([case.cca, *(f"{k} {v}" for k, v in case.at.items())])
        refuse("metric", f"no run of {where} on {case.engine} says {metric}, so none can be precise", "choose another metric, or leave out precision")


@dataclass(frozen=True)
class _CaseRunner:
    """Runs cases of a campaign, each on its engine."""

    campaign: Campaign
    cases: Sequence[Case]
    engines: Mapping[str, Engine]
    execution: Execution

    def run(self, work: Cases, done: int = 0) -> list[list[Trial]]:
        """The trials of each entry of `work`, in its order. `done`: trials that earlier rounds ran, for the progress."""
        trials: dict[int, list[Trial]] = {}
        for name, engine in self.engines.items():
            entries = [i for i, (place, _) in enumerate(work) if self.cases[place].engine == name]
            to_come = sum(len(seeds) for i, (_, seeds) in enumerate(work) if i not in trials and i not in entries)
            groups = self._runner(engine, done, to_come).run_all([(self.cases[work[i][0]].scenario, work[i][1]) for i in entries])
            trials |= dict(zip(entries, groups, strict=True))
            done += sum(len(group) for group in groups)
        return [trials[i] for i in range(len(work))]

    def _runner(self, engine: Engine, done: int, to_come: int) -> Runner:
        """A runner on one engine. `done` and `to_come`: trials of other engines and rounds."""
        show, execution = self.execution.progress, self.execution
        progress = (lambda now, total: show(done + now, done + total + to_come)) if show else None
        return Runner(engine, execution.jobs, self.campaign.capture(), execution.store, progress, execution.executor)
