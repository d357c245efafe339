"""The long form: `python tests/robustness --cases 3000` runs cases in processes of their own and prints a table; status 1 for findings.

`--only GROUP` runs one command or format; `--case GROUP:SEED:NUMBER` runs one case alone and shows all of it.
"""

import argparse
import itertools
import json
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

sys.path[0] = str(Path(__file__).parent.parent)  # this directory is started as a script, and is a package

from robustness import commands, directories, formats, judge, nonsense, process  # noqa: E402, I001
from robustness.case import Case  # noqa: E402


CHUNK, EVERY = 25, 4
"""Cases that are drawn at once, and of how many one is kept: Hypothesis makes neighbours alike."""


def draw(strategy: st.SearchStrategy[Case], count: int, seed_: int) -> Iterator[Case]:
    """So many cases, the same ones for the same seed; a case does not depend on how many come after it."""
    for chunk in range(math.ceil(count / CHUNK)):
        yield from _chunk(strategy, 1000 * seed_ + chunk)[: count - chunk * CHUNK]


def _chunk(strategy: st.SearchStrategy[Case], seed_: int) -> list[Case]:
    cases: list[Case] = []

    @seed(seed_)
    @settings(max_examples=CHUNK * EVERY, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(case: Case) -> None:
        cases.append(case)

    collect()
    return cases[EVERY - 1 :: EVERY]


def _hostile() -> Iterator[tuple[str, Case]]:
    """Every hostile result directory with every command that reads one."""
    pairs = itertools.product(directories.kinds(large=True), directories.COMMANDS)
    return ((f"hostile:{k}", directories.case(kind, words)) for k, (kind, words) in enumerate(pairs))


KNOWN: dict[str, Callable[[], Iterable[tuple[str, Case]]]] = {"nonsense": nonsense.cases, "hostile": _hostile}
"""Cases that are known by name, before those that are drawn."""


def groups() -> dict[str, st.SearchStrategy[Case]]:
    """A strategy for each command and each format."""
    return {**{name: commands.lines(name) for name in commands.commands()}, **formats.formats()}


def _shares(names: list[str], cases: int) -> dict[str, int]:
    """Cases of each group: commands without options need few."""
    weights = {name: 1 if name in commands.commands() and len(commands.commands()[name].params) < 2 else 6 for name in names}
    return {name: max(4, round(cases * weight / sum(weights.values()))) for name, weight in weights.items()}


def _run(job: tuple[str, Case]) -> tuple[str, Case, process.Ended, list[tuple[str, str]]]:
    key, case = job
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        ended = process.run(case, Path(folder) / "case")
        found = list(judge.findings(case, ended))
        if found and not ended.timed_out:  # once more in an interpreter of its own
            ended = process.run(case, Path(folder) / "again", process.exact)
            found = list(judge.findings(case, ended))
    return key, case, ended, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/robustness", description=__doc__)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--case", help="GROUP:SEED:NUMBER of a case")
    parser.add_argument("--save", type=Path, help="a file for the findings, one JSON line each")
    options = parser.parse_args()
    os.nice(10)
    process.preload()
    every = groups()
    if options.case:
        return _one(every, options.case)
    names = [name for name in every if not options.only or name in options.only]
    shares = _shares(names, options.cases)
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:  # before the cases are there: a fork's memory is that of its parent
        known = [pair for name, kind in KNOWN.items() if not options.only or name in options.only for pair in kind()]
        drawn = [_named(name, draw(every[name], shares[name], options.seed), options.seed) for name in names]
        jobs = itertools.chain(known, _in_turn(drawn))
        table = Table(options.save)
        began = time.monotonic()
        try:
            for key, case, ended, found in pool.imap_unordered(_run, jobs):
                table.add(key, case, ended, found)
        except KeyboardInterrupt:  # the table of what was done until then
            print("interrupted")
        table.show()
        print(f"{time.monotonic() - began:.0f} s, seed {options.seed}")
    return 1 if table.kinds else 0


def _named(name: str, cases: Iterator[Case], seed_: int) -> Iterator[tuple[str, Case]]:
    return ((f"{name}:{seed_}:{i}", case) for i, case in enumerate(cases))


def _in_turn(groups: list[Iterator[tuple[str, Case]]]) -> Iterator[tuple[str, Case]]:
    """A case of each group, then another of each, so that a run that is ended early has seen all of them."""
    while groups:
        for group in list(groups):
            if (one := next(group, None)) is None:
                groups.remove(group)
            else:
                yield one


class Table:
    """What came of the cases: a row for each group, and the findings by kind."""

    def __init__(self, save: Path | None) -> None:
        self.save = save
        self.rows: dict[str, Counter[str]] = defaultdict(Counter)
        self.worst: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
        self.kinds: dict[tuple[str, str], list[tuple[str, Case]]] = defaultdict(list)

    def add(self, key: str, case: Case, ended: process.Ended, found: list[tuple[str, str]]) -> None:
        """One more case; its findings are printed at once."""
        row = self.rows[case.group]
        row["inputs"] += 1
        row["refused" if ended.status == judge.EXIT_REFUSED else "accepted" if ended.status in (0, 1) else "other"] += 1
        row["findings"] += bool(found)
        seconds, peak_mb = self.worst[case.group]
        self.worst[case.group] = (max(seconds, ended.seconds), max(peak_mb, ended.peak_mb))
        for kind, what in found:
            self.kinds[kind, what if kind == "traceback" else case.group].append((key, case))
            _print(f"{kind} | {key} | {case.command()[:400]} | {what[:300]}")
            if self.save:
                with self.save.open("a") as file:
                    file.write(json.dumps({"kind": kind, "what": what, "case": key, "command": case.command()}) + "\n")

    def show(self) -> None:
        """Prints the table, and the findings by kind, the most frequent first, each with its shortest command."""
        print(f"\n{'':24}{'inputs':>8}{'refused':>9}{'accepted':>10}{'findings':>10}{'worst s':>9}{'worst MB':>10}")
        worst = (max((s for s, _ in self.worst.values()), default=0.0), max((m for _, m in self.worst.values()), default=0.0))
        for name, row, (seconds, peak_mb) in [
            *((n, r, self.worst[n]) for n, r in self.rows.items()),
            ("all", sum(self.rows.values(), Counter()), worst),
        ]:
            print(f"{name:24}{row['inputs']:8}{row['refused']:9}{row['accepted']:10}{row['findings']:10}{seconds:9.1f}{peak_mb:10.0f}")
        for (kind, what), cases in sorted(self.kinds.items(), key=lambda item: -len(item[1])):
            key, case = min(cases, key=lambda pair: len(pair[1].command()))
            _print(f"{len(cases):5} × {kind}: {what[:200]}\n        {key}  {case.command()[:300]}")


def _print(text: str) -> None:
    print(text.encode("utf-8", "backslashreplace").decode().replace("\x1b", "␛"), flush=True)


def _one(every: dict[str, st.SearchStrategy[Case]], key: str) -> int:
    name, seed_, number = key.rsplit(":", 2)
    *_, case = draw(every[name], int(number) + 1, int(seed_))
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    case.write(folder)
    ended = process.run(case, folder / "case", process.exact)
    print(
        f"cd {folder}; {case.command()}\nstatus {ended.status}, {ended.seconds:.1f} s, {ended.peak_mb:.0f} MB\n{ended.out[-2000:]}\n{ended.err[-3000:]}"
    )
    found = list(judge.findings(case, ended))
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
