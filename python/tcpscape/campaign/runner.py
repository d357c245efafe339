"""Many scenarios × seeds on one engine, over all cores or a cluster, saved trial by trial: the only way to an engine from above."""

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
    progress: Progress | None = None
    executor: Executor | None = None
    """Where trials run; None is this machine."""

    def run(self, scenario: Scenario, seeds: Sequence[int]) -> list[Trial]:
        """The trials of one scenario, in the seeds' order."""
        return self.run_all([(scenario, seeds)])[0]

    def run_all(self, work: ScenarioSeeds) -> list[list[Trial]]:
        """The trials of each scenario, in the seeds' order. The order of work never changes a result.

        Every trial is saved before the next one begins on its core, so whatever ends a campaign costs at most the trials that were running.
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
        capture = self.capture
        tables = {"samples": capture.samples_ns, "queue_samples": capture.queue_samples_ns, "packets": capture.packets}
        return self.store.load_many(addresses, [table for table, is_kept in tables.items() if is_kept]) if self.store else {}

    def _run_missing(self, executor: Executor, work: ScenarioSeeds, addresses: Sequence[Sequence[str]], trials: dict[str, Trial]) -> None:
        """Runs what is not in `trials`, each once, and adds it."""
        by_seed: list[dict[int, str]] = []
        known = set(trials)
        for (_, seeds), group in zip(work, addresses, strict=True):
            by_seed.append({seed: address for seed, address in zip(seeds, group, strict=True) if address not in known})
            known |= set(group)
        missing = [Work(scenario, tuple(places)) for (scenario, _), places in zip(work, by_seed, strict=True)]
        if self.progress and trials:
            self.progress(len(trials), len(known))
        with closing(executor.run(Task(self.engine, self.capture, self._keep), missing)) as finished:  # whatever happens here, nothing runs on
            for place, trial in finished:
                trials[by_seed[place][trial.seed]] = trial
                if self.progress:
                    self.progress(len(trials), len(known))

    def _keep(self, trials: Sequence[Trial]) -> None:
        if self.store:
            self.store.save_many(trials)


def _named(trial: Trial, scenario: Scenario) -> Trial:
    """The trial under this scenario's name: its address does not depend on it."""
    return trial if trial.scenario == scenario.name else replace(trial, scenario=scenario.name)
