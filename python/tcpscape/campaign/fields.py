"""Fields of a scenario's plain values by a dotted name, as axes set them: `bottleneck.buffer`, `forward.jitter`, `changes.0.set.rate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcpscape.errors import refuse, shown
from tcpscape.scenario.scenario import Scenario

NEW_HOPS: Mapping[str, Mapping[str, str]] = {"forward": {"at": "router"}, "bottleneck": {}, "reverse": {}}
"""Part of a path → the fields of a hop that an axis adds to it."""
LISTS = ("changes", "flows", "links", "transfers", "probes")
"""Fields of a scenario that have items of their own, which an axis does not add."""


def is_dotted(name: str) -> bool:
    """Whether a name is a field within a field of a scenario."""
    first, dot, rest = name.partition(".")
    return bool(dot and rest) and first in Scenario.model_fields


def set_dotted(data: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    """Plain values of a scenario with one field within another one set.

    A number chooses an item of a list, from 0; without one the list has one item only. A part of the path that the scenario does not have
    becomes one hop with the field, for the data at a router, where packets are treated one by one. A field that the scenario leaves at its default
    (the kernel) keeps what it has by default besides.

    :raises ScenarioError: where the part is tc's words, which have no fields, or there is no such item.
    """
    first, _, rest = name.partition(".")
    absent: Any = [{}] if first == "flows" else [] if first in LISTS else dict(NEW_HOPS.get(first, {}))
    return {**data, first: _set(data.get(first) or absent, rest.split("."), value, name)}


def _set(place: Any, names: Sequence[str], value: str, whole: str) -> Any:
    """`place` with the field that `names` lead to set; what `place` has besides stays."""
    if not names:
        return value
    head, *rest = names
    if isinstance(place, (list, tuple)):
        index = _index(place, head, whole)
        return [_set(item, rest if head.isdigit() else names, value, whole) if i == index else item for i, item in enumerate(place)]
    if isinstance(place, dict):
        return {**place, head: _set(place.get(head), rest, value, whole)}
    if place is None:
        return {head: _set(None, rest, value, whole)}
    fix = f"write it with fields, {{{head}: {value}}}, or put ${{NAME}} into the words"
    refuse(whole, f"{shown(place)} is words, which have no field {shown(head)}", fix)


def _index(items: Sequence[Any], head: str, whole: str) -> int:
    """The place of the item that a name chooses."""
    if not items:
        refuse(whole, "the scenario has none", "add one to the scenario")
    if not head.isdigit():
        if len(items) > 1:
            refuse(whole, f"there are {len(items)} of them", f"choose one by its number, as in {whole.replace(head, f'0.{head}', 1)}")
        return 0
    if int(head) >= len(items):
        refuse(whole, f"there is no number {head}", f"choose 0 to {len(items) - 1}")
    return int(head)
