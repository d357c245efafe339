"""The recipes of CONTRIBUTING.md for what is written in Python, carried out in a copy of the package: only the files they name change.

The recipes for a congestion control and a queue need a compiler and are not here.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tcpscape
from patience import PATIENCE_S

STUDY = """\
name: probe
title: "A study that a test adds"
source: "tests/docs/test_recipes.py"
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
CLAUSE = """\
name: probe
section: "9.9"
title: A clause that a test adds
level: consider
about: One path.
parts:
  - scenario: {forward: [{at: router, delay: 10ms}], reverse: [], bottleneck: {rate: "${rate}"}, duration: 2s}
    axes: {rate: [5mbit, 10mbit]}
criteria:
  - {what: use of the link, words: It uses the link., measures: {carried: goodput}, value: carried / rate, unit: "%", better: more, margin: 0.1}
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
STATISTIC = 'Statistic("range", lambda values, unit: Estimate(max(values) - min(values), math.nan, math.nan, len(values), unit)),'
ENGINE = '''"""An engine whose flows have 1 Mbit/s, whatever the path."""

from tcpscape.engines.base import Engine
from tcpscape.trial import Capture
from tcpscape.trial import Cwnd, FlowResult, Rtt, Trial


class Constant(Engine):
    """1 Mbit/s and an RTT of 50 ms for each flow."""

    name = "constant"
    about = "1 Mbit/s for each flow"
    version = "constant-1"

    def check(self, scenario):
        self.refuse_python_controls(scenario)

    def run(self, scenario, seeds, *, threads=1, capture=Capture()):
        self.check(scenario)
        return [self._trial(scenario, seed) for seed in seeds]

    def _trial(self, scenario, seed):
        seconds, rtt, cwnd = scenario.duration / 1e9, Rtt(*[50.0] * 6), Cwnd(10.0, 10.0)
        flows = [FlowResult(f.cca, 1.0, seconds, 0, None, rtt, cwnd, {}) for f in scenario.flows for _ in range(f.count)]
        return Trial(scenario.name, scenario.cca, self.address(scenario, seed), seed, self.name, self.version, seconds, tuple(flows))
'''
FIGURE = '''"""One mark for each cell."""

from tcpscape.plots import base, style
from tcpscape.plots.base import Context


def applies(outcome):
    """Whether there is a cell."""
    return bool(outcome.cells)


def draw(outcome, context=Context()):
    """The campaign's metric of each cell."""
    fig, axes = style.panels(1)
    axes[0].plot([cell.mean(outcome.campaign.metric).value for cell in outcome.cells], "o", label="cells")
    axes[0].set_ylabel(base.metric_label(outcome.campaign.metric))
    style.finish(fig, axes, (base.title(outcome, context), base.note(outcome, context, "mean")), outcome.caveats)
    return fig
'''
COMMAND = '''"""`tcpscape hops`: the number of queues of a scenario's path."""

from typing import Annotated

from tcpscape.cli.command import Argument, command


@command(examples=("hops baseline", "hops lossy-dsl"))
def hops(name: Annotated[str, Argument("A gallery name or a file.")]) -> None:
    """The number of queues that data packets pass."""
    from tcpscape.scenario import files

    print(len(files.load(name).queues("forward", "bottleneck")))
'''
OF_PATH = 'corrupt: Annotated[Levels, About("Corruption", "Share of packets damaged in each direction: 0.1%.", "0.1%", ends=("0.01%", "20%"))]'
OF_FLOW = 'nodelay: Annotated[Levels, About("No delay", "Whether segments that are not full are sent at once.", "no", "yes")]'
QUESTION = '''"""The question `length`: how long a trial is."""

from typing import Any, ClassVar

from typing_extensions import TypedDict

from tcpscape.web.questions import Question
from tcpscape.web.stream import Block


class LengthValues(TypedDict):
    """The values of the block `length`."""

    text: str


class Length(Question):
    """How long a trial is."""

    kind: ClassVar[str] = "length"
    blocks: ClassVar[dict[str, Any]] = {"length": LengthValues}

    def answer(self, state, work, opened):
        work.send(Block("length", LengthValues(text=state.duration or "10s")))
