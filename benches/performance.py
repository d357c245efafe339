#!/usr/bin/env python3
"""How fast and how big the engine is on this machine, written to docs/performance.md from the measurements.

One core, the process's own CPU time, fastest of repetitions (a run is deterministic: noise only adds); the spread of the repetitions is printed beside each number.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ack_cost
import beside
import engine
import published
import where
from plans import make_flow, make_plan
from table import markdown, verdict

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
# Targets.
SIM_SECONDS, ARRIVALS, COST_SPREAD, STUDIES_S, MEMORY_MB, FLOW_KB = 500, 4e6, 1.5, 15, 50, 10
INSTRUCTIONS, MANY_SPREAD, LINKS_SPREAD, QUEUE_SPREAD, FAST_MB, IDLE_KB = 1_700, 2.0, 1.7, 1.5, 500, 3
RTT_MS = 50
RATES_MBIT = (1, 10, 42, 100, 1000, 10_000, 100_000)
FLOW_COUNTS = (1, 10, 100, 1000)
CHAINS = ((1, 1), (1, 3), (1000, 1), (1000, 3))
"""Flows, and the links that they pass."""
MANY_FLOWS = 10_000
SHORT_TRANSFERS = 100_000
FAST_MBIT = 100_000
QUEUES = {"jitter": ("5ms", ""), "fq_codel": ("", "fq_codel"), "cake": ("", "cake")}
"""Instead of a fixed delay and a FIFO: netem's jitter, the bottleneck's queue."""
# Buffers out of the way, so that the path decides at every rate.
BIG = 1 << 30
KERNEL = {"profile": "6.1", "rmem_max": BIG, "wmem_max": BIG, "tcp_rmem_max": BIG, "tcp_wmem_max": BIG}


def path_plan(module, cca: str, rate_mbit: float, seconds: float, *, flows: int = 1, loss_pct: float = 0, jitter: str = "", queue: str = "") -> dict:
    """Bulk flows over a bottleneck with a buffer of one bandwidth-delay product, 50 ms; `queue`: instead of its FIFO."""
    parse = engine.parser(module)
    bdp = int(rate_mbit * 125 * RTT_MS)
    loss = f" loss {loss_pct:g}%" if loss_pct else ""
    stop = round(seconds * 1e9)
    narrow = parse(f"tbf rate {rate_mbit:g}mbit burst {max(6056, int(rate_mbit * 125))} limit {max(bdp, 30000)}")
    if queue == "cake":
        narrow = parse(f"cake bandwidth {rate_mbit:g}mbit")
    elif queue:
        narrow["child"] = parse(queue)
    return make_plan(
        duration_ns=stop,
        forward=[{"qdisc": parse(f"netem delay {RTT_MS / 2:g}ms {jitter}{loss} limit 10000000"), "at": "sender"}, {"qdisc": narrow, "at": "router"}],
        reverse=[{"qdisc": parse(f"netem delay {RTT_MS / 2:g}ms limit 10000000"), "at": "receiver"}],
        flows=[make_flow(cca, stop, rcvbuf=min(BIG // 4, max(1 << 20, 16 * bdp // flows)), sndbuf=min(BIG // 4, max(1 << 20, 16 * bdp // flows)))]
        * flows,
        kernel=KERNEL,
    )


def rig_plan(module, cca: str, rate_kib: float, seconds: float) -> dict:
    """The published rig's baseline: 25 ms each way, 256 KiB receive buffer, chunks at a rate, no bottleneck."""
    plan = published.Cell(cca, RTT_MS / 2).plan(engine.parser(module), rate_kib)
    stop = round(seconds * 1e9)
    return {**plan, "duration_ns": stop, "flows": [{**f, "stop_ns": stop} for f in plan["flows"]]}


