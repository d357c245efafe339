#!/usr/bin/env python3
"""Ends commands by SIGKILL, SIGINT and SIGTERM at random moments, and finds what was lost, doubled, damaged or left over.

Each command runs once undisturbed; its directory is the reference. Then it begins in an empty directory, is ended at a random moment of that time,
and is typed again until it is done. Expected each time:

- the status and one line of what is kept (after SIGKILL nothing), no traceback, within :data:`PATIENCE_S`;
- every trial that is in the database reads back; those that are there and those that the second command ran are all trials, each once;
- in the end every file has the bytes of the reference (of the database: its rows and manifests), and there is no file besides;
- no process and no directory of a guest's memory is left: this process is made the parent of orphans (`PR_SET_CHILD_SUBREAPER`, prctl(2)).
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
PATIENCE_S = 20
"""Most that a command may take to end after a signal, s."""
GRACE_S = 5
"""Most that guests and their janitors may take to end after their parent, s."""
MEMORY = pathlib.Path("/dev/shm")
PR_SET_CHILD_SUBREAPER = 36
PATH = "--rtt 40ms --rate 20mbit"
COMMANDS = {
    "sweep": f"sweep {PATH} --jitter 0,2,4ms --cca cubic,bbr --seeds 6 --duration 20s --samples 100ms --out OUT --report",
    "small": f"sweep {PATH} --jitter 0,2ms --seeds 3 --duration 5s --samples 100ms --out OUT",
    "run": "run starlink-baseline --cca cubic,bbr --seeds 6 --duration 20s --samples 10ms --out OUT --report --pcap OUT/first.pcapng",
    "study": "study run baseline --quick --out OUT",
    "advise": f"advise {PATH} --loss 0.1% --seeds 6 --out OUT --report",
    "cliff": "cliff --rtt 50ms --cca bbr --out OUT",
    "report": "report OUT",
    "csv": "export OUT --to csv --samples --out OUT/export/table.csv",
    "flent": "export OUT --to flent --out OUT/export",
    "plot": "plot OUT --what cwnd,rtt",
    "compare": "compare OUT OUT",
    "programs": f"sweep {PATH} --engine virtual --command 'iperf3 -c far -t 3 -J' --serve 'iperf3 -s -1' --seeds 4 --out OUT",
    "virtual": f"sweep {PATH} --engine virtual --cca cubic,bbr --seeds 4 --duration 2s --out OUT",
}
"""Commands by name; those that read begin in the directory of `run`."""
USUAL = [name for name in COMMANDS if name != "small"]
READING = ("report", "csv", "flent", "plot", "compare")


@dataclass(frozen=True)
class Moment:
    """One command that is ended."""

    name: str
    number: signal.Signals
    after_s: float


@dataclass(frozen=True)
class Reference:
    """A command that ran undisturbed."""

    seconds: float
    content: dict[str, object]
    trials: int


class Kills:
    """The references of some commands, and the trial of a moment."""

    def __init__(self, names: Sequence[str], root: pathlib.Path) -> None:
        self.root = root
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._guests = set(guests())
        self._results = root / "results"
        if set(names) & set(READING):
            finish(start("run", self._results))
        self.references = {name: self._reference(name) for name in names}

    def moments(self, count: int, seed: int) -> list[Moment]:
        """Commands and signals in turn, each at a random moment of the command."""
        draw = random.Random(seed)
        names = list(self.references)
        chosen = [(names[i % len(names)], SIGNALS[i // len(names) % len(SIGNALS)]) for i in range(count)]
        return [Moment(name, number, draw.uniform(0.0, 1.05) * self.references[name].seconds) for name, number in chosen]

    def problems(self, moment: Moment) -> list[str]:
        """Ends a command at a moment, types it again, and says what was not as expected."""
        out = self._place(moment.name)
        child = start(moment.name, out)
        time.sleep(moment.after_s)
        child.send_signal(moment.number)
        _, err = child.communicate(timeout=PATIENCE_S)
        found = list(ending(moment.number, child.returncode, err))
        found += self._left_over()
        there, unread = trials(out)
        found += [f"{unread} damaged trials"] if unread else []
        said = re.search(r"interrupted: (\d+) trials? ran", err)
        if said and int(said[1]) > there:
            found.append(f"{said[1]} trials said to be kept, {there} are there")
        again = finish(start(moment.name, out))
        reference = self.references[moment.name]
        ran = re.search(r"(\d+) ran", again)
        if ran and COMMANDS[moment.name].startswith("sweep") and there + int(ran[1]) != reference.trials:
            found.append(f"{there} trials were kept and {ran[1]} ran of {reference.trials}")
        found += differences(reference.content, content(out))
        shutil.rmtree(out)
        return found

    def _reference(self, name: str) -> Reference:
        out = self._place(name)
        began = time.monotonic()
        finish(start(name, out))
        seconds = time.monotonic() - began
        reference = Reference(seconds, content(out), trials(out)[0])
        shutil.rmtree(out)
        return reference

    def _place(self, name: str) -> pathlib.Path:
        """The directory that the command is run in: the same one each time, since commands write its name."""
        out = self.root / "out"
        if name in READING:
            shutil.copytree(self._results, out)
        return out

    def _left_over(self) -> list[str]:
        """Processes and directories of guests that are left when guests have had their time to end."""
        end = time.monotonic() + GRACE_S
        while children() and time.monotonic() < end:
            reap()
            time.sleep(0.02)
        left = [f"process left: {words}" for words in children().values()]
        return left + [f"directory left: {guest}" for guest in guests() - self._guests]


def start(name: str, out: pathlib.Path) -> subprocess.Popen[str]:
    """Begins a command."""
    words = [word.replace("OUT", str(out)) for word in shlex.split(COMMANDS[name])]
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-m", "tcpscape", *words], stdout=pipe, stderr=pipe, text=True, cwd=out.parent)


def finish(child: subprocess.Popen[str]) -> str:
    """What a command prints; it has to end with status 0."""
    out, err = child.communicate(timeout=600)
    if child.returncode:
        raise SystemExit(f"{' '.join(map(str, child.args))}: status {child.returncode}: {err}")
    return out


def ending(number: signal.Signals, status: int, err: str) -> list[str]:
    """What is wrong with how a command ended; it may have been done before the signal came, or not have begun."""
    if number == signal.SIGKILL:
        return [] if status in (-number, 0) else [f"status {status}: {err}"]
    if status in (0, -number):  # before Python, or the command, handles signals
        return [f"stderr: {err}"] if err and status == 0 and not err.startswith("wrote ") else []  # `export` says there what it wrote
    lines = err.splitlines()
    right = status == 128 + number and len(lines) == 1 and lines[0].startswith("interrupted")
    return [] if right else [f"status {status}: {err}"]


def trials(out: pathlib.Path) -> tuple[int, int]:
    """Trials in a directory's database, and those of them that cannot be read."""
    from tcpscape.store import rows

    files = [*out.rglob("results.sqlite")]
    found = [row for file in files for row in sql(file, "SELECT trial, queues FROM trials")]
    return len(found), sum(rows.decode(trial, queues) is None for trial, queues in found)


