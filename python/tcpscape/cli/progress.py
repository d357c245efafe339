"""Progress on stderr with the time that is left: only on a terminal, and only once the work has taken a second; what Ctrl-C leaves."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

import click

from tcpscape.errors import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from tcpscape.store.results import Store

SILENT_S = 1.0
"""Nothing is shown before this, s."""
EVERY_S = 0.1
"""Redraws at most this often, s."""
RECENT_S = 60.0
"""The time that is left is estimated from the pace of so long, s."""


class Progress:
    """A line that says how far the work is, and when it will be over."""

    def __init__(self, what: str = "running") -> None:
        self.what = what
        self.began = time.monotonic()
        self.drawn = 0.0
        self.terminal = sys.stderr.isatty()
        self._bar: Bar | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()

    def say(self, what: str) -> None:
        """What is being done now."""
        self.what = what

    def update(self, done: int, total: int) -> None:
        """How much of it is done."""
        now = time.monotonic()
        if not self.terminal or now - self.began < SILENT_S or now - self.drawn < EVERY_S:
            return
        self.drawn = now
        bar = self._bar = self._bar or _bar()
        if not bar.tasks:
            bar.add_task(self.what)
            bar.start()
        bar.update(bar.tasks[0].id, description=self.what, completed=done, total=total)


@contextmanager
def resumable(store: Store | None) -> Iterator[None]:
    """Says after Ctrl-C what `store` kept, and ends the command; without a store the command line says that it was interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        if store is None:
            raise
        ran = f"{store.saved} trial{'s' * (store.saved != 1)} ran"
        print(f"interrupted: {ran}, kept in {store.root}; the same command goes on from here", file=sys.stderr)
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from None


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=1 / EVERY_S, speed_estimate_period=RECENT_S)
