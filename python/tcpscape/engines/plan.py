"""A scenario as the plan that `_core.Plan` reads, as JSON: the only place in Python that knows the plan's fields.

:func:`flatten` makes one path of a chain of links, for an engine whose network is one path between two hosts, the emulator of the live engine: where
all flows cross the whole chain and none has an access link, the stages one behind the other are the same network.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from tcpscape.controls import spelling
from tcpscape.controls.spelling import Param
from tcpscape.errors import ScenarioError, instead, refuse
from tcpscape.scenario import path, topology
from tcpscape.scenario.changes import Change
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.topology import Access, Endpoint
from tcpscape.scenario.words import within
from tcpscape.trial import Capture

if TYPE_CHECKING:
    import polars as pl


Controls = Mapping[str, Sequence[Param]]
"""The parameters of each known congestion control, by its name."""


READING_NS = 256
"""A reading of the clock in virtual time, and the steps in which that goes, ns."""
VIRTUAL_HOST: Mapping[str, Any] = {"clock": {"step_ns": READING_NS, "timer_ns": 500, "wake_ns": 2 * READING_NS}}
"""What the host of a kernel in virtual time is like, as fields of the plan: its clock goes in steps. A write takes one reading of it by default."""


def build(scenario: Scenario, controls: Controls, capture: Capture = Capture(), host: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The plan of a scenario; `host` are fields of its host other than the plan's defaults.

    :raises ScenarioError: the path is empty, or a part of it does not exist.
    """
    if not any(link.forward or link.reverse for link in scenario.chain):
        refuse("path", "it is empty: no delay, no rate, no queue", "give it one, for example forward: netem delay 25ms")
    places = _Places(scenario)
    return {
        "duration_ns": scenario.duration,
        "mtu": scenario.mtu,
        "kernel": scenario.kernel.plan(),
        "offload": scenario.offload,
        "ecn": scenario.ecn,
        **_chain(scenario),
        "flows": [plan for flow in scenario.flows for plan in [_flow(flow, scenario.duration, controls) | places.of(flow)] * flow.count],
        **_traffic(scenario, places, controls),
        **places.plan(),
        "sample_interval_ns": capture.samples_ns,
        "queue_sample_interval_ns": capture.queue_samples_ns,
        "trace_packets": capture.packets,
        **({"trace_events": True} if capture.events else {}),
        **({"control_interval_ns": capture.control_ns} if capture.control_ns else {}),
        "arp": True,
        "timer_slack_ns": scenario.timer_slack,
        **({} if scenario.tick_phase is None else {"tick_phase_ns": scenario.tick_phase}),
        **host,
    }


def build_checked(lib: ModuleType, scenario: Scenario, controls: Controls, capture: Capture = Capture()) -> dict[str, Any]:
    """The plan of a scenario for an engine with congestion controls of its own; all else is checked as the model checks it.

    :raises ScenarioError: names the field and the fix.
    """
    return checked(lib, build(scenario, controls, capture))


def profile(lib: ModuleType, name: str) -> dict[str, Any]:
    """The settings of a kernel profile, plain numbers. :raises ScenarioError: there is none of this name."""
    try:
        return dict(_profile(lib, name))
    except ValueError as e:
        raise ScenarioError(f"{e}; choose one of them") from None


