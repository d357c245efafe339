"""`tcpscape report`: a result directory as one page that opens offline, with figures and tables beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tcpscape.cli import checks, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.errors import printable

FORMATS = "svg,png"


@command(examples=("report out/starlink", 'report out/starlink --figures png --check "goodput_mbps.median > 1"'))
def report(
    directory: Annotated[Path, Argument("A directory that run, sweep, advise or study wrote with --out.", complete="results")],
    figures: Annotated[str, Option("Formats of the figures' files: png,svg,pdf.", complete="formats")] = FORMATS,
    check: checks.Checks = (),
) -> None:
    """Write report.html, figures/, tables/ and scenarios/ into a result directory, from what is in it; nothing runs again."""
    from tcpscape.campaign import record

    expected = checks.read(check)
    conditions = checks.conditions(record.load(directory).parts) if expected else []
    checks.expect(expected, [(axes, name) for axes, name, _ in conditions])
    page = write(directory, figures)
    print(f"kept in {printable(str(directory))}: {page.name}, figures/, tables/, scenarios/\nNext: {printable(terminal.to_open(page))}")
    checks.settle(expected, conditions)


def write(directory: Path, figures: str = FORMATS) -> Path:
    """Builds the report of a result directory; returns the page."""
    from tcpscape import plots
    from tcpscape import report as reports
    from tcpscape.campaign import record
    from tcpscape.findings.advice import kept

    formats, loaded = plots.formats(figures, "figures"), record.load(directory)
    return reports.build(loaded, directory, formats, advice=kept.restore(loaded, directory))[0]
