"""The nouns of an experiment: Scenario, Flow, App, Read, Kernel. Frozen, with units as people write them.

A scenario says everything a trial depends on except the seed and the engine, so its content address names its results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from weakref import WeakKeyDictionary

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from tcpscape import units
from tcpscape.controls import spelling
from tcpscape.errors import ScenarioError, TcpscapeError, refuse
from tcpscape.scenario.changes import Change
from tcpscape.scenario.fields import ByteRate, Noun, Size, Time
from tcpscape.scenario.path import Hops, delay_ns

MAX_FLOWS = 100_000
"""Most flows in one trial."""
CHUNK = 8192
"""Bytes an application writes at once, as in the published rigs."""
READ_SIZE = 65_536
"""Bytes a receiving application asks for at once."""
TIMER_SLACK = 50_000
"""ns: Linux's default timer slack (prctl(2), PR_SET_TIMERSLACK)."""


class App(Noun):
    """What the sending application does: as fast as it can, or chunks at a rate with no catch-up, or a finite transfer."""

    rate: ByteRate = 0
    """Bytes/s; 0 is as fast as it can."""
    chunk: Size = CHUNK
    """Bytes written at once."""
    size: Size = 0
    """Bytes to send in all; 0 is without end."""

    @model_validator(mode="after")
    def _sensible(self) -> App:
        if self.chunk <= 0:
            refuse("chunk", "an application that writes 0 bytes sends nothing", f"write for example {CHUNK}")
        if self.rate and self.size:
            refuse("size", "a paced stream has no size", "leave out rate, or stop the flow at a time")
        return self


class Read(Noun):
    """What the receiving application does: reads `size` bytes at most, after sleeping `delay`."""

    size: Size = READ_SIZE
    """Bytes."""
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
        size, _, delay = value.partition("/")
        return {"size": units.parse_size(size, "read", example="16KiB/1ms"), "delay": delay or 0}
    return {} if value is None else value


def _listener(value: Any) -> Any:
    """A congestion control's name; parameters mean nothing to a socket that sends nothing."""
    if value is not None and spelling.name_of(said := spelling.label(value, "listener")) != said:
        refuse("listener", f"{value!r} has parameters, and a listening socket uses none", f"write {spelling.name_of(said)}")
    return value


CcaField = Annotated[str, BeforeValidator(spelling.label)]
"""A congestion control as written: `cubic`, `cubic:hystart=off`, or a mapping (:mod:`tcpscape.controls.spelling`)."""


class Flow(Noun):
    """One TCP connection, or `count` alike."""

    cca: CcaField = "cubic"
    """Congestion control, Linux's name (or a class in Python, FILE.py:CLASS), and the parameters that differ from their defaults."""
    listener: Annotated[str | None, BeforeValidator(_listener)] = None
    """Congestion control of the listening socket; None is the sender's where it needs ECN (dctcp, prague), otherwise the kernel's default."""
    count: int = 1
    start: Time = 0
    """ns after the trial's start."""
    stop: Time = 0
    """ns after the trial's start; 0 is its end."""
    app: Annotated[App, BeforeValidator(_app)] = App()
    read: Annotated[Read, BeforeValidator(_read)] = Read()
    rcvbuf: Size = 0
    """`SO_RCVBUF` argument, bytes, which the kernel doubles; 0 is autotuned."""
    sndbuf: Size = 0
    """`SO_SNDBUF` argument, bytes; 0 is autotuned."""
    nodelay: bool = True
    """`TCP_NODELAY`."""

    @model_validator(mode="after")
    def _sensible(self) -> Flow:
        if not 1 <= self.count <= MAX_FLOWS:
            refuse("count", f"{self.count} flows", f"write 1 to {MAX_FLOWS}")
        if self.stop and self.stop <= self.start:
            refuse("stop", "the flow stops before it starts", "write a later stop")
        return self


class Kernel(Noun):
    """The kernel simulated: a profile's name and sysctls that differ from it (docs/models/tcp/kernel-profiles.md)."""

    profile: str = "6.1"
    hz: int | None = Field(default=None, ge=24, le=10_000)
    window: Literal["half", "scaling_ratio"] | None = None
    skb_overhead: int | None = Field(default=None, ge=0, le=65_536)
    max_tcp_header: int | None = Field(default=None, ge=0, le=4_096)
    rmem_max: Size | None = None
    wmem_max: Size | None = None
    tcp_rmem_default: Size | None = None
    tcp_rmem_max: Size | None = None
    tcp_wmem_default: Size | None = None
    tcp_wmem_max: Size | None = None
    comp_sack_nr: int | None = Field(default=None, ge=0)
    comp_sack_delay_ns: int | None = Field(default=None, ge=0)
    slow_start_after_idle: bool | None = None

    def plan(self) -> dict[str, Any]:
        """The profile and its overrides, plain numbers."""
        return {k: getattr(self, k) for k in type(self).model_fields if getattr(self, k) is not None}


