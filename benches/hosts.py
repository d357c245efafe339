#!/usr/bin/env python3
"""What the time of hosts changes: published cells, each congestion control, and Linux itself; tables of docs/models/tcp/hosts.md.

`python benches/hosts.py` takes some minutes; `--only PART` writes that part. The last part, `twins`, needs the real kernel (`make kernel`).
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import published
from cliff import RIG, at
from plans import DATA
from table import MODELS, insert, markdown
from tcpscape import stats
from tcpscape.campaign.execute import Runner
from tcpscape.controls.spelling import LINUX
from tcpscape.engines import make
from tcpscape.scenario.options import Conditions

PAGE = MODELS / "tcp" / "hosts.md"
SEEDS = range(20)
TIMES_US = (0, 10, 15, 20, 25)
TOLERANCE, ERRORS = 0.15, 2
"""A cell agrees within this share of what was published, or within so many standard errors of both."""
FAMILIES = ("jitter_cliff", "chaos_zone", "loss_tolerance", "starlink")
"""Published tables of the rig with raw runs behind them; `baseline` has neither jitter nor loss."""
SECONDS = {"starlink": 15}
"""Length of the runs of a table, where it is not 10 s."""
PRINTED = (
    *(published.Cell(cca, 25, loss_pct=p) for p in (0.1, 0.5, 2) for cca in published.CCAS),
    *(published.Cell(cca, 25, jitter_ms=j) for j in (10, 12) for cca in published.CCAS),
    *(published.Cell(cca, 30, jitter_ms=40, loss_pct=1) for cca in published.CCAS),
    *(published.Cell(cca, 40, jitter_ms=15, loss_pct=1.5) for cca in published.CCAS),
)
"""Cells that are only printed, both rates pooled, without a spread."""


def hosts(path: Conditions, microseconds: float) -> Conditions:
    """The path between hosts that take so long."""
    return path.model_copy(update={"kernel": path.kernel.model_copy(update={"host_time": round(microseconds * 1000)})})


def rig(cell: published.Cell, rate: float, seconds: float) -> Conditions:
    """The published rig in a cell, with an application of so many MiB/s."""
    path = at(RIG, rate, rtt=round(cell.rtt_ms * 1e6), jitter=round(cell.jitter_ms * 1e6), loss=cell.loss_pct / 100)
    return path.model_copy(update={"duration": round(seconds * 1e9)})


@dataclass(frozen=True)
class Known:
    """What was published of a cell, Mbit/s: its mean, the standard error of that, half of what rounding may hide; and the rates that it pools."""

    cell: published.Cell
    rates: Sequence[float]
    mean: float
    error: float
    rounding: float
    seconds: float


def measured() -> Iterator[Known]:
    """Cells with raw runs behind them, each application rate for itself."""
    with (DATA / "published_cells.csv").open() as file:
        for row in csv.DictReader(file):
            if row["family"] in FAMILIES and row["rate_MiBps"] != "pooled":
                cell = published.Cell(row["cca"], float(row["owd_ms"]), float(row["jitter_ms"]), float(row["loss_pct"]))
                error = float(row["thr_sd_Mbps"]) / math.sqrt(int(row["n"]))
                yield Known(cell, (float(row["rate_MiBps"]),), float(row["thr_mean_Mbps"]), error, 0.0, SECONDS.get(row["family"], 10))


def printed() -> Iterator[Known]:
    """Cells that are only printed."""
    for cell in PRINTED:
        found = published.published_mean(cell)
        if not found:
            raise KeyError(f"{cell} is not in the tables")
        yield Known(cell, (5, 10), found[0], 0.0, found[1], SECONDS["starlink"] if cell.jitter_ms and cell.loss_pct else 10)


def agreement(runner: Runner, known: Sequence[Known], microseconds: float) -> list[str]:
    """How many cells agree, and how far they are off in the median and at the 90th percentile."""
    paths = [[hosts(rig(k.cell, rate, k.seconds), microseconds).scenario(k.cell.cca) for rate in k.rates] for k in known]
    trials = iter(runner.run_all([(scenario, SEEDS) for each in paths for scenario in each]))
    agree, off = 0, []
    for k in known:
        runs = [t.goodput_mbps for _ in k.rates for t in next(trials)]
        mean, error = statistics.fmean(runs), statistics.stdev(runs) / math.sqrt(len(runs))
        nearest = min(max(mean, k.mean - k.rounding), k.mean + k.rounding)
        agree += abs(mean - nearest) <= max(TOLERANCE * nearest, ERRORS * math.hypot(error, k.error))
        off.append(abs(math.log(mean / nearest)))
    return [f"{agree} of {len(known)}", f"{statistics.median(off):.3f}", f"{statistics.quantiles(off, n=10, method='inclusive')[-1]:.3f}"]


def cells(runner: Runner, _: int) -> str:
    """The published cells with hosts of several times."""
    sets = [list(measured()), list(printed())]
    rows = [[f"{t} µs" if t else "0", *(text for cells_of_kind in sets for text in agreement(runner, cells_of_kind, t))] for t in TIMES_US]
    each = ["within", "median of |ln ratio|", "90th percentile"]
    return markdown(["`host_time`", *(f"{kind}: {head}" for kind in ("with raw runs", "printed") for head in each)], rows)


PATHS = {"reordering": at(RIG, 5, rtt=26_000_000, jitter=7_000_000), "order kept": at(RIG, 5, rtt=26_000_000, jitter=13_000_000, order="correlated")}
"""Paths on which packet and ACK now and then both pass without delay."""


MEANING = {
    "cubic": "counts as 1 µs; HyStart allows 4 ms above the least RTT in any case",
    "bbr": "is the least RTT: rate times least RTT is next to nothing with 0 and with 30 µs, and the allowance for aggregated ACKs is the window",
    "cdg": "is ignored, where 30 µs are the least RTT of a round",
    "htcp": "is ignored, where 30 µs are one tick",
    "hybla": "is part of the smoothed RTT, the only one that it reads",
    "illinois": "is the least RTT; a delay is counted from there",
    "lp": "is ignored; its delays are those of timestamps",
    "nv": "is averaged with the RTT before; the window may be rate times least RTT",
    "vegas": "counts as 1 µs and 30 µs as 31: the queue that follows from either is far above every threshold",
    "veno": "counts as 1 µs and 30 µs as 31: each loss looks like congestion",
    "westwood": "is ignored, where 30 µs are one tick, as all below a tick are",
    "yeah": "counts as 1 µs and 30 µs as 31: the queue that follows from either is far above every threshold",
}
"""What a sample of 0 is to a control; the others read no RTT."""


def touched(runner: Runner, _: int) -> str:
    """Each control on a path with samples of 0, and with the order kept, where RACK has nothing to wait for."""
    work = [hosts(path, t).scenario(cca) for cca in LINUX for path in PATHS.values() for t in (0, 15)]
    trials = iter(runner.run_all([(scenario, SEEDS) for scenario in work]))
    rows = []
    for cca in LINUX:
        row = [cca]
        for _path in PATHS:
            without, with_time = next(trials), next(trials)
            least = " and ".join(f"{1000 * statistics.median(t.flows[0].min_rtt_ms or 0 for t in runs):.0f}" for runs in (without, with_time))
            ratio = stats.ratio([t.goodput_mbps for t in with_time], [t.goodput_mbps for t in without])
            row += [stats.mean([t.goodput_mbps for t in without]).text(), ratio.text(2), least]
        rows.append([*row, MEANING.get(cca, "reads no RTT")])
    each = ["Mbit/s with 0", "15 µs / 0", "`min_rtt`, µs"]
    return markdown(["control", *(f"{name}: {head}" for name in PATHS for head in each), "a sample of 0"], rows)


def steady() -> Iterator[tuple[str, Conditions, str]]:
    """Paths on which nothing is drawn at random, under four controls."""
    fields: dict[str, dict[str, object]] = {
        "2 ms, 50 Mbit/s, 2 bdp": {"rtt": "2ms", "rate": "50mbit", "buffer": "2bdp"},
        "10 ms, 50 Mbit/s, 1 bdp": {"rtt": "10ms", "rate": "50mbit", "buffer": "1bdp"},
        "50 ms, 20 Mbit/s, 1 bdp": {"rtt": "50ms", "rate": "20mbit", "buffer": "1bdp"},
        "50 ms, 20 Mbit/s, fq_codel": {"rtt": "50ms", "rate": "20mbit", "queue": "fq_codel"},
        "200 ms, 10 Mbit/s, 0.5 bdp": {"rtt": "200ms", "rate": "10mbit", "buffer": "0.5bdp"},
        "50 ms, no bottleneck, 128 KiB": {"rtt": "50ms", "flow": {"rcvbuf": "128KiB"}},
    }
    for name, some in fields.items():
        path = Conditions.model_validate({"duration": "8s", **some})
        for cca in ("reno", "cubic", "bbr", "vegas"):
            yield f"{name}, {cca}", path, cca


def twins(runner: Runner, jobs: int) -> str:
    """Linux 6.1 in virtual time and the model of it on deterministic paths, hosts of both with and without time."""
    engines = [Runner(make("virtual"), jobs), runner]
    cases = list(steady())
    off: dict[tuple[str, int], float] = {}
    for t in (0, 15):
        kernel, model = (
            [trials[0].goodput_mbps for trials in r.run_all([(hosts(path, t).scenario(cca), range(1)) for _, path, cca in cases])] for r in engines
        )
        off |= {(name, t): math.log(ours / theirs) for (name, _, _), ours, theirs in zip(cases, model, kernel, strict=True)}
    rows = []
    for t in (0, 15):
        found = [abs(off[name, t]) for name, _, _ in cases]
        worst = max(cases, key=lambda case: abs(off[case[0], t]))[0]
        within = sum(x <= 0.01 for x in found)
        p90 = statistics.quantiles(found, n=10, method="inclusive")[-1]
        rows.append(
            [
                f"{t} µs" if t else "0",
                f"{within} of {len(found)}",
                f"{statistics.median(found):.2%}",
                f"{p90:.2%}",
                f"{worst}: {math.expm1(off[worst, t]):+.1%}",
            ]
        )
    moved = sorted((abs(off[name, 15] - off[name, 0]), name) for name, _, _ in cases)
    last = f"From 0 to 15 µs the ratio model / Linux moves by {moved[len(moved) // 2][0]:.2%} in the median, at most by {moved[-1][0]:.1%} ({moved[-1][1]})."
    return markdown(["`host_time` of both", "goodput within 1 %", "median error", "90th percentile", "largest"], rows) + f"\n\n{last}"


PARTS: dict[str, Callable[[Runner, int], str]] = {"cells": cells, "touched": touched, "twins": twins}


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--only", choices=PARTS)
    a = p.parse_args()
    runner = Runner(make("model"), a.jobs)
    for name, part in PARTS.items():
        if a.only in (None, name):
            insert(PAGE, name, part(runner, a.jobs))


if __name__ == "__main__":
    main()
