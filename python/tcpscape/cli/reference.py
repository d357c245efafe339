"""What every command is, as data: the one source of the man pages, of shell completion and of the reference on the site; and `tcpscape man`.

    for entry in entries():
        print(entry.typed, "-", entry.summary)

An :class:`Entry` is made of Click's own command, so it says what `--help` says. :data:`EXIT_STATUSES`, :data:`ENVIRONMENT` and :data:`FILES` hold
what no single command knows. The manual pages are made of all that, in roff.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from tcpscape import __version__
from tcpscape.cli.command import Argument, Option, WithExamples, app, command
from tcpscape.cli.overview import COMMANDS
from tcpscape.errors import EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_OUTPUT, EXIT_TERMINATED, EXIT_USER_ERROR, printable, refuse

ROOT = "tcpscape"
"""The command that all others begin with."""
_DEFAULT = re.compile(r"\s*\[default: (.*)\]$", re.DOTALL)
"""The default at the end of a help text, of an option whose default is not a single value."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or option of a command."""

    names: tuple[str, ...]
    """As they are typed, the short one first: `-q`, `--quiet`; `--ecn`, `--no-ecn`. Of an argument its name in capitals."""
    value: str
    """What stands for its value, `TEXT`; empty for a flag."""
    help: str
    default: str
    """Empty where there is none, or where the help says it in other words."""
    required: bool
    repeatable: bool

    @property
    def heading(self) -> str:
        """Names and value in one line, as `--help` has them: `-q, --quiet`, `--out PATH`."""
        return f"{', '.join(self.names)}{f' {self.value}' if self.value else ''}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A command, or a group of commands."""

    words: tuple[str, ...]
    """What is typed for it: `tcpscape`, `study`, `run`."""
    summary: str
    """One line, with a full stop."""
    paragraphs: tuple[str, ...]
    """The description; line breaks inside are of no meaning."""
    arguments: tuple[Parameter, ...]
    options: tuple[Parameter, ...]
    examples: tuple[str, ...]
    """Complete command lines; a long one has line breaks after a backslash."""
    children: tuple[str, ...]
    """Of a group, what is typed after it; empty for a command."""

    @property
    def typed(self) -> str:
        """`tcpscape study run`."""
        return " ".join(self.words)

    @property
    def page(self) -> str:
        """The name of its page, `tcpscape-study-run`."""
        return "-".join(self.words)

    @property
    def usage(self) -> str:
        """What follows the command's words: `[OPTIONS] [SCENARIO]`."""
        return " ".join(["[OPTIONS]", *(["COMMAND [ARGS]..."] if self.children else [a.value for a in self.arguments])])


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """A row of a table of the reference: what it is called, what it is, and the pages that it belongs to."""

    name: str
    about: str
    commands: tuple[str, ...] = ()
    """First words of the commands that it is about (`run`); empty for all."""

    def concerns(self, entry: Entry) -> bool:
        """Whether it belongs on the page of a command; on that of `tcpscape` every row does."""
        return not self.commands or len(entry.words) == 1 or entry.words[1] in self.commands


_RUN = ("run", "sweep", "study", "advise", "cliff", "validate", "diagnose", "explore")
"""Commands that run trials."""
_KEEP = ("run", "sweep", "study", "advise")
"""Commands that keep trials in a directory."""
_READ = ("report", "plot", "compare", "export")
"""Commands that read such a directory."""
_CHECK = (*_KEEP, "report", "compare", "validate", "diagnose")
"""Commands with --check."""

EXIT_STATUSES: tuple[ReferenceRow, ...] = (
    ReferenceRow("0", "The command did what was asked, and every --check holds."),
    ReferenceRow("1", "A --check does not hold, or a bound of validate is missed. Results are complete and kept.", _CHECK),
    ReferenceRow(str(EXIT_USER_ERROR), "The input is wrong or the command cannot run here. One line on stderr says what, where and how to mend it."),
    ReferenceRow(
        "other",
        "That of the command behind emulate or cca load: 126 where it cannot be run, 127 where there is none, 128 and the number of the "
        "signal that ended it, 124 after --duration of emulate. An error of tcpscape is 2 with a line on stderr that begins with error:.",
        ("emulate", "cca"),
    ),
    ReferenceRow(str(EXIT_OUTPUT), "The answer could not be written to stdout, for example because a disk is full."),
    ReferenceRow(
        str(EXIT_HUNG_UP), "The terminal was closed (SIGHUP). Trials that were kept with --out stay, and the same command goes on from there."
    ),
    ReferenceRow(str(EXIT_INTERRUPTED), "Ended by Ctrl-C (SIGINT). Trials that were kept with --out stay, and the same command goes on from there."),
    ReferenceRow(str(EXIT_TERMINATED), "Ended by SIGTERM. Trials that were kept with --out stay, and the same command goes on from there."),
)
"""Exit status → meaning. Any other one, and a traceback, is a bug of tcpscape."""

