"""A scenario: a path, the flows on it, a kernel and a duration.

It holds everything that a trial depends on except the seed and the engine, so its content address names its results. The kernel is a profile
(docs/models/tcp/kernel-profiles.md) and the settings that differ from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, get_args
from weakref import WeakKeyDictionary

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema

from tcpscape import units
from tcpscape.controls import spelling
from tcpscape.errors import instead, refuse, shown
from tcpscape.formats import without
from tcpscape.names import expect_line
from tcpscape.scenario import flows, host, path, programs, topology
from tcpscape.scenario.changes import Change
from tcpscape.scenario.fields import Name, Size, Spec, Time, is_address, validate, without_later
from tcpscape.scenario.flows import MAX_FLOWS, Flow, ProbeField, TransfersField
from tcpscape.scenario.path import Hops, Netem, TracedLink
from tcpscape.scenario.programs import Programs
from tcpscape.scenario.topology import Access, ChainLink, ChainLinkField, Endpoint
from tcpscape.scenario.words import QueueDescription, within

TIMER_SLACK = 50_000
"""ns: Linux's default timer slack (prctl(2), PR_SET_TIMERSLACK)."""

HOST_TIME = 15_000
"""ns: time of a packet between the wire and TCP of a host that is busy with a connection. docs/models/tcp/hosts.md"""
MOST_HOST_TIME = 10_000_000
"""ns: longest time of a packet in its host."""

Part = Literal["forward", "bottleneck", "reverse"]
COMPUTED = ("chain", "routers", "rtt_ns", "is_topology", "cca", "_hash")
"""Properties of a scenario that are computed once."""
PARTS: tuple[Part, ...] = get_args(Part)
"""Parts of a path, in the order in which a packet and its ACK meet them."""
NEUTRAL = "cubic"
"""Congestion control that stands for all where paths are compared."""


class Kernel(Spec):
    """The kernel simulated: a profile's name and sysctls that differ from it (docs/models/tcp/kernel-profiles.md)."""

    profile: str = "6.1"
    """Name of the kernel profile, `6.1`, `6.6`, `6.12`, `6.18`, `6.19`, `7.1`, or `host` for the one that fits this machine."""
    hz: int | None = Field(default=None, ge=24, le=10_000)
    """Ticks in a second (`CONFIG_HZ`): the grain of TCP's timers."""
    window: Literal["half", "scaling_ratio"] | None = None
    """How a receive buffer becomes a window: half of it, or by the measured ratio of payload to memory."""
    skb_overhead: int | None = Field(default=None, ge=0, le=65_536)
    """Memory that a received segment costs beyond its payload, bytes."""
    max_tcp_header: int | None = Field(default=None, ge=0, le=4_096)
    """Room for headers in each buffer that TCP builds, bytes (`MAX_TCP_HEADER`)."""
    rmem_max: Size | None = None
    """Largest `SO_RCVBUF` argument, bytes (`net.core.rmem_max`)."""
    wmem_max: Size | None = None
    """Largest `SO_SNDBUF` argument, bytes (`net.core.wmem_max`)."""
    tcp_rmem_default: Size | None = None
    """Receive buffer at the start, bytes (the second number of `net.ipv4.tcp_rmem`)."""
    tcp_rmem_max: Size | None = None
    """Largest autotuned receive buffer, bytes (the third number of `net.ipv4.tcp_rmem`)."""
    tcp_wmem_default: Size | None = None
    """Send buffer at the start, bytes (the second number of `net.ipv4.tcp_wmem`)."""
    tcp_wmem_max: Size | None = None
    """Largest autotuned send buffer, bytes (the third number of `net.ipv4.tcp_wmem`)."""
    limit_output_bytes: Size | None = None
    """Most that a connection without pacing keeps in its host's queues, bytes (`net.ipv4.tcp_limit_output_bytes`)."""
    comp_sack_nr: int | None = Field(default=None, ge=0)
    """Most ACKs that are compressed into one (`net.ipv4.tcp_comp_sack_nr`); 0 is none."""
    comp_sack_delay_ns: int | None = Field(default=None, ge=0)
    """Longest delay of a compressed ACK, ns (`net.ipv4.tcp_comp_sack_delay_ns`)."""
    slow_start_after_idle: bool | None = None
    """Whether the window is reduced after a pause (`net.ipv4.tcp_slow_start_after_idle`)."""
    initcwnd: int | None = Field(default=None, ge=1, le=1_000)
    """Congestion window of a new connection, segments (`ip route … initcwnd`, RFC 6928)."""
    host_time: Time = HOST_TIME
    """Time that each packet which arrives takes in its host between the wire and TCP, at most 10 ms (docs/models/tcp/hosts.md)."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, values: Any) -> Any:
        return {"host_time": units.format_time(HOST_TIME), **values} if isinstance(values, dict) else values

    @field_validator("host_time")
    @classmethod
    def _expect_host_time(cls, value: int) -> int:
        if value > MOST_HOST_TIME:
            problem = f"{units.format_time(value)} is longer than {units.format_time(MOST_HOST_TIME)}"
            refuse("kernel.host_time", problem, "write for example 15us; a delay of the path is its own")
        return value

    @model_serializer(mode="wrap")
    def _fields(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        if is_address(info) and self.host_time == 0:
            del fields["host_time"]  # a kernel's address from before hosts had a time
        if is_address(info) and self.initcwnd is None:
            del fields["initcwnd"]  # … and from before it had this
        return fields

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """With the sysctls by their own names, as a user may write them."""
        schema = handler(core_schema)
        if handler.mode == "validation":
            fields = handler.resolve_ref_schema(schema)["properties"]
            fields |= {sysctl: {**fields[field], "description": f"`{field}`."} for sysctl, field in SYSCTLS.items()}
            fields |= {sysctl: {"type": "string", "description": "Three sizes: least, default, most."} for sysctl in TRIPLES}
        return schema

    def plan(self) -> dict[str, Any]:
        """The profile and its overrides, plain numbers."""
        return {k: getattr(self, k) for k in type(self).model_fields if getattr(self, k) is not None}


SYSCTLS = {
    "net.core.rmem_max": "rmem_max",
    "net.core.wmem_max": "wmem_max",
    "net.ipv4.tcp_comp_sack_nr": "comp_sack_nr",
    "net.ipv4.tcp_comp_sack_delay_ns": "comp_sack_delay_ns",
    "net.ipv4.tcp_limit_output_bytes": "limit_output_bytes",
    "net.ipv4.tcp_slow_start_after_idle": "slow_start_after_idle",
}
"""sysctl → the field of :class:`Kernel` that it is."""
MOST_OF_PROFILE = 64
"""Characters of a kernel profile's name."""
TRIPLES = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
"""sysctls with three values: least, default and most."""


