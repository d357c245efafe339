"""Files of every format, mutated, each with a command line that reads it."""

import json
import shlex
import sqlite3
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from robustness import mutations, values
from robustness.case import DIRECTORY, ENDLESS, FIFO, LOOP, Case
from robustness.documents import CONTROL, RECORDED, RESULTS, content, made, needed

ADVISE = "advise --from {} --rate 5mbit --seeds 2 --cca cubic --duration 100ms"
VALIDATE = "validate --engine model --engine mock --conditions {} --seeds 1 --jobs 1 --out out/v"
READ_BY: Mapping[str, tuple[str, ...]] = {
    "scenario.yaml": (
        "run {} --seeds 1 --duration 100ms",
        "run {} --seeds 1",
        "scenario show {}",
        "scenario show {} --tc",
        "export {} --to tc",
        "sweep {} --axis bottleneck.buffer=1,2bdp --seeds 1",
        "advise --from {} --seeds 2 --cca cubic --duration 100ms",
        "run {} --engine mock --seeds 1",
    ),
    "network.yaml": (
        "run {} --seeds 1 --duration 100ms",
        "run {} --seeds 1",
        "scenario show {}",
        "export {} --to tc",
        "sweep {} --seeds 1 --axis links.0.delay=1,2ms",
        "advise --from {} --seeds 2",
    ),
    "worded.yaml": ("run {} --seeds 1 --duration 100ms", "run {} --seeds 1", "scenario show {}", "export {} --to tc"),
    "scenario.toml": ("run {} --seeds 1 --duration 100ms", "run {} --seeds 1", "scenario show {}"),
    "traced.yaml": ("run {} --seeds 1 --duration 100ms", "export {} --to mahimahi", "scenario show {} --tc"),
    "link.up": ("run traced.yaml --seeds 1", "scenario show traced.yaml"),
    "campaign.yaml": ("sweep {} --jobs 1",),
    "conditions.yaml": ("sweep {} --jobs 1",),
    "conditions.csv": (VALIDATE,),
    "recorded_results.csv": ("validate --engine mock --against recorded --seeds 1 --jobs 1 --out out/v",),
    "listed.yaml": (VALIDATE,),
    "ping.txt": (ADVISE,),
    "iperf3.json": ("diagnose {} --no-replay", "compare {} iperf3-good.json", "export {} --to csv", ADVISE),
    "flow.flent.gz": ("diagnose {} --no-replay --json", "compare {} results", "export {} --to csv", ADVISE),
    "own.json": ("compare {} results", "export {} --to csv"),
    "own.flent.gz": ("compare {} results", "export {} --to csv"),
    "rows.csv": ("compare {} results", "export {} --to iperf3 --out x", "compare {} {} --metric goodput_mbps"),
    "rows.parquet": ("compare {} results", "export {} --to csv"),
    "samples.csv": ("compare {} {} --metric rtt_ms", "export {} --to csv"),
    "fragment.config": ("kernel build --source no-such-tree --config {}",),
}
"""File → command lines that read it."""
OF_RESULTS = (
    "report {}",
    "plot {} --what bars",
    "plot {} --what cwnd",
    "export {} --to csv",
    "export {} --to iperf3 --out x",
    "compare {} {}",
    "export {} --to csv --samples",
    "export {} --to markdown",
)
RESUMED = "run --bottleneck 'tbf rate 5mbit burst 6056 limit 15000' --forward 'netem delay 5ms' --reverse 'netem delay 5ms' --cca cubic,bbr --duration 200ms --seeds 2 --samples 50ms --out results"


def formats() -> dict[str, st.SearchStrategy[Case]]:
    files = {name: _file(name) for name in READ_BY}
    stores = {f"{name}/": _store(name) for name in (RESULTS, "swept", "studied", "advised")}
    return {**files, **stores, "validated/": _validated(), "control.py": _control()}


def _kinds(data: bytes, name: str) -> st.SearchStrategy[bytes | str]:
    """What the file holds instead."""
    other = st.sampled_from((FIFO, DIRECTORY, ENDLESS, LOOP))
    if name.endswith(".yaml"):
        whole: st.SearchStrategy[Any] = mutations.yaml_documents(data)
    elif name.endswith(".json"):
        whole = mutations.json_documents(data)
    elif name.endswith(".gz"):
        whole = mutations.packed(data)
    else:
        whole = mutations.damaged(data)
    return st.integers(0, 29).flatmap(lambda n: other if n == 29 else whole)


