"""Field types for the nouns: quantities with units, read by `units`, written back as people write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationInfo

from tcpscape import units


class Noun(BaseModel):
    """A frozen, strict value: unknown fields are refused, a changed one is a new value."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


def _reader(parse: units.Parser) -> BeforeValidator:
    def read(value: Any, info: ValidationInfo) -> Any:
        return parse(value, info.field_name or "value")

    return BeforeValidator(read)


def _writer(text: Callable[[Any], str]) -> PlainSerializer:
    return PlainSerializer(text, return_type=str)


Time = Annotated[int, _reader(units.parse_time), _writer(units.format_time)]
"""Nanoseconds."""
Size = Annotated[int, _reader(units.parse_size), _writer(units.format_size)]
"""Bytes."""
Rate = Annotated[int, _reader(units.parse_rate), _writer(units.format_rate)]
"""Bits per second."""
ByteRate = Annotated[int, _reader(units.parse_byte_rate), _writer(units.format_byte_rate)]
"""Bytes per second."""
Percent = Annotated[float, _reader(units.parse_percent), _writer(units.format_percent)]
"""A fraction of one, written in percent."""
Buffer = Annotated[str, _reader(units.parse_buffer)]
"""Bytes, or a multiple of the bandwidth-delay product, as written."""
