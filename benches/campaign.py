#!/usr/bin/env python3
"""What a campaign costs beyond its simulation, and how well it fills the cores: docs/performance-campaign.md.

The overhead is the process's own CPU time for a campaign with a store less that of the engine for the same trials, so other processes hardly
disturb it. What the cores are worth is wall-clock time, which they do disturb: the fastest of the repetitions counts, and the load is printed.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sweeps import COLUMNS as SWEEP_COLUMNS
from sweeps import FILL, FILL_FAR, Sweep
from table import markdown, verdict
from tcpscape import engines
from tcpscape.campaign import execute, record
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Runner
from tcpscape.scenario import options
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import FILE, Store
from tcpscape.trial import Trial

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
TARGET_MS = 0.1
"""Overhead of a trial, ms."""
KEEP_MS, SINGLE_MS, REOPEN_S, MANY = 0.05, 0.2, 2.0, 100_000
"""Most that keeping a trial may cost, in a campaign and alone, ms, and reopening so many, s."""
BATCH = 100
"""Trials that are saved together, about as many as a campaign saves of short ones."""
SHORT, MIDDLE, USUAL = "50ms", "1s", "10s"
"""Simulated time of a short trial, of one of a large sweep, and of a usual one."""
PATH = {"forward": "netem delay 10ms loss 1%", "bottleneck": "tbf rate 10mbit burst 6056 limit 62500", "reverse": "netem delay 10ms"}
PAGE = """# Performance of campaigns

Written by `make bench` (benches/campaign.py) on this machine; do not edit. {cpu}, {cores} cores, Python {python}, load {load:.1f}.
One CUBIC flow, 20 ms, 10 Mbit/s, 1 % loss.

## Overhead of a trial

A campaign of {trials:,} trials of {short} of simulated time, with a store, against the engine called for the same trials from a loop. CPU time
of the whole process, the database included, the fastest of {repeats} repetitions. Target: at most {target:g} ms a trial: {met}.

{overhead}

*Beyond the engine* is: finding out which trials the store has, the plan, conversions between Rust and Python, the `Trial` value, its row in the
database (one transaction for the trials of some 50 ms, before the next ones begin on that core).
*First* is the whole of the first repetition, in which the plan and the content address of each condition are made: they are kept as long as the
condition. Continuing is the same campaign again: every trial is read from the store, none is run.

## All cores

Trials of {usual} of simulated time, with a store; wall-clock time. *Efficiency* is the speed-up over one core divided by the cores; trials run in
threads, and the interpreter's lock is held only for what is beyond the engine. Where the load above is beyond the number of cores, they were not
ours alone: then only the CPU time of a trial, which should not grow with the cores, says something.

{speed}

## A large sweep

{many:,} trials of {middle} of simulated time of two conditions, with a store, on {cores} cores; and {far:,} of them on a cluster of this machine: a scheduler
and two workers, each a process ([how](how-to/cluster.md)). *Engine* is the CPU time that the engine alone takes for these trials, as a share of what the
cores have in the time that passes by the clock, and of the CPU time of all processes of the campaign; where others have a part of the cores, only the second says something.
In *a worker is killed*, one of the two is sent SIGKILL after a third of the trials; in *the scheduler is killed*, that one is, which ends the command, and the same
command runs again with a new cluster. *Kept* are rows of the database whose content is that of the first line's; *saved* is how often a trial was written.
Targets: {fill:.0%} of the CPU time, {fill_far:.0%} on a cluster, nothing lost and nothing doubled: {sweep_met}.

{sweep}

## Keeping and reading trials

The store, with trials of the campaigns above: saved from two threads, by {batch}, as a campaign does with short ones, and one by one; read whole by a new process, as a campaign
that continues or a report does; a result directory's record with its trials; and its report, with the memory of the process at its peak.
Targets: at most {keep:g} ms to keep a trial of a campaign and {single:g} ms to keep one alone, below {reopen:g} s to reopen {kept_many:,}: {kept_met}. CPU time of the process.

{stored}
"""


@dataclasses.dataclass(frozen=True)
class Shape:
    """Conditions × seeds."""

    what: str
    conditions: int
    seeds: int

    @property
    def trials(self) -> int:
        return self.conditions * self.seeds

    def cases(self, duration: str) -> list[tuple[Scenario, range]]:
        """As many different conditions, which cost the same: receive buffers out of the way."""
        return [(options.scenario(PATH, flow={"rcvbuf": f"{4096 + i}KiB"}, duration=duration), range(self.seeds)) for i in range(self.conditions)]


def fastest(work: Callable[[], None], repeats: int, clock: Callable[[], float] = time.process_time) -> float:
    """Seconds of the fastest of some repetitions."""
    taken = []
    for _ in range(repeats):
        began = clock()
        work()
        taken.append(clock() - began)
    return min(taken)


def engine_alone(cases: list[tuple[Scenario, range]]) -> Callable[[], None]:
    """The engine's own function, trial by trial, as a campaign calls it."""
    model = engines.make("model")
    plans = [(model.plan(scenario), seeds) for scenario, seeds in cases]

    def work() -> None:
        for plan, seeds in plans:
            for seed in seeds:
                plan.run(seed)

    return work


