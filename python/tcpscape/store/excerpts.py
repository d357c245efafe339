"""What a function says of trials, read from their rows without making the trials: of each only the fields that the function looks at.

A trial has some eighty values, most metrics look at two or three. Which ones these are is found out by trying: a field that was not read is missing
in the trial and its flows, Python says so, and it is read from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from tcpscape.store import rows
from tcpscape.store.side_tables import SIDE_TABLES
from tcpscape.trial import FlowResult, Trial

BESIDE = {"queues", *SIDE_TABLES}
"""Fields of a trial that are not in its JSON."""


class Excerpt:
    """A function of trials as one of their rows."""

    def __init__(self, of: Callable[[Trial], float]) -> None:
        self._of = of
        self._read: dict[type, frozenset[str]] = {Trial: frozenset({"flows"}), FlowResult: frozenset()}
        self._there = {Trial: {f.name for f in fields(Trial)} - BESIDE, FlowResult: {f.name for f in fields(FlowResult)}}
        self._reader = rows.reader(*self._read.values())

    def __call__(self, text: str) -> float:
        """What the function says of the trial of a row.

        :raises LookupError: the row is of a newer format, or the function looks at what is not in a row.
        :raises ValueError: the row is damaged.
        """
        if not rows.is_known(text):
            raise LookupError("a row has another format")
        while True:
            try:
                return self._of(self._reader.validate_json(text))
            except AttributeError as e:
                self._add(type(e.obj), e.name or "")

    def _add(self, kind: type, name: str) -> None:
        """Reads a field of a trial or of a flow from now on."""
        if name not in self._there.get(kind, ()) or name in self._read[kind]:
            raise LookupError(f"{kind.__name__}.{name} is not in a row")
        self._read[kind] |= {name}
        self._reader = rows.reader(*self._read.values())
