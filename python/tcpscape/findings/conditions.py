"""A small language for what a congestion control's states and variables have to do over time.

    when state=PROBE_UP and round>3 expect pacing_gain=1.25
    when entered(DRAIN) expect state=PROBE_DOWN within 3 rounds
    if state=PROBE_RTT expect inflight <= bdp/2 until state!=PROBE_RTT
    reach state=PROBE_UP

`when A expect B` is about every moment of A; with `within`, `for` or `until` it is about the moments at which A begins. A has to occur, `if A` need
not. `reach A` asks for a moment of A, `expect A` that A holds always. Lengths of time are `3 rounds`, `2 rtt` or `200ms`.

An expression has variables of the record (:attr:`tcpscape.trial.Trial.control`), constants of the case (`link`, `rtt`, …), names of states in
capitals, numbers with the units ms, s, us and %, arithmetic, comparisons (`=` or `==`, `in (A, B)`), `and`, `or`, `not`, and functions: `last(x)`
one row before, `entry(x)` when the present state began, `leaving(x)` in the last row of the state before, `begin(A, x)` at the first moment of A,
`ago(x)` when the round trip before began, `peak(x)` and `least(x)` so far, `entered(S)` a state begins, `changed(x)`, `abs`, `min`, `max`, `log2`.
`time` is s since the begin, `since` s and `rounds` round trips in the present state, `before` is the state before it, `lasted` and `lasted_rounds`
how long that was. What is written is never run as Python.
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcpscape.errors import refuse, shown

if TYPE_CHECKING:
    from tcpscape.trial import Trial

Values = Any
"""An array with a value for each row, or a number."""
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "%": 0.01}
_NUMBER = re.compile(r"(?<![\w.])(\d+\.?\d*|\.\d+)(us|ms|s|%)(?!\w)")
_EQUAL = re.compile(r"(?<![<>=!])=(?!=)")
_STATEMENT = re.compile(
    r"^\s*(?:(?P<kind>when|if)\s+(?P<when>.+?)\s+expect|(?P<alone>expect|reach))\s+(?P<expect>.+?)"
    r"(?:\s+(?P<how>within|for)\s+(?P<length>[^\s]+(?:\s*(?:rounds?|rtts?))?)|\s+until\s+(?P<until>.+?))?\s*$"
)
_LENGTH = re.compile(r"^(?P<number>\d+\.?\d*)\s*(?P<unit>rounds?|rtts?|us|ms|s)$")
_COMPARE: Mapping[type[ast.cmpop], Callable[[Values, Values], Values]] = {
    ast.Eq: lambda a, b: np.isclose(a, b, rtol=1e-9, atol=0.0, equal_nan=False) | (np.asarray(a) == np.asarray(b)),
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Values, Values], Values]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
EXAMPLE = "write for example: when state=PROBE_UP expect pacing_gain=1.25"


class Unknown(Exception):
    """A variable or a state that the record does not have; the argument says which."""


class Expression:
    """An expression that was read."""

    def __init__(self, text: str) -> None:
        """:raises ScenarioError: one line, for what is no expression of this language."""
        self.text = text.strip()
        python = _NUMBER.sub(lambda m: repr(float(m[1]) * _UNITS[m[2]]), _EQUAL.sub("==", self.text))
        try:
            self.tree = ast.parse(python, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            refuse("condition", f"{shown(self.text)} is no expression", EXAMPLE)
        self.names = tuple(dict.fromkeys(n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and n.id not in FUNCTIONS))
        """Variables and states that it names."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords):
                refuse("condition", f"{shown(self.text)}: {shown(ast.unparse(node.func))} is no function", f"there are {', '.join(FUNCTIONS)}")
            if not isinstance(node, _ALLOWED) or (isinstance(node, ast.Constant) and not isinstance(node.value, (int, float))):
                refuse("condition", f"{shown(self.text)}: {type(node).__name__} is not part of the language", EXAMPLE)

    def constant(self, values: Mapping[str, float]) -> float:
        """Its value of constants alone. :raises ScenarioError: it names something else."""
        if unknown := [name for name in self.names if name not in values]:
            refuse("condition", f"{shown(self.text)}: no constant {unknown[0]}", f"there are {', '.join(values)}")
        with self._computed():
            value = float(_value(self.tree, _Constants(values)))
            if not math.isfinite(value):
                raise ArithmeticError
        return value

    def of(self, record: Record) -> Values:
        """Its value in each row. :raises Unknown: the record lacks a variable or a state."""
        with np.errstate(all="ignore"), self._computed():
            return _value(self.tree, record)

    @contextlib.contextmanager
    def _computed(self) -> Iterator[None]:
        """Refuses what has no value: a division by zero, a function of other arguments."""
        try:
            yield
        except (TypeError, ValueError, ArithmeticError, AttributeError, IndexError):
            refuse("condition", f"{shown(self.text)} cannot be computed", EXAMPLE)

    def holds(self, record: Record) -> np.ndarray:
        """Whether it holds, in each row."""
        return np.broadcast_to(np.asarray(self.of(record), dtype=bool), (record.rows,))


