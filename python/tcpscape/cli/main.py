"""The entry point of the command line: runs one command; what the user can mend is one line on stderr."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import click

from tcpscape.cli.app import app
from tcpscape.errors import EXIT_INTERRUPTED, EXIT_USER_ERROR, INTERRUPTED, TcpscapeError


def main() -> None:
    """Runs the command line of this process and ends it. What the user can mend is one line on stderr and status 2, never a traceback."""
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    status = call(sys.argv[1:])
    if status == EXIT_INTERRUPTED:
        _end_at_once()
    sys.exit(status)


def call(args: list[str]) -> int:
    """Runs one command line and returns its exit status."""
    try:
        return _invoke(args)
    except TcpscapeError as e:
        return _refuse(str(e))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
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
        return _refuse(_usage(e))


def _usage(e: click.UsageError) -> str:
    """An error of the option parser as one line, `option: problem; fix`."""
    where = e.ctx.command_path if e.ctx else "tcpscape"
    name, fix = "command line", f"see `{where} --help`"
    problem = e.format_message()
    if isinstance(e, click.NoSuchOption | click.exceptions.NoSuchCommand):
        problem = e.message
        fix = f"did you mean {', '.join(e.possibilities)}?" if e.possibilities else fix
    if isinstance(e, click.NoSuchOption | click.BadOptionUsage):
        name = e.option_name
    elif isinstance(e, click.BadParameter) and e.param:
        name = next((typed for typed in e.param.opts if typed.startswith("--")), e.param.name)
    problem = problem.rstrip(".").replace("\n", " ")
    return f"{name.lstrip('-')}: {problem[:1].lower()}{problem[1:]}; {fix}"


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