@functools.lru_cache(maxsize=64)
def _profile(lib: ModuleType, name: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(lib.kernel_profile(name))
    return fields


def checked(lib: ModuleType, fields: dict[str, Any]) -> dict[str, Any]:
    """A plan after the model's checks. :raises ScenarioError: names the field and the fix."""
    try:
        lib.check_plan(json.dumps(fields, separators=(",", ":")))
    except ValueError as e:
        raise ScenarioError(str(e)) from None
    return fields


def _chain(scenario: Scenario) -> dict[str, Any]:
    """The links: the first one's directions, and the others where there are some."""
    chain = scenario.chain
    own = {"forward": _direction(scenario, ("forward", "bottleneck")), "reverse": _direction(scenario, ("reverse",))}
    first = len(chain) - len(scenario.links)
    links = [_link(link.forward, link.reverse, scenario, number) for number, link in enumerate(scenario.links, first)]
    if len(chain) == len(links):
        own, links = links[0], links[1:]
    return {**own, **({"links": links} if links else {})}


def _link(forward: Sequence[path.Hop], reverse: Sequence[path.Hop], scenario: Scenario, number: int | None = None) -> dict[str, Any]:
    """Both directions of a link whose hops are all at routers; `number`: its place in the chain, None of an access link."""
    directions = {}
    for direction, hops in (("forward", forward), ("reverse", reverse)):
        stages: list[dict[str, Any]] = []
        schedule: list[dict[str, Any]] = []
        first: list[int] = []
        for hop in hops:
            first.append(len(stages))
            if isinstance(hop, path.TracedLink):
                schedule.append({"stage": first[-1], "depth": 0, "change": hop.changes()})
            stages += [{"qdisc": queue, "at": "router"} for queue in _queues(hop, scenario, "links")]
        for change in scenario.changes if number is not None else ():
            if scenario.place_of(change) == (number, direction):
                schedule.append({"stage": first[_changed(change, hops)], "depth": change.child, "change": change.plan()})
        directions[direction] = {"stages": stages, "schedule": schedule}
    return directions


def _changed(change: Change, hops: Sequence[path.Hop]) -> int:
    """The number of the hop of a link that a change is of: the one it names, or the first one that has what changes."""
    if change.hop >= len(hops):
        refuse("change", f"{change.where} has no hop {change.hop}", f"choose one from 0 to {len(hops) - 1}" if hops else "change its other direction")
    if change.hop:
        return change.hop
    rated = change.trace or any(values and (values.rate or values.burst) for values in (change.set, change.start, change.end))
    delays = any(values and (values.delay is not None or values.jitter is not None) for values in (change.set, change.start, change.end))
    if rated:
        return next((i for i, hop in enumerate(hops) if isinstance(hop, path.TracedLink) or path.rate_bps(hop)), 0)
    return next((i for i, hop in enumerate(hops) if path.delay_ns(hop)), 0) if delays else 0


class _Places:
    """The pairs of hosts of a scenario: one for each entry with an access link, and one for each span of the chain."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._places: list[dict[str, Any]] = []
        self._shared: dict[tuple[int, int], int] = {}

    def of(self, endpoint: Endpoint) -> dict[str, Any]:
        """The fields of a flow that say where it joins the path; the place is made where it is not there."""
        way = {"up": True} if endpoint.direction == "up" else {}
        if not self._scenario.is_topology:
            return way
        span, access = self._scenario.span(endpoint), self._scenario.access_of(endpoint)
        has_access = bool(topology.hops(access))
        if has_access or span not in self._shared:
            self._places.append(self._place(span, access, up=bool(way)))
            if not has_access:
                self._shared[span] = len(self._places) - 1
        return {"place": len(self._places) - 1 if has_access else self._shared[span], **way}

    def plan(self) -> dict[str, Any]:
        """The field `places`, where there are some."""
        return {"places": self._places} if self._places else {}

    def _place(self, span: tuple[int, int], access: Access, *, up: bool) -> dict[str, Any]:
        there, back = (access.before, access.after), (access.acks_before, access.acks_after)
        if up:
            # Data begin at the right host: what they meet first is the far link's way to the chain.
            links = {"near": (back[0], there[1]), "far": (back[1], there[0])}
        else:
            links = {"near": (there[0], back[1]), "far": (there[1], back[0])}
        plans = {name: _link(forward, reverse, self._scenario) for name, (forward, reverse) in links.items()}
        return {"enter": span[0], "leave": span[1], **plans}


def _traffic(scenario: Scenario, places: _Places, controls: Controls) -> dict[str, Any]:
    """Transfers and probes, where there are some."""
    transfers = []
    for entry in scenario.transfers:
        flow = _flow(Flow(cca=entry.cca), scenario.duration, controls) | places.of(entry)
        flow |= {"start_ns": entry.start, "stop_ns": min(entry.stop or scenario.duration, scenario.duration)}
        transfers.append({"flow": flow, "per_second": entry.rate, "least": entry.least, "most": entry.most, "shape": entry.shape})
    probes = [probe.plan() | places.of(probe) for probe in scenario.probes]
    return {name: entries for name, entries in (("transfers", transfers), ("probes", probes)) if entries}


def _direction(scenario: Scenario, places: tuple[str, ...]) -> dict[str, Any]:
    """The stages of one direction, in order, and the schedule of their changes."""
    stages: list[dict[str, Any]] = []
    schedule: list[dict[str, Any]] = []
    loaded = any(end.direction == "up" for end in scenario.endpoints)
    for place in places:
        first: list[int] = []
        for i, hop in enumerate(getattr(scenario, place)):
            first.append(len(stages))
            at = "router" if scenario.is_topology else path.node(place, i, hop, loaded=loaded)
            stages += [{"qdisc": q, "at": at} for q in _queues(hop, scenario, place)]
            if isinstance(hop, path.TracedLink):
                schedule.append({"stage": first[-1], "depth": 0, "change": hop.changes()})
        for change in scenario.changes:
            if change.where == place:
                if not first:
                    refuse("change", f"the path has no {place}, so nothing of it changes", "give the path one, or change another part of it")
                if change.hop >= len(first):
                    refuse("change", f"{place} has no hop {change.hop}", f"choose one from 0 to {len(first) - 1}")
                schedule.append({"stage": first[change.hop], "depth": change.child, "change": change.plan()})
    return {"stages": stages, "schedule": schedule}


def _queues(hop: path.Hop, scenario: Scenario, place: str) -> list[Any]:
    rtt_ns = scenario.rtt_ns
    with within(place):
        return path.plan(hop, rtt_ns)


def _flow(flow: Flow, duration_ns: int, controls: Controls) -> dict[str, Any]:
    name, params = _name_and_params(flow.cca, controls)
    app: dict[str, Any] = {"kind": "bulk", "chunk": flow.app.chunk}
    if flow.app.size:
        app = {"kind": "finite", "chunk": flow.app.chunk, "bytes": flow.app.size}
    elif flow.app.response:
        app = {"kind": "respond", "chunk": flow.app.chunk, "response": flow.app.response, "think_ns": flow.app.think, "every_ns": flow.app.every}
    elif flow.app.on:
        app = {"kind": "on_off", "chunk": flow.app.chunk, "on_ns": flow.app.on, "off_ns": flow.app.off, "rate_Bps": flow.app.rate}
    elif flow.app.rate:
        app = {"kind": "paced", "chunk": flow.app.chunk, "rate_Bps": flow.app.rate}
    optional: dict[str, Any] = {"cca_params": params} if params else {}
    if flow.listener:
        optional["listener"] = _checked_name(flow.listener, controls, "listener")
    if flow.misbehaves:
        optional["misbehaves"] = flow.misbehaves
    if flow.player:
        optional["player"] = flow.player.plan()
    return {
        "cca": name,
        **optional,
        "start_ns": flow.start,
        "stop_ns": min(flow.stop or duration_ns, duration_ns),
        "app": app,
        "read": {"size": flow.read.size, "delay_ns": flow.read.delay},
        "rcvbuf": flow.rcvbuf,
        "sndbuf": flow.sndbuf,
        "nodelay": flow.nodelay,
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
        refuse(field, f"{name!r} is not built", instead(name, controls))
    return name


FIX = "use --engine model or virtual"
"""What does have places."""
FORWARD = 1
"""Number in samples of queues of the first link's forward direction; its reverse is the next one, then those of the next link."""


def flatten(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with its chain as one path. A plan of one path stays as it is.

    :raises ScenarioError: an access link, or data that enter or leave within the chain; the sentence names it and the engines that can.
    """
    if not fields.get("places"):
        return dict(fields)
    links = _links(fields)
    for place in fields["places"]:
        if any(place[link][way]["stages"] for link in ("near", "far") for way in ("forward", "reverse")):
            refuse("access", "the emulator is one path between two hosts, and access links and RTTs of flows' own need hosts of their own", FIX)
        if (place["enter"], place["leave"]) != (0, len(links)):
            refuse("links", "the emulator is one path between two hosts, and these data enter or leave within the chain", FIX)
    joining = {name: [_joined_end_to_end(entry) for entry in fields[name]] for name in ("flows", "probes") if name in fields}
    if "transfers" in fields:
        joining["transfers"] = [{**entry, "flow": _joined_end_to_end(entry["flow"])} for entry in fields["transfers"]]
    rest = {name: value for name, value in fields.items() if name not in ("links", "places")}
    paths = {"forward": _path([link["forward"] for link in links]), "reverse": _path([link["reverse"] for link in reversed(links)])}
    return {**rest, **joining, **paths, "arp": False}  # as on every network with places, neighbours are known


def named_queues(fields: Mapping[str, Any], queues: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Reports of the queues of a flattened plan with the link of each, and its stage there; `fields` is the plan before."""
    where = dict(_places(fields))
    named = []
    for queue in queues:
        number, stage = where[queue["direction"], queue["stage"]]
        named.append({"link": f"chain/{number}", **queue, "stage": stage})
    return tuple(named)


def named_samples(fields: Mapping[str, Any], samples: pl.DataFrame) -> pl.DataFrame:
    """Samples of the queues of a flattened plan, numbered as those of a chain; `fields` is the plan before."""
    import polars as pl

    rows = []
    for (direction, place), (number, stage) in _places(fields):
        back = direction == "reverse"
        rows.append({"pipe": FORWARD + back, "stage": place, "of_chain": FORWARD + 2 * number + back, "of_link": stage})
    table = pl.DataFrame(rows, schema={"pipe": pl.UInt8, "stage": pl.UInt32, "of_chain": pl.UInt8, "of_link": pl.UInt32})
    joined = samples.join(table, on=["pipe", "stage"], how="left", maintain_order="left")
    return joined.with_columns(pipe="of_chain", stage="of_link").select(samples.columns)


def _links(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [{"forward": fields["forward"], "reverse": fields["reverse"]}, *fields.get("links", ())]


def _joined_end_to_end(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "place"}


def _path(directions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One direction of several links, in the order in which packets meet them."""
    stages: list[Any] = []
    schedule: list[Any] = []
    for direction in directions:
        schedule += [{**change, "stage": change["stage"] + len(stages)} for change in direction["schedule"]]
        stages += direction["stages"]
    return {"stages": stages, "schedule": schedule}


def _places(fields: Mapping[str, Any]) -> Iterator[tuple[tuple[str, int], tuple[int, int]]]:
    """Direction and stage of the one path → number of the link and stage there."""
    links = list(enumerate(_links(fields)))
    for direction, order in (("forward", links), ("reverse", links[::-1])):
        stages = [(number, stage) for number, link in order for stage in range(len(link[direction]["stages"]))]
        yield from (((direction, place), of) for place, of in enumerate(stages))
