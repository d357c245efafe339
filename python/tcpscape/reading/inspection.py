"""Judges a YAML document before values are built from it: depth, size with its aliases, tags, keys and numbers.

What YAML 1.1 reads in a way that surprises (`010` is eight, `1:30` is ninety) is refused, and so are keys that are there twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NoReturn

import yaml

from tcpscape.errors import shown
from tcpscape.reading.files import Origin

DEEPEST = 64
"""Levels of mappings and lists within each other."""
MOST_NODES = 300_000
"""Values of a document, those that aliases repeat counted again."""
MOST_DIGITS = 20
"""Of a whole number: as many as 64 bits have."""
CORRECT = "correct the line"
INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)$")
"""A whole number as people write it."""
_SURPRISES = re.compile(r"[-+]?(?:0[0-7_]+|0b[01_]+|0x[0-9a-fA-F_]+|0o[0-7_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+|[0-9]+(?:_[0-9_]*)+)$")
"""Octal, binary and hexadecimal numbers, those to the base of 60, and those with underscores."""


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
            self._refuse(line, f"more than {DEEPEST} mappings and lists within each other", "write them flatter")
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
