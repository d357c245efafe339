#!/usr/bin/env python3
"""What intervals really cover: known distributions, many samples, how often the truth is inside.

`benches/coverage.py` writes docs/coverage.csv and the tables of docs/models/methods/statistics.md; tests/stats/test_coverage.py holds both to it with
fewer samples. Everything is drawn from fixed seeds.
"""

from __future__ import annotations

import argparse
import csv
import os
import pathlib
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import norm

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from distributions import DISTRIBUTIONS, QUIET, Distribution
from table import MODELS, insert
from tcpscape import stats
from tcpscape.campaign.adaptive import CAP, Repetition, repeat
from tcpscape.stats import comparison, means, order, spread

ROOT = pathlib.Path(__file__).resolve().parent.parent
CSV, PAGE = ROOT / "docs" / "coverage.csv", MODELS / "methods" / "statistics.md"
SIZES = (5, 8, 10, 20, 40, 100)
SAMPLES = 4000
"""Samples of a cell: a standard error of 0.34 % where 95 % are covered."""
LARGE = 500_000
"""Draws that stand for the truth where there is no formula: a standard error below 0.07 %."""


def common(d: Distribution, rng, shape):
    """Pairs with common random numbers: what a run is like, and 1.5 times that with a private scatter of 10 %."""
    below = d.draw(rng, shape)
    return 1.5 * below * rng.normal(1, 0.1, shape), below


def half(d: Distribution, rng, shape):
    """Pairs of which half have nothing in common: where one side times out and the other does not."""
    below = d.draw(rng, shape)
    return 1.5 * np.where(rng.random(shape) < 0.5, d.draw(rng, shape), below), below


def apart(d: Distribution, rng, shape):
    """Two sides without pairs, the first 1.5 times as fast."""
    return 1.5 * d.draw(rng, shape), d.draw(rng, shape)


def moved(d: Distribution, rng, shape):
    """Pairs of which the first wins with probability Φ(1/2)."""
    below = d.draw(rng, shape)
    return below + rng.normal(0.5, 1, shape), below


@lru_cache
def above(d: Distribution) -> float:
    """P(1.5 x > y) + P(1.5 x = y)/2 of independent x and y."""
    rng = np.random.default_rng(1)
    x, y = 1.5 * d.draw(rng, LARGE), np.sort(d.draw(rng, LARGE))
    return float(np.mean(np.searchsorted(y, x, "left") + np.searchsorted(y, x, "right"))) / 2 / LARGE


@lru_cache
def upper(d: Distribution) -> float:
    """The upper quartile."""
    return float(np.quantile(d.draw(np.random.default_rng(2), LARGE), 0.75))


@dataclass(frozen=True)
class Statistic:
    """What is estimated: how its samples are drawn, its intervals, and its true value."""

    about: str
    draw: Callable
    """(distribution, rng, shape) → samples of one or two sides."""
    bounds: Callable
    truth: Callable
    """Distribution → its value."""


def alone(d: Distribution, rng, shape):
    """One side."""
    return (d.draw(rng, shape),)


STATISTICS = {
    "median": Statistic("median", alone, order.median_bounds, lambda d: d.median),
    "mean": Statistic("mean", alone, means.mean_bounds, lambda d: d.mean),
    "cv": Statistic("coefficient of variation", alone, spread.cv_bounds, lambda d: d.sd / d.mean),
    "ratio": Statistic("ratio of means, pairs that scatter by 10 %", common, means.ratio_bounds, lambda d: 1.5),
    "ratio-half": Statistic("ratio of means, pairs half of which have nothing in common", half, means.ratio_bounds, lambda d: 1.5),
    "mean-ratio": Statistic("ratio of means, not paired", apart, means.unpaired_bounds, lambda d: 1.5),
    "median-ratio": Statistic("ratio of medians, not paired", apart, lambda a, b: order.median_ratio_bounds(a, b, paired=False), lambda d: 1.5),
    "median-ratio-pairs": Statistic(
        "ratio of medians, pairs half of which have nothing in common", half, lambda a, b: order.median_ratio_bounds(a, b, paired=True), lambda d: 1.5
    ),
    "win": Statistic("win probability, pairs", moved, comparison.paired_bounds, lambda d: float(norm.cdf(0.5))),
    "win-apart": Statistic("win probability, not paired", apart, comparison.unpaired_bounds, above),
    "difference": Statistic("difference of means, pairs that scatter by 10 %", common, means.paired_difference_bounds, lambda d: 0.5 * d.mean),
    "difference-apart": Statistic("difference of means, not paired", apart, means.unpaired_difference_bounds, lambda d: 0.5 * d.mean),
    "quantile": Statistic("upper quartile", alone, lambda x: order.quantile_bounds(x, 0.75), upper),
}


@dataclass(frozen=True)
class Cell:
    """One statistic of one distribution from n values."""

    statistic: str
    distribution: str
    n: int
    coverage: float
    above: float
    """Share of intervals wholly above the truth."""
    below: float
    width: float
    """Median width of an interval over the truth, or over the mean where the truth is 0 or a probability's 1."""
    samples: int


def measure(statistic: str, distribution: str, n: int, samples: int = SAMPLES, seed: str = "") -> Cell:
    """Draws the samples and counts. A CV without spread has no logarithm: its interval is 0, as the package reports it."""
    what, d = STATISTICS[statistic], DISTRIBUTIONS[distribution]
    rng = np.random.default_rng(zlib.crc32(f"{statistic} {distribution} {n}{seed}".encode()))
    drawn = what.draw(d, rng, (samples, n))
    truth = what.truth(d)
    with np.errstate(all="ignore"):
        low, high = what.bounds(*drawn)
    low, high = np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), 0.0, high)
    over, under = truth < low - SLACK, truth > high + SLACK
    scale = abs(truth) if truth else d.mean
    return Cell(
        statistic,
        distribution,
        n,
        float(np.mean(~over & ~under)),
        float(np.mean(over)),
        float(np.mean(under)),
        float(np.median(high - low)) / scale,
        samples,
    )


