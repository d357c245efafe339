"""Files that are no files, at every place of the command line that names one: one line and status 2, within seconds."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

MOCK = ("--engine", "mock")
COMMANDS = (
    ("run", "{}.yaml", *MOCK), ("run", "{}.toml", *MOCK), ("run", "trace.yaml", *MOCK), ("run", "cca.yaml", "--seeds", "1"), ("run", "--cca", "{}.py:Mine", "--rtt", "9ms"), ("sweep", "{}.yaml", *MOCK),
    ("scenario", "show", "{}.yaml"), ("export", "{}.yaml", "--to", "tc"), ("export", "{}.csv", "--to", "iperf3"), ("compare", "{}.csv", "{}.csv"), ("compare", "{}.json", "{}.json"),
    ("compare", "{}.flent.gz", "{}.flent.gz"), ("compare", "{}.parquet", "{}.parquet"), ("advise", "--from", "{}.txt"), ("advise", "--from", "{}.json"), ("advise", "--from", "{}.flent"),
    ("advise", "--from", "{}.yaml"), ("validate", "--conditions", "{}.csv"), ("validate", "--conditions", "{}.yaml"), ("validate", "--against", "{}_results.csv"),
    ("report", "{}.d"), ("plot", "{}.d", "--what", "bars"), ("export", "{}.d", "--to", "csv"), ("compare", "{}.d", "{}.d"), ("run", "baseline", "--engine", "mock", "--out", "{}.d"),
    ("kernel", "build", "--source", "{}.tar.xz", "--name", "x"),
)  # fmt: skip
"""Command lines; `{}` stands for the name of a file, `{}.d` for a directory whose database is that file."""
ENDINGS = (".yaml", ".toml", ".py", ".csv", ".json", ".flent", ".flent.gz", ".parquet", ".txt", ".tar.xz", ".up", "_results.csv", "_conditions.csv")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def directory(path: Path) -> None:
    path.mkdir()


def loop(path: Path) -> None:
    path.symlink_to(path)


def nowhere(path: Path) -> None:
    path.symlink_to("no/such/file")


def empty(path: Path) -> None:
    path.touch()


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 100)


def utf_16(path: Path) -> None:
    path.write_bytes("name: x\n".encode("utf-16"))


def brackets(path: Path) -> None:
    path.write_bytes(b"[" * 100_000)


def bomb(path: Path) -> None:
    path.write_bytes(gzip.compress(bytes(200_000_000), 1))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    "make", [fifo, endless, directory, loop, nowhere, empty, large, binary, utf_16, brackets, bomb], ids=lambda make: make.__name__
)
def test_a_file_that_is_none_is_one_line(make, command, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    used = next(
        ending
        for ending in (*reversed(ENDINGS), ".d")
        if any(f"{{}}{ending}" in word for word in (*command, "{}.up" * ("trace.yaml" in command), "{}.py" * ("cca.yaml" in command)))
    )
    if used == ".d":
        (tmp_path / "bad.d").mkdir()
        make(tmp_path / "bad.d" / "results.sqlite")
    else:
        make(tmp_path / f"bad{used}")
    if used == "_results.csv":
        (tmp_path / "bad_conditions.csv").write_text("id,cca,rtt_ms\na,cubic,9\n")
    (tmp_path / "trace.yaml").write_text("bottleneck: {trace: bad.up, buffer: 20KB}\n")
    (tmp_path / "cca.yaml").write_text("flows: [{cca: 'bad.py:Mine'}]\n")
    got = cli(*(word.replace("{}", "bad") for word in command))
    if got.status == 0:  # an empty scenario is one of defaults, and an empty place for results is filled
        assert make in (empty, directory, nowhere, loop), got
        return
    assert (got.status, got.out, got.err.count("\n")) == (2, "", 1), got
    assert len(got.err) < 600
    assert "; " in got.err
