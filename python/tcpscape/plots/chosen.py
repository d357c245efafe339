"""The figures of a result by name, each with a name for its file: what `tcpscape plot` draws.

A name is that of a figure (`bars`, `curve`, …; `plots.FIGURES`) or that of a quantity over time (`cwnd`, `rtt`, `queue`, …; `traces.PANELS`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape import metrics, plots
from tcpscape.campaign import axes
from tcpscape.campaign.outcome import Outcome
from tcpscape.errors import refuse, shown
from tcpscape.names import component
from tcpscape.plots import style, traces
from tcpscape.plots.base import Context, FigureKind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = "plots"
"""Directory of the files in a result directory."""
SERIES = "series"
"""The figure that has a panel for each quantity."""
MOST_FIGURES = 40
"""Most figures of one request."""


@dataclass(frozen=True)
class PlotRequest:
    """What is drawn of a result: which figures, and of which cells."""

    what: tuple[str, ...] = ()
    """Names of figures and of quantities over time; the quantities share one figure. Empty for the first figure that fits."""
    cca: tuple[str, ...] = ()
    """Congestion controls; empty for all."""
    metric: str = ""
    """The metric of figures that show one; empty for the campaign's."""
    title: str = ""
    """Title of every figure; empty for its own."""
    at: Mapping[str, str] = field(default_factory=dict)
    """Axis → value; cells without the axis stay, but some part must have it."""

    width: float | None = None
    """Width of every figure, inches; None for as wide as its panels make it."""

    def kinds(self) -> list[tuple[str, FigureKind, Context]]:
        """Name of the file, kind and context of each figure. :raises TcpscapeError: where a name is neither a figure nor a quantity."""
        names = dict.fromkeys(self.what)
        quantities = tuple(name for name in names if name not in plots.FIGURES)
        if unknown := [name for name in quantities if name not in traces.PANELS and name not in traces.ALIASES]:
            choice = f"choose figures ({', '.join(plots.FIGURES)}) or quantities ({', '.join(traces.PANELS)})"
            refuse("what", f"{shown(unknown[0])} is unknown", choice)
        kinds = [(name, plots.find(name), Context(self.title, width=self.width)) for name in names if name in plots.FIGURES]
        if not quantities:
            return kinds
        return [*kinds, ("-".join(quantities), plots.find(SERIES), Context(self.title or _title(quantities), what=quantities, width=self.width))]

    def of(self, outcome: Outcome) -> Outcome:
        """The outcome with the chosen cells alone."""
        cells = [c for c in outcome.cells if c.cca in (self.cca or (c.cca,))]
        cells = [c for c in cells if all(axis not in c.at or axes.same(c.at[axis], value) for axis, value in self.at.items())]
        campaign = outcome.campaign.model_copy(update={"metric": metrics.find(self.metric).name}) if self.metric else outcome.campaign
        return Outcome(campaign, tuple(cells), outcome.versions)


def draw(parts: Mapping[str, Outcome], request: PlotRequest) -> Iterator[tuple[str, Figure]]:
    """Draws the figures of each part of a result, each with a name for its file.

    :raises TcpscapeError: where a name is unknown, nothing is chosen, no part has the data for a figure, or there are more than 40.
    """
    axis_names = sorted({axis for outcome in parts.values() for cell in outcome.cells for axis in cell.at})
    if strange := [axis for axis in request.at if axis not in axis_names]:
        fix = f"choose {', '.join(axis_names)}" if axis_names else "leave it out: nothing was varied"
        refuse("at", f"the result has no axis {shown(strange[0])}", fix)
    outcomes = {name: chosen for name, outcome in parts.items() if (chosen := request.of(outcome)).cells}
    if not outcomes:
        names = sorted({c.cca for outcome in parts.values() for c in outcome.cells})
        field, fix = ("at", "write its values as they were run") if request.at else ("cca", f"choose {', '.join(names)}")
        refuse(field, "no condition of the result is chosen", fix)
    metric = request.metric
    if metric and not any(cell.knows(metric) for outcome in outcomes.values() for cell in outcome.cells):
        refuse("metric", f"no trial of the result has a {metric}", "choose another one, or run again with what it needs (`tcpscape metric show`)")
    pages = list(_pages(outcomes, request))
    if len(pages) > MOST_FIGURES:
        refuse("what", f"these are {len(pages)} figures", "choose fewer conditions with --cca and --at")
    for name, kind, page, context in pages:
        yield name, kind.draw(page, context)


def _title(quantities: Sequence[str]) -> str:
    """`cwnd, rtt and queue over time`."""
    *others, last = (name.replace("_", " ") for name in quantities)
    return f"{', '.join(others)}{' and ' if others else ''}{last} over time"


def _pages(outcomes: Mapping[str, Outcome], request: PlotRequest) -> Iterator[tuple[str, FigureKind, Outcome, Context]]:
    """Name of the file, kind, cells and context of each figure."""
    fitting_kinds = (kind for outcome in outcomes.values() for kind in plots.fitting(outcome))
    first = next((kind for kind in fitting_kinds if (kind.of_metric and not kind.example) or not request.metric), None)
    kinds = request.kinds() or ([(first.name, first, Context(request.title, width=request.width))] if first else [])
    if not kinds:
        refuse("what", "the result has no data for any figure", "run more cells or trials, or keep samples: --samples 100ms")
    for name, kind, context in kinds:
        fitting = {part: outcome for part, outcome in outcomes.items() if kind.applies(outcome)}
        if not fitting:
            fix = "run it with --samples 100ms --out DIR" if kind.name == SERIES else f"choose {_choices(outcomes)}"
            refuse("what", f"the result lacks the data for {shown(name)}", fix)
        for part, outcome in fitting.items():
            parts = kind.pages(outcome)
            for i, page in enumerate(parts):
                words = [*([part] if len(outcomes) > 1 else []), name, *([str(i + 1)] if len(parts) > 1 else [])]
                yield component("-".join(words)), kind, page, context


def _choices(outcomes: Mapping[str, Outcome]) -> str:
    """The figures that some part has the data for."""
    return ", ".join(dict.fromkeys(kind.name for outcome in outcomes.values() for kind in plots.fitting(outcome))) or "another result"


def save(parts: Mapping[str, Outcome], request: PlotRequest, out: Path, formats: Sequence[str]) -> list[Path]:
    """Draws and writes the figures: into the directory `out`, or into the file `out` where its name ends with a format and there is one figure.

    :return: the files.
    :raises TcpscapeError: as :func:`draw`; where several figures are to be one file, and where a file cannot be written.
    """
    if out.suffix[1:] not in style.FORMATS:
        return [file for name, figure in draw(parts, request) for file in style.save(figure, out / name, formats)]
    if not os.path.isdir(out.parent):
        refuse("out", f"there is no directory {out.parent}", "make it, or name another file")
    drawn = list(draw(parts, request))
    if len(drawn) > 1:
        refuse("out", f"{out.name} is one file, and there are {len(drawn)} figures", "name a directory, or choose with --cca and --at")
    return style.save(drawn[0][1], out, (out.suffix[1:],), named=True)