SLACK = 1e-9
"""Rounding of a truth that is an end of the interval."""


def cells(samples: int, jobs: int) -> list[Cell]:
    """All of them."""
    todo = [(s, d, n, samples) for s in STATISTICS for d in DISTRIBUTIONS for n in SIZES]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(measure, *zip(*todo, strict=True)))


@dataclass(frozen=True)
class Stop:
    """Adaptive repetition: what the interval covers when it stops, and what that costs."""

    metric: str
    distribution: str
    precision: float
    least: int
    coverage: float
    runs: float
    """Mean number of runs."""
    reached: float
    """Share that was as narrow as asked within the cap."""
    samples: int


def stop(metric: str, distribution: str, precision: float, least: int, samples: int) -> Stop:
    """Repeats so many cells of one distribution with the package's own driver."""
    d = DISTRIBUTIONS.get(distribution) or QUIET[distribution]
    drawn = d.draw(np.random.default_rng(zlib.crc32(f"{distribution} {precision} {least}".encode())), (samples, CAP))
    rule = Repetition(precision, least, statistic=getattr(stats, metric))
    got = repeat(lambda wanted: [list(drawn[i, seeds.start : seeds.stop]) for i, seeds in wanted], samples, rule)
    hits = [not g.estimate.excludes(getattr(d, metric)) for g in got]
    return Stop(
        metric,
        distribution,
        precision,
        least,
        float(np.mean(hits)),
        float(np.mean([len(g.values) for g in got])),
        float(np.mean([g.reached for g in got])),
        samples,
    )


STOPPED = ("quiet", "steady", "normal", "lognormal", "exponential", "bimodal", "rare", "capped")
ASKED = [(precision, least) for precision in (0.05, 0.1, 0.2) for least in (5, 10)]
STOPS = [(metric, d, *asked) for metric in ("mean", "median") for d in STOPPED for asked in ASKED]


def stops(samples: int, jobs: int) -> list[Stop]:
    """All of them."""
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(stop, *zip(*STOPS, strict=True), [samples] * len(STOPS)))


def stop_tables(found: list[Stop]) -> str:
    """Markdown: coverage at the stopping time (mean runs)."""
    known = {(s.metric, s.distribution, s.precision, s.least): s for s in found}
    parts = []
    for metric in ("mean", "median"):
        head = f"| {metric}, at the stopping time | " + " | ".join(f"± {100 * p:.0f} %, least {least}" for p, least in ASKED)
        rows = (f"| {d} | " + " | ".join(_stop(known[(metric, d, *asked)]) for asked in ASKED) + " |" for d in STOPPED)
        parts.append(head + " |\n|---" + "|---:" * len(ASKED) + "|\n" + "\n".join(rows))
    return "\n\n".join(parts)


def _stop(s: Stop) -> str:
    share = f"{100 * s.coverage:.1f}"
    return f"{share if s.coverage >= 0.93 else f'**{share}**'} ({s.runs:.0f}{'' if s.reached > 0.5 else ', cap'})"


def write(found: list[Cell]) -> None:
    """docs/coverage.csv."""
    with CSV.open("w", newline="") as f:
        f.write("# written by benches/coverage.py; do not edit. coverage: share of 95 % intervals that hold the truth\n")
        rows = csv.writer(f, lineterminator="\n")
        rows.writerow(["statistic", "distribution", "n", "coverage", "above", "below", "width", "samples"])
        for c in found:
            rows.writerow([c.statistic, c.distribution, c.n, f"{c.coverage:.4f}", f"{c.above:.4f}", f"{c.below:.4f}", f"{c.width:.4g}", c.samples])


def read() -> list[Cell]:
    """What docs/coverage.csv says."""
    with CSV.open() as f:
        rows = csv.DictReader(line for line in f if not line.startswith("#"))
        return [
            Cell(r["statistic"], r["distribution"], int(r["n"]), *(float(r[k]) for k in ("coverage", "above", "below", "width")), int(r["samples"]))
            for r in rows
        ]


def tables(found: list[Cell]) -> str:
    """Markdown: of each statistic one table, distributions × n; what is not within 93 to 97 % is bold."""
    known = {(c.statistic, c.distribution, c.n): c for c in found}
    parts = []
    for name, what in STATISTICS.items():
        head = f"| {what.about} | " + " | ".join(f"n = {n}" for n in SIZES) + " |\n|---" + "|---:" * len(SIZES) + "|\n"
        rows = (f"| {d} | " + " | ".join(_cell(known[name, d, n]) for n in SIZES) + " |" for d in DISTRIBUTIONS)
        parts.append(head + "\n".join(rows))
    return "\n\n".join(parts)


def _cell(c: Cell) -> str:
    share = f"{100 * c.coverage:.1f}"
    marked = share if 0.93 <= round(c.coverage, 3) <= 0.97 else f"**{share}**"
    return f"{marked} ({c.width:.2g})"


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument(
        "--only", choices=[*STATISTICS, "stops"], help="print one statistic, write nothing; stops: keep docs/coverage.csv, measure stopping"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if args.only in STATISTICS:
        for d in DISTRIBUTIONS:
            print(f"{d:12}", "  ".join(_cell(measure(args.only, d, n, args.samples)) for n in SIZES), flush=True)
        return
    if args.only != "stops":
        write(cells(args.samples, args.jobs))
    insert(PAGE, "coverage", tables(read()) + "\n\n" + stop_tables(stops(args.samples // 8, args.jobs)))


if __name__ == "__main__":
    main()
