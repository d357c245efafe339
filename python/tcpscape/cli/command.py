"""How a function becomes a command: the fields of its dataclass parameters are its options.

    @dataclass(frozen=True)
    class RunnerOptions:
        engine: Annotated[str, Option("Engine.")] = "model"
        jobs: Annotated[int, Option("Cores; 0 is all.", least=0)] = 0

    @command
    def cliff(runner: RunnerOptions, as_json: Annotated[bool, Option("One JSON line per edge.", name="--json")] = False) -> None: ...

`cliff` is then a `click.Command` with --engine, --jobs and --json, in this order. A field may be a dataclass in turn.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import click


@dataclass(frozen=True)
class Option:
    """An option, as metadata of a field or parameter. A bool is a flag; a tuple may be given several times."""

    help: str
    name: str = ""
    """As it is typed (`--json`, `--ecn/--no-ecn`); without it, the field's name with dashes."""
    metavar: str | None = None
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True)
class Argument:
    """An argument, which is given by its place, as metadata of a field or parameter."""

    help: str
    metavar: str | None = None


def command(function: Callable[..., int | None], name: str | None = None) -> click.Command:
    """The command that a function is: its docstring is the help, its parameters are the options, what it returns is the exit status.

    :raises TypeError: for a parameter that is no dataclass and has neither `Option` nor `Argument`, and for a name that comes twice.
    """
    hints = get_type_hints(function, include_extras=True)
    defaults = {p.name: MISSING if p.default is p.empty else p.default for p in inspect.signature(function).parameters.values()}
    parameters = [p for key, default in defaults.items() for p in _parameters(key, hints[key], default)]
    names = [p.name for p in parameters]
    if twice := {name for name in names if names.count(name) > 1}:
        raise TypeError(f"{function.__name__}: two parameters are called {', '.join(sorted(map(str, twice)))}")

    def call(**values: Any) -> int | None:
        return function(**{key: _value(key, hints[key], values) for key in defaults})

    return click.Command(name or function.__name__, params=parameters, callback=call, help=inspect.getdoc(function))


class CommandGroup(click.Group):
    """Commands under one name, in the order in which they are added; without one of them the help is printed."""

    def __init__(self, name: str, about: str) -> None:
        super().__init__(name, help=about, no_args_is_help=True)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands in the order of help."""
        return list(self.commands)

    def subcommand(self, name: str) -> Callable[[Callable[..., int | None]], click.Command]:
        """A decorator: the function becomes the command of this name."""

        def add(function: Callable[..., int | None]) -> click.Command:
            self.add_command(command(function, name))
            return self.commands[name]

        return add


def _parameters(name: str, hint: Any, default: Any) -> Iterator[click.Parameter]:
    """The parameter that a field is, or those of the fields of its dataclass. `default` is MISSING where it is required."""
    if is_dataclass(hint):
        hints = get_type_hints(hint, include_extras=True)
        for field in fields(hint):
            yield from _parameters(field.name, hints[field.name], field.default)
        return
    word = next((word for word in getattr(hint, "__metadata__", ()) if isinstance(word, Option | Argument)), None)
    if word is None:
        raise TypeError(f"{name}: a parameter is a dataclass, or is annotated with Option or Argument")
    kinds = [kind for kind in get_args(get_args(hint)[0]) if kind is not NoneType]  # of `str | None` and of `tuple[str, ...]`
    several = get_origin(get_args(hint)[0]) is tuple
    kind = kinds[0] if kinds else get_args(hint)[0]
    settings: dict[str, Any] = {"help": word.help, "metavar": word.metavar, "required": default is MISSING}
    if default is not MISSING:
        settings["default"] = default
    if isinstance(word, Argument):
        yield click.Argument([name], type=_type(kind), **settings)
    elif kind is bool:
        yield click.Option([word.name or _typed(name), name], is_flag=True, show_default=True, **settings)
    else:
        kind = _type(kind, word.least, word.most)
        yield click.Option([word.name or _typed(name), name], type=kind, multiple=several, show_default=True, **settings)


def _typed(name: str) -> str:
    """An option as it is typed: `jitter_on` → `--jitter-on`."""
    return f"--{name.replace('_', '-')}"


def _type(kind: type, least: int | None = None, most: int | None = None) -> click.ParamType[Any]:
    """Click's type for one of Python's: str, int, float, Path."""
    if kind is int and (least is not None or most is not None):
        bounded = click.IntRange(least, most)
        bounded.name = "integer"  # in help and errors, instead of `integer range`
        return bounded
    return click.Path(path_type=Path) if kind is Path else click.types.convert_type(kind)


def _value(name: str, hint: Any, values: Mapping[str, Any]) -> Any:
    """The value of a field: what was given for it, or its dataclass made of the values of its own fields."""
    if not is_dataclass(hint):
        return values[name]
    hints = get_type_hints(hint, include_extras=True)
    return hint(**{field.name: _value(field.name, hints[field.name], values) for field in fields(hint)})  # type: ignore[operator]
