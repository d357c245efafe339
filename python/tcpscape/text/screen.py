"""The answer to a command as people read it: the path, the answer, one table that fits, what weakens it, and what to do next.

Every command that measures something makes a :class:`Screen` of its result; the terminal, a notebook and the tests show the same one. From top to
bottom:

    RTT 50ms, jitter 8ms of the data, loss 0.1% of the data, 1 flow, kernel 6.1, 10s
    → bbr carries 6.4 × cubic [6.0, 6.9] and adds 17 ms to the RTT.

    cca    goodput Mbit/s
              mean [95 %]  …

    caveat: …
    Next: tcpscape …

`verbose` shows the details too, `quiet` the answer alone.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, overload

from tcpscape.errors import printable
from tcpscape.names import wrapped
from tcpscape.text.table import PLAIN_WIDTH, Table, markdown_text, plain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

ARROW = "→ "
"""Stands before the answer."""
INDENT = "  "
"""Begins the further lines of a sentence among several."""
MOST_ROWS = 40
"""Most rows of a table without `verbose`; how many more there are is said."""
MOST_CAVEATS = 3
"""Most caveats without `verbose`; how many more there are is said."""


@dataclass(frozen=True)
class Lines:
    """Sentences under a title, each cut to few lines where not everything is asked for."""

    title: str
    texts: Sequence[str] = ()
    notes: Sequence[str] = ()
    most: int = 3
    """Most lines of a sentence."""

    def cut(self, width: int) -> Iterator[str]:
        """The sentences in lines of at most `width` characters, the further lines indented."""
        for text in self.texts:
            yield from textwrap.wrap(
                text, width, subsequent_indent=INDENT, max_lines=self.most, placeholder=" …", break_long_words=False, break_on_hyphens=False
            )

    def markdown(self) -> str:
        """The whole sentences as a Markdown list."""
        return "\n".join(f"- {markdown_text(text)}" for text in self.texts)


@dataclass(frozen=True)
class Code:
    """Lines to copy, under a title; one that is longer than the screen is wide goes on after a backslash, so that its copy is the same command."""

    lines: Sequence[str]
    title: str = ""
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        """The lines as a block of shell."""
        return "\n".join(("```sh", *map(printable, self.lines), "```"))


class Deferred(Sequence["Table | Code | str"]):
    """What `verbose` shows, made when it is first asked for."""

    def __init__(self, make: Callable[[], Iterable[Table | Code | str]]) -> None:
        self._make = make

    @cached_property
    def _parts(self) -> Sequence[Table | Code | str]:
        return tuple(self._make())

    @overload
    def __getitem__(self, place: int) -> Table | Code | str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Table | Code | str]: ...
    def __getitem__(self, place: int | slice) -> Table | Code | str | Sequence[Table | Code | str]:
        return self._parts[place]

    def __len__(self) -> int:
        return len(self._parts)


@dataclass(frozen=True)
class Screen:
    """What a command answers. Every text is one or more whole sentences without line breaks."""

    path: str
    """The path in words, or what the command looked at."""
    answer: str
    """The answer with its interval, as a sentence."""
    remarks: Sequence[str] = ()
    """Sentences that belong to the answer: an assumption and what depends on it."""
    tables: Sequence[Table | Lines | Code] = ()
    """What is always shown; one table where possible."""
    details: Sequence[Table | Code | str] = ()
    """What `verbose` shows besides."""
    caveats: Sequence[str] = ()
    """What weakens the answer."""
    kept: str = ""
    """Where the results are, where they are kept."""
    next: Sequence[str] = ()
    """The command that is worth typing next, with what it is for; a second one only for another question, or another file."""

    def text(self, width: int = PLAIN_WIDTH, *, verbose: bool = False, quiet: bool = False) -> str:
        """The screen as plain text of at most `width` characters a line."""
        from rich.console import Console

        file = io.StringIO()
        self.print(Console(file=file, width=width, highlight=False, no_color=True), verbose=verbose, quiet=quiet)
        return "\n".join(line.rstrip() for line in file.getvalue().splitlines())

    def markdown(self) -> str:
        """The path, the answer, the tables and the caveats as Markdown."""
        path, answer, *remarks = map(markdown_text, (self.path, self.answer, *self.remarks))
        tables = [text for table in self.tables for text in _markdown(table)]
        caveats = "\n".join(f"- caveat: {markdown_text(caveat)}" for caveat in self.caveats)
        return "\n\n".join([path, f"**{answer}**", *remarks, *tables, *([caveats] if caveats else [])]) + "\n"

    def print(self, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
        """Writes the screen to a console of the library rich, as wide as that is; the next command and a quiet answer are one line each."""
        from rich.text import Text

        for part in self._parts(console.width, verbose=verbose, quiet=quiet):
            console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))

    def _parts(self, width: int, *, verbose: bool, quiet: bool) -> Iterator[RenderableType]:
        answer = plain(ARROW + self.answer, style="bold", no_wrap=quiet)
        if quiet:
            yield answer
            return
        yield plain(self.path)
        yield answer
        yield from (plain(sentence) for sentence in self.remarks)
        for table in self.tables:
            yield from ("", *_part(table, width, whole=verbose))
        for detail in self.details if verbose else ():
            yield from ("", *_part(detail, width, whole=True))
        yield from self._foot(verbose)

    def _foot(self, verbose: bool) -> Iterator[RenderableType]:
        """Caveats and what to do next."""
        most = len(self.caveats) if verbose or len(self.caveats) <= MOST_CAVEATS + 1 else MOST_CAVEATS
        if self.caveats or self.kept or self.next:
            yield ""
        yield from (plain(f"caveat: {caveat}") for caveat in self.caveats[:most])
        if most < len(self.caveats):
            yield plain(f"{len(self.caveats) - most} more caveats: --verbose")
        if self.kept:
            yield plain(self.kept)
        yield from (plain(f"Next: {command}", no_wrap=True) for command in self.next)


def _markdown(part: Table | Lines | Code) -> Iterator[str]:
    """One part of a screen in Markdown."""
    yield from (f"**{markdown_text(title)}**" for title in (part.title,) if title)
    yield part.markdown()
    yield from map(markdown_text, part.notes)


def _part(part: Table | Lines | Code | str, width: int, *, whole: bool) -> Iterator[RenderableType]:
    """One part of a screen; `whole`: a table with all its rows and columns."""
    if isinstance(part, Table):
        yield from shown(part, width, whole=True) if whole else shown(brief(part), width)
    elif isinstance(part, Lines):
        yield from _sentences(part, width)
    else:
        yield from _code(part, width) if isinstance(part, Code) else [plain(part, lines=True)]


def _code(code: Code, width: int) -> Iterator[RenderableType]:
    """The title, the lines to copy, and the notes."""
    yield from (plain(text) for text in (code.title,) if text)
    yield from (plain(part, no_wrap=True) for line in code.lines for part in wrapped(printable(line), width))
    yield from (plain(note) for note in code.notes)


def _sentences(lines: Lines, width: int) -> Iterator[RenderableType]:
    """The title, the sentences and the notes."""
    yield plain(lines.title, style="bold")
    yield from (plain(line) for line in lines.cut(width))
    yield from (plain(note) for note in lines.notes)


def shown(table: Table, width: int, *, whole: bool = False) -> Iterator[RenderableType]:
    """A table with its title and notes, and the names of the columns that this width leaves out; `whole`: these columns in a table below it."""
    if table.title:
        yield plain(table.title, style="bold")
    yield table.rich(width)
    if whole and (rest := table.rest(width)):
        yield from ("", *shown(rest, width, whole=True))
    elif names := table.left_out(width):
        yield plain(f"(left out at {width} characters: {', '.join(names)})", style="dim")
    yield from (plain(note) for note in table.notes)


def brief(table: Table) -> Table:
    """The first rows of a long table, with how many more there are."""
    more = len(table.rows) - MOST_ROWS
    if more <= 0:
        return table
    return replace(table, rows=table.rows[:MOST_ROWS], notes=[f"… {more} more rows: --verbose", *table.notes])
