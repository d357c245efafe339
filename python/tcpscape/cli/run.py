"""`tcpscape run`: a scenario, or a path in tc's own words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape.cli import checks, options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.cli.terminal import Progress, resumable
from tcpscape.errors import refuse

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell, Outcome
    from tcpscape.engines import Engine
    from tcpscape.scenario.scenario import Scenario
    from tcpscape.trial import Trial



@dataclass(frozen=True)
class HostOptions(options.TrialOptions):
    """How long the hosts of a scenario send, and how they are set."""

    offload: Annotated[bool | None, Option("TSO/GSO/GRO bursts.  [default: off]", name="--offload/--no-offload")] = None
    ecn: Annotated[bool | None, Option("Both ends negotiate ECN (net.ipv4.tcp_ecn=1).  [default: off]", name="--ecn/--no-ecn")] = None
    listener: Annotated[str | None, Option("Congestion control of listening sockets.  [default: the kernel's, or a sender's that needs ECN]")] = None

    def fields(self) -> dict[str, Any]:
        """The fields of a scenario; `listener` is one of its flows'."""
        return {**super().fields(), "offload": self.offload, "ecn": self.ecn}


@dataclass(frozen=True, kw_only=True)
class RunScenario:
    """The scenario that is run: a file's with what the options change, or one that the options alone make."""

    scenario: Annotated[str | None, Argument("A .yaml or .toml file or a gallery name; without one, say the path below.")] = None
    forward: Annotated[str | None, Option('tc words at the sender: "netem delay 25ms 8ms distribution normal loss 0.1%"')] = None
    bottleneck: Annotated[str | None, Option('tc words at the router: "tbf rate 10mbit burst 6056 limit 62500"')] = None
    reverse: Annotated[str | None, Option("tc words for the ACKs.")] = None
    cca: options.Cca = None
    flows: Annotated[int | None, options.FLOWS] = None
    mix: Annotated[str | None, Option("A mixture in one trial: cubic*2,bbr*1@5s (CCA[:PARAMETER=VALUE]*COUNT@START-STOP).")] = None
    each: options.FlowOptions
    hosts: HostOptions

    def load(self, *, compared: bool) -> Scenario:
        """The scenario; `compared`: its flows will run under several congestion controls, one trial each."""
        from tcpscape.scenario import files
        from tcpscape.scenario.options import ScenarioOptions

        path = {"forward": self.forward, "bottleneck": self.bottleneck, "reverse": self.reverse}
        flow = self.each.fields() | ({"listener": self.hosts.listener} if self.hosts.listener else {})
        chosen = ScenarioOptions(path, self.flows, self.mix, flow, self.hosts.fields())
        if self.scenario is not None:
            return chosen.over(files.load(self.scenario), compared=compared)
        if chosen.is_empty and not compared:
            fix = 'name a file or a gallery scenario (`tcpscape scenario list`), or say --forward "netem delay 25ms"'
            refuse("scenario", "none given", fix)
        return chosen.scenario(compared=compared)


@dataclass(frozen=True)
class RunResults:
    """How many trials run, and what is kept and printed of them."""

    seeds: Annotated[str, Option("Trials of each condition: 20 (seeds 0…19), 5..9 or 1,4,7.")] = "10"
    samples: Annotated[str | None, Option("Keep per-flow samples at this interval (10ms), with --out.")] = None
    as_json: Annotated[bool, options.json_output("One JSON line per trial")] = False
    out: Annotated[Path | None, Option("Keep results here and resume from here.")] = None
    pcap: Annotated[Path | None, Option("Write the first trial's packets as pcapng (virtual: pcap, of one more run of it).")] = None


