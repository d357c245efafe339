#!/usr/bin/env python3
"""Model and Linux segment by segment, on deterministic paths and with replayed impairments: the tables of docs/models/exact.md.

`python benches/exact.py` takes some minutes and needs the real kernel (`make kernel`); `--n` paths of `--seed` for each set of controls.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
from collections import Counter

from table import MODELS, insert, markdown
from tcpscape.validate import exact, validation
from tcpscape.words import exact as words

PAGE = MODELS / "exact.md"
CCAS = ("cubic", "reno", "bbr")
SETS = {"controls": False, "replayed": True}
"""Table → whether its paths have random impairments."""


def compared(impaired: bool, n: int, seed: int, jobs: int, out: pathlib.Path) -> exact.Exact:
    """The paths of the draw under each control in turn."""
    options = validation.ValidationOptions(out, ("model", "virtual"), exact=True, impaired=impaired, n=n, seed=seed, cca=CCAS, jobs=jobs)
    return exact.run(validation.prepare(options), (), out, validation.quiet)


def rows(result: exact.Exact) -> str:
    """How many paths of each control are the same, when the others part, and what differs first."""
    table = []
    for cca in CCAS:
        twins = [t for t in result.twins if t.condition.cca == cca]
        parted = sorted(t.first.t_ns for t in twins if t.first)
        kinds = Counter(words.kind(t.first, result) for t in twins if t.first)
        table.append(
            [
                cca,
                f"{sum(t.is_same for t in twins)} of {len(twins)}",
                f"{sum(t.same for t in twins):,} of {sum(t.compared for t in twins):,}",
                f"{statistics.median(parted) / 1e9:.2f} s" if parted else "",
                ", ".join(f"{text} ({n})" for text, n in kinds.most_common()),
            ]
        )
    return markdown(["control", "the same", "segments before the first difference", "it comes at (median)", "what it is"], table)


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--n", type=int, default=24)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--only", choices=SETS)
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/exact"))
    a = p.parse_args()
    for name, impaired in SETS.items():
        if a.only in (None, name):
            result = compared(impaired, a.n, a.seed, a.jobs, a.out / name)
            each = words.table(result)
            insert(PAGE, name, f"{rows(result)}\n\n{markdown(list(each.columns), [list(map(str, row)) for row in each.rows])}")


if __name__ == "__main__":
    main()
