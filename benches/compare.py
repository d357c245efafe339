#!/usr/bin/env python3
"""Model against kernel on any set of conditions: a table sorted by error and a summary by family.

benches/compare.py                                                   # the project's reference conditions
benches/compare.py --conditions C.csv --results R.csv --cca bbr      # another set, one congestion control
benches/compare.py --ids c020,c044 --seeds 40 --worst 0              # these conditions, all rows
"""

from __future__ import annotations

import argparse
import csv
import math
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import engine
from conditions import DATA, FAMILIES, Condition, read_conditions, read_results
from metrics import MEDIAN_TARGET, P90_TARGET, Comparison, Summary, cv, groups


def compare(
    module, conditions: list[Condition], truth: dict, seeds: list[int], threads: int, *, sample_ms: float = 0, progress: bool = True
) -> list[Comparison]:
    """Run the model on each condition that has results. Samples are kept only where the kernel's mean RTT is known."""
    out, began = [], time.monotonic()
    for k, c in enumerate(conditions):
        if progress and sys.stderr.isatty():
            sys.stderr.write(f"\r{k}/{len(conditions)} {c.id} {time.monotonic() - began:.0f} s ")
        out.append(Comparison(c, truth[c.id], engine.run_condition(module, c, seeds, threads, sample_ms if truth[c.id].mean_rtt_ms else 0)))
    if progress and sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    return out


def cell(x: float, form: str = ".2f") -> str:
    """A number, or a dash where there is none."""
    return "–" if math.isnan(x) else format(x, form)


def print_rows(rows: list[Comparison]) -> None:
    """One line a condition, worst first."""
    print(
        f"{'id':6} {'error':>6} {'floor':>6}  {'model':>8} {'kernel':>8} {'CVm':>4} {'CVk':>4}  {'retr m':>7} {'retr k':>7} {'factor':>6}"
        f"  {'RTT m':>6} {'RTT k':>6}  {'min':>5}  condition"
    )
    for c in rows:
        ours, theirs = c.retransmits
        rtt_m, rtt_k = c.rtt
        print(
            f"{c.condition.id:6} {c.signed:+6.2f} {cell(c.floor):>6}  {c.goodput:8.2f} {c.kernel_goodput:8.2f} "
            f"{cell(100 * cv([t.goodput for t in c.model]), '.0f'):>4} {cell(100 * cv(list(c.truth.goodput)), '.0f'):>4}  "
            f"{ours:7.0f} {theirs:7.0f} {cell(c.retransmit_factor):>6}  {cell(rtt_m, '.1f'):>6} {cell(rtt_k, '.1f'):>6}  {cell(c.min_rtt_ratio):>5}  {c.condition.describe()}"
        )


def print_summary(rows: list[Comparison]) -> None:
    """Errors by family, by congestion control, by both, and over all."""
    print(f"\n{'group':34} {'n':>4} {'median':>7} {'p90':>7} {'worst':>7} {'bias':>7}  {'floor':>6} {'p90':>6}  {'retr ok':>12} {'RTT ok':>12}")

    def line(name: str, group: list[Comparison]) -> None:
        s = Summary.of(group)
        print(
            f"{name:34} {s.n:4} {s.median:7.3f} {s.p90:7.3f} {s.worst:7.2f} {s.bias:+7.3f}  {cell(s.floor_median, '.3f'):>6} {cell(s.floor_p90, '.3f'):>6}  "
            f"{cell(100 * s.retransmit_share, '.0f'):>4} % of {s.retransmit_n:3} {cell(100 * s.rtt_share, '.0f'):>4} % of {s.rtt_n:3}"
        )

    ccas, families = groups(rows, lambda c: c.cca), groups(rows, lambda c: c.family)
    for name in FAMILIES:
        if name in families:
            line(name, families[name])
            if len(ccas) > 1:
                for cca, group in sorted(groups(families[name], lambda c: c.cca).items()):
                    line(f"    {cca}", group)
    for name, group in sorted(ccas.items()):
        line(name, group)
    line("all", rows)
    s = Summary.of(rows)
    verdict = "met" if s.median <= MEDIAN_TARGET and s.p90 <= P90_TARGET else "missed"
    print(f"target: median ≤ {MEDIAN_TARGET}, p90 ≤ {P90_TARGET}: {verdict}")


