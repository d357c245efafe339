#!/usr/bin/env python3
"""What moves the jitter cliff: reordering, the low tail, directions, length and rate of a run, RTT, loss; tables of docs/models/methods/cliff.md.

`python benches/cliff_moves.py` takes some minutes on two cores.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
from collections.abc import Iterator

from cliff import RIG, Bench, Curve, at
from planes import Contour, MapEffort, SecondAxis, contour, fill, measure_pairs
from tcpscape.campaign.execute import Runner
from tcpscape.engines import make
from tcpscape.findings.cliff import search
from tcpscape.findings.cliff.levels import JITTER_RESOLUTION, Axis, Cliff, jitter_axis
from tcpscape.scenario.conditions import Conditions
from tcpscape.scenario.scenario import TIMER_SLACK, Kernel, Scenario

CCAS = ("cubic", "bbr")
RATE = 10
"""MiB/s of the rig's faster application."""
FLOOR_NS = 10_000_000
EFFORT = search.Effort(most=400)
SECONDS = (2, 5, 10, 30, 60)
RATES = (0.5, 1, 2.5, 5, 10)


def ingredients() -> Iterator[tuple[str, Conditions, float]]:
    """The rig's path with each ingredient of its jitter changed: name, path, application rate."""
    yield "netem: reordering, both ways", RIG, RATE
    yield "correlated in time (order kept)", at(RIG, order="correlated"), RATE
    yield "clamped (order kept, mean raised)", at(RIG, order="clamp"), RATE
    yield "no delay below 10 ms", at(RIG, floor=FLOOR_NS), RATE
    yield "on the data only", at(RIG, jitter_on="forward"), RATE
    yield "on the ACKs only", at(RIG, jitter_on="reverse"), RATE


def lengths() -> Iterator[tuple[str, Conditions, float]]:
    """Runs of several lengths."""
    for s in SECONDS:
        yield f"{s} s", at(RIG, duration=s * 1_000_000_000), RATE


def rates() -> Iterator[tuple[str, Conditions, float]]:
    """Applications of several rates, runs of 10 s."""
    for rate in RATES:
        yield f"{rate:g} MiB/s", RIG, rate


PARTS = {"ingredients": ingredients, "lengths": lengths, "rates": rates}


def edge(bench: Bench, cca: str, path: Conditions, rate: float) -> str:
    """Where the cliff is, % of the RTT, and the runs it took."""
    axis = jitter_axis(path.rtt)
    curve = Curve("", "", cca, axis, lambda x: [at(path, rate, jitter=round(x))], [axis.harsh])
    return said(search.find(bench.measure(curve, curve.paths, 0), axis, EFFORT))


def said(found: Cliff) -> str:
    """`17.4 [16, 18] (304 runs)`."""
    by = found.axis.harsh / 100
    if found.edge is None:
        last = found.levels[-1]
        return f"none; keeps {last.retention.text(2)} at {last.at / by:.0f} ({found.runs} runs)"
    return f"{found.edge.value / by:.1f} [{found.edge.low / by:.1f}, {found.edge.high / by:.1f}] ({found.runs} runs)"


SHARE = Axis("jitter", "of the RTT", 0.0, 1.0, JITTER_RESOLUTION)
RTTS_MS, LOSSES = (12.0, 24.0, 50.0, 100.0, 200.0), (0.0, 1e-4, 1e-3, 1e-2)
MAP_SHARES = (0.0, 0.04, 0.08, 0.12, 0.16, 0.2, 0.28, 0.4)


def cell(rtt_ms: float, share: float, cca: str, loss: float = 0.0) -> Scenario:
    """The rig at an RTT under jitter (a share of it) and loss."""
    rtt = round(rtt_ms * 1e6)
    return at(RIG, RATE, rtt=rtt, jitter=round(share * rtt), loss=loss).scenario(cca)


def lines(bench: Bench) -> Iterator[tuple[str, str, Contour]]:
    """The cliff over the RTT and over the loss."""
    for cca in CCAS:
        yield (
            "RTT",
            cca,
            contour(lambda rtt, c=cca: search.measure(bench.runner, lambda x: [cell(rtt, x, c)]), SHARE, SecondAxis("rtt", "ms", RTTS_MS), EFFORT),
        )
    for cca in CCAS:
        yield (
            "loss",
            cca,
            contour(
                lambda loss, c=cca: search.measure(bench.runner, lambda x: [cell(50, x, c, loss)]), SHARE, SecondAxis("loss", "1", LOSSES), EFFORT
            ),
        )


def contours(bench: Bench) -> None:
    """Prints the lines."""
    print("\n| over | control | level | edge, % of the RTT |\n|---|---|---|---|")
    for over, cca, line in lines(bench):
        for level, found in line.points:
            print(f"| {over} | {cca} | {f'{level:g} ms' if over == 'RTT' else f'{level:.2%}'} | {said(found)} |", flush=True)


def ratios(bench: Bench) -> None:
    """Prints the map BBR / CUBIC over jitter / RTT and RTT."""
    measured = measure_pairs(bench.runner, lambda x, y, cca: cell(y, x, cca), ("bbr", "cubic"))
    found = fill(measured, [(x, y) for y in RTTS_MS for x in MAP_SHARES], MapEffort(seeds=10, most=160))
    print("\n| RTT | " + " | ".join(f"{x:.0%}" for x in MAP_SHARES) + " |\n|---|" + "---|" * len(MAP_SHARES))
    for y in found.ys:
        row = [found.at(x, y) for x in found.xs]
        print(f"| {y:g} ms | " + " | ".join(f"{c.ratio.text(2)} {c.verdict}" for c in row) + " |")
    print(f"\n{found.runs} runs, {len(found.undecided)} undecided")


def referee(jobs: int) -> None:
    """Prints the edges on a real kernel (6.1, the virtual engine) and on the model of that kernel, the rest of the rig alike."""
    if why := make("virtual").unavailable():
        print(f"\nno real kernel: {why}")
        return
    runners = {engine: Runner(make(engine), jobs) for engine in ("virtual", "model")}
    print("\n| RTT | control | " + " | ".join(runners) + " |\n|---|---|---|---|")
    for rtt, cca in itertools.product((24, 50, 100), CCAS):
        path = at(RIG, RATE, rtt=rtt * 1_000_000, kernel=Kernel(), timer_slack=TIMER_SLACK)
        found = [
            search.find(
                search.measure(r, lambda x, p=path, c=cca: [p.model_copy(update={"jitter": round(x)}).scenario(c)]), jitter_axis(path.rtt), EFFORT
            )
            for r in runners.values()
        ]
        print(f"| {rtt} ms | {cca} | " + " | ".join(said(f) for f in found) + " |", flush=True)


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--only", choices=(*PARTS, "contours", "ratios", "kernel"))
    a = p.parse_args()
    bench = Bench(pathlib.Path(), a.jobs)
    for part in [part for part in PARTS if a.only in (None, part)]:
        print(f"\n| {part} | " + " | ".join(CCAS) + " |\n|---|" + "---|" * len(CCAS))
        for name, path, rate in PARTS[part]():
            print(f"| {name} | " + " | ".join(edge(bench, cca, path, rate) for cca in CCAS) + " |", flush=True)
    if a.only in (None, "contours"):
        contours(bench)
    if a.only in (None, "ratios"):
        ratios(bench)
    if a.only in (None, "kernel"):
        referee(a.jobs)


if __name__ == "__main__":
    main()