def _setting(name: str, value: Any) -> dict[str, Any]:
    """The fields that a setting is, which may be written as a sysctl: `net.ipv4.tcp_rmem=4096 131072 6291456` is two fields."""
    if name in TRIPLES:
        sizes = str(value).split()
        if len(sizes) != 3:
            refuse(f"kernel.{name}", f"{shown(value)} is not three sizes", f"write for example {name}=4096 131072 6291456")
        field = name.removeprefix("net.ipv4.")
        return {f"{field}_default": sizes[1], f"{field}_max": sizes[2]}
    return {SYSCTLS.get(name, name): value}


def _kernel(value: Any) -> Any:
    """`6.1`, `6.12,rmem_max=4MiB`, `host` (this machine's), or a mapping."""
    if isinstance(value, float):
        refuse("kernel", f"{value} is a number, and 6.1 and 6.10 are the same number", f"write it in quotes: '{value}'")
    if isinstance(value, str):
        profile, *overrides = value.split(",")
        if not profile.strip() or "=" in profile:
            refuse("kernel", f"{shown(value)} does not begin with a profile", f"write for example 6.1{',' * bool(value)}{value}")
        if len(profile.strip()) > MOST_OF_PROFILE:
            refuse("kernel", f"{shown(profile)} is no profile's name", "see `tcpscape kernel list`, or write 6.1")
        fields: dict[str, Any] = {"profile": expect_line(profile.strip(), "kernel")}
        for item in overrides:
            key, eq, text = item.partition("=")
            if not eq:
                refuse("kernel", f"{shown(item)} is not NAME=VALUE", "write for example 6.12,rmem_max=4MiB")
            fields |= _setting(key.strip(), text.strip())
        value = fields
    elif isinstance(value, dict):
        value = {field: of for key, text in value.items() for field, of in _setting(key, text).items()}
    if isinstance(value, dict) and value.get("profile") == host.NAME:
        value = host.fields() | {field: given for field, given in value.items() if field != "profile"}
    if isinstance(value, dict) and (unknown := [name for name in value if name not in Kernel.model_fields]):
        refuse(f"kernel.{unknown[0]}", "no such field", instead(unknown[0], Kernel.model_fields))
    return value


KernelField = Annotated[Kernel, BeforeValidator(_kernel, json_schema_input_type=Kernel | Annotated[str, Field(pattern=r"^\s*[^\s,=]")])]
"""A kernel as written: `6.1`, `6.12,rmem_max=4MiB`, or a mapping."""


