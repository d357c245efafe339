"""Faults planted into trials of the live engine, which its self-checks must find, and clean trials, which they must not flag.

Five kinds of faults, four of each: a limit of 1000 packets where 100,000 were asked for; super-packets where no offload was asked for; a hog on every
CPU; an impairment that is left out; a wall clock that is set (its readings are shifted: where the tests run, the clock cannot be set).

A clean trial is flagged wrongly where a flag says what was not so. That the machine was busy, or that packets left late, is measured by the trial
itself and true; such flags are counted apart, beside the share of the CPUs that other programs took meanwhile.

    .venv/bin/python benches/planted.py [--clean 50] [--seed 0]     (as root, `chrt -f 1` before it shields it from other programs)
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tcpscape.engines.live import Live
from tcpscape.scenario import options
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture

DURATION_S = 3
TRUE_OF_THE_MACHINE = re.compile(r"no idle time|waited for a CPU|hypervisor|released .* late|the emulator was busy")
"""Flags that say how busy the machine was: measured, so not wrong."""


@dataclass(frozen=True)
class Plant:
    """A fault and what must be said of it."""

    kind: str
    name: str
    path: dict[str, str]
    expected: str
    """Regular expression of the flag."""
    job: dict[str, Any] = field(default_factory=dict)
    hogs: tuple[int, float, float] | None = None
    """Busy processes for each CPU, and when they begin and end, s after the job goes out."""


LONG = {"bottleneck": "netem delay {} limit 100000", "reverse": "netem delay 1ms limit 100000"}
PLAIN = {
    "forward": "netem delay 10ms limit 100000",
    "reverse": "netem delay 10ms limit 100000",
    "bottleneck": "tbf rate 20mbit burst 6056 limit 50000",
}
ROUTED = {"bottleneck": "netem delay 10ms limit 100000", "reverse": "netem delay 10ms limit 100000"}
LOSSY = {"bottleneck": "netem delay 10ms loss 2% limit 100000", "reverse": "netem delay 10ms limit 100000"}
JITTERY = {**PLAIN, "forward": "netem delay 20ms 2ms distribution normal limit 100000"}

PLANTS = (
    *(
        Plant(
            "limit",
            f"limit 1000, delay {d}",
            {k: v.format(d) for k, v in LONG.items()},
            r"full at 1000 packets where a limit of 100000 was asked",
            {"limit": 1000},
        )
        for d in ("120ms", "150ms", "200ms", "250ms")
    ),
    Plant("super-packets", "TSO at the sender", ROUTED, r"sender's device fwd: TCP segmentation offload is on", {"super_packets": "sender"}),
    Plant("super-packets", "GSO in the middle", PLAIN, r"middle's device fwd: generic segmentation offload is on", {"super_packets": "middle"}),
    Plant("super-packets", "GRO at the receiver", PLAIN, r"receiver's device rev: generic receive offload is on", {"super_packets": "receiver"}),
    Plant(
        "super-packets",
        "joined in the emulator",
        PLAIN,
        r"left the emulator in super-packets|packets were dropped when sent",
        {"super_packets": "link"},
    ),
    Plant("hog", "one for each CPU", PLAIN, r"no idle time", hogs=(1, 0, 60)),
    Plant("hog", "two for each CPU", LOSSY, r"no idle time", hogs=(2, 0, 60)),
    Plant("hog", "for the first half", PLAIN, r"no idle time", hogs=(1, 0, 0.3 + DURATION_S / 2)),
    Plant("hog", "for the last two thirds", JITTERY, r"no idle time", hogs=(1, 0.3 + DURATION_S / 3, 60)),
    Plant("missing", "loss", LOSSY, r"lost 0\.000 % of \d+ packets where 2\.000 % was asked", {"missing": "loss"}),
    Plant("missing", "delay", PLAIN, r"delayed packets by 0\.000 ms \(median\) where 10\.000 was asked", {"missing": "delay"}),
    Plant("missing", "jitter", JITTERY, r"spread delays by 0\.000 ms", {"missing": "jitter"}),
    Plant("missing", "rate", PLAIN, r"passed [\d.]+ Mbit/s where 20\.000 was asked", {"missing": "rate"}),
    *(
        Plant("clock", f"set by {by / 1e9:+g} s", PLAIN, r"the clock was set", {"clock_step": {"at_ns": 1_000_000_000, "by_ns": by}})
        for by in (10_000_000, -10_000_000, 1_000_000_000, -3_600_000_000_000)
    ),
)
CLEAN = (PLAIN, LOSSY, JITTERY, ROUTED | {"bottleneck": "netem delay 25ms limit 100000"})


def scenario(path: dict[str, str], *, paced: bool) -> Scenario:
    """A short scenario; `paced`: its application leaves the machine room."""
    flow = {"app": "1MB/s"} if paced else {}
    return options.scenario(path, duration=f"{DURATION_S}s", flow=flow)


def spin(begin: float, end: float) -> None:
    """Keeps a CPU busy from `begin` to `end`, s from now, or until its parent is gone."""
    parent, now = os.getppid(), time.monotonic()
    time.sleep(begin)
    while time.monotonic() - now < end and os.getppid() == parent:
        for _ in range(100_000):
            pass


@contextlib.contextmanager
def hogs(each: tuple[int, float, float] | None) -> Iterator[None]:
    """While busy processes run, which end with the block."""
    count, begin, end = each or (0, 0, 0)
    processes = [multiprocessing.Process(target=spin, args=(begin, end), daemon=True) for _ in range(count * (os.cpu_count() or 1))]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def flags(engine: Live, what: Scenario, seed: int, planted: dict[str, Any], hog: tuple[int, float, float] | None) -> tuple[list[str], dict[str, Any]]:
    """What a trial says of itself, and what the machine did."""
    job = {**engine._job(what, seed, Capture()), "planted": planted}
    with hogs(hog):
        summary, _ = engine._run_job(job, what.duration / 1e9, engine._stops)
    return list(summary["caveats"]), summary["check"]["machine"]


def others(machine: dict[str, Any]) -> float:
    """Share of the CPUs' time that other programs took."""
    return max(0.0, 1 - machine["idle"] - machine["own"])


