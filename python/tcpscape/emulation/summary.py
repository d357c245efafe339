"""What an emulation's command sent and received, and what the path did to it: the program's account as one document.

Directions are `up`, from the command to the far end, and `down`. Packets are those of MTU size: of a super-packet (segmentation offload) each counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from typing_extensions import TypedDict

from tcpscape import formats
from tcpscape.emulation.path import DIRECTIONS, Direction, EmulatedPath
from tcpscape.scenario import path as hops
from tcpscape.text.table import ShownAsTable
from tcpscape.units import NS_PER_S


class DelayDocument(TypedDict):
    """Delay of the packets that passed, from their arrival at the path to the moment when they were due, waiting in queues included."""

    mean: float | None
    """Mean, ms; null where nothing passed, as the others."""
    p50: float | None
    """Median, ms."""
    p99: float | None
    """99th percentile, ms."""
    max: float | None
    """Longest, ms."""


class LatenessDocument(TypedDict):
    """How late packets left, after the moment when they were due: the emulator's own error."""

    p50: float | None
    """Median, µs; null where nothing passed, as the others."""
    p99: float | None
    """99th percentile, µs."""
    max: float | None
    """Latest, µs."""


class WayDocument(TypedDict):
    """One direction of an emulated path."""

    hops: list[str]
    """tc's words of each hop at the start; a link that follows a trace is `trace FILE`."""
    packets: int
    """Packets that came."""
    bytes: int
    """Bytes that came, with Ethernet headers."""
    packets_out: int
    """Packets that left, copies included."""
    bytes_out: int
    """Bytes that left."""
    active_s: float
    """Time in which packets left, s: intervals without one are left out."""
    rate_mbps: float | None
    """Mean rate of what left in that time, Mbit/s; null where nothing left."""
    loss_asked: float
    """Share of random losses that the path's words ask for, at the start."""
    loss: float | None
    """Share of the packets that were lost at random; null where none came."""
    lost: int
    """Packets that were lost at random."""
    queue_drops: int
    """Packets that full queues and active queue management dropped."""
    marked: int
    """Packets that left with a CE mark (ECN) that they did not bring."""
    reordered: int
    """Packets that left after one that had come later."""
    duplicated: int
    """Copies that were made."""
    corrupted: int
    """Packets that left with a bit changed."""
    unasked_drops: int
    """Packets that were lost although the path did not ask for it."""
    delay_asked_ms: float
    """Constant part of the delay that the path's words ask for, at the start, ms."""
    delay_ms: DelayDocument
    """Delay of the packets that passed."""
    lateness_us: LatenessDocument
    """How late packets left."""


class EmulationDocument(TypedDict):
    """What passed an emulated path. `tcpscape emulate --json`."""

    format: Literal[1]
    """Format of an emulation."""
    command: list[str]
    """The command and its arguments."""
    status: int
    """Exit status of the command: 128 and the number for a signal, 126 and 127 where it could not be run."""
    timed_out: bool
    """Whether it was ended because its time was over (`--duration`)."""
    seconds: float
    """How long it ran, s."""
    engine: str
    """`live`, this machine's kernel in real time, or `virtual` with the kernel's name and release: `virtual:6.1 (6.1.192)`."""
    seed: int
    """Seed of the path's random streams; in virtual time of all random numbers."""
    changes: int
    """Changes of the path that were asked for while it ran; those of `--change` are not among them."""
    up: WayDocument
    """From the command to the far end."""
    down: WayDocument
    """From the far end to the command."""
    cpu: float
    """CPU time of the emulator's thread over the time, 1 is a core."""
    realtime: int | None
    """Real-time priority of the emulator's thread; null is the ordinary one."""
    caveats: list[str]
    """What weakens the figures."""
    tcpscape: str
    """Version of tcpscape."""


