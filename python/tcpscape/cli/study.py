"""`tcpscape study`: the published studies, run again beside their published numbers, and on a second engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape.cli import checks, options, terminal
from tcpscape.cli.command import Argument, CommandGroup, Option
from tcpscape.cli.terminal import Progress, resumable

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell, Outcome
    from tcpscape.campaign.record import Record
    from tcpscape.studies.known import KnownNumber
    from tcpscape.studies.result import Result, StudyRow
    from tcpscape.studies.run import CellPair, Contrast
    from tcpscape.studies.study import Study
    from tcpscape.studies.verdict import JudgedClaim, JudgedStudy

DEFAULT_OUT = Path("out")
MARKS = {"reproduced": "yes", "not reproduced": "no", "not decidable": "open"}
"""How the verdict on a claim is printed."""

study = CommandGroup("study", "The published studies: list | show NAME | run NAME.")
Name = Annotated[str, Argument("A name of `tcpscape study list`.")]


@study.subcommand("list", examples=("study list", "study show jitter-cliff"))
def list_() -> None:
    """List the studies."""
    from tcpscape.studies import study as studies

    every = [studies.get(name) for name in studies.names()]
    rows = [(s.name, str(sum(len(p.cases()) for p in s.parts)), str(len(s.claims)), s.title) for s in every]
    table = terminal.table(("study", "cells", "claims", "what it is about"), rows)
    table.columns[-1].justify = "left"
    terminal.console().print(table)


@study.subcommand("show", examples=("study show jitter-cliff", "study run jitter-cliff --quick"))
def show(name: Name) -> None:
    """Show a study: its conditions, its pitfalls and what it claims."""
    from tcpscape.studies import study as studies

    screen = terminal.console()
    for part in _description(studies.get(name)):
        screen.print(part)


def _description(study: Study) -> Iterator[str]:
    """What a study is: conditions, pitfalls, claims."""
    yield _heading(study)
    for part in study.parts:
        levels = {name: values for group in (part.axes, *part.zip) for name, values in group.items()}
        axes = "; ".join(f"{name} {', '.join(values)}" for name, values in levels.items())
        ccas = f"; cca {', '.join(part.cca)}" if part.cca else ""
        yield f"\n[bold]{part.name}[/bold]: {axes}{ccas}; seeds {part.seeds}" + (f"; pooled over {', '.join(part.pool)}" if part.pool else "")
    for pitfall in study.pitfalls:
        yield f"pitfall: {pitfall}"
    yield "\n[bold]Claims[/bold]"
    for claim in study.claims:
        yield f"  {claim.text}"


def _heading(study: Study) -> str:
    return f"[bold]{study.title}[/bold]\n{study.source}\n{study.about.strip()}"


@dataclass(frozen=True)
class StudyOptions:
    """Which parts of a study are run, and how often."""

    name: Name
    quick: Annotated[bool, Option("A quick look: few repetitions, seconds instead of minutes.")] = False
    seeds: Annotated[int | None, Option("Trials of each cell instead of the study's own.", least=1)] = None
    part: Annotated[tuple[str, ...], Option("A part of the study alone, and the claims about it. Repeatable.")] = ()

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

    out: Annotated[Path, Option("Keep results in OUT/NAME and resume from there.")] = DEFAULT_OUT
    engine: options.EngineName = "model"
    against: Annotated[str | None, Option("A second engine or kernel: both medians and their ratio, cell by cell.")] = None
    jobs: options.Jobs = 0


@study.subcommand("run", examples=("study run baseline --quick", "study run jitter-cliff --quick --part geo --seeds 2"))
def run(
    chosen: StudyOptions,
    engines: StudyEngines,
    report: Annotated[
        bool, Option("Write the report, a page that opens offline, beside the results.", name="--report/--no-report")
    ] = True,
    check: checks.Checks = (),
) -> None:
    """Run a published study under its own conditions; print our numbers beside the published ones, and its claims."""
    from tcpscape.campaign import record
    from tcpscape.campaign.execute import Execution
    from tcpscape.engines import make
    from tcpscape.store.results import Store
    from tcpscape.studies import run as runs

    name, engine, other = chosen.name, engines.engine, engines.against
    study, expected = chosen.study(), checks.read(check)
    parts = study.only(list(chosen.part)) if chosen.part else study
    runnable, left_out = runs.runnable(parts, [make(e) for e in (engine, other) if e])
    ours, whole = (each.changed({"engines": [engine]}) for each in (runnable, study))
    checks.expect(expected, [place for part in ours.parts for place in checks.of_cases(part, part.name)])
    root = engines.out / name
    contrast = None
    with Store(root) as store, resumable(store), Progress(f"{name} on {engine}" + (f" and {other}" if other else "")) as progress:
        record.expect(store, record.STUDY, name, {part.name: part for part in ours.parts}, {engine: make(engine).version})
        execution = Execution(engines.jobs, store, progress.update)
        if other is None:
            result = runs.run(ours, execution)
        else:
            contrast = runs.contrast(runnable, engine, other, execution)
            result = contrast.ours
    _show(result, result.record(options.typed(), whole), root, report)
    if contrast:
        _show_contrast(contrast, root)
    for reason in left_out:
        print(reason)
    checks.settle(expected, checks.conditions(result.parts))


def _show(result: Result, manifest: Record, root: Path, report: bool) -> None:
    """Adds the manifest to the directory and prints what has just run; table, report and figure are of all that the directory holds."""
    from tcpscape import plots
    from tcpscape import report as reports
    from tcpscape.campaign import record
    from tcpscape.studies import run as runs

    name, screen = result.study.name, terminal.console()
    whole = judged = runs.judge(result)
    if record.save(manifest, root):
        manifest = record.load(root)
        if everything := runs.read(manifest):
            whole = runs.judge(everything)
    terminal.keep(whole.result.frame(), root / f"{name}.csv")
    for part in _parts(judged):
        screen.print(part)
    if report:
        print(f"table: {root / name}.csv; report: {reports.build(manifest, root, study=whole)[0]}")
        return
    files = plots.save_study(whole.result, root / name)
    print(f"picture: {files[0]} and {files[1].name}; table: {root / name}.csv")


def _parts(judged: JudgedStudy) -> Iterator[Any]:
    """What is printed of a study: the tables of cells, the claims, the caveats."""
    from tcpscape.studies.verdict import VERDICTS

    result, claims = judged.result, judged.claims
    study = result.study
    versions = next(iter(result.parts.values())).versions
    yield _heading(study)
    yield f"{result.trial_count} runs, engine {', '.join(f'{n} {v}' for n, v in versions.items())}"
    for part, outcome in result.parts.items():
        yield f"\n[bold]{part}[/bold]" if len(result.parts) > 1 else ""
        yield _cells(outcome, [r for r in result.rows if r.part == part])
    yield "\n[bold]What the study claims[/bold]"
    yield terminal.table(("ours say", "claim", "measured"), [(MARKS[j.verdict], j.claim.text, _measured(j)) for j in claims], left=3)
    yield "\n" + ", ".join(f"{sum(j.verdict == v for j in claims)} {v}" for v in VERDICTS)
    for pitfall in study.pitfalls:
        yield f"pitfall: {pitfall}"
    for caveat in result.caveats:
        yield f"caveat: {caveat}"


def _measured(judged: JudgedClaim) -> str:
    """What was measured, and why it differs where that is known."""
    return f"{judged.measured}\n{judged.why}" if judged.why and judged.verdict != "reproduced" else judged.measured


def _cells(outcome: Outcome, rows: Sequence[StudyRow]) -> Any:
    """The table of the cells: our estimate, the published number and their ratio."""
    several = len({(r.metric, r.stat) for r in rows}) > 1
    statistic = ("what",) if several else ()
    unit = "" if several or not rows else f" {rows[0].metric} {rows[0].unit}: {rows[0].stat}"
    has_raw = any(r.raw for r in rows)
    raw = ("raw", "ours/it") if has_raw else ()
    columns = ("cca", *outcome.axes, *statistic, f"ours{unit} [95 %]", "published", "ours/it", *raw)
    lines = [
        (
            *_place(outcome, r.cell), *((f"{r.metric} {r.stat}, {r.unit}",) if several else ()), r.ours.text(),
            *_published(r.ours.value, r.published), *(_published(r.ours.value, r.raw) if has_raw else ()),
        )
        for r in sorted(rows, key=lambda r: _order(outcome, r.cell))
    ]  # fmt: skip
    return terminal.table(columns, lines, left=1 + len(outcome.axes) + several)


def _published(ours: float, known: KnownNumber | None) -> tuple[str, str]:
    """The published number, and ours over it."""
    from tcpscape.stats.estimate import number

    if not known:
        return "", ""
    mark = "" if known.valid else " (invalid)"
    value = number(known.value) + (f"–{number(known.high)}" if known.high is not None else "")
    return value + mark, number(ours / known.value, 2 if ours < known.value else 3) if known.value else "–"


def _order(outcome: Outcome, cell: Cell) -> tuple[int, ...]:
    """One congestion control along the last axis after the other."""
    places = [outcome.levels(axis).index(cell.at[axis]) for axis in outcome.axes]
    return (*places[:-1], outcome.ccas.index(cell.cca), *places[-1:])


def _place(outcome: Outcome, cell: Cell) -> tuple[str, ...]:
    """Which cell it is."""
    return cell.cca, *(cell.at[axis] for axis in outcome.axes)


def _show_contrast(contrast: Contrast, root: Path) -> None:
    """Prints the comparison with the second engine and writes its table."""
    screen, file = terminal.console(), root / f"{contrast.ours.study.name}-against.csv"
    terminal.keep(contrast.frame(), file)
    for part in _contrast_parts(contrast):
        screen.print(part)
    print(f"table: {file}")


def _contrast_parts(contrast: Contrast) -> Iterator[Any]:
    """The table of ratios, the cells that differ, the other engine's caveats."""
    from tcpscape.stats.estimate import number

    labels, pairs = (contrast.ours.label, contrast.other.label), list(contrast.pairs())
    yield f"\n[bold]{labels[0]} against {labels[1]}[/bold]\n{contrast.other.trial_count} more runs on {labels[1]}"
    yield "medians with 95 % intervals; ratio of the two medians, its 95 % interval (runs not paired); * excludes 1\n"
    for part, outcome in contrast.ours.parts.items():
        yield _ratios(outcome, [p for p in pairs if p.part == part], labels)
    differ = sum(p.differs for p in pairs)
    yield f"\n{differ} of {len(pairs)} cells differ; {number(contrast.expected_by_chance(), 2)} would by chance alone if the two were the same"
    for caveat in contrast.other.caveats:
        if caveat not in contrast.ours.caveats:
            yield f"caveat ({labels[1]}): {caveat}"


def _ratios(outcome: Outcome, pairs: Sequence[CellPair], labels: tuple[str, str]) -> Any:
    columns = ("cca", *outcome.axes, "n", *labels, "ratio [95 %]", "")
    ordered = sorted(pairs, key=lambda p: _order(outcome, p.ours))
    rows = [(*_place(outcome, p.ours), str(p.ratio.n), *(m.text() for m in p.medians), p.ratio.text(), _sign(p)) for p in ordered]
    return terminal.table(columns, rows, left=1 + len(outcome.axes))


def _sign(pair: CellPair) -> str:
    return "*" if pair.differs else "same runs" if pair.same else ""
