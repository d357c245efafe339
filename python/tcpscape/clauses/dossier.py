"""The dossier: a document with the verdict of every clause, its cells as a table, and how it is read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

import tcpscape
from tcpscape import formats, names, writing
from tcpscape.clauses.clause import Grid
from tcpscape.clauses.judging import CellJudgement, ClauseJudgement, CriterionJudgement, Verdict
from tcpscape.clauses.measuring import addresses
from tcpscape.errors import StoreError
from tcpscape.reading import documents, files
from tcpscape.reading.files import Kind, Origin
from tcpscape.scenario import files as scenarios
from tcpscape.stats.estimate import Interval, Measured

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.engines.base import Engine

FILE, TABLE, SCENARIOS = "dossier.json", "cells.csv", "cells"
"""Names in the directory: the document, every cell as a table, the folder with the scenarios of the worst cells."""
KEPT = Kind("a dossier", "name the dossier.json of `tcpscape evaluate`, or its directory", error=StoreError)
WORST = 3
"""Cells of a criterion that the document lists."""


class CellDocument(TypedDict):
    """A cell in which the control is worse, or fails."""

    at: dict[str, str]
    """Axis → value as written."""
    verdict: Verdict
    """`worse` or `fails`."""
    value: Interval
    """Of the control: mean over the seeds that decided."""
    references: dict[str, Interval]
    """Of each reference, the same seeds."""
    excess: Interval
    """By how much it is worse than the nearest reference, paired by seeds."""
    error: str
    """What the control's own code raised; empty where it did not."""
    command: str
    """What repeats the control's trials, from the directory where the dossier's own command was typed."""


class CriterionDocument(TypedDict):
    """A criterion of a clause on all of its cells."""

    what: str
    """The value in a few words."""
    words: str
    """What holds where nothing is wrong."""
    value: str
    """Arithmetic of the value."""
    measures: dict[str, str]
    """Name in it → metric of a trial, with the part of the clause in front."""
    unit: str
    """`%` is a fraction."""
    better: Literal["less", "more"]
    """Which of two values is preferable."""
    margin: float
    """Least difference that matters."""
    factor: float
    """Least ratio that matters as well."""
    bound: float | None
    """What fails beyond it; null where no number says it."""
    verdict: Verdict
    """Of all cells together."""
    nearest: str
    """The reference to which the control is nearest on average."""
    excess: Measured
    """Mean over the cells by how much it is worse than that reference; below 0 it is better."""
    cells: int
    """Cells that gave a value."""
    bad: int
    """Cells of them in which it is worse or fails."""
    unknown: int
    """Cells that gave none."""
    worst: list[CellDocument]
    """The worst cells."""


class ClauseDocument(TypedDict):
    """A clause of RFC 9743."""

    section: str
    """Its number in the RFC."""
    name: str
    """What `--clause` calls it."""
    title: str
    """Its title."""
    level: str
    """How strongly the RFC asks."""
    verdict: Verdict
    """The gravest of its criteria."""
    about: str
    """What it asks for, and what the cells show."""
    judgement: str
    """The judgement in words."""
    criteria: list[CriterionDocument]
    """What was judged."""
    missing: list[str]
    """What is not shown, with what is missing for it."""


class DossierDocument(TypedDict):
    """What `tcpscape evaluate` finds of a congestion control. `dossier.json`."""

    format: Literal[1]
    """Format of a dossier."""
    control: str
    """The congestion control."""
    against: list[str]
    """The references."""
    engine: str
    """Where it ran."""
    grid: str
    """Name of the grid."""
    seeds: list[int]
    """First and last seed."""
    versions: dict[str, str]
    """tcpscape's and the engine's."""
    trials: int
    """Trials in all."""
    command: str
    """What measures it again."""
    clauses: list[ClauseDocument]
    """Every clause, in the order of the RFC."""


