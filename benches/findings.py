#!/usr/bin/env python3
"""Every claim of the published works with our verdict, written to docs/findings.md: all studies in full, on the model.

Trials are kept in out/ and not run again.
"""

from __future__ import annotations

import argparse
import pathlib
import time

from table import markdown
from tcpscape.campaign import record
from tcpscape.campaign.execute import Execution
from tcpscape.store.results import Store
from tcpscape.studies import run as runs
from tcpscape.studies import study
from tcpscape.studies import verdicts as claims
from tcpscape.studies.run import Result
from tcpscape.studies.verdicts import VERDICTS, Judged

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "findings.md"
OWN = "tcpscape"
"""The claims that are our own."""
MARKS = {"reproduced": "yes", "not reproduced": "**no**", "not decidable": "open"}
TEXT = """\
# What the published works say, and what holds

Written by `benches/findings.py` (`make findings`); do not edit. Every claim of five published works, and of two sources they rest on, judged on our own runs under their conditions
({trials} trials on engine {engine}): *yes* is reproduced, *no* is not, *open* cannot be decided by running (or not by so few runs). A number
in brackets is a 95 % interval. `tcpscape study run NAME` repeats each study and shows its tables.

{summary}

## What these works could not see

{own}

{works}
"""


def verdicts(jobs: int, out: pathlib.Path) -> list[tuple[Result, list[Judged]]]:
    """Every study, run in full and judged."""
    found = []
    for name in study.names():
        began = time.monotonic()
        with Store(out / name) as store:
            result = runs.run(study.get(name), Execution(jobs, store))
        record.save(result.record(f"tcpscape study run {name}"), out / name)
        found.append((result, claims.judge(result)))
        print(f"{name}: {result.trials} trials, {time.monotonic() - began:.0f} s", flush=True)
    return found


def page(found: list[tuple[Result, list[Judged]]]) -> str:
    """The page."""
    judged = [(result.study.name, one) for result, some in found for one in some]
    trials = sum(r.trials for r, _ in found)
    works = {key: [(name, j) for name, j in judged if j.claim.work == key] for key in study.WORKS}
    summary = markdown(
        ["work", *VERDICTS],
        [[title, *(str(sum(j.verdict == v for _, j in works[key])) for v in VERDICTS)] for key, title in study.WORKS.items() if key != OWN],
    )
    sections = "\n\n".join(f"## {title}\n\n{table(works[key])}" for key, title in study.WORKS.items() if key != OWN)
    return TEXT.format(trials=trials, engine=found[0][0].label, summary=summary, own=table(works[OWN]), works=sections)


def table(some: list[tuple[str, Judged]]) -> str:
    """The claims of one work."""
    rows = [[MARKS[j.verdict], plain(j.claim.text), plain(said(j)), f"`{name}`"] for name, j in some]
    return markdown(["holds", "claim", "ours", "study"], rows)


def said(judged: Judged) -> str:
    """What was measured, and why the published number is what it is."""
    why = judged.why
    return f"{judged.measured}. {why[:1].upper()}{why[1:]}" if why else judged.measured


def plain(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "/").replace("\n", " ")


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out", help="where trials are kept")
    args = parser.parse_args()
    PAGE.write_text(page(verdicts(args.jobs, args.out)), "utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
