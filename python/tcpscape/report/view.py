"""What a page shows, as plain values: fields with their intervals, tables of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number

MOST_ROWS = 1000
"""Rows of a table on a page; the rest is in its file."""


@dataclass(frozen=True, slots=True)
class Field:
    """A table's field."""

    text: str
    interval: str = ""
    """`[4.8, 6.5]`."""
    sort: float | None = None
    """What it is sorted by; its text where it is None."""
    href: str = ""
    """Place in the page that it leads to."""
    kind: str = ""
    """How it is shown: a verdict's class."""


@dataclass(frozen=True)
class Table:
    """A table of a page."""

    name: str
    """Of its file in `tables/`."""
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Field]]
    left: int = 1
    """Columns of text; the others are numbers."""

    def dense(self) -> Table:
        """Without the columns that are empty in every row."""
        kept = [i for i in range(len(self.columns)) if any(row[i].text for row in self.rows)]
        left = sum(i < self.left for i in kept)
        return replace(self, columns=[self.columns[i] for i in kept], rows=[[row[i] for i in kept] for row in self.rows], left=left)

    @property
    def shown(self) -> Sequence[Sequence[Field]]:
        """The rows on the page."""
        return self.rows[:MOST_ROWS]

    @property
    def hidden(self) -> int:
        """How many rows are only in its file."""
        return max(0, len(self.rows) - MOST_ROWS)


def word(text: object, href: str = "", kind: str = "") -> Field:
    """A word."""
    return Field(str(text), href=href, kind=kind)


def value(number_: float | None, digits: int = 3) -> Field:
    """A number that is no measurement of ours; empty where there is none."""
    if number_ is None or not math.isfinite(number_):
        return Field("")
    return Field(number(number_, digits), sort=number_)


def count(number_: int) -> Field:
    """A number of things."""
    return Field(str(number_), sort=float(number_))


def estimate(got: Estimate, factor: float = 1.0) -> Field:
    """A measurement with its interval; of a single run the number alone, marked by its missing interval."""
    if not math.isfinite(got.value):
        return Field("–")
    known = got.n > 1 and math.isfinite(got.low)
    interval = f"[{number(factor * got.low)}, {number(factor * got.high)}]" if known else "[one run]" if got.n == 1 else ""
    return Field(number(factor * got.value), interval, factor * got.value)