@command(
    examples=(
        "run starlink-baseline --cca cubic,bbr --out out/starlink",
        'run --forward "netem delay 25ms loss 0.5%"\n--reverse "netem delay 25ms" --cca cubic,bbr\n'
        '--bottleneck "tbf rate 10mbit burst 6056 limit 62500"',
    ),
)
def run(
    scenario: RunScenario, results: RunResults, runner: options.RunnerOptions, check: checks.Checks = (), report: options.Report = False
) -> None:
    """Run a scenario and print each congestion control's goodput with its interval, and what limited it."""
    from tcpscape import engines
    from tcpscape.campaign import record, source
    from tcpscape.campaign.execute import Execution
    from tcpscape.cli import report as reports
    from tcpscape.store.results import Store

    engine, expected = engines.make(runner.engine), checks.read(check)
    ccas = options.ccas(scenario.cca, engine)
    base, out = scenario.load(compared=bool(ccas)), results.out
    if results.samples and not out:
        refuse("samples", "there is nowhere to keep them", "add --out DIR")
    if report and not out:
        refuse("report", "there is nowhere to write it", "add --out DIR")
    interval = results.samples or (source.SAMPLES_WITH_OUT if out else "0s")
    campaign = source.single(base, {
        "cca": ccas, "engines": [runner.engine], "seeds": results.seeds, "samples": interval, "queue_samples": interval if report else "0s",
        "metrics": [c.metric.name for c in expected],
    })  # fmt: skip
    checks.expect(expected, checks.of_cases(campaign))
    with nullcontext() if out is None else Store(out) as store, resumable(store), Progress() as progress:
        outcome, _ = record.measure("run", campaign, Execution(runner.jobs, store, progress.update), options.typed())
    if results.pcap:
        _write_pcap(engine, outcome, results.pcap)
    page = reports.write(out) if out and report else None
    _show(outcome, results.as_json)
    if not results.as_json:
        for line in _places(engine, out, results.pcap, page):
            print(line)
    checks.settle(expected, checks.conditions({"": outcome}), as_json=results.as_json)


def _write_pcap(engine: Engine, outcome: Outcome, file: Path) -> None:
    """Writes the packets of the first trial, of one more run of it where the engine cannot repeat one."""
    cell = outcome.cells[0]
    engine.write_pcap(cell.scenarios[0], cell.trials[0].seed, file)


def _places(engine: Engine, out: Path | None, pcap: Path | None, page: Path | None) -> Iterator[str]:
    """Where the results, the packets and the report are."""
    if out:
        yield f"kept in {out}, for `tcpscape report`, `compare` and `export`"
    if pcap:
        again = "" if engine.repeatable else "one more run of "
        yield f"packets of {again}the first trial: {pcap}"
    if page:
        yield f"report: {page}"


def _show(outcome: Outcome, as_json: bool) -> None:
    """Prints every trial as a line of JSON, or the table with what has to be said about it."""
    if as_json:
        for trial in outcome.trials:
            print(json.dumps(trial.to_dict(), allow_nan=False, default=float))
        return
    screen, cells = terminal.console(), outcome.cells
    seconds, count = cells[0].scenarios[0].duration / 1e9, len(cells[0].trials)
    has_marks = any(flow.delivered_ce for trial in outcome.trials for flow in trial.flows)
    marks = ("CE marks",) if has_marks else ()
    columns = ("cca", "flows", "goodput Mbit/s: median [95 %]", "CV", "retransmits", *marks, "RTT p50 ms", "limited by")
    screen.print(f"[bold]{outcome.name}: {seconds:g} s, {count} trial{'s' * (count > 1)} each[/bold]")
    screen.print(terminal.table(columns, [row for cell in cells for row in _rows(cell.trials, has_marks=has_marks)]))
    if count > 1:
        for line in _ratios(cells):
            screen.print(line)
    for cell in cells:
        if cost := terminal.hook_cost(cell.trials):
            screen.print(cost)
    for caveat in dict.fromkeys((*outcome.caveats, *(e.caveat for cell in cells for e in [cell.median()] if e.caveat))):
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
        rtt, spread = median(rtts) if rtts else "–", terminal.percent(stats.cv(goodputs).value)
        rows.append((cca, str(len(groups[0])), stats.median(goodputs).text(), spread, retransmits, *marks, rtt, terminal.shares(limits(flows))))
    if len(ccas) > 1:
        totals = [trial.goodput_mbps for trial in trials]
        spread = terminal.percent(stats.cv(totals).value)
        rows.append(("all", str(len(trials[0].flows)), stats.median(totals).text(), spread, *[""] * (3 + has_marks)))
    return rows


def _ratios(cells: Sequence[Cell]) -> Iterator[str]:
    """The paired ratio of each congestion control to the first."""
    for cell in cells[1:]:
        yield f"{cell.cca} / {cells[0].cca}: {cell.over(cells[0]).text()} of the mean goodput, same seeds"
