"""The recipes of CONTRIBUTING.md for metrics, studies, measures and file formats, carried out in a copy of the package: only the files they name change."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tcpscape

STUDY = """\
name: probe
title: "A study that a test adds"
source: "tests/test_recipes.py"
about: "Two conditions on the mock engine."
conditions: {rtt: 50ms, duration: 2s}
engines: [mock]
axes: {jitter: [0ms, 8ms]}
cca: [cubic]
seeds: 4
published: [probe.csv]
claims:
  - {text: "Three quarters of the runs carry something", work: tcpscape, measure: lower_quartile, at: {jitter: 8ms}, low: 0.001}
"""
NUMBERS = "# A number that a test adds\njitter,cca,value,unit,source\n0ms,cubic,5,Mbit/s,test\n"
MEASURE = '''

def lower_quartile(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """First quartile of the runs."""
    return stats.quantile(cell.values(claim.metric), 0.25, metrics.find(claim.metric).unit)
'''
METRIC = '''

def data_segments(trial: Trial) -> float:
    """Segments with data that were sent."""
    return _sum(f.data_segs_out for f in trial.flows)
'''
FORMAT = '''"""Rows as JSON, a line each."""


def write(rows):
    """The rows."""
    return rows.write_ndjson().encode()
'''


def add_line(file: Path, before: str, line: str) -> None:
    """Puts a line into a registry, in front of the first one that begins with `before`."""
    text = file.read_text("utf-8")
    indent = text[: text.index(before)].rpartition("\n")[2]
    file.write_text(text.replace(before, f"{line}\n{indent}{before}", 1), "utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package with a further metric, study, measure and format; runs its command line."""
    home = tmp_path_factory.mktemp("copy")
    package = home / "tcpscape"
    shutil.copytree(Path(tcpscape.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    with open(package / "metrics" / "flows.py", "a", encoding="utf-8") as f:
        f.write(METRIC)
    line = 'Metric("data_segments", "segments", "segments with data sent", flows.data_segments, "neither"),'
    add_line(package / "metrics" / "registry.py", 'Metric("spurious"', line)
    (package / "studies" / "probe.yaml").write_text(STUDY, "utf-8")
    (package / "studies" / "data" / "probe.csv").write_text(NUMBERS, "utf-8")
    measures = package / "studies" / "measures"
    with open(measures / "spread.py", "a", encoding="utf-8") as f:
        f.write(MEASURE)
    add_line(measures / "__init__.py", '"span": ', '"lower_quartile": CellMeasure(spread.lower_quartile),')
    (package / "interchange" / "lines.py").write_text(FORMAT, "utf-8")
    registry = package / "interchange" / "__init__.py"
    add_line(registry, "from tcpscape.interchange import ", "from tcpscape.interchange import lines")
    add_line(registry, 'Format("mahimahi"', 'Format("lines", "rows as JSON, a line each", (".ndjson",), write_rows=lines.write),')

    def run(*args: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(home), "COLUMNS": "200"}
        done = subprocess.run([sys.executable, "-m", "tcpscape", *args], cwd=home, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return home, run


def test_a_study_is_one_yaml_and_a_measure_one_function(copy):
    home, run = copy
    assert "A study that a test adds" in run("study", "list")
    shown = run("study", "run", "probe", "--no-report")
    assert "yes" in next(line for line in shown.splitlines() if "Three quarters of the runs" in line)
    with open(home / "out" / "probe" / "probe.csv", newline="", encoding="utf-8") as f:
        assert [row["published"] for row in csv.DictReader(f)] == ["5.0", ""]


def test_a_metric_is_one_function_and_one_line(copy):
    _, run = copy
    words = ("--rtt", "50ms", "--axis", "jitter=0,8ms", "--cca", "cubic", "--seeds", "2", "--duration", "2s")
    lines = run("sweep", *words, "--metric", "data_segments", "--check", "data_segments:cubic.mean > 1000").splitlines()
    assert sum("data_segments segments: median" in line for line in lines) == 1
    assert sum(line.startswith("holds: data_segments:cubic.mean > 1000") for line in lines) == 2


def test_a_format_is_one_file_and_one_line(copy):
    home, run = copy
    run("run", "--forward", "netem delay 25ms", "--engine", "mock", "--seeds", "2", "--duration", "2s", "--out", "r")
    run("export", "r", "--to", "lines", "--out", "rows.ndjson")
    rows = [json.loads(line) for line in (home / "rows.ndjson").read_text("utf-8").splitlines()]
    assert [row["seed"] for row in rows] == [0, 1]
