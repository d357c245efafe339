#!/usr/bin/env python3
"""The impaired columns of the published fourteen-control sweep: the model beside the real kernel and the single published runs.

Rig: tbf 10 Mbit/s (burst 32 kbit) and in it netem with 50 ms of delay and 2 % loss, on the sender's own interface, segmentation
offload on; 1 or 10 flows for 10 s. tbf's own limit ends with its child: the queue is netem's 1000 packets. The kernel's runs are
Linux 6.1 in virtual time (tests/data/reference/cca_sweep.csv). Written to docs/cca-sweep.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import numpy as np
from scipy.stats import spearmanr

import engine
from plans import DATA
from table import markdown, verdict
from tcpscape import stats

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
FLOWS = (1, 10)
WORDS = "tbf rate 10mbit burst 32kbit latency 400ms; netem delay 50ms loss 2%"
TARGET = 0.9
RESAMPLES = 2000
PAGE = """\
# The fourteen-control sweep, impaired

Written by `make bench` (benches/sweep.py); do not edit. "Fourteen CCAs in network namespaces" compares congestion controls by single
runs of 10 s over

    {words}

on the sender's own interface, with segmentation offload on, so that one loss may take a burst of two segments. Here: the real Linux
6.1 in virtual time ({n} runs a cell) and the model ({seeds} seeds), mean goodput of all flows in Mbit/s with its 95 % interval. *One run* is where 95 % of the model's single runs of 10 s fall: what the published number could have been.
What is still queued at the end counts, so that a long queue may carry a little more than the link's 9.57 Mbit/s.

{sections}
"""
SECTION = """\
## {flows} flow{s}

{table}

Rank correlation (Spearman) of the model's means with the kernel's: **{rho:.3f}** [{low:.3f}, {high:.3f}] (target ≥ {target}: {met}).
The interval resamples the runs of both sides; two halves of the kernel's own runs agree to {own:.3f}.
{published}
"""


def kernel_runs() -> dict[tuple[str, int], list[float]]:
    """The kernel's runs, Mbit/s, by congestion control and number of flows."""
    runs: dict[tuple[str, int], list[float]] = {}
    with (DATA / "cca_sweep.csv").open() as f:
        for row in csv.DictReader(line for line in f if not line.startswith("#")):
            runs.setdefault((row["cca"], int(row["flows"])), []).append(float(row["goodput_mbps"]))
    return runs


def published() -> dict[tuple[str, int], float]:
    """The published single runs, Mbit/s."""
    with (DATA / "cca_sweep_published.csv").open() as f:
        return {(r["cca"], int(r["flows"])): float(r["goodput_mbps"]) for r in csv.DictReader(line for line in f if not line.startswith("#"))}


def model_runs(module, cca: str, flows: int, seeds: int, jobs: int) -> list[float]:
    """The model's runs, Mbit/s. The published hosts listened with the default control, so DCTCP has no partner."""
    queue = json.loads(module.parse_tc(WORDS))
    plan = {
        "duration_ns": 10_000_000_000,
        "offload": True,
        "kernel": {"profile": "6.1", "tcp_rmem_max": 4_000_000, "tcp_wmem_max": 4_000_000},
        "forward": {"stages": [{"qdisc": queue, "at": "sender"}]},
        "flows": [{"cca": cca, "listener": "cubic"}] * flows,
    }
    trials = engine.run_plan(module, plan, list(range(1, seeds + 1)), jobs)
    return [sum(f["goodput_mbps"] for f in t["flows"]) for t in trials]


def rank(ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> float:
    """Spearman's correlation of the means."""
    return float(spearmanr([np.mean(ours[c]) for c in theirs], [np.mean(theirs[c]) for c in theirs]).statistic)


def rank_interval(ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> tuple[float, float]:
    """95 % of the correlations when the runs of each cell of both sides are drawn again."""
    rng = np.random.default_rng(1)
    again = lambda runs: {c: rng.choice(v, len(v)) for c, v in runs.items()}  # noqa: E731
    found = [rank(again(ours), again(theirs)) for _ in range(RESAMPLES)]
    return float(np.quantile(found, 0.025)), float(np.quantile(found, 0.975))


def section(module, flows: int, seeds: int, jobs: int) -> tuple[str, float]:
    """One number of flows; its text and its correlation."""
    theirs = {c: v for (c, n), v in kernel_runs().items() if n == flows}
    known = {e[0] for e in module.cca_registry()}
    theirs = dict(sorted(((c, v) for c, v in theirs.items() if c in known), key=lambda item: -np.mean(item[1])))
    ours = {c: model_runs(module, c, flows, seeds, jobs) for c in theirs}
    said, lines, inside = published(), [], 0
    for c, runs in theirs.items():
        low, high = np.quantile(ours[c], 0.025), np.quantile(ours[c], 0.975)
        value = said.get((c, flows))
        fits = "" if value is None else "inside" if low <= value <= high else "outside"
        inside += fits == "inside"
        lines.append(
            (
                c,
                stats.mean(runs).text(4),
                stats.mean(ours[c]).text(4),
                f"{np.mean(ours[c]) / np.mean(runs):.3f}",
                f"{low:.2f}–{high:.2f}",
                "–" if value is None else f"{value:.2f}",
                fits,
            )
        )
    rho, (low, high) = rank(ours, theirs), rank_interval(ours, theirs)
    halves = [{c: v[k::2] for c, v in theirs.items()} for k in (0, 1)]
    cells = [c for c in theirs if (c, flows) in said]
    text = SECTION.format(
        flows=flows,
        s="" if flows == 1 else "s",
        rho=rho,
        low=low,
        high=high,
        target=TARGET,
        met=verdict(rho >= TARGET),
        own=rank(*halves),
        table=markdown(("cca", "kernel", "model", "model/kernel", "one run", "published run", "in that range"), lines),
        published=f"Of the {len(cells)} published runs {inside} lie where single runs of the model do.",
    )
    return text, rho


def write(module, seeds: int, jobs: int, out: pathlib.Path) -> None:
    """Runs the model and writes the page; prints the correlations."""
    sections = []
    for flows in FLOWS:
        text, rho = section(module, flows, seeds, jobs)
        sections.append(text)
        print(f"fourteen-control sweep, {flows} flow(s): rank correlation {rho:.3f}, {verdict(rho >= TARGET)}")
    n = sorted({len(v) for v in kernel_runs().values()})
    out.write_text(PAGE.format(words=WORDS, n=" or ".join(map(str, n)), seeds=seeds, sections="\n".join(sections)))


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seeds", type=int, default=60)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--out", type=pathlib.Path, default=DOCS / "cca-sweep.md")
    a = p.parse_args()
    write(engine.core(), a.seeds, a.jobs, a.out)
    print(f"wrote {a.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
