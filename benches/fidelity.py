#!/usr/bin/env python3
"""Model against real Linux, written to docs/fidelity.md and docs/fidelity.csv from the data.

The recorded sets of conditions (tests/data/reference, and what `tcpscape validate` left in tests/data/validated) through
`tcpscape.validate`, and the published jitter and loss tables.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import math
import pathlib
import sys
from collections import Counter
from collections.abc import Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import engine
import kinds
import published
import topology
from plans import DATA
from table import markdown, verdict
from tcpscape import engines
from tcpscape.validate import compare, sides, validation
from tcpscape.validate.compare import Divergence, groups, worst
from tcpscape.validate.sides import RecordedSet, load_recorded
from tcpscape.words import divergence as texts
from tcpscape.words.divergence import percent

CCAS = ("reno", "cubic", "bbr")  # those that the first targets are about
DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
VALIDATED = DATA.parent / "validated"
LOSS_WITHIN, JITTER_WITHIN = 0.20, 0.25
WORST = 10
PATHS = 20  # shared by several congestion controls, for a rank agreement
BEST = "the best control of a path, or one within 10 % of it, agrees"
MATRIX = 4  # congestion controls side by side at most
TARGETS = "median<=0.05,p90<=0.25,retransmit_share>=0.8,rtt_share>=0.8"
CCAS_TARGETS = "median<=0.06,p90<=0.3,median@ccas<=0.1"
SHARED_TARGETS = "median<=0.03,group_median<=0.1,group_p90<=0.4,larger_share>=0.9"
VALIDATED_TARGETS = "median<=0.04,p90<=0.2,median@each<=0.04,p90@each<=0.2"
# Sets of conditions: file stem, what it is. A set whose files are missing is left out.
SETS = (
    ("random", "the reference set: every congestion control of Linux 6.1, five repetitions on the kernel"),
    ("shared", "the reference set of bottlenecks that two groups of flows share: four repetitions"),
    ("fresh", "a second draw from the same family: three repetitions, with the smoothed RTT sampled every 10 ms"),
    ("heldout", "a third draw, made when the model was done and not looked at while it was changed: five repetitions"),
    ("k612", "the same family on a real Linux 6.12, against the profile 6.12: three repetitions"),
)


@dataclasses.dataclass(frozen=True)
class Set:
    """A recorded set: where it is, what it is, what its reno, cubic and bbr must reach."""

    place: pathlib.Path
    what: str
    targets: str


def sets() -> list[Set]:
    """The reference sets and those that were kept from `tcpscape validate`."""
    found = [Set(DATA / stem, what, TARGETS) for stem, what in SETS if (DATA / f"{stem}_results.csv").exists()]
    kept = [f for f in sorted(VALIDATED.glob("*/results.csv")) if f.parent != topology.RECORD] if VALIDATED.is_dir() else []
    return found + [Set(f.parent, "the real kernel in virtual time, kept from `tcpscape validate`", VALIDATED_TARGETS) for f in kept]


def judged(said: Set, rows: Sequence[Divergence]) -> list[tuple]:
    """The targets of a set: of shared bottlenecks; else of reno, cubic and bbr, and of all where there are others."""
    shared, few = [c for c in rows if c.condition.shared], [c for c in rows if not c.condition.shared and c.condition.cca in CCAS]
    alone = [c for c in rows if not c.condition.shared]
    name = said.place.name
    many = len(few) < len(alone)
    parts = [(f"{name} (reno, cubic, bbr)" if many else name, said.targets, few)] if said.place.parent == DATA or not many else []
    parts += [(name, SHARED_TARGETS, shared)] + ([(name, CCAS_TARGETS, alone)] if many else [])
    found = compare.ranks(alone)
    best = [(f"{name}: {BEST}", "≥ 0.9", f"{found.best:.3f}", verdict(found.best >= 0.9))] if found and found.paths >= PATHS else []
    return best + [
        (f"{who}: {what}", *rest)
        for who, bounds, some in parts
        if some
        for what, *rest in (texts.check_row(c) for c in compare.judge(compare.read_bounds(bounds), some))
    ]


def notes() -> dict[str, str]:
    """Findings about single conditions, by id."""
    import yaml

    return yaml.safe_load((pathlib.Path(__file__).resolve().parent / "notes.yaml").read_text()) or {}


def run_set(record: RecordedSet, engine_name: str, seeds: int, jobs: int) -> validation.ValidationResult:
    """The engine on the conditions of a set; those that it cannot run are left out."""
    return validation.run(validation.ValidationPlan(record.conditions, sides.make(engine_name, jobs, None), sides.RecordedSide(record), (seeds, 1)))


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
        lines.append(
            (
                a.cell.cca,
                f"{a.cell.rtt_ms:g}",
                f"{a.cell.jitter_ms:g}",
                f"{a.cell.loss_pct:g}",
                f"{a.mean:.2f}",
                f"{a.cv:.0%}",
                reference,
                "–" if a.reference_cv is None else f"{a.reference_cv:.0%}",
                "–" if a.ratio is None else f"{a.ratio:.2f}",
                a.source or "kept back",
                mark,
            )
        )
    return (
        markdown(
            ("cca", "RTT ms", "jitter ms", "loss %", "model Mbit/s", "CV", "measured", "CV", "ratio", "source", f"within {tolerance:.0%}"), lines
        ),
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

{kinds}
{networks}

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
{ranks}{others}
"""


