"""The registry of the commands: each is a module of this package that is imported when its command is run."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {
    "run": ("run", "A scenario, or a path in tc's own words."),
    "sweep": ("sweep", "A scenario at every point of some axes."),
    "study": ("study", "The published studies, run again."),
    "advise": ("advise", "Which congestion control to use on a path."),
    "cliff": ("cliff", "Where a path falls off its cliff."),
    "bound": ("bound", "The latency spike of a drop of rate; runs nothing."),
    "compare": ("compare", "Whether two results differ."),
    "export": ("export", "Results and paths as other tools' files."),
    "report": ("report", "A result directory as one page."),
    "scenario": ("lists", "The gallery of scenarios: list | show NAME."),
    "cca": ("lists", "Congestion controls: list | show NAME."),
    "qdisc": ("lists", "Queues and impairments: list | show NAME."),
    "kernel": ("kernel", "Real Linux kernels for the virtual engine."),
    "validate": ("validate", "The same conditions on two engines."),
    "doctor": ("doctor", "What this machine can run, and why not."),
    "version": ("doctor", "Versions of tcpscape, its model and its kernel."),
}
"""The module of each command, in which it has its own name, and its line in `tcpscape --help`. The order is that of help: what runs
something, what reads results, what there is, what checks tcpscape."""


class Commands(click.Group):
    """The commands, each imported when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands in the order of help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of this name.

        :raises NoSuchCommand: if there is none.
        """
        if cmd_name not in COMMANDS:
            raise click.exceptions.NoSuchCommand(cmd_name, possibilities=COMMANDS, ctx=ctx)
        command: click.Command = getattr(import_module(f"tcpscape.cli.{COMMANDS[cmd_name][0]}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of the commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


app = Commands("tcpscape", no_args_is_help=True, help="A laboratory for TCP congestion control on impaired paths.")
