"""Mutations of good documents: of their values, their text, their bytes."""

import copy
import gzip
import json
import re
import zlib
from functools import cache
from typing import Any

import yaml
from hypothesis import strategies as st

from robustness import values

BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(ord("b"), ord("k")))
"""YAML whose aliases stand for 9^10 values."""
SNIPPETS = (
    b"\0",
    b"\xff",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x1b[31m",
    b"\t",
    b"\r",
    b"---\n",
    b"...\n",
    b"&a [*a]\n",
    b"!!python/object/apply:os.system ['touch PWNED']\n",
    b"!!binary x\n",
    b"<<: {}\n",
    b"? [a]\n: b\n",
    b"%YAML 9.9\n",
    b"{",
    b"[" * 3000,
    b"{a: " * 3000,
    b"x" * 100_000,
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"9" * 5000,
    b"[/x]",
    b"\xe2\x80\xae",
    b"&x *x",
    b"0x_",
    b"190:20:30",
    b"- a\n  b: c\n",
    b'"\\ud800"',
    b"!!timestamp 2001-99-99",
    b"!!int x",
    b"!!set {a}",
    b"!!float x",
    b"0b_",
    b"0o_9",
    b",",
    b":",
    b"\n\n",
)


def scalars() -> st.SearchStrategy[Any]:
    """Values of any type that a document may have instead of the right one."""
    return st.one_of(
        values.texts(),
        values.quantities(),
        values.tc_words(),
        values.labels(),
        st.sampled_from(
            (
                None,
                True,
                False,
                0,
                -1,
                1,
                10**30,
                -(10**30),
                10**400,
                1.5,
                float("nan"),
                float("inf"),
                -float("inf"),
                1e300,
                [],
                {},
                [[]],
                [{}],
                {"": ""},
                {"a": {"b": {}}},
                [None],
                ["x"] * 1000,
                {"x": None},
                [1, [2, [3]]],
            )
        ),
    )


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Ways to every value inside."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:5]) if isinstance(value, list) else ()
    found = []
    for key, of in inner:
        found += [(*path, key), *_places(of, (*path, key))]
    return found


_NAMES = ("", "x", "[/x]", "a\nb", "\x1b[31m", 1, None, True, "y" * 2000, "__class__")
"""What a key may be called instead; also its plural and its capitals."""


STEPS = ("replace", "replace", "replace", "replace", "drop", "rename", "wrap", "exchange", "add", "nest", "double")


def _change(draw: st.DrawFn, data: Any, holder: Any, key: Any) -> None:
    """Does one of the steps to the value at `key` of a mapping or list within the data."""
    match draw(st.sampled_from(STEPS)):
        case "replace":
            holder[key] = draw(scalars())
        case "drop":
            del holder[key]
        case "rename" if isinstance(holder, dict):
            holder[draw(st.sampled_from((f"{key}s", str(key).upper(), *_NAMES)))] = holder.pop(key)
        case "wrap":
            value = holder[key]
            holder[key] = draw(st.sampled_from(([value], {"x": value}, [value, value], {str(value)[:40]: value})))
        case "exchange":
            there = data
            for step in draw(st.sampled_from(_places(data))):
                there = there[step]
            holder[key] = copy.deepcopy(there)
        case "add" if isinstance(holder, dict):
            holder[draw(st.sampled_from(("nosuch", "", "name", "about", "seeds", "cca", "rate", "delay")))] = draw(scalars())
        case "nest":
            for _ in range(draw(st.sampled_from((3, 40, 90)))):
                holder[key] = [holder[key]]
        case "double" if isinstance(holder, list):
            holder += [copy.deepcopy(holder[key])] * draw(st.sampled_from((1, 3, 30)))


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """The values of a document with one to three of them left out, renamed, replaced, wrapped, exchanged or added."""
    data = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        places = _places(data)
        if not places or draw(st.integers(0, 30)) == 30:
            return draw(scalars())
        *way, key = draw(st.sampled_from(places))
        holder = data
        for step in way:
            holder = holder[step]
        _change(draw, data, holder, key)
    return data


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes with one to three of them cut off, turned, doubled, put in or taken out; lines too."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.sampled_from(("truncate", "flip", "insert", "cut", "lines", "line", "empty", "bomb", "encode", "number", "number", "crlf"))):
            case "truncate":
                data = data[:at]
            case "flip" if data:
                data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
            case "insert":
                data = data[:at] + draw(st.sampled_from(SNIPPETS)) + data[at:]
            case "cut":
                data = data[:at] + data[at + draw(st.sampled_from((1, 8, 100))) :]
            case "lines":
                lines = data.split(b"\n")
                data = b"\n".join([*lines, *lines])
            case "line":
                lines = data.split(b"\n")
                place = draw(st.integers(0, len(lines) - 1))
                data = b"\n".join([*lines[:place], *[lines[place]] * draw(st.sampled_from((0, 2, 3))), *lines[place + 1 :]])
            case "empty" if draw(st.booleans()):
                data = draw(st.sampled_from((b"", b"\n", b" ", b"\0" * 1000, b"null", b"[]", b"{}", b"0")))
            case "bomb" if draw(st.booleans()):
                data = BOMB + data
            case "encode":
                data = data.decode("utf-8", "replace").encode(draw(st.sampled_from(("utf-16", "utf-32", "utf-8-sig"))))
            case "number":
                data = _other_number(draw, data)
            case "crlf":
                data = data.replace(b"\n", draw(st.sampled_from((b"\r\n", b"\r", b"\n\n"))))
    return data


def _other_number(draw: st.DrawFn, data: bytes) -> bytes:
    found = list(re.finditer(rb"\d+(?:\.\d+)?", data[:200_000]))
    if not found:
        return data
    one = draw(st.sampled_from(found))
    return data[: one.start()] + draw(st.sampled_from(values.NUMBERS)).encode() + data[one.end() :]


def as_yaml(value: Any) -> bytes:
    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False).encode("utf-8", "replace")


def yaml_documents(data: bytes) -> st.SearchStrategy[bytes]:
    return st.one_of(mutated(yaml.safe_load(data)).map(as_yaml), mutated(yaml.safe_load(data)).map(as_yaml), damaged(data))


def json_documents(data: bytes) -> st.SearchStrategy[bytes]:
    return st.one_of(mutated(json.loads(data)).map(lambda v: json.dumps(v, default=str).encode()), damaged(data))


def packed(data: bytes) -> st.SearchStrategy[bytes]:
    """gzipped JSON: the content mutated, or the compressed bytes damaged, not compressed, doubled, or a bomb."""
    plain = gzip.decompress(data)
    return st.one_of(
        json_documents(plain).map(lambda d: gzip.compress(d, 1)),
        damaged(data),
        st.deferred(lambda: st.sampled_from((zip_bomb(), plain, data + data))),
    )


@cache
def zip_bomb() -> bytes:
    """800 MB of blanks, in under a megabyte."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([packer.compress(b" " * (1 << 20)) for _ in range(800)]) + packer.flush()
