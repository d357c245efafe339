"""Damage for the tests of readers: good documents with wrong values, missing or repeated parts, and bytes that were changed. The seed decides all."""

from __future__ import annotations

import copy
import random
from typing import Any

JUNK = (
    None, True, False, -1, 0, 1.5, 10**30, 10**400, float("nan"), float("inf"), 1e308, "", "x", "-5ms", "nan", "1e999", "../x", "a\nb", "\x1b[2J", "\ud800",
    "x" * 100_000, [], {}, [None], [[]], {"a": 1}, [1, 2, 3], {"": None}, 10**9, -(10**9), "010", "<b>", "[/x]", "${a}", 1e-9,
)  # fmt: skip
"""Values that belong nowhere, or not where they are put."""
LEFT_OUT = object()
SNIPPETS = (
    b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[31m", b"\t", b"\r", b"---\n", b"&a [*a]\n", b"!!python/object/apply:os.system [id]\n", b"<<: {}\n",
    b"{", b"[" * 3000, b"{a: " * 3000, b"NaN", b"1e999", b"9" * 5000, b"0x_", b"190:20:30", b'"\\ud800"', b"-", b",", b":", b"\n\n", b"#", b"'", b'"', b"=",
)  # fmt: skip
"""Bytes that are put into a file."""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every value in a document; of a list only to the first, the second and the last."""
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = [(i, value[i]) for i in sorted({0, 1, len(value) - 1}) if 0 <= i < len(value)]
    else:
        return []
    return [way for key, of in inner for way in ((*path, key), *places(of, (*path, key)))]


def document(good: Any, rng: random.Random) -> Any:
    """A document with one to three of its values replaced, left out, wrapped, repeated or exchanged."""
    damaged = copy.deepcopy(good)
    for _ in range(rng.choice((1, 1, 2, 3))):
        ways = places(damaged)
        if not ways or rng.random() < 0.03:
            return rng.choice(JUNK)
        *path, last = rng.choice(ways)
        home = damaged
        for key in path:
            home = home[key]
        match rng.choice(("junk", "junk", "junk", "junk", "out", "wrap", "repeat", "exchange", "rename")):
            case "junk":
                home[last] = copy.deepcopy(rng.choice(JUNK))
            case "out":
                del home[last]
            case "wrap":
                home[last] = rng.choice(([home[last]], {"x": home[last]}))
            case "repeat" if isinstance(home, list):
                home.append(copy.deepcopy(home[last]))
            case "exchange":
                *other, key = rng.choice(ways)
                there = damaged
                for step in other:
                    there = there[step]
                home[last], there[key] = copy.deepcopy(there[key]), copy.deepcopy(home[last])
            case "rename" if isinstance(home, dict):
                home[rng.choice(("x", "", f"{last}s", "__class__"))] = home.pop(last)
    return damaged


def content(good: bytes, rng: random.Random) -> bytes:
    """A file with one to three places changed, cut out, repeated or filled, or its end missing."""
    raw = bytearray(good)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(raw) + 1)
        match rng.choice(("cut", "flip", "flip", "put", "put", "out", "twice", "end")):
            case "flip" if at < len(raw):
                raw[at] = rng.choice((0, 255, 128, raw[at] ^ (1 << rng.randrange(8))))
            case "put":
                raw[at:at] = rng.choice(SNIPPETS)
            case "out":
                del raw[at : at + rng.choice((1, 4, 40))]
            case "twice":
                raw[at:at] = raw[max(0, at - rng.choice((10, 80))) : at]
            case "end" if rng.random() < 0.5:
                raw = raw[:at]
    return bytes(raw)
