"""What a campaign varies: values as people write them, lists and ranges of them, templates, and seeds.

`24,50,100ms` (a unit stands for those before it too) · `0..24ms/4ms` (steps) · `0.1%..10%/x10` (factors) · `6.1|6.12,rmem_max=4MiB` (values with
commas) · lists of YAML and TOML.
Values stay as written, since a scenario is made of words; :func:`read` says where one stands on an axis.

Derived values (:func:`derived`) are arithmetic over axes with units, `60mbit / r` or `2 * rtt + 1ms`. Times, rates, sizes and fractions keep their
kind: rate · time is a size, size / time a rate, equal kinds divide to a plain number.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tcpscape import units
from tcpscape.errors import TcpscapeError, refuse, shown
from tcpscape.names import expect_line
from tcpscape.scenario.scenario import Scenario

MAX_LEVELS = 10_000
"""Most values of one axis."""
MAX_SEEDS = 1_000_000
"""Most trials of one condition."""
MAX_DIGITS = 18
"""Digits of a seed: below 2^63."""
OR = "|"
"""Separates values that have commas."""
_RANGE = re.compile(r"^(?P<low>[^.]*(?:\.[0-9][^.]*)?)\.\.(?P<high>[^/]+)/(?P<step>.+)$")


@dataclass(frozen=True, slots=True)
class Value:
    """A value on an axis."""

    text: str
    """As written."""
    number: float
    """In `unit`; NaN for words."""
    unit: str
    """ms, Mbit/s, %, B; empty for plain numbers and words."""

    @property
    def is_word(self) -> bool:
        """Whether it has no place on a scale."""
        return math.isnan(self.number)


_SCALES: tuple[tuple[Any, float, str], ...] = (
    (units.parse_percent, 100.0, "%"),
    (units.parse_time, 1e-6, "ms"),
    (units.parse_rate, 1e-6, "Mbit/s"),
    (units.parse_size, 1.0, "B"),
)
"""How a text with a unit is read, the factor to the axis' unit, that unit."""


@lru_cache(maxsize=65_536)
def read(text: str) -> Value:
    """Where a value stands: `8ms` → 8 ms, `10mbit` → 10 Mbit/s, `0.1%` → 0.1 %, `64KiB` → 65 536 B, `5` → 5, `fq_codel` → a word."""
    text = text.strip()
    if units.is_bare(text):
        return Value(text, float(text), "")
    for parse, factor, unit in _SCALES:
        try:
            return Value(text, float(parse(text)) * factor, unit)
        except TcpscapeError:
            continue
    return Value(text, math.nan, "")


def same(text: str, other: str) -> bool:
    """Whether two values as written are the same: `0ms` and `0`, `1s` and `1000ms`."""
    if text == other:
        return True
    a, b = read(text), read(other)
    if a.is_word or b.is_word or not math.isclose(a.number, b.number, rel_tol=1e-9):
        return False
    return a.unit == b.unit or a.number == 0


def canonical(text: str) -> str:
    """The same text for values that are the same: `0` and `0ms`, `1s` and `1000ms`."""
    value = read(text)
    return text if value.is_word else f"{value.number:.9g} {value.unit if value.number else ''}"


def levels(values: Any, axis: str, *, once: bool = True) -> tuple[str, ...]:
    """The values of an axis, as written: a list, or text with commas (or `|`) between values and ranges.

    `once`: a value that is written twice is refused, and one in two ranges is there once; not so in a group whose axes move together.

    :raises TcpscapeError: one line that names the axis, for an empty value, a range that is none, or too many values.
    """
    expect_line(axis, "axes")
    items = values if isinstance(values, (list, tuple)) else _items(str(values), axis)
    texts = [expect_line(_text(item), axis) for item in items]
    if not texts or not all(texts):
        refuse(axis, f"{shown(values)} has an empty value", "write for example 0..24ms/4ms or 24,50,100ms")
    texts = units.with_units(texts)
    singles = [canonical(text) for text in texts if ".." not in text]
    if once and len(set(singles)) < len(singles):
        refuse(axis, f"{shown(values)} has a value twice", "write each once")
    spread: list[str] = []
    for text in texts:
        spread += _spread(text, axis)
        if len(spread) > MAX_LEVELS:
            refuse(axis, f"{shown(values)} has more than {MAX_LEVELS} values", "write fewer values or wider steps")
    return tuple(dict.fromkeys(spread) if once else spread)


