"""The work behind a question: its trials on the cores of this machine, the most urgent first, and an end to what is stale.

:class:`Pool` has a thread for each core and takes trials by their urgency; :class:`Work` is one question's: it runs trials, sends blocks, and raises
:class:`Cancelled` in the question as soon as a newer one of its kind is asked or its page is gone. The model ends a running trial too.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tcpscape import engines
from tcpscape.engines import Capture, Engine
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial
from tcpscape.web.blocks import Block

FIRST, SOON, LATER, LAST = range(4)
"""Urgencies: what is seen first (one run here), the coarse curve, more runs of what is seen, the rest of a map."""


class Cancelled(Exception):
    """The question is stale: a newer one was asked, or the page is gone."""


@dataclass(frozen=True)
class Job:
    """A trial that a question wants."""

    scenario: Scenario
    seed: int
    urgency: int = SOON
    capture: Capture = field(default_factory=Capture)


class Pool:
    """The threads that run trials, one for each core, for all pages of this process."""

    def __init__(self, threads: int = 0) -> None:
        """`threads`: 0 is one for each core."""
        self._jobs: queue.PriorityQueue[tuple[int, int, Callable[[], None]]] = queue.PriorityQueue()
        self._order = itertools.count()
        for _ in range(threads or os.cpu_count() or 1):
            threading.Thread(target=self._serve, daemon=True).start()

    def submit(self, urgency: int, run: Callable[[], None]) -> None:
        """Runs this on a thread, after what is more urgent or came before it."""
        self._jobs.put((urgency, next(self._order), run))

    def _serve(self) -> None:
        while True:
            self._jobs.get()[2]()


class Work:
    """What a question may do while it is the newest of its kind."""

    def __init__(self, pool: Pool, send: Callable[[Block], None]) -> None:
        """`send`: takes a block to the page; called from any thread."""
        self._pool, self._send, self._over = pool, send, threading.Event()

    def cancel(self) -> None:
        """Ends the question: whatever it does next raises Cancelled."""
        self._over.set()

    def expect_wanted(self) -> None:
        """Raises Cancelled where the question is stale."""
        if self._over.is_set():
            raise Cancelled

    def send(self, block: Block) -> None:
        """Sends a block to the page."""
        self.expect_wanted()
        self._send(block)

    def trials(self, jobs: Sequence[Job], engine: Engine | None = None) -> Iterator[tuple[int, Trial]]:
        """The trials of these jobs as they end, each with its place among them.

        :raises TcpscapeError: one line, for a scenario that the engine cannot run.
        :raises Cancelled: the question is stale.
        """
        runs = engine or engines.make("model")
        done: queue.SimpleQueue[tuple[int, Trial] | BaseException] = queue.SimpleQueue()
        for place, job in enumerate(jobs):
            self._pool.submit(job.urgency, lambda place=place, job=job: done.put(self._run(runs, place, job)))  # type: ignore[misc]
        for _ in jobs:
            result = done.get()
            self.expect_wanted()
            if isinstance(result, BaseException):
                raise result
            yield result

    def _run(self, engine: Engine, place: int, job: Job) -> tuple[int, Trial] | BaseException:
        if self._over.is_set():
            return Cancelled()
        try:
            return place, engine.run(job.scenario, [job.seed], capture=job.capture)[0]
        except BaseException as e:
            return e
