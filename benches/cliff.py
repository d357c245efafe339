#!/usr/bin/env python3
"""The adaptive cliff search on fourteen paths, and against dense grids: does it find the same edge, within its interval, at a tenth of the runs?

`python benches/cliff.py` searches (some minutes) and writes the table of today's edges, docs/models/methods/cliff.md. `--grids` runs dense grids under other
seeds too (36 CPU minutes; those of one version of the model are kept in `--keep` and not run twice) and prints the comparison. `--only NAME` takes one path.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from table import MODELS, insert, markdown
from tcpscape.campaign.execute import Runner
from tcpscape.engines import make
from tcpscape.findings.cliff import search
from tcpscape.findings.cliff.levels import Cliff, LevelAxis, jitter_axis, loss_axis
from tcpscape.scenario.options import Conditions

PAGE = MODELS / "methods" / "cliff.md"
DENSE_SEED = 100_000
"""The grids' first seed: none is shared with the searches."""
RUNS = 500
"""Runs of each point of a grid."""
RESAMPLES = 1000
MOST = 600
"""Measurements of a search at most."""

RIG = Conditions.model_validate(
    {"rtt": "50ms", "kernel": {"profile": "6.12", "rmem_max": "4MiB"}, "timer_slack": "58us", "flow": {"rcvbuf": "256KiB", "read": "16KiB/1ms"}}
)
"""The rig of the study jitter-cliff."""
BOTH, SLOW = (5, 10), (5,)
"""Application rates, MiB/s; where there are two, a measurement is the mean over both."""
DSL = Conditions.model_validate({"rtt": "40ms", "rate": "20mbit"})
SATELLITE = Conditions.model_validate({"rtt": "26ms", "loss": "0.125%", "flow": {"rcvbuf": "256KiB"}})

Paths = Callable[[float], list[Conditions]]


@dataclass(frozen=True)
class Curve:
    """One path along one axis under one congestion control."""

    name: str
    label: str
    cca: str
    axis: LevelAxis
    paths: Paths
    """What is run for one measurement at a level."""
    grid: Sequence[float]
    base: Paths | None = None
    """The same without the impairment, where the axis itself changes the rate."""
    threshold: float = search.HALF

    @property
    def each(self) -> int:
        """Runs in one measurement."""
        return len(self.paths(self.grid[-1]))

    @property
    def unit(self) -> tuple[float, str]:
        """What tables divide by, and the unit they then show."""
        return {"jitter": (self.axis.harsh / 100, "% of RTT"), "loss": (0.01, "%"), "rate": (1.0, "MiB/s")}[self.axis.name]


def at(path: Conditions, app: float = 0, **update: object) -> Conditions:
    """The path with an application rate (MiB/s) and other changes."""
    flow = path.flow.model_copy(update={"app": path.flow.app.model_copy(update={"rate": round(app * 2**20)})})
    return path.model_copy(update={"flow": flow, **update})


def jittered(name: str, what: str, path: Conditions, cca: str, apps: Sequence[float], top: int, low: int = 1) -> Curve:
    """Along the jitter: none, and in steps of 1 % of the RTT from `low` to `top` %."""
    axis = jitter_axis(path.rtt)
    grid = [round(i / 100, 2) * path.rtt for i in (0, *range(low, top + 1))]
    return Curve(name, what, cca, axis, lambda x: [at(path, a, jitter=round(x)) for a in apps], grid)


def lossy(name: str, cca: str, low: float, high: float) -> Curve:
    """Along the random loss of each direction, 30 points in equal factors."""
    grid = [0.0, *(float(x) for x in np.geomspace(low, high, 30))]
    return Curve(name, "rig, RTT 50 ms, loss", cca, loss_axis(), lambda x: [at(RIG, a, loss=x) for a in BOTH], grid)


def paced(name: str, jitter_ms: int) -> Curve:
    """Along the application's rate, under jitter; the base is the same rate without it."""
    axis = LevelAxis("rate", "MiB/s", 0.25, 16.0, 0.05, origin=None, log=True)
    grid = [float(x) for x in np.geomspace(0.25, 16, 31)]
    jitter = jitter_ms * 1_000_000
    what = f"rig, RTT 50 ms, jitter {jitter_ms} ms, rate (80 % kept)"
    return Curve(name, what, "cubic", axis, lambda x: [at(RIG, x, jitter=jitter)], grid, lambda x: [at(RIG, x)], 0.8)


def curves() -> list[Curve]:
    """Every path of the table."""

    def rig(rtt: int) -> Conditions:
        return at(RIG, rtt=rtt * 1_000_000)

    tops = {(24, "cubic"): 36, (100, "cubic"): 24}
    found = [
        jittered(f"j{rtt}-{cca}", f"rig, RTT {rtt} ms, jitter", rig(rtt), cca, BOTH, tops.get((rtt, cca), 30))
        for cca in ("cubic", "bbr")
        for rtt in (24, 50, 100)
    ]
    return [
        *found,
        lossy("l50-cubic", "cubic", 1e-4, 1e-2),
        lossy("l50-bbr", "bbr", 5e-3, 0.2),
        jittered("j50-reno", "rig at 5 MiB/s, RTT 50 ms, jitter", RIG, "reno", SLOW, 30),
        jittered("j40-20mbit-cubic", "20 Mbit/s, 1 bdp, RTT 40 ms, jitter", DSL, "cubic", (0,), 30),
        jittered("j50-data-cubic", "rig at 5 MiB/s, RTT 50 ms, jitter on data only", at(RIG, jitter_on="forward"), "cubic", SLOW, 30),
        jittered("j26-loss-bbr", "bulk, RTT 26 ms, 0.125 % loss, jitter", SATELLITE, "bbr", (0,), 30),
        paced("rate50-cubic-8ms", 8),
        jittered("j50-uniform-cubic", "rig at 5 MiB/s, RTT 50 ms, uniform jitter", at(RIG, distribution="uniform"), "cubic", SLOW, 60, 31),
    ]