ENVIRONMENT: tuple[ReferenceRow, ...] = (
    ReferenceRow("SHELL", "The shell that runs without a command.", ("emulate",)),
    ReferenceRow(
        "BROWSER",
        "The browser that opens the page, as Python's webbrowser reads it; without it, DISPLAY or WAYLAND_DISPLAY the address is only printed.",
        ("explore",),
    ),
    ReferenceRow("COLUMNS", "Width of the screen in characters, in place of the terminal's own; between 40 and what the table needs."),
    ReferenceRow("NO_COLOR", "If it is set, nothing is coloured, and progress is a line every ten seconds; so with TERM=dumb."),
    ReferenceRow(
        "XDG_CACHE_HOME", "Where kernels and logs of the virtual engine are, in tcpscape/ below it; ~/.cache without it.", (*_RUN, "kernel", "doctor")
    ),
    ReferenceRow(
        "TCPSCAPE_MEMORY",
        "Most memory that a campaign may take, a size such as 16GiB; 2GiB without it. What would take more is refused before it runs.",
        _RUN,
    ),
    ReferenceRow(
        "TCPSCAPE_TRIALS_PER_GUEST",
        "Trials that one kernel of the virtual engine serves, 1 without it. More save its start; such trials cannot be repeated bit for bit.",
        _RUN,
    ),
    ReferenceRow(
        "TCPSCAPE_HOOK_PATIENCE",
        "Seconds of real time that a call of a congestion control in Python may take, 5 without it; 0 is no limit. All "
        "calls of a trial may take twice as long together, and four times as long for each simulated second.",
        _RUN,
    ),
    ReferenceRow(
        "TCPSCAPE_PATIENCE",
        "Seconds of real time that a trial on the virtual engine may take, in place of a limit that follows from its simulated duration.",
        _RUN,
    ),
)
"""Environment variables that change what a command does."""

FILES: tuple[ReferenceRow, ...] = (
    ReferenceRow("DIR/results.sqlite", "Every finished trial of a directory given by --out, and what was asked for.", (*_KEEP, *_READ)),
    ReferenceRow(
        "DIR/samples/, DIR/queue_samples/, DIR/probe_samples/, DIR/packets/",
        "Samples of flows, queues and probes, and packets; a Parquet file for each trial that has them.",
        (*_KEEP, *_READ),
    ),
    ReferenceRow(
        "DIR/columns/",
        "What reports ask of every trial of a directory of more than 50,000. It may be deleted, and is not believed after any change.",
        ("run", "sweep", "report"),
    ),
    ReferenceRow(
        "DIR/report.html, DIR/figures/, DIR/tables/, DIR/scenarios/",
        "The report and its parts. The page loads nothing from elsewhere.",
        (*_KEEP, "report"),
    ),
    ReferenceRow("DIR/advice.json", "The answer of advise as JSON.", ("advise", "report")),
    ReferenceRow("DIR/cells.csv", "A row for each cell of a sweep.", ("sweep",)),
    ReferenceRow("OUT/NAME/NAME.csv", "A row for each cell of a study, beside the published numbers.", ("study",)),
    ReferenceRow("DIR/edges.csv, DIR/levels.csv", "The edges that cliff found, and every level that it measured.", ("cliff",)),
    ReferenceRow("DIR/summary.json, DIR/conditions.csv, DIR/results.csv, DIR/report.md", "What validate measured.", ("validate",)),
    ReferenceRow("~/.cache/tcpscape/kernels/NAME/", "A kernel for the virtual engine, its sources and its build.", (*_RUN, "kernel")),
    ReferenceRow("~/.cache/tcpscape/logs/", "The last output of kernels that died.", _RUN),
)
"""Files that commands write and read; DIR stands for the directory that --out names."""


def entries() -> Iterator[Entry]:
    """Every command in the order of help: `tcpscape` itself, then each command, a group before its own commands."""
    root = click.Context(app, info_name=ROOT, **app.context_settings)
    yield _entry(app, root, "A laboratory for TCP congestion control on impaired paths.")
    for name, (_, summary) in COMMANDS.items():
        command = app.get_command(root, name)
        context = click.Context(command, info_name=name, parent=root)
        yield _entry(command, context, summary)
        if isinstance(command, click.Group):
            children = {sub: command.get_command(context, sub) for sub in command.list_commands(context)}
            yield from (_entry(child, click.Context(child, info_name=sub, parent=context), "") for sub, child in children.items() if child)


