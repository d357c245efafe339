#!/usr/bin/env python3
"""`make refresh`: makes every generated figure anew that a model with other results made.

A *figure* is one or more generated files, or parts of pages (`page#part`, benches/table.py). :data:`FIGURES` lists them with the commands that write them. `docs/figures.json` records for each the
rows of `tests/data/behaviour.csv` that the model had then, the digests of the files, and how long it took. A figure is *stale* when one of those
rows or a default of scenarios is another today, or when its files are not as they were written. A commit that leaves the behaviour table as it was makes no figure stale, and
rows that are added at the end (a new queue) do not either. The table's number of events is a cost: it makes the figures stale that measure costs, and no other. `tests/docs/test_docs.py` fails while a figure is stale.

    benches/refresh.py                     the stale ones; what a killed run finished stays finished
    benches/refresh.py findings --always   the named ones, stale or not
    benches/refresh.py --list              what is stale, how long it takes, and how old are the figures that the model does not judge
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import table
from packetdrill import no_scripts

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "docs" / "figures.json"
BEHAVIOUR = ROOT / "tests" / "data" / "behaviour.csv"
COST = "events"
"""The column of the behaviour table that is no result: how many events a trial took."""
METHODS = "docs/models/methods"
STUDIES = ("jitter-cliff",)


def no_kernel() -> str | None:
    """Why the virtual engine cannot run here."""
    from tcpscape import engines

    return engines.REGISTRY["virtual"]().unavailable()


def no_chromium() -> str | None:
    """Why no page can be opened here."""
    return None if shutil.which("chromium") else "chromium is missing: apt-get install chromium"


@dataclass(frozen=True)
class Figure:
    """A generated figure: its name, the files it consists of, the commands that write them (arguments of Python), what they need."""

    name: str
    files: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    by_model: bool = True
    """Whether the model's results are in it; otherwise (latencies, intervals of known distributions) it is stale only when its files were edited."""
    by_cost: bool = False
    """Whether it counts what the model costs (:data:`COST`); then it is stale, too, where the same results cost another number of events."""
    unavailable: Callable[[], str | None] = lambda: None


def bench(part: str) -> tuple[tuple[str, ...], ...]:
    """The command of a part of `make bench`."""
    return (("benches/run.py", "--only", part),)


