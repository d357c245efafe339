"""Options that several commands share: each word is defined once, with its help text, and words that belong together are a dataclass."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import click

from tcpscape.cli.command import Option
from tcpscape.errors import refuse, shown

if TYPE_CHECKING:
    from tcpscape.engines import Engine

Cca = Annotated[str | None, Option("Congestion controls to compare, one trial each: cubic,cubic:hystart=off,bbr; all: every one.", complete="ccas")]
Mix = Annotated[str | None, Option("A mixture in one trial: cubic*2~rtt=20ms,bbr~up@5s (CCA*COUNT~FIELD@START-STOP).", complete="mix")]
CcaNames = Annotated[str, Option("Congestion controls to compare.", complete="ccas")]
FLOWS = Option("Flows in a trial.")
Rcvbuf = Annotated[str | None, Option("SO_RCVBUF argument (256KiB); 0 is autotuned.")]
Sndbuf = Annotated[str | None, Option("SO_SNDBUF argument; 0 is autotuned.")]
AppRate = Annotated[str | None, Option("Application's rate (1MB/s, 10mbit); 0 or none is as fast as it can.", name="--app")]
Chunk = Annotated[str | None, Option("Bytes the application writes at once.  [default: 8192]")]
Read = Annotated[str | None, Option("Receiver's reads: 16KiB/1ms sleeps 1 ms before each.")]
Ladder = Annotated[str | None, Option("Receiver is a video player with these bit rates: 1,2.5,5,8,16mbit.", name="--player")]
Abr = Annotated[str | None, Option("What chooses the player's bit rates: bola (buffer), throughput.  [default: bola]", complete="bola|throughput")]
Duration = Annotated[str | None, Option("How long to watch.  [default: 10s]")]
Kernel = Annotated[str | None, Option("Kernel profile with overrides: 6.1 or 6.12,rmem_max=4MiB.", complete="profile")]

EngineName = Annotated[
    str,
    Option("Engine: model, virtual[:KERNEL] (`tcpscape kernel list`), live[:emulator|netem][+root], mock.", complete="engine", name="--engine"),
]
At = Annotated[tuple[str, ...], Option("Only conditions with this value of an axis. Repeatable.", metavar="AXIS=VALUE")]
Jobs = Annotated[int, Option("Cores; 0 is all.", least=0)]
Verify = Annotated[bool, Option("Measure first, on a path without impairments, whether this machine can run it (live engine).")]
Report = Annotated[bool, Option("Write report.html beside the results: figures, tables, how to run each again.")]


def json_output(content: str) -> Option:
    """The option `--json`; `content` says what is printed."""
    return Option(f"{content} and nothing else on stdout.", name="--json")


@dataclass(frozen=True)
class FlowOptions:
    """What each flow of a trial does."""

    rcvbuf: Rcvbuf = None
    sndbuf: Sndbuf = None
    app: AppRate = None
    chunk: Chunk = None
    read: Read = None
    player: Ladder = None
    abr: Abr = None

    def fields(self) -> dict[str, Any]:
        """The fields of a flow; those that were not given are left out."""
        from tcpscape.scenario.options import flow_fields

        return flow_fields(**asdict(self))


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """What a network has besides one link and its long flows."""

    link: Annotated[tuple[str, ...], Option('A further link of the path: "delay 5ms rate 50mbit". Repeatable.', metavar="NAME VALUE …")] = ()
    transfers: Annotated[tuple[str, ...], Option("Connections at random times: 20/s,30kB (RATE, MEAN SIZE). Repeatable.", metavar="RATE,SIZE")] = ()
    probe: Annotated[tuple[str, ...], Option("Packets that measure delays: voice, ping~up. Repeatable.", complete="probe", metavar="PROBE")] = ()

    def fields(self) -> dict[str, tuple[str, ...]]:
        """The fields of a scenario that are added to; those that were not given are left out."""
        return {name: of for name, of in (("links", self.link), ("transfers", self.transfers), ("probes", self.probe)) if of}


@dataclass(frozen=True)
class TrialOptions:
    """What each trial of a command is."""

    duration: Duration = None
    kernel: Kernel = None

    def fields(self) -> dict[str, Any]:
        """The fields of a scenario."""
        return {"duration": self.duration, "kernel": self.kernel}


@dataclass(frozen=True)
class RunnerOptions:
    """Where trials run."""

    engine: EngineName = "model"
    jobs: Jobs = 0


@dataclass(frozen=True)
class ScreenOptions:
    """How much of the answer is shown."""

    verbose: Annotated[bool, Option("Show the details too: every table, every caveat.", short="-v")] = False
    quiet: Annotated[bool, Option("Show the answer alone, one line.", short="-q")] = False

    def __post_init__(self) -> None:
        """:raises ScenarioError: where both are given."""
        if self.verbose and self.quiet:
            refuse("quiet", "--verbose asks for the opposite", "leave out one of the two")


def levels(at: Sequence[str]) -> dict[str, str]:
    """Axis and value of every `--at AXIS=VALUE`."""
    chosen = {}
    for text in at:
        name, _, value = text.partition("=")
        if not (name.strip() and value.strip()):
            refuse("at", f"{shown(text)} is not AXIS=VALUE", "write for example --at jitter=4ms")
        chosen[name.strip()] = value.strip()
    return chosen


def typed() -> str:
    """The command line as it was typed, for whoever wants to run it again."""
    return shlex.join(["tcpscape", *(click.get_current_context().find_root().obj or ())])


def ccas(text: str | None, engine: Engine | None = None) -> list[str]:
    """The congestion controls that `--cca` names, perhaps none; `all` is every one that `engine` has, if one is given."""
    from tcpscape.controls import spelling

    names = spelling.parse_labels(text) if text is not None else []
    return sorted(engine.ccas()) or names if engine is not None and names == ["all"] else names
