"""The work behind a question: its trials on the cores of this machine, the most urgent first, and an end to what is stale.

:class:`Work` is one question's: it runs trials on the pool, sends blocks, and raises :class:`Cancelled` in the question as soon as a newer one of its
kind is asked or its page is gone. Its trials that wait leave the queue then, and the model ends those that run, within a millisecond.

In the pool, trials wait in **batches**, one for each call of :meth:`Work.trials`. The most urgent trial is taken first; among equally urgent ones the
pages take turns, and within a page its batches do, so that a map of one tab does not keep another tab waiting.
"""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import threading
import time
import weakref
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from tcpscape.engines import Engine
from tcpscape.engines.model import Model
from tcpscape.errors import refuse
from tcpscape.reading.files import MIB
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Trial
from tcpscape.units import NS_PER_S, brief_time
from tcpscape.web.stream import Block

Run = Callable[[], None]
MOST = 9 * MIB
"""Bytes of the trials that are kept: 6,000 of one flow, more than those of a map of 20 × 20 cells and 5 seeds."""
KEY = 512
"""Bytes of what a trial is kept under, about."""


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
    """The trials that were used last, as many as fit: a slider that comes back, and two questions about the same point, find theirs at once.

    Each is kept pickled and compressed: 1 kB of bytes in place of 15 kB of objects, for 0.06 ms.
    """

    def __init__(self, most: int = MOST) -> None:
        """`most`: bytes."""
        self._most = most
        self._lock = threading.Lock()
        self._trials: OrderedDict[Hashable, bytes] = OrderedDict()
        self.size = 0
        """Of what is kept, bytes."""

    def find(self, key: Hashable) -> Trial | None:
        """The trial of this key, if it is kept."""
        with self._lock:
            if key not in self._trials:
                return None
            self._trials.move_to_end(key)
            data = self._trials[key]
        trial: Trial = pickle.loads(zlib.decompress(data))
        return trial

    def keep(self, key: Hashable, trial: Trial) -> None:
        """Keeps a trial; those that were not used for longest go. One that is larger than all the room is not kept."""
        if size_of_tables(trial) > self._most:
            return  # nor pickled: a run of a million samples would be 100 MB twice
        data = pickled(trial)
        with self._lock:
            if size_of(data) > self._most or key in self._trials:
                return
            self._trials[key] = data
            self.size += size_of(data)
            while self.size > self._most:
                _, gone = self._trials.popitem(last=False)
                self.size -= size_of(gone)

    def __len__(self) -> int:
        return len(self._trials)


def key_of(engine: Engine, scenario: Scenario, seed: int, capture: Capture) -> Hashable:
    """What a trial is: its content address, what it is called in results, and what is recorded of it."""
    return engine.address(scenario, seed), scenario.name, tuple(scenario.ccas), capture


def pickled(trial: Trial) -> bytes:
    """A trial as it is kept."""
    return zlib.compress(pickle.dumps(trial, pickle.HIGHEST_PROTOCOL), zlib.Z_BEST_SPEED)


def size_of_tables(trial: Trial) -> int:
    """Bytes of what was recorded of a trial, in memory and pickled alike."""
    tables = (trial.samples, trial.queue_samples, trial.packets, trial.sender_events)
    return sum(int(table.estimated_size()) for table in tables if table is not None)


def size_of(data: bytes) -> int:
    """Bytes that a trial takes which is kept as these."""
    return KEY + len(data)


__all__ = ["FIRST", "LAST", "LATER", "SOON", "Cancelled", "Job", "Pool", "Work"]

FIRST, SOON, LATER, LAST = range(4)
"""Urgencies: what is seen first (one run here), the coarse curve, more runs of what is seen, the rest of a map."""
MOST_TRIALS = 50_000
"""Trials that a question asks for at a time."""
MOST_SECONDS = 60.0
"""Seconds of a core that a trial may take, by the engine's own estimate, which is of the most that it can be."""


class Cancelled(Exception):
    """The question is stale: a newer one was asked, or the page is gone."""


@dataclass(frozen=True)
class Job:
    """A trial that a question wants."""

    scenario: Scenario
    seed: int
    urgency: int = SOON
    capture: Capture = field(default_factory=Capture)


Result = tuple[int, Trial] | BaseException


class _Once(Model):
    """The model of one call: once it was stopped, it runs nothing any more."""

    def stop(self) -> None:
        """Ends what runs, and what begins later."""
        if self._stop:
            self._stop.set()


