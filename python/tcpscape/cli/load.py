"""`tcpscape cca load`: congestion controls in BPF while a command runs."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from tcpscape.cli.command import Argument, command
from tcpscape.errors import EngineError, printable, refuse

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if sys.platform != "win32" else ()
"""Signals that end it, or are handed to the command."""
PATIENCE_S = 10
"""Seconds from a signal on that the command has for its end; then it is killed, since what is registered has to be taken out."""
LONG_S = 3600
"""How long it sleeps where nothing happens, s."""
SIGNALLED = 128
"""Exit status after a signal, less its number, by the shells' convention."""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit statuses where there is no such command, and where it cannot be started, by the same convention."""


@command(
    name="load",
    examples=(
        "cca load mine.bpf.o --\ntcpscape run baseline --engine live --cca mine,cubic",
        "cca load mine.bpf.o",
    ),
)
def load(
    file: Annotated[Path, Argument("An object file: clang -O2 -g -target bpf -c mine.bpf.c", metavar="FILE.bpf.o", complete="file")],
    words: Annotated[tuple[str, ...], Argument("A command and its arguments.  [default: wait for Ctrl-C]", metavar="[-- COMMAND]...")] = (),
) -> int:
    """Register congestion controls in BPF with this machine's kernel, run a command, and take them out again.

    It needs root, a kernel with BTF and bpftool. While the command runs every program of this machine can use them; connections that do keep
    theirs until they close. The exit status is the command's. Ctrl-C, SIGTERM and SIGHUP end the command and take them out, too.
    """
    from tcpscape.controls import bpf

    words = words[1:] if words[:1] == ("--",) else words
    if not sys.platform.startswith("linux"):
        refuse(bpf.FIELD, f"it needs Linux, this is {sys.platform}", "use a machine with Linux", EngineError)
    with _signals_wait() as before:
        controls = bpf.register(file)
        try:
            names = ", ".join(control.name for control in controls)
            until = f"until {printable(shlex.join(words))} ends" if words else "until Ctrl-C"
            print(f"{names}: in the kernel {until}; --cca {controls[0].name} uses it", file=sys.stderr, flush=True)
            return _status(words, before) if words else _wait()
        finally:
            bpf.unregister(controls)


@contextmanager
def _signals_wait() -> Iterator[set[signal.Signals]]:
    """Within it signals that end a program are kept until somebody asks for them; the mask of before."""
    before: set[signal.Signals] = signal.pthread_sigmask(signal.SIG_BLOCK, (*ENDS, signal.SIGCHLD))  # type: ignore[assignment]
    try:
        yield before
    finally:
        while signal.sigtimedwait((*ENDS, signal.SIGCHLD), 0):  # asked for the end that is here
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait() -> int:
    """Waits for a signal: Ctrl-C is the way to end it, any other is reported."""
    number = signal.sigwait(ENDS)
    return 0 if number == signal.SIGINT else SIGNALLED + number


def _status(words: tuple[str, ...], mask: set[signal.Signals]) -> int:
    """Runs the command and gives its exit status; signals are handed to it, except a Ctrl-C that it had from the terminal itself."""
    try:
        number = os.posix_spawnp(words[0], words, os.environ, setsigmask=mask, setsigdef=(signal.SIGPIPE,))
    except OSError as e:
        print(f"error: {printable(words[0])}: {e.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(e, FileNotFoundError) else NOT_EXECUTABLE
    ending = False
    while (ended := os.waitpid(number, os.WNOHANG))[0] == 0:
        came = signal.sigtimedwait((*ENDS, signal.SIGCHLD), PATIENCE_S if ending else LONG_S)
        if came is None and ending:
            os.kill(number, signal.SIGKILL)
        elif came is not None and came.si_signo in ENDS and not (came.si_signo == signal.SIGINT and _is_foreground()):
            ending = True
            os.kill(number, came.si_signo)
    status = os.waitstatus_to_exitcode(ended[1])
    return status if status >= 0 else SIGNALLED - status


def _is_foreground() -> bool:
    """Whether a Ctrl-C at the terminal reaches every process of this one's group."""
    try:
        with open("/dev/tty", "rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