def _items(text: str, axis: str) -> list[str]:
    """The values of an axis that are written in one text: separated by `|`, where they have commas of their own, or by commas.

    A kernel's overrides (`6.12,rmem_max=4MiB`) belong to the profile before them.
    """
    if OR in text:
        return text.split(OR)
    items = text.split(",")
    if axis != "kernel":
        return items
    kernels: list[str] = []
    for item in items:
        if "=" in item and kernels:
            kernels[-1] += f",{item.strip()}"
        else:
            kernels.append(item)
    return kernels


def _text(item: Any) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    return str(item).strip()


def _spread(text: str, axis: str) -> list[str]:
    if ".." not in text or text[0] not in "0123456789":
        return [text]
    match = _RANGE.match(text)
    if not match:
        refuse(axis, f"{shown(text)} is not a range", "write for example 0..24ms/4ms, or 1..1000mbit/x10 for factors")
    low, high, step = (match.group(name).strip() for name in ("low", "high", "step"))
    unit = units.unit_of(high)
    first, last = _number(low, unit, axis), _number(high, unit, axis)
    if step.startswith("x"):
        return _factors(first, last, _number(step[1:], "", axis), unit, axis)
    return _steps(first, last, _number(step, unit, axis), unit, axis)


def _number(text: str, unit: str, axis: str) -> float:
    """A bound of a range in the unit of its upper bound."""
    own = units.unit_of(text)
    if own in ("", unit):
        bare = text.removesuffix(own).strip()
        if not units.is_bare(bare):
            refuse(axis, f"{shown(text)} is not a quantity", "write for example 0..24ms/4ms")
        return _finite(float(bare), text, axis)
    bound, unity = read(text), read(f"1{unit}")
    if bound.is_word or unity.is_word or bound.unit != unity.unit:
        refuse(axis, f"{shown(text)} is not in {unit or 'plain numbers'}", "write the range's bounds and its step in one unit")
    return _finite(bound.number / unity.number, text, axis)


def _finite(number: float, text: str, axis: str) -> float:
    if not math.isfinite(number):
        refuse(axis, f"{shown(text)} is not finite", "write for example 0..24ms/4ms")
    return number


def _steps(first: float, last: float, step: float, unit: str, axis: str) -> list[str]:
    if step <= 0 or last < first:
        refuse(axis, f"a range from {first:g} to {last:g} by {step:g} has no values", "write for example 0..24ms/4ms")
    count = _few((last - first) / step, axis)
    return [f"{first + i * step:.10g}{unit}" for i in range(count)]


def _few(steps: float, axis: str) -> int:
    """The number of values of a range of so many steps, unless they are too many."""
    if not steps < MAX_LEVELS:
        refuse(axis, f"the range has {f'{steps:,.0f}' if steps < 1e15 else f'{steps:.0e}'} values", f"write at most {MAX_LEVELS:,}, in wider steps")
    return math.floor(steps + 1e-9) + 1


def _factors(first: float, last: float, factor: float, unit: str, axis: str) -> list[str]:
    if factor <= 1 or not 0 < first <= last:
        refuse(axis, f"a range from {first:g} to {last:g} by ×{factor:g} has no values", "write for example 1..1000mbit/x10")
    count = _few((math.log(last) - math.log(first)) / math.log(factor), axis)
    return [f"{first * factor**i:.10g}{unit}" for i in range(count)]


_PLACE = re.compile(r"\$\{(\w+)\}")


def fill(template: Any, values: Mapping[str, str], field: str = "scenario") -> Any:
    """`template` with each `${name}` in its texts replaced; a name without a value is refused."""
    if isinstance(template, dict):
        return {k: fill(v, values, str(k)) for k, v in template.items()}
    if isinstance(template, (list, tuple)):
        return [fill(v, values, field) for v in template]
    if not isinstance(template, str):
        return template

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in values:
            refuse(field, f"${{{name}}} is neither an axis nor derived", f"choose {', '.join(values) or 'an axis'}")
        return values[name]

    return _PLACE.sub(value_of, template)


def names_in(template: Any) -> set[str]:
    """The names that `template` asks for as `${name}`."""
    if isinstance(template, dict):
        return {n for v in template.values() for n in names_in(v)}
    if isinstance(template, (list, tuple)):
        return {n for v in template for n in names_in(v)}
    return set(_PLACE.findall(template)) if isinstance(template, str) else set()


