"""`tcpscape run`: a scenario, or a path in tc's own words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpscape import units
from tcpscape.cli import checks, options, tables
from tcpscape.cli.progress import Progress, resumable
from tcpscape.errors import refuse

if TYPE_CHECKING:
    from rich.console import Console

    from tcpscape.campaign.outcome import Outcome
    from tcpscape.scenario.scenario import Scenario
    from tcpscape.store.results import Store
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
    from tcpscape.campaign import Runner, single
    from tcpscape.scenario import build, files
    from tcpscape.store.results import Store

    path = {"forward": forward, "bottleneck": bottleneck, "reverse": reverse}
    rest = {"duration": duration, "kernel": kernel, "offload": offload, "ecn": ecn}
    flow = options.flow_fields(rcvbuf, sndbuf, app, chunk, read) | ({"listener": listener} if listener else {})
    made, asked = engines.make(engine), checks.read(check)
    if scenario is not None:
        cases = _from_file(files.load(scenario), path, rest, flow, flows, mix, options.ccas(cca, made))
    else:
        cases = _from_words(path, rest, flow, flows or 1, mix, options.ccas(cca, made), given=flows is not None)
    checks.expect(asked, [({"cca": case.cca}, case.cca) for case in cases])
    interval = units.parse_time(samples or (SAMPLES_WITH_OUT if out else 0), "samples", example="10ms")
    if samples and not out:
        refuse("samples", "there is nowhere to keep them", "add --out DIR")
    if report and not out:
        refuse("report", "there is nowhere to write it", "add --out DIR")
    store = Store(out) if out else None
    kept = checks.capture(asked, interval)
    kept = replace(kept, queue_samples_ns=kept.queue_samples_ns or interval) if report else kept
    with resumable(store), Progress() as progress:
        runner = Runner(made, jobs, kept, store, progress.update)
        groups = runner.run_all([(case, build.seeds(seeds)) for case in cases])
    if pcap:
        runner.engine.write_pcap(cases[0], groups[0][0].seed, pcap)
    if store:
        store.close()
    page = _keep(single.outcome(cases, groups, made, seeds, kept), out, options.command(context), report) if out else None
    _show(groups, cases, as_json)
    _say_where(store, pcap, as_json, "the first trial" if runner.engine.repeatable else "one more run of the first trial")
    if page and not as_json:
        print(f"report: {page}")
    checks.settle(asked, [({"cca": case.cca}, case.cca, trials) for case, trials in zip(cases, groups, strict=True)], as_json=as_json)


def _keep(outcome: Outcome, out: Path, command: str, report: bool) -> Path | None:
    """Writes the manifest beside the trials, and the report if there is to be one; returns its page."""
    from tcpscape.campaign import record
    from tcpscape.cli import report as reports

    record.save(record.Record("run", outcome.name, command, {"": outcome}), out)
    return reports.write(out) if report else None


def _from_words(
    path: dict[str, Any], rest: dict[str, Any], flow: dict[str, Any], flows: int, mix: str | None, ccas: list[str], *, given: bool
) -> list[Scenario]:
    """One scenario for each congestion control, or one for the mixture."""
    from tcpscape.scenario import build

    if not any(path.values()) and not any(flow.values()) and not mix and not ccas:
        refuse("scenario", "none given", "name a file or a gallery scenario (`tcpscape scenario list`), or say --forward \"netem delay 25ms\"")
    if mix:
        if ccas or given:
            refuse("mix", "it says congestion controls and counts itself", "leave out --cca and --flows")
        return [build.scenario(path, mixture=mix, flow=flow, **rest)]
    return [build.scenario(path, flows=flows, cca=name, flow=flow, **rest) for name in ccas or ["cubic"]]


def _from_file(
    base: Scenario, path: dict[str, Any], rest: dict[str, Any], flow: dict[str, Any], flows: int | None, mix: str | None, ccas: list[str]
) -> list[Scenario]:
    """The file's scenario with what the options change."""
    from tcpscape import api
    from tcpscape.scenario import build
    from tcpscape.scenario.scenario import Scenario

    data = base.to_dict() | {k: v for k, v in (path | rest).items() if v is not None}
    said = [f.model_dump(mode="json", exclude_defaults=True) for f in base.flows]
    if mix:
        if ccas or flows:
            refuse("mix", "it says congestion controls and counts itself", "leave out --cca and --flows")
        said = [{**said[0], **one} for one in build.mix(mix)]
    if flows is not None:
        if len(said) > 1:
            refuse("flows", f"{base.name} says its own {len(said)} groups of flows", "leave out --flows, or use --mix")
        said = [{**said[0], "count": flows}]
    data["flows"] = [{**one, **flow} for one in said]
    return api.variants(Scenario.of(data, base.name), ccas)


