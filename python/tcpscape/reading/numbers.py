"""Numbers in what a program writes, by names: of JSON the way to each, of text `NAME=NUMBER`, `NAME: NUMBER` and `NUMBER UNIT/s`.

Of JSON, a whole document or one that begins where a line begins (the last one counts), lists have places: `intervals.0.sum.bits_per_second`; large
lists are left out. Of an output above :data:`MOST_READ` characters that is no document, the last ones are read. Of h2load's summary, `req/s` and the
`requests:` line are among what the rules find. A text that is one number has the name `output`.
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
MOST_READ = 1 << 20
"""Characters of an output that are read, its last ones: a result is written at the end."""
MOST_FAILURES = 100
"""Lines that begin as a document does and begin none, above which no document is looked for: each costs a time of its own."""
_BEGINNING = re.compile(r"^[{\[]", re.MULTILINE)
_DECODER = json.JSONDecoder()
_NUMBER = r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,9})?"
_PAIR = re.compile(rf"(?<![\w.%/-])([A-Za-z_][\w.%/-]{{0,63}})\s{{0,16}}[=:]\s{{0,16}}({_NUMBER})(?![\w.])")
_PER_SECOND = re.compile(rf"(?<![\w.])({_NUMBER})\s{{0,16}}([A-Za-z]{{1,16}}/s(?:ec)?)\b")


def named(text: str) -> dict[str, float]:
    """The numbers of an output; those that are not finite are left out, of a name that comes again the last one counts."""
    document = _document(text)
    pairs = _leaves(document) if document is not None else _of_text(_end(text))
    finite: dict[str, float] = {}
    for name, number in pairs:
        if math.isfinite(number):
            finite[name] = number
        if len(finite) >= MOST:
            break
    return finite


def _document(text: str) -> dict[str, Any] | list[Any] | None:
    """The JSON document that the text is, or the last one in it that begins where a line begins and has its last line to itself."""
    if text.lstrip().startswith(("{", "[")):
        try:
            return json.loads(text)  # type: ignore[no-any-return]
        except (ValueError, RecursionError):
            pass
    return _last_document(_end(text))


def _last_document(text: str) -> dict[str, Any] | list[Any] | None:
    last, end, failures = None, 0, 0
    for place in (begin.start() for begin in _BEGINNING.finditer(text)):
        if place < end:
            continue
        try:
            document, after = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            if (failures := failures + 1) == MOST_FAILURES:
                return None
            continue
        if not text[after : _line_end(text, after)].strip():
            last, end = document, after
    return last


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _end(text: str) -> str:
    """The whole lines at the end of an output that are read."""
    return text if len(text) <= MOST_READ else text[-MOST_READ:].partition("\n")[2]


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