FIGURES = (
    # Speeds first: the machine is not yet warm of anything else.
    Figure("performance", ("docs/performance.md",), bench("performance"), by_cost=True),
    Figure("campaign", ("docs/performance-campaign.md",), bench("campaign")),
    Figure("virtual", ("docs/performance-virtual.md",), bench("virtual"), unavailable=no_kernel),
    Figure("waits", ("docs/performance-waits.md",), bench("waits"), by_model=False, unavailable=no_kernel),
    Figure("live", ("docs/performance-live.md",), bench("live"), by_model=False),
    Figure("explorer", ("docs/performance-explorer.md",), bench("explorer"), by_model=False, unavailable=no_chromium),
    Figure(
        "fidelity", ("docs/fidelity.md", "docs/fidelity.csv", "python/tcpscape/data/fidelity.json"), (*bench("fidelity"), ("benches/topology.py",))
    ),
    Figure("sweep", ("docs/cca-sweep.md",), bench("sweep")),
    Figure("findings", ("docs/findings.md",), (("benches/findings.py",),)),
    Figure("cliff", (f"{METHODS}/cliff.md#edges",), (("benches/cliff.py",),)),
    Figure(
        "cliff_moves",
        tuple(f"{METHODS}/cliff.md#{part}" for part in ("ingredients", "lengths", "rates", "contours", "ratios")),
        (("benches/cliff_moves.py",),),
    ),
    Figure(
        "chaos", tuple(f"{METHODS}/chaos.md#{part}" for part in ("spread", "shares", "memory", "lengths", "ingredients")), (("benches/chaos.py",),)
    ),
    Figure(
        "chaos_kernel",
        (f"{METHODS}/chaos.md#memory of Linux", f"{METHODS}/chaos.md#lengths of Linux"),
        (("benches/chaos.py", "--only", "kernel"),),
        unavailable=no_kernel,
    ),
    *(
        Figure(f"hosts_{part}", (f"docs/models/tcp/hosts.md#{part}",), (("benches/hosts.py", "--only", part),), unavailable=lack)
        for part, lack in (("cells", lambda: None), ("touched", lambda: None), ("twins", no_kernel))
    ),
    Figure("exact", ("docs/models/exact.md#controls", "docs/models/exact.md#replayed"), (("benches/exact.py",),), unavailable=no_kernel),
    Figure(
        "packetdrill",
        tuple(f"docs/packetdrill.md#{part}" for part in ("families", "failures", "reasons")),
        (("benches/packetdrill.py",),),
        unavailable=no_scripts,
    ),
    Figure("pairs", ("docs/models/controls/prague.md#pairs",), (("benches/pairs.py",),)),
    Figure(
        "diagnosis",
        tuple(f"docs/diagnosis.md#{part}" for part in ("goals", "domains", "names", "intervals", "jitter", "fates")),
        bench("diagnosis"),
        by_model=False,
        unavailable=no_kernel,
    ),
    # What the pages show whose commands take too long for `make test`; their text is nobody's figure.
    Figure("recipes", (), (("-m", "pytest", "-q", "-m", "slow", "tests/docs/test_how_to.py", "-k", "recipe_of_many_trials"),)),
    Figure("coverage", ("docs/coverage.csv", f"{METHODS}/statistics.md#coverage"), (("benches/coverage.py",),), by_model=False),
    Figure(
        "pictures",
        (*(f"docs/img/{s}.{end}" for s in STUDIES for end in ("png", "svg")), "docs/img/explorer.png"),
        (("scripts/picture.py", *STUDIES, "explorer"),),
        unavailable=no_chromium,
    ),
)


@dataclass(frozen=True)
class Made:
    """How a figure was made: rows of the behaviour table and their digest, digests of its files, seconds, the day."""

    rows: int
    behaviour: str
    files: dict[str, str]
    seconds: int
    date: str


def digest(data: bytes) -> str:
    """A short digest of a content."""
    return hashlib.sha256(data).hexdigest()[:16]


def behaviour(rows: int | None = None, *, costs: bool) -> tuple[int, str]:
    """Number and digest of the first `rows` rows of the behaviour table, or of all, with the column of costs or without.

    The defaults of scenarios are in the digest.
    """
    lines = BEHAVIOUR.read_text("utf-8").splitlines()[:rows]
    names = lines[0].split(",")
    if COST in names and not costs:
        lines = [",".join(value for name, value in zip(names, line.split(","), strict=True) if name != COST) for line in lines]
    return len(lines), digest("\n".join([default_address(), *lines]).encode())


def default_address() -> str:
    """The content address of a scenario that says nothing but its path: another one where a default has another meaning."""
    from tcpscape.scenario.scenario import Scenario

    return Scenario.of({"forward": "netem delay 25ms"}).address()


def read() -> dict[str, Made]:
    """What is recorded of the figures."""
    return {name: Made(**fields) for name, fields in json.loads(RECORD.read_text("utf-8")).items()} if RECORD.exists() else {}


def keep(name: str, made: Made) -> None:
    """Adds a figure to the record."""
    whole = {**read(), name: made}
    RECORD.write_text(json.dumps({n: asdict(whole[n]) for n in sorted(whole)}, indent=1) + "\n", "utf-8")


def content(name: str) -> bytes | None:
    """A file, or the part of a page that is written `page#part`; None where there is none."""
    path, _, part = name.partition("#")
    if not (ROOT / path).exists():
        return None
    return table.parts(ROOT / path).get(part, "").encode() or None if part else (ROOT / path).read_bytes()


def contents(figure: Figure) -> dict[str, str]:
    """The digests of a figure's files; "missing" for one that is not there."""
    return {name: digest(data) if (data := content(name)) is not None else "missing" for name in figure.files}


