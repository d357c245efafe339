"""How long stale work lives: from a new question to the end of the last trial that was running for the one before, in a process without a browser."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from tcpscape import engines
from tcpscape.web.pages import Page, Pages
from tcpscape.web.questions import KINDS
from tcpscape.web.state import State

LONG = ({}, {"duration": "60s", "rate": "100mbit"}, {"duration": "600s", "rate": "100mbit"})
"""Trials that are stale: of about 15 ms, 200 ms and 2 s of a core."""
LEAST_S, MOST_S = 0.05, 0.6
"""How long a question has been answered when the next one comes, s."""


class Running:
    """Which trials of the model run, and when those ended that were running at a moment."""

    def __init__(self) -> None:
        model = type(engines.make("model"))
        self._run, self._changed, self._now = model.run, threading.Condition(), 0
        running: set[int] = set()

        def run(*arguments: Any, **options: Any) -> Any:
            with self._changed:
                self._now += 1
                mine = self._now
                running.add(mine)
            try:
                return self._run(*arguments, **options)
            finally:
                with self._changed:
                    running.discard(mine)
                    self._changed.notify_all()

        self._running, self._model = running, model
        model.run = run  # type: ignore[method-assign]

    def snapshot(self) -> set[int]:
        """The trials that run now."""
        with self._changed:
            return set(self._running)

    def wait(self, trials: set[int]) -> None:
        """Waits until these have ended."""
        with self._changed:
            assert self._changed.wait_for(lambda: not (trials & self._running), 60), "a stale trial runs for more than a minute"

    def restore(self) -> None:
        """Leaves the model as it was."""
        self._model.run = self._run  # type: ignore[method-assign]


def measure(count: int) -> list[float]:
    """So many times from a new question until what ran for the old one has ended, ms."""
    rng, times, pages = random.Random(3), [], Pages()
    page, running = Page(pages), Running()
    try:
        for generation in range(count):
            load = LONG[generation % len(LONG)]
            page.ask(KINDS["answer"](), 2 * generation, State(rtt=f"{rng.uniform(20, 80):.1f}ms", **{"rate": "42mbit", **load}))
            time.sleep(rng.uniform(LEAST_S, MOST_S))
            stale, began = running.snapshot(), time.monotonic()
            page.ask(KINDS["answer"](), 2 * generation + 1, State(rate="42mbit"))
            running.wait(stale)
            times.append(1000 * (time.monotonic() - began))
    finally:
        page.close()
        running.wait(running.snapshot())
        pages.pool.close()
        running.restore()
    return times
