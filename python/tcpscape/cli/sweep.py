"""`tcpscape sweep`: a campaign, from a file or from options whose values may be lists and ranges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpscape.cli import checks, options, tables
from tcpscape.cli.progress import Progress, resumable
from tcpscape.errors import refuse

if TYPE_CHECKING:
    from tcpscape.campaign.campaign import Campaign
    from tcpscape.campaign.executors.local import Executor
    from tcpscape.campaign.outcome import Outcome
    from tcpscape.store.results import Store

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
    from tcpscape.campaign import executors, source
    from tcpscape.cli import report as reports
    from tcpscape.cli import sweep_tables
    from tcpscape.store.results import Store

    given = context.params
    words = {name: str(given[name]) for name in AXES if given[name] is not None}
    more = _axes(axis or [])
    if twice := sorted(words.keys() & more.keys()):
        refuse("axis", f"{twice[0]} is said by --{twice[0].replace('_', '-')} too", "say it once")
    campaign = source.campaign(what, words | more, _fields(given, cca))
    expected = checks.read(check)
    checks.expect(expected, checks.of_cases(campaign))
    root = out or DEFAULT_OUT / f"sweep-{campaign.name}"
    where = executors.make(executor, jobs)
    with Store(root) as store:
        with resumable(store):
            outcome = _run(campaign, store, where)
        measured = sweep_tables.measure(outcome)
        tables.keep(sweep_tables.frame(outcome, measured), root / TABLE)
        _keep(outcome, root, options.command(context))
    page = reports.write(root) if report else None
    if as_json:
        for line in sweep_tables.lines(outcome, measured):
            print(json.dumps(line, allow_nan=False))
        return checks.settle(expected, checks.conditions({"": outcome}), as_json=True)
    screen = tables.console()
    for part in sweep_tables.parts(outcome, measured):
        screen.print(part)
    print(sweep_tables.reused(outcome, store.saved, root))
    if page:
        print(f"report: {page}")
    checks.settle(expected, checks.conditions({"": outcome}))


def _axes(said: list[str]) -> dict[str, str]:
    """`--axis NAME=VALUES`, as often as said."""
    found: dict[str, str] = {}
    for text in said:
        name, equals, values = text.partition("=")
        if not equals or not name.strip() or name.strip() in found:
            refuse("axis", f"{text!r} is not NAME=VALUES, each name once", "write for example --axis mtu=1500,9000")
        found[name.strip()] = values
    return found


def _fields(given: dict[str, Any], cca: str | None) -> dict[str, Any]:
    """Fields of a campaign from the options that were given."""
    from tcpscape import engines
    from tcpscape.scenario import build

    names = build.names(given["engine"], "engine") if given["engine"] is not None else []
    said = {name: given[name] for name in ("seeds", "precision", "max_seeds", "metric", "samples") if given[name] is not None}
    if names:
        said["engines"] = tuple(names)
    if cca is not None:
        said["cca"] = tuple(options.ccas(cca, engines.make(names[0] if names else "model")))
    return said


def _run(campaign: Campaign, store: Store, executor: Executor) -> Outcome:
    from tcpscape.campaign import execute

    with Progress(campaign.name) as progress:
        return execute.run(campaign, execute.Execution(store=store, progress=progress.update, executor=executor))


def _keep(outcome: Outcome, root: Path, command: str) -> None:
    """The manifest, beside the trials."""
    from tcpscape.campaign import record

    record.save(record.Record("sweep", outcome.name, command, {"": outcome}), root)
