"""A command behind an emulated path: the job for the program, its reports while the command runs, and who may steer the path.

Begin at :meth:`Session.run`. The program reports the start of the command, figures four times a second, and at the end its account. SIGINT is the
command's own; SIGTERM and SIGHUP ask it to end, and a second one ends it.

A path that runs is changed from a Unix socket or from standard input, and shows its figures to whoever asks. A request is one line, in words or as
JSON, and its answer one line of JSON:

    down: rate 5mbit                     {"ok": true, "at_ns": 1234}
    {"down": {"rate": "5mbit"}}          {"ok": true, "at_ns": 1234}
    figures                              {"ok": true, "figures": {…}}
    end                                  {"ok": true}, and the command is asked to end
    down: rate fast                      {"ok": false, "error": "rate: …; …"}
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as LateError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tcpscape import writing
from tcpscape.emulation import relay
from tcpscape.emulation.path import BOTH, DIRECTIONS, EmulatedPath, parse_change
from tcpscape.emulation.relay import Outside, Reach
from tcpscape.engines import programs
from tcpscape.engines.host import HostProcess, reason
from tcpscape.errors import EngineError, ScenarioError, TcpscapeError, refuse, shown
from tcpscape.reading.documents import from_json
from tcpscape.reading.files import Kind, Origin
from tcpscape.scenario.flows import Flow
from tcpscape.units import NS_PER_S

if TYPE_CHECKING:
    from tcpscape.engines.virtual import Virtual

MOST_VIRTUAL_NS = 3600 * NS_PER_S
"""ns after which a command in virtual time is asked to end that nobody gave a time: nobody waits for one that sleeps, and it would for ever."""
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
    virtual: Virtual | None = None
    """The engine in whose guest it runs, in virtual time; None is this machine's kernel."""
    bind: Sequence[Path] = ()
    """Directories that programs in virtual time may change."""
    offload: bool = True
    """Whether the hosts use super-packets (TSO, GSO, GRO); the path treats each packet in them by itself."""
    cca: str | None = None
    """Congestion control of both ends' sockets."""
    flows: Sequence[Flow] = ()
    """Flows of ours beside the command."""
    serve: Sequence[str] = ()
    """Command lines of servers, `HOST: COMMAND` or at the far end."""
    host: Sequence[str] = ()
    """Names of further hosts at the far end."""
    router_command: str | None = None
    """Command line of a router between the near end and the path."""
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

    @property
    def engine(self) -> str:
        """As the document has it."""
        if self.virtual is None:
            return "live"
        kernel = self.virtual.kernel
        return f"virtual:{kernel.name} ({kernel.release})"

    def job(self, plan: Mapping[str, Any], descriptors: Mapping[str, int]) -> dict[str, Any]:
        """What the program reads; `descriptors`: those that it inherits, by what they are."""
        return programs.job(
            plan,
            self.command,
            self.seed,
            cca=self.cca,
            root=self.root or self.virtual is not None,
            is_virtual=self.virtual is not None,
            **programs.hosts(self.serve, self.host, self.router_command),
            reach=[{"far": r.far, "host": r.host} for r in self.reach],
            duration_ns=self.duration or (MOST_VIRTUAL_NS if self.virtual else None),
            outside=self.outside,
            has_flows=bool(self.flows),
            pcap=None if self.pcap is None else str(self.pcap.resolve()),
            live_ns=programs.VIRTUAL_LIVE_NS if self.virtual else programs.LIVE_NS if self.shown else None,
            **descriptors,
        )


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
        plan = settings.path.plan(lib, offload=settings.offload, flows=settings.flows, duration=settings.duration or MOST_VIRTUAL_NS)
        if settings.virtual:
            return self._run_virtual(settings.virtual, settings.job(plan, {}))
        with ExitStack() as stack:
            descriptors = self._descriptors(stack)
            if settings.control not in (None, STDIN):
                stack.enter_context(ControlSocket(settings.control, settings.path, self.ask))
            stack.enter_context(_terminal())
            job = settings.job(plan, descriptors)
            process = self._process = stack.enter_context(HostProcess("emulate", job, descriptors=list(descriptors.values()), terminal=True))
            stack.enter_context(_signals(self._end))
            try:
                for event in process.events():
                    if event["event"] == "outside":
                        stack.enter_context(relay.Way(event["network"], process.pid, has_users=not settings.root))
                        process.send({"go": True})
                    self._take(event)
                return dict(process.result())
            except EngineError as e:
                raise _plain(e) from None
            finally:
                self._process = None
                for future in list(self._waiting.values()):
                    future.cancel()

    def _run_virtual(self, engine: Virtual, job: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same in a guest, whose signals are those of this process: SIGINT ends all of it."""
        settings = self.settings
        stdout = 1 if settings.stdout is None else settings.stdout
        with ExitStack() as stack:
            if settings.pcap:
                job = {**job, "pcap": str(stack.enter_context(writing.replacing(settings.pcap.resolve(), "pcap")))}
            try:
                program = stack.enter_context(engine.program("emulate", job, settings.seed, stdout=stdout, bind=settings.bind))
                for event in program.events():
                    self._take(event)
                return dict(program.result())
            except EngineError as e:
                raise _plain(e) from None

    def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sends the program a request, and returns its answer. :raises ScenarioError: the program refuses it, or the command has ended."""
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

        follow(sys.stdin, self.settings.path, self.ask, report)

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
    return ScenarioError(text) if named in ("serve", "router-command", "reach", "cca", "mix", "forward", "reverse", "pcap", "outside") else error


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


MOST_LINE = 64 << 10
"""Most bytes of a request."""
MOST_PATH = 100
"""Most bytes of a Unix socket's path. Linux: unix(7)."""
Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Sends a message to the emulation's program and returns its answer."""


def answer(line: str, path: EmulatedPath, ask: Ask) -> dict[str, Any]:
    """What a request line does, and the answer to it; what is wrong with it is in the answer."""
    try:
        request = _read(line)
        if request == "figures":
            return {"ok": True, "figures": ask({"figures": True})}
        if request == "end":
            ask({"end": "term"})
            return {"ok": True}
        assert not isinstance(request, str)
        changes = [change for each in request for change in path.patches(each["where"], each["set"], each.get("hop"))]
        return {"ok": True, **ask({"change": changes})}
    except TcpscapeError as e:
        return {"ok": False, "error": str(e)}


def _read(line: str) -> str | list[dict[str, Any]]:
    """`figures`, `end`, or changes. :raises ScenarioError: it is none of them."""
    text = line.strip()
    if text in ("figures", "end"):
        return text
    if not text.startswith("{"):
        return [parse_change(text)]
    fields = from_json(text, Origin("control", REQUEST))
    if not isinstance(fields, dict) or not fields or not all(isinstance(v, dict) and v for v in fields.values()):
        refuse("control", f"{shown(text)} is not DIRECTION → values", f"write for example {EXAMPLE}")
    if unknown := next((name for name in fields if name not in (*DIRECTIONS, BOTH)), None):
        refuse("control", f"{shown(unknown)} is no direction", f"choose up, down or both: {EXAMPLE}")
    return [{"where": where, "set": values} for where, values in fields.items()]


EXAMPLE = '{"down": {"rate": "5mbit"}}'
REQUEST = Kind("a request", f"write for example {EXAMPLE}", MOST_LINE)


def follow(lines: Iterable[str], path: EmulatedPath, ask: Ask, say: Callable[[dict[str, Any]], None]) -> None:
    """Answers each line that is not empty."""
    for line in lines:
        if line.strip():
            say(answer(line, path, ask))


class ControlSocket:
    """A Unix socket whose clients steer the path; it goes with the context. Only its owner may connect."""

    def __init__(self, place: Path, path: EmulatedPath, ask: Ask) -> None:
        """:raises ScenarioError: the place cannot have a socket."""
        self._place, self._path, self._ask = place, path, ask
        if len(os.fsencode(place)) > MOST_PATH:
            refuse("control", f"the path of a socket has at most {MOST_PATH} bytes", "choose a shorter one, for example /tmp/path.sock")
        _remove_stale(place)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # It takes its place when it listens, so that whoever sees it can connect.
        early = place.with_name(f".{os.getpid()}")
        mask = os.umask(0o177)
        try:
            self._listener.bind(os.fspath(early))
            self._listener.listen()
            early.rename(place)
        except OSError as e:
            self._listener.close()
            early.unlink(missing_ok=True)
            refuse("control", f"{place}: {e.strerror or e}", "choose a place that can be written")
        finally:
            os.umask(mask)
        threading.Thread(target=self._accept, name="control", daemon=True).start()

    def __enter__(self) -> ControlSocket:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with contextlib.suppress(OSError):
            self._place.unlink()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, client.makefile("rwb") as stream:  # the end of the stream writes too
            while line := stream.readline(MOST_LINE):
                if not line.strip():
                    continue
                reply = answer(line.decode("utf-8", "replace"), self._path, self._ask)
                stream.write(json.dumps(reply, allow_nan=False).encode() + b"\n")
                stream.flush()


def _remove_stale(place: Path) -> None:
    """Removes a socket at which nobody listens any more. :raises ScenarioError: there is anything else."""
    try:
        kind = place.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(kind):
        refuse("control", f"{place} is there, and is no socket", "choose another place")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        try:
            other.connect(os.fspath(place))
        except OSError:
            place.unlink()
            return
    refuse("control", f"another emulation listens at {place}", "choose another place")
