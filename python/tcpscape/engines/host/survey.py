"""What this machine allows the live engine, and how well: asked of its program, and read from `/proc`, `/sys` and `/lib/modules`.

The main function is :func:`survey`. It takes three to five seconds, most of them short measurements, and loads modules of queues that are asked for.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import pwd
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcpscape.controls import bpf
from tcpscape.engines.host.process import PROGRAM, HostProcess, alone, is_supported
from tcpscape.errors import EngineError

MEASURES = {"backends": "backends", "kinds": "queues", "netem": "netem", "timer": "timers", "rate": "the highest rate"}
"""Measurements of the program, and what they are about."""
PATIENCE_S = 30.0
"""Most that they may take together, s."""
TURN_S = 1.0
"""How long a trial that runs now is waited for, s: measurements beside it would spoil both."""
MODULES = Path("/lib/modules")
SETTINGS = ("kernel.unprivileged_userns_clone", "user.max_user_namespaces", "kernel.apparmor_restrict_unprivileged_userns")
"""Settings that decide whether users may make user namespaces; a kernel need not have them."""
PRIORITY = 2
"""The real-time priority that the program asks for. crates/live/src/spaces/realtime.rs."""
NOT_CONTROLS = ("diag", "metrics")
"""Modules called tcp_NAME that are no congestion controls."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late a thread wakes up from a sleep, µs."""

    p50_us: float
    """Half of the wake-ups are not later."""
    p99_us: float
    """99 % of the wake-ups are not later."""
    max_us: float
    """The latest of 500."""


@dataclass(frozen=True, slots=True)
class NetemCheck:
    """One thing that netem was asked to do."""

    what: str
    """Delay, jitter, loss and so on; `tree` is one together with another queue."""
    words: str
    """In tc's words."""
    asked: str
    """What it should do, with units."""
    achieved: str
    """What was measured, or why the kernel refuses it."""
    ok: bool
    """Whether it is what was asked, within what chance allows."""


@dataclass(frozen=True, slots=True)
class KernelNetem:
    """What the kernel's netem does."""

    present: bool
    """Whether the kernel has it."""
    problem: str | None
    """Why it is not to be used, and the fix; None where it does what it is told."""
    seeded: bool
    """Whether the same seed gives the same losses."""
    checks: tuple[NetemCheck, ...] = ()
    """Everything that it was asked to do."""

    @property
    def refused_trees(self) -> tuple[str, ...]:
        """Trees with other queues, in tc's words, that do not work."""
        return tuple(check.words for check in self.checks if check.what == "tree" and not check.ok)


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found. Of what was not measured the field is None, and :attr:`unmeasured` says why."""

    kernel: str
    """Release of the running kernel."""
    unavailable: str | None = None
    """Why the live engine cannot run without a user's help, and the fix; None where it can."""
    root_unavailable: str | None = None
    """The same without a user namespace (`+root`)."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings about user namespaces that this kernel has."""
    backends: Mapping[str, str | None] = field(default_factory=dict)
    """The emulator's backends (`packet`: AF_PACKET): why it cannot be had, None where it can."""
    queues: Mapping[str, str | None] = field(default_factory=dict)
    """Queues by tc's name: how to get it, None where it is there."""
    netem: KernelNetem | None = None
    """What the kernel's netem does."""
    controls: tuple[str, ...] = ()
    """Congestion controls that are ready."""
    loadable: tuple[str, ...] = ()
    """Congestion controls whose modules are on the disk and not loaded."""
    realtime: int = 0
    """The highest real-time priority that is allowed; 0 is none."""
    late: Lateness | None = None
    """Lateness of an ordinary thread."""
    late_realtime: Lateness | None = None
    """Lateness of a thread with real-time priority."""
    rate_mbps: float | None = None
    """Goodput of one connection through the emulator, Mbit/s."""
    rate_offload_mbps: float | None = None
    """The same with super-packets (`offload: true`)."""
    btf: bool = False
    """Whether the kernel describes its types, which congestion controls in BPF need."""
    unmeasured: str | None = None
    """Why nothing was measured."""


