"""`tcpscape sweep`: a campaign, from a file or from options whose values may be lists and ranges."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpscape.cli import checks, options, tables
from tcpscape.cli.progress import Progress, resumable
from tcpscape.errors import refuse

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.campaign.outcome import CellSummary, Outcome
    from tcpscape.campaign.record import Record

DEFAULT_OUT = Path("out")
TABLE = "cells.csv"
"""The table's name in the directory of results."""


AXES = (
    "rtt", "jitter", "loss", "rate", "buffer", "order", "distribution", "jitter_on", "loss_on",
    "flows", "app", "rcvbuf", "sndbuf", "read", "duration",
)
"""Options that may be an axis."""


def sweep(
    context: typer.Context,
    what: Annotated[str | None, typer.Argument(metavar="FILE", help="A campaign (.yaml, .toml; buffers, jitter, step) or a scenario.")] = None,
    rtt: Annotated[str | None, typer.Option(help="Round-trip time.")] = None,
    jitter: Annotated[str | None, typer.Option(help="Spread of each one-way delay (normal: standard deviation).")] = None,
    loss: Annotated[str | None, typer.Option(help="Random loss of each direction: 0.1%.")] = None,
    rate: Annotated[str | None, typer.Option(help="Rate of the bottleneck; none is no limit.")] = None,
    buffer: Annotated[str | None, typer.Option(help="Buffer of the bottleneck, with --rate: 64KB or 2bdp.")] = None,
    order: Annotated[str | None, typer.Option(help="What jitter does to the order: reorder, clamp, correlated.")] = None,
    distribution: Annotated[str | None, typer.Option(help="Of the jitter: normal, uniform, pareto, paretonormal.")] = None,
    jitter_on: Annotated[str | None, typer.Option(help="Where jitter is: both, forward, reverse.")] = None,
    loss_on: Annotated[str | None, typer.Option(help="Where loss is: both, forward, reverse.")] = None,
    flows: Annotated[str | None, typer.Option(help="Flows in a trial.")] = None,
    app: Annotated[str | None, typer.Option(help="Application's rate (1MB/s, 10mbit); 0 or none is as fast as it can.")] = None,
    rcvbuf: Annotated[str | None, typer.Option(help="SO_RCVBUF argument; 0 is autotuned.")] = None,
    sndbuf: Annotated[str | None, typer.Option(help="SO_SNDBUF argument; 0 is autotuned.")] = None,
    read: Annotated[str | None, typer.Option(help="Receiver's reads: 16KiB/1ms sleeps 1 ms before each.")] = None,
    duration: Annotated[str | None, typer.Option(help="How long to watch.")] = None,
    axis: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUES", help="Any other field of a scenario or flow, or ${NAME} in it.")] = None,
    cca: options.Cca = None,
    engine: Annotated[str | None, typer.Option(help="Engines: model, virtual[:KERNEL], mock; several to compare.  [default: model]")] = None,
    seeds: Annotated[str | None, typer.Option(help="Trials of each cell: 20 (seeds 0…19), 5..9 or 1,4,7.  [default: 10]")] = None,
    precision: Annotated[str | None, typer.Option(help="Repeat each cell until the interval is ± this of its value: 5%.")] = None,
    max_seeds: Annotated[int | None, typer.Option(min=5, help="Most trials of a cell with --precision.  [default: 200]")] = None,
    metric: Annotated[str | None, typer.Option(help="What is shown, and what --precision is about: goodput, rtt_p95, share:bbr, …")] = None,
    samples: Annotated[str | None, typer.Option(help="Keep per-flow samples at this interval (100ms).")] = None,
    out: Annotated[Path | None, typer.Option(help="Keep results here and resume from here.  [default: out/sweep-NAME]")] = None,
    executor: Annotated[str, typer.Option(help="Where trials run: local, or dask://HOST:PORT.")] = "local",
    jobs: options.Jobs = 0,
    report: options.Report = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per cell and nothing else on stdout.")] = False,
    check: checks.Checks = None,
) -> None:
    """Run a scenario at every point of some axes, for each congestion control, and print a row for each cell with its interval.

    A condition is one value, a list (24,50,100ms) or a range (0..24ms/4ms, 1..100mbit/x10): several values make an axis.
    Results are kept: a sweep that was interrupted or killed goes on with the same command, one that is repeated runs nothing.
    """
    from tcpscape.campaign import execute, executors, record, source
    from tcpscape.cli import report as reports
    from tcpscape.store.results import Store

    given = context.params
    fields = {name: str(given[name]) for name in AXES if given[name] is not None}
    others = _axes(axis or [])
    if twice := sorted(fields.keys() & others.keys()):
        refuse("axis", f"{twice[0]} is said by --{twice[0].replace('_', '-')} too", "say it once")
    campaign = source.campaign(what, fields | others, _campaign_fields(given, cca))
    expected = checks.read(check)
    checks.expect(expected, checks.of_cases(campaign))
    root = out or DEFAULT_OUT / f"sweep-{campaign.name}"
    place = executors.make(executor, jobs)
    with Store(root) as store:
        record.expect(store, "sweep", campaign.name)
        with resumable(store), Progress(campaign.name) as progress:
            outcome = execute.run(campaign, execute.Execution(store=store, progress=progress.update, executor=place))
    cells = outcome.summaries()
    kept = record.Record("sweep", outcome.name, options.command(context), {"": outcome})
    if record.save(kept, root):
        kept = record.load(root)
    tables.keep(_whole_frame(kept, outcome, cells), root / TABLE)
    page = reports.write(root) if report else None
    if as_json:
        for line in _lines(outcome, cells):
            print(json.dumps(line, allow_nan=False))
    else:
        tables.show(outcome.table(cells))
        print(_count(outcome, store.saved, root))
        if page:
            print(f"report: {page}")
    checks.settle(expected, checks.conditions({"": outcome}), as_json=as_json)


