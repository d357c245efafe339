"""The page of a dossier: the verdicts on the first screen, a figure for each clause, the worst cells and what repeats them, what was not shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tcpscape import writing
from tcpscape.clauses.dossier import FILE, SCENARIOS, TABLE, ClauseDocument, DossierDocument, Evaluation
from tcpscape.clauses.judging import ClauseJudgement, CriterionJudgement
from tcpscape.controls import palette
from tcpscape.controls.palette import Look
from tcpscape.plots import style
from tcpscape.report import figures, tables
from tcpscape.report.build import PAGE
from tcpscape.report.cells import Rerun, RerunScenario
from tcpscape.report.figures import EmbeddedFigure
from tcpscape.report.page import Answer, FigureGroup, Heading, Page, Provenance, render
from tcpscape.report.tables import Field, PageTable
from tcpscape.scenario import files
from tcpscape.text.table import Table
from tcpscape.words import dossier as words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS: Mapping[str, str] = {"fails": "no", "worse": "no", "not shown": "open", "better": "yes", "no worse": "yes", "by hand": "open"}
"""Verdict → CSS class."""


def write(evaluation: Evaluation, document: DossierDocument, root: Path) -> Path:
    """Draws the figures and writes the page into `root`. :raises StoreError: where a file cannot be written."""
    looks = palette.looks([evaluation.control, *evaluation.against])
    folder = writing.folder(root, figures.FOLDER)
    writing.clear(folder)
    groups = [_group(judged, clause, looks, root) for judged, clause in zip(evaluation.clauses, document["clauses"], strict=True) if judged.criteria]
    return writing.whole(root / PAGE, render(page(evaluation, document, groups)))


def page(evaluation: Evaluation, document: DossierDocument, groups: list[FigureGroup]) -> Page:
    """The parts of the page."""
    missing = [(c["section"], c["title"], text) for c in document["clauses"] for text in c["missing"]]
    details = [table for table in words.screen(document).details if isinstance(table, Table)]
    if missing:
        details.append(Table(("§", "clause", "what is missing"), missing, words=("clause", "what is missing"), title="Not shown"))
    facts = [*document["versions"].items(), ("engine", document["engine"]), ("grid", document["grid"]), ("trials", str(document["trials"]))]
    facts += [("seeds", f"{document['seeds'][0]} to {document['seeds'][1]}"), ("references", ", ".join(document["against"]))]
    return Page(
        Heading("evaluate", f"{document['control']}: evaluation by RFC 9743", document["control"], [words.METHOD]),
        [Answer(words.answer(document), [words.path(document) + "."])],
        summary=summary(document),
        figures=groups,
        tables=[tables.of_screen(table, {}) for table in details],
        provenance=Provenance(document["command"], facts, list(_reruns(evaluation, document)), [FILE, TABLE, "dossier.md"]),
    )


def summary(document: DossierDocument) -> PageTable:
    """A row for each clause, its verdict a link to its figure."""
    rows = [
        [
            Field(c["section"]),
            Field(c["title"], href=f"figure-{c['name']}" if c["criteria"] else ""),
            Field(c["level"]),
            Field(c["verdict"], kind=KINDS[c["verdict"]]),
            Field(words.cells(c)),
            Field(words.decisive(c)),
        ]
        for c in document["clauses"]
    ]
    columns = ("§", "clause", "level", "verdict", "cells worse", "what decides it")
    return PageTable("clauses", "Verdicts", columns, rows, words=columns[1:], stacked=True)


def part(clause: ClauseDocument) -> str:
    """The heading of a clause's figure."""
    return f"{clause['section']} {clause['title']}: {clause['verdict']}"


def _group(judged: ClauseJudgement, clause: ClauseDocument, looks: Mapping[str, Look], root: Path) -> FigureGroup:
    about = [clause["about"], clause["judgement"], *(f"Not shown: {text}." for text in clause["missing"])]
    shown = [criterion for criterion in judged.criteria if criterion.cells]
    drawn = [_figure(judged, shown, looks, root)] if shown else []
    return FigureGroup(part(clause), drawn, " ".join(about))


def _figure(judged: ClauseJudgement, shown: list[CriterionJudgement], looks: Mapping[str, Look], root: Path) -> EmbeddedFigure:
    name = judged.measured.clause.name
    wide = draw(judged, shown, looks, style.PAGE)
    text = style.svg(wide)
    written = style.save(wide, root / figures.FOLDER / name, ("svg", "png"), text)
    about = "Means of each cell under the control and the references, in order of the control's; a ring marks a cell that is worse or fails"
    return figures.embedded(name, about, text, draw(judged, shown, looks, style.NARROW), written)


def draw(judged: ClauseJudgement, shown: list[CriterionJudgement], looks: Mapping[str, Look], width: float) -> Figure:
    """A panel for each criterion: the control beside the references, cell by cell."""
    fig, axes = style.panels(len(shown), share=False, height=2.8, page=width)
    for ax, criterion in zip(axes, shown, strict=True):
        _panel(ax, criterion, looks)
    style.finish(fig, axes, (f"{judged.measured.clause.section} {judged.measured.clause.title}", ""))
    return fig


def _panel(ax: Axes, judged: CriterionJudgement, looks: Mapping[str, Look]) -> None:
    criterion, scale = judged.criterion, 100 if judged.criterion.unit == "%" else 1
    cells = sorted((cell for cell in judged.cells if not cell.error), key=lambda cell: float(cell.values.mean()))
    control = next(iter(looks))
    for name, look in reversed(list(looks.items())):
        values = [scale * float((cell.values if name == control else cell.references.get(name, np.array([np.nan]))).mean()) for cell in cells]
        ax.plot(range(1, len(cells) + 1), values, linestyle="none", marker=look.marker, color=look.colour, markersize=4.5, label=name)
    bad = [(i, scale * float(cell.values.mean())) for i, cell in enumerate(cells, 1) if cell.verdict in words.NAMED]
    if bad:
        ax.plot(*zip(*bad, strict=True), linestyle="none", marker="o", markersize=9, markerfacecolor="none", color=looks[control].colour)
    if criterion.bound is not None:
        ax.axhline(scale * criterion.bound, color=style.INK, linewidth=0.8, linestyle=":")
    ax.set_title(criterion.what, fontsize=9, color=style.INK)
    ax.set_ylabel(criterion.unit or "value")
    ax.set_xlabel("cell")


def _reruns(evaluation: Evaluation, document: DossierDocument) -> list[Rerun]:
    """How to run each of the worst cells again."""
    commands = (cell["command"] for c in document["clauses"] for k in c["criteria"] for cell in k["worst"])
    entries = []
    for (name, cell), command in zip(evaluation.worst(), commands, strict=True):
        file = f"{SCENARIOS}/{name}.yaml"
        text = files.dump(cell.scenario.model_copy(update={"name": name}))
        title = f"{name}: {words.place(dict(cell.at))}"
        entries.append(Rerun(name, title, (RerunScenario(file, command, text),), shown=False, listed=True))
    return entries
