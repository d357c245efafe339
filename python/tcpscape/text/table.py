"""A table of words and numbers, and how it is shown: on a terminal, in a notebook, in Markdown."""

from __future__ import annotations

import functools
import html
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, overload

from tcpscape.errors import printable
from tcpscape.text.numbers import Number

if TYPE_CHECKING:
    from rich.table import Table as RichTable
    from rich.text import Text

PLAIN_WIDTH = 150
"""Characters of a line where there is no terminal that has a width."""
GAP = 2
"""Spaces between two columns."""
FOLDED = 16
"""Characters below which a column of words is not folded."""
LONGEST_WORD = 48
"""Characters of the longest word that makes a column of words wider than that."""
LONGEST_NAME = 28
"""Characters above which a name may fold."""
HEADING_LINES = 2
"""Most lines of a heading."""

T = TypeVar("T")
TableRow = Sequence[str | Number]
"""Words and numbers."""


class RowsOf(Sequence[TableRow], Generic[T]):
    """A row of each of these, made when it is first asked for: a screen shows few of many thousands."""

    def __init__(self, of: Sequence[T], make: Callable[[T], TableRow]) -> None:
        self._of, self._make = of, make
        self._rows: dict[int, TableRow] = {}

    @overload
    def __getitem__(self, place: int) -> TableRow: ...
    @overload
    def __getitem__(self, place: slice) -> RowsOf[T]: ...
    def __getitem__(self, place: int | slice) -> TableRow | RowsOf[T]:
        if isinstance(place, slice):
            return RowsOf(self._of[place], self._make)
        if place not in self._rows:
            self._rows[place] = self._make(self._of[place])
        return self._rows[place]

    def __len__(self) -> int:
        return len(self._of)


