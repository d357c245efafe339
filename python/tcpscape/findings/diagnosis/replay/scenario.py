"""The fitted path and the observed flow as a scenario: what every number rests on, one value for each, or one drawn from its interval.

Half of the RTT is in each direction. What is not identifiable has an assumption in its place, which :attr:`FittedFlow.assumptions` names: a
bottleneck that the flow never filled is somewhat faster than the fastest that was seen, a buffer that it never filled is one bandwidth-delay product.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from tcpscape import units
from tcpscape.findings.diagnosis.fitted import UNSEEN_RATE, Assumption, FittedPath, PathChange
from tcpscape.findings.diagnosis.observed import ObservedFlow, edges
from tcpscape.findings.diagnosis.replay import hosts as ends
from tcpscape.findings.diagnosis.replay.hosts import Hosts
from tcpscape.scenario.path import Distribution, deviation
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate

PROFILE = "6.1"
"""Kernel profile of both ends where nothing names one."""
NORMAL = 1.96
"""Standard deviations of a normal distribution from its middle to an end of its 95 % interval."""
FARTHEST = 2.5
"""Most standard deviations that a drawn value is away from the estimate."""
FAST, LEAST_WINDOW_MS, LEAST_ACKS = 0.98, 20.0, 50
"""Quantile of the rates of round trips that is the fastest, the shortest time over which a rate is taken, and the fewest ACKs."""
FRAMES = 1.046
"""Bytes of a frame / bytes of its payload."""
LEAST_PACKETS, FEW_LATE = 200, 0.001
"""Packets from which their order is judged, and the share of late ones below which it was kept."""
LEAST_JITTER = 0.001
"""Jitter / RTT below which there is none: what clocks and the sender's own bursts look like."""
MOST_LOSS = 0.9
"""Largest share of lost packets that is drawn."""
START_RTTS = 1.08
"""Round trips that a trial takes before its flow's first packet: a scenario lasts so much longer than the flow that it repeats."""


@dataclass(frozen=True, slots=True)
class PathValues:
    """A path in plain numbers: that of the estimates, or one drawn from their intervals."""

    rtt_ms: float
    jitter_forward_ms: float = 0.0
    """Standard deviation, as the next."""
    jitter_reverse_ms: float = 0.0
    distribution: Distribution = "normal"
    order: str = "reorder"
    tau_ms: float = 0.0
    """Time constant of a delay that keeps the order; 0 is the engine's default."""
    loss: float = 0.0
    """Share of the data packets."""
    rate_mbps: float | None = None
    buffer_bytes: float | None = None
    aqm: str | None = None
    """The queue at the bottleneck where it is not a FIFO."""
    unseen_rate_mbps: float | None = None
    """The rate of a bottleneck that the flow never filled: an assumption."""

    @property
    def calm(self) -> PathValues:
        """The same path without jitter."""
        return replace(self, jitter_forward_ms=0.0, jitter_reverse_ms=0.0)


@dataclass(frozen=True, slots=True)
class FittedFlow:
    """An observed flow's path and ends, from which scenarios are made."""

    values: PathValues
    """At the estimates."""
    hosts: Hosts
    seconds: float
    """How long the flow was observed."""
    path: FittedPath
    changes: Sequence[Mapping[str, Any]] = ()
    """Changes over time, as a scenario has them."""
    assumptions: tuple[Assumption, ...] = ()
    """What stands for what was not identifiable, the largest first."""

    def drawn(self, seed: int, *, assumed: bool = True) -> PathValues:
        """Values drawn from the intervals; the same seed draws the same ones. `assumed`: also the rate of a bottleneck that was never filled."""
        values = draw(self.values, self.path, random.Random(f"path|{seed}"))
        return values if assumed else replace(values, unseen_rate_mbps=self.values.unseen_rate_mbps)

    def scenario(self, cca: str, values: PathValues | None = None, seconds: float | None = None) -> Scenario:
        """The scenario of these values (of the estimates where there are none) under a congestion control."""
        return Scenario.of(fields(self, cca, values or self.values, seconds), "diagnosis")


def fitted(flow: ObservedFlow, path: FittedPath, kernel: str = PROFILE) -> FittedFlow | None:
    """What a scenario of this flow is made from; None where the path has no RTT, without which there is no scenario."""
    if path.order_kept is None and path.jitter_ms is not None:
        path = replace(path, order_kept=order_seen(flow))
    values = values_of(path)
    if values is None:
        return None
    hosts = ends.of(flow, kernel)
    if values.rate_mbps is None:
        values = replace(values, unseen_rate_mbps=unseen_rate(flow, values.rtt_ms))
    return FittedFlow(values, hosts, flow.seconds, path, tuple(_changes(path.changes, values)), tuple(_assumptions(flow, path, hosts)))


