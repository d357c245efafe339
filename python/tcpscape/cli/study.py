"""`tcpscape study`: a published study run again, beside its published numbers, and on a second engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpscape import build, engines
from tcpscape.campaign import Runner
from tcpscape.cli import options, tables
from tcpscape.cli.progress import Progress

if TYPE_CHECKING:
    from tcpscape.studies.against import Contrast
    from tcpscape.studies.run import Outcome

DEFAULT_OUT = Path("out")


def study(
    name: Annotated[str, typer.Argument(help="jitter-cliff, loss-tolerance or starlink.")],
    quick: Annotated[bool, typer.Option("--quick", help="Two repetitions instead of the study's own.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, max=build.MAX_SEEDS, help="Repetitions for each rate instead of the study's own.")] = None,
    out: Annotated[Path, typer.Option(help="Directory for the table and the picture.")] = DEFAULT_OUT,
    resume: Annotated[bool, typer.Option("--resume", help="Keep each trial in --out and resume from there.")] = False,
    engine: options.EngineName = "model",
    against: Annotated[str | None, typer.Option(help="A second engine or kernel: both medians and their ratio, cell by cell.")] = None,
    jobs: options.Jobs = 0,
) -> None:
    """Run a published study under its own conditions; print our numbers beside the published and raw ones, and its claims."""
    from tcpscape import studies
    from tcpscape.results import Store
    from tcpscape.studies import against as contrasts
    from tcpscape.studies import run as runs

    said, repeats = studies.get(name), seeds or (runs.QUICK_REPEATS if quick else None)
    made, other = engines.make(engine), engines.make(against) if against is not None else None
    store = Store(out / f"{name}-trials") if resume else None
    with Progress(f"{name} on {engine}") as one, Progress(f"{name} on {against}") as two:
        runner = Runner(made, jobs, store=store, progress=one.update)
        if other is None:
            _show(runs.run(said, runner, repeats=repeats), out)
            return
        contrast = contrasts.run(said, runner, Runner(other, jobs, store=store, progress=two.update), repeats=repeats)
    _show(contrast.ours, out)
    _show_against(contrast, out)


def _show(outcome: Outcome, out: Path) -> None:
    from tcpscape import plots
    from tcpscape.cli import study_tables
    from tcpscape.studies import claims

    name, screen = outcome.study.name, tables.console()
    files = plots.study(outcome, out / name)
    outcome.frame().write_csv(out / f"{name}.csv")
    for part in study_tables.parts(outcome, claims.judge(outcome)):
        screen.print(part)
    print(f"picture: {files[0]} and {files[1].name}; table: {out / name}.csv")


def _show_against(contrast: Contrast, out: Path) -> None:
    from tcpscape.cli import study_tables

    screen, file = tables.console(), out / f"{contrast.ours.study.name}-against.csv"
    contrast.frame().write_csv(file)
    for part in study_tables.against(contrast):
        screen.print(part)
    print(f"table: {file}")
