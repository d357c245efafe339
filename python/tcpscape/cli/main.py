"""The entry point of the command line: the registry of the commands, and running one; what the user can mend is one line on stderr.

Each command is a module of this package that is imported when its command is run.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from difflib import SequenceMatcher
from importlib import import_module
from typing import NoReturn

import click

from tcpscape.cli import streams
from tcpscape.cli.command import WithExamples
from tcpscape.errors import EXIT_INTERRUPTED, EXIT_OUTPUT, EXIT_USER_ERROR, INTERRUPTED, TcpscapeError

COMMANDS = {
    "run": ("run", "A scenario, or a path in tc's own words."),
    "sweep": ("sweep", "A scenario at every point of some axes."),
    "study": ("study", "The published studies, run again."),
    "advise": ("advise", "Which congestion control to use on a path."),
    "cliff": ("cliff", "Where a path falls off its cliff."),
    "bound": ("bound", "The latency spike of a drop of rate; runs nothing."),
    "compare": ("compare", "Whether two results differ."),
    "export": ("export", "Results and paths as other tools' files."),
    "plot": ("plot", "Figures of a result directory, by name."),
    "report": ("report", "A result directory as one page."),
    "scenario": ("lists", "The gallery of scenarios: list | show NAME."),
    "metric": ("lists", "What can be measured of a trial: list | show NAME."),
    "cca": ("lists", "Congestion controls: list | show NAME."),
    "qdisc": ("lists", "Queues and impairments: list | show NAME."),
    "kernel": ("kernel", "Real Linux kernels for the virtual engine."),
    "validate": ("validate", "The same conditions on two engines."),
    "doctor": ("doctor", "What this machine can run, and why not."),
    "version": ("doctor", "Versions of tcpscape, its model and its kernel."),
}
"""The module of each command, in which it has its own name, and its line in `tcpscape --help`. The order is that of help: what runs
something, what reads results, what there is, what checks tcpscape."""
ALIKE = 0.75
"""Similarity of two names, 0 to 1 (difflib), from which on one is suggested instead of the other."""


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


def main() -> None:
    """Runs the command line of this process and ends it. What the user can mend is one line on stderr and status 2, never a traceback."""
    streams.guard()
    status = call(sys.argv[1:])
    if (problem := streams.unwritten()) and status == 0:
        print(f"error: stdout: the output could not be written: {problem}; write it to another place", file=sys.stderr)
        status = EXIT_OUTPUT
    if status == EXIT_INTERRUPTED:
        _end_at_once()
    sys.exit(status)


def call(args: list[str]) -> int:
    """Runs one command line and returns its exit status."""
    try:
        return _invoke(args)
    except TcpscapeError as e:
        return _refuse(str(e))
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return EXIT_INTERRUPTED


def _invoke(args: list[str]) -> int:
    """Runs a command; what Click itself raises becomes an exit status."""
    try:
        with app.make_context("tcpscape", list(args), obj=tuple(args)) as context:
            return app.invoke(context) or 0
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.exceptions.NoArgsIsHelpError as e:  # a group of commands without one of them
        print(e.format_message(), file=sys.stderr)
        return EXIT_USER_ERROR
    except click.UsageError as e:
        return _refuse(_usage(e, args))


def _usage(e: click.UsageError, args: Sequence[str]) -> str:
    """An error of the option parser as one line, `option: problem; fix`."""
    where = e.ctx.command_path if e.ctx else " ".join(["tcpscape", *(args[:1] if args and args[0] in COMMANDS else [])])
    name, fix = "command line", f"see `{where} --help`"
    problem = e.format_message()
    if isinstance(e, click.NoSuchOption | click.exceptions.NoSuchCommand):
        problem = e.message
        meant = _alike(e.option_name if isinstance(e, click.NoSuchOption) else e.command_name, e.possibilities or ())
        fix = f"did you mean {', '.join(meant)}?" if meant else fix
    if isinstance(e, click.NoSuchOption | click.BadOptionUsage):
        name = e.option_name
    elif isinstance(e, click.BadParameter) and e.param:
        name = next((typed for typed in e.param.opts if typed.startswith("--")), e.param.name)
    problem = problem.rstrip(".").replace("\n", " ")
    return f"{name.lstrip('-')}: {problem[:1].lower()}{problem[1:]}; {fix}"


def _alike(typed: str, names: Sequence[str]) -> list[str]:
    """Those of the names that begin with what was typed or differ from it by a letter or two; dashes do not count."""
    word = typed.strip("-")
    return [n for n in names if n.strip("-").startswith(word) or SequenceMatcher(None, word, n.strip("-")).ratio() >= ALIKE]


def _refuse(message: str) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return EXIT_USER_ERROR


def _end_at_once() -> NoReturn:
    """Ends the process after Ctrl-C: `sys.exit` would wait for threads inside a trial until it is over."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not interrupt this
    from tcpscape import engines

    engines.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(EXIT_INTERRUPTED)