def sql(file: pathlib.Path, query: str) -> list[tuple[object, ...]]:
    """Rows of a database, empty where its tables are not made yet."""
    with sqlite3.connect(f"file:{file}?mode=rw", uri=True) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        rows = connection.execute(query).fetchall() if "trials" in tables else []
    connection.close()
    return rows


def content(out: pathlib.Path) -> dict[str, object]:
    """Every file with its bytes; of a database the trials in the order of their addresses, and the manifests."""
    found: dict[str, object] = {}
    for file in sorted(path for path in out.rglob("*") if path.is_file()):
        if file.name == "results.sqlite":
            found[str(file.relative_to(out))] = (
                sql(file, "SELECT * FROM trials ORDER BY address"),
                sql(file, "SELECT document FROM manifests ORDER BY place"),
            )
        else:
            found[str(file.relative_to(out))] = file.read_bytes()
    return found


def differences(expected: dict[str, object], found: dict[str, object]) -> list[str]:
    """What tells a directory from the reference."""
    missing = [f"missing: {name}" for name in expected.keys() - found.keys()]
    extra = [f"left: {name}" for name in found.keys() - expected.keys()]
    return missing + extra + [f"differs: {name}" for name in expected.keys() & found.keys() if expected[name] != found[name]]


def children() -> dict[int, str]:
    """Processes that this one is the parent of, with their command lines."""
    found = {}
    for pid in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        try:
            found[int(pid)] = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    return found


def reap() -> None:
    """Takes note of children that have ended, so that they are gone."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def guests() -> set[pathlib.Path]:
    """Directories of guests that no process works in."""
    used = set()
    for place in pathlib.Path("/proc").glob("[0-9]*/cwd"):
        try:
            used.add(place.readlink())
        except OSError:
            continue
    return {path for path in MEMORY.glob("tcpscape-*") if path not in used}


def main() -> int:
    """Prints a row for each command and every problem; status 1 where there is one."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--moments", type=int, default=66)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", nargs="*", choices=list(COMMANDS), default=USUAL)
    chosen = p.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    bad = 0
    with tempfile.TemporaryDirectory() as root:
        kills = Kills(chosen.only, pathlib.Path(root))
        for number, moment in enumerate(kills.moments(chosen.moments, chosen.seed), 1):
            print(f"moment {number} of {chosen.moments}", file=sys.stderr, flush=True)
            counts[moment.name, moment.number.name] += 1
            for problem in kills.problems(moment):
                bad += 1
                print(f"{moment.name} {moment.number.name} after {moment.after_s:.3f} s: {problem}", flush=True)
    for name in chosen.only:
        print(f"{name:8} {kills.references[name].seconds:5.1f} s  " + "  ".join(f"{s.name} {counts[name, s.name]}" for s in SIGNALS))
    print(f"{chosen.moments} moments, {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
