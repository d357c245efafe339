"""The page of a search for cliffs: the answer, the paths, what is left of the goodput at every level with the edges, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tcpscape import writing
from tcpscape.controls import palette
from tcpscape.plots import Context, curves, style
from tcpscape.report import figures, tables
from tcpscape.report.diagram import PathView
from tcpscape.report.page import Answer, FigureGroup, Heading, Page, Provenance, render
from tcpscape.text.table import Table
from tcpscape.words import cliff as words
from tcpscape.words.cliff import CliffSearch

PAGE, FIGURE = "report.html", "cliff"
"""Names of the page, and of the figure's files in its folder."""
ABOUT = "share of the unimpaired goodput that is left at each level, 95 % intervals; line and band: the edge with its interval; hatched: chaos zone"


def build(searches: Sequence[CliffSearch], engine: Mapping[str, str], root: Path, command: str, files: Sequence[Path]) -> list[Path]:
    """Writes `report.html` and its figure into `root`; returns the files, the page first.

    :param searches: with the same threshold along the same impairment.
    :param engine: its name and version.
    :param files: the tables that are there already.
    :raises StoreError: where a file cannot be written.
    """
    writing.folder(root, figures.FOLDER)
    screen = words.cliff_screen(searches, engine["name"])
    wide = curves.cliffs(searches, Context(width=style.PAGE))
    drawn = style.svg(wide)
    written = style.save(wide, root / figures.FOLDER / FIGURE, ("svg", "png"), drawn)
    figure = figures.embedded(FIGURE, ABOUT, drawn, curves.cliffs(searches, Context(width=style.NARROW)), written)
    looks = palette.looks(dict.fromkeys(search.cca for search in searches))
    shown = [table for table in (*screen.tables, *screen.details) if isinstance(table, Table)]
    page = Page(
        Heading("cliff", f"At which {searches[0].along} does this path fall off its cliff?"),
        [Answer(screen.answer)],
        list(screen.caveats),
        list(_paths(searches)),
        figures=[FigureGroup("", [figure])],
        tables=[tables.of_screen(table, looks) for table in shown],
        provenance=Provenance(command, _facts(searches, engine), files=[file.name for file in files]),
    )
    return [writing.whole(root / PAGE, render(page)), *written]


def _paths(searches: Sequence[CliffSearch]) -> Iterator[PathView]:
    """Each path once, as a diagram."""
    ccas = list(dict.fromkeys(search.cca for search in searches))
    for i, rtt in enumerate(dict.fromkeys(search.rtt for search in searches)):
        of_path = [search for search in searches if search.rtt == rtt]
        part = f"RTT {rtt}" if len(of_path) < len(searches) else ""
        path = words.cliff_screen(of_path, "model").path.split("; ")[0]
        yield PathView.of(part, [search.scenario for search in of_path], path, looks=palette.looks(ccas), name=f"path-{i}")


def _facts(searches: Sequence[CliffSearch], engine: Mapping[str, str]) -> list[tuple[str, str]]:
    """How many runs there were, of which engine."""
    return [
        ("runs", str(sum(search.result.runs for search in searches))),
        ("engine", f"{engine['name']} {engine['version']}"),
        ("first seeds", "in levels.csv"),
    ]
