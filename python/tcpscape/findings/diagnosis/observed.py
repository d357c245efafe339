"""What was seen of flows, whatever showed it: a capture, a socket, iperf3, Flent, a result. What a source cannot show is None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

Vantage = Literal["sender", "receiver", "middle", "unknown"]
"""Where a capture was taken, as its packets show it."""
Cause = Literal["application", "send_buffer", "receive_window", "congestion_window", "pacing", "recovery", "timeout", "handshake", "unknown"]
"""What holds a flow at a time; `unknown` where the source cannot show it."""
Doubt = Literal["far_from_sender", "no_timestamps", "small_segments"]
"""Why packets do not show what held a flow: the data's receiver opened the connection and is nearer to the capture, so that nothing says how late the
sender's answers are there; segments without timestamps do not say which ACK they answer; the path takes smaller segments than the SYNs agreed on, so
that none counts as full."""
Columns = Mapping[str, NDArray[Any]]
"""Named columns of one length."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a connection."""

    address: str
    """Empty where the source has none."""
    port: int
    """0 where the source has none."""

    @property
    def text(self) -> str:
        """`10.0.0.1:5201`, `[2001:db8::1]:5201`; `?` where the source has no address."""
        if not self.address:
            return "?"
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}" if self.port else host


@dataclass(frozen=True, slots=True)
class LimitInterval:
    """A time during which one cause held a flow."""

    start_s: float
    """Its beginning, s from the beginning of the observation."""
    end_s: float
    """Its end, s."""
    cause: Cause
    """The cause."""
    frames: tuple[int, ...] = ()
    """Numbers of the frames that prove it, as Wireshark counts them."""


@dataclass(frozen=True, slots=True)
class ObservedFlow:
    """One direction of one connection: the data and what acknowledges it."""

    source: Endpoint
    """Who sends the data."""
    destination: Endpoint
    packets: int | None
    """Data packets seen."""
    bytes: int | None
    """Bytes of payload delivered, each once."""
    seconds: float
    """From the first to the last packet seen."""
    start_s: float
    """From the observation's begin to the flow's."""
    vantage: Vantage
    goodput_mbps: float | None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Counters and handshake, by the names that docs/diagnosis.md lists; what is not identifiable is absent."""
    segments: Columns = field(default_factory=dict)
    """Data segments, a row each; empty where the source has no packets."""
    acks: Columns = field(default_factory=dict)
    """Packets of the other direction, a row each."""
    events: Columns = field(default_factory=dict)
    """Losses, retransmissions, reorderings, timeouts, closed windows, a row each."""
    samples: Columns = field(default_factory=dict)
    """TCP_INFO over time: `t_s` and fields by the kernel's names; empty where the source has none."""
    limits: Sequence[LimitInterval] = ()
    """What held the flow, where the source or the analysis of its packets says it."""
    cca: str | None = None
    """The congestion control's name, where the source itself names it."""

    @property
    def limits_doubt(self) -> Doubt | None:
        """Why `unknown` has a part of the limits; None where the source does not say it, or needs not."""
        doubt: Doubt | None = self.facts.get("limits_doubt")
        return doubt

    @property
    def name(self) -> str:
        """`10.0.0.1:40000 → 10.0.0.2:5201`."""
        return f"{self.source.text} → {self.destination.text}"


@dataclass(frozen=True, slots=True)
class Observation:
    """A source that was read."""

    kind: str
    """`pcap`, `pcapng`, `sockets`, `ss`, `iperf3`, `flent`, `result`."""
    name: str
    """The file's name, or what the user asked for."""
    flows: Sequence[ObservedFlow]
    """The flows, the one with most bytes first."""
    notes: Sequence[str] = ()
    """What could not be read or is not in it; whole sentences."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Of the source as a whole: packets, bytes, seconds, interfaces, clock steps."""
