"""Runs campaigns and scenarios: :func:`run` a whole campaign, each cell as often as its precision asks; :class:`Runner` many scenarios × seeds.

Every trial of every command goes through a :class:`Runner`: what the store has does not run again, the rest runs where the executor runs it and is
kept before the next trials begin. A campaign of many trials with a store holds none of them: its outcome reads them when they are asked for.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from tcpscape import engines, metrics
from tcpscape.campaign.adaptive import Repetition, repeat, repetition
from tcpscape.campaign.axes import parse_seeds
from tcpscape.campaign.campaign import Campaign, Case
from tcpscape.campaign.executors import Executor, Local, ScenarioTrials, Task
from tcpscape.campaign.outcome import Outcome, gather, side_by_side
from tcpscape.engines import Engine
from tcpscape.errors import refuse
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.database import batches
from tcpscape.store.kept import KeptTrials, Shelf
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
    known: Mapping[str, Trial] = field(default_factory=dict)
    """Trials that were run already, by their addresses; not for a runner that captures tables."""

    def run(self, scenario: Scenario, seeds: Sequence[int]) -> list[Trial]:
        """The trials of one scenario, in the seeds' order."""
        return self.run_all([(scenario, seeds)])[0]

    def run_all(self, work: ScenarioSeeds) -> list[list[Trial]]:
        """The trials of each scenario, in the seeds' order. The order of work never changes a result.

        Every trial is saved before the next one begins on its core (short ones by batches of 50 ms), so whatever ends a campaign costs at
        most the trials that were running.
        Scenarios that differ by name only share their trials.

        :raises TcpscapeError: one line, before anything runs, for a scenario that the engine or the executor cannot run.
        """
        trials: dict[str, Trial] = {}
        addresses = self._run(work, _Over(trials))
        return [[_named(trials[address], scenario) for address in group] for group, (scenario, _) in zip(addresses, work, strict=True)]

    def keep_all(self, work: ScenarioSeeds) -> list[Sequence[str]]:
        """Runs the same into the store, which must be there, and holds no trial. Returns the addresses of each scenario's, in the seeds' order.

        :raises TcpscapeError: as :meth:`run_all`.
        """
        return self._run(work, _Over())

    def _run(self, work: ScenarioSeeds, over: _Over) -> list[Sequence[str]]:
        """Adds all trials to `over`; returns their addresses."""
        executor = self.executor or Local(self.jobs)
        for scenario, _ in work:
            self.engine.check(scenario)
        executor.check(self.engine, [scenario for scenario, _ in work])
        addresses: list[Sequence[str]] = [self.engine.addresses(scenario, seeds) for scenario, seeds in work]
        self._take_kept([address for group in addresses for address in group], over)
        self._run_missing(executor, work, addresses, over)
        return addresses

    def kept(self, addresses: Sequence[str]) -> dict[str, Trial]:
        """The trials with these addresses that are known or that the store has, with everything that is to be captured."""
        known = {} if self.capture.tables else {address: self.known[address] for address in addresses if address in self.known}
        return known | (self.store.load_many(addresses, self.capture.tables) if self.store else {})

    def _take_kept(self, addresses: Sequence[str], over: _Over) -> None:
        """Adds those of the trials that are known or that the store has, some at a time in memory."""
        for batch in batches(addresses) if self.store or self.known else ():
            for address, trial in self.kept(batch).items():
                over.add(address, trial)

    def _run_missing(self, executor: Executor, work: ScenarioSeeds, addresses: Sequence[Sequence[str]], over: _Over) -> None:
        """Runs what is not over, each trial once, and adds it; what other writers of the store run meanwhile is waited for."""
        total = len({address for group in addresses for address in group})
        if self.progress and len(over):
            self.progress(len(over), total)
        while by_seed := _missing(work, addresses, over):
            self._run_claimed(executor, work, by_seed, over, total)
            left = [address for places in _missing(work, addresses, over) or () for address in places.values()]
            if not (left and self.store):
                return
            self._take_kept(left, over)
            if self.progress:
                self.progress(len(over), total)
            if others := [address for address in left if address not in over]:
                self.store.release(others)
                time.sleep(LOOK_S)

    def _run_claimed(self, executor: Executor, work: ScenarioSeeds, by_seed: Sequence[Mapping[int, str]], over: _Over, total: int) -> None:
        """Runs those of the trials that no other writer has claimed, and adds them."""
        missing = [ScenarioTrials(scenario, tuple(places)) for (scenario, _), places in zip(work, by_seed, strict=True)]

        def claim(trials: Sequence[tuple[int, int]]) -> list[bool]:
            return self._claim([by_seed[place][seed] for place, seed in trials])

        task = Task(self.engine, self.capture, self._keep, claim, lambda place, seed: by_seed[place][seed])
        with closing(executor.run(task, missing)) as finished:  # whatever happens here, nothing runs on
            for place, trial in finished:
                over.add(by_seed[place][trial.seed], trial)
                if self.progress:
                    self.progress(len(over), total)

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


class _Over:
    """The trials that are over, by their addresses."""

    def __init__(self, trials: dict[str, Trial] | None = None) -> None:
        """`trials`: where they are held; None forgets them."""
        self._trials = trials
        self._addresses: set[str] = set()

    def add(self, address: str, trial: Trial) -> None:
        """A trial that is over."""
        self._addresses.add(address)
        if self._trials is not None:
            self._trials[address] = trial

    def __contains__(self, address: object) -> bool:
        return address in self._addresses

    def __len__(self) -> int:
        return len(self._addresses)