def set_section(said: Set, engine_name: str, seeds: int, jobs: int, found: dict[str, str]) -> tuple[str, list[tuple], tuple[Divergence, ...]]:
    """A set's section, its targets, its divergences."""
    record = load_recorded(said.place)
    outcome = run_set(record, engine_name, seeds, jobs)
    rows, shared = outcome.divergences, texts.shared_table(outcome.divergences)
    if not rows:
        return "", [], ()
    narrow = len(groups([c for c in rows if not c.condition.shared], lambda c: c.cca)) in range(1, MATRIX + 1)
    section = SET_SECTION.format(
        name=record.name,
        what=said.what,
        n=len(rows),
        summary=texts.summary_table(rows).markdown(),
        matrix=texts.matrix_table(rows).markdown() if narrow else shared.markdown() if shared else "",
        worst=texts.worst_table(worst(rows, WORST), ("model", "kernel"), found).markdown(),
        ranks=ranks_section(rows),
        others=left_out_line(outcome.left_out),
    )
    return section, judged(said, rows), rows


def ranks_section(rows: Sequence[Divergence]) -> str:
    """Whether congestion controls are ranked alike, where many ran on each of many paths."""
    found = compare.ranks(rows)
    return f"\n### Rank agreement\n\n{texts.ranks_table(found).markdown()}\n" if found and found.paths >= PATHS else ""


def left_out_line(left_out: Sequence[tuple[str, str]]) -> str:
    """What the model cannot run yet, with the number of conditions."""
    reasons = Counter(why.split(";")[0].split(":  ")[0] for _, why in left_out)
    return "\nLeft out: " + "; ".join(f"{why} ({n})" for why, n in sorted(reasons.items())) + ".\n" if reasons else ""


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


def write(module, seeds: int, threads: int, out: pathlib.Path, *, fake: bool = False, packaged: bool = False) -> None:
    """Run everything and write the page and the CSV beside it, and the package's data file if asked. `module` runs the published tables, its engine the recorded sets."""
    found, sections, targets, everything = notes(), [], [], []
    for said in sets():
        section, reached, rows = set_section(said, "mock" if fake else "model", seeds, threads, found)
        sections.append(section)
        targets += reached
        everything += rows
    tables, more = published_section(module, list(range(1, seeds + 1)), threads)
    table = markdown(("what", "target", "reached", ""), targets + more)
    names = sorted({f.cca for c in everything for f in c.condition.scenario.flows})
    found_kinds = kinds.page(everything, names)
    out.write_text(
        PAGE.format(
            seeds=seeds,
            definitions=texts.DEFINITIONS,
            targets=table,
            kinds=found_kinds,
            networks=topology.kept_section(),
            sets="\n".join(sections),
            **tables,
        )
    )
    texts.write_numbers(everything, out.with_suffix(".csv"))
    if packaged:
        kinds.write(everything, engines.make("model").version, f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}")


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seeds", type=int, default=20)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--out", type=pathlib.Path, default=DOCS / "fidelity.md")
    p.add_argument("--fake", action="store_true")
    a = p.parse_args()
    write(engine.core(a.fake), a.seeds, a.jobs, a.out, fake=a.fake, packaged=not a.fake and a.out.parent == DOCS)
    print(f"wrote {a.out} and {a.out.with_suffix('.csv')}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