def plant(engine: Live, seed: int) -> int:
    """Plants every fault; how many were not found."""
    missed = 0
    for number, each in enumerate(PLANTS):
        bulk = each.kind in ("limit", "super-packets") or each.name == "rate"
        found, machine = flags(engine, scenario(each.path, paced=not bulk), seed + number, each.job, each.hogs)
        hit = [f for f in found if re.search(each.expected, f)]
        missed += not hit
        print(
            f"{'found ' if hit else 'MISSED'}  {each.kind:14} {each.name:24} {(hit or found or ['nothing'])[0][:110]}  (others {others(machine):.0%})"
        )
    print(f"found {len(PLANTS) - missed} of {len(PLANTS)}")
    return missed


def clean(engine: Live, count: int, seed: int) -> int:
    """Runs clean trials; how many were flagged wrongly."""
    wrong, busy, kinds, load = 0, 0, Counter[str](), []
    for number in range(count):
        found, machine = flags(engine, scenario(CLEAN[number % len(CLEAN)], paced=number % 2 == 0), seed + number, {}, None)
        load.append(others(machine))
        true = [f for f in found if TRUE_OF_THE_MACHINE.search(f)]
        wrong += len(true) < len(found)
        busy += bool(true)
        kinds.update(re.sub(r"[-+]?\d[\d.]*", "N", f)[:90] for f in found)
    load.sort()
    print(
        f"{count} clean trials: {wrong} flagged wrongly, {busy} with true flags of a busy machine; others took {load[0]:.0%} to {load[-1]:.0%} "
        f"of the CPUs (median {load[len(load) // 2]:.0%})"
    )
    for kind, n in kinds.most_common():
        print(f"  {n:3}  {kind}")
    return wrong


def main() -> int:
    """Plants, runs clean trials, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clean", type=int, default=50, help="clean trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("planted", "clean"))
    chosen = parser.parse_args()
    engine = Live()
    if reason := engine.unavailable():
        print(f"skipped: {reason}")
        return 0
    missed = plant(engine, chosen.seed) if chosen.only != "clean" else 0
    wrong = clean(engine, chosen.clean, chosen.seed) if chosen.only != "planted" and chosen.clean else 0
    return int(missed > 0 or wrong > 0.02 * chosen.clean)


if __name__ == "__main__":
    sys.exit(main())