def _missing(work: ScenarioSeeds, addresses: Sequence[Sequence[str]], over: _Over) -> list[dict[int, str]] | None:
    """Of each scenario the seeds that are to be run, with their addresses, each address once; None where nothing is."""
    by_seed: list[dict[int, str]] = []
    taken: set[str] = set()
    for (_, seeds), group in zip(work, addresses, strict=True):
        by_seed.append({seed: address for seed, address in zip(seeds, group, strict=True) if address not in over and address not in taken})
        taken.update(by_seed[-1].values())
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
    known: Mapping[str, Trial] = field(default_factory=dict)
    """Trials that were run already, by their addresses, for a campaign without tables of samples."""


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
    rule, seeds = repetition(campaign), parse_seeds(campaign.seeds)
    most = len(cases) * (rule.cap if rule else len(seeds))
    runner = _CaseRunner(campaign, cases, by_name, execution, holds=execution.store is None or most <= _most_held(campaign))
    rounds = _repeated(runner, rule) if rule else [[trials] for trials in runner.run([(place, seeds) for place in range(len(cases))])]
    return gather(campaign, cases, runner.joined(rounds), versions)


MOST_HELD = 20_000
"""Most trials of a campaign with a store that are held in memory, some 11 kB each; with samples a tenth of it."""


def _most_held(campaign: Campaign) -> int:
    return MOST_HELD // 10 if campaign.capture().tables else MOST_HELD


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


def _repeated(runner: _CaseRunner, rule: Repetition) -> list[list[Sequence[Trial]]]:
    """The trials of each case, round by round, as many as the cells need. Run n of a cell with k pooled cases is run n // k of its case n % k."""
    cells: dict[tuple[object, ...], list[int]] = {}
    for place, case in enumerate(runner.cases):
        cells.setdefault(case.cell, []).append(place)
    places, metric = list(cells.values()), metrics.find(runner.campaign.metric)
    trials: list[list[Sequence[Trial]]] = [[] for _ in runner.cases]
    of_cases: list[list[float]] = [[] for _ in runner.cases]

    def run_round(cell_runs: Sequence[tuple[int, range]]) -> list[list[float]]:
        """Runs these runs of these cells; returns the metric of each."""
        work: list[tuple[int, Sequence[int]]] = []
        for cell, runs in cell_runs:
            count = len(places[cell])
            work += [(place, [run // count for run in runs if run % count == turn]) for turn, place in enumerate(places[cell])]
        for (place, _), new in zip(work, runner.run(work, sum(map(len, of_cases))), strict=True):
            trials[place].append(new)
            of_cases[place] += map(metric.of, new)
        values = []
        for cell, runs in cell_runs:
            count = len(places[cell])
            values.append([of_cases[places[cell][run % count]][run // count] for run in runs])
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
    holds: bool
    """Whether trials are held in memory. Otherwise they are read from the store when they are asked for."""

    def run(self, work: Cases, done: int = 0) -> list[Sequence[Trial]]:
        """The trials of each entry of `work`, in its order. `done`: trials that earlier rounds ran, for the progress."""
        trials: dict[int, Sequence[Trial]] = {}
        for name, engine in self.engines.items():
            entries = [i for i, (place, _) in enumerate(work) if self.cases[place].engine == name]
            to_come = sum(len(seeds) for i, (_, seeds) in enumerate(work) if i not in trials and i not in entries)
            runner = self._runner(engine, done, to_come)
            asked = [(self.cases[work[i][0]].scenario, work[i][1]) for i in entries]
            groups = runner.run_all(asked) if self.holds else self._kept([work[i][0] for i in entries], runner.keep_all(asked))
            trials |= dict(zip(entries, groups, strict=True))
            done += sum(len(group) for group in groups)
        return [trials[i] for i in range(len(work))]

    def joined(self, rounds: Sequence[Sequence[Sequence[Trial]]]) -> list[Sequence[Trial]]:
        """The trials of each case, of all rounds. Those that are not held stand on one shelf, the ones of a cell beside each other."""
        if self.holds:
            return [tuple(itertools.chain.from_iterable(parts)) for parts in rounds]
        addresses = [[a for part in parts if isinstance(part, KeptTrials) for a in part.addresses] for parts in rounds]
        places = side_by_side(self.cases)
        kept = dict(zip(places, self._kept(places, [addresses[place] for place in places]), strict=True))
        return [kept[place] for place in range(len(self.cases))]

    def _kept(self, places: Sequence[int], addresses: Sequence[Sequence[str]]) -> list[KeptTrials]:
        """Trials of the cases at these places, from the store."""
        store, scenarios = self.execution.store, [self.cases[place].scenario for place in places]
        assert store is not None
        reader = Store(os.path.abspath(store.root), create=False)
        return Shelf(reader, self.campaign.capture().tables).put(addresses, [scenario.name for scenario in scenarios])

    def _runner(self, engine: Engine, done: int, to_come: int) -> Runner:
        """A runner on one engine. `done` and `to_come`: trials of other engines and rounds."""
        show, execution = self.execution.progress, self.execution
        progress = (lambda now, total: show(done + now, done + total + to_come)) if show else None
        return Runner(engine, execution.jobs, self.campaign.capture(), execution.store, progress, execution.executor, execution.known)
