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
MOST_PAGES, PAGES = 3, 6
"""Figures of one kind in a part, and in all parts together: where there would be more, these are spread evenly over the cells."""


@dataclass(frozen=True)
class Drawn:
    """A figure of the page."""

    name: str
    about: str
    svg: Markup
    files: tuple[str, ...]
    """Paths from the result directory."""


@dataclass(frozen=True)
class Wanted:
    """What is to be drawn."""

    names: Sequence[str] = ()
    """Figures by name; none is every one that fits."""
    formats: Sequence[str] = ("svg", "png")
    """Files of each."""
    parts: int = 1
    """Parts of the record, which share the page."""

    @property
    def pages(self) -> int:
        """Most figures of one kind in a part."""
        return max(1, min(MOST_PAGES, PAGES // self.parts))


def draw(part: str, outcome: Outcome, beside: Beside, wanted: Wanted, root: Path) -> Iterator[tuple[Drawn, list[Path]]]:
    """The outcome's figures, and the files written."""
    for figure in chosen(outcome, wanted.names):
        pages = figure.pages(outcome)
        some = spread(len(pages), wanted.pages)
        about = figure.about if len(some) == len(pages) else f"{figure.about} ({len(some)} of {len(pages)} places)"
        for place in some:
            name = "-".join([*([part] if part else []), figure.name, *([str(place + 1)] if len(pages) > 1 else [])])
            sheet = figure.draw(pages[place], beside)
            drawn = style.svg(sheet)
            files = style.save(sheet, root / FOLDER / name, wanted.formats, drawn)
            yield Drawn(name, about, Markup(style.inline(drawn, name)), tuple(f"{FOLDER}/{f.name}" for f in files)), files


def spread(count: int, most: int) -> list[int]:
    """At most so many of `count` places, evenly apart: the first and the last among them, or the middle one alone."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count // 2]
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def chosen(outcome: Outcome, names: Sequence[str]) -> list[Figure]:
    """The figures asked for that the outcome has enough for, or the first one that fits; every one that fits where none is asked for."""
    fitting = plots.fitting(outcome)
    if not names:
        return fitting
    asked = [plots.find(name) for name in names]
    return [f for f in asked if f in fitting] or fitting[:1]
