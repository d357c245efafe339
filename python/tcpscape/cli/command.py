"""The commands of tcpscape, and how a function becomes one: the fields of its dataclass parameters are its options.

    @dataclass(frozen=True)
    class RunnerOptions:
        engine: Annotated[str, Option("Engine.")] = "model"
        jobs: Annotated[int, Option("Cores; 0 is all.", least=0)] = 0

    @command(examples=("cliff --rtt 50ms", "cliff --rtt 24,50,100ms --cca bbr"))
    def cliff(runner: RunnerOptions, as_json: Annotated[bool, Option("One JSON line per edge.", name="--json")] = False) -> None: ...

`cliff` is then a `click.Command` with --engine, --jobs and --json, in this order, whose help ends with the examples. A field may be a
dataclass in turn, or a declaration of fields (:mod:`tcpscape.scenario.vocabulary`), whose value is a dict of those that were given.
What is given for an option is not empty and has no control characters, and numbers are as people write them. Python's own `int` and `float` also read
`1_0`, digits of other scripts, `nan` and `inf`; an empty path is the current directory to Python. Each of these is a slip, or a variable of a script
that is not set.

Each command of :data:`tcpscape.cli.overview.COMMANDS` is a function of its name in a module of this package, which is imported when it is run.
"""

from __future__ import annotations

import inspect
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

import click
from click.shell_completion import CompletionItem

from tcpscape.cli.overview import ABOUT, COMMANDS, EXAMPLES
from tcpscape.errors import refuse, shown
from tcpscape.names import expect_texts
from tcpscape.units import NUMBER, RATE_UNITS, SIZE_UNITS, TIME_UNITS

if TYPE_CHECKING:
    from tcpscape.scenario.vocabulary import About


@dataclass(frozen=True)
class Option:
    """An option, as metadata of a field or parameter. A bool is a flag; a tuple may be given several times."""

    help: str
    name: str = ""
    """As it is typed (`--json`, `--ecn/--no-ecn`); without it, the field's name with dashes."""
    metavar: str | None = None
    least: int | None = None
    most: int | None = None
    short: str = ""
    """A letter for it, `-v`."""
    complete: str = ""
    """What the shell completes its value with: a name of :data:`tcpscape.cli.completion.KINDS`, or the values themselves, `both|forward|reverse`."""


def option_of(about: About) -> Option:
    """The option of a declared field."""
    default = f"  [default: {about.default}]" if about.default else ""
    return Option(f"{about.help}{default}", metavar=about.metavar, complete=about.names or "|".join(about.choices))


@dataclass(frozen=True)
class Argument:
    """An argument, which is given by its place, as metadata of a field or parameter.

    A tuple is a command line of another program: everything from its first word on, which is no option of ours; or `several` values.
    """

    help: str
    metavar: str | None = None
    complete: str = ""
    """As of an :class:`Option`."""
    several: bool = False
    """A tuple's words are values between which options may stand."""


class WithExamples:
    """A command or group whose help ends with examples."""

    examples: Sequence[str] = ()
    """Command lines without `tcpscape`; a long one has line breaks, where a backslash is printed."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples as they are to be typed."""
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  tcpscape {_continued(example)}\n" for example in self.examples))

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Click's own option, printed on stdout as everything else: `click.echo` would choose another encoding."""
        option: click.Option | None = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.callback = _print_help
        return option


class Command(WithExamples, click.Command):
    """A function as a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the options.

        :raises ScenarioError: for an option with a value that is given twice, of which Click would take the last, and for `60 ms` in two words.
        """
        _expect_no_space(args)
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        given = [one for one in order if isinstance(one, click.Option) and not one.multiple and not one.is_flag]
        if twice := next((one for one in given if given.count(one) > 1), None):
            ways = twice.name == "rate" and any(value.startswith(EACH_WAY) for value in args)
            other = (
                ", or for a rate of each way take a scenario whose link has rate and up_rate, as rrul (`tcpscape scenario show rrul`)" if ways else ""
            )
            refuse(typed_name(twice), "it is given twice", f"say it once{other}")
        return super().parse_args(ctx, args)


