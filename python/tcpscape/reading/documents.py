"""YAML, TOML, JSON and CSV as plain values: judged before anything is built from them, and every error one line that names the line of the file.

Plain values are mappings with text as keys, lists, text, whole numbers, true, false and nothing. In YAML and TOML a number with a dot stays text,
so that `kernel: 6.10` is not `6.1`; so do dates. Keys that are there twice are refused, since only one of both would count.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tcpscape.errors import shown
from tcpscape.reading import files
from tcpscape.reading.files import Kind, Origin

DEEPEST = 64
"""Levels of mappings and lists within each other."""
TOO_DEEP, FLATTEN = f"more than {DEEPEST} mappings and lists within each other", "write them flatter"
MOST_NODES = 300_000
"""Values of a document, those that aliases repeat counted again."""
MOST_DIGITS = 20
"""Of a whole number: as many as 64 bits have."""
CORRECT = "correct the line"
INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)$")
"""A whole number as people write it."""
_SURPRISES = re.compile(r"[-+]?(?:0[0-7_]+|0b[01_]+|0x[0-9a-fA-F_]+|0o[0-7_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+|[0-9]+(?:_[0-9_]*)+)$")
"""Octal, binary and hexadecimal numbers, those to the base of 60, and those with underscores."""
MOST_VALUES = 3_000_000
"""Values of a JSON document, as commas and brackets count them."""
MOST_DOTS = 200
"""Of a key of TOML: its parser needs the square of them."""
LARGEST = 1e18
"""Of the numbers of a CSV, so that sums of them stay whole numbers of 64 bits."""
MOST_CELLS = 3_000_000
"""Cells of a CSV that is read as text."""

Type = TypeVar("Type")


def from_yaml(text: str, origin: Origin) -> Any:
    """Plain values from one YAML document. :raises TcpscapeError: one line, with the number of the line that is wrong."""
    try:
        Inspection(origin).judge(yaml.parse(text, _PARSER))
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as e:
        line = e.problem_mark.line + 1 if e.problem_mark else "?"
        if "nesting depth" in (e.problem or ""):  # libyaml's own limit, met before the parser hands out what begins
            origin.refuse(f"line {line}: {TOO_DEEP}", FLATTEN)
        origin.refuse(f"not YAML at line {line}: {e.problem or e.context}", CORRECT)
    except yaml.reader.ReaderError as e:
        line = text.count("\n", 0, e.position) + 1 if isinstance(e.position, int) else "?"
        origin.refuse(f"not YAML at line {line}: a character that YAML does not allow, {shown(chr(e.character))}", CORRECT)
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        origin.refuse(f"not YAML: {e}", "correct it")


def from_toml(text: str, origin: Origin) -> Any:
    """Plain values from TOML. :raises TcpscapeError: one line, with the number of the line that is wrong."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MOST_DOTS and any(run.count(".") > MOST_DOTS for run in re.findall(r"[\w.\-\"' \t]+", line)):
            origin.refuse(f"line {number}: a key with more than {MOST_DOTS} dots", CORRECT)
    try:
        data = tomllib.loads(text, parse_float=str)
    except tomllib.TOMLDecodeError as e:
        origin.refuse(f"not TOML: {e}", CORRECT)
    except RecursionError:
        origin.refuse(f"more than {DEEPEST} tables and lists within each other", FLATTEN)
    except ValueError:
        origin.refuse("a number of more than 4300 digits", f"write at most {MOST_DIGITS}")
    _expect_bounded(data, origin)
    return data


def from_json(text: str, origin: Origin) -> Any:
    """Plain values from one JSON document, in which no key is there twice.

    :raises TcpscapeError: one line, with the number of the line that is wrong.
    """

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            names = [name for name, _ in pairs]
            origin.refuse(f"{shown(next(name for name in names if names.count(name) > 1))} is there twice in one object")
        return values

    values, broken = json_values(text, origin, json.JSONDecoder(object_pairs_hook=mapping))
    if broken:
        origin.refuse(f"is not JSON at line {broken.line}")
    if len(values) != 1:
        origin.refuse(f"has {len(values)} JSON values instead of one")
    return values[0]


def json_values(text: str, origin: Origin, decoder: json.JSONDecoder | None = None) -> tuple[list[Any], BrokenValue | None]:
    """The JSON values of a text one after the other, and the one that cannot be read, with which they end; None where all can.

    NaN and the infinities, which tools write although JSON has none, are numbers here; who uses them judges them.
    """
    if (count := text.count(",") + text.count("[") + text.count("{")) > MOST_VALUES:
        origin.refuse(f"has about {count} values, and at most {MOST_VALUES} are read", "split it, or measure at longer intervals")
    values: list[Any] = []
    decoder, at = decoder or json.JSONDecoder(), 0
    while (at := _after_spaces(text, at)) < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except RecursionError:
            origin.refuse(f"more than {DEEPEST} objects and lists within each other")
        except json.JSONDecodeError as e:
            return values, BrokenValue(at, e.lineno)
        except ValueError:
            origin.refuse("a number of more than 4300 digits")
        _expect_bounded(value, origin)
        values.append(value)
        at = end
    if _SURROGATE.search(text) and not _is_encodable(values):
        origin.refuse("holds half of a character, which no encoding has")
    return values, None


