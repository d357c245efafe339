"""A result directory as a document: one HTML file that opens offline, figures and tables beside it.

Everything is made from the directory alone; the same directory gives the same bytes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpscape.campaign.record import Record
from tcpscape.errors import StoreError
from tcpscape.plots import Context, base
from tcpscape.report import cells, diagnosis, figures, published, rerun
from tcpscape.report.figures import FigureRequest
from tcpscape.scenario.options import UNNAMED
from tcpscape.scenario.scenario import Scenario
from tcpscape.studies import run as runs

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.campaign.outcome import Outcome
    from tcpscape.studies.result import Result
    from tcpscape.studies.verdict import JudgedClaim, JudgedStudy

PAGE = "report.html"
"""Its name in the directory."""
TABLES = "tables"


def build(record: Record, root: Path, formats: tuple[str, ...] = ("svg", "png"), study: JudgedStudy | None = None) -> list[Path]:
    """Writes `report.html`, `figures/`, `tables/` and `scenarios/` into `root`; returns the files, the page first.

    `study`: the study of the record where the caller has judged it already; otherwise it is made and judged from the record.
    """
    result = study.result if study else runs.read(record)
    study = study or (runs.judge(result) if result else None)
    judged = study.claims if study else ()
    names = {part: rerun.names(part, outcome) for part, outcome in record.parts.items()}
    measured = {part: cells.measure(part, outcome, names[part]) for part, outcome in record.parts.items()}
    reruns = rerun.cells(record.parts, names)
    drawn, files = _figures(record, result, FigureRequest(result.study.figures if result else (), formats, len(record.parts)), root)
    made = {"cells": cells.frame([m for some in measured.values() for m in some]), "runs": cells.runs(record.parts)}
    if result:
        made |= {"study": result.frame(), "claims": _claims(judged)}
    tables = published.tables(result) if result else []
    for part, outcome in record.parts.items():
        tables += [cells.table(part, outcome, measured[part]), *diagnosis.table(part, outcome)]
    try:
        figures.tidy(files, root)
        kept = [f for name, frame in made.items() for f in _table(frame, root / TABLES / name)]
        again = [_text(root / one.file, one.text) for cell in reruns for one in cell.scenarios]
        shown = {
            "drawn": drawn, "reruns": reruns, "unlisted": sum(not r.listed for r in reruns), "files": [f"{TABLES}/{f.name}" for f in kept],
            "tables": [t.dense() for t in tables],
        }  # fmt: skip
        return [_text(root / PAGE, _page(record, result, judged, shown)), *files, *kept, *again]
    except OSError as e:
        raise StoreError(f"report: cannot write {e.filename or root}: {e.strerror}; free some space, or make the directory writable") from None


def _figures(record: Record, result: Result | None, request: FigureRequest, root: Path) -> tuple[dict[str, list[figures.EmbeddedFigure]], list[Path]]:
    drawn: dict[str, list[figures.EmbeddedFigure]] = {}
    files: list[Path] = []
    for part, outcome in record.parts.items():
        context = Context(_title(result, part), result.known) if result else Context()
        for one, written in figures.draw(part, outcome, context, request, root):
            drawn.setdefault(part, []).append(one)
            files += written
        request = request.after(outcome)
    return drawn, files


def _heading(record: Record, result: Result | None) -> str:
    """The page's title: the study's, the record's own name, or what was varied."""
    if result:
        return result.study.title
    return base.title(record.outcomes[0]) if record.name == UNNAMED else record.name


def _title(result: Result, part: str) -> str:
    """The study's, with the part where it has several."""
    return f"{result.study.title}: {part}" if len(result.parts) > 1 else result.study.title


def _claims(judged: Sequence[JudgedClaim]) -> pl.DataFrame:
    import polars as pl

    columns = ("verdict", "claim", "measured", "setup", "work", "measure")
    said = [(j.verdict, j.claim.text, j.measured, j.claim.setup, j.claim.work, j.claim.measure) for j in judged]
    return pl.DataFrame(said, schema=dict.fromkeys(columns, pl.String), orient="row")


def _page(record: Record, result: Result | None, judged: Sequence[JudgedClaim], parts: dict[str, Any]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tcpscape.report", "page"), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined,
    )
    return environment.get_template("page.html.j2").render(
        record=record, study=result.study if result else None, title=_heading(record, result),
        claims=published.claims(judged).dense() if judged else None, verdicts=published.verdicts(judged), works=published.works(judged),
        facts=_facts(record), abouts={part: outcome.campaign.about for part, outcome in record.parts.items()},
        caveats=sorted({c for o in record.outcomes for c in o.caveats}), **parts,
    )


def _facts(record: Record) -> list[tuple[str, str]]:
    """What was run, on what."""
    versions = {f"{name} {version}": None for o in record.outcomes for name, version in o.versions.items()}
    kernels = {k: None for o in record.outcomes for k in o.kernels}
    asked = {json.dumps(spec.get("kernel", {})): None for o in record.outcomes for c in o.cells for spec in c.specs}
    profiles = {Scenario.of({"kernel": json.loads(kernel)}).kernel.profile: None for kernel in asked}
    seeds = {f"{o.name}: {_seeds(o)}" if len(record.parts) > 1 else _seeds(o): None for o in record.outcomes}
    said = {
        "runs": f"{sum(o.trial_count for o in record.outcomes)} in {sum(len(o.cells) for o in record.outcomes)} cells",
        "engine": ", ".join(versions), "real kernel": ", ".join(kernels), "kernel modelled or asked for": ", ".join(profiles),
        "seeds": "; ".join(seeds), "tcpscape": record.version,
    }  # fmt: skip
    return [(name, text) for name, text in said.items() if text]


def _seeds(outcome: Outcome) -> str:
    """The seeds as they were asked for; of cells that several commands measured those of each."""
    if outcome.campaign.precision is not None:
        return outcome.campaign.seeds
    distinct = dict.fromkeys(tuple(t.seed for t in trials) for cell in outcome.cells for trials in cell.runs)
    return " or ".join(rerun.seeds(seeds) for seeds in distinct) if len(distinct) > 1 else outcome.campaign.seeds


def _table(frame: pl.DataFrame, stem: Path) -> list[Path]:
    """As CSV and Parquet."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    files = [stem.with_suffix(".csv"), stem.with_suffix(".parquet")]
    said = io.BytesIO()
    frame.write_parquet(said)
    files[0].write_text(frame.write_csv(), "utf-8")
    files[1].write_bytes(said.getbuffer())
    return files


def _text(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file