@dataclasses.dataclass(frozen=True)
class Run:
    """One plan's cost: CPU seconds of each repetition, and what one run did."""

    cpu: list[float]
    sim_seconds: float
    arrivals: int
    packets: int
    data: int
    events: int
    goodput: float

    @property
    def seconds(self) -> float:
        """CPU time of the fastest repetition."""
        return min(self.cpu)

    @property
    def spread(self) -> float:
        """(largest − smallest) / median of the repetitions."""
        return (max(self.cpu) - min(self.cpu)) / max(statistics.median(self.cpu), 1e-12)

    @property
    def sim_rate(self) -> float:
        """Simulated seconds per CPU second."""
        return self.sim_seconds / max(self.seconds, 1e-12)

    @property
    def arrival_rate(self) -> float:
        """Packet arrivals, data and ACK, per CPU second."""
        return self.arrivals / max(self.seconds, 1e-12)

    @property
    def ns_per_arrival(self) -> float:
        """CPU time per packet arrival, ns."""
        return 1e9 * self.seconds / max(self.arrivals, 1)

    @property
    def ns_per_packet(self) -> float:
        """CPU time per packet sent, lost ones and retransmissions included, ns."""
        return 1e9 * self.seconds / max(self.packets, 1)


def measure(module, plan: dict, repetitions: int) -> Run:
    """CPU time of a plan on one thread. Retransmitted segments stand for the lost ones: they do not count as arrivals."""
    text, cpu, result = json.dumps(plan), [], None
    for _ in range(repetitions):
        began = time.process_time()
        result = engine.run_text(module, text, [1])[0]
        cpu.append(time.process_time() - began)
    flows = result["flows"]
    data = sum(f["data_segs_out"] - f["retransmits"] for f in flows)
    acks = sum(f["segs_in"] for f in flows)
    packets = sum(f["data_segs_out"] for f in flows) + acks
    return Run(cpu, plan["duration_ns"] / 1e9, data + acks, packets, data, result["events"], sum(f["goodput_mbps"] for f in flows))


def seconds_for(rate_mbit: float, packets: float, least: float, most: float) -> float:
    """A duration in which about so many data packets pass at a rate."""
    return min(most, max(least, packets * 1500 * 8 / (rate_mbit * 1e6)))


def row(name: str, r: Run) -> tuple:
    """A line of a table of runs."""
    return (
        name,
        f"{r.goodput:.1f}",
        f"{r.sim_rate:,.0f}",
        f"{r.arrival_rate / 1e6:.2f}",
        f"{r.data / max(r.seconds, 1e-12) / 1e6:.2f}",
        f"{r.ns_per_arrival:.0f}",
        f"{r.ns_per_packet:.0f}",
        f"{r.spread:.0%}",
    )


HEAD = ("run", "Mbit/s", "simulated s / CPU s", "M arrivals / CPU s", "M data packets / CPU s", "ns / arrival", "ns / packet", "spread")


def baseline(module, reps: int, scale: float) -> list[tuple[str, Run]]:
    """One flow at the 42 Mbit/s, 50 ms baseline, in its three readings."""
    s = 600 * scale
    return [
        ("cubic, 42 Mbit/s bottleneck", measure(module, path_plan(module, "cubic", 42, s), reps)),
        ("bbr, 42 Mbit/s bottleneck", measure(module, path_plan(module, "bbr", 42, s), reps)),
        ("reno, 42 Mbit/s bottleneck", measure(module, path_plan(module, "reno", 42, s), reps)),
        ("cubic, published rig, 5 MiB/s", measure(module, rig_plan(module, "cubic", 4940, s), reps)),
        ("cubic, published rig, 10 MiB/s", measure(module, rig_plan(module, "cubic", 9530, s), reps)),
        ("bbr, published rig, 10 MiB/s", measure(module, rig_plan(module, "bbr", 9530, s), reps)),
    ]


def rate_sweep(module, reps: int, scale: float) -> dict[str, list[tuple[str, Run]]]:
    """One flow from 1 Mbit/s to 100 Gbit/s, without and with loss (bbr keeps the pipe full there)."""
    out: dict[str, list[tuple[str, Run]]] = {}
    for label, cca, loss in (("cubic, no loss", "cubic", 0), ("bbr, no loss", "bbr", 0), ("bbr, 0.1 % loss", "bbr", 0.1)):
        out[label] = [
            (
                f"{label}, {r:g} Mbit/s",
                measure(module, path_plan(module, cca, r, seconds_for(r, 1e6 * scale, 2 if r == FAST_MBIT else 5, 5000), loss_pct=loss), reps),
            )
            for r in RATES_MBIT
        ]
    return out