def order_seen(flow: ObservedFlow) -> bool | None:
    """Whether the packets kept their order, by those that came late; None where they were not counted."""
    late, packets = flow.facts.get("reordered"), flow.facts.get("segments") or flow.packets
    if late is None or not packets or packets < LEAST_PACKETS:
        return None
    return bool(late < FEW_LATE * packets)


def values_of(path: FittedPath) -> PathValues | None:
    """The path at the estimates; None without an RTT."""
    if path.rtt_ms is None or not path.rtt_ms.value > 0:
        return None
    forward, reverse = _jitters(path)
    kept = path.order_kept if path.order_kept is not None else False
    distribution: Distribution = next((one for one in get_args(Distribution) if one == path.distribution and not kept), "normal")
    return PathValues(
        rtt_ms=path.rtt_ms.value,
        jitter_forward_ms=forward,
        jitter_reverse_ms=reverse,
        distribution=distribution,
        order="correlated" if kept else "reorder",
        tau_ms=path.correlation_ms.value if path.correlation_ms and kept else 0.0,
        loss=path.loss_pct.value / 100 if path.loss_pct else 0.0,
        rate_mbps=path.rate_mbps.value if path.rate_mbps else None,
        buffer_bytes=path.buffer_bytes.value if path.buffer_bytes else None,
    )


def _jitters(path: FittedPath) -> tuple[float, float]:
    """Standard deviations of the data's and of the ACKs' delay, ms."""
    both = path.jitter_ms.value if path.jitter_ms else 0.0
    on = path.jitter_on or "both"
    forward = path.jitter_forward_ms.value if path.jitter_forward_ms else both * (on in ("both", "forward"))
    reverse = path.jitter_reverse_ms.value if path.jitter_reverse_ms else both * (on in ("both", "reverse"))
    least = LEAST_JITTER * (path.rtt_ms.value if path.rtt_ms else 0.0)
    return (forward if forward >= least else 0.0), (reverse if reverse >= least else 0.0)


def draw(values: PathValues, path: FittedPath, rng: random.Random) -> PathValues:
    """The same path with each number drawn from its interval; both directions' jitter from one draw."""
    rtt, jitter, loss, rate, buffer = (rng.gauss(0, 1) for _ in range(5))
    return replace(
        values,
        rtt_ms=_drawn(values.rtt_ms, path.rtt_ms, rtt),
        jitter_forward_ms=_drawn(values.jitter_forward_ms, path.jitter_forward_ms or path.jitter_ms, jitter),
        jitter_reverse_ms=_drawn(values.jitter_reverse_ms, path.jitter_reverse_ms or path.jitter_ms, jitter),
        loss=min(MOST_LOSS, _drawn(values.loss, path.loss_pct, loss)),
        rate_mbps=_drawn(values.rate_mbps, path.rate_mbps, rate) if values.rate_mbps else None,
        buffer_bytes=_drawn(values.buffer_bytes, path.buffer_bytes, buffer) if values.buffer_bytes else None,
        unseen_rate_mbps=values.unseen_rate_mbps * _unseen(rate) if values.unseen_rate_mbps else None,
    )


def _unseen(z: float) -> float:
    """The multiple of the assumed rate that a bottleneck never filled has in a draw: evenly in its logarithm, from the fastest that was seen."""
    share = 0.5 * (1 + math.erf(z / math.sqrt(2)))
    return float((1 / UNSEEN_RATE) * UNSEEN_RATE ** (2 * share))


def unseen_rate(flow: ObservedFlow, rtt_ms: float) -> float | None:
    """The assumed rate of a bottleneck that the flow never filled, Mbit/s: a multiple of the fastest delivery during a round trip."""
    fastest = flow.goodput_mbps or 0.0
    if len(flow.acks.get("t", ())) > LEAST_ACKS:
        t, ack = np.asarray(flow.acks["t"]) / 1e6, np.maximum.accumulate(np.asarray(flow.acks["ack"]).astype(float))
        steps = edges(t[0], t[-1], max(rtt_ms, LEAST_WINDOW_MS))
        if len(steps) > 2:
            rates = np.diff(ack[np.maximum(0, np.searchsorted(t, steps, "right") - 1)]) * 8e-3 / (steps[1] - steps[0])
            fastest = max(fastest, float(np.quantile(rates, FAST)))
    return UNSEEN_RATE * fastest * FRAMES if fastest > 0 else None


