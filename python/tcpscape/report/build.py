"""Builds the report of a result directory: estimates, draws, writes the tables and scenarios, and fills in the parts of its page."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape import units, writing
from tcpscape.campaign.record import Kind, Record
from tcpscape.errors import StoreError, refuse
from tcpscape.plots import Context, base
from tcpscape.report import advice as advised
from tcpscape.report import cells, figures, tables
from tcpscape.report.cells import CellEstimates
from tcpscape.report.diagram import PathView
from tcpscape.report.figures import FigureRequest
from tcpscape.report.page import Answer, FigureGroup, Heading, Page, Provenance, PublishedClaims, render
from tcpscape.report.tables import PageTable
from tcpscape.scenario.options import UNNAMED
from tcpscape.scenario.scenario import Scenario
from tcpscape.studies import run as runs
from tcpscape.studies.result import ClaimVerdict, JudgedClaim
from tcpscape.studies.study import WORKS
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table
from tcpscape.words import campaign as answer
from tcpscape.words import paths
from tcpscape.words import study as studies

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.campaign.outcome import Outcome
    from tcpscape.findings.advice.answer import Advice
    from tcpscape.studies.result import JudgedStudy, Result


PAGE = "report.html"
"""The name of the page in the result directory."""
ADVISE: Kind = "advise"
"""Kind of a record that an advice was measured for."""
FIGURES_OF_ADVICE = ("strip", "cdf")
"""Figures of the runs that an advice's page has behind its own."""
TABLES = "tables"
"""The folder of the tables' files."""
MOST_RUNS = 100_000
"""Most runs of which the report has a table with a row for each: that of more takes gigabytes."""


def build(
    record: Record, root: Path, formats: tuple[str, ...] = ("svg", "png"), study: JudgedStudy | None = None, advice: Advice | None = None
) -> list[Path]:
    """Writes `report.html`, `figures/`, `tables/` and `scenarios/` into `root`; returns the files, the page first.

    `formats`: of the figures' files; `study`: the study of the record where the caller has judged it already, otherwise it is read and judged;
    `advice`: what the record's only part was measured for.

    :raises StoreError: where a file cannot be written, or the record is that of an advice and `advice` is missing.
    """
    if record.kind == ADVISE and not advice:
        command = record.command.splitlines()[-1]
        more = "" if "--report" in command.split() else " --report"
        refuse("report", "not every trial of the advice is kept", f"type the command again, it resumes: {command}{more}", StoreError)
    folders = [writing.folder(root, name) for name in (figures.FOLDER, TABLES, cells.FOLDER)]
    result = study.result if study else runs.read(record)
    study = study or (runs.judge(result) if result else None)
    names = {part: cells.names(part, outcome) for part, outcome in record.parts.items()}
    estimated = {part: cells.measure(part, outcome, names[part]) for part, outcome in record.parts.items()}
    reruns = cells.reruns(record.parts, names)
    screens = {part: advised.screen(advice) if advice else _screen(outcome) for part, outcome in record.parts.items()}
    whole = studies.study_screen(study) if study else None
    names_of_figures = FIGURES_OF_ADVICE if advice else result.study.figures if result else ()
    request = FigureRequest(names_of_figures, formats, len(record.parts))
    groups, figure_files = _figures(record, result, request, root, "Single runs" if advice else "")
    if advice:
        groups, figure_files = _with_advice(advice, groups, figure_files, formats, root)
    frames = {"cells": cells.frame([entry for of_part in estimated.values() for entry in of_part])}
    frames |= {"runs": cells.runs(record.parts)} if _count(record) <= MOST_RUNS else {}
    if study:
        frames |= {"study": study.result.frame(), "claims": claims_frame(study.claims)}
    writing.clear(root, *folders)
    figures.tidy(figure_files, root)
    table_files = [file for name, frame in frames.items() for file in _write_frame(frame, root / TABLES / name)]
    scenario_files = writing.many(root / cells.FOLDER, ((Path(scenario.file).name, scenario.text) for cell in reruns for scenario in cell.scenarios))
    page = Page(
        advised.heading(advice) if advice else _heading(record, result),
        _answers(screens, whole),
        list(dict.fromkeys(caveat for screen in ([whole] if whole else screens.values()) for caveat in screen.caveats)),
        paths=[_path(part, outcome, screens[part].path, f"path-{i}") for i, (part, outcome) in enumerate(record.parts.items())],
        figures=groups,
        deploy=advised.deploy(advice) if advice else None,
        tables=[*_screen_tables(record, screens, whole), *(advised.detail_tables(advice) if advice else ()), *_tables(record, result, estimated)],
        claims=claims_section(study.claims) if study else None,
        provenance=Provenance(
            record.command, _facts(record), reruns, [f"{TABLES}/{f.name}" for f in table_files], result.study.pitfalls if result else ()
        ),
    )
    for outcome in record.outcomes:
        outcome.keep_numbers()
    return [writing.whole(root / PAGE, render(page)), *figure_files, *table_files, *scenario_files]


