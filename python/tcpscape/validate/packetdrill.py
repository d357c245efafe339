"""packetdrill's scripts against the model's own sender and receiver: which pass, what the first difference of the others is, which cannot be asked.

A script is carried out in virtual time by the crate `drill`; its statements about `tcp_info` (`%{ assert tcpi_snd_cwnd == 10 }%`) are evaluated
here, on what the fields were when the script looked. Source of the language: packetdrill's published syntax reference and observed scripts.
"""

from __future__ import annotations

import ast
import contextlib
import operator
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

from tcpscape import _core
from tcpscape.errors import ScenarioError, refuse, shown
from tcpscape.reading import files

KERNEL = "6.18"
"""The profile of a host unless another one is named: the scripts are those of current kernels."""
ENDING = ".pkt"
SCRIPT = files.Kind("a script of packetdrill", "name a .pkt file or a directory of them")
MOST_FILES = 10_000
"""Scripts of one command."""
MOST_DEPTH = 8
"""Directories below each other that are looked through."""

FAMILIES: Sequence[tuple[str, Sequence[str]]] = (
    ("Fast Open", ("fastopen",)),
    ("MPTCP", ("mptcp",)),
    ("ECN and AccECN", ("ecn", "rfc3168")),
    ("limited transmit", ("limited_transmit", "limited-transmit")),
    ("fast recovery", ("fast_recovery", "fast_retransmit", "fast-retransmit", "newreno", "prr", "rfc6675", "rfc6937")),
    ("RACK and TLP", ("rack", "tlp", "cwnd_moderation", "frto", "undo", "rfc8985", "rfc5682")),
    ("SACK", ("sack", "ooo", "rfc2018", "rfc2883")),
    ("retransmission timeout", ("rto", "rfc6298")),
    ("slow start and control", ("slow_start", "slow-start", "cubic", "congestion", "rfc6928", "rfc7661", "idle")),
    ("timestamps", ("ts_recent", "timestamp", "paws", "rfc7323")),
    ("zero window", ("zero", "wnd", "window", "rcv", "user_timeout")),
    ("close", ("close", "shutdown", "fin", "reset")),
    ("blocking calls", ("blocking",)),
    ("writing: Nagle, records, copies", ("nagle", "eor", "zerocopy", "sendfile", "splice", "notsent")),
    ("tcp_info", ("tcp_info", "tcp-info")),
)
"""Families in the order in which they are looked for, by words in the name of a script or of its directory."""
OTHER = "other"

STATES = ("ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING")
CONSTANTS: Mapping[str, int] = {
    **{f"TCP_{name}": number for number, name in enumerate(STATES, 1)},
    **{f"TCP_CA_{name}": number for number, name in enumerate(("Open", "Disorder", "CWR", "Recovery", "Loss"))},
    **{f"TCPI_OPT_{name}": 1 << bit for bit, name in enumerate(("TIMESTAMPS", "SACK", "WSCALE", "ECN"))},
}
"""Names that a script's statements may use."""
FIELD = "tcpi_"


