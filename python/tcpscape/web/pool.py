"""The threads that run trials, which trial they take next, and the trials that ran.

Trials wait in **batches**, one for each call of `Work.trials`. The most urgent trial is taken first; among equally urgent ones the pages take turns,
and within a page its batches do, so that a map of one tab does not keep another tab waiting. A batch that nobody wants any more leaves the queue at
once.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from tcpscape.reading.files import MIB

if TYPE_CHECKING:
    from tcpscape.engines import Capture, Engine
    from tcpscape.scenario.scenario import Scenario
    from tcpscape.trial import Trial

Run = Callable[[], None]
MOST = 192 * MIB
"""Bytes of the trials that are kept."""
TRIAL, FLOW = 11_264, 4_096
"""Bytes of a trial without its tables (the reports of its queues are most of it), and of each of its flows, about: by the growth of a process that
keeps 16,000 trials of one flow, 15 kB each."""


class Batch:
    """Trials that wait together; `page` is whoever they are for."""

    def __init__(self, page: Hashable = None) -> None:
        self.page = page

    def end(self) -> None:
        """No trial of it begins from now on, and those that run are stopped: a batch of trials that can be stopped does so."""


class _Level:
    """The trials of one urgency."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, OrderedDict[Batch, deque[Run]]] = OrderedDict()

    def put(self, batch: Batch, run: Run) -> None:
        self._pages.setdefault(batch.page, OrderedDict()).setdefault(batch, deque()).append(run)

    def take(self) -> Run | None:
        """The next trial; its page and its batch go to the end of their queues."""
        if not self._pages:
            return None
        page, batches = next(iter(self._pages.items()))
        batch, runs = next(iter(batches.items()))
        run = runs.popleft()
        batches.move_to_end(batch)
        self._pages.move_to_end(page)
        if not runs:
            self.drop(batch)
        return run

    def drop(self, batch: Batch) -> int:
        """Takes a batch out; returns how many trials it had left."""
        batches = self._pages.get(batch.page)
        if batches is None or batch not in batches:
            return 0
        left = len(batches.pop(batch))
        if not batches:
            del self._pages[batch.page]
        return left

    def __len__(self) -> int:
        return sum(len(runs) for batches in self._pages.values() for runs in batches.values())


class Pool:
    """The threads that run trials, one for each core, for all pages of this process."""

    def __init__(self, threads: int = 0) -> None:
        """`threads`: 0 is one for each core."""
        self.trials = Cache()
        """The trials that ran, for whoever wants them again."""
        self._levels: dict[int, _Level] = {}
        self._batches: weakref.WeakSet[Batch] = weakref.WeakSet()
        self._ready = threading.Condition()
        self._is_closed = False
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(threads or os.cpu_count() or 1)]
        for thread in self._threads:
            thread.start()
        atexit.register(_close, weakref.ref(self))  # a thread that is inside the model when Python ends would abort the process

    def submit(self, urgency: int, run: Run, batch: Batch | None = None) -> None:
        """Runs this on a thread in its turn; what `run` raises is a bug that ends the thread. Of a pool that is closed, the batch ends."""
        batch = batch or Batch()
        with self._ready:
            if not self._is_closed:
                self._batches.add(batch)
                self._levels.setdefault(urgency, _Level()).put(batch, run)
                self._ready.notify()
                return
        batch.end()

    def drop(self, batch: Batch) -> None:
        """Takes what waits of a batch out of the queue."""
        with self._ready:
            for level in self._levels.values():
                level.drop(batch)

    @property
    def waiting(self) -> int:
        """Trials that wait."""
        with self._ready:
            return sum(len(level) for level in self._levels.values())

    def close(self, seconds: float = 0.3) -> None:
        """Ends the batches and the threads, each after the trial that it runs; waits at most so long for them."""
        until = time.monotonic() + seconds
        with self._ready:
            self._is_closed = True
            self._levels.clear()
            self._ready.notify_all()
            batches = list(self._batches)
        for batch in batches:
            batch.end()
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _serve(self) -> None:
        while run := self._next():
            run()

    def _next(self) -> Run | None:
        """Waits for a trial; None where the pool is closed."""
        with self._ready:
            while not self._is_closed:
                for urgency in sorted(self._levels):
                    if run := self._levels[urgency].take():
                        return run
                self._ready.wait()
        return None


def _close(pool: weakref.ref[Pool]) -> None:
    """Closes a pool that is still there."""
    if there := pool():
        there.close()


class Cache:
    """The trials that were used last, as many as fit: a slider that comes back, and two questions about the same point, find theirs at once."""

    def __init__(self, most: int = MOST) -> None:
        """`most`: bytes."""
        self._most = most
        self._lock = threading.Lock()
        self._trials: OrderedDict[Hashable, tuple[Trial, int]] = OrderedDict()
        self.size = 0
        """Of what is kept, about."""

    def find(self, key: Hashable) -> Trial | None:
        """The trial of this key, if it is kept."""
        with self._lock:
            if key not in self._trials:
                return None
            self._trials.move_to_end(key)
            return self._trials[key][0]

    def keep(self, key: Hashable, trial: Trial) -> None:
        """Keeps a trial; those that were not used for longest go. One that is larger than all the room is not kept."""
        size = size_of(trial)
        with self._lock:
            if size > self._most or key in self._trials:
                return
            self._trials[key] = (trial, size)
            self.size += size
            while self.size > self._most:
                _, (_, gone) = self._trials.popitem(last=False)
                self.size -= gone

    def __len__(self) -> int:
        return len(self._trials)


def key_of(engine: Engine, scenario: Scenario, seed: int, capture: Capture) -> Hashable:
    """What a trial is: its content address, what it is called in results, and what is recorded of it."""
    return engine.address(scenario, seed), scenario.name, tuple(scenario.ccas), capture


def size_of(trial: Trial) -> int:
    """Bytes that a trial takes, about."""
    frames = [frame for frame in (trial.samples, trial.queue_samples, trial.packets, trial.sender_events) if frame is not None]
    return TRIAL + FLOW * len(trial.flows) + sum(int(frame.estimated_size()) for frame in frames)
