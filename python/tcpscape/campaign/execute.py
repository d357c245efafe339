"""Runs campaigns and scenarios: :func:`run` a whole campaign, each cell as often as its precision asks; :class:`Runner` many scenarios × seeds.

Every trial of every command goes through :meth:`Runner.run_all`: what the store has does not run again, the rest runs where the executor runs it
and is kept before the next trials begin.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from tcpscape import engines, metrics
from tcpscape.campaign.adaptive import Repetition, repeat, repetition
from tcpscape.campaign.axes import parse_seeds
from tcpscape.campaign.campaign import Campaign, Case
from tcpscape.campaign.executors import Executor, Local, ScenarioTrials, Task
from tcpscape.campaign.outcome import Outcome, gather
from tcpscape.engines import Engine
from tcpscape.errors import refuse
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import Store
from tcpscape.trial import Capture, Trial

LOOK_S = 0.2
"""How often what other writers of the store have run is looked for, s."""
TrialsDone = Callable[[int, int], None]
"""Called with trials done and trials in all."""
ScenarioSeeds = Sequence[tuple[Scenario, Sequence[int]]]
"""Scenarios, each with the seeds to run it with."""


@dataclass(frozen=True)
class Runner:
    """How trials run: the engine, how many cores, what is kept and where, and who is told."""

    engine: Engine
    jobs: int = 0
    """Cores; 0 is all. For the local executor."""
    capture: Capture = field(default_factory=Capture)
    store: Store | None = None
    progress: TrialsDone | None = None
    executor: Executor | None = None
    """Where trials run; None is this machine."""

    def run(self, scenario: Scenario, seeds: Sequence[int]) -> list[Trial]:
        """The trials of one scenario, in the seeds' order."""
        return self.run_all([(scenario, seeds)])[0]

    def run_all(self, work: ScenarioSeeds) -> list[list[Trial]]:
        """The trials of each scenario, in the seeds' order. The order of work never changes a result.

        Every trial is saved before the next one begins on its core (short ones by batches of some milliseconds), so whatever ends a campaign costs at
        most the trials that were running.
        Scenarios that differ by name only share their trials.

        :raises TcpscapeError: one line, before anything runs, for a scenario that the engine or the executor cannot run.
        """
        executor = self.executor or Local(self.jobs)
        for scenario, _ in work:
            self.engine.check(scenario)
        executor.check(self.engine, [scenario for scenario, _ in work])
        addresses = [self.engine.addresses(scenario, seeds) for scenario, seeds in work]
        trials = self.kept([address for group in addresses for address in group])
        self._run_missing(executor, work, addresses, trials)
        return [[_named(trials[address], scenario) for address in group] for group, (scenario, _) in zip(addresses, work, strict=True)]

    def kept(self, addresses: Sequence[str]) -> dict[str, Trial]:
        """The trials with these addresses that the store has, with everything that is to be captured."""
        return self.store.load_many(addresses, self.capture.tables) if self.store else {}

    def _run_missing(self, executor: Executor, work: ScenarioSeeds, addresses: Sequence[Sequence[str]], trials: dict[str, Trial]) -> None:
        """Runs what is not in `trials`, each once, and adds it; what other writers of the store run meanwhile is waited for."""
        total = len({address for group in addresses for address in group})
        if self.progress and trials:
            self.progress(len(trials), total)
        while by_seed := _missing(work, addresses, trials):
            self._run_claimed(executor, work, by_seed, trials, total)
            left = [address for places in _missing(work, addresses, trials) or () for address in places.values()]
            if not (left and self.store):
                return
            trials |= self.kept(left)
            if self.progress:
                self.progress(len(trials), total)
            if others := [address for address in left if address not in trials]:
                self.store.release(others)
                time.sleep(LOOK_S)

    def _run_claimed(
        self, executor: Executor, work: ScenarioSeeds, by_seed: Sequence[Mapping[int, str]], trials: dict[str, Trial], total: int
    ) -> None:
        """Runs those of the trials that no other writer has claimed, and adds them."""
        missing = [ScenarioTrials(scenario, tuple(places)) for (scenario, _), places in zip(work, by_seed, strict=True)]

        def claim(trials: Sequence[tuple[int, int]]) -> list[bool]:
            return self._claim([by_seed[place][seed] for place, seed in trials])

        task = Task(self.engine, self.capture, self._keep, claim, lambda place, seed: by_seed[place][seed])
        with closing(executor.run(task, missing)) as finished:  # whatever happens here, nothing runs on
            for place, trial in finished:
                trials[by_seed[place][trial.seed]] = trial
                if self.progress:
                    self.progress(len(trials), total)

    def _claim(self, addresses: Sequence[str]) -> list[bool]:
        """Of each trial whether it is to be run here: no other writer of the store runs it, and none has kept it meanwhile."""
        if self.store is None:
            return [True] * len(addresses)
        claimed = self.store.claim(addresses)
        known = self.kept(list(claimed))
        return [address in claimed and address not in known for address in addresses]

    def _keep(self, trials: Sequence[Trial]) -> None:
        if self.store:
            self.store.save_many(trials)


