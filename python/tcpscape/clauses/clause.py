"""The catalogue of clauses: one YAML file each, with the cells on which it is judged, the criteria, and what no cell can show.

The parts of a clause are campaigns. Their paths say only what differs from :data:`PATH`: one bottleneck behind a delay. `${control}` is the control
that is evaluated and each reference in turn; `sample` draws the paths, evenly over the logarithms of rate, RTT and buffer.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import Field, model_validator

from tcpscape import metrics
from tcpscape.campaign import axes
from tcpscape.campaign.campaign import Axes, Campaign, Group
from tcpscape.errors import StudyError, instead, refuse, shown
from tcpscape.reading import packaged
from tcpscape.scenario import files
from tcpscape.scenario.fields import Rate, Spec, Time, validate

Level = Literal["MUST", "SHOULD", "consider", "by hand"]
"""How strongly the RFC asks; `by hand`: what no run shows."""
CONTROL = "control"
"""The axis of the control and its references."""
PATH: Mapping[str, Any] = {
    "forward": [{"at": "router", "delay": "${oneway}"}],
    "bottleneck": {"rate": "${rate}", "buffer": "${buffer}"},
    "reverse": [{"at": "router", "delay": "${oneway}"}],
    "flows": [{"cca": "${control}"}],
    "duration": "${time}",
    "kernel": {"profile": "6.1", "tcp_rmem_max": "256MiB", "tcp_wmem_max": "256MiB"},
}
"""The path of a part where it says nothing else; sockets' buffers never limit it."""
DRAWN = ("rate", "rtt", "buffer", "time")
"""The axes that a sample draws; `time`: how long a trial lasts."""
FRAME_BITS = 12_112
"""Bits of a full Ethernet frame, 1514 bytes."""


@dataclass(frozen=True, slots=True)
class Grid:
    """How much is measured: the cells of each sample, the trials of each cell, and how long a trial may be."""

    name: str
    cells: float
    """Cells of a sample, as a multiple of what the clause says."""
    seeds: int
    """Trials of every cell."""
    more: int
    """Further trials, which alone decide, of a cell that is near a judgement."""
    packets: int
    """Most packets that the bottleneck can carry in a trial."""
    most: int | None = None
    """Cells of each sample, whatever the clause says."""


GRIDS: Mapping[str, Grid] = {grid.name: grid for grid in (Grid("quick", 1, 2, 6, 120_000), Grid("full", 8, 3, 12, 2_500_000))}
"""The grids by name."""


class Sample(Spec):
    """Paths that fill a range evenly: points of a Sobol sequence over the logarithms."""

    cells: int = Field(default=8, ge=1, le=1000)
    """Paths of the quick grid."""
    rate: tuple[Rate, Rate]
    """Lowest and highest rate, bit/s."""
    rtt: tuple[Time, Time]
    """Lowest and highest RTT, ns."""
    buffer: tuple[float, float] = (0.1, 16.0)
    """Lowest and highest buffer, bandwidth-delay products."""
    pipe: int = 10
    """Fewest full packets that link and buffer hold together. 10 is an initial window (RFC 6928); paths that hold less are those of small windows."""
    rounds: int = 150
    """Round trips of a trial."""
    least: Time
    """Shortest trial, ns."""
    most: Time
    """Longest trial, ns."""

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        usual = {"rate": ("100kbit", "1gbit"), "rtt": ("1ms", "1s"), "least": "10s", "most": "60s"}
        return {**usual, **data} if isinstance(data, dict) else data

    def paths(self, grid: Grid) -> dict[str, tuple[str, ...]]:
        """Axis → its values, a path for each place; those with more packets than the grid allows, or with a shorter `pipe`, are passed over."""
        from scipy.stats import qmc

        sampler = qmc.Sobol(d=3, scramble=True, rng=9743)
        ranges = [[math.log(end) for end in ends] for ends in (self.rate, self.rtt, self.buffer)]
        count, rows = grid.most or max(1, round(self.cells * grid.cells)), list[tuple[str, ...]]()
        for point in sampler.random(2**13):
            rate, rtt, buffer = (math.exp(low + (high - low) * float(x)) for x, (low, high) in zip(point, ranges, strict=True))
            time = min(max(self.least, self.rounds * rtt), self.most)
            is_short = (1 + buffer) * rate * rtt / 1e9 < self.pipe * FRAME_BITS
            if rate * time / 1e9 <= grid.packets * FRAME_BITS and not is_short:
                rows.append((_rounded(rate / 1e6, "mbit"), _rounded(rtt / 1e6, "ms"), _rounded(buffer, "bdp"), f"{round(time / 1e9)}s"))
            if len(rows) == count:
                return dict(zip(DRAWN, zip(*rows, strict=True), strict=True))
        refuse("sample", f"the {grid.name} grid allows {grid.packets:,} packets, and few of these paths carry fewer", "lower its rates", StudyError)


