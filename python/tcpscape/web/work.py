"""The work behind a question: its trials on the cores of this machine, the most urgent first, and an end to what is stale.

:class:`Work` is one question's: it runs trials on the pool, sends blocks, and raises :class:`Cancelled` in the question as soon as a newer one of its
kind is asked or its page is gone. Its trials that wait leave the queue then, and the model ends those that run, within a millisecond.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from tcpscape.engines import Capture, Engine
from tcpscape.engines.model import Model
from tcpscape.errors import refuse
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial
from tcpscape.units import NS_PER_S, brief_time
from tcpscape.web.blocks import Block
from tcpscape.web.pool import Batch, Pool, key_of

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
        """`send`: takes a block to the page; called from any thread. `page`: whose question it is; pages take turns."""
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
        """Sends a block to the page; waits where the page does not keep up.

        :raises Cancelled: the question is stale.
        """
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
