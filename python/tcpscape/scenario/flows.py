"""The flows of a scenario: a connection's congestion control, its applications, a video player among them, and its socket.

Besides long flows there are probes, which measure delays with single packets, and transfers, connections that arrive at random: page
docs/models/methods/traffic.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BeforeValidator,
    Field,
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
from tcpscape.scenario.fields import SIZE, ByteRate, Name, Rate, Size, Spec, Time, is_address, without_later, written
from tcpscape.scenario.grammar import parse_probe, parse_transfers
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
        return {"rate": 0 if value == "0" else value}
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
    """What the sender's application writes: a rate, or fields. Its field `chunk` may be written as one of the flow."""
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
    misbehaves: Literal["optimistic", "dividing", "concealing"] | None = None
    """How the receiver's TCP misbehaves (Savage et al., CCR 1999; RFC 3540 §1): `optimistic` acknowledges what has not arrived, `dividing`
    acknowledges in eight steps, `concealing` hides congestion marks. The model alone has such receivers."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """With `abr` and `chunk`, which a user may write beside the player and the application."""
        schema = handler(core_schema)
        if handler.mode == "validation":
            choice, fields = list(get_args(Player.model_fields["abr"].annotation)), handler.resolve_ref_schema(schema)["properties"]
            fields["abr"] = {"enum": choice, "description": "What chooses the player's bit rates."}
            fields["chunk"] = {**SIZE, "description": "Bytes that the application writes at once."}
        return schema

    @model_serializer(mode="wrap")
    def _fields(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        return without_later(fields, self, (*LATER, "misbehaves")) if is_address(info) else fields

    @model_validator(mode="before")
    @classmethod
    def _beside(cls, data: Any) -> Any:
        return _with_chunk(with_abr(data))

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


def _with_chunk(flow: Any) -> Any:
    """A flow's fields in which `chunk`, where it stands among them, is one of its application's."""
    if not isinstance(flow, dict) or "chunk" not in flow:
        return flow
    others, app = {name: value for name, value in flow.items() if name != "chunk"}, _app(flow.get("app"))
    fields = app.model_dump(mode="json", exclude_defaults=True) if isinstance(app, App) else app
    return {**others, "app": {**fields, "chunk": flow["chunk"]} if isinstance(fields, dict) else fields}


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


ProbeKind = Literal["udp", "udp_echo", "icmp_echo", "scream"]
"""What travels: UDP datagrams one way, UDP datagrams that the far host sends back, ICMP echo requests, or a media flow that adapts (RFC 8298)."""
PRESETS: dict[str, dict[str, Any]] = {
    "voice": {"kind": "udp", "size": 172, "interval": "20ms"},
    "ping": {"kind": "icmp_echo", "size": 56, "interval": "200ms"},
    "udp_ping": {"kind": "udp_echo", "size": 32, "interval": "200ms"},
    "scream": {"kind": "scream", "size": 1200, "interval": "40ms", "least": "150kbit", "most": "1500kbit"},
}
"""Probes by a name: a G.711 call of 20 ms packets (RFC 3551: 160 bytes behind an RTP header of 12); ping(8)'s packet at Flent's interval; the same
over UDP; a video of 25 frames/s whose bit rate SCReAM adapts, with the bounds of RFC 8867."""


LEAST_INTERVAL = 100_000
"""ns: the shortest time between two packets of a probe, 10,000 of them a second."""
LEAST_PAYLOAD, MOST_PAYLOAD = 16, 65_507
"""Bytes: a packet carries its number and its time; the largest datagram of UDP over IPv4."""
MOST_PACKETS = 1_000_000
"""Most packets of all probes of a trial."""
MOST_DIGITS = 18
"""Most characters of a number of connections."""
HEADERS = 28
"""Bytes of the headers of IPv4 and of UDP or ICMP."""


class Probe(Endpoint):
    """A stream of packets of the same size at even intervals, which measures the delay of each."""

    name: Name
    """What results call it."""
    kind: ProbeKind = "udp"
    """What travels, and whether it is answered."""
    size: Size = 172
    """Payload bytes; of a media flow the most of a packet."""
    interval: Time
    """Time between two packets, or between two frames of a media flow, ns."""
    least: Rate | None = None
    """Least bit rate of a media flow."""
    most: Rate | None = None
    """Largest bit rate of a media flow."""
    start: Time = 0
    """When the first packet is sent, ns."""
    stop: Time = 0
    """When it ends, ns; 0 is the end of the trial."""

    @model_validator(mode="after")
    def _sensible(self) -> Probe:
        if self.interval < LEAST_INTERVAL:
            problem = f"a packet every {units.format_time(self.interval)} is no measurement but a load"
            refuse("interval", problem, f"write at least {units.format_time(LEAST_INTERVAL)}, for example 20ms")
        if not LEAST_PAYLOAD <= self.size <= MOST_PAYLOAD:
            problem = f"a packet of {units.format_size(self.size)} of payload"
            refuse("size", problem, f"write {LEAST_PAYLOAD}B, for its number and its time, to {MOST_PAYLOAD}B")
        if self.stop and self.stop <= self.start:
            refuse("stop", "the probe stops before it starts", "write a later stop")
        return self

    @model_validator(mode="after")
    def _media(self) -> Probe:
        if self.kind == "scream" and not (self.least and self.most and self.least <= self.most):
            refuse("least", "a media flow has a least and a largest bit rate", "write for example {preset: scream, least: 150kbit, most: 1500kbit}")
        if self.kind != "scream" and (self.least or self.most):
            refuse("least", f"a probe of kind {self.kind} sends at an even rate", "leave `least` and `most` out, or write kind: scream")
        return self

    @model_serializer(mode="wrap")
    def _fields(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        return without_later(fields, self, ("least", "most")) if is_address(info) else fields

    def span(self, duration: int) -> int:
        """How long it sends in a trial of `duration` ns, ns."""
        return max(0, min(self.stop or duration, duration) - self.start)

    def packets(self, duration: int) -> int:
        """Packets that it sends in a trial of `duration` ns, at most."""
        return -(-self.span(duration) // self.interval) + (self.most or 0) * self.span(duration) // (8 * NS_PER_S * self.size)

    def plan(self) -> dict[str, Any]:
        """The probe as an engine's plan has it, without its place."""
        media = {"media": {"least_bps": self.least, "most_bps": self.most}} if self.kind == "scream" else {}
        return {"kind": self.kind, "size": self.size, "interval_ns": self.interval, "start_ns": self.start, "stop_ns": self.stop, **media}