def flow_sweep(module, reps: int, scale: float) -> dict[str, list[tuple[str, Run]]]:
    """1 to 10,000 flows on 1 Gbit/s."""
    out: dict[str, list[tuple[str, Run]]] = {}
    for label, cca, loss in (("cubic, no loss", "cubic", 0), ("cubic, 0.1 % loss", "cubic", 0.1), ("bbr, 0.1 % loss", "bbr", 0.1)):
        out[label] = [
            (
                f"{label}, {n} flows",
                measure(module, path_plan(module, cca, 1000, seconds_for(1000, 1e6 * scale, 3, 60), flows=n, loss_pct=loss), reps),
            )
            for n in (*FLOW_COUNTS, MANY_FLOWS)
        ]
    return out


def chain_plan(module, flows: int, links: int, seconds: float) -> dict:
    """The same bottleneck at each of several links in a row, with one place at both ends; the delay is spread over the links."""
    parse = engine.parser(module)
    plan = path_plan(module, "cubic", 1000, seconds, flows=flows)
    delay = [{"qdisc": parse(f"netem delay {RTT_MS / 2 / links:g}ms limit 10000000"), "at": "router"}]
    link = {"forward": {"stages": [*delay, {**plan["forward"]["stages"][1], "at": "router"}]}, "reverse": {"stages": delay}}
    return {**plan, **link, "links": [link] * (links - 1), "places": [{"enter": 0, "leave": links}]}


def chain_sweep(module, reps: int, scale: float) -> dict[str, list[tuple[str, Run]]]:
    """One flow and 1,000 on one link of 1 Gbit/s, and on three."""
    seconds = seconds_for(1000, 1e6 * scale, 3, 60)
    runs = [(f"cubic, {n} flows, {k} links", measure(module, chain_plan(module, n, k, seconds), reps)) for n, k in CHAINS]
    return {"cubic": runs}


def chain_targets(chains: dict[str, list[tuple[str, Run]]]) -> list[tuple]:
    """What 1,000 flows over three links cost beside one over one."""
    if not chains:
        return []
    (_, first), *_, (_, last) = chains["cubic"]
    ratio = last.ns_per_packet / max(first.ns_per_packet, 1e-12)
    return [
        (
            "cost per packet, 1,000 flows over three links beside one over one",
            "2.6 ×",
            f"within {LINKS_SPREAD} ×",
            f"{ratio:.2f} ×",
            verdict(ratio <= LINKS_SPREAD),
        )
    ]


def carried(run: Run) -> tuple[float, float]:
    """Million data packets a CPU second, and Mbit/s."""
    return run.data / max(run.seconds, 1e-12) / 1e6, run.goodput


def cost_spread(runs: list[tuple[str, Run]]) -> float:
    """Largest over smallest cost per packet of a sweep."""
    costs = [r.ns_per_packet for _, r in runs]
    return max(costs) / max(min(costs), 1e-12)


def floor(events: int, reps: int) -> list[float]:
    """Seconds of an empty event loop with as many events (`crates/sim/examples/floor.rs`); none without cargo."""
    program = ack_cost.binary("floor", "tcpscape-sim")
    if not program:
        return []
    return [float(subprocess.run([program, str(events)], capture_output=True, text=True, check=True).stdout) for _ in range(reps)]


def studies(module, jobs: int) -> tuple[float, float, int]:
    """Wall and CPU seconds of the 420-run and the 140-run study together, and the number of runs."""
    parse = engine.parser(module)
    plans = [
        (json.dumps(c.plan(parse, rate)), seed)
        for c in published.jitter_cells() + published.loss_cells()
        for rate in published.RATES_KIB
        for seed in range(1, 6)
    ]
    wall, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda p: engine.run_text(module, p[0], [p[1]]), plans))
    return time.perf_counter() - wall, time.process_time() - cpu, len(plans)


