#!/usr/bin/env python3
"""What moves the jitter cliff: reordering, the low tail, directions, length and rate of a run, RTT, loss; tables of docs/models/methods/cliff.md.

`python benches/cliff_moves.py` takes some minutes on two cores and writes the tables but the one of a real kernel, which `--only kernel` writes (an hour).
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
from collections.abc import Callable, Iterator

from cliff import PAGE, RIG, Bench, Curve, at
from planes import Contour, MapEffort, SecondAxis, contour, fill, measure_pairs
from table import insert, markdown
from tcpscape.campaign.execute import Runner
from tcpscape.engines import make
from tcpscape.findings.cliff import search
from tcpscape.findings.cliff.levels import JITTER_RESOLUTION, Cliff, LevelAxis, jitter_axis
from tcpscape.scenario.options import Conditions
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


SHARE = LevelAxis("jitter", "of the RTT", 0.0, 1.0, JITTER_RESOLUTION)
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


def contours(bench: Bench) -> str:
    """The lines."""
    rows = [
        [over, cca, f"{level:g} ms" if over == "RTT" else f"{level:.2%}", said(found)]
        for over, cca, line in lines(bench)
        for level, found in line.points
    ]
    return markdown(["over", "control", "level", "edge, % of the RTT"], rows)


def ratios(bench: Bench) -> str:
    """The map BBR / CUBIC over jitter / RTT and RTT."""
    measured = measure_pairs(bench.runner, lambda x, y, cca: cell(y, x, cca), ("bbr", "cubic"))
    found = fill(measured, [(x, y) for y in RTTS_MS for x in MAP_SHARES], MapEffort(seeds=10, most=160))
    rows = [[f"{y:g} ms", *(f"{c.ratio.text(2)} {c.verdict}" for c in (found.at(x, y) for x in found.xs))] for y in found.ys]
    count = f"{found.runs} runs in all, {len(found.undecided)} undecided cells."
    return markdown(["RTT", *(f"{x:.0%}" for x in MAP_SHARES)], rows) + f"\n\n{count}"


def kernel(bench: Bench) -> str:
    """The edges on a real kernel (6.1, the virtual engine) and on the model of that kernel, the rest of the rig alike."""
    runners = [Runner(make("virtual"), bench.runner.jobs), bench.runner]

    def edges(rtt: int, cca: str) -> list[str]:
        path = at(RIG, RATE, rtt=rtt * 1_000_000, kernel=Kernel(), timer_slack=TIMER_SLACK)
        return [
            said(
                search.find(search.measure(r, lambda x: [path.model_copy(update={"jitter": round(x)}).scenario(cca)]), jitter_axis(path.rtt), EFFORT)
            )
            for r in runners
        ]

    rows = [[f"{rtt} ms", cca, *edges(rtt, cca)] for rtt, cca in itertools.product((24, 50, 100), CCAS)]
    return markdown(["RTT", "control", "Linux 6.1", "model of 6.1"], rows)


def changed(heading: str, paths: Callable[[], Iterator[tuple[str, Conditions, float]]]) -> Callable[[Bench], str]:
    """A table of the edges of some paths."""
    return lambda bench: markdown([heading, *CCAS], [[name, *(edge(bench, cca, path, rate) for cca in CCAS)] for name, path, rate in paths()])


PARTS: dict[str, Callable[[Bench], str]] = {
    "ingredients": changed("jitter", ingredients),
    "lengths": changed("length of a run", lengths),
    "rates": changed("application", rates),
    "contours": contours,
    "ratios": ratios,
    "kernel": kernel,
}


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--only", choices=PARTS)
    a = p.parse_args()
    bench = Bench(pathlib.Path(), a.jobs)
    for name, part in PARTS.items():
        if a.only == name or (not a.only and name != "kernel"):
            insert(PAGE, name, part(bench))


if __name__ == "__main__":
    main()
