"""Many scenarios × seeds on one engine, over all cores or a cluster, saved trial by trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from tcpscape.campaign.executors.local import Executor, Local, Task, Work
from tcpscape.engines.base import Capture, Engine
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import Store
from tcpscape.trial import Trial

Progress = Callable[[int, int], None]
"""Called with trials done and trials in all."""


@dataclass(frozen=True)
class Runner:
    """How campaigns run: the engine, how many cores, what is kept and where, and who is told."""

    engine: Engine
    jobs: int = 0
    """Cores; 0 is all. For the local executor."""
    capture: Capture = field(default_factory=Capture)
    store: Store | None = None
    progress: Progress | None = None
    executor: Executor | None = None
    """Where trials run; None is this machine."""

    def run(self, scenario: Scenario, seeds: Sequence[int]) -> list[Trial]:
        """The trials of one scenario, in the seeds' order."""
        return self.run_all([(scenario, seeds)])[0]

    def run_all(self, conditions: Sequence[tuple[Scenario, Sequence[int]]]) -> list[list[Trial]]:
        """The trials of each condition, in the seeds' order. The order of work never changes a result.

        Every trial is saved before the next one begins on its core, so whatever ends a campaign costs at most the trials that were running.
        Conditions that differ by name only share their trials.
        """
        executor = self.executor or Local(self.jobs)
        for scenario, _ in conditions:
            self.engine.check(scenario)
        executor.check(self.engine, [scenario for scenario, _ in conditions])
        names = [self.engine.addresses(scenario, seeds) for scenario, seeds in conditions]
        trials = self.kept([name for some in names for name in some])
        self._run(executor, conditions, names, trials)
        return [[_called(trials[name], scenario) for name in some] for some, (scenario, _) in zip(names, conditions, strict=True)]

    def kept(self, addresses: Sequence[str]) -> dict[str, Trial]:
        """The trials with these addresses that the store has, with everything that is to be captured."""
        wanted = {"samples": self.capture.samples_ns, "queue_samples": self.capture.queue_samples_ns, "packets": self.capture.packets}
        return self.store.load_many(addresses, [table for table, asked in wanted.items() if asked]) if self.store else {}

    def _run(
        self, executor: Executor, conditions: Sequence[tuple[Scenario, Sequence[int]]], names: Sequence[Sequence[str]], trials: dict[str, Trial]
    ) -> None:
        """Runs what is not in `trials`, each once, and adds it."""
        places: list[dict[int, str]] = []
        taken = set(trials)
        for (_, seeds), some in zip(conditions, names, strict=True):
            places.append({seed: name for seed, name in zip(seeds, some, strict=True) if name not in taken})
            taken |= set(some)
        work = [Work(scenario, tuple(place)) for (scenario, _), place in zip(conditions, places, strict=True)]
        if self.progress and trials:
            self.progress(len(trials), len(taken))
        with closing(executor.run(Task(self.engine, self.capture, self._keep), work)) as over:  # whatever happens here, nothing runs on
            for i, trial in over:
                trials[places[i][trial.seed]] = trial
                if self.progress:
                    self.progress(len(trials), len(taken))

    def _keep(self, trials: Sequence[Trial]) -> None:
        if self.store:
            self.store.save_many(trials)


def _called(trial: Trial, scenario: Scenario) -> Trial:
    """The trial under this scenario's name: its address does not depend on it."""
    return trial if trial.scenario == scenario.name else replace(trial, scenario=scenario.name)
