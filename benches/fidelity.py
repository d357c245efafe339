#!/usr/bin/env python3
"""Model against real Linux, written to docs/fidelity.md and docs/fidelity.csv from the data.

Random conditions (tests/data/reference) with 20 seeds each, and the published jitter and loss tables.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import engine
import published
from compare import cell as fmt
from compare import compare, write_csv
from conditions import DATA, FAMILIES, read_conditions, read_results
from metrics import (
    MEDIAN_TARGET,
    P90_TARGET,
    RETRANSMIT_FACTOR,
    RETRANSMIT_MIN,
    RTT_WITHIN,
    SHARE_TARGET,
    Comparison,
    Summary,
    groups,
    quantile,
)
from table import markdown, verdict

CCAS = ("reno", "cubic", "bbr")  # those that the targets are about
DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
LOSS_WITHIN, JITTER_WITHIN = 0.20, 0.25
# Sets of conditions: file stem, what it is. A set whose files are missing is left out.
SETS = (
    ("random", "the reference set: five repetitions on the kernel"),
    ("fresh", "a second draw from the same family: three repetitions, with the smoothed RTT sampled every 10 ms"),
    ("heldout", "a third draw, made when the model was done and not looked at while it was changed: five repetitions"),
)


def notes() -> dict[str, str]:
    """Findings about single conditions, by id."""
    import yaml

    return yaml.safe_load((pathlib.Path(__file__).resolve().parent / "notes.yaml").read_text()) or {}


def run_set(module, stem: str, seeds: list[int], threads: int) -> tuple[list[Comparison], dict[str, int]]:
    """Comparisons of a set of conditions, and how many conditions of other congestion controls were left out."""
    truth, conditions = read_results(DATA / f"{stem}_results.csv"), read_conditions(DATA / f"{stem}_conditions.csv")
    mine = [c for c in conditions.values() if c.cca in CCAS and c.id in truth]
    others: dict[str, int] = {}
    for c in conditions.values():
        if c.cca not in CCAS:
            others[c.cca] = others.get(c.cca, 0) + 1
    return compare(module, mine, truth, seeds, threads, sample_ms=10), others


def percent(x: float) -> str:
    """A share as a percentage."""
    return "–" if math.isnan(x) else f"{100 * x:.0f} %"


def summary_table(rows: list[Comparison]) -> str:
    """Errors by family, by congestion control and over all."""
    lines = []

    def add(name: str, group: list[Comparison]) -> None:
        s = Summary.of(group)
        lines.append((
            name, s.n, fmt(s.median, ".3f"), fmt(s.p90, ".3f"), fmt(s.worst), fmt(s.bias, "+.3f"), fmt(s.floor_median, ".3f"), fmt(s.floor_p90, ".3f"),
            f"{percent(s.retransmit_share)} of {s.retransmit_n}" if s.retransmit_n else "–", f"{percent(s.rtt_share)} of {s.rtt_n}" if s.rtt_n else "–",
        ))  # fmt: skip

    by_family = groups(rows, lambda c: c.family)
    for family in FAMILIES:
        if family in by_family:
            add(family, by_family[family])
    for cca, group in sorted(groups(rows, lambda c: c.cca).items()):
        add(f"**{cca}**", group)
    add("**all**", rows)
    head = (
        "conditions",
        "n",
        "median",
        "p90",
        "worst",
        "bias",
        "kernel's own median",
        "kernel's own p90",
        f"retransmits within {RETRANSMIT_FACTOR} ×",
        f"mean RTT within {percent(RTT_WITHIN)}",
    )
    return markdown(head, lines)


def matrix_table(rows: list[Comparison]) -> str:
    """Median error, family by congestion control."""
    by_family = groups(rows, lambda c: c.family)
    lines = []
    for family in FAMILIES:
        if family in by_family:
            per = groups(by_family[family], lambda c: c.cca)
            lines.append((family, *(f"{Summary.of(per[c]).median:.3f} / {Summary.of(per[c]).p90:.3f} ({len(per[c])})" if c in per else "–" for c in CCAS)))
    return markdown(("median / p90 (n)", *CCAS), lines)


def targets_table(rows: list[Comparison]) -> list[tuple]:
    """The targets on random conditions, with what was reached."""
    s = Summary.of(rows)
    retransmits, rtt = f"{percent(s.retransmit_share)} of {s.retransmit_n}", f"{percent(s.rtt_share)} of {s.rtt_n}" if s.rtt_n else "not recorded"
    most = f"{percent(SHARE_TARGET)} of conditions"
    counts = f"retransmits within {RETRANSMIT_FACTOR} × (kernel > {RETRANSMIT_MIN})"
    return [
        ("goodput, median of \\|ln(model/kernel)\\|", f"≤ {MEDIAN_TARGET}", fmt(s.median, ".3f"), verdict(s.median <= MEDIAN_TARGET)),
        ("goodput, 90th percentile", f"≤ {P90_TARGET}", fmt(s.p90, ".3f"), verdict(s.p90 <= P90_TARGET)),
        (counts, most, retransmits, verdict(s.retransmit_share >= SHARE_TARGET)),
        (f"mean RTT within {percent(RTT_WITHIN)}", most, rtt, verdict(s.rtt_share >= SHARE_TARGET) if s.rtt_n else "–"),
    ]


def worst_table(rows: list[Comparison], found: dict[str, str], n: int = 10) -> str:
    """The conditions with the largest errors, both numbers, and what was found."""
    lines = []
    for c in sorted(rows, key=lambda c: -c.error)[:n]:
        ours, theirs = c.retransmits
        spread = f"{quantile((t.goodput for t in c.model), 0.1):.2f}–{quantile((t.goodput for t in c.model), 0.9):.2f}"
        lines.append((
            c.condition.id, c.condition.describe(), f"{c.goodput:.2f} ({spread})", f"{c.kernel_goodput:.2f} ({min(c.truth.goodput):.2f}–{max(c.truth.goodput):.2f})",
            f"{c.signed:+.2f}", fmt(c.floor), f"{ours:.0f} / {theirs:.0f}", found.get(c.condition.id, "not explained yet"),
        ))  # fmt: skip
    return markdown(("id", "condition", "model Mbit/s (p10–p90)", "kernel Mbit/s (min–max)", "ln ratio", "floor", "retransmits m / k", "found"), lines)


def answers_table(answers: list[published.Answer], tolerance: float, skip_chaos: bool) -> tuple[str, int, int]:
    """A published table: model, reference, ratio; and how many judged cells are within the tolerance."""
    lines, good, judged = [], 0, 0
    for a in answers:
        ok = a.within(tolerance)
        mark = "–"
        if ok is not None:
            mark = "chaos zone" if skip_chaos and a.cell.chaotic else verdict(ok)
            if mark != "chaos zone":
                judged, good = judged + 1, good + ok
        reference = "–" if a.reference is None else f"{a.reference:.2f}" + (f" ± {a.rounding:.2f}" if a.rounding > 0.01 else "")
        lines.append((
            a.cell.cca, f"{a.cell.rtt_ms:g}", f"{a.cell.jitter_ms:g}", f"{a.cell.loss_pct:g}", f"{a.mean:.2f}", f"{a.cv:.0%}",
            reference, "–" if a.reference_cv is None else f"{a.reference_cv:.0%}", "–" if a.ratio is None else f"{a.ratio:.2f}", a.source or "kept back", mark,
        ))  # fmt: skip
    return (
        markdown(("cca", "RTT ms", "jitter ms", "loss %", "model Mbit/s", "CV", "measured", "CV", "ratio", "source", f"within {tolerance:.0%}"), lines),
        good,
        judged,
    )


def cliff_table(jitter: list[published.Answer]) -> tuple[str, int, int]:
    """Cliff positions: model beside published."""
    theirs, lines, good = published.published_cliffs(), [], 0
    for key, ours in published.cliff(jitter).items():
        same = ours == theirs.get(key)
        good += same
        lines.append((key[0], f"{key[1]:g}", "none" if ours is None else f"{ours:g} ms", f"{theirs[key]:g} ms", verdict(same)))
    return markdown(("cca", "RTT ms", "model", "published", "same step"), lines), good, len(lines)


def chaos_table(chaos: list[published.Answer]) -> tuple[str, list[tuple]]:
    """Variation in the chaos zone at 50 ms, and the two claims about it."""
    printed, lines = published.published_cvs(), []
    cvs = {(a.cell.cca, a.cell.jitter_ms): a.cv for a in chaos}
    for j in published.CHAOS_JITTERS_MS:
        raw = {a.cell.cca: a.reference_cv for a in chaos if a.cell.jitter_ms == j}
        theirs = [raw[c] if raw[c] is not None else printed.get((c, float(j)), math.nan) for c in published.CCAS]
        lines.append((f"{j} ms ({2 * j} %)", *(f"{cvs[c, j]:.0%}" for c in published.CCAS), *(percent(t) for t in theirs)))
    peak = max(published.CHAOS_JITTERS_MS, key=lambda j: cvs["cubic", j])
    ratio = cvs["cubic", 10] / cvs["bbr", 10] if cvs["bbr", 10] else math.inf
    claims = [
        ("CUBIC's CV peaks at 20 % jitter/RTT", "20 %", f"{2 * peak} % (CV {cvs['cubic', peak]:.0%})", verdict(peak == 10)),
        ("BBR's CV there is several times smaller", "≥ 2 ×", f"{ratio:.1f} ×", verdict(ratio >= 2)),
    ]
    return markdown(("jitter (of RTT)", "model cubic", "model bbr", "measured cubic", "measured bbr"), lines), claims


PAGE = """\
# Fidelity: the model against real Linux

