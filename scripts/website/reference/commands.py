"""The pages of the commands, as `--help` and the manual pages have them, and the tables of exit statuses, environment variables and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tcpscape.cli import reference
from tcpscape.cli.reference import Entry, Parameter, ReferenceRow
from website.markdown import block, code, sentence, table

FOLDER = "reference/commands/"
"""Where the pages of the commands are in the site."""


def pages() -> dict[str, str]:
    """A page for each command that follows `tcpscape`, in the order of help; those of a group are on its page."""
    entries = list(reference.entries())
    written = {}
    for entry in entries:
        if len(entry.words) == 2:
            family = [entry, *(e for e in entries if len(e.words) > 2 and e.words[:2] == entry.words)]
            written[f"{FOLDER}{entry.words[1]}.md"] = f"# {entry.typed}\n\n" + "".join(_command(e) for e in family) + _environment(entry)
    return written


def overview() -> str:
    """A table of the commands."""
    rows = [(f"[`{e.typed}`](commands/{e.words[1]}.md)", e.summary) for e in reference.entries() if len(e.words) == 2]
    return table(["Command", "What it does"], rows)


def _command(entry: Entry) -> str:
    """A command on its page."""
    parts = [f"## {entry.typed}\n\n"] if len(entry.words) > 2 else []
    parts += [block(f"{entry.typed} {entry.usage}"), *(f"{_escaped(paragraph)}\n\n" for paragraph in entry.paragraphs)]
    if entry.arguments:
        parts.append(table(["Argument", "What it is"], [(code(a.value), _about(a)) for a in entry.arguments]))
    if options := [option for option in entry.options if "--help" not in option.names]:
        parts.append(table(["Option", "Default", "What it is"], [(code(o.heading), code(o.default), _about(o)) for o in options]))
    if entry.examples:
        parts += ["**Examples**\n\n", block("\n".join(f"$ {example}" for example in entry.examples), "console")]
    return "".join(parts)


def _environment(entry: Entry) -> str:
    """The exit statuses and variables of a command that runs something."""
    statuses = [row for row in reference.EXIT_STATUSES if row.concerns(entry)]
    variables = [row for row in reference.ENVIRONMENT if row.concerns(entry)]
    return f"## Exit statuses\n\n{_table('Status', statuses)}## Environment\n\n{_table('Variable', variables)}"


def _table(heading: str, rows: tuple[ReferenceRow, ...] | list[ReferenceRow]) -> str:
    return table([heading, "Meaning"], [(code(row.name), _escaped(row.about)) for row in rows])


def _about(parameter: Parameter) -> str:
    text = parameter.help if parameter.help.startswith("tc ") else sentence(parameter.help)
    return _escaped(text) + " Can be repeated." * (parameter.repeatable and "epeat" not in parameter.help)


def _escaped(text: str) -> str:
    """Plain text as Markdown: nothing in it is markup, apart from code type."""
    parts = text.split("`")
    return "`".join(part if number % 2 else part.translate(MARKUP) for number, part in enumerate(parts))


MARKUP = str.maketrans({c: f"\\{c}" for c in "*_[]<>#"})
"""Characters that Markdown reads as markup."""
PARTS: Mapping[str, Callable[[], str]] = {
    "commands": overview,
    "exit statuses": lambda: _table("Status", reference.EXIT_STATUSES),
    "environment": lambda: _table("Variable", reference.ENVIRONMENT),
    "files": lambda: _table("File", reference.FILES),
}
"""Name of a part → the function that writes it."""