def survey(say: Callable[[str], None] = lambda what: None) -> Survey:
    """Looks and measures; `say` hears what is being measured."""
    ready = _words(bpf.AVAILABLE)
    known: dict[str, Any] = {
        "kernel": platform.release(),
        "settings": _settings(),
        "controls": ready,
        "loadable": _loadable(ready),
        "btf": bpf.TYPES.exists(),
        "unavailable": unavailable(),
        "root_unavailable": unavailable(root=True) if os.geteuid() == 0 else "only root may; leave +root out",
    }
    root = known["unavailable"] is not None
    if root and known["root_unavailable"] is not None:
        return Survey(**known, unmeasured=known["unavailable"])
    until = time.monotonic() + TURN_S
    try:
        known |= _tried(root, say)
        with alone(lambda: time.monotonic() > until):
            known |= _measured(root, say)
            return Survey(**known)
    except EngineError as e:
        is_waiting = time.monotonic() > until and "interrupted" in str(e)
        return Survey(**known, unmeasured="a trial in real time is running; ask again when it is over" if is_waiting else str(e))


def netem(root: bool = False) -> KernelNetem:
    """What this kernel's netem does; about a second. `root`: without a user namespace.

    :raises EngineError: there are no namespaces, or it could not be measured.
    """
    return _netem(_probe(root, ("netem",), lambda what: None)["netem"])


def realtime_fix() -> str:
    """How a user gets real-time priority. Root has it but in a container that forbids it."""
    if os.geteuid() == 0:
        return f"allow it to the container: --cap-add SYS_NICE or --ulimit rtprio={PRIORITY}"
    name = "USER"
    with contextlib.suppress(KeyError):
        name = pwd.getpwuid(os.getuid()).pw_name
    return f"put `{name} - rtprio {PRIORITY}` into /etc/security/limits.conf and log in again"


def _tried(root: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """The fields that the program finds by trying, which takes no time and disturbs nobody."""
    found = _probe(root, ("backends", "kinds"), say)
    queues = {kind["name"]: kind["problem"] for kind in found["kinds"]}
    absent = {"netem": _netem(_probe(root, ("netem",), say)["netem"])} if queues["netem"] else {}
    return {"realtime": found["realtime"]["allowed"], "backends": found["backends"], "queues": queues, **absent}


def _measured(root: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """The fields that the program measures, alone on this machine."""
    found = _probe(root, ("netem", "timer", "rate"), say)
    timer, rate = found["timer"], found["rate"]
    return {
        "netem": _netem(found["netem"]),
        "late": Lateness(**timer["ordinary"]),
        "late_realtime": Lateness(**timer["realtime"]) if timer["realtime"] else None,
        "rate_mbps": rate["packets_mbps"],
        "rate_offload_mbps": rate["super_packets_mbps"],
    }


def _probe(root: bool, measures: Sequence[str], say: Callable[[str], None]) -> Mapping[str, Any]:
    with HostProcess("probe", {"root": root, "measure": list(measures)}) as process:
        for event in process.events(PATIENCE_S):
            say(MEASURES[event["what"]])
        return dict(process.result())


def _netem(report: Mapping[str, Any]) -> KernelNetem:
    return KernelNetem(report["present"], report["problem"], report["seeded"], tuple(NetemCheck(**check) for check in report["checks"]))


def _words(file: Path) -> tuple[str, ...]:
    try:
        return tuple(file.read_text().split())
    except OSError:
        return ()


def _settings() -> dict[str, str]:
    files = {name: Path("/proc/sys", *name.split(".")) for name in SETTINGS}
    return {name: " ".join(_words(file)) for name, file in files.items() if file.exists()}


def _loadable(ready: Sequence[str]) -> tuple[str, ...]:
    """Names of the modules `tcp_NAME.ko`, compressed or not, that are not loaded."""
    files = (MODULES / platform.release() / "kernel" / "net" / "ipv4").glob("tcp_*.ko*")
    names = {file.name.partition(".")[0].removeprefix("tcp_") for file in files}
    return tuple(sorted(name for name in names - set(ready) if name not in NOT_CONTROLS and not name.endswith("_diag")))


ANSWER_S = 10.0
"""Most that the program may take to enter namespaces and look around, s; it takes some milliseconds."""


def unavailable(root: bool = False) -> str | None:
    """Why the program cannot run here, and the fix, in one line; None where it can. `root`: without a user namespace."""
    if not is_supported():
        return "it needs Linux; use --engine model"
    if not PROGRAM.exists():
        return "its program is not built; run `make setup`"
    try:
        basics(root)
    except EngineError as e:
        return reason(e)
    return None


def reason(error: EngineError) -> str:
    """What an error of the program says, without the engine's name in front."""
    return str(error).removeprefix("engine: ").removeprefix("live: ").removeprefix("virtual: ")


@functools.cache
def basics(root: bool = False) -> Mapping[str, Any]:
    """What can be had in namespaces at once, without a measurement.

    :raises EngineError: there are no namespaces for this user; the message has the reason and the fix.
    """
    with HostProcess("probe", {"root": root}) as process:
        return dict(process.result(ANSWER_S))
