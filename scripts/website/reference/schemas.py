"""The JSON documents and tables, from their schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tcpscape.formats import FORMATS
from tcpscape.schemas.documents import DOCUMENTS
from tcpscape.schemas.tables import TABLES
from website.markdown import code, table

PRINTED = tuple(document for document in DOCUMENTS.values() if not document.is_written)
"""What tcpscape prints; what users write has pages of its own."""


def documents() -> str:
    """Every kind of document with its format."""
    rows = [(f"[{d.name}](documents.md#{d.name})" if d in PRINTED else d.name, str(FORMATS[d.name]), d.about) for d in DOCUMENTS.values()]
    return table(["Name", "Format", "What it is"], rows)


def tables() -> str:
    """Every table."""
    return table(["Name", "What it is"], [(f"[{t.name}](tables.md#{t.name})", t.about) for t in TABLES.values()])


def fields() -> str:
    """The fields of every document that is printed, and of what is in it."""
    parts = []
    for document in PRINTED:
        schema = document.schema()
        objects = {name: part for name, part in schema.get("$defs", {}).items() if "properties" in part}
        places = {name: f"[{name}](#{name.lower()}-of-{document.name})" for name in objects}
        parts += [f"## {document.name}\n\n", f"{schema['description']} Format {FORMATS[document.name]}.\n\n", _properties(schema, places)]
        for name, part in objects.items():
            parts += [f"### {name} of {document.name}\n\n", f"{part.get('description', '')}\n\n", _properties(part, places)]
    return "".join(parts)


def columns() -> str:
    """The columns of every table."""
    parts = []
    for entry in TABLES.values():
        rows = [(code(c.name), c.kind, c.unit, c.about) for c in entry.columns]
        parts += [f"## {entry.name}\n\n", f"{entry.about}\n\n", table(["Column", "Type", "Unit", "What it is"], rows)]
    return "".join(parts)


def _properties(schema: Mapping[str, Any], places: Mapping[str, str]) -> str:
    """The fields of an object; `places` has the links to other objects of the document by their names."""
    rows = [(code(name), " or ".join(_types(value, places)), value.get("description", "")) for name, value in schema["properties"].items()]
    return table(["Field", "Type", "What it is"], rows)


def _types(value: Mapping[str, Any], places: Mapping[str, str]) -> Iterator[str]:
    """The types of a property in words."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        yield places.get(name, name)
    elif "anyOf" in value:
        yield from dict.fromkeys(kind for choice in value["anyOf"] for kind in _types(choice, places))
    elif "const" in value or "enum" in value:
        yield ", ".join(code(str(word)) for word in value.get("enum", [value.get("const")]))
    elif value.get("type") == "array":
        items = value.get("items") or next(iter(value.get("prefixItems", [])), {})
        yield f"list of {' or '.join(_types(items, places)) or 'values'}"
    elif isinstance(value.get("additionalProperties"), dict):
        yield f"mapping of {' or '.join(_types(value['additionalProperties'], places)) or 'values'}"
    else:
        kinds = value.get("type", "any value")
        yield from [kinds] if isinstance(kinds, str) else kinds


PARTS: Mapping[str, Callable[[], str]] = {"documents": documents, "tables": tables, "fields of documents": fields, "columns of tables": columns}
"""Name of a part → the function that writes it."""
