"""A scenario from options: a path in tc's words and its flows, or an existing scenario with some of its fields changed.

These are the options of `tcpscape run` and of :func:`tcpscape.run`. An option that is None is not given: the field of the scenario, or its default,
remains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcpscape.errors import refuse
from tcpscape.scenario import changes
from tcpscape.scenario.conditions import Conditions
from tcpscape.scenario.fields import OPTIONS, validate
from tcpscape.scenario.flows import MAX_FLOWS
from tcpscape.scenario.grammar import parse_mix
from tcpscape.scenario.scenario import PARTS, Scenario
from tcpscape.units import format_time

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
        """The scenario `base` with what the options change.

        :raises ScenarioError: one line that names the option that is wrong.
        """
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
        """The fields of the scenario that are its path.

        :raises ScenarioError: where it is said twice, or its RTT is not said.
        """
        conditions, words = given(self.conditions), given(self.path)
        if not conditions:
            return words
        first = next(iter(conditions)).replace("_", "-")
        if words:
            refuse(next(iter(words)), f"the path is said by {first}, too", "leave out one of the two")
        if "rtt" not in conditions:
            refuse("rtt", f"missing, and {first} needs a path", "give it too, for example 50ms")
        fields = validate(Conditions, conditions, OPTIONS).scenario("cubic").to_dict()
        return {name: fields[name] for name in PARTS if name in fields}

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


def flow_fields(*, app: Any = None, chunk: Any = None, **others: Any) -> dict[str, Any]:
    """The fields of a flow from options; those not given (None) are left out. `app` is a rate, or fields that `chunk` joins."""
    application = dict(app) if isinstance(app, Mapping) else given({"rate": 0 if app == "0" else app})
    application |= given({"chunk": chunk})
    return given(others) | ({"app": application} if application else {})


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