def _entry(command: click.Command, context: click.Context, summary: str) -> Entry:
    """The entry of one of Click's commands; without a summary, its description's first sentence is one."""
    paragraphs = tuple(" ".join(p.split()) for p in inspect.cleandoc(command.help or "").split("\n\n"))
    parameters = command.get_params(context)
    return Entry(
        tuple(context.command_path.split()),
        summary or _first_sentence(paragraphs[0]),
        paragraphs,
        tuple(_argument(p, context) for p in parameters if isinstance(p, click.Argument)),
        tuple(_option(p, context) for p in parameters if isinstance(p, click.Option)),
        tuple(f"{ROOT} {e}".replace("\n", " \\\n    ") for e in command.examples) if isinstance(command, WithExamples) else (),
        tuple(command.list_commands(context)) if isinstance(command, click.Group) else (),
    )


def _argument(argument: click.Argument, context: click.Context) -> Parameter:
    text, default = _split(argument.help or "", "")
    value = argument.make_metavar(context)
    return Parameter((value.strip("[]"),), value, text, default, argument.required, argument.nargs == -1)


def _option(option: click.Option, context: click.Context) -> Parameter:
    extra = option.get_help_extra(context)
    text, default = _split(option.help or "", str(extra.get("default", "")))
    value = "" if option.is_flag else option.make_metavar(context)
    names = sorted(option.opts, key=len) + list(option.secondary_opts)
    return Parameter(tuple(names), value, f"{text}{_limits(option.type)}", default, bool(option.required), option.multiple)


def _limits(kind: click.ParamType[object]) -> str:
    """The least and the most that a number may be, as a sentence."""
    if not isinstance(kind, click.IntRange) or kind.min is None:
        return ""
    return f" At least {kind.min}." if kind.max is None else f" From {kind.min} to {kind.max}."


def _split(text: str, default: str) -> tuple[str, str]:
    """A help text without the default at its end, and that default, or the one given."""
    match = _DEFAULT.search(text)
    return (text[: match.start()], match[1]) if match else (text, default)


def _first_sentence(text: str) -> str:
    """`List the studies.`; a colon ends it too."""
    return re.split(r"(?<=\w)[.:](?:\s|$)", text, maxsplit=1)[0].rstrip(".") + "."


SECTION = 1
"""User commands."""
PLACE = "share/man/man1"
"""Where `man` looks for the pages, below a prefix such as /usr or a virtual environment."""
WIDTH = 72
"""Characters of an example's line, so that a page fits 80 columns."""
_OPTION = re.compile(r"(?<![\w-])(--?[a-z][\w-]*)")
_CODE = re.compile(r"`([^`]+)`")


@command(examples=("man run", "man --out ~/.local/share/man/man1"))
def man(
    page: Annotated[str, Argument("A command, run or study-run.", metavar="[COMMAND]", complete="page")] = ROOT,
    out: Annotated[Path | None, Option("Write every page into this directory instead.", complete="directory")] = None,
) -> None:
    """Print the manual page of a command, for man: `tcpscape man run | man -l -`; or write all of them into a directory.

    From a virtual environment that a wheel was installed into, `man tcpscape-run` finds them without that.
    """
    every = {entry.page: entry for entry in entries()}
    if out is not None:
        print(f"wrote {len(write(out))} pages: {printable(str(out))}")
        return
    name = page if page == ROOT or page.startswith(f"{ROOT}-") else f"{ROOT}-{page.replace(' ', '-')}"
    if name not in every:
        refuse("command", f"{page!r} is no command", f"choose {', '.join(n.removeprefix(f'{ROOT}-') for n in every)}")
    print(text(every[name], list(every.values())), end="")


def write(folder: Path) -> list[Path]:
    """Writes every page into a directory; returns the files. :raises ScenarioError: where it cannot be written."""
    every, files = list(entries()), []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for entry in every:
            files.append(folder / f"{entry.page}.{SECTION}")
            files[-1].write_text(text(entry, every), "utf-8")
    except OSError as e:
        refuse("out", f"cannot write to {folder}: {e.strerror}", "choose another directory")
    return files


def text(entry: Entry, every: Sequence[Entry]) -> str:
    """The page of one command in roff; `every` are all commands, for its references."""
    return "\n".join([*_head(entry), *_options(entry), *_commands(entry, every), *_tables(entry), *_tail(entry, every)]) + "\n"


def _head(entry: Entry) -> Iterator[str]:
    yield f'.TH "{entry.page.upper()}" "{SECTION}" "" "tcpscape {__version__}" "tcpscape manual"'
    yield from (".ad l", ".nh", ".SH NAME", f"{_plain(entry.page)} \\- {_plain(_clause(entry.summary))}", ".SH SYNOPSIS")
    yield f".B {_plain(entry.typed)}"
    words = "[OPTIONS] COMMAND [ARGS]..." if entry.children else " ".join(["[OPTIONS]", *(a.value for a in entry.arguments)])
    yield f"{_places(words)}"
    yield ".SH DESCRIPTION"
    for i, paragraph in enumerate(entry.paragraphs):
        yield from ([".PP"] if i else [])
        yield _prose(paragraph)


