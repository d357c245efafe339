"""`tcpscape run`: a scenario, or a path in numbers or in tc's own words."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape import names
from tcpscape.cli import checks, options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.cli.terminal import ProgressLine, resumable
from tcpscape.errors import refuse
from tcpscape.scenario.vocabulary import FlowFields, HostFields, PathFields
from tcpscape.units import NUMBER, RATE_UNITS, TIME_UNITS

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Outcome
    from tcpscape.engines import Engine
    from tcpscape.scenario.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class HostOptions:
    """How long the hosts of a scenario send, and how they are set."""

    hosts: HostFields
    offload: Annotated[bool | None, Option("TSO/GSO/GRO bursts.  [default: off]", name="--offload/--no-offload")] = None
    ecn: Annotated[bool | None, Option("Both ends negotiate ECN (net.ipv4.tcp_ecn=1).  [default: off]", name="--ecn/--no-ecn")] = None
    listener: Annotated[
        str | None, Option("Congestion control of listening sockets.  [default: the kernel's, or a sender's that needs ECN]", complete="cca")
    ] = None

    def fields(self) -> dict[str, Any]:
        """The fields of a scenario; `listener` is one of its flows'."""
        return {**self.hosts, "offload": self.offload, "ecn": self.ecn}


@dataclass(frozen=True, kw_only=True)
class RunScenario:
    """The scenario that is run: a file's with what the options change, or one that the options alone make."""

    scenario: Annotated[str | None, Argument("A .yaml or .toml file or a gallery name; without one, say the path below.", complete="scenario")] = None
    conditions: PathFields
    forward: Annotated[str | None, Option('tc words at the sender: "netem delay 25ms 8ms distribution normal loss 0.1%"')] = None
    bottleneck: Annotated[str | None, Option('tc words at the router: "tbf rate 10mbit burst 6056 limit 62500"')] = None
    reverse: Annotated[str | None, Option("tc words for the ACKs.")] = None
    change: Annotated[tuple[str, ...], Option('A change on the way: "bottleneck@8s: rate 20mbit". Repeatable.', metavar="WHERE@TIME: WORDS")] = ()
    cca: options.Cca = None
    flows: Annotated[int | None, options.FLOWS] = None
    mix: options.Mix = None
    network: options.NetworkOptions
    each: FlowFields
    hosts: HostOptions

    def load(self, *, compared: bool) -> Scenario:
        """The scenario; `compared`: its flows will run under several congestion controls, one trial each."""
        from tcpscape.scenario import files
        from tcpscape.scenario.options import ScenarioOptions

        path = {"forward": self.forward, "bottleneck": self.bottleneck, "reverse": self.reverse}
        flow = {**self.each} | ({"listener": self.hosts.listener} if self.hosts.listener else {})
        chosen = ScenarioOptions(
            path, self.flows, self.mix, flow, self.hosts.fields(), self.change, **self.network.fields(), conditions=self.conditions
        )
        if self.scenario is not None:
            if not Path(self.scenario).exists() and (option := _option_of(self.scenario)):
                refuse("scenario", f"'{self.scenario}' is no file and no name of one", f"write {option} {self.scenario}")
            return chosen.over(files.load(self.scenario), compared=compared)
        if chosen.is_empty and not compared:
            fix = "name a file or a gallery scenario (`tcpscape scenario list`), or say its --rtt"
            refuse("scenario", "none given", fix)
        return chosen.scenario(compared=compared)


@dataclass(frozen=True)
class RunResults:
    """How many trials run, and what is kept and printed of them."""

    seeds: Annotated[str, Option("Trials of each condition: 20 (seeds 0…19), 5..9 or 1,4,7.")] = "10"
    samples: Annotated[str | None, Option("Keep samples of flows and queues at this interval (10ms), with --out.")] = None
    as_json: Annotated[bool, options.json_output("One JSON line per trial")] = False
    out: Annotated[Path | None, Option("Keep results here and resume from here.", complete="directory")] = None
    pcap: Annotated[Path | None, Option("Write the first trial's packets as pcapng (virtual: pcap, of one more run of it).", complete="file")] = None
    verify: options.Verify = False


