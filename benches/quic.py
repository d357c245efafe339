#!/usr/bin/env python3
"""QUIC stacks beside Linux TCP on the same queue, in virtual time: a page of tables.

Each flow is a download from the far end through a FIFO. What it does is read from the packets on the path, the same way for all: in windows of ten round
trips after the first quarter of the time, its throughput and how long its packets waited in the queue. The envelope of a flow is the convex hull of these
points without the twentieth that is farthest out, and two envelopes overlap by the area of their intersection over that of their union.

The programs are those of examples/quic, built by `cargo build --release` there; aioquic needs an interpreter of its own (`--aioquic PYTHON`).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import platform
import re
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

import tcpscape
from tcpscape import engines

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benches"))
from table import markdown  # noqa: E402

CONTROLS = {"linux": ("cubic", "bbr", "reno"), "quinn": ("cubic", "bbr", "reno"), "s2n-quic": ("cubic", "bbr"), "quiche": ("cubic", "bbr", "reno")}
CONTROLS["aioquic"] = ("cubic", "reno")
PROGRAMS = {"quinn": "quinn", "s2n-quic": "s2n", "quiche": "quiche"}
VIRTUAL, LIVE = "virtual", "live"
PORT, FIRST_OURS = 4433, 9000
WINDOW_RTTS = 10
OUTLIERS = 0.05
RESOLUTION = 0.01
"""Half the width of a point, as a share of the rate and of a full queue's delay: so far two windows are not told apart."""
GRID = 400
ALIKE = {"throughput": 0.05, "queue": 0.1, "overlap": 0.5}
"""A stack's control is like Linux's of its name where throughput differs by at most this share, the mean wait by at most this share of the full queue,
and the envelopes overlap by at least this."""
FATE = re.compile(rb"reverse packet \d+: due \+[\d.]+ ms, sent \+([\d.]+) ms")


@dataclass(frozen=True)
class Cell:
    """A path: round-trip time in ms, rate in Mbit/s, buffer in BDP."""

    rtt_ms: int
    rate_mbps: int
    bdp: float

    @property
    def name(self) -> str:
        """As tables have it."""
        return f"{self.rtt_ms} ms, {self.rate_mbps} Mbit/s, {self.bdp:g} BDP"

    @property
    def full_ms(self) -> float:
        """How long a packet waits in the full queue."""
        return self.rtt_ms * self.bdp


QUICK = [Cell(rtt, 20, bdp) for rtt in (10, 50) for bdp in (1, 5)]
FULL = [Cell(rtt, rate, bdp) for rtt in (10, 50) for rate in (20, 100) for bdp in (0.5, 1, 3, 5)]


@dataclass(frozen=True)
class Tools:
    """Where the stacks' programs are."""

    programs: pathlib.Path
    aioquic: str | None

    def of(self, stack: str) -> str | None:
        """The command of a stack without its arguments; None where it is not there."""
        if stack == "aioquic":
            return f"{self.aioquic} {ROOT}/examples/quic/aioquic_transfer.py" if self.aioquic else None
        program = self.programs / PROGRAMS[stack]
        return str(program) if program.exists() else None


def packets(pcap: pathlib.Path) -> Iterator[tuple[float, float, int, int]]:
    """Of each packet that came down and left: when, s; how long it was on the way, ms; its bytes; the server's port."""
    content, at = pcap.read_bytes(), 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == 6:
            high, low, captured, whole = struct.unpack_from("<IIII", content, at + 12)
            frame = content[at + 28 : at + 28 + captured]
            if fate := FATE.search(content, at + 28 + captured, at + length):
                way_ms = float(fate[1])
                ports = struct.unpack_from("!HH", frame, 14 + 4 * (frame[14] & 15))
                yield ((high << 32) + low) * 1e-9 + way_ms * 1e-3, way_ms, whole - 14, min(ports)
        at += length