class Bench:
    """Runs grids and searches."""

    def __init__(self, keep: pathlib.Path, jobs: int) -> None:
        self.runner = Runner(make("model"), jobs)
        self.keep = keep / self.runner.engine.version

    def measure(self, curve: Curve, paths: Paths, first: int) -> search.Measuring:
        """Goodput in Mbit/s, the mean over what one measurement consists of."""
        return search.measure(self.runner, lambda x: [p.scenario(curve.cca) for p in paths(x)], first)

    def dense(self, curve: Curve, paths: Paths, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Levels and goodputs (level × measurement) of the grid."""
        path = self.keep / f"{name}.npz"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            seeds = range(RUNS // curve.each)
            np.savez(path, levels=np.array(curve.grid), values=np.array(self.measure(curve, paths, DENSE_SEED)(curve.grid, seeds)))
        with np.load(path) as known:
            return known["levels"], known["values"]

    def found(self, curve: Curve) -> Cliff:
        """The cliff of the adaptive search."""
        base = self.measure(curve, curve.base, 0) if curve.base else None
        return search.find(self.measure(curve, curve.paths, 0), curve.axis, search.Effort(curve.threshold, most=MOST), base=base)

    @staticmethod
    def line(curve: Curve, found: Cliff) -> list[str]:
        """One line of the table of edges."""
        by, unit = curve.unit
        edge = f"{found.edge.value / by:.3g} [{found.edge.low / by:.3g}, {found.edge.high / by:.3g}] {unit}" if found.edge else "none"
        zone = f"{found.zone[0] / by:.3g}–{found.zone[1] / by:.3g}" if found.zone else "–"
        return [curve.label, curve.cca, edge, zone, str(found.runs * curve.each)]

    def against_grid(self, curve: Curve) -> list[str]:
        """One line of the comparison with the grid."""
        levels, values = self.dense(curve, curve.paths, curve.name)
        calm = self.dense(curve, curve.base, f"{curve.name.rsplit('-', 1)[0]}-0ms")[1] if curve.base else None
        value, low, high = grid_edge(curve, levels, values, calm)
        found = self.found(curve)
        line, (by, _) = self.line(curve, found), curve.unit
        runs, dense = found.runs * curve.each, (values.size + (0 if calm is None else calm.size)) * curve.each
        agrees = "–" if found.edge is None else "yes" if found.edge.low <= value <= found.edge.high else "**no**"
        return [*line[:2], f"{value / by:.3g} [{low / by:.3g}, {high / by:.3g}]", line[2], agrees, *line[3:], f"{runs / dense:.1%}"]


def grid_edge(curve: Curve, levels: np.ndarray, values: np.ndarray, calm: np.ndarray | None) -> tuple[float, float, float]:
    """Where the means of a grid first fall below the threshold, read off between two points, with its bootstrap interval."""
    steps = np.array([curve.axis.step(x) if x > 0 or not curve.axis.log else -np.inf for x in levels])

    def edge(means: np.ndarray, base: np.ndarray) -> float:
        kept = means / base
        i = int(np.flatnonzero(kept < curve.threshold)[0])
        share = (kept[i - 1] - curve.threshold) / (kept[i - 1] - kept[i])
        return curve.axis.level(steps[i - 1] + share * (steps[i] - steps[i - 1]))

    def base(means: np.ndarray) -> np.ndarray:
        return calm.mean(axis=1) if calm is not None else np.full(len(means), means[0])

    rng, found = np.random.default_rng(0), values.mean(axis=1)
    drawn = []
    for _ in range(RESAMPLES):
        some = rng.integers(0, values.shape[1], values.shape[1])
        drawn.append(edge(means := values[:, some].mean(axis=1), base(means)))
    return edge(found, base(found)), float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("out/cliff"), help="where the grids are kept")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--only", action="append", help="names of curves")
    p.add_argument("--grids", action="store_true", help="compare with dense grids")
    a = p.parse_args()
    bench = Bench(a.keep, a.jobs)
    chosen = [c for c in curves() if not a.only or c.name in a.only]
    edges = markdown(["path, axis", "control", "edge [95 %]", "chaos zone", "runs"], [bench.line(c, bench.found(c)) for c in chosen])
    if a.only:
        print(edges)
    else:
        insert(PAGE, "edges", edges)
    if a.grids:
        heads = ["path, axis", "control", "edge on the grid", "edge found [95 %]", "agree", "chaos zone", "runs", "of the grid's"]
        print(markdown(heads, [bench.against_grid(c) for c in chosen]))


if __name__ == "__main__":
    main()
