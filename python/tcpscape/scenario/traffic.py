"""Traffic besides long flows: probes, which measure delays with single packets, and transfers, connections that arrive at random.

Page: docs/models/methods/traffic.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from tcpscape import units
from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import Name, Size, Time, written
from tcpscape.scenario.flows import CcaField
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
        if self.interval <= 0:
            refuse("interval", "packets at the same instant measure nothing", "write for example 20ms")
        if self.stop and self.stop <= self.start:
            refuse("stop", "the probe stops before it starts", "write a later stop")
        return self

    def plan(self) -> dict[str, Any]:
        """The probe as an engine's plan has it, without its place."""
        return {"kind": self.kind, "size": self.size, "interval_ns": self.interval, "start_ns": self.start, "stop_ns": self.stop}


def _probe(value: Any) -> Any:
    """A preset's name, or fields that may begin with a preset."""
    if isinstance(value, str):
        value = {"preset": value}
    if not isinstance(value, dict):
        return value
    values = dict(value)
    preset = values.pop("preset", None)
    if preset is not None and preset not in PRESETS:
        refuse("probes", f"no probe {shown(preset)}", f"choose {', '.join(PRESETS)}, or write its kind, size and interval")
    base = PRESETS[preset] if preset else {}
    return {"name": preset or values.get("kind", get_args(ProbeKind)[0]), **base, **values}


_ShortProbe = written({"type": ["string", "object"], "examples": ["voice", {"preset": "ping", "interval": "100ms"}]})
ProbeField = Annotated[Probe, BeforeValidator(_probe, json_schema_input_type=Probe | _ShortProbe)]
"""A probe as written: `voice`, `ping`, `{preset: voice, direction: up}`, or its fields."""


def _per_second(value: Any) -> Any:
    """`20/s`, or a number of connections a second."""
    if isinstance(value, str) and value.strip().endswith("/s"):
        try:
            return float(value.strip().removesuffix("/s"))
        except ValueError:
            refuse("rate", f"{shown(value)} is no number of connections a second", "write for example 20/s")
    return value


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


def bounded_mean(least: float, most: float, shape: float) -> float:
    """Mean of the Pareto distribution of this shape between `least` and `most`."""
    if abs(shape - 1) < 1e-9:
        shape += 1e-6
    kept = 1 - (least / most) ** shape
    mean: float = least**shape / kept * shape / (shape - 1) * (least ** (1 - shape) - most ** (1 - shape))
    return mean
