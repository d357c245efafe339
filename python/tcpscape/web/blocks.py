"""A block: a piece of an answer on its way to the page, a JSON header with columns of numbers behind it.

In a stream of server-sent events it is one event named `block` whose data are the base64 of: the header's length (32 bit, little endian), the header
(JSON in UTF-8, padded with spaces so that the columns begin at a multiple of 8), and the columns, float64 or float32, little endian, each padded to a
multiple of 8. The header's `columns` has the name, type and length of each.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    import numpy as np

ALIGNED = 8
"""Bytes to whose multiple header and columns are padded."""
TYPES = {"<f8": "f64", "<f4": "f32"}
"""numpy's types of columns, and their names in the header."""


@dataclass(frozen=True)
class Block:
    """A piece of an answer."""

    name: str
    """What it is: each question says which blocks it sends."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Plain values; what is not finite becomes null."""
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Arrays of float64 or float32, one-dimensional."""

    def encode(self, kind: str, generation: int) -> bytes:
        """The block as bytes, for the question `kind` as it was asked the `generation`-th time."""
        described = [{"name": name, "type": TYPES[column.dtype.str], "length": len(column)} for name, column in self.columns.items()]
        header = {"kind": kind, "generation": generation, "name": self.name, "values": finite(self.values), "columns": described}
        text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
        text += b" " * (-(len(text) + 4) % ALIGNED)
        return b"".join([struct.pack("<I", len(text)), text, *(_padded(column.tobytes()) for column in self.columns.values())])


def event(data: bytes) -> str:
    """The server-sent event of an encoded block."""
    return f"event: block\ndata: {base64.b64encode(data).decode()}\n\n"


def finite(value: Any) -> Any:
    """Plain values, models and data classes as mappings, in which every number that is not finite is None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, BaseModel):
        return finite(value.model_dump(mode="json"))
    if is_dataclass(value) and not isinstance(value, type):
        return finite(asdict(value))
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % ALIGNED)