def campaign(cases: list[tuple[Scenario, range]], jobs: int, root: str | None = None) -> Callable[[], None]:
    """The campaign with a store: a new one each time, or the one in `root`."""
    model = engines.make("model")

    def work() -> None:
        with tempfile.TemporaryDirectory() as fresh, Store(root or fresh) as store:
            Runner(model, jobs, store=store).run_all(cases)

    return work


def overhead(shape: Shape, repeats: int) -> tuple[tuple[str, ...], float]:
    """A row of the table, and the overhead of a trial, ms."""
    cases = shape.cases(SHORT)
    per = 1e3 / shape.trials
    first, alone, whole = (
        fastest(work, n) * per for work, n in ((campaign(cases, 1), 1), (engine_alone(cases), repeats), (campaign(cases, 1), repeats))
    )
    with tempfile.TemporaryDirectory() as root:
        campaign(cases, 1, root)()
        again = fastest(campaign(cases, 1, root), repeats) * per
    row = (shape.what, f"{shape.trials:,}", f"{alone:.3f}", f"{whole:.3f}", f"**{whole - alone:.3f}**", f"{first:.3f}", f"{again:.3f}")
    return row, whole - alone


def speed(trials: int, repeats: int) -> list[tuple[str, ...]]:
    """Rows: cores, seconds, trials a second, efficiency, CPU time of a trial."""
    cases, cores = Shape("", 4, trials // 4).cases(USUAL), os.cpu_count() or 1
    rows, one = [], 0.0
    for n in sorted({1, 2, cores}):
        began, work = time.process_time(), campaign(cases, n)
        taken = fastest(work, repeats, time.monotonic)
        busy = (time.process_time() - began) / repeats / trials
        one = one or taken
        rows.append((str(n), f"{taken:.2f}", f"{trials / taken:.0f}", f"{100 * one / taken / n:.0f} %", f"{1e3 * busy:.2f}"))
    return rows


def sweep(many: int, far: int) -> tuple[list[tuple[str, ...]], bool]:
    """Rows about a sweep of so many trials here, and so many on a cluster, and whether all is as it should be."""
    here = Shape("", 2, many // 2).cases(MIDDLE)
    first_ones = [(scenario, range(1_000)) for scenario, _ in here]
    of_each = fastest(engine_alone(first_ones), 3) / 2_000
    return Sweep(here, [(scenario, range(far // 2)) for scenario, _ in here], of_each).rows()


def keep(root: str, count: int, batch: int) -> tuple[float, float]:
    """CPU and wall-clock seconds that it takes to keep a trial, saved by so many at a time by two threads."""
    (scenario, _), *_ = Shape("", 1, 1).cases(SHORT)
    few = engines.make("model").run(scenario, range(100))
    trials = [dataclasses.replace(few[i % len(few)], address=f"{i:024x}") for i in range(count)]
    with Store(root) as store:

        def save(part: list[Trial]) -> None:
            for begin in range(0, len(part), batch):
                store.save_many(part[begin : begin + batch])

        threads = [threading.Thread(target=save, args=(trials[i::2],)) for i in range(2)]
        began, busy = time.monotonic(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return (time.process_time() - busy) / count, (time.monotonic() - began) / count


def make_record(root: pathlib.Path, cells: int, seeds: int) -> None:
    """A result directory of a sweep over two axes and two congestion controls."""
    across = max(1, int((cells / 2) ** 0.5))
    axes = {"jitter": [f"{i}us" for i in range(across)], "rcvbuf": [f"{4096 + i}KiB" for i in range(cells // 2 // across)], "duration": [SHORT]}
    asked = Campaign.of({"conditions": {"rtt": "20ms", "rate": "10mbit"}, "axes": axes, "cca": "cubic,bbr", "seeds": str(seeds)})
    with Store(root) as store:
        outcome = execute.run(asked, execute.Execution(store=store))
    record.save(record.Record("sweep", "bench", "tcpscape sweep", {"": outcome}), root)


READ = """
import re, sys, time
from pathlib import Path
from tcpscape import report
from tcpscape.campaign import record
from tcpscape.store.results import Store
root, what = Path(sys.argv[1]), sys.argv[2]
began = time.process_time()
if what == "trials":
    with Store(root, create=False) as store:
        assert len(store.load_many(store.addresses())) == int(sys.argv[3])
else:
    kept = record.load(root)
    if what == "report":
        began = time.process_time()
        report.build(kept, root)
taken, status = time.process_time() - began, Path("/proc/self/status").read_text()  # getrusage(2) would count the parent's memory
print(taken, int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024)
"""


def read(root: pathlib.Path, what: str, count: int = 0) -> tuple[float, float]:
    """CPU seconds that a new process takes to read `trials`, the `record` or to write the `report`, and its memory, MB."""
    done = subprocess.run([sys.executable, "-c", READ, str(root), what, str(count)], check=True, capture_output=True, text=True)
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def stored(scale: int) -> tuple[list[tuple[str, ...]], bool]:
    """Rows about the store, and whether it keeps its targets; `scale`: this many times as few trials."""
    many, cells = MANY // scale, 20_000 // scale
    with tempfile.TemporaryDirectory() as root:
        kept, wall = (1e3 * seconds for seconds in keep(root, many, BATCH))
        size = (pathlib.Path(root) / FILE).stat().st_size / many / 1000
        again, memory = read(pathlib.Path(root), "trials", many)
    with tempfile.TemporaryDirectory() as root:
        single, single_wall = (1e3 * seconds for seconds in keep(root, many, 1))
    rows = [
        (f"keep a trial ({many:,}, by {BATCH}, two threads)", f"**{kept:.3f} ms**", f"{size:.1f} kB on disk, {wall:.3f} ms by the clock"),
        ("… one by one", f"{single:.3f} ms", f"{single_wall:.3f} ms by the clock"),
        (f"reopen {many:,} trials", f"**{again:.2f} s**", f"{memory:.0f} MB"),
    ]
    for count, seeds in ((20, cells // 20), (cells, 1)):
        with tempfile.TemporaryDirectory() as root:
            make_record(pathlib.Path(root), count, seeds)
            for what in ("record", "report"):
                seconds, memory = read(pathlib.Path(root), what)
                rows.append((f"{what} of {count:,} cells with {seeds:,} trials each", f"{seconds:.2f} s", f"{memory:.0f} MB"))
    return rows, kept <= KEEP_MS and single <= SINGLE_MS and again < REOPEN_S


def cpu() -> str:
    """The processor's name, where the system says it."""
    said = pathlib.Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in said.read_text().splitlines() if line.startswith("model name")] if said.exists() else []
    return names[0] if names else platform.machine()


def write(quick: bool, out: pathlib.Path) -> None:
    """Measures and writes the page."""
    trials, repeats, load = (1000, 1, os.getloadavg()[0]) if quick else (10_000, 3, os.getloadavg()[0])
    shapes = [Shape("one condition", 1, trials), Shape("conditions × 10 seeds", trials // 10, 10), Shape("conditions × 1 seed", trials, 1)]
    measured = [overhead(shape, repeats) for shape in shapes]
    columns = ("campaign", "trials", "engine, ms", "campaign, ms", "beyond the engine, ms", "first, ms", "continuing, ms")
    told = speed(40 if quick else 400, repeats)
    about_store, kept_met = stored(10 if quick else 1)
    many, far = (4_000, 4_000) if quick else (100_000, 20_000)
    about_sweep, sweep_met = sweep(many, far)
    out.write_text(
        PAGE.format(
            cpu=cpu(),
            cores=os.cpu_count(),
            python=platform.python_version(),
            load=load,
            trials=trials,
            short=SHORT,
            repeats=repeats,
            target=TARGET_MS,
            met=verdict(all(ms <= TARGET_MS for _, ms in measured)),
            overhead=markdown(columns, [row for row, _ in measured]),
            usual=USUAL,
            keep=KEEP_MS,
            single=SINGLE_MS,
            reopen=REOPEN_S,
            many=many,
            kept_many=MANY,
            far=far,
            middle=MIDDLE,
            batch=BATCH,
            fill=FILL,
            fill_far=FILL_FAR,
            sweep=markdown(SWEEP_COLUMNS, about_sweep),
            sweep_met=verdict(sweep_met),
            kept_met=verdict(kept_met),
            stored=markdown(("what", "time", "space"), about_store),
            speed=markdown(("cores", "s", "trials / s", "efficiency", "CPU ms / trial"), told),
        )
    )


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quick", action="store_true", help="1,000 trials once: a look, not a result")
    p.add_argument("--out", type=pathlib.Path, default=DOCS / "performance-campaign.md")
    a = p.parse_args()
    write(a.quick, a.out)
    print(f"wrote {a.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
