"""JSON Schema of a type, 2020-12, from pydantic: what users write, and what tcpscape prints.

Beyond pydantic: the docstrings below fields are the descriptions of properties, defaults are as a user would write them, and numbers that tcpscape
prints may be null where a document says so of all that are not finite.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import NotRequired, TypedDict

from tcpscape.scenario import fields

DIALECT = "https://json-schema.org/draft/2020-12/schema"
QUANTITIES: Mapping[str, tuple[dict[str, Any], str]] = {
    "Time": (fields.TIME, "A time with its unit (ns, us, ms, s, min, h), at most a day; 0 needs no unit."),
    "Size": (fields.SIZE, "A size: KiB, MiB and GiB are powers of 1024, kB, MB and GB of 1000; a number alone is bytes."),
    "Rate": (fields.RATE, "A rate with its unit: kbit, mbit, gbit (powers of 1000), or bytes per second, MB/s."),
    "Percent": (fields.PERCENT, "A share with %."),
    "Buffer": (fields.BUFFER, "A size, or a multiple of the bandwidth-delay product, 2bdp."),
}
"""Name of a definition → the schema of a quantity as a user writes it, and what it is."""
_UNIT = re.compile(r", (?:ns|bytes/s|bytes|bit/s)\b,?(?! or)")
"""The unit in a docstring of a quantity, which is that of the number and not what a user writes."""
_ROLE = re.compile(r":\w+:`~?([^`]+)`")
_WHOLE = r"^\s*[+-]?[0-9]+(?:_[0-9]+)*(?:\.0*)?\s*$"
_FRACTION = r"^\s*[+-]?(?:(?:[0-9]+(?:_[0-9]+)*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)\s*$"
_YES_OR_NO = r"^(?:[tT]|[fF]|[yY]|[nN]|[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|[yY][eE][sS]|[nN][oO]|[oO][nN]|[oO][fF][fF]|[01])$"


class _Printed(GenerateJsonSchema):
    """Schemas of documents that tcpscape prints."""

    nullable = False
    """Whether a number that is not finite is printed as null."""
    none = "null"
    """What Python's None is called."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No title that only repeats the name."""
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """With descriptions, and defaults as they are written."""
        return self._described(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """With descriptions."""
        return self._described(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """With descriptions."""
        kind = schema.get("cls")
        return self._described(super().typed_dict_schema(schema), kind) if kind else super().typed_dict_schema(schema)

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        """A number, null where the document has that for what is not finite."""
        plain = super().float_schema(schema)
        return {**plain, "type": ["number", "null"]} if self.nullable else plain

    def _described(self, json_schema: JsonSchemaValue, kind: type) -> JsonSchemaValue:
        about = of_fields(kind)
        json_schema["description"] = _plain(" ".join((kind.__doc__ or "").split()))
        for name, value in json_schema.get("properties", {}).items():
            if text := about.get(name, value.get("description", "")):
                value["description"] = _plain(text).replace("None", self.none)
        return json_schema


class _Finite(_Printed):
    """The same of documents that :func:`tcpscape.formats.printed` makes: their numbers may all be null, and a field with a default is there, too."""

    nullable = True

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Every field of a dataclass."""
        return field["type"] != "typed-dict-field" or super().field_is_required(field, total)


class _Written(_Printed):
    """Schemas of what users write."""

    none = "None"

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """With the defaults as they are written, and without the units of numbers."""
        described, kind = super().model_schema(schema), schema["cls"]
        if issubclass(kind, BaseModel):
            for name, value in described.get("properties", {}).items():
                value["description"] = _UNIT.sub("", value.get("description", "")).replace("None is", "Left out:")
                if "default" in value:
                    value["default"] = _default(kind, name)
        return described

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        """A whole number, also as text: an axis of a campaign is text that goes into a field."""
        return {"anyOf": [super().int_schema(schema), {"type": "string", "pattern": _WHOLE}]}

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        """A number, also as text: files keep numbers with a dot as text."""
        return {"anyOf": [super().float_schema(schema), {"type": "string", "pattern": _FRACTION}]}

    def bool_schema(self, schema: core_schema.BoolSchema) -> JsonSchemaValue:
        """Yes or no, also as text."""
        return {"anyOf": [{"type": "boolean"}, {"enum": [0, 1]}, {"type": "string", "pattern": _YES_OR_NO}]}


def of(kind: Any, mode: JsonSchemaMode, *, finite: bool = False) -> dict[str, Any]:
    """The schema of a type: of what is written for it (`validation`), or of what it is printed as (`serialization`).

    `finite`: whether numbers that are not finite are printed as null.
    """
    generator = _Written if mode == "validation" else _Finite if finite else _Printed
    schema = TypeAdapter(kind).json_schema(mode=mode, schema_generator=generator)
    return _with_quantities(schema) if mode == "validation" else schema


def picked(kind: type, names: Iterable[str], optional: Collection[str] = (), **others: Any) -> Any:
    """A type with these fields and properties of a class, in this order; `others`: types of those that JSON says more of."""
    import polars as pl

    about, hints = of_fields(kind), get_type_hints(kind, localns={"pl": pl})
    fields: dict[str, Any] = {}
    for name in names:
        if isinstance(of := getattr(kind, name), property):
            about[name], hints[name] = of.__doc__ or "", get_type_hints(of.fget)["return"]
        hint: Any = Annotated[others.get(name, hints[name]), Field(description=about[name])]
        fields[name] = NotRequired[hint] if name in optional else hint
    make: Any = TypedDict
    result = make(kind.__name__, fields)
    result.__module__, result.__doc__ = "", kind.__doc__
    return result


def _default(kind: type[BaseModel], name: str) -> Any:
    """The default of a field as a user would write it."""
    field = kind.model_fields[name]
    hint: Any = Annotated.__class_getitem__((field.annotation, *field.metadata)) if field.metadata else field.annotation  # type: ignore[attr-defined]
    return TypeAdapter(hint).dump_python(field.get_default(call_default_factory=True), mode="json", exclude_defaults=True)


def _with_quantities(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with each quantity as a definition of its own, that is referred to."""
    used: set[str] = set()

    def hoisted(value: Any) -> Any:
        if isinstance(value, list):
            return [hoisted(item) for item in value]
        if not isinstance(value, dict):
            return value
        choices = value.get("anyOf")
        for name, (quantity, _) in QUANTITIES.items():
            if choices == quantity["anyOf"]:
                used.add(name)
                rest = {k: v for k, v in value.items() if k not in ("anyOf", "examples")}
                return {"$ref": f"#/$defs/{name}", **rest}
        return {key: hoisted(item) for key, item in value.items()}

    result: dict[str, Any] = hoisted(schema)
    definitions = {name: {**quantity, "title": name, "description": about} for name, (quantity, about) in QUANTITIES.items() if name in used}
    return {**result, "$defs": {**result.get("$defs", {}), **definitions}}


def _plain(text: str) -> str:
    """A docstring without the roles of Sphinx: :class:`~tcpscape.trial.Trial` becomes `Trial`."""
    return _ROLE.sub(lambda match: f"`{match[1].rpartition('.')[2]}`", text)


@cache
def of_fields(kind: type) -> dict[str, str]:
    """Field of a class → the docstring below it, as one paragraph; those of its base classes too."""
    about: dict[str, str] = {}
    bases = getattr(kind, "__orig_bases__", ())  # of a TypedDict, which has no others
    for base in (*(b for b in bases if isinstance(b, type)), *reversed(kind.__mro__)):
        if base.__module__.startswith("tcpscape"):
            (tree,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(base))).body
            about |= _below(tree.body) if isinstance(tree, ast.ClassDef) else {}
    return about


@cache
def types(kind: type) -> dict[str, str]:
    """Field of a class → its type as it is written in the source; those of its base classes too."""
    body: list[ast.stmt] = []
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("tcpscape"):
            (tree,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(base))).body
            body += tree.body if isinstance(tree, ast.ClassDef) else []
    return {item.target.id: ast.unparse(item.annotation) for item in body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)}


def _below(body: list[ast.stmt]) -> dict[str, str]:
    about = {}
    for item, below in pairwise(body):
        target = item.target if isinstance(item, ast.AnnAssign) else item.targets[0] if isinstance(item, ast.Assign) else None
        text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
        if isinstance(target, ast.Name) and isinstance(text, str):
            about[target.id] = " ".join(text.split())
    return about