def write_csv(rows: list[Comparison], path: pathlib.Path) -> None:
    """Every condition's numbers, for other tools."""
    with open(path, "w", newline="") as f:
        w = csv.writer(f)
        head = "id cca family condition model_mbps kernel_mbps ln_ratio floor model_cv kernel_cv model_retransmits kernel_retransmits"
        head += " retransmit_factor model_rtt_ms kernel_rtt_ms min_rtt_ratio"
        w.writerow(head.split())
        for c in rows:
            numbers = (
                c.goodput,
                c.kernel_goodput,
                c.signed,
                c.floor,
                cv([t.goodput for t in c.model]),
                cv(list(c.truth.goodput)),
                *c.retransmits,
                c.retransmit_factor,
                *c.rtt,
                c.min_rtt_ratio,
            )
            w.writerow([c.condition.id, c.condition.cca, c.condition.family, c.condition.describe(), *("" if math.isnan(x) else f"{x:.5g}" for x in numbers)])


def main() -> int:
    """The command."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--conditions", type=pathlib.Path, default=DATA / "random_conditions.csv")
    p.add_argument("--results", type=pathlib.Path, default=DATA / "random_results.csv")
    p.add_argument("--cca", default="reno,cubic,bbr", help="comma-separated; 'all' for every one of the file")
    p.add_argument("--family", default="", help="only families whose name contains this")
    p.add_argument("--ids", default="", help="only these conditions")
    p.add_argument("--seeds", type=int, default=20)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--worst", type=int, default=20, help="rows to print; 0 for all")
    p.add_argument(
        "--sample-ms",
        type=float,
        default=10,
        help="interval of the model's srtt samples where the kernel's mean RTT is known; 0 to use the mean of the RTT samples",
    )
    p.add_argument("--csv", type=pathlib.Path, help="write every row here")
    p.add_argument("--fake", action="store_true", help="a stand-in instead of the engine, to try this tool")
    a = p.parse_args()
    truth = read_results(a.results)
    chosen = [c for c in read_conditions(a.conditions).values() if c.id in truth]
    if a.ids:
        chosen = [c for c in chosen if c.id in a.ids.split(",")]
    elif a.cca != "all":
        chosen = [c for c in chosen if c.cca in a.cca.split(",")]
    chosen = [c for c in chosen if a.family in c.family]
    module = engine.core(a.fake)
    known = engine.known_ccas(module)
    missing = sorted({c.cca for c in chosen if known and c.cca not in known})
    if missing:
        sys.stderr.write(f"not in the engine yet, left out: {', '.join(missing)}\n")
        chosen = [c for c in chosen if c.cca not in missing]
    if not chosen:
        sys.stderr.write("compare: no condition with results is left; check --cca, --family, --ids and the files\n")
        return 2
    began, cpu = time.monotonic(), time.process_time()
    rows = compare(module, chosen, truth, list(range(1, a.seeds + 1)), a.jobs, sample_ms=a.sample_ms)
    spent, wall = time.process_time() - cpu, time.monotonic() - began
    rows.sort(key=lambda c: -c.error)
    print_rows(rows if a.worst == 0 else rows[: a.worst])
    print_summary(rows)
    simulated = sum(c.condition.duration_s for c in rows) * a.seeds
    print(
        f"{len(rows)} conditions × {a.seeds} seeds: {simulated:.0f} simulated s in {wall:.1f} s ({spent:.1f} CPU s, {simulated / max(spent, 1e-9):.0f} per CPU s)"
    )
    if a.csv:
        write_csv(rows, a.csv)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