class Record:
    """The record of one flow's congestion control, and the constants of a case."""

    def __init__(self, trial: Trial, constants: Mapping[str, Any], groups: Mapping[str, Sequence[str]] | None = None, flow: int = 0) -> None:
        """`constants`: values that do not come from the record, a number or one for each time (:class:`Steps`); `groups`: states under one name."""
        frame = trial.control.filter(trial.control["flow"] == flow) if trial.control is not None else None
        columns = {} if frame is None else {name: frame[name].to_numpy() for name in frame.columns if not frame[name].is_nan().all()}
        self.rows = 0 if frame is None else len(frame)
        self.states = tuple(trial.control_states.get("state", ()))
        self.groups = groups or {}
        self.time = columns.get("t_ns", np.zeros(0)) / 1e9
        self.values: dict[str, Values] = {"time": self.time, **columns}
        self.values |= {name: value.at(self.time) if isinstance(value, Steps) else value for name, value in constants.items()}
        state = columns.get("state", np.zeros(self.rows))
        begins = np.r_[True, state[1:] != state[:-1]] if self.rows else np.zeros(0, bool)
        self.entry = np.maximum.accumulate(np.where(begins, np.arange(self.rows), 0)) if self.rows else np.zeros(0, int)
        """Row in which the present state began, of each row."""
        self.round = columns.get("round", np.zeros(self.rows))
        if self.rows:
            left = np.maximum(self.entry - 1, 0)
            start = self.entry[left]  # of the state before
            self.values |= {"since": self.time - self.time[self.entry], "rounds": self.round - self.round[self.entry], "before": state[left]}
            self.values |= {"lasted": self.time[self.entry] - self.time[start], "lasted_rounds": self.round[self.entry] - self.round[start]}

    def lookup(self, name: str) -> Values:
        """A variable, or the number of a state, or those of a group of states. :raises Unknown: there is none."""
        if name in self.values:
            return self.values[name]
        if name in self.states:
            return float(self.states.index(name))
        if name in self.groups and (known := [self.states.index(s) for s in self.groups[name] if s in self.states]):
            return tuple(map(float, known))
        raise Unknown(f"it has no {'state' if name.isupper() else 'variable'} {name}")

    def shown(self, row: int, names: Sequence[str]) -> dict[str, float | str]:
        """The state and the variables of these names in a row."""
        values: dict[str, float | str] = {}
        for name in dict.fromkeys(("state", *names)):
            value = self.values.get(name)
            if isinstance(value, np.ndarray) and len(value):
                number = float(value[row])
                is_state = name in ("state", "before") and self.states and not np.isnan(number)
                values[name] = self.states[int(number)] if is_state else number
        return values


