"""The commands of tcpscape: each is a module of this package, which is imported when its command is run."""

from __future__ import annotations

from importlib import import_module

import click
from click.shell_completion import CompletionItem

from tcpscape.cli.command import WithExamples

COMMANDS = {
    "run": ("run", "A scenario, or a path in tc's own words."),
    "sweep": ("sweep", "A scenario at every point of some axes."),
    "emulate": ("emulate", "A command of yours behind an emulated path."),
    "study": ("study", "The published studies, run again."),
    "advise": ("advise", "Which congestion control to use on a path."),
    "diagnose": ("diagnose", "What a measurement says: path, limit, remedy."),
    "cliff": ("cliff", "Where a path falls off its cliff."),
    "explore": ("explore", "A page whose sliders are the path, in the browser."),
    "bound": ("bound", "The latency spike of a drop of rate; runs nothing."),
    "compare": ("compare", "Whether two results differ."),
    "export": ("export", "Results and paths as other tools' files."),
    "plot": ("plot", "Figures of a result directory, by name."),
    "report": ("report", "A result directory as one page."),
    "scenario": ("lists", "The gallery of scenarios: list | show NAME."),
    "metric": ("lists", "What can be measured of a trial: list | show NAME."),
    "cca": ("lists", "Congestion controls: list | show NAME | load FILE."),
    "qdisc": ("lists", "Queues and impairments: list | show NAME."),
    "kernel": ("kernel", "Real Linux kernels for the virtual engine."),
    "validate": ("validate", "The same conditions on two engines."),
    "schema": ("schema", "The JSON documents and tables, as schemas."),
    "man": ("man", "The manual page of a command."),
    "completion": ("completion", "A shell's completion: bash, zsh, fish."),
    "doctor": ("doctor", "What this machine can run, and why not."),
    "cleanup": ("cleanup", "What killed commands left on this machine."),
    "version": ("doctor", "Versions of tcpscape, its model and its kernel."),
}
"""The module of each command, in which it has its own name, and its line in `tcpscape --help`. The order is that of help: what runs
something, what reads results, what there is, what checks tcpscape."""


class Commands(WithExamples, click.Group):
    """The commands, each imported when it is run."""

    examples = ("run starlink-baseline --cca cubic,bbr", "advise --rtt 60ms --jitter 10ms --loss 0.5%")

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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin with what is typed, without importing them."""
        named = [CompletionItem(name, help=about) for name, (_, about) in COMMANDS.items() if name.startswith(incomplete)]
        return named or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of the commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


def _print_versions(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """What `--version` does: the same as the command `version`."""
    if value:
        from tcpscape.cli.doctor import versions

        print("\n".join(versions()))
        ctx.exit()


app = Commands(
    "tcpscape", no_args_is_help=True, help="A laboratory for TCP congestion control on impaired paths.",
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_print_versions, help="Print the versions and exit."),
    ],
)  # fmt: skip