def why_stale(figure: Figure, record: dict[str, Made]) -> str | None:
    """Why a figure has to be made again, or None."""
    made = record.get(figure.name)
    if made is None:
        return "there is no record of how it was made" if figure.by_model else None
    if figure.by_model and behaviour(made.rows, costs=figure.by_cost) != (made.rows, made.behaviour):
        return f"the model's results are others since {made.date}"
    edited = [name for name, content in contents(figure).items() if made.files.get(name) != content]
    return f"{', '.join(edited)} is not as it was written" if edited else None


def age(figure: Figure, record: dict[str, Made]) -> str:
    """Of a figure that no change of the model makes stale: when it was made, by the record or by the last commit that wrote its first file."""
    if made := record.get(figure.name):
        return f"made on {made.date}"
    command = ["git", "log", "-1", "--format=last written on %cs by commit %h", "--", figure.files[0]]
    log = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return log.stdout.strip() or "nobody knows when it was made"


def state(figure: Figure, reason: str | None, record: dict[str, Made]) -> str:
    """One line about a figure: whether it is stale and why, and how old it is where that is not judged by the model."""
    judged = f"stale: {reason}" if reason else "up to date" if figure.by_model else "as it was written"
    return judged if figure.by_model else f"{judged}; not judged by the model: {age(figure, record)} (`--always` makes it)"


def make(figure: Figure) -> Made:
    """Runs the commands of a figure; raises :class:`subprocess.CalledProcessError` when one fails."""
    rows, table = behaviour(costs=figure.by_cost)
    began = time.monotonic()
    path = os.pathsep.join(filter(None, (str(ROOT / "benches"), os.environ.get("PYTHONPATH"))))
    for command in figure.commands:
        environment = {**os.environ, "PYTHONPATH": path, "UPDATE_PAGES": "1"}
        subprocess.run([sys.executable, *command], check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    return Made(rows, table, contents(figure), round(time.monotonic() - began), f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}")


def duration(seconds: float) -> str:
    """A duration in words."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def expected(figures: Sequence[Figure], record: dict[str, Made]) -> str:
    """How long figures take, by what they took last; those that were never timed are named."""
    known = [record[f.name].seconds for f in figures if f.name in record]
    unknown = [f.name for f in figures if f.name not in record]
    return f"about {duration(sum(known))}" + (f", and what {', '.join(unknown)} takes, for the first time" if unknown else "")


def refresh(figures: Sequence[Figure]) -> int:
    """Makes figures one by one; the number of those that could not be made."""
    record, failed = read(), 0
    for k, figure in enumerate(figures):
        print(f"{figure.name} …  ({k + 1} of {len(figures)}; left: {expected(figures[k:], record)})", flush=True)
        if why := figure.unavailable():
            print(f"{figure.name}: not made: {why}")
            failed += 1
            continue
        try:
            made = make(figure)
        except subprocess.CalledProcessError as e:
            print(f"{figure.name}: not made: {' '.join(e.cmd[1:])} ended with status {e.returncode}")
            failed += 1
            continue
        keep(figure.name, made)
        print(f"{figure.name}: {', '.join(figure.files) or 'outputs in pages'} in {duration(made.seconds)}", flush=True)
    return failed


def main() -> int:
    """The command: status 1 where a figure could not be made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FIGURE", help=f"of {', '.join(f.name for f in FIGURES)}; default: all")
    parser.add_argument("--always", action="store_true", help="also those that are not stale")
    parser.add_argument("--list", action="store_true", help="say what is stale, make nothing")
    args = parser.parse_args()
    if unknown := set(args.names) - {f.name for f in FIGURES}:
        parser.error(f"no figure is called {', '.join(sorted(unknown))}")
    record = read()
    reasons = {f: why_stale(f, record) for f in FIGURES if not args.names or f.name in args.names}
    for figure, reason in reasons.items():
        print(f"{figure.name:12} {state(figure, reason, record)}")
    stale = [f for f, reason in reasons.items() if reason or args.always]
    if stale:
        print(f"{len(stale)} to make: {expected(stale, record)}")
    return 1 if not args.list and refresh(stale) else 0


if __name__ == "__main__":
    raise SystemExit(main())