def windows(pcap: pathlib.Path, cell: Cell, seconds: float) -> dict[int, list[tuple[float, float]]]:
    """Of each server's port the points of its windows: throughput, Mbit/s with headers, and the mean wait in the queue, ms."""
    width = WINDOW_RTTS * cell.rtt_ms * 1e-3
    sums: dict[int, dict[int, list[float]]] = {}
    first = None
    for left, way_ms, size, port in packets(pcap):
        first = left if first is None else first
        number = int((left - first - seconds / 4) // width)
        if left - first >= seconds / 4 and (number + 1) * width <= seconds * 3 / 4:
            here = sums.setdefault(port, {}).setdefault(number, [0.0, 0.0, 0.0])
            here[0] += size
            here[1] += way_ms - cell.rtt_ms / 2
            here[2] += 1
    count = int(seconds * 3 / 4 // width)
    points = {}
    for port, each in sums.items():
        points[port] = [(each[n][0] * 8e-6 / width, each[n][1] / each[n][2]) if n in each else (0.0, 0.0) for n in range(count)]
    return points


def measure(tools: Tools, cell: Cell, stack: str, control: str, seed: int, beside: str, seconds: float, engine: str) -> dict[str, object]:
    """One run: the points of the flow, its share of the bytes of all, and what the run cost."""
    path = {"rtt": f"{cell.rtt_ms}ms", "rate": f"{cell.rate_mbps}mbit", "buffer": f"{cell.bdp:g}bdp", "engine": engine, "seed": seed}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tcpscape-quic-") as folder:
        pcap = pathlib.Path(folder) / "packets.pcapng"
        if stack == "linux":
            result = tcpscape.emulate(f"sleep {seconds:g}", mix=",".join([control, *([beside] if beside else [])]), pcap=pcap, **path)
        else:
            program = tools.of(stack)
            result = tcpscape.emulate(f"{program} get far {seconds:g}", serve=f"{program} serve {control}", mix=beside or None, pcap=pcap, **path)
        if result.status:
            raise SystemExit(f"{stack} {control} on {cell.name}: status {result.status}")
        points = windows(pcap, cell, seconds)
    own = points.get(FIRST_OURS if stack == "linux" else PORT, [])
    total = sum(rate for each in points.values() for rate, _ in each)
    return {
        "points": own,
        "share": sum(rate for rate, _ in own) / total if total else None,
        "s": round(time.monotonic() - began, 1),
        "load": os.getloadavg()[0],
    }


def envelope(points: list[tuple[float, float]], cell: Cell) -> ConvexHull:
    """The convex hull of the points, each as large as it is told, in shares of the rate and of the full queue's delay."""
    scaled = np.array(points) / (cell.rate_mbps, cell.full_ms)
    distance = np.hypot(*(scaled - scaled.mean(axis=0)).T)
    kept = scaled[np.argsort(distance, kind="stable")[: max(3, int(np.ceil(len(scaled) * (1 - OUTLIERS))))]]
    corners = RESOLUTION * np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)])
    return ConvexHull((kept[:, None, :] + corners).reshape(-1, 2))


def overlap(a: ConvexHull, b: ConvexHull) -> float:
    """Area of the intersection over that of the union, on a grid over both."""
    every = np.vstack([a.points, b.points])
    axes = [np.linspace(low, high, GRID) for low, high in zip(every.min(axis=0), every.max(axis=0), strict=True)]
    places = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    inside = [np.all(places @ hull.equations[:, :2].T + hull.equations[:, 2] <= 1e-12, axis=1) for hull in (a, b)]
    return float((inside[0] & inside[1]).sum() / (inside[0] | inside[1]).sum())


def key(cell: Cell, stack: str, control: str, seed: int, beside: str, seconds: float, engine: str = VIRTUAL) -> str:
    """The name of a run among those that are kept."""
    return f"{cell.name} | {stack} | {control} | {beside} | {seed} | {seconds:g}" + ("" if engine == VIRTUAL else f" | {engine}")


def plan(tools: Tools, cells: list[Cell], seeds: int, wanted: list[str]) -> Iterator[tuple[Cell, str, str, int, str]]:
    """The runs with the controls that are wanted, alone, then beside Linux's CUBIC, then alone with further seeds."""
    here = {stack: [name for name in controls if name in wanted] for stack, controls in CONTROLS.items() if stack == "linux" or tools.of(stack)}
    for seed, beside in ((0, ""), (0, "cubic"), *((seed, "") for seed in range(1, seeds))):
        for cell in cells:
            for stack, controls in here.items():
                yield from ((cell, stack, control, seed, beside) for control in controls)


def mean(points: list[tuple[float, float]], place: int) -> float:
    """The mean of the throughputs (0) or of the waits (1); 0 where no packet left in the middle of the run."""
    return statistics.fmean(point[place] for point in points) if points else 0.0


