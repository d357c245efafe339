"""Derived values of a campaign: arithmetic over axes with units, `60mbit / r` or `2 * rtt + 1ms`.

Times, rates, sizes and fractions keep their kind: rate · time is a size, size / time a rate, equal kinds divide to a plain number.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tcpscape import units
from tcpscape.campaign import axes
from tcpscape.errors import refuse, shown

_QUANTITY = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([a-zA-Zµ%]+(?:/s)?)")
_OWN = re.compile(r"\b_q\d+\b")
"""Names that quantities get while an expression is read."""
KINDS = {"ms": "time", "Mbit/s": "rate", "B": "size", "%": "fraction", "": ""}
_TO_TEXT: dict[str, Callable[[float], str]] = {
    "time": lambda x: units.format_time(round(x * 1e6)),
    "rate": lambda x: f"{x * 1e6:.10g}bit",
    "size": lambda x: f"{round(x)}",
    "fraction": lambda x: f"{x:.10g}%",
    "": lambda x: f"{x:.10g}",
}
"""From the axis' unit (ms, Mbit/s, B, %) to a text that units read."""
BITS_PER_MS = 1000 / 8
"""Bytes that 1 Mbit/s carries in 1 ms."""


@dataclass(frozen=True, slots=True)
class _Amount:
    number: float
    kind: str


def value(expression: str, known: Mapping[str, str], field: str = "derive") -> str:
    """What `expression` comes to, as a text with its unit."""
    quantities: list[_Amount] = []

    def name(match: re.Match[str]) -> str:
        quantities.append(_amount(match.group(0), field))
        return f"_q{len(quantities) - 1}"

    if own := _OWN.search(expression):
        refuse(field, f"{shown(expression)} asks for {own[0]}, which is no axis", "write for example 60mbit / r")
    text = _QUANTITY.sub(name, expression)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        refuse(field, f"{shown(expression)} is not arithmetic", "write for example 60mbit / r")
    result = _Arithmetic(expression, field, quantities, known).of(tree)
    return _TO_TEXT[result.kind](result.number)


def _amount(text: str, field: str) -> _Amount:
    amount = axes.read(text)
    if amount.is_word:
        refuse(field, f"{shown(text)} is not a quantity", "write for example 60mbit / r")
    return _Amount(amount.number, KINDS[amount.unit])


_SAME = {ast.Add: operator.add, ast.Sub: operator.sub}
_PRODUCTS = {frozenset(("rate", "time")): ("size", BITS_PER_MS)}
_QUOTIENTS = {("size", "time"): ("rate", 1 / BITS_PER_MS), ("size", "rate"): ("time", 1 / BITS_PER_MS)}


@dataclass(frozen=True)
class _Arithmetic:
    expression: str
    field: str
    quantities: list[_Amount]
    known: Mapping[str, str]

    def of(self, node: ast.expr) -> _Amount:
        """The amount of a node."""
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return _Amount(float(node.value), "")
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.of(node.operand)
            return _Amount(-inner.number, inner.kind)
        if isinstance(node, ast.BinOp):
            return self._binary(node.op, self.of(node.left), self.of(node.right))
        return self._refuse("is more than + - * / over axes and quantities")

    def _name(self, name: str) -> _Amount:
        if name.startswith("_q") and name[2:].isdigit():
            return self.quantities[int(name[2:])]
        if name not in self.known:
            return self._refuse(f"asks for {name}, which is no axis")
        return _amount(self.known[name], self.field)

    def _binary(self, op: ast.operator, a: _Amount, b: _Amount) -> _Amount:
        if type(op) in _SAME and (a.kind == b.kind or 0 in (a.number, b.number)):
            return _Amount(_SAME[type(op)](a.number, b.number), a.kind or b.kind)
        if isinstance(op, ast.Mult):
            return self._product(a, b)
        if isinstance(op, ast.Div):
            return self._quotient(a, b)
        return self._refuse(f"mixes {a.kind or 'a number'} and {b.kind or 'a number'}")

    def _product(self, a: _Amount, b: _Amount) -> _Amount:
        if "fraction" in (a.kind, b.kind) and a.kind != b.kind:
            other = b.kind if a.kind == "fraction" else a.kind
            if other:
                return _Amount(a.number * b.number / 100, other)
        if not a.kind or not b.kind:
            return _Amount(a.number * b.number, a.kind or b.kind)
        kind, factor = _PRODUCTS.get(frozenset((a.kind, b.kind)), ("", 0.0))
        return _Amount(a.number * b.number * factor, kind) if kind else self._refuse(f"multiplies {a.kind} by {b.kind}")

    def _quotient(self, a: _Amount, b: _Amount) -> _Amount:
        if not b.number:
            return self._refuse("divides by zero")
        if not b.kind or a.kind == b.kind:
            return _Amount(a.number / b.number, "" if b.kind else a.kind)
        kind, factor = _QUOTIENTS.get((a.kind, b.kind), ("", 0.0))
        return _Amount(a.number / b.number * factor, kind) if kind else self._refuse(f"divides {a.kind or 'a number'} by {b.kind}")

    def _refuse(self, why: str) -> _Amount:
        refuse(self.field, f"{shown(self.expression)} {why}", "write for example 60mbit / r")
