"""A video player as the application of a flow: its ladder of bit rates, its segments, its buffer, and what chooses the rungs.

Page: docs/models/methods/player.md; the player itself is `crates/sim/src/player/`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PlainSerializer, model_validator

from tcpscape import units
from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import Spec, Time
from tcpscape.units import NS_PER_S, format_rate, format_time

RUNGS = {"360p": 1_000_000, "480p": 2_500_000, "720p": 5_000_000, "1080p": 8_000_000, "1440p": 16_000_000, "2160p": 35_000_000}
"""bit/s of each quality, the lowest first: YouTube's recommendations for SDR video at 24–30 frames/s, of a range the lower end
(support.google.com/youtube/answer/1722171). 480p and 720p are what "The Jitter Cliff: When TCP Goes Chaotic" judges by."""
LADDER = tuple(RUNGS.values())
NOTHING = "below 360p"
"""Name of the rates below the lowest rung."""
EXAMPLE = "1,2.5,5,8,16mbit"
"""A ladder as it is written; the unit of the last rung holds for those before it."""
SEGMENTS = (NS_PER_S // 10, 60 * NS_PER_S)
"""Shortest and longest segment, ns."""


def _ladder(value: Any) -> Any:
    """`1,2.5,5,8,16mbit`, or a list of rates."""
    text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    rungs = units.with_units([rung.strip() for rung in text.split(",")])
    if not all(rungs):
        refuse("player", f"{shown(text)} is not a ladder of bit rates", f"write for example {EXAMPLE}")
    return [units.parse_rate(rung, "player", example=EXAMPLE) for rung in reversed(rungs)][::-1]  # the last rung has the unit of the others


class Player(Spec):
    """A player of HTTP adaptive streaming: it asks for one segment after the other and plays what it has."""

    ladder: Annotated[
        tuple[Annotated[int, PlainSerializer(format_rate, return_type=str)], ...], BeforeValidator(_ladder, json_schema_input_type=str | list[str])
    ] = LADDER
    """Bit rates of the rungs, bit/s, rising."""
    segment: Time = 4 * NS_PER_S
    """Media in a segment, ns."""
    abr: Literal["bola", "throughput"] = "bola"
    """What chooses the rungs: the buffer's level (BOLA-BASIC), or the harmonic mean of the last throughputs."""
    buffer: Time = 30 * NS_PER_S
    """Media that the buffer holds, ns."""

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        defaults = {"ladder": [format_rate(rate) for rate in LADDER], "segment": "4s", "buffer": "30s"}
        return defaults | data if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _sensible(self) -> Player:
        if any(low >= high for low, high in pairwise(self.ladder)):
            refuse("player", f"the ladder {', '.join(map(format_rate, self.ladder))} does not rise", f"write for example {EXAMPLE}")
        if not SEGMENTS[0] <= self.segment <= SEGMENTS[1]:
            refuse("segment", f"{format_time(self.segment)} is no usual length", "write 100ms to 60s, for example 4s")
        if self.buffer < 2 * self.segment:
            refuse("buffer", f"{format_time(self.buffer)} do not hold two segments of {format_time(self.segment)}", "write for example 30s")
        return self

    def plan(self) -> dict[str, Any]:
        """The player as an engine's plan has it."""
        return {"ladder_bps": list(self.ladder), "segment_ns": self.segment, "buffer_ns": self.buffer, "abr": self.abr}


def carried(mbps: float) -> str:
    """The name of the highest quality that a steady `mbps` carries."""
    return max((rate, name) for name, rate in {NOTHING: 0, **RUNGS}.items() if rate <= mbps * 1e6)[1]


def with_abr(data: Any) -> Any:
    """A flow's plain values with the field `abr`, if there is one, as a field of its player."""
    if not isinstance(data, dict) or "abr" not in data:
        return data
    values = dict(data)
    abr, player = values.pop("abr"), values.get("player")
    if player is None:
        refuse("abr", "there is no player whose rungs it could choose", f"say the player too, for example {EXAMPLE}")
    fields = player.model_dump(mode="json") if isinstance(player, Player) else read(player)
    if not isinstance(fields, dict):
        return values  # which is refused as it is
    return values | {"player": fields | {"abr": abr}}


def read(value: Any) -> Any:
    """A player as written: a ladder (`1,2.5,5,8,16mbit`), a list of rates, or a mapping."""
    return {"ladder": value} if isinstance(value, (str, list, tuple)) else value


PlayerField = Annotated[Player | None, BeforeValidator(read, json_schema_input_type=Player | str | list[str] | None)]
"""A player as written; None where the receiving application is none."""
