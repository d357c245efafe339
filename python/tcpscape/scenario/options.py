"""A scenario from options: a path in numbers (:class:`Conditions`) or in tc's words and its flows, or a scenario with some of its fields changed.

These are the options of `tcpscape run` and of :func:`tcpscape.run`. An option that is None is not given: the field of the scenario, or its default,
remains.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field, model_validator

from tcpscape.errors import refuse
from tcpscape.scenario import changes
from tcpscape.scenario.fields import OPTIONS, Buffer, Percent, Rate, Spec, Time, validate
from tcpscape.scenario.flows import MAX_FLOWS, Flow
from tcpscape.scenario.grammar import parse_mix
from tcpscape.scenario.path import MAX_DELAY, MAX_LOSS_BURST, Distribution, Link, Netem, Node, Order, Queue, deviation, expect_bursts
from tcpscape.scenario.scenario import PARTS, TIMER_SLACK, Kernel, KernelField, Scenario
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
    corrupt: Percent = 0.0
    """Share of packets of each direction with a bit changed, which the host that gets them drops."""
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
        if self.rtt // 2 > MAX_DELAY:
            refuse("rtt", f"half of {format_time(self.rtt)} is more than netem can wait", f"write at most {2 * (MAX_DELAY // NS_PER_S)}s")
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
        both = {name: getattr(self, name) for name in Conditions.model_fields.keys() & Netem.model_fields.keys()}
        update = both | {
            "at": self.forward_at if direction == "forward" else self.reverse_at,
            "delay": self.rtt // 2,
            "jitter": jitter,
            "distribution": distribution if jitter else "normal",
            "order": self.order if jitter else "reorder",
            "floor": min(self.floor, self.rtt // 2) if jitter else 0,
            "loss": loss,
            "loss_burst": self.loss_burst if loss else 1.0,
            "rate": None,
        }
        return Netem().model_copy(update=update).sensible()


UNNAMED = "words"
"""Name of a scenario that options alone make."""


@dataclass(frozen=True)
class ScenarioOptions:
    """Options that describe one scenario, or changes of one."""

    path: Mapping[str, Any] = field(default_factory=dict)
    """`forward`, `bottleneck`, `reverse` → tc's words, or hops as a scenario has them."""
    flows: int | None = None
    """Number of flows in a trial, all with the same fields."""
    mix: str | None = None
    """Flows under several congestion controls in one trial, `cubic*2,bbr@5s`: instead of `flows` and of congestion controls to compare."""
    flow: Mapping[str, Any] = field(default_factory=dict)
    """Fields of every flow: `rcvbuf`, `app`, `read`, …"""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the scenario: `duration`, `kernel`, `ecn`, …"""
    changes: Sequence[str] = ()
    """Changes on the way, besides those of an existing scenario: `bottleneck@8s: rate 20mbit` (`changes.parse`)."""
    links: Sequence[Any] = ()
    """Links of the chain, behind those of an existing scenario: `delay 5ms rate 50mbit`, or fields."""
    transfers: Sequence[Any] = ()
    """Transfers besides those of an existing scenario: `20/s,30kB`, or fields."""
    probes: Sequence[Any] = ()
    """Probes besides those of an existing scenario: `voice`, `ping~up`, or fields."""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """The path in numbers instead of `path`: fields of :class:`~tcpscape.scenario.vocabulary.PathFields`."""

    @property
    def is_empty(self) -> bool:
        """Whether they describe neither a path nor its flows."""
        return not (self._path() or given(self.flow) or self.flows is not None or self.mix is not None or self.links)

    def scenario(self, *, compared: bool = False) -> Scenario:
        """The scenario that the options alone describe; `compared`: its flows will run under several congestion controls, one trial each.

        :raises ScenarioError: one line that names the option that is wrong.
        """
        self._check_mix(compared)
        flows = parse_mix(self.mix) if self.mix is not None else [{"cca": "cubic", "count": self._count(1 if self.flows is None else self.flows)}]
        each = given(self.flow)
        fields = {"name": UNNAMED, **self._path(), **given(self.fields), **self._added({}), "flows": [{**each, **flow} for flow in flows]}
        return self._with_changes_in_time(Scenario.of(fields, OPTIONS))

    def over(self, base: Scenario, *, compared: bool = False) -> Scenario:
        """The scenario `base` with what the options change. :raises ScenarioError: one line that names the option that is wrong."""
        self._check_mix(compared)
        if conditions := given(self.conditions):
            refuse(
                next(iter(conditions)).replace("_", "-"), f"{base.name} has its own path", "leave out one of the two, or vary its fields in a sweep"
            )
        flows = [flow.model_dump(mode="json", exclude_defaults=True) for flow in base.flows]
        if self.mix is not None:
            flows = [_over(flows[0] if flows else {}, flow) for flow in parse_mix(self.mix)]
        if self.flows is not None:
            if len(flows) > 1:
                refuse("flows", f"{base.name} says its own {len(flows)} groups of flows", "leave out --flows, or use --mix")
            flows = [{**(flows[0] if flows else {}), "count": self._count(self.flows)}]
        each = given(self.flow)
        fields = base.to_dict() | given(self.path) | given(self.fields)
        fields |= self._added(fields)
        return self._with_changes_in_time(Scenario.of({**fields, "flows": [{**flow, **each} for flow in flows]}, base.name))

    def _path(self) -> dict[str, Any]:
        """The fields of the scenario that are its path. :raises ScenarioError: where it is said twice, or its RTT is not said."""
        conditions, words = given(self.conditions), given(self.path)
        if not conditions:
            return words
        first = next(iter(conditions)).replace("_", "-")
        if words:
            refuse(next(iter(words)), f"the path is said by {first}, too", "leave out one of the two")
        expect_owners(conditions, conditions)
        if "rtt" not in conditions:
            refuse("rtt", f"missing, and {first} needs a path", "give it too, for example 50ms")
        scenario = validate(Conditions, conditions, OPTIONS).scenario("cubic")
        return {name: hops for name in PARTS if (hops := getattr(scenario, name))}

    def _added(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of which the options say more: what there is `before`, then theirs."""
        more = {"changes": [changes.parse(text) for text in self.changes], "links": self.links, "transfers": self.transfers, "probes": self.probes}
        return {name: [*before.get(name, ()), *entries] for name, entries in more.items() if entries}

    def _with_changes_in_time(self, scenario: Scenario) -> Scenario:
        """The scenario, whose changes from options happen before its end."""
        for change in scenario.changes[len(scenario.changes) - len(self.changes) :]:
            if change.at is not None and change.at >= scenario.duration:
                times = f"{format_time(change.at)} is not before the end, {format_time(scenario.duration)}"
                refuse("change", times, "give a longer --duration, or an earlier time")
        return scenario

    def _check_mix(self, compared: bool) -> None:
        if self.mix is not None and (compared or self.flows is not None):
            refuse("mix", "it says congestion controls and counts itself", "leave out --cca and --flows")

    @staticmethod
    def _count(flows: int) -> int:
        if not 1 <= flows <= MAX_FLOWS:
            refuse("flows", f"{flows} flows", f"write 1 to {MAX_FLOWS}")
        return flows