def _rounded(value: float, unit: str) -> str:
    """Three digits and the unit: `1.23mbit`."""
    return f"{float(f'{value:.3g}'):.10g}{unit}"


class Part(Spec):
    """Cells of a clause: the paths, and what runs on them."""

    name: str = "main"
    scenario: dict[str, Any] = Field(default_factory=dict)
    """Fields of the scenario that differ from :data:`PATH`."""
    sample: Sample | None = None
    """The paths; without it, `axes` say all."""
    axes: Axes = Field(default_factory=dict)
    """Crossed with the paths and the controls."""
    quick: Axes = Field(default_factory=dict)
    """Axes of which the quick grid has these values alone."""
    zip: tuple[Group, ...] = ()
    """Groups whose axes move together."""
    derive: dict[str, str] = Field(default_factory=dict)
    """Name → arithmetic over axes."""

    def campaign(self, controls: Sequence[str], grid: Grid, engine: str, needed: Sequence[str]) -> Campaign:
        """What to run: this part under each of the controls; `needed`: metrics that will be asked for."""
        scenario = {**PATH, **self.scenario}
        text = f"{scenario} {list(self.derive.values())}"
        derive = {**({"oneway": "rtt / 2"} if "${oneway}" in text else {}), **self.derive}
        used = {*re.findall(r"\$\{(\w+)\}", text), *re.findall(r"\b[a-z_]\w*\b", " ".join(derive.values()))}
        drawn = {axis: values for axis, values in (self.sample.paths(grid) if self.sample else {}).items() if axis in used}
        levels = {**self.axes, **(self.quick if grid.name == "quick" else {})}
        levels |= {CONTROL: tuple(dict.fromkeys(controls))} if CONTROL in used else {}
        fields = {"name": self.name, "scenario": scenario, "axes": levels, "zip": [*([drawn] if drawn else []), *self.zip], "derive": derive}
        return Campaign.of({**fields, "engines": [engine], "seeds": grid.seeds, "metrics": list(needed)}, self.name)


class Criterion(Spec):
    """What is judged on each cell: a value of the control beside the same value of each reference."""

    words: str
    """What holds where nothing is wrong, as a sentence."""
    measures: dict[str, str]
    """Name → a metric, `alone/goodput:group0` of another part: the cell at the same values of its axes."""
    value: str
    """Arithmetic over the measures, and over `rate` (Mbit/s), `rtt` (ms) and other axes that are numbers."""
    what: str
    """The value in a few words, for tables and figures."""
    unit: str = ""
    """Unit of the value; `%` prints a fraction so."""
    better: Literal["less", "more"] = "less"
    """Which of two values is preferable."""
    margin: float = Field(ge=0)
    """Least difference that matters, in the value's unit."""
    factor: float = Field(default=1.0, ge=1)
    """Least ratio that matters as well: 1.5 ignores what is less than half as much again."""
    bound: float | None = None
    """What the RFC's MUST asks for, where a number says it: a value beyond it, where no reference is beyond, fails."""
    where: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Only cells at these values: axis → values."""

    @property
    def part(self) -> str:
        """The part whose cells it judges: that of the first measure."""
        return next(iter(self.measures.values())).rpartition("/")[0]

    @model_validator(mode="after")
    def _sensible(self) -> Criterion:
        for text in self.measures.values():
            metrics.find(text.rpartition("/")[2])
        self.names()
        return self

    def names(self) -> set[str]:
        """The names in the value's arithmetic. :raises TcpscapeError: it is more than arithmetic."""
        return {node.id for node in ast.walk(_tree(self.value)) if isinstance(node, ast.Name)} - set(FUNCTIONS)