def _probe(value: Any) -> Any:
    """A preset with what differs from it (`voice~up`), or fields that may begin with a preset."""
    if isinstance(value, str):
        value = parse_probe(value)
    if not isinstance(value, dict):
        return value
    values = dict(value)
    preset = values.pop("preset", None)
    if preset is not None and preset not in PRESETS:
        refuse("probes", f"no probe {shown(preset)}", f"choose {', '.join(PRESETS)}, or write its kind, size and interval")
    base = PRESETS[preset] if preset else {}
    name = preset or str(values.get("kind", get_args(ProbeKind)[0]))
    return {"name": f"{name}-up" if values.get("direction") == "up" else name, **base, **values}


_ShortProbe = written({"type": ["string", "object"], "examples": ["voice", "voice~up", {"preset": "ping", "interval": "100ms"}]})
ProbeField = Annotated[Probe, BeforeValidator(_probe, json_schema_input_type=Probe | _ShortProbe)]
"""A probe as written: `voice`, `ping~interval=100ms`, `{preset: voice, direction: up}`, or its fields."""


def _per_second(value: Any) -> Any:
    """`20/s`, or a number of connections a second."""
    if not isinstance(value, str):
        return value
    number = value.strip().removesuffix("/s").strip()
    if not (number.isascii() and number.replace(".", "", 1).isdigit() and len(number) <= MOST_DIGITS):
        refuse("rate", f"{shown(value)} is no number of connections a second", "write for example 20/s, or 0.5/s")
    return float(number)