def _over(base: Mapping[str, Any], flow: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a flow of a mixture, the others those of `base`; data of a direction that the mixture says enter and leave where it says."""
    kept = {name: value for name, value in base.items() if "direction" not in flow or name not in ("enter", "leave")}
    return {**kept, **flow}


OWNERS = {"distribution": "jitter", "order": "jitter", "jitter_on": "jitter", "loss_burst": "loss", "loss_on": "loss"}
"""Field of a path → the one without which it means nothing."""


def expect_owners(options: Collection[str], there: Collection[str]) -> None:
    """Refuses an option that says something of jitter or loss where neither the options nor the path has any; a jitter or loss of 0 is one.

    :param options: names of the fields that are given.
    :param there: names of those that the path has, from options, a file, or as an axis (`forward.jitter`).
    """
    named = {name.rpartition(".")[2] for name in there}
    for name in options:
        owner = OWNERS.get(name)
        if owner and owner not in named:
            refuse(name.replace("_", "-"), f"there is no {owner} that it could belong to", f"give --{owner} too, or leave it out")


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given: those that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def scenario(
    path: Mapping[str, Any],
    *,
    cca: str | None = None,
    flows: int | None = None,
    mix: str | None = None,
    flow: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Scenario:
    """A scenario from a path (`forward`, `bottleneck`, `reverse`) and options in one call; `fields` are further fields of the scenario.

    :raises ScenarioError: one line that names the option that is wrong.
    """
    base = ScenarioOptions(path, flows, mix, flow or {}, fields).scenario(compared=cca is not None)
    return base if cca is None else base.with_cca(cca)
