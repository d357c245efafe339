"""The two ends of an observed flow as a scenario needs them: what its application, its buffers and its segments were, by what limited it.

What limited the flow becomes a property of its ends, so that a replay repeats it: an application's rate, a receiver that reads slowly, a receive
buffer, a send buffer. A buffer is known by what it allowed (the largest window, the largest flight); which argument of `SO_RCVBUF` or `SO_SNDBUF`
allows as much depends on the kernel, and is found by runs of the model on a clean path (:func:`receive_buffer`, :func:`send_buffer`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tcpscape.engines.model import Model
from tcpscape.findings.diagnosis import limits
from tcpscape.findings.diagnosis.observed import Cause, ObservedFlow
from tcpscape.findings.diagnosis.reasons import Reason, Reasons
from tcpscape.scenario.scenario import Kernel, Scenario
from tcpscape.trial import Capture
from tcpscape.units import NS_PER_S

SHARE = 0.05
"""Share of the time from which a cause becomes a property of the ends."""
NEARLY_ALL = 0.9
"""Share of the time from which a cause alone says what the flow carried."""
FULL_WINDOW = 0.7
"""Flight / largest window from which the window cannot be one that grows by itself: autotuning offers twice what arrives in a round trip."""
SMALL_SCALE, SPARE_WINDOW = 5, 4
"""Largest window scale of a buffer whose size is fixed, and how many times the largest window it may allow (Linux's own most, 6 MiB, has 7)."""
SLOW_SHARE, SLOW_USED, FEW_RESENT = 0.3, 0.5, 0.01
"""A slow reader: share of the time that the window holds the flow, used part of the largest window, retransmissions / packets without which
it is not data out of order that fill the buffer."""
READ_SIZE = 16_384
"""Size of a read where the windows do not show it, bytes."""
LEAST_PUSHES = 20
"""Fewest ends of writes (PSH) from which the size of a write is taken."""
CHUNKS = (256, 1 << 20)
"""Least and largest size of a write that is believed, bytes."""
TIMESTAMPS, IP_AND_TCP, MORE_OF_IPV6 = 12, 40, 20
"""Bytes of headers: TCP's timestamps, IPv4 with TCP, what IPv6 has more."""
SAME_MTU = 20
"""Bytes by which an MTU may differ from the usual one: timestamps that only one of two captures shows."""
MTU = (576, 65_535)
"""Least and largest MTU of a scenario."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The ends of a flow: fields of a scenario and of its flow, with a reason for each that is not a default."""

    flow: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`~tcpscape.scenario.flows.Flow`."""
    scenario: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`~tcpscape.scenario.scenario.Scenario`: mtu, ecn, offload."""
    kernel: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`~tcpscape.scenario.scenario.Kernel`."""
    about: Reasons = field(default_factory=dict)
    """Field → why it has its value."""
    shares: Mapping[Cause, float] = field(default_factory=dict)
    """Cause → share of the flow's time."""


def of(flow: ObservedFlow, kernel: str) -> Hosts:
    """The ends of `flow`, both on this kernel: a profile, or a profile with settings that differ (`6.12,rmem_max=4MiB`)."""
    settings = Scenario.of({"kernel": kernel}, "kernel").kernel.model_dump(mode="json", exclude_defaults=True)
    profile = settings.setdefault("profile", Kernel().profile)
    shares = limits.shares_of(flow)
    found = _Found()
    _segments(flow, found)
    _application(flow, shares, found)
    _receiver(flow, shares, profile, found)
    _sender(flow, shares, profile, found)
    return Hosts(found.flow, found.scenario, {**settings, **found.kernel}, found.about, shares)


@dataclass(slots=True)
class _Found:
    """The fields while they are found."""

    flow: dict[str, Any] = field(default_factory=dict)
    scenario: dict[str, Any] = field(default_factory=dict)
    kernel: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Reason] = field(default_factory=dict)


