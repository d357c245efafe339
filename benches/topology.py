#!/usr/bin/env python3
"""Model against real Linux on random networks: the section "Real networks" of docs/fidelity.md.

The kernel's runs are recorded in tests/data/validated/topologies-6.1; `--record N` makes them again (`--seed`, a kernel built by
`tcpscape kernel build`). The model runs each topology with `--seeds` seeds. Without a record, or with `--print`, nothing is written.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from plans import DATA
from table import markdown
from tcpscape.validate import compare, sides, topologies, validation
from tcpscape.validate.sides import load_recorded
from tcpscape.words import divergence as texts
from tcpscape.words import topologies as topology_tables

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "fidelity.md"
RECORD = DATA.parent / "validated" / "topologies-6.1"
TARGETS = "group_median<=0.03,group_p90<=0.15,latency_median<=0.05,latency_p90<=0.15,winner_share>=0.95"
SEEDS = 8
WORST = 10
BEGIN, END = "<!-- real networks: written by benches/topology.py -->", "<!-- end of real networks -->"

SECTION = """\
## Real networks

{n} random topologies ([how they are drawn and compared](models/methods/random-topologies.md)), {a} runs of the model ({version}) and {b} of the kernel each.
{definitions}

{targets}

{table}

### The worst topologies

{worst}
{notes}"""


def record(n: int, seed: int, seeds: int, engine: str, jobs: int) -> None:
    """Runs the kernel on n topologies, and keeps what it did."""
    from tcpscape.validate.conditions import write
    from tcpscape.validate.sides import write_results

    drawn = topologies.TopologyDraw(n, seed).conditions()
    with tempfile.TemporaryDirectory() as out:
        runs = sides.make(engine, jobs, pathlib.Path(out)).measure([(c, seeds) for c in drawn])
    shutil.rmtree(RECORD, ignore_errors=True)
    RECORD.mkdir(parents=True)
    write(drawn, RECORD / "conditions.yaml")
    write_results({"b": {c.id: r for c, r in zip(drawn, runs, strict=True)}}, RECORD / "results.csv")


def section(engine: str, seeds: int, jobs: int) -> str:
    """The section of the page: targets, tables, the worst topologies, and what is known about single ones (`notes.md` of the record)."""
    kept = load_recorded(RECORD)
    outcome = validation.run(validation.ValidationPlan(kept.conditions, sides.make(engine, jobs, None), sides.RecordedSide(kept), (seeds, 1)))
    rows = outcome.divergences
    checked = compare.judge(compare.read_bounds(TARGETS), rows)
    notes, left_out = RECORD / "notes.md", "".join(f"\n{id} is left out: {why}.\n" for id, why in outcome.left_out)
    return SECTION.format(
        n=len(rows),
        a=seeds,
        b=min(len(c.b) for c in rows),
        version=outcome.a.version,
        definitions=topology_tables.DEFINITIONS,
        targets=markdown(("what", "target", "reached", ""), [texts.check_row(c) for c in checked]),
        table=topology_tables.table(rows).markdown(),
        worst=topology_tables.worst_table(rows, WORST, ("model", "kernel")).markdown(),
        notes=left_out + ("\n" + notes.read_text("utf-8") if notes.exists() else ""),
    )


def insert(text: str, page: pathlib.Path = PAGE) -> None:
    """Writes the section into the page, between its marks."""
    whole = page.read_text("utf-8")
    first, last = whole.index(BEGIN) + len(BEGIN), whole.index(END)
    page.write_text(f"{whole[:first]}\n\n{text}\n{whole[last:]}", "utf-8")


def kept_section(page: pathlib.Path = PAGE) -> str:
    """The section as it stands, with its marks, for the bench that writes the whole page; empty where there is none."""
    whole = page.read_text("utf-8") if page.exists() else ""
    return whole[whole.index(BEGIN) : whole.index(END) + len(END)] if BEGIN in whole else f"{BEGIN}\n{END}"


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--record", type=int, help="run the kernel on so many topologies first")
    p.add_argument("--seed", type=int, default=18, help="of the draw")
    p.add_argument("--kernel", default="virtual", help="the engine that is recorded")
    p.add_argument("--engine", default="model")
    p.add_argument("--seeds", type=int, default=SEEDS)
    p.add_argument("--jobs", type=int, default=0)
    p.add_argument("--print", action="store_true", help="print the section, write nothing")
    a = p.parse_args()
    if a.record:
        record(a.record, a.seed, a.seeds, a.kernel, a.jobs)
    text = section(a.engine, a.seeds, a.jobs)
    if a.print:
        print(text)
    else:
        insert(text)
        print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
