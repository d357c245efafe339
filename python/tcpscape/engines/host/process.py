"""One run of `tcpscape-live`: its process, the lines to it and from it, its end.

The program ends when its input is closed, and the kernel kills it when the thread that started it ends. So each process has a thread of its own,
which starts it and waits for its end; it does not matter which threads use the process.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tcpscape.controls import usercode
from tcpscape.errors import EngineError

PROGRAM = Path(__file__).with_name("live")
"""The program, which `make setup` builds."""
MAX_LINE = 1 << 28
"""Most bytes of a line from the program."""
CHUNK = 1 << 20
"""Bytes of one read."""
LAST_OUTPUT = 20_000
"""Most characters of its standard error that are kept."""
FINAL = ("result", "error", "panic")
"""The members of which the last line has one."""


class HostProcess:
    """A run of the program. :meth:`kill` and :meth:`send` from any thread, everything else from one at a time.

    Use it as a context manager: at the end of the block nothing of it is left.
    """

    def __init__(self, mode: str, job: Mapping[str, Any], *, descriptors: Sequence[int] = (), terminal: bool = False) -> None:
        """Starts it and sends the job.

        :param descriptors: further descriptors that the program inherits; it knows their numbers from the job.
        :param terminal: the program has this process's standard streams and belongs to the foreground group of its terminal. Otherwise it has
            none, and the terminal's signals do not reach it.
        :raises EngineError: the program is not built, or cannot be started.
        """
        if not PROGRAM.exists():
            raise EngineError("engine: the live engine's program is not built; run `make setup`")
        self._final: Mapping[str, Any] | None = None
        self._lines: list[bytes] = []
        self._incomplete = bytearray()
        self._errors: IO[bytes] = tempfile.TemporaryFile(prefix="tcpscape-")  # noqa: SIM115 (closed by `close`)
        self._lock = threading.Lock()
        theirs_in, self._in = os.pipe()
        self._out, theirs_out = os.pipe()
        words = [str(PROGRAM), mode, "--in", str(theirs_in), "--out", str(theirs_out), "--parent", str(os.getpid())]
        streams = {} if terminal else {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": self._errors}
        options = {"pass_fds": (theirs_in, theirs_out, *descriptors), "start_new_session": not terminal, "env": usercode.environment, **streams}
        self._keeper = Keeper(words, options)
        os.close(theirs_in)
        os.close(theirs_out)
        if self._keeper.error:
            self.close()
            raise EngineError(f"engine: cannot start {PROGRAM}: {self._keeper.error}; run `make setup`")
        self.send(job)

    def __enter__(self) -> HostProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Number of the process."""
        assert self._keeper.process is not None
        return self._keeper.process.pid

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends the program a line; nothing where it has ended, which the next read says."""
        data = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        with self._lock, contextlib.suppress(BrokenPipeError):
            while data and self._in >= 0:
                data = data[os.write(self._in, data) :]

    def events(self, timeout_s: float | None = None) -> Iterator[Mapping[str, Any]]:
        """The lines before the last, as they come.

        :param timeout_s: the most that all of them may take, s; without it they may take any time.
        :raises EngineError: the program refuses the job (in its words), ended without a result, or took longer.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while self._final is None:
            message = self._next(until)
            if any(member in message for member in FINAL):
                self._final = message
            else:
                yield message
        if "result" not in self._final:
            raise EngineError(f"engine: live: {self._reason(self._final)}")

    def result(self, timeout_s: float | None = None) -> Any:
        """The result; events that nobody took are passed over. Raises as :meth:`events`."""
        for _ in self.events(timeout_s):
            pass
        assert self._final is not None
        return self._final["result"]

    def last_output(self) -> str:
        """The end of what the program wrote to standard error, for a diagnosis."""
        self._errors.seek(0)
        return self._errors.read()[-LAST_OUTPUT:].decode(errors="replace").strip()

    def kill(self) -> None:
        """Ends the program; whoever reads from it gets EngineError."""
        self._keeper.kill()

    def close(self) -> None:
        """Ends the program where it has not ended, and waits for its end. What it made is gone then, but for what the kernel still takes down."""
        self._keeper.kill()
        self._keeper.join()
        with self._lock:
            for descriptor in (self._in, self._out):
                if descriptor >= 0:
                    os.close(descriptor)
            self._in = self._out = -1
        self._errors.close()

    def _next(self, until: float | None) -> Mapping[str, Any]:
        """The next line."""
        while not self._lines:
            self._wait(until)
            data = os.read(self._out, CHUNK)
            if not data:
                return {"panic": ""}
            *lines, rest = data.split(b"\n")
            if lines:
                self._lines = [bytes(self._incomplete) + lines[0], *lines[1:]]
                self._incomplete.clear()
            self._incomplete += rest
            if len(self._incomplete) > MAX_LINE:
                raise EngineError("engine: live: its program floods this process; report it with the scenario")
        line = self._lines.pop(0)
        try:
            return dict(json.loads(line))
        except (ValueError, TypeError):
            raise EngineError(f"engine: live: its program wrote garbage ({line[:60]!r}); run `make setup`") from None

    def _wait(self, until: float | None) -> None:
        """Waits until there is something to read."""
        left = None if until is None else max(0.0, until - time.monotonic()) * 1000
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if not poll.poll(left):
            self.kill()
            raise EngineError("engine: live: its program did not answer in time; run it again on a machine that is less busy")

    def _reason(self, final: Mapping[str, Any]) -> str:
        """Why there is no result, in one line."""
        if "error" in final:
            return str(final["error"])
        self._keeper.join(1)
        status = self._keeper.process.returncode if self._keeper.process else None
        ended = f"by signal {-status}" if status is not None and status < 0 else f"with status {status}"
        last = str(final["panic"]) or next(reversed(self.last_output().splitlines()), "")
        return f"its program ended {ended}{f': {last}' if last else ''}; run it again"


