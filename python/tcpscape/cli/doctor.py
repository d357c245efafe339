"""`tcpscape doctor`, `version` and `cleanup`: what this machine can run, and why not; what killed commands left on it."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tcpscape import __version__, formats
from tcpscape.cli import options, terminal
from tcpscape.cli.command import Option, command
from tcpscape.errors import EXIT_USER_ERROR, EngineError, TcpscapeError
from tcpscape.text.table import Table

if TYPE_CHECKING:
    from tcpscape.engines.host.survey import Survey

Finding = tuple[str, str]
"""What a check finds, and what to do about it (empty where nothing is needed)."""
LATE_US = 200.0
"""Wake-ups later than this (p99), µs, spoil trials of the live engine (docs/live.md)."""


@command(examples=("doctor", "kernel list"))
def doctor(as_json: Annotated[bool, options.json_output("One JSON line with every finding and measurement")] = False) -> None:
    """What this machine can run and why not; for the live engine some seconds of measurements."""
    from tcpscape.engines.host.survey import survey

    with terminal.waiting("looking") as say:
        found = survey(lambda what: say(f"measuring {what}"))
    rows = [*((name, *check()) for name, check in CHECKS.items()), *((name, *check(found)) for name, check in LIVE.items())]
    if as_json:
        from tcpscape.schemas.documents import DoctorDocument, FindingDocument

        findings = [FindingDocument(what=what, found=finding, to_do=fix) for what, finding, fix in rows]
        document = DoctorDocument(format=1, version=__version__, findings=findings, live=found)
        print(json.dumps(formats.printed(DoctorDocument, document), allow_nan=False))
        return
    terminal.print_table(Table(("what", "found", "to do"), rows, words=("found", "to do")))


@command(examples=("version", "--version"))
def version() -> None:
    """Versions of tcpscape, of its model and of the default kernel where there is one."""
    print("\n".join(versions()))


def versions() -> Iterator[str]:
    """The lines of `version` and `--version`."""
    from tcpscape.engines.virtual import Virtual

    finding, fix = _extension()
    yield finding if not fix else f"tcpscape {__version__}, model {finding} ({fix})"
    virtual = Virtual()
    if virtual.unavailable() is None:
        yield f"virtual: kernel {virtual.version}"


def _python() -> Finding:
    return f"Python {platform.python_version()}, {platform.machine()}", ""


def _extension() -> Finding:
    from tcpscape.engines.model import Model

    engine = Model()
    why = engine.unavailable()
    return ("not built", "run `make setup`") if why else (f"tcpscape {__version__}, model {engine.version}", "")


def _libraries() -> Finding:
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "polars", "matplotlib", "pydantic")), ""


def _cores() -> Finding:
    return f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} usable", ""


def _memory() -> Finding:
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return f"{int(fields['MemAvailable'].split()[0]) / 2**20:.1f} GiB available", ""
    except (OSError, KeyError, ValueError):
        return "unknown", ""


def _virtual() -> Finding:
    from tcpscape import kernels
    from tcpscape.engines.virtual import Virtual

    if why := Virtual().unavailable():
        return _refused(why)
    return "kernels: " + ", ".join(f"{kernel.name} ({kernel.release})" for kernel in kernels.built_kernels()), ""


def _memory_files() -> Finding:
    from tcpscape.engines.guest.process import MEMORY_MB, memory_directory

    try:
        return f"{memory_directory(MEMORY_MB)} has room for a guest's memory", ""
    except TcpscapeError as e:
        return e.what, e.fix


def _live(found: Survey) -> Finding:
    if not found.unavailable:
        return f"this machine's kernel, {found.kernel}", ""
    if not found.root_unavailable:
        return "only without a user namespace", "use --engine live:emulator+root"
    return _refused(found.unavailable)


def _spaces(found: Survey) -> Finding:
    settings = ", ".join(f"{name} = {value}" for name, value in found.settings.items())
    if found.unavailable:
        return _refused(found.unavailable)
    return f"allowed{f' ({settings})' if settings else ''}", ""


def _emulator(found: Survey) -> Finding:
    if not found.backends:
        return _unmeasured(found)
    problem = found.backends["packet"]
    return ("not possible", f"AF_PACKET: {problem}") if problem else ("by AF_PACKET", "")


def _netem(found: Survey) -> Finding:
    if found.netem is None:
        return _unmeasured(found)
    if found.netem.problem:
        missing = EngineError(found.netem.problem)
        return (found.netem.problem, "use --engine live:emulator") if found.netem.present else (missing.field, missing.reason)
    trees = found.netem.refused_trees
    told = "does what it is told, " + ("with" if found.netem.seeded else "without") + " a seed of its own"
    return told + (f"; not in {len(trees)} of the trees that were tried: {' · '.join(trees)}" if trees else ""), ""


def _queues(found: Survey) -> Finding:
    if not found.queues:
        return _unmeasured(found)
    missing = [name for name, problem in found.queues.items() if problem]
    ready = ", ".join(name for name in found.queues if name not in missing)
    fix = f"modprobe sch_{missing[0]}, or a kernel that has them; live:emulator has them all" if missing else ""
    return ready + (f"; not {', '.join(missing)}" if missing else ""), fix


def _controls(found: Survey) -> Finding:
    ready = ", ".join(found.controls) or "unknown"
    if not found.loadable:
        return ready, ""
    return f"{ready}; loadable: {', '.join(found.loadable)}", f"sudo modprobe tcp_{found.loadable[0]}"


def _bpf(found: Survey) -> Finding:
    from tcpscape.controls import bpf

    if not found.btf:
        return "this kernel does not describe its types (BTF)", "a kernel with CONFIG_DEBUG_INFO_BTF"
    if not bpf.bpftool():
        return "BTF is there, bpftool is missing", "apt-get install bpftool"
    return ("root may load them", "") if os.geteuid() == 0 else ("only root may load them", "sudo tcpscape cca load FILE")


def _realtime(found: Survey) -> Finding:
    from tcpscape.engines.host.survey import realtime_fix

    if not found.backends:
        return _unmeasured(found)
    return ("allowed", "") if found.realtime else ("not allowed: the emulator's packets leave late while others run", realtime_fix())


def _timers(found: Survey) -> Finding:
    if found.late is None:
        return _unmeasured(found)
    kinds = {"with real-time priority": found.late_realtime, "without": found.late}
    text = "; ".join(f"{late.p50_us:.0f} µs (p99 {late.p99_us:.0f}) {kind}" for kind, late in kinds.items() if late)
    best = found.late_realtime or found.late
    return f"late by {text}", "end what else runs here" if best.p99_us > LATE_US else ""


def _rate(found: Survey) -> Finding:
    if found.rate_mbps is None or found.rate_offload_mbps is None:
        return _unmeasured(found)
    return f"{found.rate_mbps:.0f} Mbit/s through the emulator, {found.rate_offload_mbps:.0f} with super-packets", ""


def _unmeasured(found: Survey) -> Finding:
    return "not measured", found.unmeasured or ""


def _refused(why: str) -> Finding:
    """What an engine says of itself, as of any other error its problem and its fix."""
    error = EngineError(why)
    return error.what, error.fix


def _tshark() -> Finding:
    return ("there", "") if shutil.which("tshark") else ("missing: only needed to check --pcap files", "apt-get install tshark")


def _explorer() -> Finding:
    from importlib.metadata import PackageNotFoundError, version

    try:
        packages = ", ".join(f"{name} {version(name)}" for name in ("starlette", "uvicorn"))
    except PackageNotFoundError as e:
        return f"the package {e.name} is missing", "pip install 'tcpscape[web]'"
    from tcpscape.web import page

    return (f"the page is built, {packages}", "") if page.is_built() else ("the page is not built", "make web, in the checkout")


CHECKS: dict[str, Callable[[], Finding]] = {
    "python": _python,
    "libraries": _libraries,
    "engine model": _extension,
    "engine virtual": _virtual,
    "guests": _memory_files,
    "cores": _cores,
    "memory": _memory,
    "explorer": _explorer,
    "tshark": _tshark,
}
"""Checks by what they look at."""

LIVE: dict[str, Callable[[Survey], Finding]] = {
    "engine live": _live,
    "user namespaces": _spaces,
    "live:emulator": _emulator,
    "live:netem": _netem,
    "queues": _queues,
    "congestion controls": _controls,
    "BPF controls": _bpf,
    "real-time priority": _realtime,
    "timers": _timers,
    "highest rate": _rate,
}
"""The same for the live engine, out of one survey."""


@command(examples=("cleanup", "cleanup --yes"))
def cleanup(yes: Annotated[bool, Option("Remove what is listed; without it nothing is touched.")] = False) -> int | None:
    """List, and with --yes remove, what trials left: named namespaces, directories and processes of killed commands."""
    from tcpscape.engines.host import leftovers

    found = leftovers.find()
    if not found:
        print("nothing to clean up")
        return None
    removable = [leftover for leftover in found if not leftover.is_used]
    if not yes:
        terminal.print_table(Table(("what", "name", "about"), [(f.kind, f.name, f.about) for f in found], left=2, words=("about",)))
        if removable:
            print("\nNext: tcpscape cleanup --yes")
        return None
    problems = {leftover: problem for leftover in removable if (problem := leftover.remove())}
    rows = [(f.kind, f.name, f"not removed: {problems[f]}" if f in problems else f.about if f.is_used else "removed") for f in found]
    terminal.print_table(Table(("what", "name", "outcome"), rows, left=2, words=("outcome",)))
    return EXIT_USER_ERROR if problems else None
