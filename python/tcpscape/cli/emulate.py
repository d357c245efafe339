"""`tcpscape emulate`: a command behind an emulated path."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape.cli import options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.cli.terminal import StatusLine
from tcpscape.scenario.vocabulary import PathWords

if TYPE_CHECKING:
    from tcpscape.emulation.session import Settings


@dataclass(frozen=True)
class FarOptions:
    """What there is at the far end and on the way to it."""

    serve: Annotated[
        tuple[str, ...], Option('A server, started before: "iperf3 -s -1" at the far end, "HOST: COMMAND" at near or a --host. Repeatable.')
    ] = ()
    host: Annotated[tuple[str, ...], Option("A further host at the far end, called NAME. Repeatable.", metavar="NAME")] = ()
    router_command: Annotated[
        str | None, Option("Run this in a router between the command and the path, for example a shaper; see $TCPSCAPE_LAN, $TCPSCAPE_WAN.")
    ] = None
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
    mix: Annotated[str | None, Option("Flows of ours beside the command, on the same path: cubic*2,bbr~up@5s.", complete="mix")] = None
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
    from tcpscape.emulation.request import Request
    from tcpscape.words import emulation

    request = Request(way=way, command=words, **asdict(far), **asdict(run), pcap=output.pcap)
    settings = request.settings(stdout=2 if output.as_json else None)
    result = _run(settings, wanted=output.live and not screen.quiet)
    document = summary.document(result, settings.path, settings.command, settings.seed, settings.engine)
    if output.as_json:
        print(json.dumps(document, allow_nan=False))
    else:
        terminal.show(emulation.screen(document, settings.path), screen, error=True)
    return document["status"]


def _run(settings: Settings, *, wanted: bool) -> Mapping[str, Any]:
    """Runs the command, with a line of what passes where there is a terminal; what the program reports."""
    from tcpscape.emulation.session import Session
    from tcpscape.words.emulation import LiveLine

    sys.stdout.flush()
    live = LiveLine()
    with StatusLine(wanted=wanted) as line:
        return Session(replace(settings, shown=line.is_shown), lambda figures: line.show(live.text(figures))).run()