# The extension alone, without its package. The peak is the process's own (VmHWM): getrusage() would count its parent's, which a
# child takes over when it starts.
CHILD = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("_core", sys.argv[1]); core = importlib.util.module_from_spec(spec); spec.loader.exec_module(core)
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
plan = sys.stdin.read()
before = peak()
r = core.Plan(plan).run(1)
print(json.dumps([before, peak(), sum(f["cwnd"]["mean"] for f in r["flows"])]))
"""


def child_memory(module, plan: dict) -> tuple[float, float, float]:
    """In a fresh process with the extension alone: peak memory before and after a run (kB), sum of mean windows (segments)."""
    p = subprocess.run([sys.executable, "-c", CHILD, module.__file__], input=json.dumps(plan), capture_output=True, text=True, check=True)
    return tuple(json.loads(p.stdout))


def memory(module) -> dict[str, float]:
    """Peak memory for one flow, and per further flow."""
    one = child_memory(module, path_plan(module, "cubic", 42, 60))
    few, many = (child_memory(module, path_plan(module, "cubic", 1000, 5, flows=n)) for n in (100, 1000))
    per_flow, window = (many[1] - few[1]) / 900, (many[2] - few[2]) / 900 * 1448 / 1024
    fast = child_memory(module, path_plan(module, "cubic", FAST_MBIT, 2))[1] / 1024
    few, many = (child_memory(module, idle_plan(module, n))[1] for n in (1_000, 11_000))
    short = {"short": child_memory(module, transfers_plan(module))[1] / 1024, "short_s": measure(module, transfers_plan(module), 3).seconds}
    sizes = {"bare": one[0] / 1024, "one": one[1] / 1024, "per_flow": per_flow, "window": window, "fast": fast}
    return {**sizes, "idle": (many - few) / 10_000, **short}


def idle_plan(module, flows: int) -> dict:
    """Flows that have sent 8 kB, wait and keep nothing in flight."""
    plan = path_plan(module, "cubic", 1000, 5, flows=1)
    flow = {**plan["flows"][0], "rcvbuf": 1 << 17, "sndbuf": 1 << 17, "app": {"kind": "paced", "chunk": 8192, "rate_Bps": 1}}
    return {**plan, "flows": [{**flow, "start_ns": round(3e9 * i / flows)} for i in range(flows)]}


def transfers_plan(module) -> dict:
    """10,000 connections a second for 10 s, of 1 to 100 kB each, beside a flow that is idle."""
    plan = {**idle_plan(module, 1), "duration_ns": 10_000_000_000}
    kind = {
        "flow": {**path_plan(module, "cubic", 1000, 10)["flows"][0]},
        "per_second": SHORT_TRANSFERS / 10,
        "least": 1_000,
        "most": 100_000,
        "shape": 1.2,
    }
    return {**plan, "flows": [{**plan["flows"][0], "stop_ns": plan["duration_ns"]}], "transfers": [kind]}


CACHES = {"I1": "32768,8,64", "D1": "32768,8,64", "LL": "1048576,16,64"}
"""What misses are counted of: bytes, ways, bytes of a line. The last one is a core's second level."""
COUNTS = {"Ir": "instructions", "I1mr": "of them not in the first cache", "D1m": "data not in the first cache", "LLm": "neither in the second"}


def counted(module, plan: dict) -> Counter[str]:
    """Instructions and cache misses of a fresh process that runs the plan, and its packet arrivals."""
    with tempfile.NamedTemporaryFile() as out:
        caches = [f"--{name}={size}" for name, size in CACHES.items()]
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={out.name}", *caches]
        subprocess.run([*command, sys.executable, "-c", CHILD, module.__file__], input=json.dumps(plan), capture_output=True, text=True, check=True)
        lines = dict(line.split(":", 1) for line in pathlib.Path(out.name).read_text().splitlines() if re.match("events:|summary:", line))
    n = dict(zip(lines["events"].split(), map(int, lines["summary"].split()), strict=True))
    misses = {"I1mr": n["I1mr"], "D1m": n["D1mr"] + n["D1mw"], "LLm": n["ILmr"] + n["DLmr"] + n["DLmw"]}
    return Counter(misses, Ir=n["Ir"], arrivals=measure(module, plan, 1).arrivals)