class Transfers(Endpoint):
    """Connections that begin as a Poisson process; each sends a number of bytes from a bounded Pareto distribution and ends."""

    cca: CcaField = "cubic"
    """Congestion control of each."""
    rate: Annotated[float, BeforeValidator(_per_second, json_schema_input_type=float | str)] = Field(gt=0, le=100_000)
    """Connections a second, on average."""
    size: Size = 30_000
    """Mean bytes of a connection."""
    shape: float = Field(default=1.2, gt=0.1, le=10)
    """Shape of the sizes' Pareto distribution: the lower, the more bytes are in few connections."""
    most: Size = 10_000_000
    """Largest transfer, bytes; the same as `size` gives all connections that size."""
    start: Time = 0
    """When connections begin to arrive, ns."""
    stop: Time = 0
    """When they cease to arrive, ns; 0 is the end of the trial."""

    @model_validator(mode="after")
    def _sensible(self) -> Transfers:
        if not 0 < self.size <= self.most:
            refuse("size", f"a mean of {units.format_size(self.size)} with at most {units.format_size(self.most)}", "write a mean below most")
        if self.stop and self.stop <= self.start:
            refuse("stop", "they stop before they start", "write a later stop")
        return self

    def connections(self, duration: int) -> float:
        """Connections that begin in a trial of `duration` ns, on average."""
        return self.rate * max(0, min(self.stop or duration, duration) - self.start) / units.NS_PER_S

    def expect_few(self, duration: int) -> None:
        """Refuses more connections than a trial may have. :raises ScenarioError: one line with the most there may be."""
        if (count := self.connections(duration)) > MAX_FLOWS:
            refuse("transfers", f"{count:.0f} connections in {units.format_time(duration)}", f"write a lower rate: at most {MAX_FLOWS} in a trial")

    @property
    def least(self) -> int:
        """The smallest transfer, bytes, with which the mean is `size`."""
        if self.size == self.most:
            return self.size
        low, high = 1.0, float(self.size)
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if bounded_mean(middle, self.most, self.shape) < self.size else (low, middle)
        return max(1, round(high))


def _transfers(value: Any) -> Any:
    """`20/s,30kB~up`, or fields."""
    return parse_transfers(value) if isinstance(value, str) else value


_ShortTransfers = written({"type": "string", "examples": ["20/s,30kB", "5/s,100kB~up~cca=bbr"]})
TransfersField = Annotated[Transfers, BeforeValidator(_transfers, json_schema_input_type=Transfers | _ShortTransfers)]
"""Transfers as written: `20/s,30kB~up`, or fields."""


def expect(transfers: Sequence[Transfers], probes: Sequence[Probe], duration: int, mtu: int) -> None:
    """Refuses transfers and probes that start too late, too many packets or connections, packets too large, and two probes of one name.

    :raises ScenarioError: one line that names the field.
    """
    starts = [(entry.start, "transfers start") for entry in transfers] + [(probe.start, f"the probe {probe.name} starts") for probe in probes]
    if late := next(((start, what) for start, what in starts if start >= duration), None):
        refuse("start", f"{late[1]} at {units.format_time(late[0])}, after the end", "start it before `duration`")
    for entry in transfers:
        entry.expect_few(duration)
    names = [probe.name for probe in probes]
    if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
        refuse("probes", f"two are called {shown(twice)}", "give each a name, for example {preset: voice, name: call}, or voice~name=call")
    if large := next((probe.size for probe in probes if probe.size + HEADERS > mtu), None):
        problem = f"{units.format_size(large)} and {HEADERS} bytes of headers do not fit into a packet of {mtu} bytes"
        refuse("size", problem, f"write at most {mtu - HEADERS}B")
    if (packets := sum(probe.packets(duration) for probe in probes)) > MOST_PACKETS:
        refuse("interval", f"the probes send {packets} packets", f"write longer intervals: at most {MOST_PACKETS} packets in a trial")


def bounded_mean(least: float, most: float, shape: float) -> float:
    """Mean of the Pareto distribution of this shape between `least` and `most`."""
    if abs(shape - 1) < 1e-9:
        shape += 1e-6
    kept = 1 - (least / most) ** shape
    mean: float = least**shape / kept * shape / (shape - 1) * (least ** (1 - shape) - most ** (1 - shape))
    return mean