@command(examples=("run --rtt 50ms --jitter 8ms --rate 20mbit --cca cubic,bbr", "run starlink-baseline --cca cubic,bbr --out out/starlink"))
def run(
    scenario: RunScenario,
    results: RunResults,
    runner: options.RunnerOptions,
    output: options.ScreenOptions,
    check: checks.Checks = (),
    report: options.Report = False,
) -> None:
    """Run a scenario and say which congestion control carries most, what it adds to the RTT, and what limits each."""
    from tcpscape import engines
    from tcpscape.campaign import record, source
    from tcpscape.campaign.execute import Execution
    from tcpscape.cli import report as reports
    from tcpscape.store.results import Store
    from tcpscape.words import campaign as answer

    engine, expected = engines.make(runner.engine), checks.read(check)
    ccas = options.ccas(scenario.cca, engine)
    base, out = scenario.load(compared=bool(ccas)), results.out
    if results.samples and not out:
        refuse("samples", "there is nowhere to keep them", "add --out DIR")
    if report and not out:
        refuse("report", "there is nowhere to write it", "add --out DIR")
    interval = results.samples or source.samples(base, kept=out is not None)
    campaign = source.single(
        base,
        {
            "cca": ccas,
            "engines": [runner.engine],
            "seeds": results.seeds,
            "samples": interval,
            "queue_samples": interval if out else "0s",
            "metrics": [c.metric.name for c in expected],
        },
    )
    checks.expect(expected, checks.of_cases(campaign))
    cases = campaign.cases()
    terminal.announce(engine, cases, results.seeds)
    terminal.prepare([campaign], runner.jobs, verified=results.verify)
    with nullcontext() if out is None else Store(out) as store, resumable(store), ProgressLine("run") as progress:
        outcome, holds_more = record.measure("run", campaign, Execution(runner.jobs, store, progress.update), options.typed())
    if results.pcap:
        _write_pcap(engine, outcome, results.pcap)
    page = reports.write(out) if out and report else None
    if results.as_json:
        for trial in outcome.each_trial():
            print(json.dumps(trial.to_dict(), allow_nan=False, default=float))
    else:
        costs = [cost for cell in outcome.cells if (cost := terminal.hook_cost(cell.trials))]
        screen = replace(answer.run_screen(outcome), kept=_kept(engine, results, holds_more), next=_next(results, page))
        terminal.show(replace(screen, remarks=[*screen.remarks, *costs]), output)
    checks.settle(expected, checks.conditions({"": outcome}), as_json=results.as_json, verbose=output.verbose)


def _option_of(text: str) -> str:
    """The option that a quantity is for which stands in place of a scenario, `60ms` for `--rtt`; empty of anything else."""
    quantity = re.fullmatch(rf"{NUMBER}([a-zµ%/]+)", text.lower())
    units = {"--rtt": TIME_UNITS, "--rate": RATE_UNITS, "--loss": ("%",)}
    return next((option for option, known in units.items() if quantity and quantity[1] in known), "")


def _write_pcap(engine: Engine, outcome: Outcome, file: Path) -> None:
    """Writes the packets of the first trial, of one more run of it where the engine cannot repeat one."""
    cell = outcome.cells[0]
    engine.write_pcap(cell.scenarios[0], cell.trials[0].seed, file)


def _kept(engine: Engine, results: RunResults, holds_more: bool) -> str:
    """Where the results and the packets are."""
    again = "" if engine.repeatable else "one more run of "
    kept = [f"kept in {results.out}{terminal.BESIDE * holds_more}, for `tcpscape report`, `compare` and `export`"] if results.out else []
    return "; ".join([*kept, *([f"packets of {again}the first trial: {results.pcap}"] if results.pcap else [])])


def _next(results: RunResults, page: Path | None) -> list[str]:
    """What to do with the results: where they are, or how to keep them."""
    if page:
        return [terminal.to_open(page)]
    if results.out:
        out = names.argument(results.out)
        return [f"tcpscape plot {out} --what cwnd,rtt (over time), tcpscape report {out} (a page)"]
    return ["add --out DIR --report to keep the results and see them on a page"]
