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
import random
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

import tcpscape
from tcpscape import engines

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benches"))
from emulated import packets  # noqa: E402
from table import markdown  # noqa: E402

CONTROLS = {"linux": ("cubic", "bbr", "reno"), "quinn": ("cubic", "bbr", "reno"), "s2n-quic": ("cubic", "bbr"), "quiche": ("cubic", "bbr", "reno")}
CONTROLS["aioquic"] = ("cubic", "reno")
PROGRAMS = {"quinn": "quinn", "s2n-quic": "s2n", "quiche": "quiche"}
VIRTUAL, LIVE = "virtual", "live"
BESIDE = ("cubic", "bbr")
"""Linux's controls beside which a flow's share is measured."""
ALONE = "none"
PORT, FIRST_OURS = 4433, 9000
WINDOW_RTTS = 10
FIRST = 10_000
"""Bytes of a flow behind which it is compared from its begin on: handshakes have fewer, the first window more."""
OUTLIERS = 0.05
RESOLUTION = 0.01
"""Half the width of a point, as a share of the rate and of a full queue's delay: so far two windows are not told apart."""
GRID = 400
ALIKE = {"throughput": 0.05, "queue": 0.1, "overlap": 0.5}
"""A stack's control is like Linux's of its name where throughput differs by at most this share, the mean wait by at most this share of the full queue,
and the envelopes overlap by at least this."""


@dataclass(frozen=True)
class Cell:
    """A path: round-trip time in ms, rate in Mbit/s, buffer in BDP."""

    rtt_ms: int
    rate_mbps: int
    bdp: float

    @property
    def name(self) -> str:
        """As the runs that are kept have it."""
        return f"{self.rtt_ms} ms, {self.rate_mbps} Mbit/s, {self.bdp:g} BDP"

    @property
    def short(self) -> str:
        """As tables have it."""
        return f"{self.rtt_ms}, {self.rate_mbps}, {self.bdp:g}"

    def seconds(self, most: float) -> float:
        """How long a download on it takes: above 50 Mbit/s only 100 round trips and at least 2 s, since each packet costs the same."""
        return most if self.rate_mbps <= 50 else min(most, max(2.0, 0.1 * self.rtt_ms))

    @property
    def full_ms(self) -> float:
        """How long a packet waits in the full queue."""
        return self.rtt_ms * self.bdp


QUICK = [Cell(rtt, 20, bdp) for rtt in (10, 50) for bdp in (1, 5)]
GRID_CELLS = [Cell(rtt, rate, bdp) for rtt in (10, 50) for rate in (20, 100) for bdp in (0.5, 1, 3, 5)]


def random_cells(count: int = 10) -> list[Cell]:
    """Paths between those of the grid: 5 to 100 ms, 4 to 40 Mbit/s (both even in the logarithm), 0.5 to 5 BDP."""
    draw = random.Random(34)
    spans = ((5, 100), (4, 40))
    return [Cell(*(round(low * (high / low) ** draw.random()) for low, high in spans), round(draw.uniform(0.5, 5), 1)) for _ in range(count)]


FULL = GRID_CELLS + random_cells()
PATHS = {"quick": QUICK, "grid": GRID_CELLS, "rest": [cell for cell in GRID_CELLS if cell not in QUICK], "random": random_cells(), "all": FULL}


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


@dataclass(frozen=True)
class Sent:
    """A packet of a server that left the queue: its port, its number among those of its direction, when it left, s, its way, ms, and its size."""

    port: int
    number: int
    left: float
    way_ms: float
    size: int


def of_server(pcap: pathlib.Path) -> list[Sent]:
    """The packets of the servers that left the queue."""
    each = [packet for packet in packets(pcap) if packet.direction == "reverse" and packet.way_ms is not None]
    return [
        Sent(min(packet.ports), packet.number, packet.came + packet.way_ms * 1e-3, packet.way_ms, packet.size) for packet in each if packet.way_ms
    ]