FUNCTIONS = ("harm", "delay_harm", "log2", "least", "most")
"""Functions of a criterion's arithmetic; their meanings are in `judging`."""
_ALLOWED = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.USub, ast.Name, ast.Load, ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Call)


@cache
def _tree(expression: str) -> ast.Expression:
    """The arithmetic as a tree. :raises TcpscapeError: one line, where it is none."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError:
        refuse("value", f"{shown(expression)} is not arithmetic", "write for example 'queue / rtt'", StudyError)
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not all(isinstance(node, _ALLOWED) for node in ast.walk(tree)) or any(not (isinstance(f, ast.Name) and f.id in FUNCTIONS) for f in calls):
        refuse("value", f"{shown(expression)} is more than + - * / and {', '.join(FUNCTIONS)}", "write for example 'queue / rtt'", StudyError)
    return tree


_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def evaluate(expression: str, known: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:
    """What the arithmetic of a criterion comes to; `known` are numbers or arrays by name, `functions` those of :data:`FUNCTIONS`."""

    def of(node: ast.expr) -> Any:
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.UnaryOp):
            return -of(node.operand)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return functions[node.func.id](*map(of, node.args))
        return known[node.id] if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else math.nan

    return of(_tree(expression).body)


class Clause(Spec):
    """A clause of RFC 9743."""

    name: str
    section: str
    """Its number in the RFC."""
    title: str
    level: Level
    about: str
    """What the clause asks for, and what the cells show of it."""
    judgement: str = ""
    """The judgement in words."""
    parts: tuple[Part, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    missing: tuple[str, ...] = ()
    """What is not shown, with what is missing for it."""

    @model_validator(mode="after")
    def _parts_of_criteria(self) -> Clause:
        known = [part.name for part in self.parts]
        for criterion in self.criteria:
            for text in criterion.measures.values():
                if (part := text.rpartition("/")[0] or known[0]) not in known:
                    refuse("criteria", f"{shown(criterion.what)} asks for part {shown(part)}", f"choose {', '.join(known)}", StudyError)
        return self

    @property
    def order(self) -> tuple[int, ...]:
        """Its place in the RFC."""
        return tuple(int(number) for number in self.section.split(",")[0].split("."))

    def campaigns(self, controls: Sequence[str], grid: Grid, engine: str) -> dict[str, Campaign]:
        """Part → what to run."""
        needed: dict[str, list[str]] = {part.name: [] for part in self.parts}
        for criterion in self.criteria:
            for text in criterion.measures.values():
                part, _, metric = text.rpartition("/")
                needed[part or self.parts[0].name].append(metric)
        return {part.name: part.campaign(controls, grid, engine, list(dict.fromkeys(needed[part.name]))) for part in self.parts}


def names() -> list[str]:
    """The names of all clauses, in the order of the RFC."""
    return [clause.name for clause in every()]


@cache
def every() -> tuple[Clause, ...]:
    """All clauses, in the order of the RFC."""
    return tuple(sorted((_read(name) for name in packaged.names("clauses", ".yaml")), key=lambda clause: clause.order))


def choose(chosen: Sequence[str]) -> tuple[Clause, ...]:
    """The clauses with these names or sections; all without any. :raises StudyError: for one that there is not."""
    by_word = {word: clause for clause in every() for word in (clause.name, *re.split(r",\s*", clause.section))}
    for word in chosen:
        if word not in by_word:
            refuse("clause", f"{shown(word)} is unknown", instead(word, [c.name for c in every()]), StudyError)
    return tuple(clause for clause in every() if not chosen or any(by_word[word] is clause for word in chosen))


def _read(name: str) -> Clause:
    clause: Clause = validate(Clause, files.read_yaml(packaged.text(f"clauses/{name}.yaml"), name), name)
    return clause


def number_of(text: str) -> float:
    """An axis' value in its unit (Mbit/s, ms, bandwidth-delay products); NaN of a word."""
    if text.endswith("bdp"):
        return float(text.removesuffix("bdp"))
    value = axes.read(text)
    return math.nan if value.is_word else value.number
