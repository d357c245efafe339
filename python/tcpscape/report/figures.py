"""The figures of a report: which ones, their SVG for the page, and their files in `figures/`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from tcpscape import plots, writing
from tcpscape.campaign.outcome import Outcome
from tcpscape.campaign.record import file_name
from tcpscape.errors import StoreError
from tcpscape.plots import Context, FigureKind, style
from tcpscape.reading import files as reading
from tcpscape.reading.files import Kind
from tcpscape.words import sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = "figures"
LIST = ".written"
"""File in the folder with the names of the files that the last report wrote."""
MOST_PAGES, PAGES = 3, 6
"""Most figures of one kind in a part, and in all parts together; where there would be more, these are spread evenly over the cells."""
LISTED = Kind("a list of figures", "delete it", error=StoreError)
OF_SEVERAL = ("bars", "cdf")
"""Figures that compare cells: of a single one, others show more and come first."""
MOST_EXAMPLES = 2
"""Most figures of single trials in a record of several parts."""


@dataclass(frozen=True)
class EmbeddedFigure:
    """A figure of the page."""

    name: str
    about: str
    svg: Markup
    """For a wide page."""
    narrow: Markup
    """For a narrow one."""
    files: tuple[str, ...]
    """Paths from the result directory."""


@dataclass(frozen=True)
class FigureRequest:
    """Which figures a report draws of a part, and in which formats."""

    names: Sequence[str] = ()
    """Figures by name. Without any: all that fit a single outcome; of each of several parts, the first one that fits."""
    formats: Sequence[str] = ("svg", "png")
    """Formats of the files of each figure."""
    parts: int = 1
    """Number of parts of the record, which share the page."""
    shown: frozenset[str] = frozenset()
    """Figures of single trials that an earlier part has."""

    def most_pages(self, kind: FigureKind) -> int:
        """Most figures of one kind in a part."""
        if kind.example and self.parts > 1:
            return MOST_EXAMPLES
        return max(1, min(MOST_PAGES, PAGES // self.parts))

    def after(self, outcome: Outcome) -> FigureRequest:
        """The request for the parts after this outcome: without the figures of single trials that this one shows."""
        return replace(self, shown=self.shown | {kind.name for kind in chosen(outcome, self) if kind.example})


def draw(part: str, outcome: Outcome, context: Context, request: FigureRequest, root: Path) -> Iterator[tuple[EmbeddedFigure, list[Path]]]:
    """Draws the figures of a part and writes their files into `root`; yields each figure with its files."""
    for kind, drawn in with_subject(outcome, chosen(outcome, request)):
        pages = kind.pages(drawn)
        shown = spread(len(pages), request.most_pages(kind))
        about = kind.about if len(shown) == len(pages) else f"{kind.about} ({len(shown)} of {len(pages)} places)"
        for i in shown:
            other = [drawn.campaign.metric] if drawn is not outcome else []
            name = "-".join([*([file_name(part).replace("%", "pct")] if part else []), kind.name, *other, *([str(i + 1)] if len(pages) > 1 else [])])
            figure = kind.draw(pages[i], replace(context, width=style.PAGE))
            svg_text = style.svg(figure)
            written = style.save(figure, root / FOLDER / name, request.formats, svg_text)
            yield embedded(name, about, svg_text, kind.draw(pages[i], replace(context, width=style.NARROW)), written), written


def with_subject(outcome: Outcome, kinds: Sequence[FigureKind]) -> list[tuple[FigureKind, Outcome]]:
    """Each figure with the outcome that it shows: the first one what the answer is about, which is the delay where all carry the same."""
    subject = sentences.subject(outcome)
    figures = [(kind, outcome) for kind in kinds]
    if subject == outcome.campaign.metric:
        return figures
    first = next((kind for kind in plots.fitting(outcome) if kind.of_metric and not kind.example), None)
    if first is None:
        return figures
    return [(first, replace(outcome, campaign=outcome.campaign.model_copy(update={"metric": subject}))), *figures]


def embedded(name: str, about: str, wide: str, narrow: Figure, written: Sequence[Path]) -> EmbeddedFigure:
    """A figure of the page. `wide`: the SVG document for a wide page; `narrow`: the figure for a narrow one; `written`: its files in `figures/`."""
    paths = tuple(f"{FOLDER}/{f.name}" for f in written)
    on_wide, on_narrow = style.inline(wide, name, about), style.inline(style.svg(narrow), f"{name}-narrow", about)
    return EmbeddedFigure(name, about, Markup(on_wide), Markup(on_narrow), paths)


def tidy(written: Sequence[Path], root: Path) -> None:
    """Deletes the files of an earlier report that are not among those `written` now, and keeps the list of these for the next report."""
    folder, names = root / FOLDER, [f.name for f in written]
    listed = folder / LIST
    for name in _earlier(listed):
        if name not in names and Path(name).name == name and os.path.isfile(folder / name):
            (folder / name).unlink(missing_ok=True)
    writing.whole(listed, "".join(f"{name}\n" for name in names))


def _earlier(listed: Path) -> list[str]:
    """The files of the report before this one; none where its list cannot be read: nothing is deleted then."""
    try:
        return reading.text(listed, LISTED).splitlines()
    except StoreError:
        return []


def spread(count: int, most: int) -> list[int]:
    """At most `most` of the numbers below `count`, evenly spaced: the first and the last among them, or the middle one alone."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count // 2]
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def chosen(outcome: Outcome, request: FigureRequest) -> list[FigureKind]:
    """The requested figures that the outcome has the data for, else the first one that fits; see :attr:`FigureRequest.names` for an empty request."""
    fitting = plots.fitting(outcome)
    if len(outcome.cells) == 1:
        fitting.sort(key=lambda kind: kind.name in OF_SEVERAL)
    if not request.names:
        return fitting[: 1 if request.parts > 1 else None]
    requested = [kind for kind in map(plots.find, request.names) if kind in fitting and kind.name not in request.shown]
    return requested or [kind for kind in fitting if kind.name not in request.shown][:1]
