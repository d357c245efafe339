"""A scenario as the plan that `_core.Plan` reads, as JSON: the only place in Python that knows the plan's fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from tcpscape.controls import spelling
from tcpscape.controls.spelling import Param
from tcpscape.engines.base import Capture
from tcpscape.errors import ScenarioError, refuse
from tcpscape.scenario import path
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.scenario import PARTS, Scenario
from tcpscape.scenario.words import within

Parse = Callable[[str], str]
"""A parser of tc's words that returns the JSON of a queue; its ValueError names the wrong word."""
Controls = Mapping[str, Sequence[Param]]
"""The parameters of each known congestion control, by its name."""


def build(scenario: Scenario, parse: Parse, controls: Controls, capture: Capture = Capture()) -> dict[str, Any]:
    """The plan of a scenario.

    :raises ScenarioError: the path is empty, or a part of it does not exist.
    """
    if not any(getattr(scenario, part) for part in PARTS):
        refuse("path", "it is empty: no delay, no rate, no queue", "give it one, for example forward: netem delay 25ms")
    return {
        "duration_ns": scenario.duration,
        "mtu": scenario.mtu,
        "kernel": scenario.kernel.plan(),
        "offload": scenario.offload,
        "ecn": scenario.ecn,
        "forward": _direction(scenario, ("forward", "bottleneck"), parse),
        "reverse": _direction(scenario, ("reverse",), parse),
        "flows": [plan for flow in scenario.flows for plan in [_flow(flow, scenario.duration, controls)] * flow.count],
        "sample_interval_ns": capture.samples_ns,
        "queue_sample_interval_ns": capture.queue_samples_ns,
        "trace_packets": capture.packets, **({"trace_events": True} if capture.events else {}),
        "arp": True,
        "timer_slack_ns": scenario.timer_slack,
    }


def build_checked(lib: ModuleType, scenario: Scenario, controls: Controls, capture: Capture = Capture()) -> dict[str, Any]:
    """The plan of a scenario for an engine with congestion controls of its own; all else is checked as the model checks it.

    :raises ScenarioError: names the field and the fix.
    """
    fields = build(scenario, lib.parse_tc, controls, capture)
    try:
        lib.check_plan(json.dumps(fields, separators=(",", ":")))
    except ValueError as e:
        raise ScenarioError(str(e)) from None
    return fields


def _direction(scenario: Scenario, places: tuple[str, ...], parse: Parse) -> dict[str, Any]:
    """The stages of one direction, in order, and the schedule of their changes."""
    stages: list[dict[str, Any]] = []
    schedule: list[dict[str, Any]] = []
    for place in places:
        first: list[int] = []
        for i, hop in enumerate(getattr(scenario, place)):
            first.append(len(stages))
            stages += [{"qdisc": q, "at": path.node(place, i, hop)} for q in _queues(hop, scenario, place, parse)]
            if isinstance(hop, path.TracedLink):
                schedule.append({"stage": first[-1], "depth": 0, "change": hop.plan()})
        for change in scenario.changes:
            if change.where == place:
                if not first:
                    refuse("change", f"the path has no {place}, so nothing of it changes", "give the path one, or change another part of it")
                if change.hop >= len(first):
                    refuse("change", f"{place} has no hop {change.hop}", f"choose one from 0 to {len(first) - 1}")
                schedule.append({"stage": first[change.hop], "depth": change.child, "change": change.plan()})
    return {"stages": stages, "schedule": schedule}


def _queues(hop: path.Hop, scenario: Scenario, place: str, parse: Parse) -> list[Any]:
    texts = path.words(hop, scenario.rtt_ns)
    with within(place):
        return [json.loads(parse(text)) for text in texts]


def _flow(flow: Flow, duration_ns: int, controls: Controls) -> dict[str, Any]:
    name, params = _name_and_params(flow.cca, controls)
    app: dict[str, Any] = {"kind": "bulk", "chunk": flow.app.chunk}
    if flow.app.size:
        app = {"kind": "finite", "chunk": flow.app.chunk, "bytes": flow.app.size}
    elif flow.app.rate:
        app = {"kind": "paced", "chunk": flow.app.chunk, "rate_Bps": flow.app.rate}
    optional: dict[str, Any] = {"cca_params": params} if params else {}
    if flow.listener:
        optional["listener"] = _checked_name(flow.listener, controls, "listener")
    if flow.player:
        optional["player"] = flow.player.plan()
    return {
        "cca": name, **optional, "start_ns": flow.start, "stop_ns": min(flow.stop or duration_ns, duration_ns), "app": app,
        "read": {"size": flow.read.size, "delay_ns": flow.read.delay},
        "rcvbuf": flow.rcvbuf, "sndbuf": flow.sndbuf, "nodelay": flow.nodelay,
    }


def _name_and_params(cca: str, controls: Controls) -> tuple[str, dict[str, int]]:
    """Name and parameters for the engine; a Python class receives its parameters elsewhere."""
    if spelling.is_class(cca):
        return cca, {}
    name = _checked_name(spelling.name_of(cca), controls, "cca")
    return name, spelling.resolve(cca, controls[name])


def _checked_name(name: str, controls: Controls, field: str) -> str:
    """The name; raises ScenarioError where there is no such congestion control."""
    if name not in controls:
        raise ScenarioError(f"{field}: {name!r} is not built; choose {', '.join(controls)}")
    return name
