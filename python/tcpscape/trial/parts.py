"""Groups of numbers within the results of a connection or a probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Rtt:
    """Round-trip times that the sender measured, ms. None where there was no sample.

    The model's are of single measurements, a real kernel's of the smoothed RTT, sampled at an interval.
    """

    min: float | None = None
    """Smallest, ms."""
    p50: float | None = None
    """Median, ms."""
    p95: float | None = None
    """95th percentile, ms."""
    p99: float | None = None
    """99th percentile, ms."""
    max: float | None = None
    """Largest, ms."""
    mean: float | None = None
    """Mean, ms."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Rtt:
        """From plain values; unknown keys are ignored."""
        return cls(**{name: value for name, value in values.items() if name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class Cwnd:
    """Congestion window, packets, over the flow's time."""

    mean: float | None = None
    """Mean over the time, packets."""
    max: float | None = None
    """Largest, packets."""


@dataclass(frozen=True, slots=True)
class PlayerResult:
    """What the viewer of a video player has seen (docs/models/methods/player.md)."""

    startup_s: float
    """From the first request to the first picture, s; where that never came, how long the player waited."""
    began: bool
    """Whether there was a picture."""
    stalls: int
    """Stops after the start."""
    stalled_s: float
    """Time stopped, s; a stall that lasts to the end included."""
    played_s: float
    """Media played, s."""
    segments: int
    """Segments downloaded in full."""
    switches: int
    """Segments of another rung than the one before."""
    bitrate_mbps: float | None
    """Mean bit rate of the segments' rungs, Mbit/s; None without a segment."""
    qoe_mbps: float | None
    """Linear QoE for each segment, Mbit/s (Yin et al., SIGCOMM 2015); None without a segment."""


@dataclass(frozen=True, slots=True)
class ResponseResult:
    """The requests of one connection whose application answers them."""

    count: int
    """Answers that were complete."""
    time_ms: Rtt
    """Times from a request to the last byte of its answer, ms."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ResponseResult:
        """From plain values."""
        return cls(values["count"], Rtt.of(values["time_ms"]))


def plain(group: object) -> Any:  # noqa: ANN401 (whatever JSON has)
    """A value of a result as plain values: a group of numbers, or several of them, as mappings."""
    if isinstance(group, tuple):
        return [plain(item) for item in group]
    slots = getattr(type(group), "__slots__", None)
    return {name: plain(getattr(group, name)) for name in slots} if slots and is_dataclass(group) else group