@dataclass(frozen=True, slots=True, repr=False)
class Emulated(ShownAsTable):
    """A command that ran behind a path: what :func:`tcpscape.emulate` returns. It prints itself as the table of what passed."""

    output: str
    """The command's standard output."""
    summary: EmulationDocument
    """What passed, as `tcpscape emulate --json` has it."""
    capture: Path | None = None
    """The packets with what the path did to each, a file that :func:`tcpscape.diagnose` reads; None where none were asked for."""

    @property
    def status(self) -> int:
        """The command's exit status; 124 where its time was over."""
        return self.summary["status"]

    @property
    def seconds(self) -> float:
        """How long it ran, s; on the virtual engine in virtual time."""
        return self.summary["seconds"]


def document(result: Mapping[str, Any], path: EmulatedPath, command: Sequence[str], seed: int, engine: str = "live") -> EmulationDocument:
    """The document of what the emulation's program reports."""
    from tcpscape import __version__

    emulator = result["emulator"]
    return {
        "format": formats.FORMATS["emulation"],  # type: ignore[typeddict-item]
        "command": list(command),
        "status": result["status"],
        "timed_out": result["is_late"],
        "seconds": result["elapsed_ns"] / NS_PER_S,
        "engine": engine,
        "seed": seed,
        "changes": result["changes"],
        "up": _way("up", result, path),
        "down": _way("down", result, path),
        "cpu": emulator["cpu_share"],
        "realtime": emulator["conditions"]["realtime"],
        "caveats": [_in_users_words(flag) for flag in result["flags"]],
        "tcpscape": __version__,
    }


def _way(name: Direction, result: Mapping[str, Any], path: EmulatedPath) -> WayDocument:
    part = DIRECTIONS[name]
    totals, account, active_ns = result["link"][part], result["emulator"][part], result["active_ns"][part]
    drops, delay, late = totals["drops"], totals["delay"], account["lateness"]
    passed, came, active_s = bool(totals["packets_out"]), totals["packets_in"], active_ns / NS_PER_S
    described = [q for queue in path.scenario.queues(part) for q in queue]
    kept = 1.0
    for q in described:
        kept *= 1 - q.loss
    return {
        "hops": [_text(hop) for hop in getattr(path.scenario, part)],
        "packets": came,
        "bytes": totals["bytes_in"],
        "packets_out": totals["packets_out"],
        "bytes_out": totals["bytes_out"],
        "active_s": active_s,
        "rate_mbps": totals["bytes_out"] * 8 / 1e6 / active_s if passed and active_s else None,
        "loss_asked": 1 - kept if kept < 1 else 0.0,
        "loss": drops["loss"] / came if came else None,
        "lost": drops["loss"],
        "queue_drops": drops["limit"] + drops["aqm"] + drops["oversize"],
        "marked": totals["marked"],
        "reordered": totals["reordered"],
        "duplicated": totals["duplicated"],
        "corrupted": totals["corrupted"],
        "unasked_drops": sum(sum(n.values()) if isinstance(n, Mapping) else n for n in account["unasked"].values()),
        "delay_asked_ms": sum(q.delay_ns for q in described) / 1e6,
        "delay_ms": {
            "mean": _if(passed, delay["mean"] / 1e6),
            "p50": _if(passed, delay["p50"] / 1e6),
            "p99": _if(passed, delay["p99"] / 1e6),
            "max": _if(passed, delay["max"] / 1e6),
        },
        "lateness_us": {name: _if(passed, late[f"{name}_us"]) for name in ("p50", "p99", "max")},  # type: ignore[typeddict-item]
    }


def _if(passed: bool, value: float) -> float | None:
    return value if passed else None


def _text(hop: hops.Hop) -> str:
    return f"trace {hop.trace.file}" if isinstance(hop, hops.TracedLink) else str(hop)


def _in_users_words(flag: str) -> str:
    """What the emulator warns of, with the directions by their names here."""
    for name, part in DIRECTIONS.items():
        flag = flag.replace(f" {part} packets", f" packets on the way {name}")
    return flag
