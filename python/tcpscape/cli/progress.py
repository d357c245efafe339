"""Progress on stderr: only on a terminal, and only once the work has taken a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType

SILENT_S = 1.0
"""Nothing is shown before this, s."""
EVERY_S = 0.1
"""Redraws at most this often, s."""


class Progress:
    """A line that says how far the work is."""

    def __init__(self, what: str = "running") -> None:
        self.what = what
        self.began = time.monotonic()
        self.drawn = 0.0
        self.shown = False
        self.terminal = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def say(self, what: str) -> None:
        """What is being done now."""
        self.what = what

    def update(self, done: int, total: int) -> None:
        """How much of it is done."""
        now = time.monotonic()
        if not self.terminal or now - self.began < SILENT_S or now - self.drawn < EVERY_S:
            return
        self.drawn, self.shown = now, True
        print(f"\r\033[K{self.what}: {done}/{total}", end="", file=sys.stderr, flush=True)