@dataclasses.dataclass(frozen=True)
class Case:
    """A path whose arrivals are counted."""

    cca: str
    rate_mbit: int
    flows: int = 1
    loss_pct: float = 0.0
    queue: str = ""
    """Of QUEUES; empty is a fixed delay and a FIFO."""
    links: int = 0
    """Links of 1 Gbit/s in a row behind places at both ends; 0 is a path without places."""

    def __str__(self) -> str:
        flows = f"{self.flows:,} flow{'s' * (self.flows > 1)}"
        links = f", {self.links} link{'s' * (self.links > 1)}" * bool(self.links)
        return f"{self.cca}, {self.rate_mbit} Mbit/s, {flows}, {self.loss_pct:g} % loss" + f", {self.queue}" * bool(self.queue) + links

    def plan(self, module, seconds: float) -> dict:
        """The plan of a trial that lasts so long."""
        if self.links:
            return chain_plan(module, self.flows, self.links, seconds)
        jitter, queue = QUEUES.get(self.queue, ("", ""))
        return path_plan(module, self.cca, self.rate_mbit, seconds, flows=self.flows, loss_pct=self.loss_pct, jitter=jitter, queue=queue)


def per_arrival(module, case: Case, scale: float) -> list[float]:
    """The counts of COUNTS for each packet arrival: two runs of different length, of which the difference counts."""
    seconds = (200 * scale / case.rate_mbit, 600 * scale / case.rate_mbit) if case.rate_mbit < 1000 else (scale, 2 * scale)
    short, long = (counted(module, case.plan(module, s)) for s in seconds)
    more = long - short
    return [more[name] / more["arrivals"] for name in COUNTS]


def counts(module, scale: float, jobs: int) -> tuple[str, list[tuple]]:
    """What an arrival takes, in counts that no load of the machine changes, and the targets about them; why there are none without valgrind."""
    if not shutil.which("valgrind"):
        return "Not measured: valgrind is not installed.", []
    one = Case("cubic", 42)
    cases = [one, *(Case("cubic", 42, queue=queue) for queue in QUEUES), Case("bbr", 1, loss_pct=0.1)]
    cases += [Case(cca, 1000, n, loss) for cca, loss in (("cubic", 0.0), ("bbr", 0.1)) for n in FLOW_COUNTS]
    cases += [Case("cubic", 1000, n, links=links) for n, links in CHAINS]
    with ThreadPoolExecutor(jobs) as pool:
        measured = dict(zip(cases, pool.map(lambda case: per_arrival(module, case, scale), cases), strict=True))
    rows = [(str(case), f"{n[0]:,.0f}", *(f"{x:.1f}" for x in n[1:])) for case, n in measured.items()]
    each = measured[one][0]
    targets = [("instructions an arrival, cubic, 42 Mbit/s", "3,340", f"≤ {INSTRUCTIONS:,}", f"{each:,.0f}", verdict(each <= INSTRUCTIONS))]
    for queue in QUEUES:
        beside = measured[Case("cubic", 42, queue=queue)][0] / each
        targets.append((f"the same with {queue}, beside a FIFO", "–", f"≤ {QUEUE_SPREAD} ×", f"{beside:.2f} ×", verdict(beside <= QUEUE_SPREAD)))
    return markdown(("for each arrival", *COUNTS.values()), rows), targets


def where_table() -> str:
    """The share of each part of the engine in its instructions."""
    rows = where.rows() if shutil.which("valgrind") else []
    return markdown(("part", "share"), rows) if rows else "Not measured: valgrind or cargo is not installed."


PAGE = """\
# Performance

Written by `make bench` (benches/performance.py) on this machine; do not edit. {machine}. One thread, the process's own CPU
time, the fastest of {reps} repetitions, since a run is deterministic and noise only adds; *spread* is (largest − smallest) / median
of the repetitions: the noise of a shared machine.
An *arrival* is a packet that reaches an endpoint, data or ACK; a *packet* is any that was sent: what a queue
dropped and its retransmission are work too.

What campaigns, real kernels and the explorer cost: [campaigns](performance-campaign.md), [the virtual engine](performance-virtual.md), [the live engine](performance-live.md),
[the explorer](performance-explorer.md), [what a user waits for](performance-waits.md).

## Targets

*Before* is what was measured when the targets of a row were set; a row without it was not measured then.

{targets}

## One flow, 42 Mbit/s, 50 ms

{baseline}

{floor}

## Beside other simulators

Million data packets that were received per CPU second (and what the flows carried), on a path of 50 ms with a buffer of one bandwidth-delay product, on this
machine, start-up not counted (`benches/beside.py`). They differ in what they model: the fewer mechanisms, the fewer instructions a packet.

{beside}

## One ACK of each congestion control

*Hooks* are the congestion control's own code, driven without a sender around it, with an RTT that varies and a loss in every twentieth round trip.
*An ACK*, which the target is about, is all that the sender does about one on the same path as above, from its arrival until what may go has gone; a
control with fewer losses saves work there. Instructions are counted (valgrind), and so the same on every run; times are medians of {reps} interleaved
repetitions.

{acks}

## From 1 Mbit/s to 100 Gbit/s (one flow, 50 ms, a buffer of one bandwidth-delay product)

{rates}

## From 1 to 10,000 flows (1 Gbit/s, 50 ms)

{flows}

## From one link to three (1 Gbit/s each, 50 ms in all)

{chains}

## What an arrival takes

Instructions and cache misses for each packet that reaches an endpoint, counted by valgrind with a first cache of 32 KiB for instructions and one for data,
and a second one of 1 MiB: the same on every run. What the arrivals of one flow run is some 40 KiB of code, a little more than the first
cache holds. With many flows the events of all parts of the model alternate, so that more of it has to come from the second cache for each arrival, and the
flows' state, 9 kB each, is in neither.

{counts}

Where the instructions of the first row are spent, by the source that they are compiled from (`benches/where.py`).

{where}

## The two published studies

{studies}

## Memory

{memory}
"""


