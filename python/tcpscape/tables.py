"""A table of texts, and how it is shown: on a terminal, in a notebook, in Markdown."""

from __future__ import annotations

import html
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table as RichTable

PLAIN_WIDTH = 150
"""Characters of a line where there is no terminal that has a width."""


@dataclass(frozen=True)
class Table:
    """Columns and rows of text; the first `left` columns are words, the others numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    title: str = ""
    notes: Sequence[str] = ()
    """Sentences below the table: caveats, marks."""

    def rich(self) -> RichTable:
        """The columns and rows for a terminal, as a table of the library rich."""
        from rich.table import Table as RichTable

        table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for i, name in enumerate(self.columns):
            table.add_column(name, justify="left" if i < self.left else "right", no_wrap=i >= self.left)
        for row in self.rows:
            table.add_row(*row)
        return table

    def text(self, width: int = PLAIN_WIDTH) -> str:
        """Title, table and notes as plain text of at most `width` characters a line."""
        from rich.console import Console

        file = io.StringIO()
        screen = Console(file=file, width=width, highlight=False, markup=False, no_color=True)
        for part in (self.title, self.rich(), *self.notes):
            if part:
                screen.print(part)
        return "\n".join(line.rstrip() for line in file.getvalue().splitlines())

    def html(self) -> str:
        """The same as HTML for a notebook."""
        head = "".join(self._cell("th", i, name) for i, name in enumerate(self.columns))
        rows = ["".join(self._cell("td", i, text) for i, text in enumerate(row)) for row in self.rows]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        title = f"<p><b>{html.escape(self.title)}</b></p>" if self.title else ""
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def markdown(self) -> str:
        """Columns and rows as a Markdown table."""
        return markdown(self.columns, self.rows)

    def _cell(self, tag: str, column: int, text: str) -> str:
        return f'<{tag} style="text-align:{"left" if column < self.left else "right"}">{html.escape(text)}</{tag}>'


class ShownAsTable:
    """A result that an interpreter and a notebook show as its :meth:`table`."""

    __slots__ = ()

    def table(self) -> Table:
        """What is shown of it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def markdown(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table as Markdown; a vertical bar in a cell is escaped."""
    lines = ["| " + " | ".join(_escaped(name) for name in columns) + " |", "|" + "|".join("---" for _ in columns) + "|"]
    return "\n".join(lines + ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows])


def _escaped(cell: object) -> str:
    return str(cell).replace("|", "\\|").replace("\\\\|", "\\|")


def percent(fraction: float | None, digits: int = 0) -> str:
    """`12 %` from 0.12; ∞ for an infinite fraction, – for one that is not known."""
    if fraction is None or math.isnan(fraction):
        return "–"
    return "∞" if math.isinf(fraction) else f"{100 * fraction:.{digits}f} %"


def shares(limited_by: Mapping[str, float], least: float = 0.05) -> str:
    """`cwnd 80 %, app 20 %`: the share of the time that each cause held a flow back; shares below `least` are left out."""
    return ", ".join(f"{cause} {percent(share)}" for cause, share in limited_by.items() if share >= least) or "–"
