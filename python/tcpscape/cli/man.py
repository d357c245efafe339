"""`tcpscape man`: the manual pages, in roff, made of :mod:`tcpscape.cli.reference`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from tcpscape import __version__
from tcpscape.cli.command import Argument, Option, command
from tcpscape.cli.reference import ENVIRONMENT, EXIT_STATUSES, FILES, ROOT, Entry, Parameter, Row, entries
from tcpscape.errors import printable, refuse

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
    """Writes every page into a directory; returns the files.

    :raises ScenarioError: where it cannot be written.
    """
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
        chosen: list[Row] = [row for row in rows if row.concerns(entry)]
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