class BrokenValue(NamedTuple):
    """A JSON value that cannot be read."""

    begin: int
    """Its place in the text."""
    line: int
    """Where reading it stopped."""


def from_csv(text: str, origin: Origin) -> list[dict[str, str]]:
    """The rows of a CSV with a header, column → text; lines that begin with # are comments.

    :raises TcpscapeError: one line, where there is no header, a name is there twice, or a row has more or fewer cells than the header.
    """
    if text.count(",") + text.count("\n") > MOST_CELLS:
        origin.refuse(f"has more than {MOST_CELLS} cells", "split it")
    reader = csv.reader(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    try:
        header = next(reader, [])
        if not any(header):
            origin.refuse("has no header", "write the names of the columns into the first line")
        if repeated := next((name for name in header if header.count(name) > 1), None):
            origin.refuse(f"has two columns {shown(repeated)}", "give each column its own name")
        rows: list[dict[str, str]] = []
        for cells in reader:
            if len(cells) != len(header):
                if cells:
                    origin.refuse(f"row {len(rows) + 1}: {shown(cells)} are not as many values as columns", "quote values that hold a comma")
                continue
            rows.append(dict(zip(header, cells, strict=True)))
    except csv.Error as e:
        origin.refuse(f"is not a CSV at line {reader.line_num}: {e}", CORRECT)
    return rows


def cell_number(text: str | None) -> float:
    """A cell as a number from 0 on; an empty one is 0. :raises ValueError: for anything else, also for `inf` and `nan`."""
    try:
        value = float(text) if text else 0.0
    except ValueError:
        value = math.nan
    if not 0 <= value <= LARGEST:
        raise ValueError(f"{shown(text)} is no number from 0 to {LARGEST:g}")
    return value


def as_type(kind: type[Type], data: Any, origin: Origin) -> Type:
    """Plain values as a dataclass or a pydantic model. :raises TcpscapeError: one line with the first field that is wrong."""
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as e:
        origin.refuse(field_problem(e))


def json_file(path: Path | str, kind: Kind, field: str = "") -> Any:
    """Plain values of the JSON document in a file. :raises TcpscapeError: one line, where it cannot be read or is no JSON."""
    return from_json(files.text(path, kind, field), Origin(str(path), kind, field))


def field_problem(e: ValidationError) -> str:
    """What is wrong with the first field that is: `field runs.0.seed is missing`."""
    first = e.errors(include_url=False)[0]
    field = shown(".".join(str(part) for part in first["loc"]))[1:-1]
    if first["type"] == "missing":
        return f"field {field} is missing"
    where, value = f"field {field}: " if field else "", shown(first["input"])
    if expected := EXPECTED.get(first["type"]):
        return f"{where}{value} is there, where {expected} belongs"
    return f"{where}{first['msg'][:1].lower()}{first['msg'][1:]}, not {value}"


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""An escaped half of a character; two halves in a row are one."""


def _is_encodable(values: list[Any]) -> bool:
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _after_spaces(text: str, at: int) -> int:
    match = _SPACES.match(text, at)
    return match.end() if match else at


_SPACES = re.compile(r"\s*")


def _expect_bounded(data: Any, origin: Origin) -> None:
    """Refuses plain values that are too deep or hold numbers of too many digits, and what TOML has beside plain values."""
    waiting = [(data, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, (dict, list)):
            if depth >= DEEPEST:
                origin.refuse(f"more than {DEEPEST} levels of values within each other", FLATTEN)
            inner = value.values() if isinstance(value, dict) else value
            waiting += [(item, depth + 1) for item in inner if not isinstance(item, (str, float)) and item is not None]
        elif isinstance(value, int):
            if value.bit_length() > _MOST_BITS:
                origin.refuse(f"{shown(value)} is a number of too many digits", f"write at most {MOST_DIGITS}")
        elif not isinstance(value, (str, float)) and value is not None:
            origin.refuse(f"{value} is a date or a time, which nothing here is", "write it in quotes, or leave it out")


EXPECTED: Mapping[str, str] = {
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type"), "a mapping"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("string_type", "string_sub_type"), "a text"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
}
"""pydantic's types of errors → what belongs there."""
_MOST_BITS = 67
"""Of a whole number of 20 digits."""


class Inspection:
    """Judges the events of a YAML document, before values are built from them: depth, size with its aliases, tags, keys and numbers."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.open: list[_Open] = []
        self.sizes: dict[str, int | None] = {}
        """Values of what each anchor names; None while it is not complete."""
        self.total = 0

    def judge(self, events: Iterable[Any]) -> None:
        """Goes through the document and refuses the first thing that is wrong."""
        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, yaml.CollectionEndEvent):
                ended = self.open.pop()
                self._complete(ended.anchor, ended.size)
            elif isinstance(event, (yaml.AliasEvent, yaml.ScalarEvent, yaml.CollectionStartEvent)):
                if self.open and self.open[-1].expects_key and not isinstance(event, yaml.ScalarEvent):
                    self._refuse(line, "a key that is no word", "write a word before the colon")
                if isinstance(event, yaml.AliasEvent):
                    self._alias(str(event.anchor), line)
                elif event.tag not in (None, "!"):
                    self._refuse(line, f"the tag {shown(event.tag)} is not read", "write the plain value")
                elif isinstance(event, yaml.ScalarEvent):
                    self._scalar(event, line)
                else:
                    self._begin(event, line)

    def _refuse(self, line: int, problem: str, fix: str = CORRECT) -> NoReturn:
        self.origin.refuse(f"line {line}: {problem}", fix)

    def _count(self, size: int, line: int) -> None:
        self.total += size
        if self.total > MOST_NODES:
            self._refuse(line, f"more than {MOST_NODES} values, those that aliases repeat among them", "write fewer, or split the file")

    def _complete(self, anchor: str | None, size: int) -> None:
        """A key or value has ended: what is around it goes on to the next."""
        if anchor:
            self.sizes[anchor] = size
        if self.open:
            self.open[-1].items += 1
            self.open[-1].size += size

    def _begin(self, event: Any, line: int) -> None:
        if len(self.open) >= DEEPEST:
            self._refuse(line, TOO_DEEP, FLATTEN)
        if event.anchor:
            self.sizes[event.anchor] = None
        self._count(1, line)
        self.open.append(_Open(event.anchor, isinstance(event, yaml.MappingStartEvent)))

    def _alias(self, anchor: str, line: int) -> None:
        if anchor not in self.sizes:
            self._refuse(line, f"the alias *{anchor} has no anchor before it", "write &name at the value that it stands for")
        size = self.sizes[anchor]
        if size is None:
            self._refuse(line, f"the alias *{anchor} stands within the value that it names", "write the value out")
        self._count(size, line)
        self._complete(None, size)

    def _scalar(self, event: Any, line: int) -> None:
        around = self.open[-1] if self.open else None
        if around and around.expects_key:
            if event.value in around.keys and event.value != "<<":
                self._refuse(line, f"{shown(event.value)} is there twice, first in line {around.keys[event.value]}", "remove one of both")
            around.keys[event.value] = line
        elif not event.style:
            self._number(event.value, line)
        self._count(1, line)
        self._complete(event.anchor, 1)

    def _number(self, text: str, line: int) -> None:
        if _SURPRISES.match(text):
            problem = f"{shown(text)} is no decimal number, and YAML reads it as another one than many expect"
            self._refuse(line, problem, "write it in decimal digits, or in quotes")
        if len(text) > MOST_DIGITS and INTEGER.match(text):
            self._refuse(line, f"a number of {len(text)} digits", f"write at most {MOST_DIGITS}")


class _Open:
    """A mapping or list of which not all values were met yet."""

    def __init__(self, anchor: str | None, is_mapping: bool) -> None:
        self.anchor = anchor
        self.is_mapping = is_mapping
        self.size = 1
        """Values in it so far, itself counted."""
        self.items = 0
        """Keys and values directly in it."""
        self.keys: dict[str, int] = {}
        """Key → its line."""

    @property
    def expects_key(self) -> bool:
        return self.is_mapping and self.items % 2 == 0


_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where PyYAML was built with it: ten times as fast."""
_CORE = "tag:yaml.org,2002:"
_AS_TEXT = {f"{_CORE}{name}" for name in ("float", "timestamp", "int", "value")}


class _Loader(_PARSER):  # type: ignore[misc, valid-type]
    """Builds plain values: whole numbers are decimal, those with a dot and dates stay text, and so do all keys."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Puts in what `<<` names; then every key is text as written, `on` and `1` too."""
        super().flatten_mapping(node)
        for key, _ in node.value:
            key.tag = f"{_CORE}str"


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rx) for tag, rx in resolvers if tag not in _AS_TEXT] for first, resolvers in _PARSER.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(f"{_CORE}int", INTEGER, list("-+0123456789"))
