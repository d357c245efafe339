"""What is asked of an emulation, as it is written on the command line and in Python, and the settings that it becomes.

Everything that can be checked before something starts is checked in :meth:`Request.settings`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape import units
from tcpscape.controls import spelling
from tcpscape.emulation import relay
from tcpscape.emulation.path import build
from tcpscape.emulation.relay import Reach
from tcpscape.emulation.session import STDIN, Settings
from tcpscape.engines.programs import BESIDE
from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import OPTIONS
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.grammar import parse_mix
from tcpscape.scenario.programs import expect_hosts, placed, words
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.vocabulary import PathWords

if TYPE_CHECKING:
    from tcpscape.engines.virtual import Virtual


ANY_PATH = {"forward": "netem delay 1ms", "reverse": "netem delay 1ms"}
"""Stands for the path where flows are checked alone."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A command behind a path, each field as it is written."""

    way: PathWords
    command: Sequence[str]
    """The command and its arguments; empty is a shell."""
    serve: Sequence[str] = ()
    """Command lines of servers, `HOST: COMMAND` or at the far end."""
    host: Sequence[str] = ()
    """Names of further hosts at the far end."""
    router_command: str | None = None
    """Command line of a router between the near end and the path."""
    reach: Sequence[str] = ()
    """Ports of this machine's loopback at the far end: `8000`, `FAR:HERE`."""
    outside: bool = False
    """Whether the far end is the world outside."""
    engine: str = "live"
    """`live`, `virtual` or `virtual:KERNEL`."""
    bind: Sequence[Path] = ()
    """Directories that programs in virtual time may change."""
    cca: str | None = None
    """Congestion control of both ends."""
    mix: str | None = None
    """Flows of ours beside the command, as a sweep's."""
    duration: str | None = None
    """Time after which the command is ended."""
    control: Path | None = None
    """A Unix socket, or :data:`~tcpscape.emulation.session.STDIN`."""
    seed: int = 0
    offload: bool = True
    root: bool = False
    pcap: Path | None = None

    def settings(self, stdout: int | None = None) -> Settings:
        """What runs behind which path; `stdout`: the descriptor that is the command's standard output, in place of this process's.

        :raises TcpscapeError: a value makes no sense, or cannot be had here.
        """
        if not sys.platform.startswith("linux"):
            refuse("emulate", f"it needs Linux, this is {sys.platform}", "simulate the path instead, with `tcpscape sweep`")
        virtual = self._virtual()
        reach = [Reach.of(text) for text in self.reach]
        if twice := {r.far for r in reach if [o.far for o in reach].count(r.far) > 1}:
            refuse("reach", f"port {min(twice)} of the far end is there twice", "say FAR:HERE with another FAR")
        if self.outside:
            if self.serve or self.reach or self.host:
                refuse(
                    "outside", "the far end is then no place for --serve, --host and --reach", "leave them out; this machine's loopback is 10.0.2.2"
                )
            if self.router_command:
                refuse("outside", "the router knows the ways to near and far alone", "leave it out, or --router-command")
            relay.expect()
        expect_hosts(self.host)
        for line in self.serve:
            placed(line, self.host)
        if self.router_command:
            words(self.router_command, "router-command")
        duration = None if self.duration is None else units.parse_time(self.duration, "duration")
        if duration == 0:
            refuse("duration", "a command that runs for 0s does nothing", "write for example 60s, or leave it out")
        if not self.command and self.control == STDIN:
            refuse("control", "a shell needs the standard input", "name a command, or a Unix socket")
        return Settings(
            build(self.way),
            self.command or (os.environ.get("SHELL") or "/bin/sh",),
            self.seed,
            virtual,
            [directory.resolve() for directory in self.bind],
            offload=self.offload,
            cca=self._control(),
            flows=self._flows(),
            serve=self.serve,
            host=self.host,
            router_command=self.router_command,
            reach=reach,
            outside=self.outside,
            duration=duration,
            pcap=self.pcap,
            control=self.control,
            stdout=stdout,
            root=self.root,
        )

    def _control(self) -> str | None:
        """The congestion control, which is the kernel's and has its parameters."""
        labels = [] if self.cca is None else spelling.parse_labels(self.cca)
        if len(labels) > 1 or any(spelling.name_of(label) != label for label in labels):
            refuse("cca", f"{self.cca} is not one congestion control of this machine's kernel", "name one, for example bbr")
        return labels[0] if labels else None

    def _flows(self) -> tuple[Flow, ...]:
        """The flows of ours. :raises ScenarioError: the mixture makes no sense, or has what there is no place for."""
        if self.mix is None:
            return ()
        if self.outside:
            refuse("mix", "its flows end at the far end, and there is none", "leave it out, or --outside")
        mixed = Scenario.of({**ANY_PATH, "duration": self.duration or "1h", "flows": parse_mix(self.mix)}, OPTIONS)
        mixed.expect_plain("which have no place beside a command", "leave them out", but=BESIDE)
        if label := next((flow.cca for flow in mixed.flows if spelling.name_of(flow.cca) != flow.cca), None):
            refuse("mix", f"{shown(label)} sets a parameter, and the flows have the kernel's control", "write its name alone, for example bbr")
        return mixed.flows

    def _virtual(self) -> Virtual | None:
        """The engine in virtual time where it is asked for. :raises TcpscapeError: it cannot be had, or not with the other fields."""
        from tcpscape import engines
        from tcpscape.engines.virtual import Virtual

        if self.engine == "live":
            if self.bind:
                refuse("bind", "programs on this machine's kernel may change its files anyway", "leave it out, or add --engine virtual")
            return None
        engine = engines.make(self.engine)
        if not isinstance(engine, Virtual):
            refuse("engine", f"{shown(self.engine)} runs no programs", "choose live or virtual")
        outer = {"control": self.control is not None, "reach": bool(self.reach), "outside": self.outside, "root": self.root}
        if name := next((name for name, is_given in outer.items() if is_given), None):
            refuse(name, "programs in virtual time meet nothing of this machine's real time", f"leave out --{name}, or --engine virtual")
        if not self.command:
            refuse("command", "a shell waits for you, and virtual time waits for nobody", "name a command, for example -- curl http://far/")
        if missing := next((directory for directory in self.bind if not directory.is_dir()), None):
            refuse("bind", f"{missing} is no directory", "name one that is there")
        return engine