@dataclass(frozen=True)
class Table:
    """Columns, and rows of words and numbers; the first `left` columns are words, the others numbers."""

    columns: Sequence[str]
    rows: Sequence[TableRow]
    left: int = 1
    title: str = ""
    notes: Sequence[str] = ()
    """Sentences below the table: caveats, marks."""
    drop: Sequence[str] = ()
    """Columns that a narrow screen leaves out, the first one first. The others, the name among them, always remain."""
    brief: Sequence[str] = ()
    """Columns whose values stand without their interval, `12.3` for `12.3 [11.8, 12.9]`, where columns would have to be left out otherwise."""
    words: Sequence[str] = ()
    """Columns of words behind the first `left`: aligned to the left, and folded where the screen is narrow."""

    def rich(self, width: int | None = None) -> RichTable:
        """The columns and rows for a terminal, as a table of the library rich; `width`: characters of a line, unlimited where it is None."""
        from rich.table import Table as RichTable

        fitting = self if width is None else self.fitted(width)
        fits = width is None or fitting._least_width() <= width  # otherwise cells fold: a number in two lines is better than one that is cut
        table = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        for i, name in enumerate(fitting.columns):
            is_words = i < fitting.left or name in self.words
            heading = fitting.heading(i) if width is not None and fitting._full_width() > width else name
            least = fitting._column_width(i) if fits and fitting._folds(i) else None
            justify: Literal["left", "right"] = "left" if is_words else "right"
            table.add_column(plain(heading, lines=True), justify=justify, no_wrap=fits and not fitting._folds(i), overflow="fold", min_width=least)
        for row in fitting.rows:
            table.add_row(*(plain(cell) for cell in row))
        return table

    def fitted(self, width: int) -> Table:
        """The table without as many of the columns `drop` as it takes to fit into `width` characters; those of words may fold."""
        table = self
        for name in self.brief:
            if table._least_width() > width:
                table = table._without_intervals(name)
        for name in self.drop:
            if table._least_width() <= width:
                break
            table = table.without(name)
        return table

    def rest(self, width: int) -> Table | None:
        """The first columns, which name each row, with those that :meth:`fitted` leaves out; None where it leaves out none."""
        names = [*self.columns[: self.left], *self.left_out(width)]
        if len(names) == self.left:
            return None
        places = [i for i, name in enumerate(self.columns) if name in names]
        return Table([self.columns[i] for i in places], [[row[i] for i in places] for row in self.rows], self.left, drop=self.drop, words=self.words)

    def left_out(self, width: int) -> tuple[str, ...]:
        """The columns that :meth:`fitted` leaves out at this width."""
        kept = self.fitted(width).columns
        return tuple(name for name in self.columns if name not in kept)

    def text(self, width: int = PLAIN_WIDTH) -> str:
        """Title, table and notes as plain text of at most `width` characters a line."""
        from rich.console import Console

        file = io.StringIO()
        screen = Console(file=file, width=width, highlight=False, markup=False, no_color=True)
        for part in (plain(self.title) if self.title else None, self.rich(width), *map(plain, self.notes)):
            if part:
                screen.print(part)
        return "\n".join(line.rstrip() for line in file.getvalue().splitlines())

    def _without_intervals(self, name: str) -> Table:
        """The table with the values of one column alone."""
        if name not in self.columns:
            return self
        i = list(self.columns).index(name)
        cells = [cell.text if isinstance(cell, Number) else cell for cell in (row[i] for row in self.rows)]
        return replace(self, rows=[[*row[:i], cell, *row[i + 1 :]] for row, cell in zip(self.rows, cells, strict=True)])

    def without(self, name: str) -> Table:
        """The table without one column, whose name it is."""
        if name not in self.columns:
            return self
        i = list(self.columns).index(name)
        rows = [[*row[:i], *row[i + 1 :]] for row in self.rows]
        return replace(self, columns=[*self.columns[:i], *self.columns[i + 1 :]], rows=rows, left=self.left - (i < self.left))

    def _least_width(self) -> int:
        """Characters that the table takes at least: columns of words folded, but for the name, headings in several lines."""
        return sum(self._column_width(i) for i in range(len(self.columns))) + GAP * (len(self.columns) - 1)

    def _folds(self, column: int) -> bool:
        """Whether the cells of a column may take several lines: sentences, and names that are as long as tc's words."""
        return self.columns[column] in self.words or (column < self.left and any(len(str(row[column])) > LONGEST_NAME for row in self.rows))

    def _full_width(self) -> int:
        """Characters that the table takes where nothing is folded."""
        from rich.cells import cell_len

        columns = zip(self.columns, *self.rows, strict=True)
        return sum(max(cell_len(str(text)) for text in column) for column in columns) + GAP * (len(self.columns) - 1)

    def _column_width(self, column: int) -> int:
        """Characters that a column takes at least."""
        from rich.cells import cell_len

        longest = max((cell_len(str(row[column])) for row in self.rows), default=0)
        if self._folds(column):
            word = max((cell_len(word) for row in self.rows for word in str(row[column]).split()), default=0)
            longest = max(min(longest, FOLDED), min(word, LONGEST_WORD))
        lines = self._heading_lines(column, longest)
        return max([longest, *(cell_len(line) for line in lines)])

    def heading(self, column: int) -> str:
        """The heading of a column in as many lines as the width of its cells asks for, at most :data:`HEADING_LINES`."""
        return "\n".join(self._heading_lines(column, self._column_width(column)))

    def _heading_lines(self, column: int, width: int) -> list[str]:
        """The heading in lines of `width` characters, or of as many more as it takes for a word, or for no more lines than there may be."""
        from rich.cells import cell_len

        name = self.columns[column].replace(" %]", "\u00a0%]")
        width = max([1, width, *(cell_len(word) for word in name.split(" "))])
        while len(lines := textwrap.wrap(name, width, break_long_words=False) or [""]) > HEADING_LINES:
            width += 1
        return [line.replace("\u00a0", " ") for line in lines]

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

    def _cell(self, tag: str, column: int, content: str | Number) -> str:
        return f'<{tag} style="text-align:{"left" if column < self.left else "right"}">{html.escape(str(content))}</{tag}>'


@functools.singledispatch
def table_of(answer: object, *parts: object, **how: object) -> Table:
    """The table of an answer: the modules of :mod:`tcpscape.words` register a function for each type, which may take more than the answer."""
    raise NotImplementedError(type(answer).__name__)


class ShownAsTable:
    """A result that an interpreter and a notebook show as its :meth:`table`."""

    __slots__ = ()

    def table(self) -> Table:
        """What is shown of it."""
        return table_of(self)

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def plain(content: object, *, lines: bool = False, style: str = "", no_wrap: bool | None = None) -> Text:
    """A text for a terminal, in which nothing is markup and what cannot be printed is visible; `lines`: its line breaks are meant."""
    from rich.text import Text

    shown = "\n".join(map(printable, str(content).split("\n"))) if lines else printable(str(content))
    return Text(shown, style=style, no_wrap=no_wrap)


def markdown_text(content: object) -> str:
    """A text in Markdown, in which nothing is HTML or a link."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", printable(str(content))).replace("](", "]\\(")


def markdown(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table as Markdown; a vertical bar in a cell is escaped."""
    lines = ["| " + " | ".join(_escaped(name) for name in columns) + " |", "|" + "|".join("---" for _ in columns) + "|"]
    return "\n".join(lines + ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows])


def _escaped(cell: object) -> str:
    return markdown_text(cell).replace("|", "\\|").replace("\\\\|", "\\|")
