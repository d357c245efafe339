"""`tcpscape emulate`: a command behind an emulated path."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape import units
from tcpscape.cli import options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.cli.terminal import StatusLine
from tcpscape.errors import refuse, shown
from tcpscape.scenario.vocabulary import PathWords

if TYPE_CHECKING:
    from tcpscape.emulation.session import Settings
    from tcpscape.engines.virtual import Virtual


@dataclass(frozen=True)
class FarOptions:
    """What there is at the far end."""

    serve: Annotated[tuple[str, ...], Option('A server at the far end, started before: "iperf3 -s -1". Repeatable.')] = ()
    reach: Annotated[tuple[str, ...], Option("A port of this machine's loopback at the far end: 8000, or FAR:HERE.", metavar="PORT")] = ()
    outside: Annotated[bool, Option("The far end is the world outside, through slirp4netns; this machine is 10.0.2.2.")] = False


@dataclass(frozen=True)
class RunOptions:
    """How the command runs."""

    engine: Annotated[
        str,
        Option("live: this machine's kernel in real time; virtual[:KERNEL]: a kernel of `tcpscape kernel list` in virtual time.", complete="engine"),
    ] = "live"
    bind: Annotated[
        tuple[Path, ...], Option("In virtual time: a directory that programs may change. Repeatable.", metavar="DIR", complete="file")
    ] = ()
    cca: Annotated[str | None, Option("Congestion control of both ends.  [default: this machine's]", complete="cca")] = None
    duration: Annotated[str | None, Option("End the command after this time (exit status 124).")] = None
    control: Annotated[Path | None, Option("A Unix socket for changes and figures; - is standard input.", metavar="PATH", complete="file")] = None
    seed: Annotated[int, Option("Seed of losses and delays: the same packets meet the same.", least=0)] = 0
    offload: Annotated[bool, Option("Hosts send TSO/GSO/GRO bursts; the path still treats each packet.", name="--offload/--no-offload")] = True
    root: Annotated[bool, Option("As root, without a user namespace.")] = False


@dataclass(frozen=True)
class EmulateOutput:
    """What is written of it."""

    pcap: Annotated[Path | None, Option("Write the packets with what the path did to each, as pcapng.", complete="file")] = None
    live: Annotated[bool, Option("A line with what passes, at the bottom of the terminal.", name="--live/--no-live")] = True
    as_json: Annotated[bool, options.json_output("The summary; the command's output goes to stderr,")] = False


@command(
    examples=(
        "emulate --delay 25ms --jitter 8ms --order keep --rate 20mbit\n-- ping -c 5 far",
        'emulate --rtt 600ms --rate 20mbit --rate up=2mbit\n--serve "iperf3 -s -1" -- iperf3 -c far -R',
    )
)
def emulate(
    way: PathWords,
    far: FarOptions,
    run: RunOptions,
    output: EmulateOutput,
    screen: options.ScreenOptions,
    words: Annotated[tuple[str, ...], Argument("The command and its arguments.  [default: a shell]", metavar="[COMMAND]...")] = (),
) -> int:
    """Run a command behind an emulated path, without root: what it sends to the far end, and what comes back, meets that path.

    A value is for both directions, or for one: --rate 20mbit --rate up=2mbit. Up is from the command to the far end.
    The far end is 10.77.1.3, in $TCPSCAPE_FAR, and called far. It has what --serve starts there and the ports of --reach, and nothing else.
    With --engine virtual the programs run unmodified on a real kernel in virtual time: a run with a seed is repeated to the byte, also under load.
    At the end a summary on stderr says what passed; the exit status is the command's.
    """
    from tcpscape.emulation import summary
    from tcpscape.words import emulation

    settings = _settings(words, way, far, run, output)
    result = _run(settings, wanted=output.live and not screen.quiet)
    document = summary.document(result, settings.path, settings.command, settings.seed, settings.engine)
    if output.as_json:
        print(json.dumps(document, allow_nan=False))
    else:
        terminal.show(emulation.screen(document, settings.path), screen, error=True)
    return document["status"]


def _settings(words: tuple[str, ...], way: PathWords, far: FarOptions, run: RunOptions, output: EmulateOutput) -> Settings:
    """What runs behind which path, checked as far as it can be before anything starts."""
    from tcpscape.controls import spelling
    from tcpscape.emulation import relay
    from tcpscape.emulation.path import build
    from tcpscape.emulation.relay import Reach
    from tcpscape.emulation.session import STDIN, Settings

    if not sys.platform.startswith("linux"):
        refuse("emulate", f"it needs Linux, this is {sys.platform}", "simulate the path instead, with `tcpscape sweep`")
    reach = [Reach.of(text) for text in far.reach]
    if twice := {r.far for r in reach if [o.far for o in reach].count(r.far) > 1}:
        refuse("reach", f"port {min(twice)} of the far end is there twice", "say FAR:HERE with another FAR")
    if far.outside:
        if far.serve or far.reach:
            refuse("outside", "the far end is then no place for --serve and --reach", "leave them out; this machine's loopback is 10.0.2.2")
        relay.expect()
    virtual = _virtual(run, far, command=bool(words))
    labels = options.ccas(run.cca)
    if len(labels) > 1 or any(spelling.name_of(label) != label for label in labels):
        refuse("cca", f"{run.cca} is not one congestion control of this machine's kernel", "name one, for example bbr")
    duration = None if run.duration is None else units.parse_time(run.duration, "duration")
    if duration == 0:
        refuse("duration", "a command that runs for 0s does nothing", "write for example 60s, or leave it out")
    if not words and run.control == STDIN:
        refuse("control", "a shell needs the standard input", "name a command, or a Unix socket")
    return Settings(
        build(way),
        words or (os.environ.get("SHELL") or "/bin/sh",),
        run.seed,
        virtual,
        [directory.resolve() for directory in run.bind],
        offload=run.offload,
        cca=labels[0] if labels else None,
        serve=far.serve,
        reach=reach,
        outside=far.outside,
        duration=duration,
        pcap=output.pcap,
        control=run.control,
        stdout=2 if output.as_json else None,
        root=run.root,
    )


def _virtual(run: RunOptions, far: FarOptions, *, command: bool) -> Virtual | None:
    """The engine in virtual time where it is asked for. :raises TcpscapeError: it cannot be had, or not with the other options."""
    from tcpscape import engines
    from tcpscape.engines.virtual import Virtual

    if run.engine == "live":
        if run.bind:
            refuse("bind", "programs on this machine's kernel may change its files anyway", "leave it out, or add --engine virtual")
        return None
    engine = engines.make(run.engine)
    if not isinstance(engine, Virtual):
        refuse("engine", f"{shown(run.engine)} runs no programs", "choose live or virtual")
    outer = {"control": run.control is not None, "reach": bool(far.reach), "outside": far.outside, "root": run.root}
    if name := next((name for name, is_given in outer.items() if is_given), None):
        refuse(name, "programs in virtual time meet nothing of this machine's real time", f"leave out --{name}, or --engine virtual")
    if not command:
        refuse("command", "a shell waits for you, and virtual time waits for nobody", "name a command, for example -- curl http://far/")
    if missing := next((directory for directory in run.bind if not directory.is_dir()), None):
        refuse("bind", f"{missing} is no directory", "name one that is there")
    return engine


def _run(settings: Settings, *, wanted: bool) -> Mapping[str, Any]:
    """Runs the command, with a line of what passes where there is a terminal; what the program reports."""
    from tcpscape.emulation.session import Session
    from tcpscape.words.emulation import LiveLine

    sys.stdout.flush()
    live = LiveLine()
    with StatusLine(wanted=wanted) as line:
        return Session(replace(settings, shown=line.is_shown), lambda figures: line.show(live.text(figures))).run()
