"""The entry point of the command line: running a command of :mod:`tcpscape.cli.command`; what the user can mend is one line on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from tcpscape.cli import process, streams
from tcpscape.cli.command import app, typed_name
from tcpscape.cli.overview import COMMANDS, COMPLETION
from tcpscape.errors import EXIT_USER_ERROR, INTERRUPTED, TcpscapeError, printable

MOST_PROBLEM, MOST_NAME = 200, 40
"""Characters that a message has of what the option parser says, and of the name of what was typed."""
SYNONYMS = {
    **dict.fromkeys(("latency", "ping", "delay"), "rtt"),
    **dict.fromkeys(("bandwidth", "bw", "speed", "capacity", "throughput"), "rate"),
    **dict.fromkeys(("packet-loss", "plr", "drop"), "loss"),
    **dict.fromkeys(("cc", "congestion", "congestion-control", "control", "algorithm"), "cca"),
    **dict.fromkeys(("time", "length"), "duration"),
    **dict.fromkeys(("vary", "over"), "axis"),
    **dict.fromkeys(("runs", "trials", "repeat", "repetitions"), "seeds"),
    **dict.fromkeys(("qdisc", "aqm"), "queue"),
    "seeds": "most",
}
"""Other names of an option → its name."""
FEWEST_LETTERS = 6
"""Letters from which another name of an option may be misspelt."""
ALIKE = 0.75
"""Similarity of two names, 0 to 1 (difflib), from which on one is suggested instead of the other."""


def main() -> None:
    """Runs the command line of this process and ends it. What the user can mend is one line on stderr and status 2, never a traceback."""
    process.run(call)


def call(args: list[str]) -> int:
    """Runs one command line and returns its exit status."""
    try:
        return _answered(args)
    except KeyboardInterrupt as e:
        return _interrupted(streams.status(e))
    except Exception:
        if (status := streams.signalled()) is None:
            raise
        return _interrupted(status)


def _answered(args: list[str]) -> int:
    """Runs one command line; what the user can mend becomes one line."""
    try:
        return _completed() if COMPLETION in os.environ else _invoke(args)
    except TcpscapeError as e:
        if streams.signalled() is not None:
            raise
        return _refuse(str(e))
    except MemoryError:
        return _refuse("memory: there is not enough of it; allow more (ulimit -v), run fewer trials at a time with --jobs 1, or smaller ones")
    except OSError as e:
        if line := streams.refusal(e):
            return _refuse(line)
        raise


def _completed() -> int:
    """Prints what a shell's script asks for."""
    from tcpscape.cli import completion

    return completion.answer(app)


def _interrupted(status: int) -> int:
    print(INTERRUPTED, file=sys.stderr)
    return status


def _invoke(args: list[str]) -> int:
    """Runs a command; what Click itself raises becomes an exit status."""
    streams.expect_memory(args)
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
        meant = _same_thing(e) or _alike(e.option_name if isinstance(e, click.NoSuchOption) else e.command_name, e.possibilities or ())
        fix = f"did you mean {', '.join(meant)}?" if meant else fix
    if isinstance(e, click.NoSuchOption | click.BadOptionUsage):
        name = e.option_name
    elif isinstance(e, click.BadParameter) and e.param:
        name = typed_name(e.param)
    problem = _short(problem.rstrip("."), MOST_PROBLEM)
    return f"{_short(name.lstrip('-'), MOST_NAME) or 'command line'}: {problem[:1].lower()}{problem[1:]}; {fix}"


def _same_thing(e: click.NoSuchOption | click.exceptions.NoSuchCommand) -> list[str]:
    """The option of the command that means what was typed, by another name of the field; none where there is none."""
    from difflib import get_close_matches

    typed = e.option_name.lstrip("-") if isinstance(e, click.NoSuchOption) else ""
    near = get_close_matches(typed, SYNONYMS, 1, ALIKE) if len(typed) >= FEWEST_LETTERS else []  # --bandwith is --bandwidth
    own = f"--{SYNONYMS.get(typed) or (SYNONYMS[near[0]] if near and not e.possibilities else '')}"
    return [own] if e.ctx and any(own in parameter.opts for parameter in e.ctx.command.params) else []


def _short(text: str, most: int) -> str:
    """A text of the option parser, which has what was typed in it, as one line of at most so many characters."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= most else f"{line[:most]}…"


def _alike(typed: str, names: Sequence[str]) -> list[str]:
    """Those of the names that begin with what was typed or differ from it by a letter or two; dashes do not count."""
    from difflib import SequenceMatcher

    word = typed.strip("-")
    return [n for n in names if n.strip("-").startswith(word) or SequenceMatcher(None, word, n.strip("-")).ratio() >= ALIKE]


def _refuse(message: str) -> int:
    print(f"error: {printable(' '.join(message.split()))}", file=sys.stderr)
    return EXIT_USER_ERROR