def _options(entry: Entry) -> Iterator[str]:
    if entry.arguments:
        yield ".SH ARGUMENTS"
        for argument in entry.arguments:
            yield from (".TP", f"\\fI{_plain(argument.names[0])}\\fR", _described(argument))
    yield ".SH OPTIONS"
    for option in entry.options:
        names = ", ".join(f"\\fB{_plain(name)}\\fR" for name in option.names)
        yield from (".TP", f"{names}{f' {_places(option.value)}' if option.value else ''}", _described(option))


def _described(parameter: Parameter) -> str:
    """The help of a parameter, with its default."""
    required = " Required." if parameter.required and not parameter.names[0].isupper() else ""
    default = f" The default is {_prose(parameter.default)}." if parameter.default else ""
    return f"{_prose(_sentence(parameter.help))}{required}{default}"


def _commands(entry: Entry, every: Sequence[Entry]) -> Iterator[str]:
    if entry.children:
        yield ".SH COMMANDS"
        for child in _children(entry, every):
            yield from (".TP", f"\\fB{_plain(child.page)}\\fR({SECTION})", _prose(child.summary))


def _children(entry: Entry, every: Iterable[Entry]) -> list[Entry]:
    return [e for e in every if e.words[:-1] == entry.words]


def _tables(entry: Entry) -> Iterator[str]:
    tables = {"EXIT STATUS": EXIT_STATUSES, "ENVIRONMENT": ENVIRONMENT, "FILES": FILES}
    for title, rows in tables.items():
        chosen: list[ReferenceRow] = [row for row in rows if row.concerns(entry)]
        if chosen:
            yield f".SH {title}"
        for row in chosen:
            yield from (".TP", f"\\fI{_plain(row.name)}\\fR" if title == "FILES" else f"\\fB{_plain(row.name)}\\fR", _prose(row.about))


def _tail(entry: Entry, every: Sequence[Entry]) -> Iterator[str]:
    if entry.examples:
        yield ".SH EXAMPLES"
        for example in entry.examples:
            yield from (".PP", ".nf", *(_plain(line) for line in _folded(example)), ".fi")
    family = [e for e in every if e is not entry and (e.words == entry.words[:-1] or e.words[:-1] == (entry.words[:-1] or entry.words))]
    pages = sorted({e.page for e in [*family, *_children(entry, every)]})
    yield ".SH SEE ALSO"
    yield ",\n".join(f"\\fB{_plain(page)}\\fR({SECTION})" for page in pages)


def _folded(example: str) -> Iterator[str]:
    """An example in lines of at most :data:`WIDTH` characters, broken before an option, as a shell reads it."""
    for line in example.splitlines():
        if len(line) <= WIDTH:
            yield line
            continue
        first, *options = re.split(r" (?=--)", line)
        for option in options:
            if len(f"{first} {option}") > WIDTH:
                yield f"{first} \\"
                first = f"    {option}"
            else:
                first = f"{first} {option}"
        yield first


def _clause(sentence: str) -> str:
    """A sentence as what follows a name: `The latency spike.` → `the latency spike`; a name in capitals keeps them."""
    body = sentence.rstrip(".")
    return body if body[1:2].isupper() else body[:1].lower() + body[1:]


def _sentence(help_text: str) -> str:
    """A help text with a full stop."""
    return help_text if not help_text or help_text[-1] in ".?!" else f"{help_text}."


def _plain(words: str) -> str:
    """Text as it is to be typed: roff takes no character of it for itself, and a hyphen stays one."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("~", "\\(ti").replace("^", "\\(ha")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def _places(words: str) -> str:
    """What stands for values, in italics."""
    return re.sub(r"[A-Za-z_@=:]{2,}", lambda m: f"\\fI{m[0]}\\fR", _plain(words))


def _prose(words: str) -> str:
    """A paragraph: options and what stands in backquotes are bold."""
    pieces = _CODE.split(words)
    joined = "".join(f"\\fB{_plain(piece)}\\fR" if i % 2 else _with_options(piece) for i, piece in enumerate(pieces))
    return f"\\&{joined}" if joined[:1] in (".", "'") else joined


def _with_options(words: str) -> str:
    """Prose with its options in bold, whose hyphens stay hyphens."""
    return _OPTION.sub(lambda m: f"\\fB{m[0]}\\fR", words.replace("\\", "\\e")).replace("--", "\\-\\-")
