"""Writes `web/src/server/contract.ts`: what the explorer's server and its page say to each other, from the types of the server.

Run it when one of these has changed: `.venv/bin/python scripts/page_contract.py`. `tests/web/test_web_contract.py` fails while the file is not
current. A question's options are the fields of its class, its blocks those that it lists; what a route answers is listed in :data:`DOCUMENTS`.
"""

from __future__ import annotations

import collections.abc
import json
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from typing_extensions import NotRequired, Required

from tcpscape import units
from tcpscape.metrics.samples import STATES
from tcpscape.plots import diagnosis
from tcpscape.scenario.changes import CHANGE
from tcpscape.scenario.grammar import MIX
from tcpscape.web import download
from tcpscape.web.diagram import DiagramDocument
from tcpscape.web.questions import KINDS
from tcpscape.web.questions.check import EngineDocument
from tcpscape.web.questions.map import QUANTITIES
from tcpscape.web.questions.runs import METRICS
from tcpscape.web.routes import OpenedDocument
from tcpscape.web.start import StartDocument
from tcpscape.web.state import State
from tcpscape.web.take import PathDocument, TakenTexts
from tcpscape.words.flow import NAMES

WIDTH = 151
"""Characters of a line with its end, as prettier breaks it."""
FILE = Path(__file__).parent.parent / "web" / "src" / "server" / "contract.ts"
DOCUMENTS = (State, StartDocument, PathDocument, DiagramDocument, TakenTexts, EngineDocument, OpenedDocument)
"""The state, and what routes answer."""
HEAD = """\
/** What the server and the page say to each other: by `scripts/page_contract.py` from the types in `python/tcpscape/web/`, which say what each is. */
"""
PLAIN: dict[object, str] = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", object: "unknown"}


READ: Mapping[str, Mapping[str, float]] = {
    "time": {name: size / units.NS_PER_S for name, size in units.TIME_UNITS.items()},
    "rate": units.RATE_UNITS,
    "size": {"": 1, **units.SIZE_UNITS},
    "byterate": {name: size / 8 for name, size in units.RATE_UNITS.items()},
    "share": {"%": 0.01},
    "buffer": {"bdp": 1},
    "number": {"": 1},
}
"""What a field's texts are → the units in which they are read, in s, bit/s, bytes, bytes/s, 1."""


class Contract:
    """The types that were written, each once."""

    def __init__(self) -> None:
        self.interfaces: dict[str, str] = {}

    def name(self, of: object) -> str:
        """A Python type in TypeScript; what has fields becomes an interface."""
        origin, arguments = get_origin(of), get_args(of)
        if of in PLAIN:
            text = PLAIN[of]
        elif origin in (Annotated, NotRequired, Required):
            text = self.name(arguments[0])
        elif origin is Literal:
            text = " | ".join(json.dumps(value) for value in arguments)
        elif origin in (Union, types.UnionType):
            text = " | ".join(dict.fromkeys(self.name(each) for each in arguments))
        elif origin in (list, tuple, collections.abc.Sequence):
            inner = self.name(arguments[0])
            text = f"({inner})[]" if "|" in inner else f"{inner}[]"
        elif origin in (dict, collections.abc.Mapping):
            text = "Partial<State>" if arguments == (str, Any) else f"Record<{self.name(arguments[0])}, {self.name(arguments[1])}>"
        else:
            text = self.interface(of)
        return text

    def interface(self, of: Any) -> str:  # noqa: ANN401
        """The name of the interface of a type with fields."""
        if not list(fields(of)):
            return "Record<string, never>"
        if of.__name__ not in self.interfaces:
            self.interfaces[of.__name__] = ""  # its place, before those that it needs
            lines = [f"  {name}{mark}: {self.name(hint)};\n" for name, mark, hint in fields(of)]
            self.interfaces[of.__name__] = f"export interface {of.__name__} {{\n{''.join(lines)}}}\n"
        return str(of.__name__)


def fields(of: Any) -> Iterator[tuple[str, str, object]]:  # noqa: ANN401
    """Name, `?` where it may be missing, and type of each field."""
    hints = get_type_hints(of, include_extras=True)
    for name in getattr(of, "model_fields", hints):
        is_optional = get_origin(hints[name]) is NotRequired or name in getattr(of, "__optional_keys__", ())
        yield name, "?" if is_optional else "", hints[name]


def text() -> str:
    """The file."""
    contract = Contract()
    for document in DOCUMENTS:
        contract.interface(document)
    blocks, options = "", ""
    for kind, question in KINDS.items():
        named = "".join(f"    {name}: {contract.name(values)};\n" for name, values in question.blocks.items())
        asked = "".join(f"    {name}?: {contract.name(hint)};\n" for name, _, hint in fields(question))
        blocks += f"  {kind}: {{\n{named}  }};\n"
        options += f"  {kind}: {{\n{asked}  }};\n"
    parts = [HEAD, *(f"{interface}\n" for interface in contract.interfaces.values())]
    parts += [f"/** The blocks of each kind of question: the types of their values. */\nexport interface Blocks {{\n{blocks}}}\n\n"]
    parts += [f"/** The options of each kind of question. */\nexport interface Options {{\n{options}}}\n\n"]
    return "".join(parts) + "\n".join(tables())


def tables() -> Iterator[str]:
    """Tables of the server that the page shows."""
    yield constant("METRICS", [{"name": name, "title": metric.title, "quantity": metric.quantity} for name, metric in METRICS.items()])
    yield constant("QUANTITIES", {name: {"title": each.title, "quantity": each.quantity, "told": each.told} for name, each in QUANTITIES.items()})
    yield constant("FILES", [{"kind": kind.name, "title": kind.title, "note": kind.note} for kind in download.KINDS.values()])
    yield constant("CAUSES", {NAMES[cause]: {"colour": colour, "pattern": cause} for cause, (colour, _) in diagnosis.CAUSES.items()})
    yield constant("UNITS", READ)
    yield constant("GRAMMAR", {name: pattern.pattern.replace("(?P<", "(?<") for name, pattern in {"change": CHANGE, "mix": MIX}.items()})
    yield f"export const STATES = {value(STATES)};\n"


def constant(name: str, rows: Mapping[str, object] | list[dict[str, object]]) -> str:
    """A table, a row to each line."""
    named = [line(row, of) for row, of in rows.items()] if isinstance(rows, Mapping) else [f"  {value(row)},\n" for row in rows]
    begin, end = "{}" if isinstance(rows, Mapping) else "[]"
    return f"export const {name} = {begin}\n{''.join(named)}{end} as const;\n"


def line(name: str, of: object) -> str:
    """A row of a table, on several lines where it is too long for one."""
    text = f"  {key(name)}: {value(of)},\n"
    if len(text) <= WIDTH or not isinstance(of, Mapping):
        return text
    return f"  {key(name)}: {{\n{''.join(f'    {key(unit)}: {value(size)},{chr(10)}' for unit, size in of.items())}  }},\n"


def key(name: str) -> str:
    """A name of a field as prettier writes it."""
    return name if name.isidentifier() else json.dumps(name, ensure_ascii=False)


def value(of: object) -> str:
    """A plain value as prettier writes it."""
    if isinstance(of, Mapping):
        return f"{{ {', '.join(f'{key(name)}: {value(each)}' for name, each in of.items())} }}"
    if isinstance(of, (list, tuple)):
        return f"[{', '.join(value(each) for each in of)}]"
    if isinstance(of, float):
        return str(int(of)) if of.is_integer() else repr(of).replace("e-0", "e-")
    return json.dumps(of, ensure_ascii=False)


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
