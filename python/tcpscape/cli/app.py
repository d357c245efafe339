"""The commands and the registry of what each prints."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from tcpscape.cli import (
    INTERRUPTED,
    STOPPED,
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


class Group(TyperGroup):
    """The commands; Ctrl-C in any of them is one line and status 130."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Runs the command that was asked for."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print(STOPPED, file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="tcpscape", cls=Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="A laboratory for TCP congestion control on impaired paths.",
)
app.command("run")(run.run)
app.command("sweep")(sweep.sweep)
app.command("advise")(advise.advise)
app.command("cliff")(cliff.cliff)
app.command("bound")(bound.bound)
app.add_typer(study.study, name="study")
app.command("compare")(compare.compare)
app.command("export")(export.export)
app.command("report")(report.report)
app.command("validate")(validate.validate)
app.command("doctor")(doctor.doctor)
app.command("version")(lists.version)
app.add_typer(lists.cca, name="cca")
app.add_typer(lists.qdisc, name="qdisc")
app.add_typer(lists.scenario, name="scenario")
app.add_typer(kernel.kernel, name="kernel")
