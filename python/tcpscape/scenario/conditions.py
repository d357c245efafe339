"""The conditions of a path as a user describes it (RTT, jitter, loss, rate), and the scenario that has them."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, model_validator

from tcpscape.errors import refuse
from tcpscape.scenario.fields import Buffer, Percent, Rate, Spec, Time
from tcpscape.scenario.flows import MAX_FLOWS, Flow
from tcpscape.scenario.path import MAX_LOSS_BURST, Distribution, Link, Netem, Node, Order, Queue, deviation, expect_bursts
from tcpscape.scenario.scenario import TIMER_SLACK, Kernel, KernelField, Scenario
from tcpscape.units import NS_PER_S, format_rate, format_time

Directions = Literal["both", "forward", "reverse"]


def one_way_jitter(rtt_spread: int, jitter_on: Directions = "both", distribution: Distribution = "normal") -> int:
    """`jitter` of each direction that has it, ns, for a standard deviation of the round trip, ns (ping's mdev); whole microseconds.

    Variances of independent directions add up, so each of two has σ/√2. A distribution whose deviation is not its `jitter` is scaled.
    """
    each = rtt_spread / math.sqrt(2 if jitter_on == "both" else 1) / deviation(distribution)
    return round(each / 1000) * 1000


def one_way_loss(rtt_loss: float, loss_on: Directions = "both") -> float:
    """`loss` of each direction that has it for the share of round trips that were lost: 1 − (1 − p)² of independent directions."""
    return 1 - math.sqrt(1 - rtt_loss) if loss_on == "both" else rtt_loss


class Conditions(Spec):
    """A path with half of the RTT in each direction; jitter and loss act on each direction independently, as in the published rigs."""

    rtt: Time
    """Propagation RTT, ns."""
    jitter: Time = 0
    """Spread of each one-way delay, ns: the standard deviation under `normal`, ± under `uniform`."""
    distribution: Distribution = "normal"
    """Distribution of the jitter."""
    jitter_on: Directions = "both"
    """The directions that have the jitter."""
    loss: Percent = 0.0
    """Share of packets lost in each direction."""
    loss_on: Directions = "both"
    """The directions that have the loss."""
    loss_burst: float = Field(default=1.0, ge=1, le=MAX_LOSS_BURST)
    """Mean number of packets lost in a row, the share staying `loss`; 1 is independent loss."""
    forward_at: Node = "router"
    """The node at whose egress the data meet jitter and loss: at a router netem treats each packet by itself, at the sender super-packets."""
    reverse_at: Node = "router"
    """The same of the ACKs; `sender` is the host that sends them."""
    limit: int = Field(default=Netem.model_fields["limit"].default, ge=1)
    """Packets that netem holds in each direction."""
    rate: Rate | None = None
    """Rate of the bottleneck, bit/s; None is no limit."""
    buffer: Buffer | None = None
    """Size of the bottleneck's queue, bytes or `2bdp`; None is `1bdp`, of a `queue` its own limit."""
    queue: Queue | None = None
    """Queue of the bottleneck, a name (`fq_codel`) or tc's words; None is a FIFO in bytes."""
    flow: Flow = Flow()
    """Fields of every flow."""
    flows: int = Field(default=1, ge=1, le=MAX_FLOWS)
    """Flows in a trial, all alike."""
    duration: Time = 10 * NS_PER_S
    """How long the path is watched, ns."""
    kernel: KernelField = Kernel()
    """The kernel at both ends."""
    order: Order = "reorder"
    """What jitter does to the order of packets."""
    timer_slack: Time = TIMER_SLACK
    """How much later than requested a sleeping application wakes, ns."""
    floor: Time = 0
    """Smallest one-way delay, ns."""

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: object) -> object:
        return {"duration": "10s", "timer_slack": format_time(TIMER_SLACK), **data} if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _sensible(self) -> Conditions:
        if self.rtt <= 0:
            refuse("rtt", "0s is not a path", "write for example 26ms")
        if self.jitter and self.order == "correlated" and self.distribution != "normal":
            refuse("distribution", f"jitter that keeps the order is normally distributed, not {self.distribution}", "leave it out, or order: keep")
        expect_bursts(self.loss, self.loss_burst)
        for name in ("buffer", "queue"):
            if getattr(self, name) is not None and not self.rate:
                refuse(name, "there is no bottleneck that it could belong to", "give its rate too, for example 10mbit")
        return self

    def scenario(self, cca: str) -> Scenario:
        """The scenario in which every flow uses `cca`."""
        link = (Link(rate=format_rate(self.rate), buffer=self.buffer, queue=self.queue),) if self.rate else ()
        each = self.flow.model_copy(update={"cca": cca, "count": self.flows})
        update = {
            "forward": (self._netem("forward"),),
            "bottleneck": link,
            "reverse": (self._netem("reverse"),),
            "flows": (each,),
            "duration": self.duration,
            "kernel": self.kernel,
            "timer_slack": self.timer_slack,
        }
        return Scenario(name=f"path-{format_time(self.rtt)}").model_copy(update=update)

    def _netem(self, direction: Directions) -> Netem:
        """One direction; at a router, where nothing else is said."""
        jitter = self.jitter if self.jitter_on in ("both", direction) else 0
        distribution = self.distribution
        if jitter and self.order == "correlated" and distribution != "normal":
            jitter, distribution = round(jitter * deviation(distribution)), "normal"
        loss = self.loss if self.loss_on in ("both", direction) else 0.0
        update = {
            "at": self.forward_at if direction == "forward" else self.reverse_at, "delay": self.rtt // 2, "jitter": jitter,
            "distribution": distribution if jitter else "normal", "order": self.order if jitter else "reorder",
            "floor": min(self.floor, self.rtt // 2) if jitter else 0, "loss": loss, "loss_burst": self.loss_burst if loss else 1.0,
            "limit": self.limit,
        }  # fmt: skip
        return Netem().model_copy(update=update)