@dataclass(frozen=True)
class Beside:
    """A stack's control beside Linux's on one path: means of throughput, Mbit/s, and of the wait, ms, of both, and the overlap of their envelopes."""

    rate: float
    wait: float
    linux_rate: float
    linux_wait: float
    shared: float
    runs: int

    def verdict(self, cell: Cell) -> str:
        """Whether they are alike (:data:`ALIKE`), and otherwise in what they differ."""
        differences = {
            "throughput": abs(self.rate / self.linux_rate - 1) > ALIKE["throughput"],
            "wait": abs(self.wait - self.linux_wait) > ALIKE["queue"] * cell.full_ms,
            "overlap": self.shared < ALIKE["overlap"],
        }
        return ", ".join(name for name, differs in differences.items() if differs) or "alike"


def beside_linux(kept: Mapping[str, dict], cell: Cell, stack: str, control: str, seeds: int, seconds: float, engine: str = VIRTUAL) -> Beside | None:
    """The comparison over the seeds that both have, of Linux itself one seed with another; None without any, rate 0 where a run carries nothing."""

    def runs(of: str) -> list[list[tuple[float, float]] | None]:
        keys = (key(cell, of, control, seed, "", seconds, engine) for seed in range(seeds))
        return [kept[name]["points"] if name in kept else None for name in keys]

    own, theirs = runs(stack), runs("linux")
    both = [(a, b) for a, b in zip(own, theirs, strict=True) if a is not None and b]
    if not both:
        return None
    if not all(a for a, _ in both):
        return Beside(0, 0, 1, 0, 0, len(both))
    pairs = [(own[0], theirs[1])] if stack == "linux" and len(both) > 1 else [] if stack == "linux" else both
    shared = statistics.fmean(overlap(envelope(a, cell), envelope(b, cell)) for a, b in pairs) if pairs else math.nan
    rate, linux_rate = (statistics.fmean(mean(each, 0) for each in of) for of in zip(*both, strict=True))
    wait, linux_wait = (statistics.fmean(mean(each, 1) for each in of) for of in zip(*both, strict=True))
    return Beside(rate, wait, linux_rate, linux_wait, shared, len(both))


def row(kept: Mapping[str, dict], cell: Cell, stack: str, control: str, seeds: int, seconds: float) -> tuple | None:
    """A row of a control's table; None without a run."""
    result = beside_linux(kept, cell, stack, control, seeds, seconds)
    if result is None:
        return None
    if not result.rate:
        return (cell.name, stack, str(result.runs), "0", "–", "–", "–", "carries nothing")
    both = kept.get(key(cell, stack, control, 0, "cubic", seconds))
    share = f"{both['share']:.0%}" if both and both["share"] is not None else "–"
    shared = "–" if math.isnan(result.shared) else f"{result.shared:.2f}"
    verdict = "" if stack == "linux" else result.verdict(cell)
    return (cell.name, stack, str(result.runs), f"{result.rate:.2f}", f"{result.wait:.1f}", shared, share, verdict)


def live_rows(kept: Mapping[str, dict], seconds: float) -> Iterator[tuple]:
    """Rows of what was repeated in real time, one run of each beside one in virtual time."""
    for cell in FULL:
        for stack in PROGRAMS:
            for control in CONTROLS[stack]:
                virtual, live = (beside_linux(kept, cell, stack, control, 1, seconds, engine) for engine in (VIRTUAL, LIVE))
                if virtual and live:
                    values = [f"{each.rate:.2f}, {each.wait:.1f} ({each.linux_rate:.2f}, {each.linux_wait:.1f})" for each in (virtual, live)]
                    yield (cell.name, f"{stack} {control}", *values, virtual.verdict(cell), live.verdict(cell))


