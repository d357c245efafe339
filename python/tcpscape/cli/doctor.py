"""`tcpscape doctor` and `tcpscape version`: what this machine can run, and why not."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tcpscape import __version__
from tcpscape.cli import terminal
from tcpscape.cli.command import command
from tcpscape.errors import TcpscapeError
from tcpscape.tables import Table

Finding = tuple[str, str]
"""What a check finds, and what to do about it (empty where nothing is needed)."""


@command(examples=("doctor", "kernel list"))
def doctor() -> None:
    """What this machine can run and why not."""
    rows = [(name, *check()) for name, check in CHECKS.items()]
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
        problem, _, fix = why.rpartition("; ")
        return problem, fix
    return "kernels: " + ", ".join(f"{kernel.name} ({kernel.release})" for kernel in kernels.built_kernels()), ""


def _memory_files() -> Finding:
    from tcpscape.engines.guest.process import MEMORY_MB, memory_directory

    try:
        return f"{memory_directory(MEMORY_MB)} has room for a guest's memory", ""
    except TcpscapeError as e:
        problem, _, fix = str(e).rpartition("; ")
        return problem, fix


def _live() -> Finding:
    limit = Path("/proc/sys/user/max_user_namespaces")
    spaces = limit.exists() and limit.read_text().strip() != "0"
    namespaces = "possible" if os.geteuid() == 0 or spaces else "not allowed to this user"
    ip = "there" if shutil.which("ip") else "missing"
    return f"network namespaces {namespaces}, ip {ip}; the live engine is not built yet", "use --engine model"


def _tshark() -> Finding:
    return ("there", "") if shutil.which("tshark") else ("missing: only needed to check --pcap files", "apt-get install tshark")


CHECKS: dict[str, Callable[[], Finding]] = {
    "python": _python, "libraries": _libraries, "engine model": _extension, "engine virtual": _virtual, "guests": _memory_files, "engine live": _live,
    "cores": _cores, "memory": _memory, "tshark": _tshark,
}