def _kernel(value: Any) -> Any:
    """`6.1`, `6.12,rmem_max=4MiB`, or a mapping."""
    if isinstance(value, float):
        refuse("kernel", f"{value} is a number, and 6.1 and 6.10 are the same number", f"write it in quotes: '{value}'")
    if isinstance(value, str):
        profile, *overrides = value.split(",")
        fields: dict[str, Any] = {"profile": profile.strip()}
        for item in overrides:
            key, eq, text = item.partition("=")
            if not eq:
                refuse("kernel", f"{item!r} is not NAME=VALUE", "write for example 6.12,rmem_max=4MiB")
            fields[key.strip()] = text.strip()
        return fields
    return value


KernelField = Annotated[Kernel, BeforeValidator(_kernel)]
"""A kernel as written: `6.1`, `6.12,rmem_max=4MiB`, or a mapping."""


class Scenario(Noun):
    """A path, the flows on it and how long to watch: everything but the seed and the engine."""

    name: str = "unnamed"
    about: str = ""
    forward: Hops = ()
    """Hops of the data: the first at the sender's egress, further ones at routers."""
    bottleneck: Annotated[Hops, Field(description="queue at the router, after `forward`")] = ()
    reverse: Hops = ()
    """Hops of the ACKs."""
    flows: tuple[Flow, ...] = (Flow(),)
    duration: Time = 10 * units.NS_PER_S
    kernel: KernelField = Kernel()
    mtu: int = Field(default=1500, ge=576, le=65_535)
    offload: bool = False
    """TSO/GSO/GRO bursts; off, as the published rigs."""
    ecn: bool = False
    """Whether both ends negotiate ECN (`net.ipv4.tcp_ecn = 1`)."""
    timer_slack: Time = TIMER_SLACK
    """How much later than asked a sleeping application wakes, ns."""
    changes: tuple[Change, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        return {"duration": "10s", "timer_slack": units.format_time(TIMER_SLACK), **data} if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _sensible(self) -> Scenario:
        if not self.flows:
            refuse("flows", "there is no flow", "add one, for example {cca: cubic}")
        if self.duration <= 0:
            refuse("duration", "0s watches nothing", "write for example 10s")
        if (total := self.flow_count) > MAX_FLOWS:
            refuse("flows", f"{total} flows", f"write at most {MAX_FLOWS}")
        for flow in self.flows:
            if flow.start >= self.duration:
                refuse("start", f"a flow starts at {units.format_time(flow.start)}, after the end", "start it before `duration`")
        return self

    @property
    def flow_count(self) -> int:
        """Flows in a trial."""
        return sum(f.count for f in self.flows)

    @property
    def rtt_ns(self) -> int:
        """Propagation RTT that the path's words say, ns, without jitter and queues."""
        return sum(delay_ns(h) for h in (*self.forward, *self.bottleneck, *self.reverse))

    @property
    def cca(self) -> str:
        """The congestion controls, `cubic`, `cubic:hystart=0` or `bbr+cubic`."""
        return "+".join(sorted({f.cca for f in self.flows}))

    def with_cca(self, cca: str | Mapping[str, Any]) -> Scenario:
        """The same experiment with every flow under `cca` (`cubic`, `cubic:hystart=off`)."""
        said = spelling.label(cca)
        return self.model_copy(update={"flows": tuple(f.model_copy(update={"cca": said}) for f in self.flows)})

    @property
    def ccas(self) -> tuple[str, ...]:
        """Each connection's congestion control, in the order of a trial's flows."""
        return tuple(f.cca for f in self.flows for _ in range(f.count))

    def to_dict(self) -> dict[str, Any]:
        """Plain values as one would write them; fields at their default are left out."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def address(self) -> str:
        """Content address: a hash of everything that changes a result (not the name)."""
        found = _addresses.get(self)
        if found is None:
            said = self.model_dump(mode="json", exclude={"name", "about"}, context={"address": True})
            found = _addresses[self] = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:24]
        return found

    @classmethod
    def of(cls, data: Any, source: str = "scenario") -> Scenario:
        """A scenario from plain values, with errors in one line."""
        made: Scenario = validate(cls, data, source)
        return made


_addresses: WeakKeyDictionary[Scenario, str] = WeakKeyDictionary()
"""Content addresses, as long as their scenario lives: every seed asks for it."""


def validate(noun: type[Any], data: Any, source: str) -> Any:
    """`noun` from plain values; whatever is wrong becomes one :class:`TcpscapeError` line that names the field."""
    if not isinstance(data, dict):
        raise ScenarioError(f"{source}: not a mapping of fields; write for example 'duration: 10s'")
    try:
        return noun.model_validate(data)
    except ValidationError as e:
        raise ScenarioError(_one_line(e, source)) from None
    except TcpscapeError as e:
        raise type(e)(f"{e}") from None


def _one_line(e: ValidationError, source: str) -> str:
    """The first thing pydantic minds, in the house's words."""
    first = e.errors()[0]
    where = ".".join(str(p) for p in first["loc"] if not str(p).startswith("function-")) or source
    if first["type"] == "extra_forbidden":
        return f"{where}: no such field; see `tcpscape scenario show baseline` for those there are"
    if first["type"] == "missing":
        return f"{where}: missing; add it to {source}"
    return f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}, not {first['input']!r}; correct it in {source}"