@st.composite
def _file(draw: st.DrawFn, name: str) -> Case:
    words = shlex.split(draw(st.sampled_from(READ_BY[name])).replace("{}", name))
    files = needed(words)
    if "iperf3-good.json" in words:
        files["iperf3-good.json"] = content("iperf3.json")
    if "recorded" in words:
        files |= RECORDED
    return Case(name, tuple(words), {**files, name: draw(_kinds(content(name), name))})


@st.composite
def _store(draw: st.DrawFn, name: str) -> Case:
    """A result directory with a damaged file, or a damaged row of its database."""
    lines = [*OF_RESULTS, *([RESUMED] if name == RESULTS else [])]
    files: dict[str, bytes | str] = dict(made()[name])
    database = next(path for path in files if path.endswith("results.sqlite"))
    words = shlex.split(draw(st.sampled_from(lines)).replace("{}", str(Path(database).parent)))
    if draw(st.integers(0, 3)):
        files[database] = draw(_rows(name))
    else:
        path = draw(st.sampled_from(sorted(files)))
        data = files[path]
        files[path] = draw(st.one_of(mutations.damaged(data), mutations.damaged(data), st.sampled_from((FIFO, DIRECTORY, ENDLESS, LOOP))))  # type: ignore[arg-type]
    if draw(st.integers(0, 9)) == 9:
        del files[draw(st.sampled_from(sorted(files)))]
    return Case(f"{name}/", tuple(words), files)


