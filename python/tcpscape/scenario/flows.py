"""The flows of a scenario: a connection's congestion control, its applications, a video player among them, and its socket."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BeforeValidator,
    GetJsonSchemaHandler,
    PlainSerializer,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema

from tcpscape import units
from tcpscape.controls import spelling
from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import ByteRate, Size, Spec, Time, is_address, without_later, written
from tcpscape.scenario.topology import LATER, Endpoint
from tcpscape.units import NS_PER_S, format_rate, format_time

MAX_FLOWS = 100_000
"""Most flows in one trial."""
CHUNK = 8192
"""Bytes an application writes at once, as in the published rigs."""
READ_SIZE = 65_536
"""Most bytes that a receiving application reads at once."""


class App(Spec):
    """The sending application: it writes as fast as it can, or chunks at a rate without catching up, or a finite number of bytes."""

    rate: ByteRate = 0
    """Rate at which it writes, bytes/s; 0 is as fast as possible."""
    chunk: Size = CHUNK
    """Bytes written at once."""
    size: Size = 0
    """Bytes to send in all; 0 is no limit."""
    response: Size = 0
    """Bytes of an answer: the receiver asks, reads so many bytes, thinks and asks again; 0 is an application that nobody asks."""
    think: Time = 0
    """Pause of the receiver between an answer and its next request, ns."""
    every: Time = 0
    """Time between two requests, ns, instead of `think`: flows that begin together ask together."""
    on: Time = 0
    """How long it writes before it pauses for `off`, again and again, ns; 0 is without pauses."""
    off: Time = 0
    """How long it pauses, ns."""

    @model_serializer(mode="wrap")
    def _fields(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        return without_later(fields, self, ("response", "think", "every", "on", "off")) if is_address(info) else fields

    @model_validator(mode="after")
    def _sensible(self) -> App:
        if (self.think or self.every) and not self.response:
            refuse("response", "requests without the size of their answers", "give it too, for example response: 100kB")
        if self.response and (self.rate or self.size or self.on):
            refuse("response", "an application that answers requests has no rate, size or pauses", "leave them out")
        if self.think and self.every:
            refuse("every", "requests at fixed times wait for no thinking", "leave out think or every")
        if bool(self.on) != bool(self.off):
            refuse("on", "an application that pauses has a time on and a time off", "write for example on: 1s, off: 500ms")
        if self.on and self.size:
            refuse("size", "an application with pauses has no size", "leave it out, or stop the flow at a time")
        if self.chunk <= 0:
            refuse("chunk", "an application that writes 0 bytes sends nothing", f"write for example {CHUNK}")
        if self.rate and self.size:
            refuse("size", "a paced stream has no size", "leave out rate, or stop the flow at a time")
        return self


class Read(Spec):
    """The receiving application: it sleeps for `delay`, then reads `size` bytes at most, and repeats."""

    size: Size = READ_SIZE
    """Most bytes read at once."""
    delay: Time = 0
    """Sleep before each read, ns."""

    @model_validator(mode="after")
    def _sensible(self) -> Read:
        if self.size <= 0:
            refuse("read", "a reader of 0 bytes reads nothing", "write for example 16KiB/1ms")
        return self


def _app(value: Any) -> Any:
    """`1MB/s`, 0, or a mapping."""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return {"rate": value}
    return {} if value is None else value


def _read(value: Any) -> Any:
    """`16KiB/1ms`, `16KiB`, or a mapping."""
    if isinstance(value, str):
        size, slash, delay = value.partition("/")
        if slash and not delay.strip():
            refuse("read", f"{shown(value)} has no time behind the /", "write for example 16KiB/1ms, or 16KiB without a sleep")
        return {"size": units.parse_size(size, "read", example="16KiB/1ms"), "delay": delay or 0}
    return {} if value is None else value


def _listener(value: Any) -> Any:
    """A congestion control's name, without parameters: a listening socket sends nothing."""
    if value is not None and spelling.name_of(label := spelling.label(value, "listener")) != label:
        refuse("listener", f"{shown(value)} has parameters, and a listening socket uses none", f"write {spelling.name_of(label)}")
    return value


_CCA = {
    "anyOf": [{"type": "string", "pattern": r"\S"}, {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}],
    "examples": ["cubic", "cubic:hystart=off", {"name": "cubic", "hystart": False}],
}
CcaField = Annotated[str, BeforeValidator(spelling.label, json_schema_input_type=written(_CCA))]
"""A congestion control as written: `cubic`, `cubic:hystart=off`, or a mapping (:mod:`tcpscape.controls.spelling`)."""


_ReadText = written({"type": "string", "pattern": r"^[^/]+(/[^/]*)?$", "examples": ["16KiB/1ms"]})


class Flow(Endpoint):
    """One TCP connection, or `count` equal ones."""

    cca: CcaField = "cubic"
    """Congestion control: its name in Linux or a Python class (FILE.py:CLASS), and the parameters that differ from their defaults."""
    listener: Annotated[str | None, BeforeValidator(_listener, json_schema_input_type=written(_CCA) | None)] = None
    """Congestion control of the listening socket; None is the sender's where it needs ECN (dctcp, prague), otherwise the kernel's default."""
    count: int = 1
    """Equal connections that this entry stands for."""
    start: Time = 0
    """When it connects, ns, after the start of the trial."""
    stop: Time = 0
    """When it stops, ns, after the start of the trial; 0 is at its end."""
    app: Annotated[App, BeforeValidator(_app, json_schema_input_type=App | ByteRate | None)] = App()
    """What the sender's application writes: a rate, or fields."""
    read: Annotated[Read, BeforeValidator(_read, json_schema_input_type=Read | _ReadText | None)] = Read()
    """How the receiver's application reads: `16KiB/1ms`, or fields."""
    player: PlayerField = None
    """A video player as the receiver's application: the sender's writes what it asks for. Its field `abr` may be written as one of the flow."""
    rcvbuf: Size = 0
    """`SO_RCVBUF` argument, bytes, which the kernel doubles; 0 is autotuned."""
    sndbuf: Size = 0
    """`SO_SNDBUF` argument, bytes; 0 is autotuned."""
    nodelay: bool = True
    """Whether segments that are not full are sent at once (`TCP_NODELAY`)."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """With `abr`, which a user may write beside the player."""
        schema = handler(core_schema)
        if handler.mode == "validation":
            choice = list(get_args(Player.model_fields["abr"].annotation))
            handler.resolve_ref_schema(schema)["properties"]["abr"] = {"enum": choice, "description": "What chooses the player's bit rates."}
        return schema

    @model_serializer(mode="wrap")
    def _fields(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        return without_later(fields, self, LATER) if is_address(info) else fields

    @model_validator(mode="before")
    @classmethod
    def _abr(cls, data: Any) -> Any:
        return with_abr(data)

    @model_validator(mode="after")
    def _sensible(self) -> Flow:
        if not 1 <= self.count <= MAX_FLOWS:
            refuse("count", f"{self.count} flows", f"write 1 to {MAX_FLOWS}")
        if self.stop and self.stop <= self.start:
            refuse("stop", "the flow stops before it starts", "write a later stop")
        if self.player and (self.app.rate or self.app.size or self.app.response or self.app.on):
            fix = "leave out the application's rate, size, response and pauses, or the player"
            refuse("app", "the flow has a video player, which says what is sent", fix)
        if self.player and self.read.delay:
            refuse("read", "a video player reads at once", "leave out the delay")
        return self


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
