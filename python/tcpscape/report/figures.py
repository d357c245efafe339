"""The figures of a record: which fit, drawn into the page and written as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from tcpscape import plots
from tcpscape.campaign.outcome import Outcome
from tcpscape.plots import Beside, Figure, style

FOLDER = "figures"
LIST = ".written"
"""File in the folder with the names of those that the report wrote."""
MOST_PAGES, PAGES = 3, 6
"""Figures of one kind in a part, and in all parts together: where there would be more, these are spread evenly over the cells."""
MOST_EXAMPLES = 2
"""Figures of single trials in a record of several parts."""


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
    """Figures by name. None is every one that fits a single outcome; of each of several parts, the first one that fits."""
    formats: Sequence[str] = ("svg", "png")
    """Files of each."""
    parts: int = 1
    """Parts of the record, which share the page."""
    shown: frozenset[str] = frozenset()
    """Figures of single trials that an earlier part has."""

    def pages(self, figure: Figure) -> int:
        """Most figures of one kind in a part."""
        if figure.example and self.parts > 1:
            return MOST_EXAMPLES
        return max(1, min(MOST_PAGES, PAGES // self.parts))

    def after(self, outcome: Outcome) -> Wanted:
        """What is wanted of the parts after this outcome: no more single trials, once it showed them."""
        return replace(self, shown=self.shown | {f.name for f in chosen(outcome, self) if f.example})


def draw(part: str, outcome: Outcome, beside: Beside, wanted: Wanted, root: Path) -> Iterator[tuple[Drawn, list[Path]]]:
    """The outcome's figures, and the files written."""
    for figure in chosen(outcome, wanted):
        pages = figure.pages(outcome)
        some = spread(len(pages), wanted.pages(figure))
        about = figure.about if len(some) == len(pages) else f"{figure.about} ({len(some)} of {len(pages)} places)"
        for place in some:
            name = "-".join([*([part] if part else []), figure.name, *([str(place + 1)] if len(pages) > 1 else [])])
            sheet = figure.draw(pages[place], beside)
            drawn = style.svg(sheet)
            files = style.save(sheet, root / FOLDER / name, wanted.formats, drawn)
            yield Drawn(name, about, Markup(style.inline(drawn, name)), tuple(f"{FOLDER}/{f.name}" for f in files)), files


def tidy(files: Sequence[Path], root: Path) -> None:
    """Deletes what an earlier report wrote into the folder and this one, which wrote `files`, did not; keeps the list for the next one."""
    folder, names = root / FOLDER, [f.name for f in files]
    kept = folder / LIST
    for name in kept.read_text("utf-8").splitlines() if kept.is_file() else ():
        if name not in names and Path(name).name == name:
            (folder / name).unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text("".join(f"{name}\n" for name in names), "utf-8")


def spread(count: int, most: int) -> list[int]:
    """At most so many of `count` places, evenly apart: the first and the last among them, or the middle one alone."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count // 2]
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def chosen(outcome: Outcome, wanted: Wanted) -> list[Figure]:
    """The figures asked for that the outcome has enough for, or the first one that fits; see :attr:`Wanted.names` where none is asked for."""
    fitting = plots.fitting(outcome)
    if not wanted.names:
        return fitting[: 1 if wanted.parts > 1 else None]
    asked = [plots.find(name) for name in wanted.names]
    fresh = [f for f in asked if f in fitting and f.name not in wanted.shown]
    return fresh or [f for f in fitting if f.name not in wanted.shown][:1]