def _show(groups: Sequence[Sequence[Trial]], cases: Sequence[Scenario], as_json: bool) -> None:
    if as_json:
        for trials in groups:
            for trial in trials:
                print(json.dumps(trial.to_dict(), allow_nan=False, default=float))
        return
    screen = tables.console()
    marks = any(f.delivered_ce for trials in groups for t in trials for f in t.flows)
    rows = [row for trials in groups for row in _rows(trials, marks=marks)]
    marked = ("CE marks",) if marks else ()
    columns = ("cca", "flows", "goodput Mbit/s: median [95 %]", "CV", "retransmits", *marked, "RTT p50 ms", "limited by")
    many = len(groups[0])
    screen.print(f"[bold]{cases[0].name}: {cases[0].duration / 1e9:g} s, {many} trial{'s' * (many > 1)} each[/bold]")
    screen.print(tables.table(columns, rows))
    if many > 1 and len(groups) > 1:
        _compare(screen, groups)
    for trials in groups:
        if said := tables.hook_cost(trials):
            screen.print(said)
    for caveat in sorted({c for trials in groups for t in trials for c in t.caveats}):
        screen.print(f"caveat: {caveat}")


def _rows(trials: Sequence[Trial], *, marks: bool) -> list[tuple[str, ...]]:
    """A row for each congestion control in the trials, its flows summed, and one for all where there are several.

    `marks`: with the segments whose delivery was reported with a congestion mark.
    """
    from tcpscape import stats
    from tcpscape.findings.advice import limits
    from tcpscape.stats.estimate import number

    rows: list[tuple[str, ...]] = []
    names = sorted({f.cca for f in trials[0].flows})
    for name in names:
        mine = [[f for f in t.flows if f.cca == name] for t in trials]
        goodputs = [sum(f.goodput_mbps for f in some) for some in mine]
        resent = stats.median([float(sum(f.retransmits for f in some)) for some in mine])
        marked = [number(stats.median([float(sum(f.delivered_ce or 0 for f in some)) for some in mine]).value)] if marks else []
        rtts = [f.rtt_ms.p50 for some in mine for f in some if f.rtt_ms.p50 is not None]
        held = tables.shares(limits([f for some in mine for f in some]))
        rtt = number(stats.median(rtts).value) if rtts else "–"
        spread = tables.percent(stats.cv(goodputs).value)
        rows.append((name, str(len(mine[0])), stats.median(goodputs).text(), spread, number(resent.value), *marked, rtt, held))
    if len(names) > 1:
        total = [t.goodput_mbps for t in trials]
        rows.append(("all", str(len(trials[0].flows)), stats.median(total).text(), tables.percent(stats.cv(total).value), *[""] * (3 + marks)))
    return rows


def _compare(screen: Console, groups: Sequence[Sequence[Trial]]) -> None:
    """The paired ratio of each congestion control to the first."""
    from tcpscape import stats

    first = [t.goodput_mbps for t in groups[0]]
    for trials in groups[1:]:
        got = stats.ratio([t.goodput_mbps for t in trials], first)
        screen.print(f"{trials[0].cca} / {groups[0][0].cca}: {got.text()} of the mean goodput, same seeds")


def _say_where(store: Store | None, pcap: Path | None, as_json: bool, whose: str) -> None:
    if as_json:
        return
    if store:
        print(f"kept in {store.root}, for `tcpscape report`, `compare` and `export`")
    if pcap:
        print(f"packets of {whose}: {pcap}")
