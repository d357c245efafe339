"""What a user waits for: commands, their first words, a directory of a million trials, captures; docs/performance-waits.md.

CPU seconds of a process of its own for each, the fastest of the repetitions, so that what else runs counts little; only the first
words are by the clock. Before and goal are those of the work on waits (CHANGELOG.md); a row without *before* was not measured then.
"""

from __future__ import annotations

import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import campaign
import capture
from table import markdown, verdict

COMMAND = str(pathlib.Path(sys.executable).with_name("tcpscape"))
CELLS, SEEDS = 20_000, 50
PACKETS = 160_000
"""Of the capture that `diagnose` reads."""
LARGE_GB = (0.3, 3)
"""A stream of captured packets, 2,000 flows at a time, and one ten times as long."""
LONG = 5
"""So many times as long is the one whose reading is timed: the start of the interpreter varies by more than reading the short one takes."""
BENCHES = pathlib.Path(__file__).resolve().parent
MAKE = (
    "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import campaign; campaign.make_record(pathlib.Path(sys.argv[2]), *map(int, sys.argv[3:]))"
)
PAGE = """# What a user waits for

Written by `make bench` (benches/waits.py) on this machine; do not edit. {cpu}, {cores} cores, load {load:.1f}. CPU seconds of the command's own process, its start included, the fastest of {repeats};
the first words on a terminal are by the clock. What the engine, campaigns, kernels and the explorer cost: [performance](performance.md).

{table}

- **Commands** run without anything kept from before, with all that they print by default.
- **Trials** are a directory of {cells:,} cells with {seeds} seeds each. *Opened* is its record with every cell, as `report`, `compare` and `export` begin; `compare` is of the directory with itself.
- **Captures**: a recorded transfer with jitter, loss and SACK, as one flow and as 2,000 at once; the ratio is to tshark's `tcp.analysis` on the same file. Packets a second do not count the interpreter's start.
"""

Row = tuple[str, str, str, str, str]


def row(what: str, before: str, goal: float, reached: float, unit: str, *, at_least: bool = False) -> Row:
    """A row of the table: a number beside its goal."""
    sign, met = ("≥", reached >= goal) if at_least else ("≤", reached <= goal)
    return (what, before, f"{sign} {goal:g} {unit}", f"{reached:.3g} {unit}", verdict(met))


def seconds(arguments: list[str], repeats: int) -> float:
    """CPU seconds of a command of tcpscape in an empty directory."""
    taken = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as empty:
            taken.append(capture.measured(["env", "-C", empty, COMMAND, *arguments])[0])
    return min(taken)


def first_words(arguments: list[str]) -> float:
    """Seconds by the clock until a command has written something to a terminal; then it is ended."""
    with tempfile.TemporaryDirectory() as empty:
        ours, its = pty.openpty()
        began = time.monotonic()
        process = subprocess.Popen([COMMAND, *arguments], stdin=its, stdout=its, stderr=its, cwd=empty, start_new_session=True)
        os.close(its)
        seen = b""
        try:
            while not seen.strip():
                seen += os.read(ours, 4096)  # OSError where the command ended without a word
            return time.monotonic() - began
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            os.close(ours)


FIRST_TRIAL = """
import os, time
from tcpscape.engines import model
def first(*_, **__):
    os.write(1, f"{time.process_time()}\\n".encode())  # at once: another thread's first trial may begin before this process has ended
    os._exit(0)
model.Model.run = first
from tcpscape.__main__ import main
main()
"""
"""A command that ends where its first trial would begin, and prints its CPU seconds."""


def before_first_trial(arguments: list[str], repeats: int) -> float:
    """CPU seconds of a command until it asks for its first trial."""
    with tempfile.TemporaryDirectory() as empty:
        command = [sys.executable, "-c", FIRST_TRIAL, *arguments]
        return min(float(subprocess.run(command, cwd=empty, capture_output=True, text=True, check=True).stdout.split()[0]) for _ in range(repeats))


def commands(repeats: int) -> list[Row]:
    """Starts, advice and cliffs."""
    cliff, free, narrow = (
        ["cliff", "--rtt", "50ms", "--cca", "cubic,bbr"],
        ["advise", "--rtt", "50ms"],
        ["advise", "--rtt", "50ms", "--rate", "20mbit"],
    )
    return [
        row("`tcpscape --help`", "–", 0.05, seconds(["--help"], 5 * repeats), "s"),
        row("`advise --rtt 50ms --rate 20mbit`", "–", 1.5, seconds(narrow, repeats), "s"),
        row("… before its first trial", "–", 0.25, before_first_trial(narrow, 5 * repeats), "s"),
        row("`advise --rtt 50ms`", "35 s", 8, seconds(free, repeats), "s"),
        row("`cliff --rtt 50ms --cca cubic,bbr`", "39 s", 12, seconds(cliff, 1), "s"),
        row("its first words on a terminal, by the clock", "–", 1, min(first_words(cliff) for _ in range(repeats)), "s"),
        row("first words of `advise --rtt 50ms`, by the clock", "–", 1, min(first_words(free) for _ in range(repeats)), "s"),
    ]