def windows(sent: list[Sent], cell: Cell, seconds: float) -> dict[int, list[tuple[float, float]]]:
    """Of each server's port the points of its windows: throughput, Mbit/s with headers, and the mean wait in the queue, ms."""
    width = WINDOW_RTTS * cell.rtt_ms * 1e-3
    sums: dict[int, dict[int, list[float]]] = {}
    for packet in sent:
        since = packet.left - sent[0].left
        number = int((since - seconds / 4) // width)
        if since >= seconds / 4 and (number + 1) * width <= seconds * 3 / 4:
            here = sums.setdefault(packet.port, {}).setdefault(number, [0.0, 0.0, 0.0])
            here[0] += packet.size
            here[1] += packet.way_ms - cell.rtt_ms / 2
            here[2] += 1
    count = int(seconds * 3 / 4 // width)
    points = {}
    for port, each in sums.items():
        points[port] = [(each[n][0] * 8e-6 / width, each[n][1] / each[n][2]) if n in each else (0.0, 0.0) for n in range(count)]
    return points


def rounds(sent: list[Sent], cell: Cell) -> list[tuple[float, float, int]]:
    """A flow by round trips from its first :data:`FIRST` bytes on: throughput, Mbit/s with headers, mean wait in the queue, ms, and its first packet."""
    width, carried = cell.rtt_ms * 1e-3, np.cumsum([packet.size for packet in sent])
    after = sent[int(np.searchsorted(carried, FIRST)) :]
    each: dict[int, list[Sent]] = {}
    for packet in after:
        each.setdefault(int((packet.left - after[0].left) // width), []).append(packet)
    found = []
    for number in range(max(each, default=-1) + 1):
        own = each.get(number, [])
        wait = statistics.fmean(packet.way_ms for packet in own) - cell.rtt_ms / 2 if own else 0.0
        found.append((round(sum(packet.size for packet in own) * 8e-6 / width, 2), round(wait, 2), own[0].number if own else found[-1][2]))
    return found


def measure(tools: Tools, cell: Cell, stack: str, control: str, seed: int, beside: str, seconds: float, engine: str) -> dict[str, object]:
    """One run: the points of the flow, its share of the bytes of all, and what the run cost."""
    path = {"rtt": f"{cell.rtt_ms}ms", "rate": f"{cell.rate_mbps}mbit", "buffer": f"{cell.bdp:g}bdp", "engine": engine, "seed": seed}
    began, cpu = time.monotonic(), cpu_of_children()
    with tempfile.TemporaryDirectory(prefix="tcpscape-quic-") as folder:
        pcap = pathlib.Path(folder) / "packets.pcapng"
        if stack == "linux":
            result = tcpscape.emulate(f"sleep {seconds:g}", mix=",".join([control, *([beside] if beside else [])]), pcap=pcap, **path)
        else:
            program = tools.of(stack)
            result = tcpscape.emulate(f"{program} get far {seconds:g}", serve=f"{program} serve {control}", mix=beside or None, pcap=pcap, **path)
        if result.status:
            raise SystemExit(f"{stack} {control} on {cell.name}: status {result.status}")
        sent, port = of_server(pcap), FIRST_OURS if stack == "linux" else PORT
    points = windows(sent, cell, seconds)
    own = points.get(port, [])
    total = sum(rate for each in points.values() for rate, _ in each)
    return {
        "points": own,
        "rounds": [] if beside else rounds([packet for packet in sent if packet.port == port], cell),
        "share": sum(rate for rate, _ in own) / total if total else None,
        "ended": round(result.seconds, 1),
        "s": round(time.monotonic() - began, 1),
        "cpu": round(cpu_of_children() - cpu, 1),
        "load": os.getloadavg()[0],
    }


def cpu_of_children() -> float:
    """CPU seconds of the children that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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


def plan(tools: Tools, cells: list[Cell], seeds: int, stacks: list[str], wanted: list[str]) -> Iterator[tuple[Cell, str, str, int, str]]:
    """The runs of stacks with the controls that are wanted, alone, beside Linux's controls, then the same with further seeds."""
    there = [stack for stack in CONTROLS if stack in stacks and (stack == "linux" or tools.of(stack))]
    here = {stack: [name for name in CONTROLS[stack] if name in wanted] for stack in there}
    for seed, beside in [(seed, beside) for seed in range(seeds) for beside in ("", *BESIDE)]:
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


def begin(kept: Mapping[str, dict], cell: Cell, stack: str, control: str, seeds: int, seconds: float) -> str:
    """When a flow begins to differ from Linux's with the same seed, and with which packet; a dash where that is not known or not the case.

    That is the first round trip whose throughput or wait, and the means of these over :data:`WINDOW_RTTS` round trips from it on, differ by more than
    :data:`ALIKE` allows.
    """
    pairs = zip(*(keys_of(cell, of, control, seeds, "", seconds) for of in (stack, "linux")), strict=True)
    known = [(kept[a]["rounds"], kept[b]["rounds"]) for a, b in pairs if a != b and all(kept.get(name, {}).get("rounds") for name in (a, b))]
    for own, theirs in known[:1]:
        count = min(len(own), len(theirs))
        apart = (np.array(own)[:count, :2] - np.array(theirs)[:count, :2]) / (cell.rate_mbps, cell.full_ms)
        for number in range(count - WINDOW_RTTS):
            each = np.abs([apart[number], apart[number : number + WINDOW_RTTS].mean(axis=0)]) > (ALIKE["throughput"], ALIKE["queue"])
            if each.all(axis=0).any():
                return f"{number * cell.rtt_ms * 1e-3:.2f} s, {own[number][2]}"
    return "–"


def row(kept: Mapping[str, dict], cell: Cell, stack: str, control: str, seeds: int, seconds: float) -> tuple | None:
    """A row of a control's table; None without a run."""
    result = beside_linux(kept, cell, stack, control, seeds, cell.seconds(seconds))
    if result is None:
        return None
    beside = SHARES.join(shares_of(kept, cell, stack, control, seeds, seconds))
    name = f"{stack} ({result.runs})"
    if not result.rate:
        ends = [kept[name]["ended"] for name in keys_of(cell, stack, control, seeds, "", seconds) if name in kept and "ended" in kept[name]]
        return (
            cell.short,
            name,
            "0",
            "–",
            "–",
            beside,
            begin(kept, cell, stack, control, seeds, seconds),
            f"ends after {min(ends):g} s" if ends and min(ends) < cell.seconds(seconds) else "carries nothing",
        )
    overlaps = "–" if math.isnan(result.shared) else f"{result.shared:.2f}"
    verdict = "" if stack == "linux" else result.verdict(cell)
    begins = begin(kept, cell, stack, control, seeds, seconds) if verdict != "alike" else "–"
    return (cell.short, name, f"{result.rate:.2f}", f"{result.wait:.1f}", overlaps, beside, begins, verdict)


def share(kept: Mapping[str, dict], cell: Cell, stack: str, control: str, seeds: int, beside: str, seconds: float) -> float | None:
    """A flow's share of the bytes beside one of Linux's, the mean of the seeds that were run."""
    names = keys_of(cell, stack, control, seeds, beside, seconds)
    shares = [kept[name]["share"] for name in names if name in kept and kept[name]["share"] is not None]
    return statistics.fmean(shares) if shares else None


def shares_of(kept: Mapping[str, dict], cell: Cell, stack: str, control: str, seeds: int, seconds: float) -> list[str]:
    """A flow's shares beside each of Linux's controls, as tables have them."""
    shares = [share(kept, cell, stack, control, seeds, beside, seconds) for beside in BESIDE]
    return [UNKNOWN if each is None else f"{each:.0%}" for each in shares]


def keys_of(cell: Cell, stack: str, control: str, seeds: int, beside: str, seconds: float) -> list[str]:
    """The names of the runs in virtual time with each of the seeds."""
    return [key(cell, stack, control, seed, beside, cell.seconds(seconds)) for seed in range(seeds)]


Rows = dict[tuple[str, str], tuple[str, ...]]
"""Path and stack → the row of a control's table."""


def table_of(before: str, heading: str, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The rows of the table of a page under a heading."""
    table = before.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in table.splitlines() if line.startswith("|")]
    return [cells for cells in lines if len(cells) == len(columns) and cells != columns and not cells[0].startswith("---")]


def runs_of(cells: tuple[str, ...]) -> int:
    """How many runs a row of a control's table is of."""
    return int(cells[COLUMNS.index("stack")].partition("(")[2].rstrip(")"))


def rows_of(kept: Mapping[str, dict], control: str, seeds: int, seconds: float, before: str) -> Rows:
    """The rows of a control's table, of what is kept, and where nothing or less is, shares too, as the page `before` has them."""
    old = {(cells[0], cells[1].split()[0]): cells for cells in table_of(before, control, COLUMNS)}
    places = [(cell, stack) for cell in FULL for stack, has in CONTROLS.items() if control in has]
    rows: Rows = {}
    place = COLUMNS.index("beside")
    for cell, stack in places:
        before_row, new_row = old.get((cell.short, stack)), row(kept, cell, stack, control, seeds, seconds)
        if new_row and before_row and runs_of(before_row) > runs_of(new_row):
            new_row = (*before_row[: place + 1], new_row[place + 1], *before_row[place + 2 :])
        if cells := new_row or before_row:
            shares = shares_of(kept, cell, stack, control, seeds, seconds)
            older = before_row[place].split(SHARES) if before_row else shares
            merged = SHARES.join(new if new != UNKNOWN else other for new, other in zip(shares, older, strict=True))
            rows[cell.short, stack] = (*cells[:place], merged, *cells[place + 1 :])
    return rows


def summary(rows: Rows, control: str) -> Iterator[tuple]:
    """Each stack's control over all paths: medians and, in brackets, the least and the most."""
    named = {cell.short: cell for cell in FULL}
    for stack in CONTROLS:
        own = [(named[path], dict(zip(COLUMNS, cells, strict=True))) for (path, name), cells in rows.items() if name == stack]
        if not own:
            continue
        linux = [dict(zip(COLUMNS, rows[cell.short, "linux"], strict=True)) for cell, _ in own]
        overlaps = [float(each["overlap"]) for _, each in own if each["overlap"] != "–"]
        pairs = [(cell, each, other) for (cell, each), other in zip(own, linux, strict=True) if each["wait"] != "–"]
        alike = sum(value >= ALIKE["overlap"] for value in overlaps) if stack == "linux" else sum(each["verdict"] == "alike" for _, each in own)
        shares = [
            [float(value[:-1]) / 100 for _, each in own if (value := each["beside"].split(SHARES)[place]) != "–"] for place in range(len(BESIDE))
        ]
        yield (
            f"{stack} {control}",
            f"{alike} of {len(overlaps) if stack == 'linux' else len(own)}",
            "" if stack == "linux" else span([float(each["throughput"]) / float(other["throughput"]) - 1 for _, each, other in pairs], "+.1%"),
            "" if stack == "linux" else span([(float(each["wait"]) - float(other["wait"])) / cell.full_ms for cell, each, other in pairs], "+.0%"),
            span(overlaps, ".2f"),
            *(span(values, ".0%") for values in shares),
        )


def span(values: list[float], form: str) -> str:
    """The median, and in brackets the least and the most."""
    if not values:
        return "–"
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def live_rows(kept: Mapping[str, dict], seconds: float) -> Iterator[tuple]:
    """Rows of what was repeated in real time, one run of each beside one in virtual time."""
    for cell in FULL:
        for stack in PROGRAMS:
            for control in CONTROLS[stack]:
                virtual, live = (beside_linux(kept, cell, stack, control, 1, cell.seconds(seconds), engine) for engine in (VIRTUAL, LIVE))
                if virtual and live:
                    values = [f"{each.rate:.2f}, {each.wait:.1f} ({each.linux_rate:.2f}, {each.linux_wait:.1f})" for each in (virtual, live)]
                    yield (cell.short, f"{stack} {control}", *values, virtual.verdict(cell), live.verdict(cell))


PAGE = """# QUIC stacks beside Linux TCP on the same queue

Generated by `python benches/quic.py --paths all --controls cubic,bbr` on {machine}; kernel {kernel}; {stacks}. Downloads in virtual time through a FIFO, of {seconds:g} s ({shorter}); each number is of the run from a quarter of it on. The programs, and what
the tables say in words: [examples/quic](../examples/quic/README.md).

| column | what it is |
|---|---|
| path | round-trip time, ms; rate, Mbit/s; buffer, BDP |
| stack | and how many runs with different seeds: the path has no chance, but a stack may draw |
| throughput | of what left the queue, with headers, Mbit/s |
| wait | mean time of its packets in the queue, ms |
| overlap | of the envelope with that of Linux's control of the same name: 1 is the same, 0 nothing in common. In Linux's own row with another seed |
| beside | share of the bytes beside one Linux CUBIC flow, and beside one Linux BBR flow, that starts at the same time |
| begins | when it begins to differ from Linux's, s after its first 10 kB left the queue, and which of the server's packets that is (`reverse packet …` of the capture): the first round trip whose throughput or wait, and their means over ten from there on, differ by more than the verdict allows; – where the flow is alike, where no such round trip was found, or where none is kept |
| verdict | what differs: *alike* where throughput is within {throughput:.0%}, the wait within {queue:.0%} of the full queue, and the overlap at least {overlap}; *ends after*: the program closed its connection |

## Over all paths

The grid has {grid} paths: 10 and 50 ms, 20 and 100 Mbit/s, 0.5, 1, 3 and 5 BDP. Here are {measured}. Medians, in brackets the least and the most; throughput and wait are differences from Linux's, the wait in shares of the full queue.
Of Linux's own controls *alike* says on how many paths the envelopes of two seeds overlap by {overlap}: where they do not, a stack's cannot be expected to.

{summary}

{tables}

## In real time

{live}
"""
LIVE_TEXT = """The same binaries behind the same paths on a kernel {host} ({machine}), one run of each: throughput and wait, in brackets those of Linux, and the verdict of each. Other processes used the machine's {cores} cores
too (load {load}), so another run gives other numbers. Both verdicts are *alike*, or neither is: {same}. A program that carries less in real time than in virtual time, where computing takes no time, got too little of the processor.

{table}"""
LIVE_COLUMNS = ("path", "stack", "in virtual time", "in real time", "verdict, virtual", "verdict, real")
COLUMNS = ("path", "stack", "throughput", "wait", "overlap", "beside", "begins", "verdict")
UNKNOWN = "–"
SHARES = ", "
"""Between the shares of a row."""
SUMMARY = ("control", "alike", "throughput", "wait", "overlap", *(f"beside {name}" for name in BESIDE))


def extent(control: str, rows: Rows) -> str:
    """How many paths of the grid and how many random ones a control's table has."""
    paths = {path for path, _ in rows}
    of_grid, at_random = (sum(cell.short in paths for cell in cells) for cells in (GRID_CELLS, random_cells()))
    return f"{control} on {of_grid} of them" + (f" and {at_random} random ones" if at_random else "")


def live_part(kept: Mapping[str, dict], seconds: float, before: str) -> str:
    """What was measured in real time; as the page `before` has it where no such run is kept."""
    import performance

    rows = {cells[:2]: cells for cells in live_rows(kept, seconds)}
    if not rows:
        return before.partition("## In real time\n\n")[2].rstrip("\n")
    rows = {cells[:2]: cells for cells in table_of(before, "In real time", LIVE_COLUMNS)} | rows
    order = {(cell.short, f"{stack} {control}"): None for cell in FULL for stack in PROGRAMS for control in CONTROLS[stack]}
    return LIVE_TEXT.format(
        host=platform.release(),
        machine=performance.machine(),
        cores=os.cpu_count(),
        load=loads(kept),
        same=agreements(rows.values()),
        table=markdown(LIVE_COLUMNS, [rows[place] for place in order if place in rows]),
    )


def agreements(rows: Iterable[tuple[str, ...]]) -> str:
    """In how many comparisons real and virtual time say the same, by rates."""
    by_rate: dict[str, list[bool]] = {}
    for path, *_, virtual, real in rows:
        by_rate.setdefault(path.split(", ")[1], []).append((virtual == "alike") == (real == "alike"))
    return ", ".join(f"{sum(each)} of {len(each)} at {rate} Mbit/s" for rate, each in by_rate.items())


def page(kept: Mapping[str, dict], seeds: int, seconds: float, before: str) -> str:
    """The page, from what is there, and where it is not, from the page before."""
    import performance

    tables = {control: rows for control in CONTROLS["linux"] if (rows := rows_of(kept, control, seeds, seconds, before))}
    each = [(cell.rate_mbps, cell.rtt_ms, cell.seconds(seconds)) for cell in GRID_CELLS if cell.seconds(seconds) < seconds]
    kernel = engines.make("virtual").kernel
    return PAGE.format(
        machine=performance.machine(),
        kernel=f"{kernel.name} ({kernel.release})",
        stacks=versions(),
        seconds=seconds,
        grid=len(GRID_CELLS),
        measured=", ".join(extent(control, rows) for control, rows in tables.items()),
        summary=markdown(SUMMARY, [line for control, rows in tables.items() for line in summary(rows, control)]),
        shorter=", ".join(f"{length:g} s at {rate} Mbit/s and {rtt} ms" for rate, rtt, length in dict.fromkeys(each)),
        tables="\n\n".join(f"## {control}\n\n" + markdown(COLUMNS, [*rows.values()]) for control, rows in tables.items()),
        live=live_part(kept, seconds, before),
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
    p.add_argument("--paths", choices=PATHS, default="quick", help="those that are measured; of others the page keeps what it has")
    p.add_argument("--programs", type=pathlib.Path, default=ROOT / "examples/quic/target/release", help="where the stacks' programs are")
    p.add_argument("--aioquic", help="a Python interpreter that has aioquic")
    p.add_argument("--controls", default=",".join(CONTROLS["linux"]), help="those that are measured")
    p.add_argument("--stacks", default=",".join(CONTROLS), help="those that are measured")
    p.add_argument("--beside", default=",".join((ALONE, *BESIDE)), help="Linux's controls beside which they are measured, and none: alone")
    p.add_argument("--seeds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=12)
    p.add_argument("--live", action="store_true", help="measure in real time: one seed, alone")
    p.add_argument(
        "--kept", type=pathlib.Path, default=pathlib.Path("quic.json"), help="what was measured before; the same command goes on from there"
    )
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "quic.md")
    a = p.parse_args()
    for option, known in (("controls", CONTROLS["linux"]), ("stacks", CONTROLS), ("beside", (ALONE, *BESIDE))):
        if unknown := set(getattr(a, option).split(",")) - set(known):
            p.error(f"argument --{option}: no {option} {', '.join(sorted(unknown))}; choose of {', '.join(known)}")
    tools, cells = Tools(a.programs.resolve(), a.aioquic), PATHS[a.paths]
    kept = json.loads(a.kept.read_text()) if a.kept.exists() else {}
    engine = LIVE if a.live else VIRTUAL
    beside = [ALONE] if a.live else a.beside.split(",")
    every = plan(tools, cells, 1 if a.live else a.seeds, a.stacks.split(","), a.controls.split(","))
    every = [each for each in every if (each[-1] or ALONE) in beside]
    runs = [each for each in every if key(*each, each[0].seconds(a.seconds), engine) not in kept]
    for number, (cell, stack, control, seed, beside) in enumerate(runs, 1):
        result = measure(tools, cell, stack, control, seed, beside, cell.seconds(a.seconds), engine)
        kept = json.loads(a.kept.read_text()) if a.kept.exists() else {}  # another measurement may write to it too
        kept[key(cell, stack, control, seed, beside, cell.seconds(a.seconds), engine)] = result
        a.kept.write_text(json.dumps(kept))
        rate, wait = mean(result["points"], 0), mean(result["points"], 1)
        print(
            f"{number}/{len(runs)} {cell.name}: {stack} {control} {beside} {rate:.2f} Mbit/s, {wait:.1f} ms, {result['s']} s, CPU {result['cpu']} s",
            flush=True,
        )
    a.out.write_text(page(kept, a.seeds, a.seconds, a.out.read_text() if a.out.exists() else ""))
    print(f"wrote {a.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
