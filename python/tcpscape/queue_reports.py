"""The reports of a trial's queues, which stay JSON until they are read: most readers of trials do not, and decoded they are most of a trial."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

from pydantic_core import CoreSchema, SchemaValidator, core_schema, from_json

from tcpscape.errors import StoreError
from tcpscape.reading.files import MIB, inflated
from tcpscape.reading.tables import LARGEST

MOST = 4 * MIB
"""Bytes of the reports of a trial's queues: 254 links have 0.2 MB. As Python's values they take some twenty times as much memory."""
NONE = b"[]"
"""The reports of no queues."""
FAST = 1
"""zlib's level: queues shrink to a quarter in some microseconds."""
_INTEGER = core_schema.int_schema(strict=True, ge=-(2**63), le=2**64 - 1)
PLAIN: Mapping[Any, CoreSchema] = {
    str: core_schema.str_schema(strict=True),
    bool: core_schema.bool_schema(strict=True),
    int: _INTEGER,
    float: core_schema.union_schema([_INTEGER, core_schema.float_schema(strict=True, ge=-LARGEST, le=LARGEST)], mode="left_to_right"),
}
"""What a plain value of each type may be in JSON; numbers are finite."""


class QueueReports(Sequence[Mapping[str, Any]]):
    """The reports of a trial's queues, decoded each time they are read. There is at least one."""

    __slots__ = ("_content", "_is_packed")

    def __init__(self, content: bytes, *, is_packed: bool) -> None:
        """`content`: JSON as an engine of ours gives it, or such JSON `is_packed` by zlib, of which nobody knows who has changed it."""
        self._content, self._is_packed = content, is_packed

    def packed(self) -> bytes:
        """The reports as a store keeps them."""
        return self._content if self._is_packed else zlib.compress(self._content, FAST)

    def _values(self) -> tuple[Mapping[str, Any], ...]:
        if not self._is_packed:
            return tuple(from_json(self._content))
        try:
            values = from_json(inflated(self._content, MOST))
            _reader().validate_python(values)
        except (ValueError, TypeError):
            raise StoreError("out: the reports of the queues of a trial are damaged; move the file away and run again") from None
        return tuple(values)

    @overload
    def __getitem__(self, place: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Mapping[str, Any], ...]: ...
    def __getitem__(self, place: int | slice) -> Mapping[str, Any] | tuple[Mapping[str, Any], ...]:
        return self._values()[place]

    def __len__(self) -> int:
        return len(self._values())

    def __bool__(self) -> bool:
        return True  # a trial without queues has none of these

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._values())

    def __eq__(self, other: object) -> bool:
        return self._values() == (other._values() if isinstance(other, QueueReports) else other)

    def __hash__(self) -> int:
        return hash(self._values())  # refused, as that of a tuple of mappings

    def __repr__(self) -> str:
        return repr(self._values())


@functools.cache
def _reader() -> SchemaValidator:
    """Reads the reports of the queues of a trial; of what metrics use, each value is of its type."""
    number, text = (core_schema.nullable_schema(PLAIN[kind]) for kind in (float, str))
    known = {
        **dict.fromkeys(("direction", "where", "at", "name", "kind", "link"), text),
        **dict.fromkeys(("depth", "packets_out", "bytes_out", "sent_bytes", "dropped", "marked", "reordered"), number),
        "drops": core_schema.union_schema([core_schema.dict_schema(core_schema.str_schema(), PLAIN[float]), number]),
        "delay": core_schema.nullable_schema(core_schema.dict_schema(core_schema.str_schema(), number)),
    }
    known["children"] = core_schema.list_schema(_some_fields(known))
    return SchemaValidator(core_schema.tuple_variable_schema(_some_fields(known)))


def _some_fields(known: Mapping[str, CoreSchema]) -> CoreSchema:
    """A mapping that may have these fields, and others."""
    fields = {name: core_schema.typed_dict_field(of, required=False) for name, of in known.items()}
    return core_schema.typed_dict_schema(fields, extra_behavior="allow")