def parse_seeds(text: str) -> list[int]:
    """The seeds that `text` stands for: `20` → 0…19, `5..9` → 5…9, `1,4,7` → these, in ascending order.

    :raises ScenarioError: the text is none of these forms, or names no seed or more than :data:`MAX_SEEDS`.
    """
    if any(len(digits) > MAX_DIGITS for digits in re.findall(r"[0-9]+", text)):
        refuse("seeds", f"{shown(text)} is too large a number", f"write at most {MAX_DIGITS} digits")
    if match := re.fullmatch(r"\s*([0-9]+)\s*\.\.\s*([0-9]+)\s*", text):
        first, last = int(match.group(1)), int(match.group(2))
        if last < first:
            refuse("seeds", f"{shown(text)} runs backwards", "write for example 5..9")
        return _limited(range(first, last + 1), text)
    if re.fullmatch(r"\s*[0-9]+\s*", text):
        if int(text) == 0:
            refuse("seeds", "0 trials measure nothing", "write at least 1")
        return _limited(range(int(text)), text)
    if re.fullmatch(r"\s*[0-9]+(\s*,\s*[0-9]+)+\s*", text):
        seeds = [int(part) for part in text.split(",")]
        if len(set(seeds)) < len(seeds):
            refuse("seeds", f"{shown(text)} says a seed twice, and it would be the same trial", "say each once")
        return _limited(sorted(seeds), text)
    refuse("seeds", f"{shown(text)} is not a number of seeds", "write 20, 5..9 or 1,4,7")


def _limited(seeds: Sequence[int], text: str) -> list[int]:
    if len(seeds) > MAX_SEEDS:
        refuse("seeds", f"{shown(text)} is {len(seeds):,} trials of each condition", f"write at most {MAX_SEEDS:,}")
    return list(seeds)


NEW_HOPS: Mapping[str, Mapping[str, str]] = {"forward": {"at": "router"}, "bottleneck": {}, "reverse": {}}
"""Part of a path → the fields of a hop that an axis adds to it."""
LISTS = ("changes", "flows", "links", "transfers", "probes")
"""Fields of a scenario that have items of their own, which an axis does not add."""


def is_dotted(name: str) -> bool:
    """Whether a name is a field within a field of a scenario."""
    first, dot, rest = name.partition(".")
    return bool(dot and rest) and first in Scenario.model_fields


def set_dotted(data: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    """Plain values of a scenario with one field within another one set.

    A number chooses an item of a list, from 0; without one the list has one item only. A part of the path that the scenario does not have
    becomes one hop with the field, for the data at a router, where packets are treated one by one. A field that the scenario leaves at its default
    (the kernel) keeps what it has by default besides.

    :raises ScenarioError: where the part is tc's words, which have no fields, or there is no such item.
    """
    first, _, rest = name.partition(".")
    absent: Any = [{}] if first == "flows" else [] if first in LISTS else dict(NEW_HOPS.get(first, {}))
    return {**data, first: _set(data.get(first) or absent, rest.split("."), value, name)}


def _set(place: Any, names: Sequence[str], value: str, whole: str) -> Any:
    """`place` with the field that `names` lead to set; what `place` has besides stays."""
    if not names:
        return value
    head, *rest = names
    if isinstance(place, (list, tuple)):
        index = _index(place, head, whole)
        return [_set(item, rest if head.isdigit() else names, value, whole) if i == index else item for i, item in enumerate(place)]
    if isinstance(place, dict):
        return {**place, head: _set(place.get(head), rest, value, whole)}
    if place is None:
        return {head: _set(None, rest, value, whole)}
    fix = f"write it with fields, {{{head}: {value}}}, or put ${{NAME}} into the words"
    refuse(whole, f"{shown(place)} is words, which have no field {shown(head)}", fix)


def _index(items: Sequence[Any], head: str, whole: str) -> int:
    """The place of the item that a name chooses."""
    if not items:
        refuse(whole, "the scenario has none", "add one to the scenario")
    if not head.isdigit():
        if len(items) > 1:
            refuse(whole, f"there are {len(items)} of them", f"choose one by its number, as in {whole.replace(head, f'0.{head}', 1)}")
        return 0
    if int(head) >= len(items):
        refuse(whole, f"there is no number {head}", f"choose 0 to {len(items) - 1}")
    return int(head)


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


def derived(expression: str, known: Mapping[str, str], field: str = "derive") -> str:
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
    amount = read(text)
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
