"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tcpscape.engines import Engine

Cca = Annotated[str | None, typer.Option(help="Congestion controls to compare, one trial each: cubic,cubic:hystart=off,bbr; all: every one.")]
Seeds = Annotated[str, typer.Option(help="Trials of each condition: 20 (seeds 0…19), 5..9 or 1,4,7.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON line per trial and nothing else on stdout.")]
OneJson = Annotated[bool, typer.Option("--json", help="One JSON document and nothing else on stdout.")]
Out = Annotated[Path | None, typer.Option(help="Keep results here and resume from here.")]
EngineName = Annotated[str, typer.Option("--engine", help="Engine: model, virtual[:KERNEL] (`tcpscape kernel list`), mock.")]
Jobs = Annotated[int, typer.Option(min=0, help="Cores; 0 is all.")]
Rcvbuf = Annotated[str | None, typer.Option(help="SO_RCVBUF argument (256KiB); 0 is autotuned.")]
Sndbuf = Annotated[str | None, typer.Option(help="SO_SNDBUF argument; 0 is autotuned.")]
AppRate = Annotated[str | None, typer.Option("--app", help="Application's rate (1MB/s, 10mbit); 0 or none is as fast as it can.")]
Chunk = Annotated[str | None, typer.Option(help="Bytes the application writes at once.  [default: 8192]")]
Read = Annotated[str | None, typer.Option(help="Receiver's reads: 16KiB/1ms sleeps 1 ms before each.")]
Report = Annotated[bool, typer.Option("--report", help="Write report.html beside the results: figures, tables, how to run each again.")]
Kernel = Annotated[str | None, typer.Option(help="Kernel profile with overrides: 6.1 or 6.12,rmem_max=4MiB.")]
Ecn = Annotated[bool | None, typer.Option("--ecn/--no-ecn", help="Both ends negotiate ECN (net.ipv4.tcp_ecn=1).  [default: off]")]
Listener = Annotated[str | None, typer.Option(help="Congestion control of listening sockets.  [default: the kernel's, or a sender's that needs ECN]")]
Duration = Annotated[str | None, typer.Option(help="How long to watch.  [default: 10s]")]


def command(context: typer.Context) -> str:
    """The command line as it was typed, for whoever wants to run it again."""
    return shlex.join(["tcpscape", *(context.find_root().obj or ())])


def ccas(text: str | None, engine: Engine | None = None) -> list[str]:
    """The congestion controls asked for, perhaps none; `all` is every one that `engine` has, if one is given."""
    from tcpscape.controls import spelling

    named = spelling.parse_labels(text) if text is not None else []
    return sorted(engine.ccas()) or named if engine is not None and named == ["all"] else named
