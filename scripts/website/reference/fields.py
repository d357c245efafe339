"""The fields of a scenario, of a campaign and of a path's conditions, and how quantities are written."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tcpscape import units
from tcpscape.campaign.campaign import Campaign
from tcpscape.scenario.changes import Change, Patch
from tcpscape.scenario.flows import App, Flow, Player, Probe, Read, Transfers
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.path import Link, Netem, TracedLink
from tcpscape.scenario.programs import Programs
from tcpscape.scenario.scenario import SYSCTLS, TRIPLES, Kernel, Scenario
from tcpscape.scenario.topology import Access, ChainLink
from tcpscape.schemas import generator
from website.markdown import code, table

TYPES = {
    "Time": "[time](quantities.md#times), `25ms`",
    "Size": "[size](quantities.md#sizes), `256KiB`",
    "Rate": "[rate](quantities.md#rates), `10mbit`",
    "ByteRate": "[rate](quantities.md#rates) of bytes, `1MB/s`",
    "Percent": "[share](quantities.md#shares), `0.1%`",
    "Buffer": "[buffer](quantities.md#buffers), `2bdp` or `64KB`",
    "Hops": "a [hop](#hops), or a list of hops",
    "Distribution": "`uniform`, `normal`, `pareto`, `paretonormal`",
    "Directions": "`both`, `forward`, `reverse`",
    "Node": "`sender`, `router`",
    "Order": "`reorder`, `keep`, `clamp`",
    "KernelField": "`6.1`, `6.12,rmem_max=4MiB`, or [fields](scenario.md#kernel)",
    "CcaField": "[congestion control](controls.md), `cubic:hystart=off`",
    "PlayerField": "`1,2.5,5,8,16mbit`, or [fields](#player)",
    "Queue": "[queue](queues.md), a name or tc's words",
    "Trace": "file, a mahimahi trace",
    "App": "rate, or [fields](#app)",
    "Read": "`16KiB/1ms`, or [fields](#read)",
    "Patch": "[new values](#new-values)",
    "tuple[Flow, ...]": "list of [flows](#flows)",
    "tuple[ChainLinkField, ...]": "list of [links](#links)",
    "tuple[TransfersField, ...]": "list of [transfers](#transfers)",
    "tuple[ProbeField, ...]": "list of [probes](#probes)",
    "tuple[_Value, ...]": "list of texts or fields, as in a [scenario](scenario.md#links)",
    "tuple[str, str]": "two names, `[a, b]`",
    "AccessField": "`{delay: 10ms, rate: 20mbit}`, tc's words, or [fields](#access-links)",
    "RouterHops": "a [hop](#hops), or a list of hops",
    "Way": "`down`, `up`",
    "ProbeKind": "`udp`, `udp_echo`, `icmp_echo`",
    "tuple[Change, ...]": "list of [changes](#changes)",
    "tuple[Time, Time]": "two times, `[2s, 4s]`",
    "tuple[tuple[Time, str], ...]": "list of times and rates, `[[0s, 10mbit], [1s, 5mbit]]`",
    "Axes": "axis → [values](#values-of-an-axis)",
    "Programs": "[fields](#programs)",
    "Line": "command line",
    "tuple[Line, ...]": "command line, or list of them",
    "Flow": "[fields of a flow](scenario.md#flows)",
    "tuple[Group, ...]": "list of groups, axis → values",
    "tuple[str, ...]": "list of words",
    "dict[str, Any]": "[fields](#conditions)",
    "dict[str, str]": "name → text",
    "Base": "file, name, or [fields](scenario.md)",
    "Name": "text, one component of a path",
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "`true` or `false`",
}
"""A type as it is written in the source → what a user writes."""
REQUIRED: Mapping[type[BaseModel], Mapping[str, object]] = {
    Link: {"rate": "10mbit"},
    Conditions: {"rtt": "50ms"},
    Change: {"at": "5s", "set": {}},
    Transfers: {"rate": "20/s"},
    Programs: {"command": "curl http://far/"},
    Probe: {"name": "voice", "interval": "20ms"},
}
"""Fields without which there is no object whose defaults could be written."""
QUANTITIES = ("Time", "Size", "Rate", "ByteRate")
UNIT = re.compile(r", (?:ns|bytes/s|bytes|bit/s)\b,?(?! or)")
"""The unit of a quantity in the source, where it is a plain number; a user writes the unit with the number."""


def sysctls() -> str:
    """sysctls and the field of a kernel that each is."""
    rows = [*((code(k), code(v)) for k, v in SYSCTLS.items()), *((code(t), "three sizes: least, default, most") for t in TRIPLES)]
    return table(["sysctl", "Field"], rows)


def scale(units: Mapping[str, float], base: str) -> Callable[[], str]:
    """The units of a kind of quantity, in its base unit."""
    return lambda: table(["Unit", f"In {base}"], [(code(unit), f"{factor:,.0f}") for unit, factor in units.items()])


def of(kind: type[BaseModel]) -> Callable[[], str]:
    """The fields of a class."""
    return lambda: table(["Field", "Value", "Default", "What it is"], _rows(kind))


CLASSES = (
    Scenario,
    Netem,
    Link,
    TracedLink,
    ChainLink,
    Access,
    Probe,
    Transfers,
    Flow,
    App,
    Read,
    Player,
    Kernel,
    Programs,
    Change,
    Patch,
    Campaign,
    Conditions,
)
"""Classes whose fields are written."""
PARTS: Mapping[str, Callable[[], str]] = {
    **{kind.__name__: of(kind) for kind in CLASSES},
    "sysctls": sysctls,
    "times": scale(units.TIME_UNITS, "ns"),
    "sizes": scale(units.SIZE_UNITS, "bytes"),
    "rates": scale(units.RATE_UNITS, "bit/s"),
}
"""Name of a part → the function that writes it."""


def _rows(kind: type[BaseModel]) -> Iterable[tuple[str, str, str, str]]:
    docs, types = generator.of_fields(kind), generator.types(kind)
    for name, field in kind.model_fields.items():
        about = docs.get(name) or field.description or ""
        about = UNIT.sub("", about) if types[name].removesuffix(" | None") in QUANTITIES else about
        value = _type(types[name]) + _bounds(field)
        yield code(name), value, _default(kind, name), about.replace(". None is", ". Left out:").replace("None is", "left out:")


def _type(written: str) -> str:
    """A type as it is written in the source, in a user's words."""
    written = _without_annotation(written)
    if written.startswith("tuple[Annotated["):  # a ladder of rates
        return "list of rates, `1,2.5,5,8,16mbit`"
    if words := re.match(r"Literal\[(.+?)\]", written):
        return ", ".join(code(word.strip().strip("'\"")) for word in words[1].split(","))
    if (name := written.removesuffix(" | None")) not in TYPES:
        raise LookupError(f"{written}: TYPES in scripts/website/reference/fields.py has to say what a user writes for this type")
    return TYPES[name]


