"""`tcpscape validate`: the same conditions on two engines, and how far they are apart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tcpscape.cli import options, terminal
from tcpscape.cli.command import Option, command
from tcpscape.cli.terminal import Progress

if TYPE_CHECKING:
    from rich.console import Console

    from tcpscape.campaign.execute import Progress as Update
    from tcpscape.report.validation import ValidationPage
    from tcpscape.validate.validation import Explanation, Validation, ValidationOptions

DEFAULT_OUT = Path("out/validate")
WORST_SHOWN = 10
"""Worst conditions printed."""
MISSED = 1
"""Exit status where a bound of --check is missed."""


@dataclass(frozen=True)
class ConditionOptions:
    """What is validated: two engines, and the conditions they run."""

    engine: Annotated[tuple[str, ...], Option("Twice, A and B: model, model:6.12, virtual:NAME.  [default: model, virtual]")] = ()
    conditions: Annotated[str | None, Option("A .csv, or a .yaml or .toml list of scenarios.")] = None
    random: Annotated[int | None, Option("Draw so many conditions, evenly over families and congestion controls.")] = None
    shared: Annotated[int | None, Option("Draw so many bottlenecks shared by two groups of flows, evenly over queues.")] = None
    seed: Annotated[int, Option("Of --random and --shared.", least=0)] = 0
    cca: Annotated[str | None, Option("Congestion controls to draw or keep: cubic,bbr; all: those that both engines have.")] = None
    paired: Annotated[bool, Option("Run each path under every one of --cca, and compare the ranks.")] = False
    against: Annotated[str | None, Option("Recorded results as B: STEM of STEM_results.csv, or a directory of validate.")] = None


@dataclass(frozen=True)
class RepetitionOptions:
    """How often each condition runs."""

    seeds: Annotated[str, Option("Runs of each condition: 3, or 20/3 for A and B.")] = "3"
    precision: Annotated[float | None, Option("More seeds until the ln ratio's interval is ± this: 0.05.")] = None
    most_seeds: Annotated[int, Option("Most runs of a condition on a side, with --precision.", least=1, most=10_000)] = 24


@dataclass(frozen=True)
class AnswerOptions:
    """What is printed, checked and kept."""

    worst: Annotated[int, Option("Look into so many of the worst conditions: traces, parting, overlay.", least=0, most=1000)] = 5
    explain: Annotated[str | None, Option("Look into this condition of the validation in --out, and do nothing else.")] = None
    check: Annotated[str | None, Option("Bounds; status 1 where one is missed: median<=0.04,p90<=0.2,p90@each<=0.3.")] = None
    out: Annotated[Path, Option("Directory of the report; what is there already is not run again.")] = DEFAULT_OUT


@command(examples=("validate --random 60 --cca cubic,bbr", "validate --random 12 --engine model --engine mock --out out/mock"))
def validate(conditions: ConditionOptions, repetition: RepetitionOptions, answer: AnswerOptions, jobs: options.Jobs = 0) -> int:
    """Run the same conditions on two engines and report the divergence."""
    from tcpscape.report import validation as pages
    from tcpscape.validate import compare, validation

    out, explain = answer.out, answer.explain
    request = _request(conditions, repetition, out, jobs)
    bounds = compare.read_bounds(answer.check) if answer.check else []
    with Progress(is_open=True) as progress:

        def say(what: str) -> Update:
            progress.say(what)
            return progress.update

        if explain:
            result = validation.look_into(validation.resume(out, explain, request), explain, say)
            page = pages.write_explanation(result, out)
        else:
            result = validation.complete(validation.prepare(request), bounds, answer.worst, out, say)
            page = pages.write(result, out)
    screen = terminal.console()
    if explain:
        _show_explanation(screen, result.explanations[0])
        print(f"page: {page.file}{_figures(page, out)}")
        return 0
    _show(screen, result)
    print(f"report: {page.file}, numbers: {out / validation.NUMBERS}, every run: {out / validation.RESULTS}")
    print(f"figure: {out / pages.PICTURE}{_figures(page, out)}")
    return 0 if all(c.met for c in result.checked) else MISSED


def _request(conditions: ConditionOptions, repetition: RepetitionOptions, out: Path, jobs: int) -> ValidationOptions:
    """The options as the package takes them."""
    from tcpscape.validate.validation import ValidationOptions

    c, r = conditions, repetition
    return ValidationOptions(
        out, c.engine, c.against, c.conditions, c.random, c.shared, c.seed, options.ccas(c.cca), c.paired, r.seeds, r.precision, r.most_seeds, jobs
    )


def _figures(page: ValidationPage, out: Path) -> str:
    return "".join(f"\nfigure: {out / name}" for name in page.pictures.values())


def _show(screen: Console, validation: Validation) -> None:
    """The tables of the report, and one line for each condition looked into."""
    from tcpscape.validate import tables as texts
    from tcpscape.validate.compare import worst

    result = validation.result
    a, b = labels = (result.a.label, result.b.label)
    screen.print(f"[bold]Divergence of {a} (A) from {b} (B)[/bold]: {len(result.divergences)} conditions, {validation.session.source}")
    screen.print(texts.summary_table(result.divergences, bold="").rich())
    if table := texts.shared_table(result.divergences, bold=""):
        screen.print(table.rich())
    if validation.ranks:
        screen.print(texts.ranks_table(validation.ranks).rich())
    screen.print("\n[bold]The worst conditions[/bold], by the error that scatter does not explain")
    screen.print(texts.worst_table(worst(result.divergences, WORST_SHOWN), labels).rich())
    for e in validation.explanations:
        if e.partings:
            screen.print(f"{e.divergence.condition.id}: {e.partings.text}", markup=False)
    for name, why in result.left_out[: texts.MAX_LINES]:
        screen.print(f"left out: {name}: {why}", markup=False)
    for caveat in result.caveats[: texts.MAX_LINES]:
        screen.print(f"caveat: {caveat}", markup=False)
    if validation.checked:
        screen.print(texts.checks_table(validation.checked).rich())


def _show_explanation(screen: Console, e: Explanation) -> None:
    """One condition: the numbers, when the traces part, the counters."""
    from tcpscape.tables import Table

    c = e.divergence
    screen.print(f"[bold]{c.condition.id}[/bold]: {c.condition.describe()} ({c.condition.family})")
    screen.print(f"ln ratio {c.ln.text()}, unexplained {c.unexplained:.2f}, {len(c.a)} and {len(c.b)} runs", markup=False)
    screen.print(Table(("", *e.labels), e.counters()).rich())
    if e.partings:
        screen.print(e.partings.text, markup=False)
        for p in e.partings.partings:
            screen.print(f"  {p.text}", markup=False)
