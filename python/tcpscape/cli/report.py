"""`tcpscape report`: a result directory as one page that opens offline, with figures and tables beside it; `plot`: its figures by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tcpscape.cli import checks, options, terminal
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
    checks.settle(expected, conditions, verbose=True)


def write(directory: Path, figures: str = FORMATS) -> Path:
    """Builds the report of a result directory; returns the page."""
    from tcpscape import plots
    from tcpscape import report as reports
    from tcpscape.campaign import record
    from tcpscape.findings.advice import adviser

    formats, loaded = plots.formats(figures, "figures"), record.load(directory)
    return reports.build(loaded, directory, formats, advice=adviser.restore(loaded, directory))[0]


@command(examples=("plot out/starlink --what bars", "plot out/starlink --what cwnd,rtt --cca bbr --formats svg"))
def plot(
    directory: Annotated[Path, Argument("A directory that run, sweep, advise or study wrote with --out.", complete="results")],
    what: Annotated[
        str | None, Option("Figures (bars, curve, strip, cdf, series, …) or cwnd, rtt, queue, …  [default: what fits]", complete="figures")
    ] = None,
    metric: Annotated[
        str | None, Option("Metric of the figures, of `tcpscape metric list`: added_rtt.  [default: the result's]", complete="metric")
    ] = None,
    title: Annotated[str | None, Option("Title of the figures instead of their own.")] = None,
    cca: Annotated[str | None, Option("Only these congestion controls.", complete="ccas")] = None,
    at: options.At = (),
    out: Annotated[
        Path | None, Option("A directory, or a file .png, .svg, .pdf for one figure.  [default: DIRECTORY/plots]", complete="file")
    ] = None,
    formats: Annotated[str, Option("Formats of the files in a directory: png,svg,pdf.", complete="formats")] = "png",
    column: Annotated[bool, Option("As wide as a column of a paper, 3.33 inches; a PDF has its fonts in it.")] = False,
) -> None:
    """Draw figures of a result by name: of the whole, or quantities over time of the trial with the median goodput. Nothing runs again."""
    from tcpscape import plots, writing
    from tcpscape.campaign import record
    from tcpscape.controls import spelling
    from tcpscape.plots import chosen, style

    kinds = plots.formats(formats)
    names = tuple(spelling.parse_names(what, "what")) if what is not None else ()
    request = chosen.PlotRequest(names, tuple(options.ccas(cca)), metric or "", title or "", options.levels(at), style.COLUMN if column else None)
    parts = record.load(directory).parts
    for file in chosen.save(parts, request, out or writing.folder(directory, chosen.FOLDER), kinds):
        print(file)