def _missing(work: ScenarioSeeds, addresses: Sequence[Sequence[str]], trials: Mapping[str, Trial]) -> list[dict[int, str]] | None:
    """Of each scenario the seeds that are to be run, with their addresses, each address once; None where nothing is."""
    by_seed: list[dict[int, str]] = []
    known = set(trials)
    for (_, seeds), group in zip(work, addresses, strict=True):
        by_seed.append({seed: address for seed, address in zip(seeds, group, strict=True) if address not in known})
        known |= set(group)
    return by_seed if any(by_seed) else None


def _named(trial: Trial, scenario: Scenario) -> Trial:
    """The trial under this scenario's name: its address does not depend on it."""
    return trial if trial.scenario == scenario.name else replace(trial, scenario=scenario.name)


Cases = Sequence[tuple[int, Sequence[int]]]
"""Cases by their place in the campaign, each with the seeds to run."""


@dataclass(frozen=True)
class Execution:
    """What a campaign is run with."""

    jobs: int = 0
    """Cores; 0 is all. For the local executor."""
    store: Store | None = None
    """Where trials are kept, and found again; None keeps them in memory alone."""
    progress: TrialsDone | None = None
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
    versions = {name: engine.version for name, engine in by_name.items()}
    if execution.store is not None:
        execution.store.announce({"campaign": campaign.to_dict(), "versions": versions, **_case_versions(cases, by_name)})
    rule, seeds, runner = repetition(campaign), parse_seeds(campaign.seeds), _CaseRunner(campaign, cases, by_name, execution)
    trials = _repeated(runner, rule) if rule else runner.run([(place, seeds) for place in range(len(cases))])
    return gather(campaign, cases, trials, versions)


def _case_versions(cases: Sequence[Case], by_name: Mapping[str, Engine]) -> dict[str, list[str]]:
    """Of each case what stands for the version in its trials' addresses, where that is another one: files of programs are in it."""
    if not any(case.scenario.programs for case in cases):
        return {}
    return {"case_versions": [by_name[case.engine].version_for(case.scenario) for case in cases]}


def run_all(campaigns: Sequence[Campaign], execution: Execution = Execution()) -> list[Outcome]:
    """Several campaigns, one after the other; the progress is that of all of them."""
    whole = _Together(execution.progress, [len(campaign.cases()) * len(parse_seeds(campaign.seeds)) for campaign in campaigns])
    return [run(campaign, replace(execution, progress=whole.begin(place))) for place, campaign in enumerate(campaigns)]


class _Together:
    """The progress of several campaigns as one."""

    def __init__(self, show: TrialsDone | None, expected: Sequence[int]) -> None:
        """`expected`: trials of each campaign."""
        self._show, self._expected = show, expected
        self._before = self._now = self._to_come = 0

    def begin(self, place: int) -> TrialsDone | None:
        """The function that the campaign at this place reports to; the one before it is over."""
        self._before, self._now, self._to_come = self._before + self._now, 0, sum(self._expected[place + 1 :])
        return self._update if self._show else None

    def _update(self, done: int, total: int) -> None:
        self._now = done
        if self._show:
            self._show(self._before + done, self._before + total + self._to_come)


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
