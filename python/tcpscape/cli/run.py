"""`tcpscape run`: a scenario, or a path in tc's own words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpscape.cli import checks, options, tables
from tcpscape.cli.progress import Progress, resumable
from tcpscape.errors import refuse

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell, Outcome
    from tcpscape.trial import Trial

SAMPLES_WITH_OUT = "100ms"
"""Interval of the samples that `--out` keeps when `--samples` does not say another."""


def run(
    context: typer.Context,
    scenario: Annotated[str | None, typer.Argument(help="A .yaml or .toml file or a gallery name; without one, say the path below.")] = None,
    forward: Annotated[str | None, typer.Option(help='tc words at the sender: "netem delay 25ms 8ms distribution normal loss 0.1%"')] = None,
    bottleneck: Annotated[str | None, typer.Option(help='tc words at the router: "tbf rate 10mbit burst 6056 limit 62500"')] = None,
    reverse: Annotated[str | None, typer.Option(help="tc words for the ACKs.")] = None,
    cca: options.Cca = None,
    flows: Annotated[int | None, typer.Option(help="Flows in a trial.")] = None,
    mix: Annotated[str | None, typer.Option(help="A mixture in one trial: cubic*2,bbr*1@5s (CCA[:PARAMETER=VALUE]*COUNT@START-STOP).")] = None,
    rcvbuf: options.Rcvbuf = None,
    sndbuf: options.Sndbuf = None,
    app: options.AppRate = None,
    chunk: options.Chunk = None,
    read: options.Read = None,
    duration: options.Duration = None,
    kernel: options.Kernel = None,
    offload: Annotated[bool | None, typer.Option("--offload/--no-offload", help="TSO/GSO/GRO bursts.  [default: off]")] = None,
    ecn: options.Ecn = None,
    listener: options.Listener = None,
    seeds: options.Seeds = "10",
    samples: Annotated[str | None, typer.Option(help="Keep per-flow samples at this interval (10ms), with --out.")] = None,
    as_json: options.Json = False,
    out: options.Out = None,
    pcap: Annotated[Path | None, typer.Option(help="Write the first trial's packets as pcapng (virtual: pcap, of one more run of it).")] = None,
    engine: options.EngineName = "model",
    jobs: options.Jobs = 0,
    check: checks.Checks = None,
    report: options.Report = False,
) -> None:
    """Run a scenario and print each congestion control's goodput with its interval, and what limited it."""
    from tcpscape import engines
    from tcpscape.campaign import execute, record, source
    from tcpscape.cli import report as reports
    from tcpscape.scenario import files
    from tcpscape.scenario.options import ScenarioOptions, flow_fields
    from tcpscape.store.results import Store

    path = {"forward": forward, "bottleneck": bottleneck, "reverse": reverse}
    flow = flow_fields(rcvbuf=rcvbuf, sndbuf=sndbuf, app=app, chunk=chunk, read=read) | ({"listener": listener} if listener else {})
    chosen = ScenarioOptions(path, flows, mix, flow, {"duration": duration, "kernel": kernel, "offload": offload, "ecn": ecn})
    expected, ccas = checks.read(check), options.ccas(cca, engines.make(engine))
    if scenario is None and chosen.is_empty and not ccas:
        refuse("scenario", "none given", "name a file or a gallery scenario (`tcpscape scenario list`), or say --forward \"netem delay 25ms\"")
    base = chosen.scenario(compared=bool(ccas)) if scenario is None else chosen.over(files.load(scenario), compared=bool(ccas))
    for name, wanted in (("samples", samples), ("report", report)):
        if wanted and not out:
            refuse(name, "there is nowhere to keep them" if name == "samples" else "there is nowhere to write it", "add --out DIR")
    interval = samples or (SAMPLES_WITH_OUT if out else "0s")
    campaign = source.single(base, {
        "cca": ccas, "engines": [engine], "seeds": seeds, "samples": interval, "queue_samples": interval if report else "0s",
        "metrics": [c.metric.name for c in expected],
    })  # fmt: skip
    checks.expect(expected, checks.of_cases(campaign))
    store = Store(out) if out else None
    if store:
        record.expect(store, "run", campaign.name)
    with resumable(store), Progress() as progress:
        outcome = execute.run(campaign, execute.Execution(jobs, store, progress.update))
    if pcap:
        _write_pcap(outcome, pcap)
    page = None
    if out and store:
        store.close()
        record.save(record.Record("run", outcome.name, options.command(context), {"": outcome}), out)
        page = reports.write(out) if report else None
    _show(outcome, as_json)
    if not as_json:
        for line in _places(outcome, out, pcap, page):
            print(line)
    checks.settle(expected, checks.conditions({"": outcome}), as_json=as_json)


