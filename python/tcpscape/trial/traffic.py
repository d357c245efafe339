"""The results of traffic besides long flows: probes, and connections that arrive at random."""

from __future__ import annotations

from dataclasses import dataclass

from tcpscape.trial.parts import Rtt


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe measured."""

    name: str
    """The probe's name in its scenario."""
    kind: str
    """`udp` (one-way delays), `udp_echo` or `icmp_echo` (round trips)."""
    direction: str
    """`down` or `up`."""
    sent: int
    """Packets sent."""
    received: int
    """Packets that arrived; of an echo, that came back."""
    delay_ms: Rtt
    """One-way delay, or round trip of an echo, ms."""
    jitter_ms: float | None = None
    """Interarrival jitter at the end, ms (RFC 3550 §6.4.1)."""
    reordered: int = 0
    """Packets that arrived after one that was sent later."""
    path_rtt_ms: float | None = None
    """Propagation RTT of its path, without jitter and queues, ms."""
    due: int | None = None
    """Packets that had the time to arrive: sent more than the longest delay of the trial before its end. None, of older results: all."""
    lost: int | None = None
    """Of these, the ones that did not arrive."""

    @property
    def is_echo(self) -> bool:
        """Whether its delays are round trips."""
        return self.kind.endswith("_echo")

    @property
    def loss(self) -> float:
        """Share of the packets with the time to arrive that did not; what was under way at the end is no loss."""
        due, lost = self.judged
        return lost / due if due else 0.0

    @property
    def judged(self) -> tuple[int, int]:
        """Packets that had the time to arrive, and those of them that did not."""
        return (self.sent if self.due is None else self.due, self.sent - self.received if self.lost is None else self.lost)


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Transfers whose size lies in one class."""

    most: int
    """Largest size of the class, bytes."""
    started: int
    """Connections that began."""
    completed: int
    """Of these, those that were complete by the end."""
    completion_ms: Rtt
    """Time from connect() to the last acknowledgement, ms."""


@dataclass(frozen=True, slots=True)
class TransfersResult:
    """What became of connections that arrived at random."""

    cca: str
    """Congestion control."""
    classes: tuple[SizeClass, ...]
    """By size, the smallest first: up to 10 kB, 100 kB, 1 MB, and more."""
    bytes_received: int
    """Bytes that the receivers' applications got."""
    retransmits: int
    """Segments sent again."""
