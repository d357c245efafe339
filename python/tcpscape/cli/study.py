"""`tcpscape study`: the published studies, run again beside their published numbers, and on a second engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpscape.cli import checks, options, tables
from tcpscape.cli.progress import Progress, resumable

if TYPE_CHECKING:
    from tcpscape.campaign.record import Record
    from tcpscape.studies.against import Contrast
    from tcpscape.studies.result import Result
    from tcpscape.studies.study import Study

DEFAULT_OUT = Path("out")
study = typer.Typer(no_args_is_help=True, help="The published studies: list | show NAME | run NAME.")


@study.command("list")
def list_() -> None:
    """List the studies."""
    from tcpscape.cli import study_tables
    from tcpscape.studies import study as studies

    tables.console().print(study_tables.listing([studies.get(name) for name in studies.names()]))


@study.command("show")
def show(name: Annotated[str, typer.Argument(help="A name of `tcpscape study list`.")]) -> None:
    """Show a study: its conditions, its pitfalls and what it claims."""
    from tcpscape.cli import study_tables
    from tcpscape.studies import study as studies

    screen = tables.console()
    for part in study_tables.described(studies.get(name)):
        screen.print(part)


@study.command("run")
def run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A name of `tcpscape study list`.")],
    quick: Annotated[bool, typer.Option("--quick", help="A quick look: few repetitions, seconds instead of minutes.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Trials of each cell instead of the study's own.")] = None,
    part: Annotated[list[str] | None, typer.Option(help="A part of the study alone, and the claims about it. Repeatable.")] = None,
    out: Annotated[Path, typer.Option(help="Keep results in OUT/NAME and resume from there.")] = DEFAULT_OUT,
    engine: options.EngineName = "model",
    against: Annotated[str | None, typer.Option(help="A second engine or kernel: both medians and their ratio, cell by cell.")] = None,
    jobs: options.Jobs = 0,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write the report, a page that opens offline, beside the results.")] = True,
    check: checks.Checks = None,
) -> None:
    """Run a published study under its own conditions; print our numbers beside the published ones, and its claims."""
    from tcpscape import engines
    from tcpscape.campaign import record
    from tcpscape.campaign.execute import Execution
    from tcpscape.store.results import Store
    from tcpscape.studies import against as contrasts
    from tcpscape.studies import run as runs
    from tcpscape.studies import study as studies

    whole = _asked(studies.get(name), quick, seeds)
    said, asked = whole.only(part) if part else whole, checks.read(check)
    said, left_out = runs.runnable(said, [engines.make(e) for e in (engine, against) if e])
    ours, whole = (one.changed({"engines": [engine]}) for one in (said, whole))
    checks.expect(asked, [place for p in ours.parts for place in checks.of_cases(p, p.name)])
    root, command = out / name, options.command(context)
    with Store(root) as store, resumable(store), Progress(f"{name} on {engine}") as one, Progress(f"{name} on {against}") as two:
        record.expect(store, record.STUDY, name, {p.name: p for p in ours.parts}, {engine: engines.make(engine).version})
        execution = Execution(jobs, store, one.update)
        if against is None:
            result = runs.run(ours, execution)
            _keep(result, result.record(command, whole), root, report)
            _leave_out(left_out)
            return checks.settle(asked, checks.conditions(result.parts))
        contrast = contrasts.run(said, engine, against, execution, two.update)
    _keep(contrast.ours, contrast.ours.record(command, whole), root, report)
    _show_against(contrast, root)
    _leave_out(left_out)
    checks.settle(asked, checks.conditions(contrast.ours.parts))


def _leave_out(reasons: Sequence[str]) -> None:
    for reason in reasons:
        print(reason)


def _asked(said: Study, quick: bool, seeds: int | None) -> Study:
    changes: dict[str, Any] = dict(said.quick) if quick else {}
    if seeds is not None:
        changes["seeds"] = str(seeds)
    return said.changed(changes) if changes else said


def _keep(result: Result, kept: Record, root: Path, report: bool) -> None:
    """Adds `kept` to the directory and prints what has just run; table, report and picture are of all that the directory holds."""
    from tcpscape import plots
    from tcpscape import report as reports
    from tcpscape.campaign import record
    from tcpscape.cli import study_tables
    from tcpscape.studies import run as runs

    name, screen, judged = result.study.name, tables.console(), runs.judge(result)
    whole = judged
    if record.save(kept, root):
        kept = record.load(root)
        if everything := runs.read(kept):
            whole = runs.judge(everything)
    tables.keep(whole.result.frame(), root / f"{name}.csv")
    for part in study_tables.parts(judged):
        screen.print(part)
    if report:
        print(f"table: {root / name}.csv; report: {reports.build(kept, root, study=whole)[0]}")
        return
    files = plots.save_study(whole.result, root / name)
    print(f"picture: {files[0]} and {files[1].name}; table: {root / name}.csv")


def _show_against(contrast: Contrast, root: Path) -> None:
    from tcpscape.cli import study_tables

    screen, file = tables.console(), root / f"{contrast.ours.study.name}-against.csv"
    tables.keep(contrast.frame(), file)
    for part in study_tables.against(contrast):
        screen.print(part)
    print(f"table: {file}")
