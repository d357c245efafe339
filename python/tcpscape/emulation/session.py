"""A command behind an emulated path: the job for the program, its reports while the command runs, and who may steer the path.

Begin at :meth:`Session.run`. The program reports the start of the command, figures four times a second, and at the end its account. SIGINT is the
command's own; SIGTERM and SIGHUP ask it to end, and a second one ends it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as LateError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcpscape.emulation import control, outside
from tcpscape.emulation.path import EmulatedPath
from tcpscape.emulation.relay import Outside, Reach
from tcpscape.engines.host import HostProcess, reason
from tcpscape.errors import EngineError, ScenarioError

LIVE_NS = 250_000_000
"""ns between two figures."""
ANSWER_S = 5.0
"""s until the program must have answered a request."""
STDIN = Path("-")
"""Stands for standard input as the place of `--control`."""
Say = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Settings:
    """What runs behind which path."""

    path: EmulatedPath
    command: Sequence[str]
    seed: int = 0
    offload: bool = True
    """Whether the hosts use super-packets (TSO, GSO, GRO); the path treats each packet in them by itself."""
    cca: str | None = None
    """Congestion control of both ends' sockets."""
    serve: Sequence[str] = ()
    """Command lines of servers at the far end."""
    reach: Sequence[Reach] = ()
    outside: bool = False
    """Whether the far end is the world outside."""
    duration: int | None = None
    """ns after which the command is asked to end."""
    pcap: Path | None = None
    control: Path | None = None
    """A Unix socket, or :data:`STDIN`."""
    stdout: int | None = None
    """Descriptor that is the command's standard output, in place of this process's."""
    root: bool = False
    """Without a user namespace."""
    shown: bool = False
    """Whether figures are wanted while it runs."""

    def job(self, plan: Mapping[str, Any], descriptors: Mapping[str, int]) -> dict[str, Any]:
        """What the program reads; `descriptors`: those that it inherits, by what they are."""
        return {
            "plan": plan, "command": list(self.command), "seed": self.seed, "cca": self.cca, "root": self.root, "serve": list(self.serve),
            "reach": [{"far": r.far, "host": r.host} for r in self.reach], "duration_ns": self.duration,
            "outside": self.outside,
            "pcap": None if self.pcap is None else str(self.pcap.resolve()), "live_ns": LIVE_NS if self.shown else None, **descriptors,
        }  # fmt: skip


@dataclass
class Session:
    """One run of a command. Requests may come from any thread."""

    settings: Settings
    say: Say = lambda _: None
    """Gets the figures while the command runs."""
    _waiting: dict[int, Future[Mapping[str, Any]]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _process: HostProcess | None = None

    def run(self) -> Mapping[str, Any]:
        """Runs the command to its end; what the program reports of it.

        :raises TcpscapeError: the path, a server or this machine does not allow it.
        """
        import tcpscape._core as lib

        settings = self.settings
        plan = settings.path.plan(lib, offload=settings.offload)
        with ExitStack() as stack:
            descriptors = self._descriptors(stack)
            if settings.control not in (None, STDIN):
                stack.enter_context(control.ControlSocket(settings.control, settings.path, self.ask))
            stack.enter_context(_terminal())
            job = settings.job(plan, descriptors)
            process = self._process = stack.enter_context(HostProcess("emulate", job, descriptors=list(descriptors.values()), terminal=True))
            stack.enter_context(_signals(self._end))
            try:
                for event in process.events():
                    if event["event"] == "outside":
                        stack.enter_context(outside.Way(event["network"], process.pid, has_users=not settings.root))
                        process.send({"go": True})
                    self._take(event)
                return dict(process.result())
            except EngineError as e:
                raise _plain(e) from None
            finally:
                self._process = None
                for future in list(self._waiting.values()):
                    future.cancel()

    def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sends the program a request, and returns its answer.

        :raises ScenarioError: the program refuses it, or the command has ended.
        """
        process, number = self._process, next(self._numbers)
        if process is None:
            raise ScenarioError("control: the command does not run; ask while it does")
        future = self._waiting[number] = Future()
        process.send({"id": number, **message})
        try:
            answer = dict(future.result(ANSWER_S))
        except (LateError, CancelledError):
            raise ScenarioError("control: the command has ended, or the path does not answer; ask while it runs") from None
        finally:
            self._waiting.pop(number, None)
        if "refused" in answer:
            raise ScenarioError(str(answer["refused"]))
        return answer

    def _take(self, event: Mapping[str, Any]) -> None:
        """An event of the program's."""
        kind = event["event"]
        fields = {name: value for name, value in event.items() if name not in ("event", "id")}
        if kind == "answer":
            if future := self._waiting.get(event["id"]):
                future.set_result(fields)
        elif kind == "live":
            self.say(fields)
        elif kind == "started" and self.settings.control == STDIN:
            threading.Thread(target=self._follow_stdin, name="control", daemon=True).start()

    def _follow_stdin(self) -> None:
        def report(answer: dict[str, Any]) -> None:
            if not answer["ok"]:
                print(f"error: {answer['error']}", file=sys.stderr)
            elif "figures" in answer:
                print(answer["figures"], file=sys.stderr)

        control.follow(sys.stdin, self.settings.path, self.ask, report)

    def _end(self, how: str) -> None:
        """Asks the command to end, or ends it."""
        if process := self._process:
            threading.Thread(target=process.send, args=({"end": how},), daemon=True).start()

    def _descriptors(self, stack: ExitStack) -> dict[str, int]:
        """What the program inherits besides the standard streams."""
        result: dict[str, int] = {}
        if self.settings.reach:
            result["host"] = stack.enter_context(Outside(self.settings.reach)).theirs.fileno()
        if self.settings.control == STDIN:
            result["stdin"] = stack.enter_context(Path(os.devnull).open(encoding="utf-8")).fileno()  # noqa: SIM115 (a context of the stack)
        if self.settings.stdout is not None:
            result["stdout"] = os.dup(self.settings.stdout)
            stack.callback(os.close, result["stdout"])
        return result


def _plain(error: EngineError) -> Exception:
    """A refusal that names its own field (`serve: …; …`) without the engine's name in front."""
    text = reason(error)
    named = text.partition(":")[0]
    return ScenarioError(text) if named in ("serve", "reach", "cca", "forward", "reverse", "pcap", "outside") else error


@contextmanager
def _signals(end: Callable[[str], None]) -> Iterator[None]:
    """Leaves SIGINT to the command; SIGTERM and SIGHUP ask it to end, and once more end it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ways = iter(("term",))
    handlers: dict[int, Any] = {signal.SIGINT: lambda *_: None, signal.SIGQUIT: lambda *_: None}
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:
            handlers[ending] = lambda *_: end(next(ways, "kill"))
    before: dict[int, Any] = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _terminal() -> Iterator[None]:
    """Takes the terminal back from a shell that had it, so that what follows is not in the background."""
    try:
        yield
    finally:
        if sys.__stdin__ is not None and not sys.__stdin__.closed and os.isatty(0):
            before = signal.signal(signal.SIGTTOU, signal.SIG_IGN) if threading.current_thread() is threading.main_thread() else None
            with contextlib.suppress(OSError):
                os.tcsetpgrp(0, os.getpgrp())
            if before is not None:
                signal.signal(signal.SIGTTOU, before)
