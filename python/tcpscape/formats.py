"""The format number of each kind of JSON document, and what a reader does with one that it does not know; how columns of tables are declared.

A document says its format in its first field, `"format": 1`. The number of a kind rises when a field of it goes away or changes its meaning; a field
that comes in addition leaves it as it is. A document without the field is of the first format: it was written before documents had a number.
docs/reference/formats.md is the promise that goes with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tcpscape.errors import ScenarioError, StoreError, TcpscapeError, refuse, shown

FORMATS: Mapping[str, int] = {
    "scenario": 1,
    "campaign": 1,
    "study": 1,
    "trial": 1,
    "cell": 1,
    "check": 1,
    "advice": 1,
    "edge": 1,
    "conformance": 1,
    "stress": 1,
    "bound": 1,
    "comparison": 1,
    "kernel-diff": 1,
    "kernel-hunks": 1,
    "packetdrill": 1,
    "exact": 1,
    "validation": 1,
    "manifest": 2,
    "kernel": 1,
    "doctor": 1,
    "emulation": 1,
    "diagnosis": 1,
    "calls": 1,
    "dossier": 1,
}
"""Kind of document → the format that this version writes, and the newest that it reads."""
FIELD = "format"
"""The field of a document that has its number."""


def stamped(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a document of this kind with its format in front."""
    return {FIELD: FORMATS[kind], **values}


def printed(kind: Any, document: Any, **sentences: Callable[[Any], str]) -> dict[str, Any]:
    """A document of the type `kind` as JSON has it: objects within as their fields, None for numbers that are infinite or not known.

    `sentences`: name of a fact that the document has in words → what makes its sentence (`caveat` of an estimate).
    """
    from pydantic import TypeAdapter

    plain: dict[str, Any] = finite(TypeAdapter(kind).dump_python(document, mode="json", context=sentences))
    return plain


@dataclass(frozen=True, slots=True)
class Written:
    """In an annotation of a document's type: what a value is written by. `by` takes the value, and a function that writes the annotated type.

    It is pydantic's `WrapSerializer`, which is imported when a document is made: a command that makes none starts faster without it.
    """

    by: Callable[..., Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """What pydantic asks of an annotation."""
        from pydantic import WrapSerializer

        return WrapSerializer(self.by).__get_pydantic_core_schema__(source, handler)


def finite(value: Any) -> Any:
    """The same plain value with None for numbers that JSON has not."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def without(kind: str, values: Any) -> Any:
    """What a user wrote without its format, which may be left out. :raises ScenarioError: for a number that this version does not know."""
    if not isinstance(values, Mapping) or FIELD not in values:
        return values
    expect(kind, values, FIELD, ScenarioError)
    return {name: value for name, value in values.items() if name != FIELD}


def expect(kind: str, document: Any, where: str, error: type[TcpscapeError] = StoreError) -> int:
    """The format of a document of this kind, which was found at `where` (a file, or the field of a message).

    :raises TcpscapeError: of the class `error`, one line, for a number that this version does not know.
    """
    number = document.get(FIELD, 1) if isinstance(document, Mapping) else 1
    if type(number) is int and 1 <= number <= FORMATS[kind]:
        return number
    if type(number) is int and number > FORMATS[kind]:
        problem = f"{kind} of format {number}, and this tcpscape reads formats up to {FORMATS[kind]}"
        refuse(where, problem, "use the tcpscape that wrote it, or a newer one", error)
    refuse(where, f"{shown(number)} is no number of a {kind}'s format", f"write {FIELD}: {FORMATS[kind]}, or leave it out", error)


ColumnKind = Literal["string", "integer", "number", "boolean"]
"""Types of Table Schema."""
AXIS = "{axis}"
"""Name of a column that stands for one of each axis."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    """`{axis}` stands for as many columns as there are names."""
    kind: ColumnKind
    unit: str
    """Empty where it has none."""
    about: str

    def field(self) -> dict[str, str]:
        """As Table Schema has it."""
        return {"name": self.name, "type": self.kind, **({"unit": self.unit} if self.unit else {}), "description": self.about}


@dataclass(frozen=True, slots=True)
class TableFormat:
    """A table that tcpscape writes."""

    name: str
    about: str
    """What a row is, and where the table comes from; one line."""
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns, in their order."""
        return tuple(column.name for column in self.columns)

    def row(self, values: Mapping[str, Any], at: Mapping[str, str] = {}) -> dict[str, Any]:
        """The values that are columns, in their order; `at`: what stands for `{axis}`."""
        row: dict[str, Any] = {}
        for name in self.names:
            row |= at if name == AXIS else {name: values[name]} if name in values else {}
        return row

    def schema(self) -> dict[str, Any]:
        """Its Table Schema."""
        return {"name": self.name, "title": f"tcpscape {self.name}", "description": self.about, "fields": [c.field() for c in self.columns]}


def columns(text: str) -> tuple[Column, ...]:
    """Columns from lines `name type unit: what it is`; a unit of - is none."""
    parsed = []
    for line in filter(None, map(str.strip, text.splitlines())):
        head, _, about = line.partition(": ")
        name, kind, *unit = head.split(maxsplit=2)
        parsed.append(Column(name, kind, "".join(unit) if unit != ["-"] else "", f"{about}."))  # type: ignore[arg-type]
    return tuple(parsed)


INTERVAL = """
    {0} number {1}: {2}
    {0}_low number {1}: Lower end of its 95 % interval
    {0}_high number {1}: Upper end of its 95 % interval
"""
"""Columns of an estimate: its name, its unit, what it is."""
