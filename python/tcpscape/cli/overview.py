"""`tcpscape --help`: what there is. It is asked first and often, so that it is written without what reads options, whose start takes longer."""

from __future__ import annotations

import os
from collections.abc import Sequence

ABOUT = "A laboratory for TCP congestion control on impaired paths."
EXAMPLES = ("run starlink-baseline --cca cubic,bbr", "advise --rtt 60ms --jitter 10ms --loss 0.5%")
"""Command lines without `tcpscape`, with which it ends."""
COMPLETION = "_TCPSCAPE_COMPLETE"
"""Environment variable with which a shell's script asks for completions: its value names the shell (:mod:`tcpscape.cli.completion`)."""
COMMANDS = {
    "run": ("run", "A scenario, or a path in tc's own words."),
    "sweep": ("sweep", "A scenario at every point of some axes."),
    "emulate": ("emulate", "A command of yours behind an emulated path."),
    "study": ("study", "The published studies, run again."),
    "evaluate": ("evaluate", "The dossier that RFC 9743 asks for of a control."),
    "advise": ("advise", "Which congestion control to use on a path."),
    "diagnose": ("diagnose", "What a measurement says: path, limit, remedy."),
    "cliff": ("cliff", "Where a path falls off its cliff."),
    "explore": ("explore", "A page whose sliders are the path, in the browser."),
    "bound": ("bound", "The latency spike of a drop of rate; runs nothing."),
    "compare": ("compare", "Whether two results differ."),
    "export": ("export", "Results and paths as other tools' files."),
    "plot": ("report", "Figures of a result directory, by name."),
    "report": ("report", "A result directory as one page."),
    "scenario": ("lists", "The gallery of scenarios: list | show NAME."),
    "metric": ("lists", "What can be measured of a trial: list | show NAME."),
    "cca": ("lists", "Congestion controls: list | show NAME | load FILE."),
    "qdisc": ("lists", "Queues and impairments: list | show NAME."),
    "kernel": ("kernel", "Real Linux kernels for the virtual engine."),
    "validate": ("validate", "The same conditions on two engines."),
    "packetdrill": ("packetdrill", "packetdrill's scripts against the model."),
    "conform": ("conform", "Whether a control passes a document's test cases."),
    "stress": ("stress", "The worst path for a control, searched."),
    "schema": ("schema", "The JSON documents and tables, as schemas."),
    "man": ("reference", "The manual page of a command."),
    "completion": ("completion", "A shell's completion: bash, zsh, fish."),
    "doctor": ("doctor", "What this machine can run, and why not."),
    "cleanup": ("doctor", "What killed commands left on this machine."),
    "version": ("doctor", "Versions of tcpscape, its model and its kernel."),
}
"""The module of each command, in which it has its own name, and its line in `tcpscape --help`. The order is that of help: what runs
something, what reads results, what there is, what checks tcpscape."""

WIDTH = 80
"""Columns from which on a terminal shows it as :func:`text` writes it: Click writes none wider, and breaks lines on a narrower one."""


def is_asked(args: Sequence[str]) -> bool:
    """Whether these arguments ask for it, for a terminal that is wide enough."""
    return len(args) == 1 and args[0] in ("-h", "--help") and not {"COLUMNS", COMPLETION} & os.environ.keys() and _columns() >= WIDTH


def _columns() -> int:
    """Columns of the terminal; :data:`WIDTH` of what is none."""
    try:
        return os.get_terminal_size(1).columns or WIDTH
    except OSError:
        return WIDTH


def answer(_: list[str]) -> int:
    """Prints it; the exit status."""
    print(text())
    return 0


def text() -> str:
    """It, as Click writes the help of :data:`tcpscape.cli.command.app`."""
    wide = max(map(len, COMMANDS))
    commands = [f"  {name:{wide}}  {about}" for name, (_, about) in COMMANDS.items()]
    options = ["  --version   Print the versions and exit.", "  -h, --help  Show this message and exit."]
    examples = [f"  tcpscape {example}" for example in EXAMPLES]
    parts = (
        ("Usage: tcpscape [OPTIONS] COMMAND [ARGS]...",),
        (f"  {ABOUT}",),
        ("Options:", *options),
        ("Commands:", *commands),
        ("Examples:", *examples),
    )
    return "\n\n".join("\n".join(part) for part in parts)