class _Constants:
    """Constants where a record would be: an expression of them is a number."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self.lookup = values.__getitem__


class Steps(NamedTuple):
    """A constant that changes: times, s, and the value from each on."""

    times: Sequence[float]
    values: Sequence[float]

    def at(self, time: np.ndarray) -> np.ndarray:
        """The value at each time."""
        return np.asarray(self.values)[np.maximum(np.searchsorted(self.times, time, side="right") - 1, 0)]


class Difference(NamedTuple):
    """The first moment at which a record is not as a statement asks."""

    statement: str
    time: float | None
    """s; None where something that had to occur never did."""
    problem: str
    """What is different, in words."""
    values: dict[str, float | str]
    """The state and the variables of the statement then."""


@dataclass(frozen=True)
class Statement:
    """A line of a script."""

    text: str
    when: Expression | None
    """None: always, or, of `reach`, at some time."""
    expect: Expression
    must_occur: bool = True
    how: str = ""
    """`within`, `for`, `until`, or nothing: at each moment."""
    length: float = 0.0
    unit: str = ""
    """`round`, `rtt` or `s`."""
    until: Expression | None = None

    @classmethod
    def read(cls, text: str) -> Statement:
        """A statement from a line. :raises ScenarioError: one line, for what is none."""
        text = " ".join(str(text).split())
        m = _STATEMENT.match(text)
        if not m:
            refuse("expect", f"{shown(text)} is no statement", EXAMPLE)
        number, unit = 0.0, ""
        if m["how"]:
            length = _LENGTH.match(m["length"])
            if not length:
                refuse("expect", f"{shown(m['length'])} is no length of time", "write for example within 3 rounds, for 200ms, within 2 rtt")
            unit = length["unit"].removesuffix("s") if length["unit"][0] == "r" else "s"
            number = float(length["number"]) * (1.0 if unit != "s" else _UNITS[length["unit"]])
        return cls(
            text,
            Expression(m["when"]) if m["when"] else None,
            Expression(m["expect"]),
            m["kind"] != "if",
            "reach" if m["alone"] == "reach" else m["how"] or ("until" if m["until"] else ""),
            number,
            unit,
            Expression(m["until"]) if m["until"] else None,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Every variable and state that it names."""
        return tuple(dict.fromkeys(name for e in (self.when, self.expect, self.until) if e for name in e.names))

    def judge(self, record: Record) -> Difference | None:
        """The first difference; None where there is none. :raises Unknown: the record lacks a variable or a state."""
        if not record.rows:
            raise Unknown("it shows no states and variables")
        is_so = self.expect.holds(record)
        moments = self.when.holds(record) if self.when else np.ones(record.rows, bool)
        if self.how == "reach":
            return None if is_so.any() else Difference(self.text, None, f"never: {self.expect.text}", {})
        if not moments.any():
            never = self.when.text if self.when else ""
            return Difference(self.text, None, f"never: {never}", {}) if self.must_occur else None
        row = self._first_wrong(record, moments, is_so)
        if row is None:
            return None
        return Difference(self.text, float(record.time[row]), f"not {self.expect.text}", record.shown(row, self.names))

    def _first_wrong(self, record: Record, moments: np.ndarray, is_so: np.ndarray) -> int | None:
        if not self.how:
            wrong = np.flatnonzero(moments & ~is_so)
            return int(wrong[0]) if len(wrong) else None
        ends = self.until.holds(record) if self.until else None
        for start in np.flatnonzero(moments & ~np.r_[False, moments[:-1]]):
            stop = self._stop(record, int(start), ends)
            span = is_so[start : stop + 1]
            if self.how == "within":
                # What the record does not reach is not judged.
                if not span.any() and stop + 1 < record.rows:
                    return int(stop)
            elif not span.all():
                return int(start + np.argmin(span))
        return None

    def _stop(self, record: Record, start: int, ends: np.ndarray | None) -> int:
        """The last row that counts from a moment on; of `until` the one before its end."""
        if ends is not None:
            later = np.flatnonzero(ends[start:])
            return int(start + later[0] - 1) if len(later) else record.rows - 1
        clock, length = (record.round, self.length) if self.unit == "round" else (record.time, self.length)
        if self.unit == "rtt":
            length *= float(record.values["rtt"])
        return int(np.searchsorted(clock[start:], clock[start] + length * (1 + 1e-12), side="right") + start - 1)


def _value(node: ast.AST, record: Record | _Constants) -> Values:
    """The value of a node in each row; a group of states is a tuple."""
    return _NODES[type(node)](node, record)


