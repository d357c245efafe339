"""Somebody who is told how far a build is; this one does not care."""

from __future__ import annotations


class Watch:
    """Hears of each stage and of its progress."""

    def stage(self, what: str, total: int | None = None) -> None:
        """A stage begins; `total` is its length in units of its own, none if nobody knows."""

    def done(self, amount: int) -> None:
        """So much of the stage is done."""

    def say(self, line: str) -> None:
        """What is being done just now."""