def _expect_no_space(args: Sequence[str]) -> None:
    """Refuses `--rtt 60 ms`, whose unit would be an argument of its own. :raises ScenarioError: one line with what to write."""
    own = list(args[: args.index("--")] if "--" in args else args)
    for option, value, unit in zip(own, own[1:], own[2:], strict=False):
        if option.startswith("--") and _FRACTION.fullmatch(value) and unit.lower() in (*TIME_UNITS, *SIZE_UNITS, *RATE_UNITS, "%", "bdp"):
            refuse(option.lstrip("-"), f"'{value} {unit}' is two words", f"write {option} {value}{unit}")


def command(*, examples: Sequence[str] = (), name: str | None = None) -> Callable[[Callable[..., int | None]], Command]:
    """A decorator: the function becomes a command. Its docstring is the help, its parameters are the options, what it returns is the exit status.

    `examples`: command lines without `tcpscape`, with which the help ends; `name`: of the command, without one the function's.

    :raises TypeError: for a parameter that is no dataclass and has neither `Option` nor `Argument`, and for a name that comes twice.
    """

    def make(function: Callable[..., int | None]) -> Command:
        hints = _hints(function)
        defaults = {p.name: MISSING if p.default is p.empty else p.default for p in inspect.signature(function).parameters.values()}
        parameters = [p for key, default in defaults.items() for p in _parameters(key, hints[key], default)]
        names = [p.name for p in parameters]
        if twice := {name for name in names if names.count(name) > 1}:
            raise TypeError(f"{function.__name__}: two parameters are called {', '.join(sorted(map(str, twice)))}")

        def call(**values: Any) -> int | None:
            _note_of_host(values)
            return function(**{key: _value(key, hints[key], values) for key in defaults})

        built = Command(name or function.__name__, params=parameters, callback=call, help=inspect.getdoc(function))
        built.examples = examples
        built.allow_interspersed_args = not any(p.type is click.UNPROCESSED for p in parameters)
        return built

    return make


def _note_of_host(values: Mapping[str, Any]) -> None:
    """Says how near the model's profile is to this machine's kernel, where that is the one that is asked for."""
    from tcpscape.scenario.host import NAME

    if str(values.get("kernel") or "").partition(",")[0].strip() == NAME and platform.system() == "Linux":
        from tcpscape.scenario import profiles

        click.echo(f"note: --kernel host: {profiles.nearness(platform.release())}", err=True)


class CommandGroup(WithExamples, click.Group):
    """Commands under one name, in the order in which they are added; without one of them the help is printed."""

    def __init__(self, name: str, about: str) -> None:
        super().__init__(name, help=about, no_args_is_help=True)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands in the order of help."""
        return list(self.commands)

    def subcommand(self, name: str, *, examples: Sequence[str] = ()) -> Callable[[Callable[..., int | None]], Command]:
        """A decorator: the function becomes the command of this name. The first example of each of the first two ends the group's help."""

        def add(function: Callable[..., int | None]) -> Command:
            added = command(examples=examples, name=name)(function)
            self.add_command(added)
            if len(self.examples) < MOST_EXAMPLES:
                self.examples = (*self.examples, *examples[:1])
            return added

        return add


def _print_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """What `--help` does."""
    if value and not ctx.resilient_parsing:
        print(ctx.get_help())
        ctx.exit()


MOST_EXAMPLES = 2
"""Examples that a command's help ends with."""


def _continued(example: str) -> str:
    """An example of several lines, as a shell reads it."""
    return example.replace("\n", " \\\n    ")