PAGE = """# QUIC stacks beside Linux TCP on the same queue

Generated by `python benches/quic.py` on {machine}; kernel {kernel}; {stacks}. Downloads of {seconds:g} s in virtual time through a FIFO; each number is of the middle of the run, from a quarter of it on. The programs, and what the tables say in words:
[examples/quic](../examples/quic/README.md).

| column | what it is |
|---|---|
| runs | with different seeds; the path has no chance, but a stack may draw |
| throughput | of what left the queue, with headers, Mbit/s |
| wait | mean time of its packets in the queue, ms |
| overlap | of the envelope with that of Linux's control of the same name: 1 is the same, 0 nothing in common. In Linux's own row with another seed |
| share | of the bytes beside one Linux CUBIC flow that starts at the same time |
| verdict | what differs: *alike* where throughput is within {throughput:.0%}, the wait within {queue:.0%} of the full queue, and the overlap at least {overlap} |

{tables}

## In real time

The same binaries behind the same paths on this machine's kernel ({host}), one run of each: throughput and wait, in brackets those of Linux, and the verdict of each. Other processes use the machine's {cores} cores
too (load {load}), so another run gives other numbers.

{live}
"""
LIVE_COLUMNS = ("path", "stack", "in virtual time", "in real time", "verdict, virtual", "verdict, real")
COLUMNS = ("path", "stack", "runs", "throughput", "wait", "overlap", "share", "verdict")


def page(kept: Mapping[str, dict], seeds: int, seconds: float) -> str:
    """The page, from what is there."""
    import performance

    tables = []
    for control in ("cubic", "bbr", "reno"):
        rows = [row(kept, cell, stack, control, seeds, seconds) for cell in FULL for stack, has in CONTROLS.items() if control in has]
        if any(rows):
            tables.append(f"## {control}\n\n" + markdown(COLUMNS, [each for each in rows if each]))
    kernel = engines.make("virtual").kernel
    return PAGE.format(
        machine=performance.machine(),
        kernel=f"{kernel.name} ({kernel.release})",
        stacks=versions(),
        seconds=seconds,
        tables="\n\n".join(tables),
        host=platform.release(),
        cores=os.cpu_count(),
        load=loads(kept),
        live=markdown(LIVE_COLUMNS, [*live_rows(kept, seconds)]),
        **ALIKE,
    )


def loads(kept: Mapping[str, dict]) -> str:
    """The machine's load while runs in real time were made."""
    each = [run["load"] for name, run in kept.items() if name.endswith(f"| {LIVE}") and "load" in run]
    return f"{min(each):.0f} to {max(each):.0f}" if each else "not recorded"


def versions() -> str:
    """The versions of the stacks in the workspace's lock file."""
    lock = (ROOT / "examples/quic/Cargo.lock").read_text()
    found = dict(re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"', lock))
    return ", ".join(f"{name} {found[name]}" for name in PROGRAMS)


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--full", action="store_true", help="the whole grid of 16 paths instead of 4")
    p.add_argument("--programs", type=pathlib.Path, default=ROOT / "examples/quic/target/release", help="where the stacks' programs are")
    p.add_argument("--aioquic", help="a Python interpreter that has aioquic")
    p.add_argument("--controls", default=",".join(CONTROLS["linux"]), help="those that are measured")
    p.add_argument("--seeds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=12)
    p.add_argument("--live", action="store_true", help="measure in real time: one seed, alone")
    p.add_argument(
        "--kept", type=pathlib.Path, default=pathlib.Path("quic.json"), help="what was measured before; the same command goes on from there"
    )
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "quic.md")
    a = p.parse_args()
    if unknown := set(a.controls.split(",")) - set(CONTROLS["linux"]):
        p.error(f"argument --controls: no control {', '.join(sorted(unknown))}; choose of {', '.join(CONTROLS['linux'])}")
    tools, cells = Tools(a.programs.resolve(), a.aioquic), FULL if a.full else QUICK
    kept = json.loads(a.kept.read_text()) if a.kept.exists() else {}
    engine = LIVE if a.live else VIRTUAL
    every = [each for each in plan(tools, cells, 1 if a.live else a.seeds, a.controls.split(",")) if not (a.live and each[-1])]
    runs = [each for each in every if key(*each, a.seconds, engine) not in kept]
    for number, (cell, stack, control, seed, beside) in enumerate(runs, 1):
        result = measure(tools, cell, stack, control, seed, beside, a.seconds, engine)
        kept[key(cell, stack, control, seed, beside, a.seconds, engine)] = result
        a.kept.write_text(json.dumps(kept))
        rate, wait = mean(result["points"], 0), mean(result["points"], 1)
        print(f"{number}/{len(runs)} {cell.name}: {stack} {control} {beside} {rate:.2f} Mbit/s, {wait:.1f} ms, {result['s']} s", flush=True)
    a.out.write_text(page(kept, a.seeds, a.seconds))
    print(f"wrote {a.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
