"""What an executor is, and the one for this machine's cores."""

from __future__ import annotations

import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

from tcpscape.engines.base import Capture, Engine
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial

SAVE_S = 10.0
"""How long trials that are being saved are waited for where a campaign ends early, s."""
Keep = Callable[[Sequence[Trial]], None]
"""Saves trials; called from any thread, as soon as they are over."""
Claim = Callable[[int, int], bool]
"""Whether a trial, given by its place in the work and its seed, is to be run here and now; another process may be running it."""
Trials = Generator[tuple[int, Trial], None, None]
"""Each trial with the place of its scenario in the work. Closed early, it ends what runs."""


@dataclass(frozen=True)
class Work:
    """Trials of one scenario that are to be run."""

    scenario: Scenario
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """How they are run: by which engine, what is kept of each, and who saves it."""

    engine: Engine
    capture: Capture
    keep: Keep
    claim: Claim = lambda place, seed: True


class Executor(ABC):
    """Runs trials somewhere."""

    def check(self, engine: Engine, scenarios: Sequence[Scenario]) -> None:  # noqa: B027 (most can do everything)
        """Refuses, by name, what it cannot run, before anything runs."""

    @abstractmethod
    def run(self, task: Task, work: Sequence[Work]) -> Trials:
        """Each trial as it ends, already saved."""


@dataclass(frozen=True)
class Local(Executor):
    """Threads of this process: engines release the GIL. Each takes the next trial when its last is saved."""

    jobs: int = 0
    """Cores; 0 is all."""

    def run(self, task: Task, work: Sequence[Work]) -> Trials:
        """Each trial as it ends; its thread has saved it."""
        count = sum(len(w.seeds) for w in work)
        workers = min(self.jobs or os.cpu_count() or 1, task.engine.at_once or count, count)
        if not count:
            return
        shared = _Shared(task, work)
        pool = ThreadPoolExecutor(workers)
        try:
            for _ in range(workers):
                pool.submit(shared.work)
            for _ in range(workers):
                yield from iter(shared.next, None)
        except BaseException:
            shared.end()
            pool.shutdown(wait=False, cancel_futures=True)
            task.engine.stop()
            raise
        pool.shutdown(wait=False)


class _Shared:
    """What the threads of a campaign share: the trials to come and those that are over."""

    def __init__(self, task: Task, work: Sequence[Work]) -> None:
        self._task = task
        self._todo = ((place, w.scenario, seed) for place, w in enumerate(work) for seed in w.seeds)
        self._lock = threading.Lock()
        self._done: SimpleQueue[tuple[int, Trial] | BaseException | None] = SimpleQueue()
        self._over = threading.Event()
        self._saving = 0
        self._saved = threading.Condition()

    def work(self) -> None:
        """What each thread does: trial after trial, until none is left or the campaign ends."""
        try:
            while not self._over.is_set() and (next_trial := self._take()):
                place, scenario, seed = next_trial
                trials = self._task.engine.run(scenario, [seed], threads=1, capture=self._task.capture)
                if not self._keep(trials):
                    break
                self._done.put((place, trials[0]))
            self._done.put(None)
        except BaseException as e:
            self._done.put(e)

    def end(self) -> None:
        """No trial begins and none is saved from now on; what is being saved now is kept when this returns."""
        with self._saved:
            self._over.set()
            self._saved.wait_for(lambda: not self._saving, SAVE_S)

    def _keep(self, trials: Sequence[Trial]) -> bool:
        """Saves trials; False where the campaign has ended meanwhile."""
        with self._saved:
            if self._over.is_set():
                return False
            self._saving += 1
        try:
            self._task.keep(trials)
        finally:
            with self._saved:
                self._saving -= 1
                self._saved.notify_all()
        return True

    def _take(self) -> tuple[int, Scenario, int] | None:
        """The next trial that is claimed; None where there is none."""
        while True:
            with self._lock:
                trial = next(self._todo, None)
            if trial is None or self._task.claim(trial[0], trial[2]):
                return trial

    def next(self) -> tuple[int, Trial] | None:
        """The next trial that is over, None where a thread has no more of them; raises what a thread raised."""
        result = self._done.get()
        if isinstance(result, BaseException):
            raise result
        return result


def cut(work: Sequence[Work], most: int) -> Iterator[tuple[int, Work]]:
    """Work in pieces of at most `most` trials, each with its place in `work`."""
    for place, whole in enumerate(work):
        seeds = iter(whole.seeds)
        while piece := tuple(itertools.islice(seeds, most)):
            yield place, Work(whole.scenario, piece)
