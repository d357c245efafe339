"""Fields of Protocol Buffers as bytes: what a writer of one fixed schema needs of the encoding.

Source: the encoding guide, protobuf.dev/programming-guides/encoding. A field is its number and wire type as a varint, then the value: a varint
(wire type 0), 8 bytes (1), or a length and as many bytes (2). A message is its fields one after the other; a submessage is a field of bytes.
"""

from __future__ import annotations

import struct

VARINT, FIXED64, LENGTH_DELIMITED = 0, 1, 2
"""Wire types."""
NEGATIVE = 2**64
"""A negative number is written as its two's complement of 64 bits."""


def varint(value: int) -> bytes:
    """An integer in groups of 7 bits, the least significant first; the high bit says that another group follows."""
    value %= NEGATIVE
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def integer(number: int, value: int) -> bytes:
    """A field of an integer type (`int64`, `uint32`, `bool`, an enum)."""
    return varint(number << 3 | VARINT) + varint(value)


def double(number: int, value: float) -> bytes:
    """A field of type `double`."""
    return varint(number << 3 | FIXED64) + struct.pack("<d", value)


def message(number: int, *fields: bytes) -> bytes:
    """A field whose value is a message of these fields, or plain bytes."""
    content = b"".join(fields)
    return varint(number << 3 | LENGTH_DELIMITED) + varint(len(content)) + content


def text(number: int, value: str) -> bytes:
    """A field of type `string`."""
    return message(number, value.encode())