def _write_pcap(outcome: Outcome, file: Path) -> None:
    """Writes the packets of the first trial, of one more run of it where the engine cannot repeat one."""
    from tcpscape import engines

    cell = outcome.cells[0]
    engines.make(cell.engine).write_pcap(cell.scenarios[0], cell.trials[0].seed, file)


def _places(outcome: Outcome, out: Path | None, pcap: Path | None, page: Path | None) -> Iterator[str]:
    """Where the results, the packets and the report are."""
    from tcpscape import engines

    if out:
        yield f"kept in {out}, for `tcpscape report`, `compare` and `export`"
    if pcap:
        again = "" if engines.make(outcome.cells[0].engine).repeatable else "one more run of "
        yield f"packets of {again}the first trial: {pcap}"
    if page:
        yield f"report: {page}"


def _show(outcome: Outcome, as_json: bool) -> None:
    """Prints every trial as a line of JSON, or the table with what has to be said about it."""
    if as_json:
        for trial in outcome.trials:
            print(json.dumps(trial.to_dict(), allow_nan=False, default=float))
        return
    screen, cells = tables.console(), outcome.cells
    seconds, count = cells[0].scenarios[0].duration / 1e9, len(cells[0].trials)
    has_marks = any(flow.delivered_ce for trial in outcome.trials for flow in trial.flows)
    marks = ("CE marks",) if has_marks else ()
    columns = ("cca", "flows", "goodput Mbit/s: median [95 %]", "CV", "retransmits", *marks, "RTT p50 ms", "limited by")
    screen.print(f"[bold]{outcome.name}: {seconds:g} s, {count} trial{'s' * (count > 1)} each[/bold]")
    screen.print(tables.table(columns, [row for cell in cells for row in _rows(cell.trials, has_marks=has_marks)]))
    if count > 1:
        for line in _ratios(cells):
            screen.print(line)
    for cell in cells:
        if cost := tables.hook_cost(cell.trials):
            screen.print(cost)
    for caveat in outcome.caveats:
        screen.print(f"caveat: {caveat}")


def _rows(trials: Sequence[Trial], *, has_marks: bool) -> list[tuple[str, ...]]:
    """A row for each congestion control in the trials, its flows summed, and one for all where there are several.

    `has_marks`: with the segments whose delivery was reported with a congestion mark.
    """
    from tcpscape import stats
    from tcpscape.findings.advice import limits
    from tcpscape.stats.estimate import number

    def median(values: Iterable[float]) -> str:
        return number(stats.median([float(v) for v in values]).value)

    rows: list[tuple[str, ...]] = []
    ccas = sorted({flow.cca for flow in trials[0].flows})
    for cca in ccas:
        groups = [[flow for flow in trial.flows if flow.cca == cca] for trial in trials]
        flows = [flow for group in groups for flow in group]
        goodputs = [sum(flow.goodput_mbps for flow in group) for group in groups]
        retransmits = median(sum(flow.retransmits for flow in group) for group in groups)
        marks = [median(sum(flow.delivered_ce or 0 for flow in group) for group in groups)] if has_marks else []
        rtts = [flow.rtt_ms.p50 for flow in flows if flow.rtt_ms.p50 is not None]
        rtt, spread = median(rtts) if rtts else "–", tables.percent(stats.cv(goodputs).value)
        rows.append((cca, str(len(groups[0])), stats.median(goodputs).text(), spread, retransmits, *marks, rtt, tables.shares(limits(flows))))
    if len(ccas) > 1:
        totals = [trial.goodput_mbps for trial in trials]
        spread = tables.percent(stats.cv(totals).value)
        rows.append(("all", str(len(trials[0].flows)), stats.median(totals).text(), spread, *[""] * (3 + has_marks)))
    return rows


def _ratios(cells: Sequence[Cell]) -> Iterator[str]:
    """The paired ratio of each congestion control to the first."""
    for cell in cells[1:]:
        yield f"{cell.cca} / {cells[0].cca}: {cell.over(cells[0]).text()} of the mean goodput, same seeds"
