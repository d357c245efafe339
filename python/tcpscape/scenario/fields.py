"""What the types of a scenario are made of: their base class, field types for quantities with units, and validation with one-line errors.

Quantities are read by :mod:`tcpscape.units` and written back in the same spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    SerializationInfo,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from tcpscape import names, units
from tcpscape.errors import ScenarioError, TcpscapeError, refuse, shown
from tcpscape.reading.documents import EXPECTED

OPTIONS = "the options"
"""The source of values that were typed as options, whose names are those of fields without what they are within."""


class Spec(BaseModel):
    """Base class of a specification that a user writes: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, data: Any) -> Any:
        """Refuses `count: yes`, which pydantic would read as 1."""
        for name, value in data.items() if isinstance(data, dict) else ():
            if isinstance(value, bool) and (field := cls.model_fields.get(name)) and _is_number(field.annotation):
                refuse(name, f"{str(value).lower()} is there, where a number belongs", "write the number")
        return data


def is_address(info: SerializationInfo) -> bool:
    """Whether what is written is a content address."""
    return isinstance(info.context, dict) and bool(info.context.get("address"))


def without_later(fields: dict[str, Any], spec: BaseModel, later: Iterable[str]) -> dict[str, Any]:
    """Fields for a content address: those that came later are left out where they have their default, so that older addresses stay."""
    unused = {name for name in later if getattr(spec, name) == type(spec).model_fields[name].get_default()}
    return {name: value for name, value in fields.items() if name not in unused}


def _is_number(annotation: Any) -> bool:
    """Whether a field of this type is a whole number or none."""
    return annotation is int or int in get_args(annotation)


def written(schema: dict[str, Any]) -> Any:
    """The type of what a user writes where the value that is made of it has another type; `schema` is its JSON Schema."""
    return Annotated[Any, WithJsonSchema(schema)]


_NUMBER = r"(?:\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)|-(?:0+\.?0*|\.0+))(?:[eE][+-]?[0-9]+)?"
"""A number in front of a unit; none is below 0."""


def quantity(unit_names: Iterable[str], example: str, *more: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a number with one of these units, in capitals or not; 0 needs none. `more`: other ways to write it."""
    choice = "|".join("".join(f"[{c}{c.upper()}]" if c.isalpha() and c.isascii() else re.escape(c) for c in name) for name in unit_names)
    zero = r"[+-]?(?:0+\.?0*|\.0+)(?:[eE][+-]?[0-9]+)?"
    text = {"type": "string", "pattern": rf"^\s*(?:{_NUMBER}\s*(?:{choice})|{zero})\s*$"}
    return {"anyOf": [text, {"const": 0}, *more], "examples": [example]}


def _reader(parse: units.Parser, schema: dict[str, Any]) -> BeforeValidator:
    def read(value: Any, info: ValidationInfo) -> Any:
        return parse(value, info.field_name or "value")

    return BeforeValidator(read, json_schema_input_type=written(schema))


_BYTES: tuple[dict[str, Any], ...] = ({"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^\s*[0-9]+\s*$"})
"""A size in bytes needs no unit."""
TIME = quantity(units.TIME_UNITS, "50ms")
SIZE = quantity(units.SIZE_UNITS, "256KiB", *_BYTES)
RATE = quantity(units.RATE_UNITS, "10mbit")
BYTE_RATE = quantity(units.RATE_UNITS, "1MB/s")
PERCENT = quantity(["%"], "0.1%")
NAME = {"type": "string", "maxLength": names.MOST_CHARACTERS, "pattern": r"^[^/\\]*[^\s/\\][^/\\]*$", "not": {"enum": [".", ".."]}}
BUFFER = quantity([*units.SIZE_UNITS, "bdp"], "2bdp", *_BYTES)
"""Quantities and names as a user writes them, as JSON Schema."""


def _writer(text: Callable[[Any], str]) -> PlainSerializer:
    return PlainSerializer(text, return_type=str)


Time = Annotated[int, _reader(units.parse_time, TIME), _writer(units.format_time)]
"""Nanoseconds."""
Size = Annotated[int, _reader(units.parse_size, SIZE), _writer(units.format_size)]
"""Bytes."""
Rate = Annotated[int, _reader(units.parse_rate, RATE), _writer(units.format_rate)]
"""Bits per second."""
ByteRate = Annotated[int, _reader(units.parse_byte_rate, BYTE_RATE), _writer(units.format_byte_rate)]
"""Bytes per second."""
Percent = Annotated[float, _reader(units.parse_percent, PERCENT), _writer(units.format_percent)]
"""A fraction of one, written in percent."""
Name = Annotated[str, _reader(names.expect, NAME)]
"""One path component of printable characters."""
Buffer = Annotated[str, _reader(units.parse_buffer, BUFFER)]
"""Bytes, or a multiple of the bandwidth-delay product, as written."""


def validate(spec: type[Any], data: Any, source: str) -> Any:
    """An object of the class `spec` from plain values, which came from `source`.

    :raises TcpscapeError: one line that names the field that is wrong.
    """
    if not isinstance(data, dict):
        raise ScenarioError(f"{source}: not a mapping of fields; write for example 'duration: 10s'")
    names.expect_texts(data, source)
    try:
        return spec.model_validate(data)
    except ValidationError as e:
        raise ScenarioError(_one_line(e, source)) from None
    except TcpscapeError as e:
        raise type(e)(f"{e}") from None


def _option(names: Sequence[str]) -> str:
    """The option that sets the field to which `names` lead: that of its own name, or `change`."""
    return "change" if names[:1] == ["changes"] else (names or [OPTIONS])[-1].replace("_", "-")


def _one_line(e: ValidationError, source: str) -> str:
    """The first error that pydantic reports, as one line."""
    first = e.errors()[0]
    fields = [shown(str(p))[1:-1] for p in first["loc"] if not str(p).startswith("function-")]
    where = _option(fields) if source == OPTIONS else ".".join(fields) or source
    if first["type"] == "extra_forbidden":
        return f"{where}: no such field; see `tcpscape scenario show baseline` for those there are"
    if first["type"] == "missing":
        return f"{where}: missing; add it to {source}"
    if first["type"] == "literal_error":
        words = first["ctx"]["expected"].replace("'", "")
        return f"{where}: {shown(first['input'])} is unknown; choose {words}"
    if expected := EXPECTED.get(first["type"]):
        return f"{where}: {shown(first['input'])} is there, where {expected} belongs; correct it in {source}"
    return f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}, not {shown(first['input'])}; correct it in {source}"
