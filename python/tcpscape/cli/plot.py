"""`tcpscape plot`: figures of a result directory, chosen by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tcpscape.cli import options
from tcpscape.cli.command import Argument, Option, command


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
) -> None:
    """Draw figures of a result by name: of the whole, or quantities over time of the trial with the median goodput. Nothing runs again."""
    from tcpscape import plots, writing
    from tcpscape.campaign import record
    from tcpscape.controls import spelling
    from tcpscape.plots import chosen

    kinds = plots.formats(formats)
    names = tuple(spelling.parse_names(what, "what")) if what is not None else ()
    request = chosen.PlotRequest(names, tuple(options.ccas(cca)), metric or "", title or "", options.levels(at))
    parts = record.load(directory).parts
    for file in chosen.save(parts, request, out or writing.folder(directory, chosen.FOLDER), kinds):
        print(file)
