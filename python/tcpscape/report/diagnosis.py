"""The page of a diagnosis: one HTML file with the answer, the fitted path, what held each flow over time, and the replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from tcpscape import writing
from tcpscape.controls import palette
from tcpscape.findings.diagnosis.diagnosis import Diagnosis, FlowDiagnosis
from tcpscape.interchange import observing
from tcpscape.plots import Context, diagnosis, style
from tcpscape.report import tables
from tcpscape.report.diagram import PathView
from tcpscape.report.figures import EmbeddedFigure
from tcpscape.report.page import Answer, FigureGroup, Heading, Page, Provenance, render
from tcpscape.report.tables import PageTable
from tcpscape.text.table import Table
from tcpscape.words import diagnosis as answer
from tcpscape.words import flow as words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ADDRESSES = 12
"""Most addresses that the page lists."""
FIGURES: Sequence[tuple[str, str, Callable[[FlowDiagnosis, Context], Figure | None]]] = (
    ("timeline", "what held the flow, its rate, RTT and bytes in flight over time; dashed: what was fitted, changes of the path", diagnosis.timeline),
    ("replay", "goodput of the replay on the model beside the observed one, and what else would carry, with 95 % intervals", diagnosis.replayed),
)
"""Name, caption and function of each figure of a flow."""


def build(result: Diagnosis, file: Path, command: str, version: str) -> Path:
    """Writes the page of a diagnosis, which opens offline and loads nothing; returns the file. :raises StoreError: where it cannot be written."""
    several = len(result.flows) > 1
    screen = answer.screen(result)
    page = Page(
        Heading("diagnose", _title(result), about=(f"{screen.path}.",)),
        [Answer(words.answer(one), part=one.flow.name if several else "") for one in result.flows] or [Answer(screen.answer)],
        screen.caveats,
        [view for i, one in enumerate(result.flows, 1) for view in _paths(one, one.flow.name if several else "", f"path-{i}")],
        figures=[FigureGroup(one.flow.name if several else "", list(_drawn(one, f"flow-{i}"))) for i, one in enumerate(result.flows, 1)],
        tables=list(_tables(result)),
        provenance=Provenance(command, _facts(result, version)),
    )
    return writing.named(file, render(page))


def _paths(one: FlowDiagnosis, part: str, name: str) -> Iterator[PathView]:
    """The fitted path as a diagram, where there is one."""
    if made := one.fitted():
        cca = one.control.likely
        yield PathView.of(part, [made.scenario(cca)], words.path_sentence(one), looks=palette.looks([cca]), name=name)


def _title(result: Diagnosis) -> str:
    return f"What limits {result.flows[0].flow.name}?" if result.flows else f"No flow in {result.observation.name}"


def _drawn(one: FlowDiagnosis, name: str) -> Iterator[EmbeddedFigure]:
    """The figures of a flow for which the source has something."""
    for kind, about, draw in FIGURES:
        wide, narrow = draw(one, Context(width=style.PAGE)), draw(one, Context(width=style.NARROW))
        if wide is not None and narrow is not None:
            both = [style.inline(style.svg(figure), f"{name}-{kind}{end}", about) for figure, end in ((wide, ""), (narrow, "-narrow"))]
            yield EmbeddedFigure(f"{name}-{kind}", about, Markup(both[0]), Markup(both[1]), ())


def _tables(result: Diagnosis) -> Iterator[PageTable]:
    """The tables of the screen, the first flow's first, and its details."""
    screen = answer.screen(result)
    looks = palette.looks(one.control.name for one in result.flows)
    for table in (*screen.tables, *screen.details):
        if isinstance(table, Table):
            yield replace(tables.of_screen(table, looks), stacked="remark" in table.columns or "why" in table.columns)


def _facts(result: Diagnosis, version: str) -> list[tuple[str, str]]:
    """What was read, and which addresses the page shows."""
    observation = result.observation
    shown = dict.fromkeys(end.address for one in result.flows for end in (one.flow.source, one.flow.destination) if end.address)
    addresses = ", ".join(list(shown)[:MOST_ADDRESSES]) + (f" and {len(shown) - MOST_ADDRESSES} more" if len(shown) > MOST_ADDRESSES else "")
    kind = observing.TITLES.get(observation.kind, observation.kind)
    facts = {
        "source": f"{observation.name}, {kind}",
        "flows": f"{len(result.flows)} of {len(observation.flows)}",
        "addresses on this page": addresses,
        "payload on this page": "none",
        "tcpscape": version,
    }
    return [(name, text) for name, text in facts.items() if text]
