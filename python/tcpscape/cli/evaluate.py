"""`tcpscape evaluate`: the dossier that RFC 9743 asks for of a congestion control."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from tcpscape.cli import options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.cli.terminal import ProgressLine, resumable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpscape.clauses.changes import Change
    from tcpscape.clauses.dossier import Evaluation

DEFAULT_OUT = Path("out/evaluate")
WORSENED = 1
"""Exit status where a verdict is worse than the kept dossier's."""


@dataclass(frozen=True)
class EvaluateOptions:
    """What is evaluated, beside what, and how thoroughly."""

    control: Annotated[str, Argument("The congestion control: a name, with parameters, or FILE.py:CLASS.", complete="cca")]
    against: Annotated[str, Option("References on the same cells and seeds.", complete="ccas")] = "reno,cubic"
    grid: Annotated[str, Option("How much is measured: quick (minutes), full (a night).", complete="quick|full")] = "quick"
    clause: Annotated[tuple[str, ...], Option("A clause alone, by its name or section: harm, 5.1.3. Repeatable.", metavar="CLAUSE")] = ()
    cells: Annotated[int | None, Option("Cells of each sample of paths instead of the grid's.", least=1, most=1000)] = None
    seed: Annotated[int, Option("First seed.", least=0)] = 0


@dataclass(frozen=True)
class EvaluateRuns:
    """Where trials run, and what is kept."""

    engine: options.EngineName = "model"
    executor: options.ExecutorName = "local"
    jobs: options.Jobs = 0
    out: Annotated[Path | None, Option("Directory of the dossier; resumes there.  [default: out/evaluate/CONTROL]", complete="directory")] = None


@command(examples=("evaluate cubic --clause collapse --cells 1", "evaluate bbr --clause 5.1.3 --cells 2"))
def evaluate(
    chosen: EvaluateOptions,
    runs: EvaluateRuns,
    check: Annotated[Path | None, Option("A kept dossier; status 1 where a verdict is worse than there.", complete="results")] = None,
    report: Annotated[bool, Option("Write the page, which opens offline, beside the results.", name="--report/--no-report")] = True,
    as_json: Annotated[bool, options.json_output("The dossier as one JSON document")] = False,
    output: options.ScreenOptions = options.ScreenOptions(),
) -> int:
    """Judge a congestion control by every clause of RFC 9743, beside standard controls on the same paths and seeds."""
    from tcpscape import writing
    from tcpscape.clauses import changes, dossier
    from tcpscape.words import dossier as words

    kept = dossier.read(check) if check else None
    root = runs.out or DEFAULT_OUT / dossier.directory(chosen.control)
    evaluation = _evaluated(chosen, runs, root)
    document = evaluation.document()
    files = [*evaluation.write(root), writing.whole(root / "dossier.md", words.markdown(document))]
    if report:
        from tcpscape.report import dossier as pages

        files = [pages.write(evaluation, document, root), *files]
    changed = changes.changed(kept, document) if kept else []
    if as_json:
        print(json.dumps(document, allow_nan=False))
    else:
        next_ = [terminal.to_open(files[0])] if report else []
        terminal.show(replace(words.screen(document), kept=f"kept in {root}: {', '.join(f.name for f in files)}", next=next_), output)
    return gate(changed, str(check))


def gate(changed: Sequence[Change], kept: str) -> int:
    """Says on stderr which verdicts are worse than in the dossier `kept`; the exit status, :data:`WORSENED` where any is."""
    from tcpscape.words import dossier as words

    worse = [change for change in changed if change.is_worse]
    for line in words.changes(worse):
        click.echo(f"worse than {kept}: {line}", err=True)
    return WORSENED if worse else 0


def _evaluated(chosen: EvaluateOptions, runs: EvaluateRuns, root: Path) -> Evaluation:
    """Runs and judges what was asked for."""
    from tcpscape import engines
    from tcpscape.campaign import executors
    from tcpscape.campaign.execute import Runner
    from tcpscape.clauses import clause, judging, measuring
    from tcpscape.clauses.dossier import Evaluation
    from tcpscape.controls import spelling
    from tcpscape.errors import instead, refuse, shown
    from tcpscape.store.results import Store

    if chosen.grid not in clause.GRIDS:
        refuse("grid", f"{shown(chosen.grid)} is unknown", instead(chosen.grid, list(clause.GRIDS)))
    control = spelling.label(chosen.control, "control")
    against = tuple(label for label in spelling.parse_labels(chosen.against) if label != control)  # beside itself every control is no worse
    clauses, engine = clause.choose(chosen.clause), measuring.tolerant(engines.make(runs.engine), (control, *against))
    grid = replace(clause.GRIDS[chosen.grid], most=chosen.cells)
    measuring.expect_control(control, against, engine)
    executor = executors.make(runs.executor, runs.jobs, terminal.note)
    measured = measuring.prepare(clauses, (control, *against), grid, engine)
    with Store(root) as store, resumable(store), ProgressLine(f"evaluate {control}") as progress:
        bench = measuring.Bench(Runner(engine, store=store, progress=progress.update, executor=executor), grid, chosen.seed)
        bench.first(measured)
        progress.say(f"evaluate {control}, cells near a judgement")
        judged = judging.judge(measured, control, against, bench)
    return Evaluation(control, against, engine, grid, chosen.seed, options.typed(), root, judged)
