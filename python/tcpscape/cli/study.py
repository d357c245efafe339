"""`tcpscape study`: a published study run again, beside its published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcpscape import build, engines
from tcpscape.campaign import Runner
from tcpscape.cli import options, tables
from tcpscape.cli.progress import Progress

DEFAULT_OUT = Path("out")


def study(
    name: Annotated[str, typer.Argument(help="jitter-cliff or loss-tolerance.")],
    quick: Annotated[bool, typer.Option("--quick", help="Two repetitions instead of the study's own.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, max=build.MAX_SEEDS, help="Repetitions for each rate instead of the study's own.")] = None,
    out: Annotated[Path, typer.Option(help="Directory for the table and the picture.")] = DEFAULT_OUT,
    resume: Annotated[bool, typer.Option("--resume", help="Keep each trial in --out and resume from there.")] = False,
    engine: options.EngineName = "model",
    jobs: options.Jobs = 0,
) -> None:
    """Run a published study under its own conditions; print our numbers beside the published and raw ones, and its claims."""
    from tcpscape import plots, studies
    from tcpscape.results import Store
    from tcpscape.studies import claims
    from tcpscape.studies import run as runs

    said = studies.get(name)
    store = Store(out / f"{name}-trials") if resume else None
    with Progress(name) as progress:
        runner = Runner(engines.make(engine), jobs, store=store, progress=progress.update)
        outcome = runs.run(said, runner, repeats=seeds or (runs.QUICK_REPEATS if quick else None))
    files = plots.retention(outcome, out / name)
    outcome.frame().write_csv(out / f"{name}.csv")
    _print(outcome, claims.judge(outcome))
    print(f"picture: {files[0]} and {files[1].name}; table: {out / name}.csv")


def _print(outcome: object, judged: object) -> None:
    from tcpscape.cli import study_tables

    screen = tables.console()
    for part in study_tables.parts(outcome, judged):  # type: ignore[arg-type]
        screen.print(part)