'''


def add_line(file: Path, before: str, line: str) -> None:
    """Puts a line into a registry, in front of the first one that begins with `before`."""
    text = file.read_text("utf-8")
    indent = text[: text.index(before)].rpartition("\n")[2]
    file.write_text(text.replace(before, f"{line}\n{indent}{before}", 1), "utf-8")


LINES = {
    "studies": "study list",
    "study": "study run probe --no-report --verbose",
    "clause": "evaluate cubic --against reno --clause probe --no-report",
    "help": "--help",
    "command": "hops starlink-baseline",
    "metric": "sweep --rtt 50ms --axis jitter=0,8ms --cca cubic --seeds 2 --duration 2s --metric data_segments --check 'data_segments:cubic.mean > 1000' --verbose",
    "statistic": "sweep --rtt 50ms --loss 1% --axis jitter=4,8ms --cca cubic --seeds 3 --duration 2s --check 'goodput:cubic.range > 0' --verbose",
    "engine": "run --forward 'netem delay 25ms' --engine constant --seeds 1 --duration 2s --json",
    "rows": "run --forward 'netem delay 25ms' --engine mock --seeds 2 --duration 2s --out r",
    "format": "export r --to lines --out rows.ndjson",
    **{f"{command} help": f"{command} --help" for command in ("run", "sweep", "advise", "cliff")},
    "calm": "run --rtt 50ms --rate 10mbit --seeds 1 --duration 3s --json",
    "damaged": "run --rtt 50ms --rate 10mbit --corrupt 2% --seeds 1 --duration 3s --json",
    "flow": "run --rtt 50ms --engine mock --nodelay no --seeds 1 --duration 2s",
    "cells": "sweep --rtt 50ms --axis jitter=0,8ms --engine mock --seeds 2 --duration 2s --out s",
}
"""Command lines of the extended package, in the order in which they run."""
PROGRAM = """
import contextlib, io, json, shlex, sys
import tcpscape
from tcpscape.cli.main import call
printed = {}
for name, line in json.loads(sys.argv[1]).items():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            status = call(shlex.split(line))
        except SystemExit as end:
            status = end.code or 0
    assert status == 0, line
    printed[name] = out.getvalue()
tcpscape.plot(tcpscape.load("s").outcomes[0], "marks", file="marks.svg")
from tcpscape.web.questions import KINDS
from tcpscape.web.state import State
blocks = []
KINDS["length"]().answer(State(), type("Work", (), {"send": lambda self, block: blocks.append(block)})(), None)
printed["length"] = blocks[0].values["text"]
printed |= {f"{name} doc": getattr(tcpscape, name).__doc__ for name in ("run", "sweep", "advise", "cliff")}
print(json.dumps(printed))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package that every recipe has extended, and what its commands print, all in one process."""
    home = tmp_path_factory.mktemp("copy")
    package = home / "tcpscape"
    shutil.copytree(Path(tcpscape.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    add_measurements(package)
    add_modules(package)
    words, environment = [sys.executable, "-c", PROGRAM, json.dumps(LINES)], {**os.environ, "PYTHONPATH": str(home), "COLUMNS": "200"}
    done = subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return home, json.loads(done.stdout)


def add_measurements(package: Path) -> None:
    """A metric, a statistic, a study with a published number, and a measure."""
    with open(package / "metrics" / "flows.py", "a", encoding="utf-8") as f:
        f.write(METRIC)
    line = 'Metric("data_segments", "segments", "segments with data sent", flows.data_segments, "neither"),'
    add_line(package / "metrics" / "__init__.py", 'Metric("spurious"', line)
    add_line(package / "stats" / "statistic.py", 'Statistic("cv"', STATISTIC)
    (package / "studies" / "probe.yaml").write_text(STUDY, "utf-8")
    (package / "clauses" / "probe.yaml").write_text(CLAUSE, "utf-8")
    (package / "studies" / "data" / "probe.csv").write_text(NUMBERS, "utf-8")
    measures = package / "studies" / "measures"
    with open(measures / "cells.py", "a", encoding="utf-8") as f:
        f.write(MEASURE)
    add_line(measures / "__init__.py", '"span": ', '"lower_quartile": CellMeasure(cells.lower_quartile),')


def add_modules(package: Path) -> None:
    """A file format, an engine, a figure and a command: a module and a registry line each."""
    (package / "interchange" / "lines.py").write_text(FORMAT, "utf-8")
    registry = package / "interchange" / "__init__.py"
    add_line(registry, "from tcpscape.interchange import ", "from tcpscape.interchange import lines")
    add_line(registry, 'Format("mahimahi"', 'Format("lines", "rows as JSON, a line each", (".ndjson",), write_rows=lines.write),')
    (package / "engines" / "constant.py").write_text(ENGINE, "utf-8")
    registry = package / "engines" / "__init__.py"
    add_line(registry, "from tcpscape.engines.mock import ", "from tcpscape.engines.constant import Constant")
    registry.write_text(registry.read_text("utf-8").replace('"mock": Mock, ', '"mock": Mock, "constant": Constant, '), "utf-8")
    (package / "plots" / "marks.py").write_text(FIGURE, "utf-8")
    registry = package / "plots" / "__init__.py"
    add_line(registry, "from tcpscape.plots.base import ", "from tcpscape.plots import marks")
    add_line(registry, 'FigureKind("strip"', 'FigureKind("marks", "one mark for each cell", marks.applies, marks.draw),')
    (package / "cli" / "hops.py").write_text(COMMAND, "utf-8")
    add_line(package / "scenario" / "vocabulary.py", "rate: Annotated[Levels", OF_PATH)
    add_line(package / "scenario" / "vocabulary.py", "player: Annotated[Fields", OF_FLOW)
    add_line(package / "scenario" / "options.py", "forward_at: Node", "corrupt: Percent = 0.0")
    (package / "web" / "questions" / "length.py").write_text(QUESTION, "utf-8")
    add_line(package / "web" / "questions" / "__init__.py", '"answer": ', '"length": "length.Length",')
    add_line(package / "cli" / "overview.py", '"doctor": ', '"hops": ("hops", "The number of queues of a path."),')


def test_a_study_is_one_yaml_and_a_measure_one_function(copy):
    home, printed = copy
    assert "A study that a test adds" in printed["studies"]
    assert "yes" in next(line for line in printed["study"].splitlines() if "Three quarters of the runs" in line)
    with open(home / "out" / "probe" / "probe.csv", newline="", encoding="utf-8") as f:
        assert [row["published"] for row in csv.DictReader(f)] == ["5.0", ""]


def test_a_clause_is_one_yaml(copy):
    (row,) = [line for line in copy[1]["clause"].splitlines() if line.startswith("9.9")]
    assert "A clause that a test adds" in row
    assert "no worse" in row
    assert "0/2" in row


def test_a_metric_is_one_function_and_one_line(copy):
    lines = copy[1]["metric"].splitlines()
    assert sum("data_segments segments: median" in line for line in lines) == 1
    assert sum(line.startswith("holds: data_segments:cubic.mean > 1000") for line in lines) == 2


def test_a_format_is_one_file_and_one_line(copy):
    rows = [json.loads(line) for line in (copy[0] / "rows.ndjson").read_text("utf-8").splitlines()]
    assert [row["seed"] for row in rows] == [0, 1]


def test_a_statistic_is_one_line(copy):
    assert sum(line.startswith("holds: goodput:cubic.range > 0") for line in copy[1]["statistic"].splitlines()) == 2


def test_an_engine_is_one_file_and_one_line(copy):
    trial = json.loads(copy[1]["engine"])
    assert (trial["engine"], trial["version"], trial["goodput_mbps"]) == ("constant", "constant-1", 1.0)


def test_a_figure_is_one_file_and_one_line(copy):
    assert (copy[0] / "marks.svg").read_text("utf-8").startswith("<?xml")


def test_a_command_is_one_file_and_one_line(copy):
    assert "The number of queues of a path." in copy[1]["help"]
    assert copy[1]["command"] == "1\n"


@pytest.mark.parametrize("command", ["run", "sweep", "advise", "cliff"])
def test_an_option_is_its_declaration(copy, command):
    text = " ".join(copy[1][f"{command} help"].split())
    assert "Share of packets damaged in each direction: 0.1%." in text
    assert "Whether segments that are not full are sent at once." in text
    assert ":param corrupt: share of packets damaged in each direction: 0.1%." in copy[1][f"{command} doc"]


def test_an_option_of_a_path_that_netem_has_is_a_field_of_conditions(copy):
    calm, damaged = (json.loads(copy[1][name]) for name in ("calm", "damaged"))
    assert damaged["goodput_mbps"] < 0.8 * calm["goodput_mbps"]


def test_a_question_is_one_file_and_one_line(copy):
    assert copy[1]["length"] == "10s"