class Scenario(Spec):
    """A path, the flows on it, a kernel and a duration: everything but the seed and the engine."""

    name: Name = "unnamed"
    """What results and reports call it; it does not change them."""
    about: str = ""
    """What it is for, as one or two sentences."""
    forward: Hops = ()
    """Hops of the data: the first at the sender's egress, further ones at routers."""
    bottleneck: Hops = ()
    """The queue at the router, after `forward`."""
    reverse: Hops = ()
    """Hops of the ACKs."""
    links: tuple[ChainLinkField, ...] = ()
    """Further links of a chain, behind the path's own hops."""
    flows: tuple[Flow, ...] = (Flow(),)
    """The connections; several entries share the path."""
    transfers: tuple[TransfersField, ...] = ()
    """Connections that arrive at random and end when their bytes are sent."""
    probes: tuple[ProbeField, ...] = ()
    """Streams of single packets that measure delays: `voice`, `ping`, or fields."""
    duration: Time = 10 * units.NS_PER_S
    """How long the path is watched, ns."""
    kernel: KernelField = Kernel()
    """The kernel at both ends: a profile's name, or a profile with settings that differ."""
    mtu: int = Field(default=1500, ge=576, le=65_535)
    """Largest IP packet, bytes."""
    offload: bool = False
    """Whether there are TSO/GSO/GRO bursts; off, as in the published rigs."""
    ecn: bool = False
    """Whether both ends negotiate ECN (`net.ipv4.tcp_ecn = 1`)."""
    timer_slack: Time = TIMER_SLACK
    """How much later than requested a sleeping application wakes, ns."""
    tick_phase: Time | None = None
    """When the kernel's first tick falls after the begin, ns, in the model and in virtual time; drawn from the seed where it is not given."""
    changes: tuple[Change, ...] = ()
    """Changes of the path during the trial."""
    programs: Programs | None = None
    """A command of this machine and its servers on the path, on the engines `virtual` and `live`; `duration` then ends it, and there are no
    flows but those that are said."""

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        values = without("scenario", data)
        if isinstance(values, dict) and values.get("programs") is not None:
            values = {"duration": programs.DURATION, "offload": True, "flows": (), **values}
        return {"duration": "10s", "timer_slack": units.format_time(TIMER_SLACK), **values} if isinstance(values, dict) else values

    @model_validator(mode="after")
    def _sensible(self) -> Scenario:
        if not (self.flows or self.transfers or self.probes or self.programs):
            refuse("flows", "there is no flow", "add one, for example {cca: cubic}")
        if self.duration <= 0:
            refuse("duration", "0s watches nothing", "write for example 10s")
        if (total := self.flow_count) > MAX_FLOWS:
            refuse("flows", f"{total} flows", f"write at most {MAX_FLOWS}")
        for flow in self.flows:
            if flow.start >= self.duration:
                refuse("start", f"a flow starts at {units.format_time(flow.start)}, after the end", "start it before `duration`")
        flows.expect(self.transfers, self.probes, self.duration, self.mtu)
        for endpoint in self.endpoints:
            first, last = self.span(endpoint)
            topology.expect_way(endpoint, self.chain[first:last])
            if endpoint.rtt is not None:
                self.access_of(endpoint)
        for change in self.changes:
            self.place_of(change)
        return self

    @model_serializer(mode="wrap")
    def _fields(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        if self.programs:  # whose scenarios have other defaults
            fields = {"duration": "10s", "offload": False, "flows": [{}]} | fields
        later = ("links", "transfers", "probes", "tick_phase", "programs")
        return without_later(fields, self, later) if is_address(info) else fields

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that joins the path: flows, transfers and probes."""
        return (*self.flows, *self.transfers, *self.probes)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Scenario:
        """A copy, which forgets what was computed of the original where `update` changes fields."""
        copied = super().model_copy(update=update, deep=deep)
        for name in COMPUTED if update else ():
            copied.__dict__.pop(name, None)
        return copied

    def __getstate__(self) -> dict[Any, Any]:
        """Without what was computed: a hash is of its process alone."""
        state = super().__getstate__()
        return {**state, "__dict__": {name: value for name, value in state["__dict__"].items() if name not in COMPUTED}}

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Its hash: what is known of a scenario is looked up several times for each trial."""
        return hash(tuple(self.__dict__[name] for name in type(self).model_fields))

    @cached_property
    def chain(self) -> tuple[ChainLink, ...]:
        """The links of the path: its own hops, where there are any, then `links`."""
        own = ChainLink.model_construct(forward=(*self.forward, *self.bottleneck), reverse=self.reverse)  # valid, and some at hosts
        return (own, *self.links) if any(getattr(self, part) for part in PARTS) or not self.links else self.links

    @cached_property
    def routers(self) -> tuple[str, ...]:
        """The names of the chain's routers. :raises ScenarioError: the links are no chain."""
        return topology.routers(self.chain)

    def span(self, endpoint: Endpoint) -> tuple[int, int]:
        """The routers between which flows use the chain, by their numbers, the smaller one first.

        :raises ScenarioError: an unknown router, or data that leave before they enter.
        """
        return topology.span(endpoint, self.routers)

    def place_of(self, change: Change) -> tuple[int, topology.Direction] | None:
        """The number of the link in the chain and its direction that a change names; None of a part of the path itself.

        :raises ScenarioError: there is no such place.
        """
        if change.where in PARTS:
            return None
        first = len(self.chain) - len(self.links)
        number, direction = topology.place(change.where, self.links, first)
        return first + number, direction

    @cached_property
    def is_topology(self) -> bool:
        """Whether it has `links`, access links or RTTs of its flows: then all hops are at routers."""
        return bool(self.links) or any(e.access or e.rtt is not None for e in self.endpoints)

    @property
    def hops(self) -> tuple[path.Hop, ...]:
        """Every hop: of the path, of its links, and of access links."""
        chain = [hop for link in self.chain for hop in (*link.forward, *link.reverse)]
        return (*chain, *(hop for e in self.endpoints if e.access for hop in topology.hops(e.access)))

    @property
    def is_traced(self) -> bool:
        """Whether the rate of a hop was recorded."""
        return any(isinstance(hop, TracedLink) for hop in self.hops)

    @property
    def extras(self) -> tuple[str, ...]:
        """What it has besides one link, data in one direction and long flows, each as a phrase; empty of most."""
        every = {
            "links": bool(self.links),
            "access links": any(e.access for e in self.endpoints),
            "RTTs of its flows": any(e.rtt is not None for e in self.endpoints),
            "data that travel up": any(e.direction == "up" for e in self.endpoints),
            "transfers": bool(self.transfers),
            "probes": bool(self.probes),
            "requests": any(flow.app.response for flow in self.flows),
            "pauses of applications": any(flow.app.on for flow in self.flows),
            "programs": self.programs is not None,
            "no flows": not self.flows and self.programs is None,
        }
        return tuple(name for name, has in every.items() if has)

    def expect_plain(self, whose: str, fix: str, *, but: Sequence[str] = ()) -> None:
        """Refuses a scenario with anything of :attr:`extras` except what is in `but`.

        :param whose: what cannot have it, as the end of a sentence: `the mock engine has none`.
        :raises ScenarioError: one line that names all of it.
        """
        if more := [kind for kind in self.extras if kind not in but]:
            text = f"{', '.join(more[:-1])} and {more[-1]}" if len(more) > 1 else more[0]
            refuse("scenario", f"{'it' if self.name in ('unnamed', 'words') else self.name} has {text}, {whose}", fix)

    def expect_path(self) -> None:
        """Refuses a scenario that says nothing of its path: it would run as fast as the simulated hosts can.

        :raises ScenarioError: one line with an example.
        """
        if not any(link.forward or link.reverse for link in self.chain):
            refuse("scenario", "it has no path: no delay, no rate, no queue", "write for example forward: netem delay 25ms")

    @property
    def flow_count(self) -> int:
        """Flows in a trial."""
        return sum(f.count for f in self.flows)

    @cached_property
    def rtt_ns(self) -> int:
        """Propagation RTT of the path, ns, without jitter and queues: where flows have RTTs of their own, the mean over the flows.

        It is the RTT of every bandwidth-delay product (`buffer: 1bdp`).

        :raises WordsError: names the part of the path and the wrong word.
        """
        if self.is_topology:
            counted = [(self.rtt_of(flow), flow.count) for flow in self.flows] or [(self.rtt_of(endpoint), 1) for endpoint in self.endpoints]
            return sum(rtt * count for rtt, count in counted) // sum(count for _, count in counted)
        return self.path_rtt_ns

    @property
    def path_rtt_ns(self) -> int:
        """Propagation RTT of `forward`, `bottleneck` and `reverse`, ns, whatever flows there are.

        :raises WordsError: names the part of the path and the wrong word.
        """
        total = 0
        for part in PARTS:
            with within(part):
                total += sum(path.delay_ns(hop) for hop in getattr(self, part))
        return total

    def rtt_of(self, endpoint: Endpoint) -> int:
        """Propagation RTT of a flow, ns, without jitter and queues. :raises ScenarioError: its `rtt` is shorter than that of what it crosses."""
        return self._chain_rtt(endpoint) + sum(path.delay_ns(hop) for hop in topology.hops(self.access_of(endpoint)))

    def access_of(self, endpoint: Endpoint) -> Access:
        """The access link of a flow, with the delay that its `rtt` asks for: half of what chain and access link lack, each way.

        :raises ScenarioError: its `rtt` is shorter than that of what it crosses.
        """
        access = endpoint.access or Access()
        if endpoint.rtt is None:
            return access
        crossed = self._chain_rtt(endpoint) + sum(path.delay_ns(hop) for hop in topology.hops(access))
        lacking = endpoint.rtt - crossed
        if lacking < 0:
            shorter = f"{units.format_time(endpoint.rtt)} is shorter than the RTT of the path, {units.format_time(crossed)}"
            refuse("rtt", shorter, "give the flow a longer one, or the path a shorter delay")
        there, back = (Netem(at="router", delay=units.format_time(ns)) for ns in (lacking // 2, lacking - lacking // 2))
        return access.model_copy(update={"before": (there, *access.before), "acks_after": (*access.acks_after, back)})

    def _chain_rtt(self, endpoint: Endpoint) -> int:
        """Propagation RTT of the links that a flow uses, ns."""
        first, last = self.span(endpoint)
        return sum(path.delay_ns(hop) for link in self.chain[first:last] for hop in (*link.forward, *link.reverse))

    def queues(self, *parts: Part) -> list[tuple[QueueDescription, ...]]:
        """What the queues of these parts of the path do to packets, in the order in which packets meet them.

        Each is a tuple: itself, then its children from the outside in.

        :raises WordsError: names the part of the path and the wrong word.
        """
        rtt_ns = self.rtt_ns
        described = []
        for part in parts:
            with within(part):
                described += [queue for hop in getattr(self, part) for queue in path.queues(hop, rtt_ns)]
        return described

    @cached_property
    def cca(self) -> str:
        """The congestion controls, `cubic`, `cubic:hystart=0` or `bbr+cubic`: of the flows and programs, and without them of the transfers."""
        return "+".join(sorted({*self._of_programs, *(f.cca for f in self.flows or self.transfers)}))

    @property
    def _of_programs(self) -> tuple[str, ...]:
        """The congestion control of the programs' sockets."""
        return (self.programs.cca,) if self.programs else ()

    @property
    def controls(self) -> tuple[str, ...]:
        """Every congestion control that sends, of flows, transfers and programs, each once and in order of its name."""
        return tuple(sorted({*self._of_programs, *(flow.cca for flow in self.flows), *(entry.cca for entry in self.transfers)}))

    def with_cca(self, cca: str | Mapping[str, Any]) -> Scenario:
        """The same scenario with `cca` (`cubic`, `cubic:hystart=off`) for every flow and all transfers; where it has programs, for these alone."""
        if self.programs:
            return self.with_programs(self.programs.model_dump(mode="json") | {"cca": spelling.label(cca)})
        same = {"cca": spelling.label(cca)}
        transfers = {"transfers": tuple(entry.model_copy(update=same) for entry in self.transfers)} if self.transfers else {}
        return self.model_copy(update={"flows": tuple(f.model_copy(update=same) for f in self.flows), **transfers})

    def with_programs(self, fields: Mapping[str, Any]) -> Scenario:
        """The same path with a command and its servers (fields of :class:`~tcpscape.scenario.programs.Programs`) in place of what it has."""
        return self.model_copy(update={"programs": validate(Programs, dict(fields), "programs")})

    @property
    def ccas(self) -> tuple[str, ...]:
        """Each connection's congestion control, in the order of a trial's flows."""
        return tuple(f.cca for f in self.flows for _ in range(f.count))

    def to_dict(self) -> dict[str, Any]:
        """Plain values as a user writes them; fields at their default are left out."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def address(self) -> str:
        """Content address: a hash of everything that changes a result (not the name)."""
        address = _addresses.get(self)
        if address is None:
            fields = self.model_dump(mode="json", exclude={"name", "about"}, context={"address": True})
            address = _addresses[self] = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:24]
        return address

    @classmethod
    def of(cls, data: Any, source: str = "scenario") -> Scenario:
        """A scenario from plain values, which came from `source`. :raises TcpscapeError: one line that names the field that is wrong."""
        scenario: Scenario = validate(cls, data, source)
        return scenario


_addresses: WeakKeyDictionary[Scenario, str] = WeakKeyDictionary()
"""Content addresses, kept as long as their scenario: every trial needs one."""
