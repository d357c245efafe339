"""How a function becomes a command: the fields of its dataclass parameters are its options.

    @dataclass(frozen=True)
    class RunnerOptions:
        engine: Annotated[str, Option("Engine.")] = "model"
        jobs: Annotated[int, Option("Cores; 0 is all.", least=0)] = 0

    @command(examples=("cliff --rtt 50ms", "cliff --rtt 24,50,100ms --cca bbr"))
    def cliff(runner: RunnerOptions, as_json: Annotated[bool, Option("One JSON line per edge.", name="--json")] = False) -> None: ...

`cliff` is then a `click.Command` with --engine, --jobs and --json, in this order, whose help ends with the examples. A field may be a
dataclass in turn, or a declaration of fields (:mod:`tcpscape.scenario.vocabulary`), whose value is a dict of those that were given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import click
from click.shell_completion import CompletionItem
from typing_extensions import is_typeddict

from tcpscape.cli.values import click_type, typed_name
from tcpscape.errors import refuse
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
    """What the shell completes its value with: a name of :data:`tcpscape.cli.candidates.KINDS`, or the values themselves, `both|forward|reverse`."""


def option_of(about: About) -> Option:
    """The option of a declared field."""
    default = f"  [default: {about.default}]" if about.default else ""
    return Option(f"{about.help}{default}", complete=about.names or "|".join(about.choices))


@dataclass(frozen=True)
class Argument:
    """An argument, which is given by its place, as metadata of a field or parameter.

    A tuple is a command line of another program: everything from its first word on, which is no option of ours.
    """

    help: str
    metavar: str | None = None
    complete: str = ""
    """As of an :class:`Option`."""


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

        :raises ScenarioError: for an option with a value that is given twice, of which Click would take the last.
        """
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        given = [one for one in order if isinstance(one, click.Option) and not one.multiple and not one.is_flag]
        if twice := next((one for one in given if given.count(one) > 1), None):
            refuse(typed_name(twice), "it is given twice", "say it once")
        return super().parse_args(ctx, args)


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
            return function(**{key: _value(key, hints[key], values) for key in defaults})

        built = Command(name or function.__name__, params=parameters, callback=call, help=inspect.getdoc(function))
        built.examples = examples
        built.allow_interspersed_args = not any(isinstance(p, click.Argument) and p.nargs == -1 for p in parameters)
        return built

    return make


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
            if len(self.examples) < EXAMPLES:
                self.examples = (*self.examples, *examples[:1])
            return added

        return add


def _print_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """What `--help` does."""
    if value and not ctx.resilient_parsing:
        print(ctx.get_help())
        ctx.exit()


EXAMPLES = 2
"""Examples that a command's help ends with."""


def _continued(example: str) -> str:
    """An example of several lines, as a shell reads it."""
    return example.replace("\n", " \\\n    ")


def _parameters(name: str, hint: Any, default: Any) -> Iterator[click.Parameter]:
    """The parameter that a field is, or those of the fields of its dataclass. `default` is MISSING where it is required."""
    if is_dataclass(hint):
        hints = get_type_hints(hint, include_extras=True)
        for field in fields(hint):
            yield from _parameters(field.name, hints[field.name], field.default)
        return
    if is_typeddict(hint):
        for field_name, kind in get_type_hints(hint, include_extras=True).items():
            about = next(word for word in kind.__metadata__ if isinstance(word, Option | About))
            yield from _parameters(field_name, Annotated[str | None, about if isinstance(about, Option) else option_of(about)], None)
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
    if word.complete:
        settings["shell_complete"] = _completer(word.complete)
    if isinstance(word, Argument):
        kind_of = {"type": click.UNPROCESSED, "nargs": -1} if several else {"type": click_type(kind)}
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
    if is_typeddict(hint):
        return {key: values[key] for key in get_type_hints(hint) if values[key] is not None}
    if not is_dataclass(hint):
        return values[name]
    hints = get_type_hints(hint, include_extras=True)
    return hint(**{field.name: _value(field.name, hints[field.name], values) for field in fields(hint)})  # type: ignore[operator]
