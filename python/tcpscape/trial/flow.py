"""The results of one connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tcpscape.trial.parts import Cwnd, PlayerResult, ResponseResult, Rtt, plain


@dataclass(frozen=True, slots=True)
class FlowResult:
    """The results of one connection."""

    cca: str
    """Congestion control with the parameters that differ from their defaults, `cubic:hystart=0`."""
    goodput_mbps: float
    """Bytes that reached the receiver in order · 8 / the flow's own sending time, Mbit/s (10^6); what was on its way when it stopped counts."""
    seconds: float
    """The flow's own sending time, s."""
    retransmits: int
    """Segments sent again."""
    spurious_retransmits: int | None
    """Retransmissions that the receiver reported as needless (DSACK)."""
    rtt_ms: Rtt
    """Round-trip times, ms."""
    cwnd: Cwnd
    """Congestion window, packets."""
    limited_by: Mapping[str, float]
    """Share of the sending time during which each cause limited the flow: app, rwnd, cwnd, …"""
    start_s: float = 0.0
    """When it connected, s after the start of the trial."""
    stop_s: float = 0.0
    """When it stopped, s after the start of the trial."""
    established: bool = True
    """Whether the handshake succeeded."""
    bytes_received: int = 0
    """Bytes the receiving application read."""
    bytes_sent: int | None = None
    """Bytes that the sending application wrote."""
    rtos: int | None = None
    """Retransmission timeouts."""
    fast_recoveries: int | None = None
    """Entries into fast recovery."""
    undos: int | None = None
    """Window reductions undone because they were found wrong."""
    dsacks: int | None = None
    """Duplicates that the receiver reported (`tcpi_dsack_dups`)."""
    reord_seen: int | None = None
    """Reordering events that the sender saw (`tcpi_reord_seen`)."""
    reordering: int | None = None
    """Reordering metric at the end, packets (`tcpi_reordering`)."""
    srtt_ms: float | None = None
    """Smoothed RTT at the end, ms."""
    min_rtt_ms: float | None = None
    """Smallest RTT that the sender knows at the end, ms (`tcpi_min_rtt`)."""
    data_segs_out: int | None = None
    """Segments with data sent, retransmissions included."""
    ecn: bool | None = None
    """Whether both ends agreed to use ECN."""
    delivered_ce: int | None = None
    """Segments whose delivery was reported with a congestion mark (`tcpi_delivered_ce`)."""
    ecn_reductions: int | None = None
    """Window reductions for marks (CWR entered by ECE)."""
    segs_in: int | None = None
    """ACKs that the sender received."""
    max_rwnd: int | None = None
    """Largest receive window that the sender saw, bytes."""
    zero_windows: int | None = None
    """ACKs with a window of 0 that the receiver sent."""
    player: PlayerResult | None = None
    """What the viewer has seen, where the receiving application is a video player."""
    responses: ResponseResult | None = None
    """Its answers to requests, where its application answers them."""
    direction: str = "down"
    """`down` or `up`: which way its data travelled."""
    group: int = 0
    """The entry of the scenario's flows that it belongs to, from 0."""
    path_rtt_ms: float | None = None
    """Its own propagation RTT without jitter and queues, ms, where it is not the trial's."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> FlowResult:
        """From plain values; unknown keys are ignored."""
        fields = {k: v for k, v in values.items() if k in _FLOW}
        if (receiver := values.get("receiver")) and "zero_windows" not in fields:
            fields["zero_windows"] = receiver.get("zero_window_acks")
        fields |= {k: 0.0 for k in ("goodput_mbps", "seconds", "start_s", "stop_s") if fields.get(k, 0.0) is None}
        cwnd = {k: v for k, v in (fields.get("cwnd") or {}).items() if k in Cwnd.__slots__}
        limited = {k: v for k, v in (fields.get("limited_by") or {}).items() if v is not None}
        if player := fields.get("player"):
            fields["player"] = PlayerResult(**{k: player[k] for k in PlayerResult.__slots__})
        if isinstance(responses := fields.get("responses"), Mapping):
            fields["responses"] = ResponseResult.of(responses)
        return cls(**{**fields, "rtt_ms": Rtt.of(fields.get("rtt_ms") or {}), "cwnd": Cwnd(**cwnd), "limited_by": limited})

    def to_dict(self) -> dict[str, Any]:
        """Plain values; those of :data:`OF_NETWORKS` only where they differ from their defaults."""
        values = {name: plain(getattr(self, name)) for name in _FLOW if name not in OF_NETWORKS or self.has(name)}
        return values | {"limited_by": dict(self.limited_by)}

    def has(self, name: str) -> bool:
        """Whether a field differs from its default."""
        return bool(getattr(self, name) != _FLOW[name])

    @property
    def limit(self) -> str:
        """The cause that limited the flow for most of its time; `?` where none is known."""
        return max(self.limited_by, key=lambda k: self.limited_by[k]) if self.limited_by else "?"


_FLOW = {f.name: f.default for f in fields(FlowResult)}
"""Field → its default."""
OF_NETWORKS = ("responses", "direction", "group", "path_rtt_ms")
"""Fields that say nothing where all flows go the same way, on one path, and nobody asks them anything: documents and tables leave them out there."""
