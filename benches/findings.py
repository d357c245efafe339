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
from tcpscape.studies.result import VERDICTS, JudgedClaim, JudgedStudy

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "findings.md"
OWN = "tcpscape"
"""The claims that are our own."""
MARKS = {"reproduced": "yes", "not reproduced": "**no**", "not decidable": "open"}
TEXT = """\
# What the published works say, and what holds

Written by `benches/findings.py` (`make refresh`); do not edit. Every claim of five published works, of two sources they rest on, and of works on networks that several share, judged on our own runs under their conditions
({trials} trials on engine {engine}): *yes* is reproduced, *no* is not, *open* cannot be decided by running (or not by so few runs). A number
in brackets is a 95 % interval. `tcpscape study run NAME` repeats each study and shows its tables.

{summary}

## What these works could not see

{own}

{works}
"""


def judged_studies(jobs: int, out: pathlib.Path) -> list[JudgedStudy]:
    """Every study, run in full and judged."""
    studies = []
    for name in study.names():
        began = time.monotonic()
        with Store(out / name) as store:
            result = runs.run(study.get(name), Execution(jobs, store))
        record.save(result.record(f"tcpscape study run {name}"), out / name)
        studies.append(runs.judge(result))
        print(f"{name}: {result.trial_count} trials, {time.monotonic() - began:.0f} s", flush=True)
    return studies


def page(studies: list[JudgedStudy]) -> str:
    """The page."""
    judged = [(s.result.study.name, claim) for s in studies for claim in s.claims]
    trials = sum(s.result.trial_count for s in studies)
    works = {key: [(name, j) for name, j in judged if j.claim.work == key] for key in study.WORKS}
    summary = markdown(
        ["work", *VERDICTS],
        [[title, *(str(sum(j.verdict == v for _, j in works[key])) for v in VERDICTS)] for key, title in study.WORKS.items() if key != OWN],
    )
    sections = "\n\n".join(f"## {title}\n\n{table(works[key])}" for key, title in study.WORKS.items() if key != OWN)
    return TEXT.format(trials=trials, engine=studies[0].result.label, summary=summary, own=table(works[OWN]), works=sections)


def table(claims: list[tuple[str, JudgedClaim]]) -> str:
    """The claims of one work."""
    rows = [[MARKS[j.verdict], plain(j.claim.text), plain(measured(j)), f"`{name}`"] for name, j in claims]
    return markdown(["holds", "claim", "ours", "study"], rows)


def measured(judged: JudgedClaim) -> str:
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
    PAGE.write_text(page(judged_studies(args.jobs, args.out)), "utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