Written by `make bench` (benches/fidelity.py) from tests/data/reference; do not edit. Every condition: {seeds} seeds of the
model against the kernel's repetitions. The error of a condition is |ln(median model goodput / median kernel goodput)|; 0.05 is
5 %, 0.25 is a factor 1.28. The *kernel's own* columns split its repetitions in two and compare the halves: no model can do
better. The bias is the median of the signed logarithm. All numbers of every condition are in `fidelity.csv`.

## Targets

{targets}

{sets}
## Published tables

Kernel profile 6.12, the published rig (256 KiB receive buffer, 5 and 10 MiB/s pooled, a reader that sleeps), {seeds} seeds a rate.
*measured* is the raw mean behind the table where it is public, else the printed number with its rounding; *kept back*: not public.

### Loss tolerance (50 ms, loss in both directions)

{loss}

### Jitter cliff (normal jitter in both directions)

{jitter}

### Cliff positions (first jitter step below half of the mean without jitter)

{cliff}

### Chaos zone (50 ms): coefficient of variation

{chaos}
"""

SET_SECTION = """\
## Random conditions: {stem} ({n} conditions; {what})

{summary}

{matrix}

### The ten worst

{worst}
{others}
"""


def others_line(others: dict[str, int]) -> str:
    """The congestion controls that the model does not have yet."""
    if not others:
        return ""
    return "\nNot yet in the model: " + ", ".join(f"{cca} ({n})" for cca, n in sorted(others.items())) + ".\n"


def published_section(module, seeds: list[int], threads: int) -> tuple[dict[str, str], list[tuple]]:
    """The published tables as text, and their targets."""
    run = lambda family, cells: [published.answer(module, family, c, seeds, threads) for c in cells]  # noqa: E731
    losses, jitters, chaotic = (
        run("loss_tolerance", published.loss_cells()),
        run("jitter_cliff", published.jitter_cells()),
        run("chaos_zone", published.chaos_cells()),
    )
    loss, loss_good, loss_n = answers_table(losses, LOSS_WITHIN, skip_chaos=False)
    jitter, jitter_good, jitter_n = answers_table(jitters, JITTER_WITHIN, skip_chaos=True)
    cliffs, cliff_good, cliff_n = cliff_table(jitters)
    chaos, claims = chaos_table(chaotic)
    targets = [
        ("loss tolerance, cells within 20 %", f"{loss_n} of {loss_n}", f"{loss_good} of {loss_n}", verdict(loss_good == loss_n)),
        (
            "jitter table outside the chaos zone, cells within 25 %",
            f"{jitter_n} of {jitter_n}",
            f"{jitter_good} of {jitter_n}",
            verdict(jitter_good == jitter_n),
        ),
        ("cliff positions on the same grid step", f"{cliff_n} of {cliff_n}", f"{cliff_good} of {cliff_n}", verdict(cliff_good == cliff_n)),
        *claims,
    ]
    return {"loss": loss, "jitter": jitter, "cliff": cliffs, "chaos": chaos}, targets


def write(module, seeds: int, threads: int, out: pathlib.Path) -> None:
    """Run everything and write the page and the CSV beside it."""
    numbers, found, sections, targets, everything = list(range(1, seeds + 1)), notes(), [], [], []
    for stem, what in SETS:
        if not (DATA / f"{stem}_results.csv").exists():
            continue
        rows, others = run_set(module, stem, numbers, threads)
        everything += rows
        targets += [(f"{stem}: {name}", *rest) for name, *rest in targets_table(rows)]
        sections.append(
            SET_SECTION.format(
                stem=stem,
                what=what,
                n=len(rows),
                summary=summary_table(rows),
                matrix=matrix_table(rows),
                worst=worst_table(rows, found),
                others=others_line(others),
            )
        )
    tables, more = published_section(module, numbers, threads)
    page = PAGE.format(seeds=seeds, targets=markdown(("what", "target", "reached", ""), targets + more), sets="\n".join(sections), **tables)
    out.write_text(page)
    write_csv(everything, out.with_suffix(".csv"))


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seeds", type=int, default=20)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--out", type=pathlib.Path, default=DOCS / "fidelity.md")
    p.add_argument("--fake", action="store_true")
    a = p.parse_args()
    write(engine.core(a.fake), a.seeds, a.jobs, a.out)
    print(f"wrote {a.out} and {a.out.with_suffix('.csv')}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