def _drawn(value: float, estimate: Estimate | None, z: float) -> float:
    """`value` moved by `z` standard deviations of the estimate, in proportion; as it is where there is no interval."""
    z = max(-FARTHEST, min(FARTHEST, z))
    if not value or estimate is None or not estimate.value > 0:
        return value
    end = estimate.high if z > 0 else estimate.low
    if not math.isfinite(end):
        return value
    if end <= 0:  # an interval down to nothing
        return value * max(0.0, 1 - abs(z) / NORMAL)
    return value * float((end / estimate.value) ** (abs(z) / NORMAL))


def fields(fit: FittedFlow, cca: str, values: PathValues, seconds: float | None = None) -> dict[str, Any]:
    """The plain fields of a scenario, as its file has them."""
    duration = (fit.seconds if seconds is None else seconds) + START_RTTS * values.rtt_ms / 1e3
    kernel = dict(fit.hosts.kernel)
    # The times of both hosts are in each RTT that was measured, and the engine adds them again.
    delay_ms = max(0.0, values.rtt_ms / 2 - Scenario.of({"kernel": kernel}).kernel.host_time / 1e6)
    made: dict[str, Any] = {
        "name": "fitted-path",
        "forward": [_netem(values, delay_ms, values.jitter_forward_ms, values.loss)],
        "reverse": [_netem(values, delay_ms, values.jitter_reverse_ms, 0.0)],
        "flows": [{"cca": cca, **fit.hosts.flow}],
        "duration": f"{round(duration * 1e6)}us",
        "kernel": kernel,
        **fit.hosts.scenario,
    }
    if rate := values.rate_mbps or values.unseen_rate_mbps:
        link: dict[str, Any] = {"rate": units.format_rate(round(rate * 1e6))}
        if values.aqm:
            link["queue"] = values.aqm
        elif values.buffer_bytes:
            link["buffer"] = max(2 * int(made.get("mtu", 1500)), round(values.buffer_bytes))
        made["bottleneck"] = [link]
    if fit.changes and seconds is None:
        made["changes"] = [dict(change) for change in fit.changes]
    return made


def _netem(values: PathValues, delay_ms: float, jitter_ms: float, loss: float) -> dict[str, Any]:
    """One direction's hop."""
    hop: dict[str, Any] = {"at": "router", "delay": _time(delay_ms)}
    if jitter_ms > 0:
        hop["jitter"] = _time(jitter_ms / deviation(values.distribution))
        hop["distribution"] = values.distribution
        if values.order != "reorder":
            hop["order"] = values.order
            if values.tau_ms > 0:
                hop["tau"] = _time(values.tau_ms)
    if loss > 0:
        hop["loss"] = f"{100 * loss:.6g}%"
    return hop


def _time(ms: float) -> str:
    return f"{max(1, round(ms * 1000))}us"


def _changes(changes: Sequence[PathChange], values: PathValues) -> list[dict[str, Any]]:
    """The changes over time as a scenario has them; those of a path without a bottleneck that need one are left out."""
    made: list[dict[str, Any]] = []
    for change in changes:
        at = f"{round(change.at_s * 1e6)}us"
        if change.kind == "rtt" and change.after is not None:
            made += [{"where": where, "at": at, "set": {"delay": _time(change.after / 2)}} for where in ("forward", "reverse")]
        elif change.kind == "rate" and change.after is not None and values.rate_mbps:
            made.append({"where": "bottleneck", "at": at, "set": {"rate": units.format_rate(round(change.after * 1e6))}})
        elif change.kind == "loss" and change.after is not None:
            made.append({"where": "forward", "at": at, "set": {"loss": f"{100 * change.after:.6g}%"}})
        elif change.kind == "outage" and change.after:
            end = f"{round((change.at_s + change.after) * 1e6)}us"
            made += [{"where": "forward", "at": when, "set": {"outage": off}} for when, off in ((at, True), (end, False))]
    return made


def _assumptions(flow: ObservedFlow, path: FittedPath, hosts: Hosts) -> Iterator[Assumption]:
    """What stands for what is not identifiable, the largest first."""
    if flow.limits_doubt and hosts.shares.get("unknown", 0.0) >= ends.SHARE:
        yield Assumption("busy sender")
    if path.rate_mbps is None:
        yield Assumption("unseen rate")
    elif path.buffer_bytes is None:
        yield Assumption("unseen buffer")
    if path.jitter_ms and path.jitter_on in (None, "both") and path.jitter_forward_ms is None:
        yield Assumption("jitter both ways")
    if path.jitter_ms and path.order_kept is None:
        yield Assumption("reordering")
    if path.loss_pct is None:
        yield Assumption("no random loss")
    if "app" in hosts.flow:
        yield Assumption("application")
    if path.jitter_ms and path.order_kept is False:
        yield Assumption("independent delays")
    yield Assumption("unchanged path")