def _segments(flow: ObservedFlow, found: _Found) -> None:
    """MTU, ECN and segmentation offload, from the handshake and the packets."""
    payload, is_ipv6 = flow.facts.get("segment_size"), ":" in flow.source.address
    if payload:
        mtu = int(payload) + IP_AND_TCP + MORE_OF_IPV6 * is_ipv6 + TIMESTAMPS * bool(flow.facts.get("timestamps", True))
        if MTU[0] <= mtu <= MTU[1] and abs(mtu - Scenario.model_fields["mtu"].default) > SAME_MTU:
            found.scenario["mtu"] = mtu
            found.about["mtu"] = Reason("full segment", {"bytes": payload})
    if flow.facts.get("ecn"):
        found.scenario["ecn"] = True
        found.about["ecn"] = Reason("negotiated")


def _application(flow: ObservedFlow, shares: Mapping[Cause, float], found: _Found) -> None:
    """An application that writes at a rate, where it is what limited the flow."""
    share = shares.get("application", 0.0)
    if share < SHARE or not flow.goodput_mbps:
        return
    rate = flow.goodput_mbps * 1e6 / 8 if share >= NEARLY_ALL else _rate_while(flow, "application")
    if rate <= 0:
        return
    app: dict[str, Any] = {"rate": f"{rate:.0f}B/s"}
    if chunk := _chunk(flow):
        app["chunk"] = chunk
    found.flow["app"] = app
    found.about["app"] = Reason("application limited", {"share": share})


def _rate_while(flow: ObservedFlow, cause: Cause) -> float:
    """Bytes a second that were sent while `cause` held the flow; its mean rate where the segments are not known."""
    starts, ends = (np.array([getattr(i, end) for i in flow.limits if i.cause == cause]) for end in ("start_s", "end_s"))
    mean = (flow.goodput_mbps or 0.0) * 1e6 / 8
    length = float((ends - starts).sum())
    if not len(flow.segments.get("t", ())) or length <= 0:
        return mean
    t = np.asarray(flow.segments["t"]) / NS_PER_S
    place = np.searchsorted(starts, t, "right") - 1
    inside = (place >= 0) & (t <= ends[np.maximum(place, 0)])
    stride = int(flow.facts.get("segment_stride", 1) or 1)
    return max(mean, float(np.asarray(flow.segments["len"])[inside].sum()) * stride / length)


def _chunk(flow: ObservedFlow) -> int | None:
    """The size of a write: the median number of bytes between the segments that end one (PSH), of rows that are all kept."""
    push = np.asarray(flow.segments.get("psh", ()), dtype=bool)
    if push.sum() < LEAST_PUSHES or int(flow.facts.get("segment_stride", 1) or 1) > 1:
        return None
    ends = np.sort(np.asarray(flow.segments["seq"])[push] + np.asarray(flow.segments["len"])[push])
    size = int(np.median(np.diff(ends.astype(np.int64))))
    return size if CHUNKS[0] <= size <= CHUNKS[1] else None


def _receiver(flow: ObservedFlow, shares: Mapping[Cause, float], profile: str, found: _Found) -> None:
    """A receive buffer of a fixed size, or an application that reads slowly."""
    window, flight = flow.facts.get("window_max"), flow.facts.get("flight_max")
    share = shares.get("receive_window", 0.0)
    if not window or not _is_scaled(flow):
        return
    if share >= SHARE and _is_slow_reader(flow, int(window), share):
        size = _read_size(flow)
        rate = _rate_while(flow, "receive_window")
        found.flow["read"] = {"size": size, "delay": f"{max(1.0, 1e6 * size / rate):.0f}us"}
        found.about["read"] = Reason("slow reader", {"share": share})
    is_full = share >= SHARE or (flight is not None and flight >= FULL_WINDOW * window)
    if not (is_full or _is_of_small_scale(flow, int(window))):
        return
    argument = receive_buffer(int(window), profile)
    found.flow["rcvbuf"] = argument
    found.kernel["rmem_max"] = max(argument, 212_992)
    found.about["rcvbuf"] = Reason("largest window", {"bytes": window, "profile": profile})


def _is_scaled(flow: ObservedFlow) -> bool:
    """Whether the windows are bytes: where the SYNs were not seen, their scale is unknown."""
    seen = flow.facts.get("syn_seen", True)
    return bool(seen if isinstance(seen, bool) else all(seen))


