"""Where the instructions of a packet's arrival are spent: by part of the engine, counted by callgrind; a table of docs/performance.md."""

from __future__ import annotations

import pathlib
import re
import subprocess
import tempfile
from collections import Counter

import ack_cost

PARTS = (
    ("crates/tcp/src/sender/", "sender: reading an ACK, repair, window, what is sent"),
    ("crates/tcp/src/cc/", "congestion control"),
    ("crates/tcp/src/receiver/", "receiver: order, window, ACKs"),
    ("crates/tcp/src/", "TCP, both ends: clocks, filters"),
    ("crates/path/src/", "queues and impairments"),
    ("crates/sim/src/events", "calendar of events"),
    ("crates/sim/src/flow", "applications: reads and writes"),
    ("crates/sim/src/", "engine: packets between machines, what comes out"),
    ("crates/base/src/", "shared types: times, packets, histograms"),
    ("/library/", "Rust's library, compiled into all of these: bounds of arrays, deques, options, comparisons"),
)
"""The first that a source file's path has in it is its part."""
LINE = re.compile(r"(?:fl|fi|fe)=\((\d+)\)(?: (.*))?|(?:cfi|cfl)=\((\d+)\) (.*)|(calls)=|[0-9+*-]\S* (\d+)")


def instructions(report: str) -> Counter[str]:
    """Instructions by part, from a report of callgrind; files of no part are left out (the C library)."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    part, is_callee = "", False
    for line in report.splitlines():
        match = LINE.match(line)
        if not match:
            continue
        number, name, callee, its_name, calls, count = match.groups()
        if number or callee:
            names.setdefault(number or callee, name or its_name or "")
            if number:
                part = next((name_of_part for path, name_of_part in PARTS if path in names[number]), "")
        elif calls:
            is_callee = True  # the next line has what the callee took
        else:
            counts[part] += 0 if is_callee else int(count)
            is_callee = False
    del counts[""]
    return counts


def rows() -> list[tuple[str, str]]:
    """Rows of the table, the most first: part, its share of all instructions of the engine; none without cargo."""
    program = ack_cost.binary("trial_cost", "tcpscape-sim", "release")
    if not program:
        return []
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "report")
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, "cubic", "20"], capture_output=True, check=True)
        counts = instructions(out.read_text())
    return [(part, f"{n / counts.total():.0%}") for part, n in counts.most_common()]
