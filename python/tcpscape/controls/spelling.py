"""Labels of congestion controls: a name, and the parameters that differ from their defaults, as people write them.

`cubic` · `cubic:hystart=off` · `cubic:hystart=off:beta=819` · `{name: cubic, hystart: false, beta: 819}`. Commas separate congestion
controls and `*` and `@` belong to `--mix`, so colons separate parameters: `--cca cubic:hystart=off,cubic,bbr`, `--mix "cubic:hystart=off*2,bbr@5s"`.

A class in Python stands where a name does (:mod:`tcpscape.controls.classes`): `mine.py:MyControl`, `mine.py:MyControl:gain=2`.

The label of results is the first form with booleans as 0 and 1 and parameters in the order of their names. This module only reads and writes labels:
the engine knows which names there are and which parameters they have.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from tcpscape import units
from tcpscape.errors import UnitError, refuse, shown
from tcpscape.names import expect_line

WORDS = {"on": "1", "true": "1", "yes": "1", "off": "0", "false": "0", "no": "0"}
"""Booleans as people write them."""
EXAMPLE = "write for example cubic:hystart=off"

LINUX = (
    "cubic",
    "bbr",
    "reno",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
)
"""The congestion controls of Linux, by name."""

_LISTS = {"engine": "model,virtual", "what": "cwnd,rtt"}
"""Option → a list of names for it, in messages."""
_CLASS = re.compile(r"(?P<place>[^:*@,=]+\.py|[A-Za-z_][\w.]*):(?P<cls>(?:(?<=\.py:)[A-Za-z_]|[A-Z_])\w*)(?P<rest>(?::.*)?)")
"""A file or a module, a colon, a class; parameters."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_VALUE = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?(?:[A-Za-zµ/]+|%)?")
_UNIT = re.compile(r"(?:, (?:in )?|\()(ns|us|µs|ms|s|[km]?bit/s|bytes/s|B/s|bytes|packets|segments|%)(?=[;,.)\s]|$)")
_TIMES = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_RATES = {"bit/s": 1, "kbit/s": 1e3, "mbit/s": 1e6, "bytes/s": 8, "b/s": 8}
_SIZES = ("b", "bytes", "byte")


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a congestion control, as the engine describes it."""

    name: str
    about: str
    """What it does, with its unit behind a comma (`…, µs; 0 for none`)."""
    default: int
    min: int
    max: int

    @property
    def unit(self) -> str:
        """The unit of its value, from `about`; empty where it has none."""
        match = _UNIT.search(self.about)
        return match.group(1).lower() if match else ""

    @property
    def boolean(self) -> bool:
        """Whether it is on or off."""
        return (self.min, self.max) == (0, 1)

    @property
    def range(self) -> str:
        """Its values, as a user writes them."""
        return "on, off" if self.boolean else f"{self.min} to {self.max}"


def label(value: Any, field: str = "cca") -> str:
    """The label of a congestion control, `cubic:hystart=0`, from text or a mapping."""
    if isinstance(value, Mapping):
        return _label(*_from_mapping(value, field), field)
    if not isinstance(value, str):
        refuse(field, f"{shown(value)} is no congestion control", EXAMPLE)
    name, parts = _parts(value)
    params: dict[str, Any] = {}
    for part in parts:
        key, eq, text = (x.strip() for x in part.partition("="))
        if not eq or not text:
            refuse(field, f"{shown(part)} in {shown(value)} is not PARAMETER=VALUE", EXAMPLE)
        if key in params:
            refuse(field, f"{shown(value)} says {key} twice", "say it once")
        params[key] = text
    return _label(name, params, field)


def parse_names(text: str, field: str) -> list[str]:
    """`cubic,bbr` as a list; an empty name and one that is there twice are refused."""
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        refuse(field, f"{shown(text)} has an empty name", f"write for example {_LISTS.get(field, 'cubic,bbr')}")
    if len(set(names)) != len(names):
        refuse(field, f"{shown(text)} names one twice", "name each once")
    return names


def parse_labels(text: str) -> list[str]:
    """`cubic:hystart=off,bbr` as a list of labels; an empty one and one that is there twice are refused."""
    labels = [label(part) for part in parse_names(text, "cca")]
    return parse_names(",".join(labels), "cca")


def is_class(cca: str) -> bool:
    """Whether a congestion control's label stands for a Python class (:mod:`tcpscape.controls.classes`)."""
    return _CLASS.fullmatch(cca) is not None