@cache
def _tables(name: str) -> list[tuple[str, int, str, Any]]:
    """Table, row, column and value of everything in the database of a result directory."""
    files = made()[name]
    data = next(data for path, data in files.items() if path.endswith("results.sqlite"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.sqlite")
        path.write_bytes(data)
        base = sqlite3.connect(path)
        found = []
        for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            try:
                cursor = base.execute(f"SELECT rowid, * FROM {table} LIMIT 2")
            except sqlite3.OperationalError:  # a table WITHOUT ROWID
                continue
            columns = [c[0] for c in cursor.description]
            found += [(table, row[0], column, value) for row in cursor.fetchall() for column, value in zip(columns[1:], row[1:], strict=True)]
        base.close()
    return found


STATEMENTS = (
    "DROP TABLE trials",
    "DROP TABLE manifests",
    "DELETE FROM trials WHERE rowid = 1",
    "DELETE FROM manifests",
    "UPDATE trials SET address = 'other' WHERE rowid = 1",
    "UPDATE trials SET queues = zeroblob(1000)",
    "UPDATE trials SET trial = CAST(x'ff' AS text)",
    "UPDATE manifests SET document = CAST(x'ff' AS text)",
    "ALTER TABLE trials RENAME COLUMN queues TO q",
    "PRAGMA user_version = 77",
    "PRAGMA user_version = -1",
    "PRAGMA application_id = 1",
)
"""What somebody else's program may do to a database."""


@st.composite
def _rows(draw: st.DrawFn, name: str) -> bytes:
    """The database after one of the statements, or with one value of one row mutated: JSON as JSON, anything else by type."""
    table, row, column, value = draw(st.sampled_from(_tables(name)))
    if isinstance(value, str) and value[:1] in "{[":
        new: Any = draw(mutations.mutated(json.loads(value)).map(json.dumps))
    elif isinstance(value, bytes):
        new = draw(mutations.damaged(value))
    else:
        new = draw(st.one_of(values.texts(), st.sampled_from((None, 0, -1, 2**62, b"\xff", 1.5))))
    data = next(data for path, data in made()[name].items() if path.endswith("results.sqlite"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.sqlite")
        path.write_bytes(data)
        base = sqlite3.connect(path, isolation_level=None)
        try:
            if draw(st.integers(0, 3)) == 3:
                base.execute(draw(st.sampled_from(STATEMENTS)))
            else:
                base.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, row))
        except (sqlite3.Error, UnicodeEncodeError):
            base.execute(f"DROP TABLE {table}")
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        base.close()
        return path.read_bytes()


@st.composite
def _validated(draw: st.DrawFn) -> Case:
    """A validation's directory with a damaged file, continued and explained."""
    files: dict[str, bytes | str] = dict(made()["validated"])
    path = draw(st.sampled_from(sorted(path for path in files if not path.endswith(("png", "svg")))))
    data = files[path]
    files[path] = draw(st.one_of(mutations.damaged(data), st.sampled_from((FIFO, DIRECTORY))))  # type: ignore[arg-type]
    more = draw(st.sampled_from((("--explain", "c000"), ("--explain", "r000"), ("--seeds", "2"), ("--against", "validated"), ("--worst", "0"))))
    words = ("validate", "--engine", "model", "--engine", "mock", "--random", "2", "--jobs", "1", "--cca", "cubic", "--out", "validated", *more)
    return Case("validated/", words, files)


BODIES = (
    "import sys; sys.exit(0)",
    "raise SystemExit",
    "raise GeneratorExit",
    "raise MemoryError",
    "1/0",
    "return 1e400",
    "return float('nan')",
    "return 'x'",
    "return -1",
    "return 10**30",
    "return None",
    "window.cwnd = -1",
    "window.cwnd = 10**30",
    "window.cwnd = float('nan')",
    "window.cwnd = 'x'",
    "window.ssthresh = None",
    "del window",
    "self.on_ack(sample, window)",
    "raise Exception('[/x]\\nmore')",
    "raise Exception('\\x1b[31m')",
    "raise Exception('x' * 100000)",
    "window.nosuch",
    "sample.rtt_us = 3",
    "window.cwnd = 0",
    "import os; os.kill(os.getpid(), 0)",
    "raise BaseException('x')",
    "window.pacing_rate = -1",
    "raise StopIteration",
    "window.additive_increase(0, 0)",
    "window.additive_increase(-1, 1)",
    "window.slow_start(-5)",
    "assert False",
)
TOPS = (
    "import sys; sys.exit(0)",
    "raise SystemExit(0)",
    "1/0",
    "import nosuch",
    "def",
    "\0",
    "\t x",
    "Mine = 5",
    "from tcpscape import *",
    "raise BaseException",
    "x = '\udcff'",
    "exit()",
    "quit(1)",
    "# -*- coding: nosuch -*-",
    "raise Exception('a\\nb')",
    "(" * 300,
)
METHODS = (
    "on_ack(self, sample, window)",
    "ssthresh(self, sample, window)",
    "__init__(self)",
    "on_event(self, event, window)",
    "on_ack(self)",
    "ssthresh(self, *args)",
    "on_loss(self, sample, window)",
    "__init__(self, x)",
)


@st.composite
def _control(draw: st.DrawFn) -> Case:
    """A user's control that ends the program, returns nonsense or is not there."""
    source = CONTROL.decode()
    match draw(st.sampled_from(("body", "body", "body", "top", "bottom", "damage", "kind"))):
        case "body":
            source += f"\n    def {draw(st.sampled_from(METHODS))}:\n        {draw(st.sampled_from(BODIES))}\n"
        case "top":
            source = f"{draw(st.sampled_from(TOPS))}\n{source}"
        case "bottom":
            source += f"\n{draw(st.sampled_from(TOPS))}\n"
        case "damage":
            source = ""
        case _:
            pass
    data: bytes | str = source.encode("utf-8", "surrogateescape") or draw(mutations.damaged(CONTROL))
    if draw(st.integers(0, 29)) == 29:
        data = draw(st.sampled_from((FIFO, DIRECTORY, ENDLESS, LOOP)))
    label = draw(
        st.sampled_from(
            (
                "mine.py:Mine",
                "mine.py:Mine",
                "mine.py:Mine",
                "mine.py:Mine",
                "mine.py:Nosuch",
                "mine.py:",
                "mine.py",
                "mine.py:Mine:x=1",
                "mine.py:Control",
                "mine.py:__name__",
                "./mine.py:Mine",
                "mine.py:Mine,cubic",
            )
        )
    )
    words = (
        "run",
        "--forward",
        "netem delay 5ms loss 2%",
        "--bottleneck",
        "tbf rate 5mbit burst 6056 limit 15000",
        "--reverse",
        "netem delay 5ms",
        "--duration",
        "200ms",
        "--seeds",
        "1",
        f"--cca={label}",
    )
    more = draw(st.sampled_from(((), (), ("--check", "goodput > 1e9"), ("--json",))))
    return Case("control.py", (*words, *more), {"mine.py": data})
