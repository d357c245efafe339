"""The Python interface: functions with their parameters, classes with their fields and methods, from the docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cached_property

import tcpscape
from tcpscape.schemas import generator
from website.markdown import block, code, table, without_roles

PARAMETER = re.compile(r":param (\w+): (.*?)(?=\n:|\Z)", re.DOTALL)
LAST = re.compile(r":(return|raises)([^:]*): (.*?)(?=\n:|\Z)", re.DOTALL)


def functions() -> str:
    """Every public function."""
    return "".join(_function(name) for name in tcpscape.__all__ if inspect.isfunction(getattr(tcpscape, name)))


def classes() -> str:
    """Every public class."""
    return "".join(_class(name, kind) for name in tcpscape.__all__ if inspect.isclass(kind := getattr(tcpscape, name)))


def _function(name: str) -> str:
    function = getattr(tcpscape, name)
    text = inspect.getdoc(function) or ""
    about = re.split(r"\n:| :raises", text, maxsplit=1)[0]
    signature = inspect.signature(function)
    required = [p.name for p in signature.parameters.values() if p.default is p.empty]
    rows = [(code(n), _default(signature.parameters[n]), without_roles(what)) for n, what in PARAMETER.findall(text)]
    shown = [*required, *(["…"] if len(signature.parameters) > len(required) else [])]
    parts = [f"### {name}\n\n", block(f"tcpscape.{name}({', '.join(shown)})", "python")]
    parts += [f"{without_roles(about)}\n\n", table(["Parameter", "Default", "What it is"], rows) if rows else ""]
    for kind, what, says in LAST.findall(text):
        parts.append(f"**{'Returns' if kind == 'return' else f'Raises{what}'}**: {without_roles(' '.join(says.split()))}\n\n")
    return "".join(parts)


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return "required"
    return "" if parameter.default in (None, ()) else code(repr(parameter.default))


def _class(name: str, kind: type) -> str:
    about = without_roles((inspect.getdoc(kind) or "").split("\n\n", maxsplit=1)[0])
    rows = [*_fields(kind), *_members(kind)]
    return f"### {name}\n\n{about}\n\n" + (table(["Name", "What it is"], rows) if rows else "")


def _fields(kind: type) -> Iterator[tuple[str, str]]:
    """Fields of a dataclass or of a model, members of an enumeration."""
    docs = generator.of_fields(kind)
    names = list(getattr(kind, "model_fields", ()))
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif issubclass(kind, Enum):
        names = list(kind.__members__)
    yield from ((code(name), without_roles(docs.get(name, ""))) for name in names if not name.startswith("_"))


def _members(kind: type) -> Iterator[tuple[str, str]]:
    """Methods and properties of a class itself, with the first paragraph of their docstrings, without the exceptions."""
    for name, member in vars(kind).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        is_property = isinstance(member, property | cached_property)
        if name.startswith("_") or not (is_property or inspect.isfunction(function)) or not inspect.getdoc(member):
            continue
        arguments = "" if is_property else f"({', '.join(p for p in inspect.signature(function).parameters if p not in ('self', 'cls'))})"
        first = re.split(r"\n\n| :raises", inspect.getdoc(member) or "", maxsplit=1)[0]
        yield code(f"{name}{arguments}"), without_roles(first)


PARTS: Mapping[str, Callable[[], str]] = {"python functions": functions, "python classes": classes}
"""Name of a part → the function that writes it."""
