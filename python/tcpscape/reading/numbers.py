"""Numbers in what a program writes, by names: of JSON the way to each, of text `NAME=NUMBER`, `NAME: NUMBER` and `NUMBER UNIT/s`.

Of JSON, a whole document or one on a line of its own (the last one counts), lists have places: `intervals.0.sum.bits_per_second`; large lists are
left out. Of h2load's summary, `req/s` and the `requests:` line are among what the rules find. A text that is one number has the name `output`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

MOST = 1_000
"""Most numbers of an output."""
LONGEST_LIST = 20
"""Entries of a list above which it is left out."""
OUTPUT = "output"
"""Name of the number that a text is."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_PAIR = re.compile(rf"([A-Za-z_][\w.%/-]*)\s*[=:]\s*({_NUMBER})(?![\w.])")
_PER_SECOND = re.compile(rf"(?<![\w.])({_NUMBER})\s*([A-Za-z]+/s(?:ec)?)\b")


def named(text: str) -> dict[str, float]:
    """The numbers of an output; those that are not finite are left out, of a name that comes again the last one counts."""
    document = _document(text)
    pairs = _leaves(document) if document is not None else _of_text(text)
    finite: dict[str, float] = {}
    for name, number in pairs:
        if math.isfinite(number):
            finite[name] = number
        if len(finite) >= MOST:
            break
    return finite


def _document(text: str) -> dict[str, Any] | list[Any] | None:
    """The JSON document that the text is, or its last line that is one."""
    for part in (text, *reversed(text.splitlines())):
        if part.lstrip().startswith(("{", "[")):
            try:
                return json.loads(part)  # type: ignore[no-any-return]
            except (ValueError, RecursionError):
                continue
    return None


def _leaves(value: Any, way: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in a document, with the way to each."""
    if isinstance(value, bool):
        yield way or OUTPUT, float(value)
    elif isinstance(value, (int, float)):
        try:
            yield way or OUTPUT, float(value)
        except OverflowError:
            return
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{way}.{name}" if way else str(name))
    elif isinstance(value, list) and len(value) <= LONGEST_LIST:
        for place, inner in enumerate(value):
            yield from _leaves(inner, f"{way}.{place}" if way else str(place))


def _of_text(text: str) -> Iterator[tuple[str, float]]:
    if re.fullmatch(rf"\s*{_NUMBER}\s*", text):
        yield OUTPUT, float(text)
    yield from ((unit, float(number)) for number, unit in _PER_SECOND.findall(text))
    yield from ((name, float(number)) for name, number in _PAIR.findall(text))
