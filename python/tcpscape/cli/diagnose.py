"""`tcpscape diagnose`: what a measurement says of its path, what limits its flows, and what would be better by how much."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tcpscape.cli import checks, options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.cli.terminal import Progress
from tcpscape.errors import refuse
from tcpscape.tables import percent

if TYPE_CHECKING:
    from tcpscape.findings.diagnosis.diagnosis import Diagnosis
    from tcpscape.findings.diagnosis.settings import DiagnosisSettings, ReplaySettings

Source = Annotated[
    Path | None, Argument("A capture, iperf3's JSON, a Flent file, output of ss, results; - is standard input.", metavar="[FILE]", complete="file")
]
CHECK = Option(
    "Exit with 1 unless it holds: 'rtt_ms < 80ms', 'loss_pct.high < 1', 'limited:receive_window < 20%'. Repeatable.", name="--check", complete="check"
)  # fmt: skip


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

    def settings(self, progress: Progress) -> ReplaySettings | None:
        """How the model replays; None where it does not."""
        from tcpscape import engines
        from tcpscape.campaign.execute import Runner
        from tcpscape.findings.diagnosis.settings import ReplaySettings

        if not self.replay:
            return None
        return ReplaySettings(Runner(engines.make("model"), self.jobs, progress=progress.update), self.kernel, self.quick, progress.say)


@dataclass(frozen=True)
class DiagnosisOutput:
    """What is made of the diagnosis."""

    out: Annotated[Path | None, Option("Write the fitted path as a scenario for `tcpscape run`.", metavar="FILE", complete="file")] = None
    report: Annotated[Path | None, Option("Write the diagnosis as one HTML page: figures, tables.", metavar="FILE", complete="file")] = None
    check: Annotated[tuple[str, ...], CHECK] = ()
    as_json: Annotated[bool, options.json_output("One JSON document with every number")] = False


@command(
    examples=(
        "diagnose slow.pcap",
        "diagnose slow.pcapng --flow :443 --cca cubic --json",
    ),
)
def diagnose(
    source: Source = None,
    *,
    chosen: ChosenFlows,
    known: ReplayOptions,
    results: DiagnosisOutput,
    output: options.ScreenOptions,
) -> None:
    """Say what a measurement shows: your path, what limits you, and what would be better by how much.

    Captures are pcap or pcapng. Nothing leaves this machine, and payload is never kept. What the source does not show is not identifiable, with
    the reason, and never guessed.
    """
    from tcpscape.findings.diagnosis import answer, diagnosis, document
    from tcpscape.findings.diagnosis import checks as expected
    from tcpscape.interchange import observing

    if source is None:
        refuse("file", "none given", "name a capture or another measurement; - is standard input")
    checked = expected.read(results.check)
    with terminal.waiting(f"reading {source}") as say:
        observation = observing.observe(source, lambda done, total: say(_reading(source, done, total)))
    with Progress("diagnosis", is_open=True) as progress:
        result = diagnosis.diagnose(observation, _settings(chosen, known, progress), progress.say)
    written = list(_written(result, results, known))
    verdicts = expected.verdicts(checked, result)
    if results.as_json:
        print(json.dumps(document.plain(result), allow_nan=False))
    else:
        terminal.show(answer.screen(result, next_=_next(source, result, results, written)), output)
    checks.finish(verdicts, as_json=results.as_json)


def _written(result: Diagnosis, results: DiagnosisOutput, known: ReplayOptions) -> Iterator[Path]:
    """Writes the files that were asked for; the page comes last."""
    if results.out:
        from tcpscape.findings.diagnosis import files

        yield files.write_scenario(result, results.out, known.kernel)
    if results.report:
        from tcpscape import __version__
        from tcpscape.report import diagnosis

        yield diagnosis.build(result, results.report, options.typed(), __version__)


def _next(source: Path, result: Diagnosis, results: DiagnosisOutput, written: Sequence[Path]) -> list[str]:
    """What is worth typing next: the page, or what writes one."""
    if results.report:
        return [terminal.to_open(written[-1])]
    if results.out:
        return [f"tcpscape run {shlex.quote(str(results.out))} --cca all (the same path under every congestion control)"]
    return ["add --report page.html for figures, --verbose for every interval and reason"] if result.flows else []


def _reading(source: Path, done: int, total: int | None) -> str:
    """What is said while a file is read."""
    return f"reading {source}: {percent(done / total)}" if total else f"reading {source}: {done / 1e6:.0f} MB"


def _settings(chosen: ChosenFlows, known: ReplayOptions, progress: Progress) -> DiagnosisSettings:
    """What is asked for, as the diagnosis takes it."""
    from tcpscape.findings.diagnosis.settings import DiagnosisSettings

    return DiagnosisSettings(chosen.flows, chosen.flow or "", known.cca, known.settings(progress))