@dataclass(frozen=True)
class Evaluation:
    """A control that was judged, and how."""

    control: str
    against: tuple[str, ...]
    engine: Engine
    grid: Grid
    seed: int
    command: str
    root: Path
    """Directory of the dossier."""
    clauses: Sequence[ClauseJudgement]

    def document(self) -> DossierDocument:
        """Everything as plain values."""
        first = self.seed
        return {
            "format": 1,
            "control": self.control,
            "against": list(self.against),
            "engine": self.engine.spec,
            "grid": self.grid.name,
            "seeds": [first, first + self.grid.seeds + self.grid.more - 1],
            "versions": {"tcpscape": tcpscape.__version__, self.engine.spec: self.engine.version},
            "trials": len(addresses([one.measured for one in self.clauses])),
            "command": self.command,
            "clauses": [_clause(one, self) for one in self.clauses],
        }

    def seeds_of(self, cell: CellJudgement) -> str:
        """The seeds behind a cell's numbers."""
        first = self.seed + (self.grid.seeds if cell.is_decided else 0)
        count = self.grid.more if cell.is_decided else self.grid.seeds
        return f"{first}..{first + count - 1}" if count > 1 else f"{first}..{first}"

    def worst(self) -> Iterator[tuple[str, CellJudgement]]:
        """The worst cells of every criterion, each with the name of its scenario's file."""
        for one in self.clauses:
            for place, criterion in enumerate(one.criteria):
                for rank, cell in enumerate(criterion.bad[:WORST]):
                    yield file_of(one, place, rank), cell

    def frame(self) -> pl.DataFrame:
        """A row for each criterion on each cell."""
        import polars as pl

        rows = [_row(one, criterion, cell) for one in self.clauses for criterion in one.criteria for cell in criterion.cells]
        return pl.DataFrame(rows, infer_schema_length=None)

    def write(self, root: Path) -> list[Path]:
        """Writes the document, the table and the scenarios of the worst cells. :raises StoreError: where a file cannot be written."""
        import json

        folder = writing.folder(root, SCENARIOS)
        writing.clear(root, folder)
        for name, cell in self.worst():
            writing.whole(folder / f"{name}.yaml", scenarios.dump(cell.scenario.model_copy(update={"name": name})))
        text = json.dumps(self.document(), indent=1, allow_nan=False, ensure_ascii=False)
        return [writing.whole(root / FILE, text + "\n"), writing.whole(root / TABLE, self.frame().write_csv())]


def file_of(one: ClauseJudgement, place: int, rank: int) -> str:
    """Name of the scenario of a worst cell: `loss-1-1`."""
    return f"{one.measured.clause.name}-{place + 1}-{rank + 1}"


def _clause(one: ClauseJudgement, evaluation: Evaluation) -> ClauseDocument:
    clause = one.measured.clause
    return {
        "section": clause.section,
        "name": clause.name,
        "title": clause.title,
        "level": clause.level,
        "verdict": one.verdict,
        "about": clause.about.strip(),
        "judgement": clause.judgement.strip(),
        "criteria": [_criterion(one, place, evaluation) for place in range(len(one.criteria))],
        "missing": list(one.missing),
    }


def _criterion(one: ClauseJudgement, place: int, evaluation: Evaluation) -> CriterionDocument:
    judged = one.criteria[place]
    criterion = judged.criterion
    return {
        "what": criterion.what,
        "words": criterion.words,
        "value": criterion.value,
        "measures": dict(criterion.measures),
        "unit": criterion.unit,
        "better": criterion.better,
        "margin": criterion.margin,
        "factor": criterion.factor,
        "bound": criterion.bound,
        "verdict": judged.verdict,
        "nearest": judged.nearest,
        "excess": judged.excess.measured(),
        "cells": len(judged.cells),
        "bad": len(judged.bad),
        "unknown": judged.unknown,
        "worst": [_cell(cell, file_of(one, place, rank), evaluation) for rank, cell in enumerate(judged.bad[:WORST])],
    }


def _cell(cell: CellJudgement, name: str, evaluation: Evaluation) -> CellDocument:
    engine = [] if evaluation.engine.spec == "model" else ["--engine", evaluation.engine.spec]
    file = names.argument(evaluation.root / SCENARIOS / f"{name}.yaml")
    command = ["tcpscape run", file, "--seeds", evaluation.seeds_of(cell), *engine]
    return {
        "at": dict(cell.at),
        "verdict": cell.verdict,
        "value": cell.value.plain(),
        "references": {reference: estimate.plain() for reference, estimate in cell.means().items()},
        "excess": cell.excess.plain(),
        "error": cell.error,
        "command": " ".join(map(str, command)),
    }


def _row(one: ClauseJudgement, criterion: CriterionJudgement, cell: CellJudgement) -> dict[str, Any]:
    clause, at = one.measured.clause, ", ".join(f"{axis}={value}" for axis, value in cell.at.items())
    head = {"section": clause.section, "clause": clause.name, "criterion": criterion.criterion.what, "cell": at, "seeds": len(cell.values)}
    means = {name: estimate.value for name, estimate in cell.means().items()}
    return {**head, **cell.value.columns("value"), **means, **cell.excess.columns("excess"), "verdict": cell.verdict, "error": cell.error}


def read(path: Path) -> DossierDocument:
    """A kept dossier: its file, or the directory with it. :raises StoreError: one line, where there is none or it is damaged."""
    file = path / FILE if files.folder(path, KEPT, "check") else path
    values = documents.json_file(file, KEPT, "check")
    formats.expect("dossier", values, "check")
    return documents.as_type(DossierDocument, values, Origin(str(file), KEPT))


def is_kept(path: Path) -> bool:
    """Whether a dossier is there: its file under its own name or another one, or the directory with it."""
    if path.is_dir():
        return (path / FILE).is_file()
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        values = documents.json_file(path, KEPT, "results")
    except StoreError:
        return False
    return isinstance(values, dict) and {"control", "against", "clauses"} <= values.keys()


def directory(control: str) -> str:
    """The name of a control's directory: `bbr`, `mine.py-Mine`."""
    return names.component(control.rpartition("/")[2])
