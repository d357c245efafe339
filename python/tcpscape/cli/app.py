"""The commands and the registry of what each prints."""

from __future__ import annotations

import typer

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

app = typer.Typer(
    name="tcpscape", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
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