def _figures(record: Record, result: Result | None, request: FigureRequest, root: Path, title: str = "") -> tuple[list[FigureGroup], list[Path]]:
    """Draws the figures of every part; returns them by part, and their files. `title`: of all of them, where they are no study's."""
    groups: list[FigureGroup] = []
    files: list[Path] = []
    several = len(record.parts) > 1
    for part, outcome in record.parts.items():
        context = Context(_part_title(result, part), result.known) if result else Context(title)
        drawn = list(figures.draw(part, outcome, context, request, root))
        about, command = (outcome.campaign.about, record.commands.get(part, "")) if several else ("", "")
        groups.append(FigureGroup(part, [figure for figure, _ in drawn], about, command))
        files += [file for _, written in drawn for file in written]
        request = request.after(outcome) if several else request
    return groups, files


def _with_advice(
    advice: Advice, groups: Sequence[FigureGroup], files: Sequence[Path], formats: Sequence[str], root: Path
) -> tuple[list[FigureGroup], list[Path]]:
    """The figures of an advice before all others, and their files."""
    drawn = list(advised.drawn(advice, formats, root))
    return [FigureGroup("", [figure for figure, _ in drawn]), *groups], [*(file for _, written in drawn for file in written), *files]


def _tables(record: Record, result: Result | None, estimated: Mapping[str, Sequence[CellEstimates]]) -> list[PageTable]:
    """The study's numbers beside the published ones; then the cells and, but of an advice, the published indicators of every part."""
    page_tables = tables.study_tables(result) if result else []
    for part, outcome in record.parts.items():
        page_tables += [cells.table(part, outcome, estimated[part]), *(tables.indicator_table(part, outcome) if record.kind != ADVISE else ())]
    return [table.dense() for table in page_tables]


def _screen(outcome: Outcome) -> Screen:
    """The screen that the command shows of this outcome: of a sweep where there is more than one point, whose table is that of the cells."""
    return answer.sweep_head(outcome) if _has_axes(outcome) else answer.run_screen(outcome)


def _has_axes(outcome: Outcome) -> bool:
    return len({tuple(c.at.items()) for c in outcome.cells}) > 1


def _answers(screens: Mapping[str, Screen], study: Screen | None) -> list[Answer]:
    """What the screens answer, of each part; of a study, what it finds."""
    if study:
        return [Answer(study.answer, study.remarks)]
    return [Answer(screen.answer, screen.remarks, part) for part, screen in screens.items()]


def _path(part: str, outcome: Outcome, words: str, name: str) -> PathView:
    """The path of a part's cells; `name`: the beginning of its ids in the page."""
    places = paths.spread([(cell, i) for cell in outcome.cells for i in range(len(cell.specs))])
    return PathView.of(part, [cell.scenarios[i] for cell, i in places], words, looks=base.looks(outcome), name=name)


def _screen_tables(record: Record, screens: Mapping[str, Screen], study: Screen | None) -> list[PageTable]:
    """What the terminal shows besides every cell: a study's matrix, or for one point what limits its flows and what a viewer sees."""
    if study:
        looks = {name: look for outcome in record.outcomes for name, look in base.looks(outcome).items()}
        return [tables.of_screen(table, looks, "What the study finds") for table in study.tables[:1] if isinstance(table, Table)]
    shown = [(part, t) for part, screen in screens.items() if not _has_axes(record.parts[part]) for t in screen.tables if isinstance(t, Table)]
    return [tables.of_screen(table, base.looks(record.parts[part]), part or "In short") for part, table in shown]


def _heading(record: Record, result: Result | None) -> Heading:
    """The study's title, the record's own name, or the metric and the axes."""
    if result:
        return Heading(record.kind, result.study.title, record.name, (result.study.about, f"Source: {result.study.source}"))
    titles = list(dict.fromkeys(map(base.title, record.outcomes)))
    more = f"; {len(titles) - 1} more below" if len(titles) > 1 else ""
    title = f"{titles[0]}{more}" if record.name == UNNAMED else record.name
    return Heading(record.kind, title, "" if record.name == UNNAMED else record.name)


