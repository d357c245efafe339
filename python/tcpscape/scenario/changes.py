"""Changes of a path while a trial runs: a step, a ramp, a periodic change, or a recorded rate."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from pydantic import Field, model_validator

from tcpscape import units
from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import Percent, Rate, Size, Spec, Time

KINDS = {"at": ("set",), "ramp": ("step", "start", "end"), "every": ("first", "hold", "set"), "trace": ("repeat",)}
"""The field that says of which kind a change is, and the other fields of that kind."""
PROBABILITY_ONE = 0xFFFF_FFFF
"""netem's scale of probabilities."""


class Patch(Spec):
    """New values of a queue; a field that is left out keeps its value."""

    delay: Time | None = None
    """One-way delay, ns."""
    jitter: Time | None = None
    """Spread of the delay, ns."""
    loss: Percent | None = None
    """Share of packets lost."""
    rate: Rate | None = None
    """Rate of the link, bit/s."""
    burst: Size | None = None
    """Burst of a token bucket, bytes."""
    limit: int | None = Field(default=None, ge=1)
    """Size of the queue, in its own unit."""
    outage: bool | None = None
    """Whether nothing leaves the queue: arriving packets wait, and overflow it."""

    def plan(self) -> dict[str, Any]:
        """The new values as plain numbers."""
        values = {k: getattr(self, k) for k in type(self).model_fields if getattr(self, k) is not None}
        if "loss" in values:
            values["loss"] = round(values["loss"] * PROBABILITY_ONE)
        return values


