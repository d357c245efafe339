"""Options that several commands share: each word is defined once, with its help text, and words that belong together are a dataclass."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import click

from tcpscape.cli.command import Option
from tcpscape.errors import refuse, shown

if TYPE_CHECKING:
    from tcpscape.engines import Engine

Cca = Annotated[str | None, Option("Congestion controls to compare, one trial each: cubic,cubic:hystart=off,bbr; all: every one.", complete="ccas")]
Mix = Annotated[str | None, Option("A mixture in one trial: cubic*2~rtt=20ms,bbr~up@5s (CCA*COUNT~FIELD@START-STOP).", complete="mix")]
CcaNames = Annotated[str, Option("Congestion controls to compare.", complete="ccas")]
FLOWS = Option("Flows in a trial.")
EngineName = Annotated[
    str, Option("Engine: model, virtual[:KERNEL] (`tcpscape kernel list`), live[:emulator|netem][+root], mock.", complete="engine", name="--engine")
]
At = Annotated[tuple[str, ...], Option("Only conditions with this value of an axis. Repeatable.", metavar="AXIS=VALUE")]
Jobs = Annotated[int, Option("Cores; 0 is all.", least=0)]
ExecutorName = Annotated[str, Option("Where trials run: local, or dask://HOST:PORT.", complete="local|dask://", name="--executor")]
Verify = Annotated[bool, Option("Measure first, on a path without impairments, whether this machine can run it (live engine).")]
Report = Annotated[bool, Option("Write report.html beside the results: figures, tables, how to run each again.")]


def json_output(content: str) -> Option:
    """The option `--json`; `content` says what is printed."""
    return Option(f"{content} and nothing else on stdout.", name="--json")


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