def _is_slow_reader(flow: ObservedFlow, window: int, share: float) -> bool:
    """Whether the window is small because nobody reads: it closed again and again, or it held the flow far below its largest without losses."""
    if int(flow.facts.get("zero_windows", 0) or 0) > flow.seconds / 2:
        return True
    packets, resent = flow.packets or 0, int(flow.facts.get("retransmissions", 0) or 0)
    rtt = flow.facts.get("rtt") or {}
    round_trip = rtt.get("p50_ms") if isinstance(rtt, Mapping) else None
    if share < SLOW_SHARE or not flow.goodput_mbps or not round_trip or resent > FEW_RESENT * packets:
        return False
    return flow.goodput_mbps * 1e3 / 8 * float(round_trip) < SLOW_USED * window


def _read_size(flow: ObservedFlow) -> int:
    """The size of a read: the median step of the window's right edge, as far as the rows show it."""
    if "window" not in flow.acks or int(flow.facts.get("ack_stride", 1) or 1) > 1:
        return READ_SIZE
    edge = np.maximum.accumulate(np.asarray(flow.acks["ack"]).astype(np.int64) + np.asarray(flow.acks["window"]).astype(np.int64))
    steps = np.diff(edge)
    steps = steps[steps > 0]
    return int(np.clip(np.median(steps), *CHUNKS)) if len(steps) >= LEAST_PUSHES else READ_SIZE


def _is_of_small_scale(flow: ObservedFlow, window: int) -> bool:
    """Whether the receiver's window scale shows a buffer that cannot grow much beyond the largest window: it follows the most that it may be."""
    scale = flow.facts.get("window_scale")
    shift = scale[1] if isinstance(scale, Sequence) and len(scale) == 2 else None
    return shift is not None and shift <= SMALL_SCALE and (65_535 << int(shift)) < SPARE_WINDOW * window


def _sender(flow: ObservedFlow, shares: Mapping[Cause, float], profile: str, found: _Found) -> None:
    """A send buffer of a fixed size, where it is what limited the flow."""
    share, flight = shares.get("send_buffer", 0.0), flow.facts.get("flight_max")
    if share < SHARE or not flight:
        return
    argument = send_buffer(int(flight), profile)
    found.flow["sndbuf"] = argument
    found.kernel["wmem_max"] = max(argument, 212_992)
    found.about["sndbuf"] = Reason("largest flight", {"bytes": flight, "profile": profile})


ROUNDS = 12
"""Halvings of the search for a buffer: to a part in four thousand of the range."""
CLEAN = {"forward": {"at": "router", "delay": "20ms"}, "reverse": {"at": "router", "delay": "20ms"}, "duration": "1500ms"}
"""A path on which nothing but the buffers limits a flow."""


@lru_cache(maxsize=256)
def receive_buffer(window: int, profile: str) -> int:
    """The argument of `SO_RCVBUF` whose largest window is nearest to `window` bytes."""
    return _search(window, profile, "rcvbuf", lambda trial: trial.flows[0].max_rwnd or 0)


@lru_cache(maxsize=256)
def send_buffer(flight: int, profile: str) -> int:
    """The argument of `SO_SNDBUF` whose largest flight is nearest to `flight` bytes."""
    return _search(flight, profile, "sndbuf", lambda trial: int(trial.samples["in_flight"].max() or 0) * 1448)


def _search(wanted: int, profile: str, name: str, allowed: Any) -> int:
    """By halving between a quarter and four times `wanted`: what a buffer allows grows with it."""
    low, high = max(2_048, wanted // 4), wanted * 4
    model, capture = Model(), Capture(samples_ns=20_000_000)
    best = (abs(_allowed(model, capture, wanted, profile, name, allowed) - wanted), wanted)
    for _ in range(ROUNDS):
        middle = (low + high) // 2
        value = _allowed(model, capture, middle, profile, name, allowed)
        best = min(best, (abs(value - wanted), middle))
        if abs(value - wanted) <= wanted // 200:
            break
        low, high = (middle, high) if value < wanted else (low, middle)
    return best[1]


def _allowed(model: Model, capture: Capture, size: int, profile: str, name: str, allowed: Any) -> int:
    kernel = {"profile": profile, "rmem_max": max(size, 212_992), "wmem_max": max(size, 212_992)}
    scenario = Scenario.of({**CLEAN, "kernel": kernel, "flows": [{"cca": "cubic", name: size}]})
    return int(allowed(model.run(scenario, [1], capture=capture)[0]))