def _class_parts(label: str) -> list[str] | None:
    """`mine.py:MyControl` and its parameters as written; None where the label does not name a class."""
    match = _CLASS.fullmatch(label)
    if not match:
        return None
    return [f"{match['place'].strip()}:{match['cls']}", *(p.strip() for p in match["rest"].split(":")[1:])]


def _parts(label: str) -> tuple[str, list[str]]:
    """Name and parameters, as written."""
    name, *params = _class_parts(label.strip()) or (part.strip() for part in label.strip().split(":"))
    return name, params


def _from_mapping(value: Mapping[Any, Any], field: str) -> tuple[Any, dict[str, Any]]:
    params = {str(k): v for k, v in value.items() if k != "name"}
    if "name" not in value:
        refuse(field, "the mapping has no name", "write for example {name: cubic, hystart: false}")
    return value["name"], params


def _label(name: Any, params: Mapping[str, Any], field: str) -> str:
    if not isinstance(name, str) or not (_NAME.fullmatch(name) or is_class(name)):
        refuse(field, f"{shown(name)} is not a name", "see `tcpscape cca list`, or write mine.py:MyControl")
    expect_line(name, field)
    for key in params:
        if not _NAME.fullmatch(key):
            refuse(field, f"{shown(key)} is no parameter's name", f"see `tcpscape cca show {shlex.quote(name)}`")
    return ":".join([name, *(f"{key}={_value(key, params[key], field)}" for key in sorted(params))])


def _value(key: str, value: Any, field: str) -> str:
    if isinstance(value, bool):
        return str(int(value))
    text = str(value).strip()
    text = WORDS.get(text.lower(), text)
    if not _VALUE.fullmatch(text):
        refuse(f"{field}.{key}", f"{shown(value)} is not a value", "write a number, on or off")
    return text


def split(label: str) -> tuple[str, dict[str, str]]:
    """Name and parameters of a label."""
    name, params = _parts(label)
    return name, dict(p.split("=", 1) for p in params)


def name_of(label: str) -> str:
    """The name alone."""
    return _parts(label)[0]


def resolve(label: str, params: Sequence[Param]) -> dict[str, int]:
    """The parameters of a label as the engine's integers; refuses unknown parameters and values out of range."""
    name, values = split(label)
    by_name = {p.name: p for p in params}
    resolved = {}
    for key, text in values.items():
        if key not in by_name:
            fix = f"choose {', '.join(by_name)}" if by_name else f"write {name} alone"
            refuse(f"cca.{key}", f"{name} has no such parameter", fix)
        resolved[key] = _integer(by_name[key], text, f"cca.{key}")
    return resolved


def _integer(param: Param, text: str, field: str) -> int:
    """A value in the parameter's own unit."""
    number = text if text.lstrip("-").isdigit() else _converted(param, text, field)
    value = int(number)
    if not param.min <= value <= param.max:
        refuse(field, f"{text} is out of range", f"write {param.range}" + (f" {param.unit}" if param.unit else ""))
    return value


def _converted(param: Param, text: str, field: str) -> int:
    """A value with a unit, in the parameter's own."""
    unit = param.unit
    try:
        if unit in _TIMES:
            return _whole(units.parse_time(text, field) / _TIMES[unit], text, field)
        if unit in _RATES:
            return _whole(units.parse_byte_rate(text, field, example="10mbit") * 8 / _RATES[unit], text, field)
        if unit in _SIZES:
            return units.parse_size(text, field)
        if unit == "%" and text.endswith("%"):
            return _whole(float(text[:-1]), text, field)
    except UnitError:
        _refuse_value(param, text, field)
    _refuse_value(param, text, field)


def _whole(value: float, text: str, field: str) -> int:
    if value != round(value):
        refuse(field, f"{text} is no whole number of its unit", "write a coarser value")
    return round(value)


def _refuse_value(param: Param, text: str, field: str) -> NoReturn:
    number = f"write a whole number of {param.unit}" if param.unit else "write a whole number"
    refuse(field, f"{shown(text)} is not a value of it", "write on or off" if param.boolean else number)
