"""`tcpscape diagnose`: what a measurement says of its path, what limits its flows, and what would be better by how much."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tcpscape import names, units
from tcpscape.cli import checks, options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.cli.terminal import ProgressLine
from tcpscape.errors import printable, refuse
from tcpscape.text.numbers import percent

if TYPE_CHECKING:
    from tcpscape.capture import Pseudonyms
    from tcpscape.findings.diagnosis.diagnosis import Diagnosis
    from tcpscape.findings.diagnosis.fitted import DiagnosisSettings, ReplaySettings
    from tcpscape.findings.diagnosis.observed import Observation

STEPS = 6
"""Steps of the diagnosis of one flow with its replay, about."""
LIVE = "30s"
"""How long sockets are watched where nothing says it."""
Source = Annotated[
    str | None, Argument("A capture, iperf3's JSON, a Flent file, output of ss, results; - is standard input.", metavar="[FILE]", complete="file")
]
CHECK = Option(
    "Exit with 1 unless it holds: 'rtt_ms < 80ms', 'loss_pct.high < 1', 'limited:receive_window < 20%'. Repeatable.", name="--check", complete="check"
)


@dataclass(frozen=True)
class ChosenFlows:
    """Which flows are diagnosed."""

    flows: Annotated[int, Option("Most flows that are diagnosed, the largest first; the others are counted.", least=1, most=100)] = 3
    flow: Annotated[str | None, Option("Only this flow: A:PORT-B:PORT, or one end of it: A, A:PORT, :PORT.", metavar="TUPLE")] = None


@dataclass(frozen=True)
class ReplayOptions:
    """What is known already, and how the model replays the observation."""

    cca: Annotated[str | None, Option("Congestion control of the senders, where you know it.", complete="cca")] = None
    kernel: Annotated[str | None, Option("Kernel profile of the senders with overrides: 6.1 or 6.12,rmem_max=4MiB.", complete="profile")] = None
    quick: Annotated[bool, Option("Few trials of the replay: wider intervals.")] = False
    replay: Annotated[bool, Option("Repeat the observation on the model, and compare other congestion controls.", name="--replay/--no-replay")] = True
    jobs: options.Jobs = 0

    def settings(self, progress: ProgressLine) -> ReplaySettings | None:
        """How the model replays; None where it does not."""
        if not self.replay:
            return None
        from tcpscape import engines
        from tcpscape.campaign.execute import Runner
        from tcpscape.findings.diagnosis.fitted import ReplaySettings
        from tcpscape.words import steps

        return ReplaySettings(Runner(engines.make("model"), self.jobs, progress=progress.update), self.kernel, self.quick, steps.told(progress.say))


@dataclass(frozen=True)
class LiveOptions:
    """Whether the sockets of this machine are watched."""

    live: Annotated[bool, Option("Watch the sockets of this machine; FILE is then a filter as of ss: 'dport = :443'.")] = False
    duration: Annotated[str | None, Option("With --live, how long.  [default: 30s]")] = None


@dataclass(frozen=True)
class DiagnosisOutput:
    """What is made of the diagnosis."""

    out: Annotated[Path | None, Option("Write the fitted path as a scenario for `tcpscape run`.", metavar="FILE", complete="file")] = None
    report: Annotated[Path | None, Option("Write the diagnosis as one HTML page: figures, tables.", metavar="FILE", complete="file")] = None
    annotate: Annotated[Path | None, Option("Write the capture with verdicts as comments for Wireshark.", metavar="FILE", complete="file")] = None
    xplot: Annotated[Path | None, Option("Write the largest flow as a graph for xplot.", metavar="FILE", complete="file")] = None
    anonymise: Annotated[bool, Option("Show and write pseudonyms instead of addresses.")] = False
    check: Annotated[tuple[str, ...], CHECK] = ()
    as_json: Annotated[bool, options.json_output("One JSON document with every number")] = False

    def expect_own_files(self, source: str) -> None:
        """Refuses to write a file over the source or over another one. :raises ScenarioError: one line."""
        taken = {} if source == "-" else {os.path.realpath(source): "the source"}
        for name in ("out", "report", "annotate", "xplot"):
            if (file := getattr(self, name)) is None:
                continue
            if place := taken.get(os.path.realpath(file)):
                refuse(name, f"{file} is {place}", "choose another file")
            taken[os.path.realpath(file)] = f"what --{name} writes"


@command(examples=("diagnose slow.pcap", "diagnose slow.pcapng --flow :443 --cca cubic --json"))
def diagnose(
    source: Source = None, *, watched: LiveOptions, chosen: ChosenFlows, known: ReplayOptions, results: DiagnosisOutput, output: options.ScreenOptions
) -> None:
    """Say what a measurement shows: your path, what limits you, and what would be better by how much.

    Captures are pcap or pcapng. Nothing leaves this machine, and payload is never kept. What the source does not show is not identifiable, with
    the reason, and never guessed.
    """
    from tcpscape.capture import Pseudonyms
    from tcpscape.findings.diagnosis import diagnosis
    from tcpscape.findings.diagnosis.fitted import expect_known
    from tcpscape.interchange import observing
    from tcpscape.words import diagnosis as answer
    from tcpscape.words import reasons, steps

    if results.check:
        from tcpscape.findings.diagnosis import checked

        expected = checked.read_checks(results.check)
    expect_known(known.cca, known.kernel)
    observation = _observed(source, watched, results)
    with ProgressLine("diagnosis", is_open=True, steps=STEPS) as progress:
        result = diagnosis.diagnose(observation, _settings(chosen, known, progress), steps.told(progress.say))
    pseudonyms = Pseudonyms() if results.anonymise else None
    shown = observing.anonymised(result, pseudonyms) if pseudonyms else result
    _write(result, shown, results, known, pseudonyms)
    verdicts = checked.verdicts(expected, shown, reasons.text) if results.check else []
    if results.as_json:
        print(json.dumps(answer.document(shown), allow_nan=False))
    else:
        terminal.show(answer.screen(shown, next_=_next(shown, results, output)), output)
    checks.finish(verdicts, as_json=results.as_json, verbose=output.verbose)


def _observed(source: str | None, watched: LiveOptions, results: DiagnosisOutput) -> Observation:
    """What is diagnosed: a file, or sockets that are watched."""
    from tcpscape.interchange import observing

    if watched.live:
        return _watched(source, watched)
    if watched.duration is not None:
        refuse("duration", "nothing is watched without --live", "leave it out, or add --live")
    if source is None:
        refuse("file", "none given", "name a capture or another measurement; - is standard input, --live the sockets of this machine")
    results.expect_own_files(source)
    with terminal.waiting(f"reading {printable(source)}") as say:
        observation = observing.observe(source, lambda done, total: say(_reading(source, done, total)))
    for option in ("annotate", "xplot"):
        if getattr(results, option) is not None:
            observing.expect_capture(observation, source, option)
    return replace(observation, name=source) if source != "-" else observation


def _watched(wanted: str | None, watched: LiveOptions) -> Observation:
    """The sockets of this machine that the filter lets through, for the duration or until Ctrl-C."""
    from tcpscape.interchange import tcp_info

    seconds = units.parse_time(watched.duration or LIVE, "duration", example=LIVE) / units.NS_PER_S
    with terminal.waiting(f"watching sockets for {seconds:g} s") as say:
        return tcp_info.watch(wanted or "", seconds, lambda at, count: say(f"watching {units.counted(count, 'socket')}: {at:.0f} of {seconds:g} s"))


def _write(result: Diagnosis, shown: Diagnosis, results: DiagnosisOutput, known: ReplayOptions, pseudonyms: Pseudonyms | None) -> None:
    """Writes the files that were asked for. `shown`: the result with pseudonyms, where these were asked for."""
    from tcpscape import __version__, capture
    from tcpscape.interchange import observing
    from tcpscape.words import fitted_path, flow

    if results.out:
        fitted_path.write(shown, results.out, known.kernel)
    if results.annotate:
        sayings = [note for one in result.flows for note in flow.frame_notes(one)]
        observing.annotate(result, result.observation.name, results.annotate, sayings, pseudonyms)
    if results.xplot:
        if not shown.flows:
            refuse("xplot", "there is no flow with data", "leave it out")
        capture.write_xpl(shown.flows[0].flow, results.xplot)
    if results.report:
        from tcpscape.report import diagnosis

        command = "tcpscape diagnose … --anonymise" if results.anonymise else options.typed()
        diagnosis.build(shown, results.report, command, __version__)


def _next(result: Diagnosis, results: DiagnosisOutput, output: options.ScreenOptions) -> list[str]:
    """What is worth typing next: a look at the page or at the path, a capture that shows more, or what writes them."""
    from tcpscape.words import next_look

    if results.report:
        return [terminal.to_open(results.report)]
    if results.out:
        return [f"tcpscape run {names.argument(results.out)} --cca all (the same path under every congestion control)"]
    more = "" if output.verbose else ", --verbose for every interval and reason"
    again = "" if results.anonymise else next_look.what_to_ask(result)
    return [*filter(None, [again]), *([f"add --report page.html for figures{more}"] if result.flows else [])]


def _reading(source: str, done: int, total: int | None) -> str:
    """What is said while a file is read."""
    return f"reading {printable(source)}: {percent(done / total)}" if total else f"reading {printable(source)}: {done / 1e6:.0f} MB"


def _settings(chosen: ChosenFlows, known: ReplayOptions, progress: ProgressLine) -> DiagnosisSettings:
    """What is asked for, as the diagnosis takes it."""
    from tcpscape.findings.diagnosis.fitted import DiagnosisSettings

    return DiagnosisSettings(chosen.flows, chosen.flow or "", known.cca, known.settings(progress))