def machine() -> str:
    """The processor, in a few words."""
    name = platform.processor() or platform.machine()
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"model name\s*: (.*)", cpuinfo.read_text())
        name = found[1] if found else name
    return f"{name}, Python {platform.python_version()}"


def sweep_tables(sweeps: dict[str, list[tuple[str, Run]]]) -> str:
    """One table over the sweeps, and each sweep's cost ratio."""
    table = markdown(HEAD, [row(name, r) for runs in sweeps.values() for name, r in runs])
    ratios = "; ".join(f"{label}: {cost_spread(runs):.2f} ×" for label, runs in sweeps.items())
    return f"{table}\n\nLargest cost per packet over the smallest: {ratios}."


def memory_lines(module) -> tuple[str, list[tuple]]:
    """The memory section and its targets."""
    if not hasattr(module, "__file__"):
        return "Not measured with the stand-in.", []
    m = memory(module)
    text = markdown(
        ("what", "value"),
        [
            ("interpreter with the extension, nothing run", f"{m['bare']:.1f} MB"),
            ("one flow at 42 Mbit/s, 60 s", f"{m['one']:.1f} MB"),
            (f"one flow at {FAST_MBIT / 1000:g} Gbit/s, 2 s", f"{m['fast']:.0f} MB"),
            ("each further flow (100 → 1,000 flows)", f"{m['per_flow']:.1f} kB, of which its mean window is {m['window']:.1f} kB"),
            ("each further flow that is idle (1,000 → 11,000 flows, 8 kB sent by each)", f"{m['idle']:.1f} kB"),
            (f"{SHORT_TRANSFERS:,} transfers of 1 to 100 kB in 10 s", f"{m['short']:.0f} MB, {m['short_s']:.2f} s of CPU"),
        ],
    )
    return text, [
        ("peak memory, one flow", "–", f"< {MEMORY_MB} MB", f"{m['one']:.1f} MB", verdict(m["one"] < MEMORY_MB)),
        (f"… at {FAST_MBIT / 1000:g} Gbit/s", "–", f"< {FAST_MB} MB", f"{m['fast']:.0f} MB", verdict(m["fast"] < FAST_MB)),
        ("each further flow", "–", f"< {FLOW_KB} kB + window", f"{m['per_flow']:.1f} kB", verdict(m["per_flow"] < FLOW_KB + m["window"])),
        ("… that is idle", "–", f"≤ {IDLE_KB} kB", f"{m['idle']:.1f} kB", verdict(m["idle"] <= IDLE_KB)),
    ]


def floor_text(run: Run, empty: list[float]) -> str:
    """The run beside an empty event loop with as many events."""
    if not empty:
        return "The engine has no empty-loop measurement."
    f = min(empty)
    return (
        f"An empty event loop with the same {run.events:,} events takes {f:.3f} s ({1e9 * f / run.events:.0f} ns an event): the run costs "
        f"{run.seconds / f:.1f} × its floor ({run.events / run.arrivals:.2f} events and {run.ns_per_arrival:.0f} ns an arrival)."
    )


