"""`tcpscape validate`: the same conditions on two engines, and how far they are apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpscape.cli import options, tables
from tcpscape.cli.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from tcpscape.campaign import Progress as Told
    from tcpscape.report.validation import ValidationPage
    from tcpscape.validate.tables import TextTable
    from tcpscape.validate.validation import Explanation, Validation

DEFAULT_OUT = Path("out/validate")
WORST_SHOWN = 10
"""Worst conditions printed."""
MISSED = 1
"""Exit status where a bound of --check is missed."""


def validate(
    engine: Annotated[list[str] | None, typer.Option(help="Twice, A and B: model, model:6.12, virtual:NAME.  [default: model, virtual]")] = None,
    conditions: Annotated[str | None, typer.Option(help="A .csv, or a .yaml or .toml list of scenarios.")] = None,
    random: Annotated[int | None, typer.Option(help="Draw so many conditions, evenly over families and congestion controls.")] = None,
    shared: Annotated[int | None, typer.Option(help="Draw so many bottlenecks shared by two groups of flows, evenly over queues.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of --random and --shared.")] = 0,
    cca: Annotated[str | None, typer.Option(help="Congestion controls to draw or keep: cubic,bbr; all: those that both engines have.")] = None,
    paired: Annotated[bool, typer.Option("--paired", help="Run each path under every one of --cca, and compare the ranks.")] = False,
    against: Annotated[str | None, typer.Option(help="Recorded results as B: STEM of STEM_results.csv, or a directory of validate.")] = None,
    seeds: Annotated[str, typer.Option(help="Runs of each condition: 3, or 20/3 for A and B.")] = "3",
    precision: Annotated[float | None, typer.Option(help="More seeds until the ln ratio's interval is ± this: 0.05.")] = None,
    most_seeds: Annotated[int, typer.Option(min=1, max=10_000, help="Most runs of a condition on a side, with --precision.")] = 24,
    worst: Annotated[int, typer.Option(min=0, max=1000, help="Look into so many of the worst conditions: traces, parting, overlay.")] = 5,
    explain: Annotated[str | None, typer.Option(help="Look into this condition of the validation in --out, and do nothing else.")] = None,
    check: Annotated[str | None, typer.Option(help="Bounds; status 1 where one is missed: median<=0.04,p90<=0.2,p90@each<=0.3.")] = None,
    out: Annotated[Path, typer.Option(help="Directory of the report; what is there already is not run again.")] = DEFAULT_OUT,
    jobs: options.Jobs = 0,
) -> int:
    """Run the same conditions on two engines and report the divergence."""
    from tcpscape.report import validation as pages
    from tcpscape.validate import checks, session, validation

    asked = session.ValidationOptions(
        out, engine or [], against, conditions, random, shared, seed, options.ccas(cca), paired, seeds, precision, most_seeds, jobs
    )
    bounds = checks.read(check) if check else []
    with Progress() as progress:

        def say(what: str) -> Told:
            progress.say(what)
            return progress.update

        if explain:
            done = validation.look_into(session.resume(out, explain, asked), explain, say)
            page = pages.write_explanation(done, out)
        else:
            done = validation.complete(session.prepare(asked), bounds, worst, out, say)
            page = pages.write(done, out)
    screen = tables.console()
    if explain:
        _explained(screen, done.explanations[0])
        print(f"page: {page.file}{_figures(page, out)}")
        return 0
    _print(screen, done)
    print(
        f"report: {page.file}, numbers: {out / session.NUMBERS}, every run: {out / session.RESULTS}\n"
        f"figure: {out / pages.PICTURE}{_figures(page, out)}"
    )
    return 0 if all(c.met for c in done.checked) else MISSED


def _figures(page: ValidationPage, out: Path) -> str:
    return "".join(f"\nfigure: {out / name}" for name in page.pictures.values())


def _print(screen: Console, done: Validation) -> None:
    """The tables of the report, and one line for each condition looked into."""
    from tcpscape.validate import tables as texts
    from tcpscape.validate.compare import worst

    outcome = done.result
    labels = (outcome.a.label, outcome.b.label)
    screen.print(f"[bold]Divergence of {labels[0]} (A) from {labels[1]} (B)[/bold]: {len(outcome.divergences)} conditions, {done.session.source}")
    screen.print(_rich(texts.summary_table(outcome.divergences, bold="")))
    if table := texts.shared_table(outcome.divergences, bold=""):
        screen.print(_rich(table))
    if done.ranks:
        screen.print(_rich(texts.ranks_table(done.ranks)))
    screen.print("\n[bold]The worst conditions[/bold], by the error that scatter does not explain")
    screen.print(_rich(texts.worst_table(worst(outcome.divergences, WORST_SHOWN), labels)))
    for e in done.explanations:
        if e.partings:
            screen.print(f"{e.divergence.condition.id}: {e.partings.text}", markup=False)
    for id, why in outcome.left_out[: texts.MAX_LINES]:
        screen.print(f"left out: {id}: {why}", markup=False)
    for caveat in outcome.caveats[: texts.MAX_LINES]:
        screen.print(f"caveat: {caveat}", markup=False)
    if done.checked:
        screen.print(_rich(texts.checks_table(done.checked)))


def _rich(table: TextTable) -> RichTable:
    return tables.table(table.head, table.rows, table.left)


def _explained(screen: Console, e: Explanation) -> None:
    """One condition: the numbers, when the traces part, the counters."""
    from tcpscape.validate.tables import TextTable

    c = e.divergence
    screen.print(f"[bold]{c.condition.id}[/bold]: {c.condition.describe()} ({c.condition.family})")
    screen.print(f"ln ratio {c.ln.text()}, unexplained {c.unexplained:.2f}, {len(c.a)} and {len(c.b)} runs", markup=False)
    screen.print(_rich(TextTable(("", *e.labels), e.counters())))
    if e.partings:
        screen.print(e.partings.text, markup=False)
        for p in e.partings.partings:
            screen.print(f"  {p.text}", markup=False)
