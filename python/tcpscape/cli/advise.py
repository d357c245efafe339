"""`tcpscape advise`: which congestion control to use on a path, how certain that is, and what to type."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape.cli import checks, options, terminal
from tcpscape.cli.command import Option, command
from tcpscape.cli.terminal import ProgressLine, resumable
from tcpscape.errors import refuse
from tcpscape.scenario.vocabulary import FlowFields, HostFields, PathFields

if TYPE_CHECKING:
    from tcpscape.findings.advice.answer import Advice

From = Annotated[
    Path | None, Option("Path of a measurement or scenario: ping's output, iperf3, Flent, YAML, a result directory.", complete="file", name="--from")
]
Wish = Annotated[
    str | None,
    Option(
        "goodput, delay (least added RTT with half of the goodput), video, or calls (what an upload does to a call, with --upload).  "
        "[default: goodput, video with --player, calls with --upload]",
        complete="goodput|delay|video|calls",
    ),
]

DEFAULT_CCAS, CALLS_CCAS = "cubic,bbr,reno", "cubic,bbr"
"""Congestion controls that are compared; those of uploads beside a call."""


class AdvisedPath(PathFields, total=False):
    """The path, also as ping sees it."""

    rtt_jitter: Annotated[str, Option("Instead of --jitter, standard deviation of the round trip: ping's mdev.")]
    rtt_loss: Annotated[str, Option("Instead of --loss, loss of the round trip: ping's packet loss.")]


@dataclass(frozen=True, kw_only=True)
class AdvisedCalls:
    """A home's link, where the question is what an upload does to a call."""

    upload: Annotated[str | None, Option("Rate of the way up, --rate being the way down: which queue and control keep calls good.")] = None
    router: Annotated[str | None, Option("The router of a home, for what to type: linux, openwrt.  [default: linux]", complete="linux|openwrt")] = (
        None
    )
    device: Annotated[str | None, Option("Its device towards the modem: wan, pppoe-wan, eth0.  [default: wan on OpenWrt, otherwise eth0]")] = None
    link: Annotated[
        str | None, Option("The home's link, for what each packet takes on it: vdsl, adsl, cable, fibre.", complete="vdsl|adsl|cable|fibre")
    ] = None


@dataclass(frozen=True, kw_only=True)
class AdvisedFlows:
    """The flows on the path, and what they are for."""

    cca: options.CcaNames = DEFAULT_CCAS
    goal: Wish = None
    flows: Annotated[int | None, Option("Flows that share the path, all under the same congestion control.  [default: 1]")] = None
    own_queue: Annotated[bool, Option("The bottleneck's queue is yours, on a router for example: fq_codel and cake are tried there.")] = False
    each: FlowFields


@dataclass(frozen=True, kw_only=True)
class AdvisedTrials:
    """The trials of each congestion control."""

    hosts: HostFields
    seeds: Annotated[
        str | None, Option("Trials of each congestion control: 20, 5..9, 1,4,7.  [default: 20, fewer on fast paths or where 5 agree]")
    ] = None


@dataclass(frozen=True)
class AdviceOutput:
    """What is made of the results."""

    out: Annotated[Path | None, Option("Keep results here and resume from here.", complete="directory")] = None
    report: options.Report = False
    check: checks.Checks = ()
    as_json: Annotated[bool, options.json_output("One JSON line with the answer")] = False


@command(
    examples=("advise --rtt 60ms --rtt-jitter 15ms --rtt-loss 0.5%\n--rate 25mbit", "advise --goal calls --rate 20mbit --upload 5mbit\n--rtt 30ms")
)
def advise(
    source: From = None,
    *,
    path: AdvisedPath,
    calls: AdvisedCalls,
    flows: AdvisedFlows,
    trials: AdvisedTrials,
    results: AdviceOutput,
    runner: options.RunnerOptions,
    output: options.ScreenOptions,
) -> None:
    """Run the congestion controls on a path and say which to use, how certain that is, and what to type on the sender."""
    from tcpscape import engines
    from tcpscape.campaign.execute import Runner
    from tcpscape.findings.advice.adviser import Adviser
    from tcpscape.findings.advice.choice import goal_of
    from tcpscape.interchange import measured
    from tcpscape.store.results import Store
    from tcpscape.words import advice as words
    from tcpscape.words import steps

    stray = {"router": calls.router, "device": calls.device, "link": calls.link}
    if calls.upload is not None or flows.goal == "calls":
        _calls(source, path, calls, flows, trials, results, runner, output)
        return
    for name, value in stray.items():
        if value is not None:
            refuse(name, "it is for the goal calls", "add --goal calls, or leave it out")
    fields = {**path, **trials.hosts, "flows": flows.flows, "flow": flows.each or None}
    conditions, taken = measured.conditions(fields, source)
    engine, expected = engines.make(runner.engine), checks.read(results.check)
    if results.report and not results.out:
        refuse("report", "there is nowhere to write it", "add --out DIR")
    with nullcontext() if results.out is None else Store(results.out) as store, resumable(store), ProgressLine("advise", is_open=True) as progress:
        adviser = Adviser(
            conditions,
            options.ccas(flows.cca, engine),
            Runner(engine, runner.jobs, store=store, progress=progress.update),
            trials.seeds,
            goal_of(flows.goal, conditions),
            flows.own_queue,
            steps.told(progress.say),
            options.typed(),
            [c.metric.name for c in expected],
            taken,
            in_brief=not (output.verbose or results.as_json or results.out),
        )
        progress.steps, comparison = adviser.steps, adviser.campaign()
        checks.expect(expected, checks.of_cases(comparison))
        terminal.announce(engine, comparison.cases(), comparison.seeds)
        advice = adviser.advise()
    page = _kept(advice, results)
    if results.as_json:
        print(json.dumps(words.document(advice), allow_nan=False))
    else:
        kept = f"kept in {results.out}, for `tcpscape report`, `compare` and `export`" if results.out else ""
        terminal.show(replace(words.screen(advice), kept=kept, next=_next(advice, output, page, is_kept=results.out is not None)), output)
    checks.settle(expected, checks.conditions({"": advice.outcome}), as_json=results.as_json, verbose=output.verbose)