class Verdict(Enum):
    """What became of a script."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class ScriptResult:
    """A script, and what became of it."""

    path: str
    family: str
    verdict: Verdict
    line: int = 0
    """Of what differs, or of what the model does not have; 0 where it passed."""
    problem: str = ""
    """What differs, or the reason why it is not applicable."""
    expected: str = ""
    actual: str = ""
    ignored: tuple[str, ...] = ()
    """Settings of the script that were not applied, with their reason."""


@dataclass(frozen=True)
class Drill:
    """What became of all scripts."""

    kernel: str
    results: tuple[ScriptResult, ...]

    def of(self, verdict: Verdict) -> tuple[ScriptResult, ...]:
        """Those of one kind."""
        return tuple(r for r in self.results if r.verdict is verdict)

    @cached_property
    def families(self) -> Mapping[str, Mapping[Verdict, int]]:
        """Family → how many of each kind, in the order of :data:`FAMILIES`."""
        names = [*(name for name, _ in FAMILIES), OTHER]
        rows = {name: [r.verdict for r in self.results if r.family == name] for name in names}
        return {name: {verdict: verdicts.count(verdict) for verdict in Verdict} for name, verdicts in rows.items() if verdicts}


def run(paths: Sequence[Path], kernel: str = KERNEL) -> Drill:
    """Carries out scripts on a host with this kernel profile.

    :raises TcpscapeError: one line with file, line, problem and fix, where one is no script.
    """
    profiles = _core.kernel_profiles()
    if kernel not in profiles:
        refuse("kernel", f"no profile {shown(kernel)}", f"choose {', '.join(profiles)}")
    return Drill(kernel, tuple(_result(path, kernel) for path in _scripts(paths)))


def family(path: Path) -> str:
    """The family of a script, by the names of its three nearest directories, the outermost first, and its own."""
    for name in (*path.parts[-4:-1], path.stem):
        for title, words in FAMILIES:
            if any(word in name.lower() for word in words):
                return title
    return OTHER


def _scripts(paths: Sequence[Path]) -> list[Path]:
    scripts = [script for path in paths for script in (_below(path, 0) if files.folder(path, SCRIPT) else [path])]
    if not scripts:
        refuse("scripts", "there is none", f"name {ENDING} files, or directories of them")
    if len(scripts) > MOST_FILES:
        refuse("scripts", f"more than {MOST_FILES:,}", "name fewer directories")
    return scripts


def _below(folder: Path, depth: int) -> Iterator[Path]:
    for path in files.listed(folder, SCRIPT):
        if path.name.endswith(ENDING):
            yield path
        elif depth < MOST_DEPTH and not path.is_symlink() and files.folder(path, SCRIPT):
            yield from _below(path, depth + 1)


def _result(path: Path, kernel: str) -> ScriptResult:
    text = files.text(path, SCRIPT)
    try:
        report = _core.packetdrill(text, kernel)
    except ValueError as e:
        raise ScenarioError(f"{files.Origin(str(path), SCRIPT).label}:{e}") from None
    ignored = tuple(f"line {i['line']}: {i['text']}: {i['reason']}" for i in report["ignored"])
    outcome = report["outcome"]
    verdict = Verdict(outcome["outcome"].replace("_", " "))

    def of(kind: Verdict, line: int = 0, problem: str = "", expected: str = "", actual: str = "") -> ScriptResult:
        return ScriptResult(str(path), family(path), kind, line, problem, expected, actual, ignored)

    if verdict is not Verdict.NOT_APPLICABLE:
        names: dict[str, float] = {}
        for snapshot in report["snapshots"]:
            statements = Statements(path, snapshot["line"], snapshot["info"], names)
            try:
                statements.carry_out(snapshot["code"])
            except _Lacking as lacking:
                return of(Verdict.NOT_APPLICABLE, snapshot["line"], str(lacking))
            except _Differs as differs:
                return of(Verdict.FAILED, differs.line, "tcp_info", differs.test, differs.values)
    return of(
        verdict, outcome.get("line", 0), outcome.get("problem", outcome.get("reason", "")), outcome.get("expected", ""), outcome.get("actual", "")
    )


class _Lacking(Exception):
    """A statement asks for what the model does not have."""


class _Differs(Exception):
    """An assertion does not hold."""

    def __init__(self, line: int, test: str, values: str) -> None:
        super().__init__(test)
        self.line, self.test, self.values = line, test, values


COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max, "int": int, "float": float, "round": round}


@dataclass
class Statements:
    """The statements of one place of a script: assertions and assignments over numbers. Anything else is not applicable, never carried out."""

    path: Path
    line: int
    info: Mapping[str, int]
    names: dict[str, float]
    """What earlier statements have assigned."""

    def carry_out(self, code: str) -> None:
        """Evaluates them. :raises TcpscapeError: where they are no Python."""
        lines = code.split("\n")
        text = "\n".join([lines[0].strip(), textwrap.dedent("\n".join(lines[1:]))]).rstrip("\\ \n")
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError):
            raise ScenarioError(f"{self.path}:{self.line}: the code between %{{ and }}% is no Python; write assert tcpi_snd_cwnd == 10") from None
        try:
            for statement in body:
                self._statement(statement)
        except (ArithmeticError, TypeError, ValueError, RecursionError) as e:
            raise ScenarioError(
                f"{self.path}:{self.line}: the code between %{{ and }}% has no value: {e}; write assert tcpi_snd_cwnd == 10"
            ) from None

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assert(test=test):
                if not self._value(test):
                    raise _Differs(self.line + node.lineno - 1, ast.unparse(test), self._values(test))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.names[name] = self._value(value)
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"))) | ast.Pass():
                pass
            case _:
                raise _Lacking(f"statements of Python other than assert and assignments: {shown(ast.unparse(node))}")

    def _value(self, node: ast.expr) -> float:
        result: float
        match node:
            case ast.Constant(value=int() | float() as value):
                result = value
            case ast.Name(id=name):
                result = self._name(name)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                values = [self._value(left), *map(self._value, comparators)]
                result = all(self._of(COMPARISONS, op)(a, b) for op, a, b in zip(ops, values, values[1:], strict=False))
            case ast.BoolOp(op=op, values=parts):
                result = (all if isinstance(op, ast.And) else any)(self._value(part) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                result = not self._value(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                result = -self._value(operand)
            case ast.BinOp(left=left, op=op, right=right):
                result = self._of(ARITHMETIC, op)(self._value(left), self._value(right))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                result = FUNCTIONS[name](*map(self._value, args))
            case _:
                raise _Lacking(f"expressions of Python other than arithmetic: {shown(ast.unparse(node))}")
        return result

    def _of(self, table: Mapping[Any, Callable[[Any, Any], Any]], op: object) -> Callable[[Any, Any], Any]:
        if type(op) not in table:
            raise _Lacking(f"the operator {type(op).__name__} of Python")
        return table[type(op)]

    def _name(self, name: str) -> float:
        if name in self.names:
            return self.names[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name.startswith(FIELD):
            if name.removeprefix(FIELD) in self.info:
                return self.info[name.removeprefix(FIELD)]
            raise _Lacking(f"{name}: a field of tcp_info that the model does not have")
        raise _Lacking(f"the name {shown(name)} in statements about tcp_info")

    def _values(self, test: ast.expr) -> str:
        names = dict.fromkeys(n.id for n in ast.walk(test) if isinstance(n, ast.Name) and n.id not in {*FUNCTIONS, *CONSTANTS})
        values = []
        for name in names:
            with contextlib.suppress(_Lacking):  # of a part that was not reached
                values.append(f"{name} is {self._name(name)}")
        return ", ".join(values)
