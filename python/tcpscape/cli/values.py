"""What the command line takes for the value of an option: nothing empty, no control characters, numbers as people write them.

Python's own `int` and `float` also read `1_0`, digits of other scripts, `nan` and `inf`; an empty path is the current directory to Python. Each of
these is a slip, or a variable of a script that is not set.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from tcpscape.errors import refuse, shown
from tcpscape.names import expect_texts
from tcpscape.units import NUMBER

MOST_DIGITS = 18
"""Digits of a whole number: below 2^63."""
_WHOLE = re.compile(rf"\s*[+-]?[0-9]{{1,{MOST_DIGITS}}}\s*")
_FRACTION = re.compile(rf"\s*{NUMBER}\s*")


def typed_name(parameter: click.Parameter | None) -> str:
    """What a message calls an option or argument: its long name without dashes."""
    if parameter is None:
        return "command line"
    return next((name for name in parameter.opts if name.startswith("--")), parameter.name or "").lstrip("-")


def click_type(kind: type, least: int | None = None, most: int | None = None) -> click.ParamType[Any]:
    """Click's type for one of Python's: str, int, float, Path."""
    if kind is int and (least is not None or most is not None):
        return _Between(least, most)
    types: dict[type, type[click.ParamType[Any]]] = {int: _Whole, float: _Fraction, Path: _Place}
    return types.get(kind, _Text)()


def _given(value: Any, parameter: click.Parameter | None) -> Any:
    """The value, unless it is an empty text or one that cannot be printed."""
    if isinstance(value, str):
        if not value.strip():
            refuse(typed_name(parameter), "its value is empty", "write one, or leave it out")
        expect_texts(value, typed_name(parameter))
    return value


class _Text(click.types.StringParamType):
    """A text that is not empty."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return _given(super().convert(value, param, ctx), param)


class _Place(click.Path):
    """A path that is not empty; any bytes that a file system allows."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and not value.strip():
            refuse(typed_name(param), "its value is empty", "write a path, or leave it out")
        return super().convert(value, param, ctx)


class _Whole(click.types.IntParamType):
    """A whole number in digits of ASCII."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(_whole(value, param), param, ctx)


class _Between(click.IntRange):
    """A whole number within limits."""

    name = "integer"  # in help and errors, instead of `integer range`

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(_whole(value, param), param, ctx)


class _Fraction(click.types.FloatParamType):
    """A finite number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(_given(value, param), str) and (not _FRACTION.fullmatch(value) or abs(float(value)) == float("inf")):
            refuse(typed_name(param), f"{shown(value)} is no number", "write for example 0.05")
        return super().convert(value, param, ctx)


def _whole(value: Any, parameter: click.Parameter | None) -> Any:
    """The value, unless it is a text that is no whole number."""
    if isinstance(_given(value, parameter), str) and not _WHOLE.fullmatch(value):
        refuse(typed_name(parameter), f"{shown(value)} is no whole number", f"write digits, at most {MOST_DIGITS}")
    return value
