"""What a page shows as plain values: fields with their intervals, and tables of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcpscape.campaign import axes
from tcpscape.campaign.outcome import Cell
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number

MOST_ROWS = 1000
"""Most rows of a table on a page; all of them are in its file."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table."""

    text: str
    interval: str = ""
    """`[4.8, 6.5]`."""
    sort: float | None = None
    """The number that it is sorted by; without one, it is sorted by its text."""
    href: str = ""
    """The anchor of the page that it links to."""
    kind: str = ""
    """The CSS class of a verdict."""


@dataclass(frozen=True)
class PageTable:
    """A table of a page."""

    name: str
    """The name of its file in `tables/`."""
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Field]]
    left: int = 1
    """Number of columns with text; the others have numbers."""

    def dense(self) -> PageTable:
        """The table without the columns that are empty in every row."""
        filled = [i for i in range(len(self.columns)) if any(row[i].text for row in self.rows)]
        left = sum(i < self.left for i in filled)
        return replace(self, columns=[self.columns[i] for i in filled], rows=[[row[i] for i in filled] for row in self.rows], left=left)

    @property
    def shown(self) -> Sequence[Sequence[Field]]:
        """The rows on the page."""
        return self.rows[:MOST_ROWS]

    @property
    def hidden(self) -> int:
        """Number of rows that are in the file only."""
        return max(0, len(self.rows) - MOST_ROWS)


def word(text: object, href: str = "", kind: str = "") -> Field:
    """A field with text."""
    return Field(str(text), href=href, kind=kind)


def count(value: int) -> Field:
    """A field with a number of things."""
    return Field(str(value), sort=float(value))


def level(cell: Cell, axis: str) -> Field:
    """A field with the cell's value on an axis."""
    text = cell.at.get(axis, "")
    value = axes.read(text) if text else None
    return Field(text, sort=None if value is None or value.is_word else value.number)


def estimate(result: Estimate, factor: float = 1.0) -> Field:
    """A field with an estimate times `factor` and its interval; `[one run]` in place of the interval of a single run."""
    if not math.isfinite(result.value):
        return Field("–")
    known = result.n > 1 and math.isfinite(result.low)
    interval = f"[{number(factor * result.low)}, {number(factor * result.high)}]" if known else "[one run]" if result.n == 1 else ""
    return Field(number(factor * result.value), interval, factor * result.value)
