"""The conditions of a path as a user describes it (RTT, jitter, loss, rate), and the scenario that has them."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from tcpscape.errors import refuse
from tcpscape.scenario.fields import Buffer, Percent, Rate, Spec, Time
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.path import Link, Netem
from tcpscape.scenario.scenario import TIMER_SLACK, Kernel, KernelField, Scenario
from tcpscape.units import NS_PER_S, format_rate, format_time

Directions = Literal["both", "forward", "reverse"]
SPREAD = {"uniform": 3**-0.5}
"""Standard deviation of a distribution with `jitter` 1, where that is not 1."""


class Conditions(Spec):
    """A path with half of the RTT in each direction; jitter and loss act on each direction independently, as in the published rigs."""

    rtt: Time
    """Propagation RTT, ns."""
    jitter: Time = 0
    """Spread of each one-way delay, ns: the standard deviation under `normal`, ± under `uniform`."""
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"] = "normal"
    jitter_on: Directions = "both"
    loss: Percent = 0.0
    """Of each direction, a fraction."""
    loss_on: Directions = "both"
    limit: int = Netem.model_fields["limit"].default
    """Packets that netem holds in each direction."""
    rate: Rate | None = None
    """Bottleneck, bit/s; None is no limit."""
    buffer: Buffer = "1bdp"
    flow: Flow = Flow()
    flows: int = 1
    duration: Time = 10 * NS_PER_S
    kernel: KernelField = Kernel()
    order: Literal["reorder", "clamp", "correlated"] = "reorder"
    timer_slack: Time = TIMER_SLACK
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
        if "buffer" in self.model_fields_set and not self.rate:
            refuse("buffer", "there is no bottleneck that it could belong to", "give its rate too, for example 10mbit")
        return self

    def scenario(self, cca: str) -> Scenario:
        """The scenario in which every flow uses `cca`."""
        link = (Link(rate=format_rate(self.rate), buffer=self.buffer),) if self.rate else ()
        each = self.flow.model_copy(update={"cca": cca, "count": self.flows})
        update = {
            "forward": (self._netem("forward"),), "bottleneck": link, "reverse": (self._netem("reverse"),), "flows": (each,),
            "duration": self.duration, "kernel": self.kernel, "timer_slack": self.timer_slack,
        }
        return Scenario(name=f"path-{format_time(self.rtt)}").model_copy(update=update)

    def _netem(self, direction: Directions) -> Netem:
        """One direction, at a router, where netem treats each packet by itself."""
        jitter = self.jitter if self.jitter_on in ("both", direction) else 0
        distribution = self.distribution
        if jitter and self.order == "correlated" and distribution != "normal":
            jitter, distribution = round(jitter * SPREAD.get(distribution, 1.0)), "normal"
        update = {
            "at": "router", "delay": self.rtt // 2, "jitter": jitter, "distribution": distribution if jitter else "uniform",
            "loss": self.loss if self.loss_on in ("both", direction) else 0.0, "order": self.order if jitter else "reorder",
            "floor": min(self.floor, self.rtt // 2) if jitter else 0, "limit": self.limit,
        }
        return Netem().model_copy(update=update)
