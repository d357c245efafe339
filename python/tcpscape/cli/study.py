"""`tcpscape study`: the published studies, run again beside their published numbers, and on a second engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape import writing
from tcpscape.cli import checks, options, terminal
from tcpscape.cli.command import Argument, CommandGroup, Option
from tcpscape.cli.terminal import ProgressLine, resumable

if TYPE_CHECKING:
    from tcpscape.campaign.record import Record
    from tcpscape.studies.result import JudgedStudy, Result
    from tcpscape.studies.study import Study

DEFAULT_OUT = Path("out")

study = CommandGroup("study", "The published studies: list | show NAME | run NAME.")
Name = Annotated[str, Argument("A name of `tcpscape study list`.", complete="study")]


@study.subcommand("list", examples=("study list", "study show jitter-cliff"))
def list_() -> None:
    """List the studies."""
    from tcpscape.studies import study as studies
    from tcpscape.text.screen import shown
    from tcpscape.text.table import Table

    every = [studies.get(name) for name in studies.names()]
    rows = [(s.name, s.title, str(sum(p.case_count() for p in s.parts)), str(len(s.claims))) for s in every]
    screen = terminal.console()
    for part in shown(Table(("study", "what it is about", "cells", "claims"), rows, words=("what it is about",), drop=("cells",)), screen.width):
        screen.print(part)


@study.subcommand("show", examples=("study show jitter-cliff", "study run jitter-cliff --quick"))
def show(name: Name, screen: options.ScreenOptions) -> None:
    """Show a study: its parts and conditions, how many claims it checks; with --verbose, every claim and pitfall."""
    from tcpscape.studies import study as studies
    from tcpscape.words import study as answer

    terminal.show(answer.description(studies.get(name)), screen)


@dataclass(frozen=True)
class StudyOptions:
    """Which parts of a study are run, and how often."""

    name: Name
    quick: Annotated[bool, Option("A quick look: few repetitions, seconds instead of minutes.")] = False
    seeds: Annotated[int | None, Option("Trials of each cell instead of the study's own.", least=1)] = None
    part: Annotated[tuple[str, ...], Option("A part of the study alone, and the claims about it. Repeatable.", complete="part")] = ()

    def study(self) -> Study:
        """The whole study, as often as it is to be run."""
        from tcpscape.studies import study as studies

        whole = studies.get(self.name)
        changes: dict[str, Any] = dict(whole.quick) if self.quick else {}
        if self.seeds is not None:
            changes["seeds"] = str(self.seeds)
        return whole.changed(changes) if changes else whole


@dataclass(frozen=True)
class StudyEngines:
    """Where its trials run and are kept."""

    out: Annotated[Path, Option("Keep results in OUT/NAME and resume from there.", complete="directory")] = DEFAULT_OUT
    engine: options.EngineName = "model"
    against: Annotated[str | None, Option("A second engine or kernel: both medians and their ratio, cell by cell.", complete="engine")] = None
    jobs: options.Jobs = 0
    verify: options.Verify = False


@study.subcommand("run", examples=("study run baseline --quick", "study run jitter-cliff --quick --part geo --seeds 2"))
def run(
    chosen: StudyOptions,
    engines: StudyEngines,
    report: Annotated[bool, Option("Write the report, a page that opens offline, beside the results.", name="--report/--no-report")] = True,
    check: checks.Checks = (),
    output: options.ScreenOptions = options.ScreenOptions(),
) -> None:
    """Run a published study under its own conditions: what it finds, and which published claims hold and which do not."""
    from tcpscape.campaign import record
    from tcpscape.campaign.execute import Execution
    from tcpscape.engines import make
    from tcpscape.store.results import Store
    from tcpscape.studies import run as runs
    from tcpscape.words import study as answer

    name, engine, other = chosen.name, engines.engine, engines.against
    study, expected = chosen.study(), checks.read(check)
    parts = study.only(list(chosen.part)) if chosen.part else study
    runnable, left_out = runs.runnable(parts, [make(e) for e in (engine, other) if e])
    ours, whole = (each.changed({"engines": [engine]}) for each in (runnable, study))
    checks.expect(expected, [place for part in ours.parts for place in checks.of_cases(part, part.name)])
    root = engines.out / name
    on_both = runnable.changed({"engines": list(dict.fromkeys(e for e in (engine, other) if e))})
    terminal.prepare(on_both.parts, engines.jobs, verified=engines.verify)
    contrast = None
    with Store(root) as store, resumable(store), ProgressLine(f"{name} on {engine}" + (f" and {other}" if other else "")) as progress:
        record.expect(store, record.STUDY, name, {part.name: part for part in ours.parts}, {engine: make(engine).version})
        execution = Execution(engines.jobs, store, progress.update)
        if other is None:
            result = runs.run(ours, execution)
        else:
            contrast = runs.contrast(runnable, engine, other, execution)
            result = contrast.ours
    judged, files, page = _write(result, result.record(options.typed(), whole), root, report)
    if contrast:
        files.append(root / f"{name}-against.csv")
        writing.whole(files[-1], contrast.frame().write_csv())
    screen = answer.contrast_screen(contrast, judged) if contrast else answer.study_screen(judged)
    kept, next_ = f"kept in {root}: {', '.join(f.name for f in files)}", [terminal.to_open(page)]
    terminal.show(replace(screen, caveats=(*left_out, *screen.caveats), kept=kept, next=next_), output)
    checks.settle(expected, checks.conditions(result.parts), verbose=output.verbose)


def _write(result: Result, manifest: Record, root: Path, report: bool) -> tuple[JudgedStudy, list[Path], Path]:
    """Adds the manifest to the directory and writes table, report and figure of all that the directory holds.

    Returns the judged study that has just run, the files, and the page or picture to look at.
    """
    from tcpscape import plots
    from tcpscape import report as reports
    from tcpscape.campaign import record
    from tcpscape.studies import run as runs

    name = result.study.name
    whole = judged = runs.judge(result)
    if record.save(manifest, root):
        manifest = record.load(root)
        if everything := runs.read(manifest):
            whole = runs.judge(everything)
    table = root / f"{name}.csv"
    writing.whole(table, whole.result.frame().write_csv())
    if report:
        return judged, [table], reports.build(manifest, root, study=whole)[0]
    picture, vector = plots.save_study(whole.result, root / name)
    return judged, [table, vector], picture
