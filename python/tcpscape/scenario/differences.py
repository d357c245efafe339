"""In what two scenarios differ besides their congestion controls, in words and with the values of both: `kernel wmem_max 4MiB / 256KiB`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tcpscape.scenario import summary
from tcpscape.scenario.scenario import PARTS, Scenario

LABELS: Mapping[str, str] = {"duration": "duration", "queue": "queue", "changes": "changes"}
"""What stands before a phrase of :func:`summary.parts` that does not name its subject itself."""
PHRASES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((*PARTS, "links"), ("rtt", "jitter", "loss", "sender", "other", "bottleneck", "queue")),
    "flows": ("application", "flows", "access"), "transfers": ("traffic",), "probes": ("traffic",),
    "changes": ("changes",), "duration": ("duration",), "ecn": ("application",), "offload": ("application",),
}  # fmt: skip
"""Field of a scenario → the phrases that tell of it; the values of a field are listed where none of its phrases differ."""
LISTS = ("other", "application", "traffic")
"""Phrases that are lists of independent ones."""
UNSAID = ("name", "about", "cca")
"""Fields in which a path does not differ."""
NEUTRAL = "cubic"
"""Congestion control that stands for all where paths are compared."""


def differences(a: Scenario, b: Scenario) -> list[str]:
    """What differs, each with the value of `a` and of `b`; empty where nothing but names and congestion controls does."""
    a, b = a.with_cca(NEUTRAL), b.with_cca(NEUTRAL)
    if a.address() == b.address():
        return []
    first, second = summary.parts(a), summary.parts(b)
    first, second = ({name: own.get(name, "") for name in {**first, **second}} for own in (first, second))
    different = [name for name in first if first[name] != second[name] and name != "kernel"]
    if {"jitter", "loss"} & set(different):
        different = [name for name in different if name != "sender"]  # it goes with them
    told = {field for field, phrases in PHRASES.items() if any(name in different for name in phrases)}
    phrases = [_phrase(name, first[name], second[name]) for name in different]
    return phrases + list(_values(a, b, told))


def _phrase(name: str, first: str, second: str) -> str:
    """`jitter 8ms / 4ms normal of the data`: what both phrases begin and end with stands once, and an impairment that one has not is `none` there."""
    if name in LISTS:
        x, y = (text.split(", ") if text else [] for text in (first, second))
        return " / ".join(", ".join(text for text in own if text not in other) or "none" for own, other in ((x, y), (y, x)))
    words = [text.removeprefix(summary.QUEUE).split() for text in (first, second)]
    subject = [LABELS[name]] if name in LABELS else [name] if any(text[:1] == [name] for text in words) else []
    x, y = ([] if text == ["no", name] else text[1:] if text[:1] == [name] else text for text in words)
    head = _common(x, y)
    tail = _common(x[head:][::-1], y[head:][::-1])
    if name == "queue" or min(len(x), len(y)) <= head + tail:
        head = tail = 0
    both = [" ".join(text[head : len(text) - tail]) or "none" for text in (x, y)]
    return " ".join([*subject, *x[:head], " / ".join(both), *x[len(x) - tail :]])


def _common(x: list[str], y: list[str]) -> int:
    """How many words both begin with."""
    return next((i for i, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), min(len(x), len(y)))


def _values(a: Scenario, b: Scenario, told: set[str]) -> Iterator[str]:
    """The plain values that differ, of all fields but those that are told already."""
    for part in PARTS:
        kinds = [[type(hop) for hop in getattr(s, part)] for s in (a, b)]
        if part not in told and kinds[0] != kinds[1]:
            yield f"{part} {' / '.join(_text(s.to_dict().get(part)) for s in (a, b))}"
            told = {*told, part}
    first, second = (dict(_leaves(s.model_dump(mode="json"))) for s in (a, b))
    for place in dict.fromkeys((*first, *second)):
        if first.get(place) != second.get(place) and place[0] not in told and not set(place) & set(UNSAID):
            yield f"{' '.join(place)} {_text(first.get(place))} / {_text(second.get(place))}"


def _leaves(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every plain value with its place; members of a list are counted from 1 where there are several."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield from _leaves(member, (*place, str(name)))
    elif isinstance(value, list) and any(isinstance(member, Mapping) for member in value):
        for i, member in enumerate(value, 1):
            yield from _leaves(member, (*place, str(i)) if len(value) > 1 else place)
    else:
        yield place, value


def _text(value: Any) -> str:
    """A plain value as a phrase."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_text(member)}" for name, member in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "none"
    return "default" if value is None else str(value)