class Work:
    """What a question may do while it is the newest of its kind."""

    def __init__(self, pool: Pool, send: Callable[[Block], None], page: Hashable = None) -> None:
        """`send`: takes a block to the page; called from any thread; not to hold the work, which is then gone as soon as its question is over.

        `page`: whose question it is; pages take turns.
        """
        self._pool, self._send, self._page = pool, send, page
        self._lock = threading.Lock()
        self._over = False
        self._running: set[_Trials] = set()

    @property
    def is_over(self) -> bool:
        """Whether the question is stale."""
        return self._over

    def cancel(self) -> None:
        """Ends the question: whatever it does next raises Cancelled, its trials end or do not begin."""
        with self._lock:
            self._over = True
            running = list(self._running)
        for trials in running:
            trials.end()

    def expect_wanted(self) -> None:
        """Raises Cancelled where the question is stale."""
        if self._over:
            raise Cancelled

    def send(self, block: Block) -> None:
        """Sends a block to the page; waits where the page does not keep up. :raises Cancelled: the question is stale."""
        self.expect_wanted()
        self._send(block)

    def trials(self, jobs: Sequence[Job], engine: Engine | None = None) -> Iterator[tuple[int, Trial]]:
        """The trials of these jobs as they end, each with its place among them; those that ran before for this process come first.

        :param engine: what runs them, the model without one; it is stopped with the question, so it is nobody else's then.
        :raises TcpscapeError: one line, for a scenario that the engine cannot run, and for more work than a page may ask for.
        :raises Cancelled: the question is stale.
        """
        if len(jobs) > MOST_TRIALS:
            refuse("seeds", f"the question is about {len(jobs)} trials, and at most {MOST_TRIALS} are run", "ask for fewer seeds or places")
        running = _Trials(self._pool, engine or _Once(), self._page, is_bounded=engine is None)
        with self._lock:
            self.expect_wanted()
            self._running.add(running)
        try:
            for result in running.results(jobs):
                self.expect_wanted()
                if isinstance(result, BaseException):
                    raise result
                yield result
        except BaseException:
            running.end()
            raise
        finally:
            with self._lock:
                self._running.discard(running)


class _Trials(Batch):
    """The trials of one call."""

    def __init__(self, pool: Pool, engine: Engine, page: Hashable, *, is_bounded: bool) -> None:
        super().__init__(page)
        self._pool, self._engine, self._is_bounded = pool, engine, is_bounded
        self._done: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self._is_over = False

    def results(self, jobs: Sequence[Job]) -> Iterator[Result]:
        """What comes of the jobs as it comes; an exception is the last of it."""
        waiting = []
        for place, job in enumerate(jobs):
            if trial := self._known(job):
                yield place, trial
            else:
                waiting.append((place, job))
        for place, job in waiting:
            self._pool.submit(job.urgency, lambda place=place, job=job: self._done.put(self._run(place, job)), self)  # type: ignore[misc]
        for _ in waiting:
            yield self._done.get()

    def end(self) -> None:
        """No trial begins from now on, those that run are stopped, and whoever waits for one is told."""
        if self._is_over:
            return
        self._is_over = True
        self._pool.drop(self)
        self._engine.stop()
        self._done.put(Cancelled())

    def _run(self, place: int, job: Job) -> Result:
        if self._is_over:
            return Cancelled()
        try:
            if known := self._known(job):  # another question's, meanwhile
                return place, known
            if self._is_bounded:
                _expect_bounded(self._engine, job.scenario)
            trial = self._engine.run(job.scenario, [job.seed], capture=job.capture)[0]
            if self._engine.repeatable:
                self._pool.trials.keep(key_of(self._engine, job.scenario, job.seed, job.capture), trial)
            return place, trial
        except BaseException as e:
            return Cancelled() if self._is_over else e

    def _known(self, job: Job) -> Trial | None:
        """The trial, where it ran before and would be the same again."""
        return self._pool.trials.find(key_of(self._engine, job.scenario, job.seed, job.capture)) if self._engine.repeatable else None


def _expect_bounded(engine: Engine, scenario: Scenario) -> None:
    """Refuses a scenario whose trials may take longer than anybody waits for a page."""
    seconds = engine.seconds(scenario)
    if seconds > MOST_SECONDS:
        takes, most = brief_time(seconds * NS_PER_S), brief_time(MOST_SECONDS * NS_PER_S)
        lasts = brief_time(float(scenario.duration))
        refuse(
            "duration",
            f"a trial of {lasts} on this path may take {takes} of a core, and the page allows {most}",
            "take a shorter one, or a lower rate",
        )