class Change(Spec):
    """A change of one hop; its fields determine which of the four kinds it is.

    `{at: 5s, set: {rate: 5mbit}}` · `{ramp: [2s, 4s], start: {delay: 10ms}, end: {delay: 40ms}}` ·
    `{every: 15s, hold: 300ms, set: {outage: true}}` · `{trace: [[0s, 10mbit], [1s, 5mbit]], repeat: 2s}`
    """

    where: str = "forward"
    """The part of the path that changes: `forward`, `bottleneck`, `reverse`; or a link of the chain, `core`, against it `core.reverse`."""
    hop: int = Field(default=0, ge=0)
    """Hop of `where`, from 0; 0 of a link is the first hop that has what changes: a rate, or a delay."""
    child: int = Field(default=0, ge=0)
    """0 is the hop's own queue, 1 its child, and so on."""
    at: Time | None = None
    """Time of a step, ns."""
    set: Patch | None = None
    """New values of a step, or of the time `hold` of a periodic change."""
    ramp: tuple[Time, Time] | None = None
    """Begin and end."""
    step: Time = 0
    """Time between the steps of a ramp, ns; 0 is a hundredth of it."""
    start: Patch | None = None
    """Values at the beginning of a ramp."""
    end: Patch | None = None
    """Values at the end of a ramp."""
    every: Time | None = None
    """Period of a periodic change, ns."""
    first: Time | None = None
    """First time of a periodic change; `every` where it is left out."""
    hold: Time | None = None
    """How long the new values of a periodic change last, ns."""
    trace: tuple[tuple[Time, str], ...] = ()
    """Times and the rate from then on; rate 0 is an outage."""
    repeat: Time | None = None
    """Period after which a trace begins again, ns; without it, its last rate stays."""

    @model_validator(mode="after")
    def _sensible(self) -> Change:
        kinds = [kind for kind in KINDS if kind in self.model_fields_set and getattr(self, kind) not in (None, ())]
        if len(kinds) != 1:
            refuse("changes", f"{len(kinds)} of {', '.join(KINDS)} are given", "give one of them")
        own = {"where", "hop", "child", kinds[0], *KINDS[kinds[0]]}
        if foreign := sorted(name for name in self.model_fields_set - own if getattr(self, name) not in (None, ())):
            refuse(foreign[0], f"it does not go with {kinds[0]}", f"leave it out; {kinds[0]} has {', '.join(KINDS[kinds[0]])}")
        if (self.at is not None or self.every is not None) and self.set is None:
            refuse("set", "the change has no new values", "add set: {rate: 5mbit}")
        if self.ramp and self.start and self.end and self.start.model_fields_set != self.end.model_fields_set:
            ends = [", ".join(sorted(values.model_fields_set)) or "nothing" for values in (self.start, self.end)]
            refuse("ramp", f"it goes from {ends[0]} to {ends[1]}", "name the same fields in start and end")
        times = [time for time, _ in self.trace]
        if back := next((pair for pair in pairwise(times) if pair[0] >= pair[1]), None):
            before, after = map(units.format_time, back)
            refuse("trace", f"it goes from {before} to {after}", "give its points in order of time, each time once")
        if self.repeat is not None and self.repeat <= times[-1]:
            refuse("repeat", f"{units.format_time(self.repeat)} is not longer than the trace", "give more than the time of its last point")
        if self.every is not None and (not self.every or not self.hold or self.hold >= self.every):
            refuse("hold", "a periodic change lasts less than its period", "write for example every: 15s, hold: 300ms")
        if self.ramp and (self.start is None or self.end is None or self.ramp[0] >= self.ramp[1]):
            refuse("ramp", "it needs a begin before its end, and start and end values", "write ramp: [2s, 4s], start: {…}, end: {…}")
        return self

    def plan(self) -> dict[str, Any]:
        """The change as the engine reads it."""
        if self.ramp and self.start and self.end:
            begin, until = self.ramp
            every = self.step or max(1, (until - begin) // 100)
            return {"kind": "ramp", "from": begin, "until": until, "every": every, "start": self.start.plan(), "end": self.end.plan()}
        if self.trace:
            points = [[t, units.parse_byte_rate(rate, "trace", example="10mbit") * 8] for t, rate in self.trace]
            return {"kind": "rate_trace", "points": points} | ({"repeat": self.repeat} if self.repeat is not None else {})
        values = self.set.plan() if self.set else {}
        if self.every is not None:
            first = self.first if self.first is not None else self.every
            return {"kind": "periodic", "first": first, "period": self.every, "hold": self.hold, "set": values}
        return {"kind": "set", "at": self.at, "set": values}


CHANGE = re.compile(r"\s*(?P<where>[^@:]+?)(\.(?P<hop>\d+))?\s*@\s*(?P<at>[^:\s]+)\s*:\s*(?P<words>.+)", re.DOTALL)
"""How a change is typed; the page reads it by the same pattern."""
EXAMPLE = "write for example 'bottleneck@8s: rate 20mbit', or 'forward@5s: delay 40ms loss 1%'"


def parse(text: str, example: str = EXAMPLE) -> dict[str, Any]:
    """The fields of the change that `WHERE[.HOP]@TIME: NAME VALUE …` describes: `bottleneck@8s: rate 20mbit`, `core.reverse@5s: outage`.

    An outage ends with `outage off`. `example` is what a message tells to write instead.

    :raises ScenarioError: the text does not follow the grammar; the values are checked with the scenario.
    """
    match = CHANGE.fullmatch(text)
    if not match:
        refuse("change", f"{shown(text)} is not WHERE@TIME: NAME VALUE", example)
    words, values = match["words"].replace(",", " ").split(), {}
    while words:
        name = words.pop(0)
        if name not in Patch.model_fields:
            refuse("change", f"{shown(name)} is nothing that changes", f"choose {', '.join(Patch.model_fields)}; {example}")
        if name in values:
            refuse("change", f"{shown(name)} is there twice", "say it once")
        if name != "outage" and not words:
            refuse("change", f"{shown(name)} has no value", example)
        values[name] = _outage(words) if name == "outage" else words.pop(0)
    return {"where": match["where"], "at": match["at"], "set": values} | ({"hop": int(match["hop"])} if match["hop"] else {})


def _outage(words: list[str]) -> bool:
    """Whether an outage begins; takes the word `on` or `off` where there is one."""
    return words.pop(0) == "on" if words[:1] in (["on"], ["off"]) else True
