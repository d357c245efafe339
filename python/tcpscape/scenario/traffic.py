"""Traffic besides long flows: probes, which measure delays with single packets, and transfers, connections that arrive at random.

Page: docs/models/methods/traffic.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from tcpscape import units
from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import Name, Size, Time, written
from tcpscape.scenario.flows import MAX_FLOWS, CcaField
from tcpscape.scenario.grammar import parse_probe, parse_transfers
from tcpscape.scenario.topology import Endpoint

ProbeKind = Literal["udp", "udp_echo", "icmp_echo"]
"""What travels: UDP datagrams one way, UDP datagrams that the far host sends back, or ICMP echo requests."""
PRESETS: dict[str, dict[str, Any]] = {
    "voice": {"kind": "udp", "size": 172, "interval": "20ms"},
    "ping": {"kind": "icmp_echo", "size": 56, "interval": "200ms"},
    "udp_ping": {"kind": "udp_echo", "size": 32, "interval": "200ms"},
}
"""Probes by a name: a G.711 call of 20 ms packets (RFC 3551: 160 bytes behind an RTP header of 12); ping(8)'s packet at Flent's interval; the same
over UDP."""


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
    """Payload bytes."""
    interval: Time
    """Time between two packets, ns."""
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

    def packets(self, duration: int) -> int:
        """Packets that it sends in a trial of `duration` ns."""
        return max(0, -((self.start - min(self.stop or duration, duration)) // self.interval))

    def plan(self) -> dict[str, Any]:
        """The probe as an engine's plan has it, without its place."""
        return {"kind": self.kind, "size": self.size, "interval_ns": self.interval, "start_ns": self.start, "stop_ns": self.stop}


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
        """Refuses more connections than a trial may have.

        :raises ScenarioError: one line with the most there may be.
        """
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