def _axes(texts: list[str]) -> dict[str, str]:
    """`--axis NAME=VALUES`, as often as it is given."""
    axes: dict[str, str] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.strip() or name.strip() in axes:
            refuse("axis", f"{text!r} is not NAME=VALUES, each name once", "write for example --axis mtu=1500,9000")
        axes[name.strip()] = values
    return axes


def _campaign_fields(given: dict[str, Any], cca: str | None) -> dict[str, Any]:
    """Fields of a campaign from the options that were given."""
    from tcpscape import engines
    from tcpscape.controls import spelling

    names = spelling.parse_names(given["engine"], "engine") if given["engine"] is not None else []
    fields = {name: given[name] for name in ("seeds", "precision", "max_seeds", "metric", "samples") if given[name] is not None}
    if names:
        fields["engines"] = tuple(names)
    if cca is not None:
        fields["cca"] = tuple(options.ccas(cca, engines.make(names[0] if names else "model")))
    return fields


def _lines(outcome: Outcome, cells: Sequence[CellSummary]) -> Iterator[dict[str, Any]]:
    """A line of `--json` for each cell; what is not finite is null."""
    for s in cells:
        caveats = {c for t in s.cell.trials for c in t.caveats} | ({s.median.caveat} - {""})
        yield {
            "name": outcome.name, "engine": s.cell.engine, "version": outcome.versions[s.cell.engine], "at": dict(s.cell.at), "cca": s.cell.cca,
            "metric": outcome.campaign.metric, "unit": s.median.unit, "n": len(s.cell.trials), "median": s.median.plain(), "cv": s.cv.plain(),
            "reached": s.is_precise, "caveats": sorted(caveats),
        }


def _frame(outcome: Outcome, cells: Sequence[CellSummary]) -> pl.DataFrame:
    """The same as a table."""
    import polars as pl

    rows = []
    for line in _lines(outcome, cells):
        row = {k: line[k] for k in ("engine", "version")} | line["at"] | {k: line[k] for k in ("cca", "metric", "unit", "n")}
        for name in ("median", "cv"):
            row |= {name: line[name]["value"], f"{name}_low": line[name]["low"], f"{name}_high": line[name]["high"]}
        rows.append(row | {"reached": line["reached"]})
    return pl.DataFrame(rows, infer_schema_length=None)


def _whole_frame(kept: Record, outcome: Outcome, cells: Sequence[CellSummary]) -> pl.DataFrame:
    """The same of every campaign of a directory, `kept`; `outcome` with its cells is the one that has just run."""
    import polars as pl

    frames = {part: _frame(each, cells if each is outcome else each.summaries()) for part, each in kept.parts.items()}
    if len(frames) == 1:
        return next(iter(frames.values()))
    return pl.concat([frame.select(pl.lit(part).alias("campaign"), pl.all()) for part, frame in frames.items()], how="diagonal_relaxed")


def _count(outcome: Outcome, ran: int, root: Path) -> str:
    """How many trials ran, how many were kept already, and where all of them are."""
    every = len({t.address for cell in outcome.cells for t in cell.trials})
    if not ran:
        return f"nothing ran: {f'all {every} trials were' if every > 1 else 'the trial was'} kept in {root}"
    before = f", {every - ran} were kept already" if every > ran else ""
    return f"{every} trial{'s' * (every > 1)}: {ran} ran{before}; kept in {root}"