def ack_costs(module, reps: int, scale: float, jobs: int) -> dict[str, ack_cost.Cost]:
    """Every congestion control at the baseline; nothing with the stand-in."""
    return ack_cost.measure(module, lambda cca, s: path_plan(module, cca, 42, s), reps, scale, jobs) if hasattr(module, "cca_registry") else {}


def acks(module, reps: int, scale: float, jobs: int) -> str:
    """That part alone, to look at."""
    return ack_cost.table(ack_costs(module, reps, scale, jobs))


def write(module, reps: int, scale: float, jobs: int, out: pathlib.Path) -> None:
    """Measure everything and write the page."""
    base, rates, flows = baseline(module, reps, scale), rate_sweep(module, reps, scale), flow_sweep(module, reps, scale)
    first = base[0][1]
    ack = ack_costs(module, reps, scale, jobs)
    empty = floor(first.events, reps)
    wall, cpu, runs = studies(module, jobs)
    memory_text, memory_targets = memory_lines(module)
    counts_text, counts_targets = counts(module, scale, jobs) if hasattr(module, "Plan") else ("Not measured with the stand-in.", [])
    chains = chain_sweep(module, reps, scale) if hasattr(module, "Plan") else {}
    rate_worst, many_worst = (max(cost_spread(runs) for runs in s.values()) for s in (rates, flows))
    flow_worst = max(cost_spread(runs[:-1]) for runs in flows.values())
    targets = [
        ("simulated seconds per CPU second, baseline", "–", f"≥ {SIM_SECONDS}", f"{first.sim_rate:,.0f}", verdict(first.sim_rate >= SIM_SECONDS)),
        (
            "packet arrivals per CPU second, baseline",
            "–",
            f"≥ {ARRIVALS / 1e6:g} M",
            f"{first.arrival_rate / 1e6:.2f} M",
            verdict(first.arrival_rate >= ARRIVALS),
        ),
        *counts_targets,
        ("cost per packet, 1 Mbit/s … 100 Gbit/s", "1.94 ×", f"within {COST_SPREAD} ×", f"{rate_worst:.2f} ×", verdict(rate_worst <= COST_SPREAD)),
        ("cost per packet, 1 … 1,000 flows", "2.91 ×", f"within {COST_SPREAD} ×", f"{flow_worst:.2f} ×", verdict(flow_worst <= COST_SPREAD)),
        ("… to 10,000", "–", f"within {MANY_SPREAD:g} ×", f"{many_worst:.2f} ×", verdict(many_worst <= MANY_SPREAD)),
        *chain_targets(chains),
        (f"both studies, {runs} runs, {jobs} cores", "–", f"< {STUDIES_S} s", f"{wall:.1f} s", verdict(wall < STUDIES_S)),
        *(ack_cost.targets(ack) if ack else ()),
        *memory_targets,
    ]
    page = PAGE.format(
        machine=machine(),
        reps=reps,
        targets=markdown(("what", "before", "target", "reached", ""), targets),
        baseline=markdown(HEAD, [row(name, r) for name, r in base]),
        floor=floor_text(first, empty),
        beside=beside.table([carried(measure(module, path_plan(module, "cubic", m, 300 * scale, flows=n), reps)) for _, m, n, _ in beside.CASES]),
        acks=ack_cost.table(ack) if ack else "Not measured with the stand-in.",
        rates=sweep_tables(rates),
        flows=sweep_tables(flows),
        chains=sweep_tables(chains) if chains else "Not measured with the stand-in.",
        studies=f"{runs} runs of 10 s (42 jitter and 14 loss cells × 2 rates × 5): {wall:.1f} s on {jobs} cores, {cpu:.1f} CPU s, "
        f"{runs * 10 / max(cpu, 1e-9):,.0f} simulated seconds per CPU second.",
        counts=counts_text,
        where=where_table(),
        memory=memory_text,
    )
    out.write_text(page)


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--repetitions", type=int, default=5)
    p.add_argument("--scale", type=float, default=1.0, help="length of the runs; 0.1 for a quick look")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--out", type=pathlib.Path, default=DOCS / "performance.md")
    p.add_argument("--fake", action="store_true")
    a = p.parse_args()
    write(engine.core(a.fake), a.repetitions, a.scale, a.jobs, a.out)
    print(f"wrote {a.out}; peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
