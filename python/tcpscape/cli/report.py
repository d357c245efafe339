"""`tcpscape report`: a result directory as one page that opens offline, with figures and tables beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcpscape.cli import checks

FORMATS = "svg,png"


def report(
    directory: Annotated[Path, typer.Argument(help="A directory that run, sweep or study wrote with --out.")],
    figures: Annotated[str, typer.Option(help="Formats of the figures' files: png,svg,pdf.")] = FORMATS,
    check: checks.Checks = None,
) -> None:
    """Write report.html, figures/, tables/ and scenarios/ into a result directory, from what is in it; nothing runs again."""
    from tcpscape.campaign import record

    asked = checks.read(check)
    there = checks.conditions(record.load(directory).parts) if asked else []
    checks.expect(asked, [(at, name) for at, name, _ in there])
    print(f"report: {write(directory, figures)}")
    checks.settle(asked, there)


def write(directory: Path, figures: str = FORMATS) -> Path:
    """Builds the report of a result directory; returns the page."""
    from tcpscape import plots
    from tcpscape import report as reports
    from tcpscape.campaign import record

    formats = plots.formats(figures)
    return reports.build(record.load(directory), directory, formats)[0]
