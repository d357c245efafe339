#!/usr/bin/env python3
"""Model against real Linux, written to docs/fidelity.md and docs/fidelity.csv from the data.

The recorded sets of conditions (tests/data/reference, and what `tcpscape validate` left in tests/data/validated) through
`tcpscape.validate`, and the published jitter and loss tables.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import engine
import published
from plans import DATA
from table import markdown, verdict
from tcpscape.validate import checks, output, recorded, report, rounds, sides
from tcpscape.validate.compare import Comparison, worst
from tcpscape.validate.report import percent

CCAS = ("reno", "cubic", "bbr")  # those that the targets are about
DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
VALIDATED = DATA.parent / "validated"
LOSS_WITHIN, JITTER_WITHIN = 0.20, 0.25
WORST = 10
TARGETS = "median<=0.05,p90<=0.25,retransmit_share>=0.8,rtt_share>=0.8"
VALIDATED_TARGETS = "median<=0.04,p90<=0.2,median@each<=0.04,p90@each<=0.2"
# Sets of conditions: file stem, what it is. A set whose files are missing is left out.
SETS = (
    ("random", "the reference set: five repetitions on the kernel"),
    ("fresh", "a second draw from the same family: three repetitions, with the smoothed RTT sampled every 10 ms"),
    ("heldout", "a third draw, made when the model was done and not looked at while it was changed: five repetitions"),
    ("k612", "the same family on a real Linux 6.12, against the profile 6.12: three repetitions"),
)


@dataclasses.dataclass(frozen=True)
class Set:
    """A recorded set: where it is, what it is, what it must reach."""

    place: pathlib.Path
    what: str
    targets: str


def sets() -> list[Set]:
    """The reference sets and those that were kept from `tcpscape validate`."""
    found = [Set(DATA / stem, what, TARGETS) for stem, what in SETS if (DATA / f"{stem}_results.csv").exists()]
    kept = sorted(VALIDATED.glob("*/results.csv")) if VALIDATED.is_dir() else []
    return found + [Set(f.parent, "the real kernel in virtual time, kept from `tcpscape validate`", VALIDATED_TARGETS) for f in kept]


def notes() -> dict[str, str]:
    """Findings about single conditions, by id."""
    import yaml

    return yaml.safe_load((pathlib.Path(__file__).resolve().parent / "notes.yaml").read_text()) or {}


def run_set(record: recorded.Recorded, engine_name: str, seeds: int, jobs: int) -> tuple[Comparison, ...]:
    """The engine on the conditions of a set, those of the congestion controls that the targets are about."""
    mine = [c for c in record.conditions if set(c.cca.split("+")) <= set(CCAS)]
    request = rounds.Request(mine, sides.make(engine_name, jobs, None), sides.RecordedSide(record), (seeds, 1))
    return rounds.run(request).comparisons


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

Written by `make bench` (benches/fidelity.py) from tests/data; do not edit. Every condition: {seeds} seeds of the model (A) against the
recorded runs of a real kernel (B). All numbers of every condition are in `fidelity.csv`; `tcpscape validate --against STEM` prints the
same for one set.

{definitions}

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
## Random conditions: {name} ({n} conditions; {what})

{summary}

{matrix}

### The worst

{worst}
{others}
"""


def set_section(said: Set, engine_name: str, seeds: int, jobs: int, found: dict[str, str]) -> tuple[str, list[tuple], tuple[Comparison, ...]]:
    """A set's section, its targets, its comparisons."""
    record = recorded.load(said.place)
    rows = run_set(record, engine_name, seeds, jobs)
    others: dict[str, int] = {}
    for c in record.conditions:
        if not set(c.cca.split("+")) <= set(CCAS):
            others[c.cca] = others.get(c.cca, 0) + 1
    section = SET_SECTION.format(
        name=record.name,
        what=said.what,
        n=len(rows),
        summary=report.summary_table(rows).markdown(),
        matrix=report.matrix_table(rows).markdown(),
        worst=report.worst_table(worst(rows, WORST), ("model", "kernel"), found).markdown(),
        others=others_line(others),
    )
    targets = [(f"{record.name}: {what}", *rest) for what, *rest in (c.line() for c in checks.judge(checks.read(said.targets), rows))]
    return section, targets, rows


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


def write(module, seeds: int, threads: int, out: pathlib.Path, *, fake: bool = False) -> None:
    """Run everything and write the page and the CSV beside it. `module` runs the published tables, its engine the recorded sets."""
    found, sections, targets, everything = notes(), [], [], []
    for said in sets():
        section, reached, rows = set_section(said, "mock" if fake else "model", seeds, threads, found)
        sections.append(section)
        targets += reached
        everything += rows
    tables, more = published_section(module, list(range(1, seeds + 1)), threads)
    table = markdown(("what", "target", "reached", ""), targets + more)
    out.write_text(PAGE.format(seeds=seeds, definitions=report.DEFINITIONS, targets=table, sets="\n".join(sections), **tables))
    output.write_numbers(everything, out.with_suffix(".csv"))


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seeds", type=int, default=20)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--out", type=pathlib.Path, default=DOCS / "fidelity.md")
    p.add_argument("--fake", action="store_true")
    a = p.parse_args()
    write(engine.core(a.fake), a.seeds, a.jobs, a.out, fake=a.fake)
    print(f"wrote {a.out} and {a.out.with_suffix('.csv')}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