def _parameters(name: str, hint: Any, default: Any) -> Iterator[click.Parameter]:
    """The parameter that a field is, or those of the fields of its dataclass. `default` is MISSING where it is required."""
    from typing_extensions import is_typeddict

    from tcpscape.scenario.vocabulary import About

    if is_dataclass(hint):
        hints = get_type_hints(hint, include_extras=True)
        for field in fields(hint):
            yield from _parameters(field.name, hints[field.name], field.default)
        return
    if is_typeddict(hint):
        for field_name, kind in get_type_hints(hint, include_extras=True).items():
            about = next(word for word in kind.__metadata__ if isinstance(word, Option | About))
            yield from _parameters(field_name, Annotated[str | None, about], None)
        return
    word = next((word for word in getattr(hint, "__metadata__", ()) if isinstance(word, Option | Argument | About)), None)
    word = option_of(word) if isinstance(word, About) else word
    if word is None:
        raise TypeError(f"{name}: a parameter is a dataclass, or is annotated with Option or Argument")
    kinds = [kind for kind in get_args(get_args(hint)[0]) if kind is not NoneType]  # of `str | None` and of `tuple[str, ...]`
    several = get_origin(get_args(hint)[0]) is tuple
    kind = kinds[0] if kinds else get_args(hint)[0]
    settings: dict[str, Any] = {"help": word.help, "metavar": word.metavar, "required": default is MISSING}
    if default is not MISSING:
        settings["default"] = default
    if word.complete:
        settings["shell_complete"] = _completer(word.complete)
    if isinstance(word, Argument):
        kind_of = {"nargs": -1, "type": click.STRING if word.several else click.UNPROCESSED} if several else {"type": click_type(kind)}
        yield click.Argument([name], **kind_of, **settings)
        return
    names = [*([word.short] if word.short else []), word.name or _typed(name), name]
    if kind is bool:
        yield click.Option(names, is_flag=True, show_default=True, **settings)
    else:
        kind = click_type(kind, word.least, word.most)
        yield click.Option(names, type=kind, multiple=several, show_default=True, **settings)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters. Python 3.10 makes `Annotated[X, …] = None` an `Optional[Annotated[X, …]]`, which is undone."""
    hints = get_type_hints(function, include_extras=True)
    inner = {name: [h for h in get_args(hint) if hasattr(h, "__metadata__")] if get_origin(hint) is Union else [] for name, hint in hints.items()}
    return {name: inner[name][0] if inner[name] else hint for name, hint in hints.items()}


def _completer(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """What Click asks for the completions of a value. Whoever completes a line gives the function that finds them as the context's object."""

    def complete(context: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
        find: Callable[[str, str, click.Context], list[CompletionItem]] = context.find_root().obj
        return find(kind, typed, context)

    return complete


def _typed(name: str) -> str:
    """An option as it is typed: `jitter_on` → `--jitter-on`."""
    return f"--{name.replace('_', '-')}"


def _value(name: str, hint: Any, values: Mapping[str, Any]) -> Any:
    """The value of a field: what was given for it, or its dataclass made of the values of its own fields."""
    from typing_extensions import is_typeddict

    if is_typeddict(hint):
        return {key: values[key] for key in get_type_hints(hint) if values[key] is not None}
    if not is_dataclass(hint):
        return values[name]
    hints = get_type_hints(hint, include_extras=True)
    return hint(**{field.name: _value(field.name, hints[field.name], values) for field in fields(hint)})  # type: ignore[operator]


EACH_WAY = ("up=", "down=")
"""What stands before the value of one direction, which `emulate` takes."""
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


class Commands(WithExamples, click.Group):
    """The commands, each imported when it is run."""

    examples = EXAMPLES

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands in the order of help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of this name. :raises NoSuchCommand: if there is none."""
        if cmd_name not in COMMANDS:
            raise click.exceptions.NoSuchCommand(cmd_name, possibilities=COMMANDS, ctx=ctx)
        command: click.Command = getattr(import_module(f"tcpscape.cli.{COMMANDS[cmd_name][0]}"), cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin with what is typed, without importing them."""
        named = [CompletionItem(name, help=about) for name, (_, about) in COMMANDS.items() if name.startswith(incomplete)]
        return named or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of the commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


def _print_versions(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """What `--version` does: the same as the command `version`."""
    if value:
        ctx.invoke(app.get_command(ctx, "version"))
        ctx.exit()


app = Commands(
    "tcpscape",
    no_args_is_help=True,
    help=ABOUT,
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_print_versions, help="Print the versions and exit.")
    ],
)