def _without_annotation(written: str) -> str:
    """`Annotated[X, …]` is X."""
    tree = ast.parse(written, mode="eval").body
    is_annotated = isinstance(tree, ast.Subscript) and ast.unparse(tree.value) == "Annotated" and isinstance(tree.slice, ast.Tuple)
    return ast.unparse(tree.slice.elts[0]) if is_annotated else written


def _bounds(field: FieldInfo) -> str:
    """`, 1 to 10` of a number that is bounded."""
    least, most = (next((getattr(m, name) for m in field.metadata if hasattr(m, name)), None) for name in ("ge", "le"))
    if least is None and most is None:
        return ""
    return f", from {least:,}" if most is None else f", {least or 0:,} to {most:,}"


def _default(kind: type[BaseModel], name: str) -> str:
    """The default of a field as a user would write it; empty where leaving it out means that there is none."""
    field = kind.model_fields[name]
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, BaseModel) or value in ((), {}, "", PydanticUndefined):
        return ""
    if isinstance(value, tuple) and isinstance(value[0], BaseModel):
        return "one flow"
    written = kind(**REQUIRED.get(kind, {})).model_dump(mode="json")[name] if kind is not TracedLink else value
    return code(", ".join(written) if isinstance(written, list) else str(written).lower() if isinstance(written, bool) else written)
