"""The commands and the registry of what each prints."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from tcpscape.cli import (
    advise,
    bound,
    cliff,
    compare,
    doctor,
    export,
    kernel,
    lists,
    report,
    run,
    study,
    sweep,
    validate,
)
from tcpscape.errors import EXIT_INTERRUPTED, INTERRUPTED

ORDER = (
    "run", "sweep", "study", "advise", "cliff", "bound", "compare", "export", "report", "scenario", "cca", "qdisc", "kernel", "validate", "doctor",
    "version",
)
"""How help lists the commands: what runs something, what reads results, what there is, what checks tcpscape."""


class Group(TyperGroup):
    """The commands in their order; Ctrl-C in any of them is one line and status 130."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Names of the commands in the order of help."""
        return [*ORDER, *(name for name in super().list_commands(ctx) if name not in ORDER)]

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Runs the command that was asked for."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print(INTERRUPTED, file=sys.stderr)
            raise typer.Exit(EXIT_INTERRUPTED) from None


app = typer.Typer(
    name="tcpscape", cls=Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="A laboratory for TCP congestion control on impaired paths.",
)
app.command("run", short_help="A scenario, or a path in tc's own words.")(run.run)
app.command("sweep", short_help="A scenario at every point of some axes.")(sweep.sweep)
app.add_typer(study.study, name="study", short_help="The published studies, run again.")
app.command("advise", short_help="Which congestion control to use on a path.")(advise.advise)
app.command("cliff", short_help="Where a path falls off its cliff.")(cliff.cliff)
app.command("bound", short_help="The latency spike of a drop of rate; runs nothing.")(bound.bound)
app.command("compare", short_help="Whether two results differ.")(compare.compare)
app.command("export", short_help="Results and paths as other tools' files.")(export.export)
app.command("report", short_help="A result directory as one page.")(report.report)
app.add_typer(lists.scenario, name="scenario", short_help="The gallery of scenarios: list | show NAME.")
app.add_typer(lists.cca, name="cca", short_help="Congestion controls: list | show NAME.")
app.add_typer(lists.qdisc, name="qdisc", short_help="Queues and impairments: list | show NAME.")
app.add_typer(kernel.kernel, name="kernel", short_help="Real Linux kernels for the virtual engine.")
app.command("validate", short_help="The same conditions on two engines.")(validate.validate)
app.command("doctor", short_help="What this machine can run, and why not.")(doctor.doctor)
app.command("version", short_help="Versions of tcpscape, its model and its kernel.")(lists.version)