def _boolean(node: ast.BoolOp, record: Record) -> Values:
    join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
    return join.reduce(np.broadcast_arrays(*(_value(v, record) for v in node.values)))


def _comparison(node: ast.Compare, record: Record) -> Values:
    sides = [_value(e, record) for e in (node.left, *node.comparators)]
    pairs = [_compare(op, a, b) for op, a, b in zip(node.ops, sides, sides[1:], strict=False)]
    return np.logical_and.reduce(np.broadcast_arrays(*pairs))


def _unary(node: ast.UnaryOp, record: Record) -> Values:
    value = _value(node.operand, record)
    return np.logical_not(value) if isinstance(node.op, ast.Not) else -value


_NODES: Mapping[type[ast.AST], Callable[[Any, Any], Values]] = {
    ast.Constant: lambda node, _: float(node.value),
    ast.Name: lambda node, record: record.lookup(node.id),
    ast.Tuple: lambda node, record: tuple(_value(e, record) for e in node.elts),
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.BinOp: lambda node, record: _ARITHMETIC[type(node.op)](_value(node.left, record), _value(node.right, record)),
    ast.Compare: _comparison,
    ast.Call: lambda node, record: FUNCTIONS[node.func.id](record, *(_value(a, record) for a in node.args)),
}
"""Node of an expression → its value."""


def _compare(op: ast.cmpop, a: Values, b: Values) -> Values:
    """A comparison; with a group of states, being one of them."""
    if isinstance(b, tuple) or isinstance(op, (ast.In, ast.NotIn)):
        b = b if isinstance(b, tuple) else (b,)
        members = [m for part in b for m in (part if isinstance(part, tuple) else (part,))]
        inside = np.logical_or.reduce([np.equal(a, m) for m in members])
        return np.logical_not(inside) if isinstance(op, (ast.NotIn, ast.NotEq)) else inside
    return _COMPARE[type(op)](a, b)


def _rows(record: Record, x: Values) -> np.ndarray:
    return np.broadcast_to(np.asarray(x, dtype=float), (record.rows,))


def _begin(record: Record, condition: Values, x: Values) -> Values:
    """The value at the first moment of a condition, from then on; NaN before, and where it never comes."""
    moments = np.flatnonzero(np.broadcast_to(np.asarray(condition, bool), (record.rows,)))
    if not len(moments):
        return np.full(record.rows, np.nan)
    return np.where(np.arange(record.rows) >= moments[0], _rows(record, x)[moments[0]], np.nan)


def _ago(record: Record, x: Values) -> np.ndarray:
    """The value in the first row of the round trip before."""
    first = np.searchsorted(record.round, record.round, side="left")
    return _rows(record, x)[np.searchsorted(record.round, record.round[np.maximum(first - 1, 0)], side="left")]


FUNCTIONS: Mapping[str, Callable[..., Values]] = {
    "abs": lambda _, x: np.abs(x),
    "min": lambda _, *x: np.minimum.reduce(np.broadcast_arrays(*x)),
    "max": lambda _, *x: np.maximum.reduce(np.broadcast_arrays(*x)),
    "log2": lambda _, x: np.log2(x),
    "ago": _ago,
    "last": lambda r, x: np.r_[_rows(r, x)[:1], _rows(r, x)[:-1]],
    "entry": lambda r, x: _rows(r, x)[r.entry],
    "leaving": lambda r, x: _rows(r, x)[np.maximum(r.entry - 1, 0)],
    "begin": _begin,
    "peak": lambda r, x: np.maximum.accumulate(_rows(r, x)),
    "least": lambda r, x: np.minimum.accumulate(_rows(r, x)),
    "entered": lambda r, *s: (r.entry == np.arange(r.rows)) & _compare(ast.In(), r.lookup("state"), s),
    "changed": lambda r, x: _rows(r, x) != np.r_[_rows(r, x)[:1], _rows(r, x)[:-1]],
}
"""Function → what it gives for a record and its arguments."""
_ALLOWED = (*_NODES, *_COMPARE, *_ARITHMETIC, ast.Load, ast.Not, ast.USub, ast.And, ast.Or, ast.In, ast.NotIn)