def many_trials(cells: int, seeds: int) -> list[Row]:
    """A directory with many trials: made, opened, reported, compared, exported."""
    with tempfile.TemporaryDirectory() as folder:
        root, table = pathlib.Path(folder, "many"), str(pathlib.Path(folder, "table.parquet"))
        subprocess.run(
            [sys.executable, "-c", MAKE, str(BENCHES), str(root), str(cells), str(seeds)], check=True
        )  # it takes memory, which a child would be given
        opened, opened_mb = campaign.read(root, "record")
        reported, reported_mb, _ = capture.measured([COMMAND, "report", str(root)])
        compared, compared_mb, _ = capture.measured([COMMAND, "compare", str(root), str(root)])
        exported, exported_mb, _ = capture.measured([COMMAND, "export", str(root), "--to", "parquet", "--out", table])
    return [
        row(f"{cells * seeds:,} trials: opened", "17 s", 3, opened, "s"),
        row("… memory", "4000 MB", 500, opened_mb, "MB"),
        row("… `report`", "–", 15, reported, "s"),
        row("… memory", "–", 600, reported_mb, "MB"),
        ("… `compare`", "–", "–", f"{compared:.3g} s, {compared_mb:.0f} MB", ""),
        ("… `export --to parquet`", "–", "–", f"{exported:.3g} s, {exported_mb:.0f} MB", ""),
    ]


def captures(repeats: int) -> list[Row]:
    """Reading of a capture with one flow and with many, and the command."""
    with tempfile.TemporaryDirectory() as folder:
        file, empty, path = (pathlib.Path(folder, name) for name in ("transfer.pcap", "empty.pcap", "flows.pcap"))
        subprocess.run([COMMAND, *capture.RECORDED, "--pcap", str(file)], check=True, stdout=subprocess.DEVNULL, cwd=folder)
        transfer = capture.Transfer(file)
        empty.write_bytes(transfer.header + transfer.records[0].tobytes())
        read = [sys.executable, "-c", capture.READ]
        start = min(capture.measured([*read, str(empty)])[0] for _ in range(repeats))

        packet = sum(map(len, transfer.records)) / len(transfer.records)

        def prepared(flows: int, size: float) -> pathlib.Path:
            with path.open("wb") as out:
                out.writelines(transfer.stream(flows, size))
            return path

        def reading(flows: int, size: float) -> tuple[float, float, float]:
            path = prepared(flows, size)
            runs = [capture.measured([*read, str(path)]) for _ in range(repeats)]
            took = min(cpu for cpu, _, _ in runs) - start
            return int(runs[0][2].split()[0]) / took / 1e6, took, min(mb for _, mb, _ in runs)

        told = seconds(["diagnose", "--no-replay", str(prepared(1, PACKETS * packet))], repeats)
        one, took, _ = reading(1, LONG * PACKETS * packet)
        ratio = capture.tshark(path) / took if shutil.which("tshark") else None
        many, _, memory = reading(2_000, 300e6)
        little, much = (capture.measured([*read, "-"], transfer.stream(2_000, gb * 1e9))[1] for gb in LARGE_GB)
    return [
        row("captures: one flow", "0.5 M packets/s", 1, one, "M packets/s", at_least=True),
        row("… beside tshark", "–", 20, ratio, "×", at_least=True) if ratio else ("… beside tshark", "–", "≥ 20 ×", "tshark is not installed", ""),
        row("… 2,000 flows at once", "–", 1, many, "M packets/s", at_least=True),
        row("… memory", "243 MB", 200, memory, "MB"),
        row(f"… memory of {LARGE_GB[1]} GB beside that of {LARGE_GB[0]} GB", "–", 1.05, much / little, "×"),
        row(f"… `diagnose --no-replay` of {PACKETS:,} packets", "4.4 s", 1.2, told, "s"),
    ]


def write(quick: bool, out: pathlib.Path) -> None:
    """Measures and writes the page."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its byte code: nobody waits for the compiler at each start
    load, repeats = os.getloadavg()[0], 1 if quick else 3
    cells = CELLS // 100 if quick else CELLS
    rows = [*commands(repeats), *captures(repeats), *many_trials(cells, SEEDS)]
    table = markdown(("what", "before", "goal", "reached", ""), rows)
    out.write_text(PAGE.format(cpu=campaign.cpu(), cores=os.cpu_count(), load=load, repeats=repeats, table=table, cells=cells, seeds=SEEDS))