def _part_title(result: Result, part: str) -> str:
    """The study's title, with the part where it has several."""
    return f"{result.study.title}: {part}" if len(result.parts) > 1 else result.study.title


def _facts(record: Record) -> list[tuple[str, str]]:
    """Number of runs, engines, kernels, seeds and version: name and text."""
    versions = {f"{name} {version}": None for o in record.outcomes for name, version in o.versions.items()}
    kernels = {k: None for o in record.outcomes for k in o.kernels}
    kernel_specs = {json.dumps(spec.get("kernel", {})): None for o in record.outcomes for c in o.cells for spec in c.specs}
    profiles = {Scenario.of({"kernel": json.loads(kernel)}).kernel.profile: None for kernel in kernel_specs}
    seeds = {f"{o.name}: {_seeds(o)}" if len(record.parts) > 1 else _seeds(o): None for o in record.outcomes}
    count = sum(len(o.cells) for o in record.outcomes)
    runs = _count(record)
    a_row_each = "; a row for each: tcpscape export DIRECTORY --to parquet --out runs.parquet" if runs > MOST_RUNS else ""
    facts = {
        "runs": f"{runs} in {units.counted(count, 'cell')}{a_row_each}",
        "engine": ", ".join(versions),
        "real kernel": ", ".join(kernels),
        "kernel modelled or asked for": ", ".join(profiles),
        "seeds": "; ".join(seeds),
        "tcpscape": record.version,
    }
    return [(name, text) for name, text in facts.items() if text]


def _count(record: Record) -> int:
    """Runs of all parts."""
    return sum(outcome.trial_count for outcome in record.outcomes)


def _seeds(outcome: Outcome) -> str:
    """The seeds of the campaign; where several commands measured its cells, those of each command."""
    if outcome.campaign.precision is not None:
        return outcome.campaign.seeds
    distinct = dict.fromkeys(tuple(seeds) for cell in outcome.cells for seeds in cell.seeds)
    return " or ".join(cells.seeds(seeds) for seeds in distinct) if len(distinct) > 1 else outcome.campaign.seeds


def _write_frame(frame: pl.DataFrame, stem: Path) -> list[Path]:
    """Writes a table as CSV and Parquet."""
    files = [stem.with_suffix(".csv"), stem.with_suffix(".parquet")]
    stream = io.BytesIO()
    frame.write_parquet(stream)
    return [writing.whole(files[0], frame.write_csv()), writing.whole(files[1], stream.getbuffer())]


FAILURES_FIRST: Sequence[ClaimVerdict] = ("not reproduced", "not decidable", "reproduced")
"""The order of verdicts on a page."""
CLASSES = {"reproduced": "yes", "not reproduced": "no", "not decidable": "open"}
"""Verdict → its CSS class."""
COLUMNS = ("verdict", "claim", "measured [95 %]", "explained by its set-up", "source")


def claims_section(claims: Sequence[JudgedClaim]) -> PublishedClaims | None:
    """The claims as a part of a page; None without any."""
    if not claims:
        return None
    by_verdict = {verdict: [c for c in claims if c.verdict == verdict] for verdict in FAILURES_FIRST}
    folded = by_verdict["reproduced"]
    shown = [c for verdict in FAILURES_FIRST if verdict != "reproduced" for c in by_verdict[verdict]]
    return PublishedClaims(
        tally=[(verdict, len(of_verdict), CLASSES[verdict]) for verdict, of_verdict in by_verdict.items() if of_verdict],
        open=_table(shown, "Not reproduced, or not decided by these runs") if shown else None,
        reproduced=_table(folded, "Reproduced") if folded else None,
        works=[(name, WORKS[name]) for name in dict.fromkeys(c.claim.work for c in claims)],
    )


def _table(claims: Sequence[JudgedClaim], caption: str) -> PageTable:
    """Claims with their verdict, the measured value, what explains the published number, and the source (a name of `WORKS`)."""
    rows = [[tables.word(c.verdict, kind=CLASSES[c.verdict]), *map(tables.word, (c.claim.text, c.measured, c.why, c.claim.work))] for c in claims]
    return PageTable("claims", caption, COLUMNS, rows, left=len(COLUMNS), stacked=True).dense()


def claims_frame(claims: Sequence[JudgedClaim]) -> pl.DataFrame:
    """One row for each claim, in the study's order."""
    import polars as pl

    columns = ("verdict", "claim", "measured", "setup", "work", "measure")
    rows = [(c.verdict, c.claim.text, c.measured, c.claim.setup, c.claim.work, c.claim.measure) for c in claims]
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