class Keeper:
    """The thread that starts a process and waits for its end: the kernel ends the program with the thread that started it."""

    def __init__(self, words: Sequence[str], options: Mapping[str, Any]) -> None:
        """Returns when the process runs, or :attr:`error` says why it does not."""
        self.process: subprocess.Popen[bytes] | None = None
        self.error = ""
        self._words, self._options = list(words), options
        self._lock = threading.Lock()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="tcpscape-live", daemon=True)
        self._thread.start()
        self._started.wait()

    def _keep(self) -> None:
        try:
            self.process = subprocess.Popen(self._words, **self._options)
        except OSError as e:
            self.error = e.strerror or str(e)
        self._started.set()
        if self.process:
            os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
            with self._lock:
                self.process.wait()

    def kill(self) -> None:
        """Kills the process where it has not ended."""
        with self._lock:
            if self.process and self.process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.process.pid, signal.SIGKILL)

    def join(self, timeout_s: float | None = None) -> None:
        """Waits for its end."""
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)


def is_supported() -> bool:
    """Whether this is the system that the program is for."""
    return sys.platform.startswith("linux")


NAME = b"\0tcpscape-live"
"""An address of the abstract namespace of Unix sockets: one process at a time has it, and it is free as soon as that ends (unix(7))."""
LOOK_S = 0.05
"""How often a process that waits for its turn looks, s."""

_in_this_process = threading.Lock()


@contextlib.contextmanager
def alone(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """While no other trial in real time runs on this machine, for those processes that see each other's abstract sockets.

    :raises EngineError: it was cancelled while it waited.
    """
    while not _in_this_process.acquire(timeout=LOOK_S):
        _refuse(is_cancelled())
    try:
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as held:
            while sys.platform.startswith("linux") and not _has(held):
                time.sleep(LOOK_S)
                _refuse(is_cancelled())
            _refuse(is_cancelled())
            yield
    finally:
        _in_this_process.release()


def _has(held: socket.socket) -> bool:
    """Whether the address is this socket's now."""
    try:
        held.bind(NAME)
    except OSError as e:
        if e.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _refuse(cancelled: bool) -> None:
    if cancelled:
        raise EngineError("engine: the trial was interrupted; run it again")
