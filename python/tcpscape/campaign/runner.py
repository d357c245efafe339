"""Many scenarios × seeds on one engine, over all cores, saved trial by trial."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from tcpscape.engines.base import Capture, Engine
from tcpscape.results import Store
from tcpscape.scenario import Scenario
from tcpscape.trial import Trial

Progress = Callable[[int, int], None]
"""Called with trials done and trials in all."""


@dataclass(frozen=True)
class Runner:
    """How campaigns run: the engine, how many cores, what is kept and where, and who is told."""

    engine: Engine
    jobs: int = 0
    """Cores; 0 is all."""
    capture: Capture = field(default_factory=Capture)
    store: Store | None = None
    progress: Progress | None = None

    def run(self, scenario: Scenario, seeds: Sequence[int]) -> list[Trial]:
        """The trials of one scenario, in the seeds' order."""
        return self.run_all([(scenario, seeds)])[0]

    def run_all(self, conditions: Sequence[tuple[Scenario, Sequence[int]]]) -> list[list[Trial]]:
        """The trials of each condition, in the seeds' order. The order of work never changes a result."""
        for scenario, _ in conditions:
            self.engine.check(scenario)
        done: list[dict[int, Trial]] = [{} for _ in conditions]
        total = sum(len(seeds) for _, seeds in conditions)
        count = 0
        for i, trials in self._work(conditions):
            done[i] |= {t.seed: t for t in trials}
            count += len(trials)
            if self.progress:
                self.progress(count, total)
        return [[done[i][seed] for seed in seeds] for i, (_, seeds) in enumerate(conditions)]

    def _work(self, conditions: Sequence[tuple[Scenario, Sequence[int]]]) -> Iterator[tuple[int, list[Trial]]]:
        workers = self.jobs or os.cpu_count() or 1
        todo = []
        for i, (scenario, seeds) in enumerate(conditions):
            kept = self._kept(scenario, seeds)
            if kept:
                yield i, kept
            have = {t.seed for t in kept}
            todo += [(i, scenario, part) for part in self._batches([s for s in seeds if s not in have], workers)]
        pool = ThreadPoolExecutor(workers)
        try:
            futures: dict[Future[list[Trial]], int] = {pool.submit(self._batch, scenario, part): i for i, scenario, part in todo}
            for future in as_completed(futures):
                trials = future.result()
                for trial in trials:
                    if self.store:
                        self.store.save(trial)
                yield futures[future], trials
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self.engine.stop()
            raise
        pool.shutdown(wait=False)

    def _batches(self, seeds: Sequence[int], workers: int) -> Iterator[Sequence[int]]:
        size = 1 if self.store else max(1, min(self.engine.batch, len(seeds) // (2 * workers)))
        for first in range(0, len(seeds), size):
            yield seeds[first : first + size]

    def _batch(self, scenario: Scenario, seeds: Sequence[int]) -> list[Trial]:
        return self.engine.run(scenario, seeds, threads=1, capture=self.capture)

    def _kept(self, scenario: Scenario, seeds: Sequence[int]) -> list[Trial]:
        """What the store has already."""
        if not self.store:
            return []
        tables = [t for t, wanted in (("samples", self.capture.samples_ns), ("packets", self.capture.packets)) if wanted]
        found = [self.store.load(self.engine.address(scenario, seed), tables) for seed in seeds]
        return [t for t in found if t is not None]