def _calls(
    source: Path | None,
    path: AdvisedPath,
    calls: AdvisedCalls,
    flows: AdvisedFlows,
    trials: AdvisedTrials,
    results: AdviceOutput,
    runner: options.RunnerOptions,
    output: options.ScreenOptions,
) -> None:
    """Which queue and which control keep calls good beside uploads."""
    from tcpscape import engines
    from tcpscape.campaign.execute import Runner
    from tcpscape.controls.routers import Router
    from tcpscape.findings.calls import SEEDS, CallAdviser, HomeLink, remedies
    from tcpscape.interchange import measured
    from tcpscape.store.results import Store
    from tcpscape.words import calls as words
    from tcpscape.words import steps

    if flows.goal not in (None, "calls"):
        refuse("upload", f"it is for the goal calls, not {flows.goal}", "leave out --upload or --goal")
    stray = {"own_queue": flows.own_queue, "report": results.report, "check": results.check, **flows.each}
    link: dict[str, Any] = {**path}
    stray |= {name: value for name, value in link.items() if name not in ("rtt", "rate", "buffer", "queue")}
    for name, value in stray.items():
        if value:
            refuse(name.replace("_", "-"), "an answer about calls has none", "leave it out; the link is --rate, --upload, --rtt, --buffer, --queue")
    home = HomeLink.of(link | {**trials.hosts, "upload": calls.upload}, 1 if flows.flows is None else flows.flows)
    router, measured_ms = Router.of(calls.router, calls.device, calls.link), None
    if source is not None:
        if link.get("buffer"):
            refuse("buffer", "the file says how long the queue is", "leave out one of the two")
        loaded = measured.loaded_rtt(source)
        home, measured_ms = home.with_loaded_rtt(loaded), loaded / 1e6
    engine, queues = engines.make(runner.engine), remedies(link.get("queue"))
    ccas = options.ccas(CALLS_CCAS if flows.cca == DEFAULT_CCAS else flows.cca, engine)
    with nullcontext() if results.out is None else Store(results.out) as store, resumable(store), ProgressLine("advise", is_open=True) as progress:
        running = Runner(engine, runner.jobs, store=store, progress=progress.update)
        adviser = CallAdviser(home, ccas, running, trials.seeds or SEEDS, queues, steps.told(progress.say), router, measured_ms)
        advice = adviser.advise()
    if results.as_json:
        print(json.dumps(words.document(advice), allow_nan=False))
    else:
        terminal.show(words.screen(advice), output)


def _kept(advice: Advice, results: AdviceOutput) -> Path | None:
    """Writes the answer as JSON into the directory of results, and its page; returns the page."""
    if not results.out:
        return None
    from tcpscape.findings.advice import adviser
    from tcpscape.words import advice as words

    adviser.save(words.document(advice), results.out)
    if not results.report:
        return None
    from tcpscape import report
    from tcpscape.campaign.record import Record

    record = Record("advise", advice.outcome.name, options.typed(), {"": advice.outcome})
    return report.build(record, results.out, advice=advice)[0]


def _next(advice: Advice, output: options.ScreenOptions, page: Path | None, *, is_kept: bool) -> list[str]:
    """What to do with the answer: more runs where it is undecided, otherwise the page or the details; of the details also how it shares the path."""
    from tcpscape.words import advice as words
    from tcpscape.words import remarks

    typed = options.typed()
    undoing = "how to verify and go back, " if words.is_typed(advice) else ""
    damage = " and the damage" if any(s.damage for s in advice.ranking) else ""
    details = "" if output.verbose else f"--verbose for {undoing}the cliff{damage}, "
    shown = terminal.to_open(page) if page else f"add {details}{'' if is_kept else '--out DIR '}--report for a page"
    return [line for line in (remarks.more_runs(advice, typed) or shown, remarks.sharing(advice) if output.verbose else "") if line]
