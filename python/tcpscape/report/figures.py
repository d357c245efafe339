"""The figures of a record: which fit, drawn into the page and written as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from tcpscape import plots
from tcpscape.campaign.outcome import Outcome
from tcpscape.plots import Beside, Figure, style

FOLDER = "figures"
MOST_PAGES = 6
"""Figures of one kind on the page; all of them are in the folder."""


@dataclass(frozen=True)
class Drawn:
    """A figure of the page."""

    name: str
    about: str
    svg: Markup | None
    """None where it is only in the folder."""
    files: tuple[str, ...]
    """Paths from the result directory."""


@dataclass(frozen=True)
class Wanted:
    """What is to be drawn."""

    names: Sequence[str] = ()
    """Figures by name; none is every one that fits."""
    formats: Sequence[str] = ("svg", "png")
    """Files of each."""


def draw(part: str, outcome: Outcome, beside: Beside, wanted: Wanted, root: Path) -> Iterator[tuple[Drawn, list[Path]]]:
    """The outcome's figures, and the files written."""
    for figure in chosen(outcome, wanted.names):
        for i, page in enumerate(figure.pages(outcome)):
            name = "-".join([*([part] if part else []), figure.name, *([str(i + 1)] if i else [])])
            sheet = figure.draw(page, beside)
            files = style.save(sheet, root / FOLDER / name, wanted.formats)
            svg = Markup(style.inline(sheet, name)) if i < MOST_PAGES else None
            yield Drawn(name, figure.about, svg, tuple(f"{FOLDER}/{f.name}" for f in files)), files


def chosen(outcome: Outcome, names: Sequence[str]) -> list[Figure]:
    """The figures asked for that the outcome has enough for; every one that fits where none is asked for."""
    return [f for f in (map(plots.find, names) if names else plots.FIGURES.values()) if f.applies(outcome)]
