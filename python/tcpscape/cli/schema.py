"""`tcpscape schema`: the schemas of all JSON documents and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from tcpscape.cli import terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.errors import printable, refuse


@command(examples=("schema trial", "schema scenario > scenario.schema.json"))
def schema(
    name: Annotated[str | None, Argument("A document or table of the list.", metavar="[NAME]", complete="schema")] = None,
    out: Annotated[Path | None, Option("Write every schema into this directory, as NAME.schema.json.", complete="directory")] = None,
) -> None:
    """Print the schema of a document (JSON Schema 2020-12) or of a table (Table Schema: columns, types, units); without a name, the list.

    An editor checks a scenario while you write it: `tcpscape schema scenario > scenario.schema.json`, and as the first line of the scenario
    `# yaml-language-server: $schema=scenario.schema.json`.
    """
    from tcpscape.formats import TableFormat
    from tcpscape.schemas.documents import DOCUMENTS, Document
    from tcpscape.schemas.tables import TABLES

    every: dict[str, Document | TableFormat] = {**DOCUMENTS, **TABLES}
    if name is not None and name not in every:
        refuse("name", f"{name!r} is no document or table", f"choose {', '.join(every)}")
    chosen = list(every) if name is None else [name]
    if out is not None:
        _write(out, {n: every[n].schema() for n in chosen})
    elif name is None:
        _list()
    else:
        print(_text(every[name].schema()), end="")


def _text(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _list() -> None:
    """Prints the list."""
    from tcpscape.formats import FORMATS
    from tcpscape.schemas.documents import DOCUMENTS
    from tcpscape.schemas.tables import TABLES
    from tcpscape.text.table import Table

    rows = [(d.name, f"JSON, format {FORMATS[d.name]}", d.about) for d in DOCUMENTS.values()]
    rows += [(t.name, "table", t.about) for t in TABLES.values()]
    terminal.print_table(Table(("name", "kind", "what it is"), rows, left=2, words=("what it is",)))


def _write(folder: Path, schemas: dict[str, dict[str, Any]]) -> None:
    """Writes each schema into a file of its own."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, document in schemas.items():
            (folder / f"{name}.schema.json").write_text(_text(document), "utf-8")
    except OSError as e:
        refuse("out", f"cannot write to {folder}: {e.strerror}", "choose another directory")
    print(f"wrote {len(schemas)} schemas: {printable(str(folder))}")
