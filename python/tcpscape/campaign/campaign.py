"""Campaigns: a path × axes × congestion controls × engines × seeds, and the cases that they stand for.

A campaign is YAML, TOML or options of the command line:

    name: step
    scenario: {reverse: netem delay ${d}, changes: [{where: bottleneck, at: 30s, set: {rate: "${after}"}}], …}
    axes: {d: [25ms, 50ms], r: "2,3"}
    derive: {after: 60mbit / r}
    zip: [{cca: [cubic, bbr], ecn: [true, false]}]
    seeds: 10

The path is `conditions` (RTT, jitter, loss: `scenario.options`) or a `scenario` (a file, a gallery name or its fields). An axis that is
asked for as `${axis}` or in `derive` goes there; any other sets the field of its name, `flow.FIELD` that of every flow, `bottleneck.buffer` a field
within a field. In a `zip` group
axes move together; its first one, or the first ones that tell its rows apart, are shown in tables and may be names that are no field.

How large a campaign is (:class:`Size`: cells, trials, samples, and the memory and time that they would take) is judged before anything of it is
built. The limit is on memory, not on patience: a campaign holds its scenarios and its trials until the answer is computed. Whoever has more memory
raises the limit with the environment variable `TCPSCAPE_MEMORY`, `16GiB` for example.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

from pydantic import AfterValidator, BeforeValidator, Field, InstanceOf, WithJsonSchema, field_serializer, model_validator
from pydantic.json_schema import SkipJsonSchema

from tcpscape import metrics, units
from tcpscape.campaign import axes
from tcpscape.campaign.axes import MAX_SEEDS, is_dotted, parse_seeds, set_dotted
from tcpscape.controls import spelling
from tcpscape.errors import refuse, shown
from tcpscape.formats import without
from tcpscape.scenario import files
from tcpscape.scenario.fields import OPTIONS, Name, Percent, Spec, Time, validate, written
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.options import UNNAMED, Conditions, ScenarioOptions
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.vocabulary import FlowFields
from tcpscape.trial import Capture

MEMORY_VARIABLE = "TCPSCAPE_MEMORY"
"""Environment variable with the limit, a size."""
MEMORY = 2 * 2**30
"""Bytes that a campaign may take where :data:`MEMORY_VARIABLE` says nothing else: 2 GiB, about a million trials of one flow without samples."""
CELL, TRIAL, FLOW, SAMPLE, QUEUE_SAMPLE = 6_000, 1_000, 1_000, 150, 400
"""Bytes that a cell, a trial, a flow of a trial, a sample of a flow and one of the path's queues take, rounded up: measured on 10,000 cells, 20,000
trials and 4,000,000 samples."""
TRIAL_S = 0.01
"""Seconds that a trial takes at least, about: ten seconds of one flow at 10 Mbit/s on the model."""


@dataclass(frozen=True)
class Size:
    """What a campaign would build."""

    cells: int
    trials: int
    flows: int = 1
    """Flows in a trial."""
    samples: int = 0
    """Samples of each flow that a trial keeps."""
    queue_samples: int = 0
    """Samples of the queues that a trial keeps."""

    @property
    def memory(self) -> int:
        """Bytes that it would take, about."""
        return self.cells * CELL + self.trials * (TRIAL + self.flows * (FLOW + self.samples * SAMPLE) + self.queue_samples * QUEUE_SAMPLE)

    @property
    def text(self) -> str:
        """`4,000,000 trials in 1,000 cells would take about 8.01GB of memory and at least 11 hours of one core`."""
        many = max(self.samples, self.queue_samples)
        kept = f", each with {many:,} samples of {units.counted(self.flows, 'flow')}" if many else ""
        hours = self.trials * TRIAL_S / 3600
        time = f" and at least {hours:,.0f} hours of one core" if hours >= 1 else ""
        cells = f" in {self.cells:,} cells" if self.cells > 1 else ""
        return f"{self.trials:,} trials{cells}{kept} would take about {units.brief_size(self.memory)} of memory{time}"


def memory_limit() -> int:
    """Bytes that a campaign may take. :raises TcpscapeError: where the environment variable is no size."""
    text = os.environ.get(MEMORY_VARIABLE, "")
    return units.parse_size(text, MEMORY_VARIABLE, example="16GiB") if text else MEMORY


def expect_fits(size: Size, field: str, fix: str = "take fewer seeds or wider steps") -> None:
    """Refuses what would not fit. :raises TcpscapeError: one line with the size, the limit and how to raise it."""
    most = memory_limit()
    if size.memory > most:
        refuse(field, f"{size.text} (limit {units.brief_size(most)})", f"{fix}, or raise {MEMORY_VARIABLE}")


LEAST = 5
"""Fewest runs of a cell that is repeated until it is precise: of fewer no interval of a median or mean holds without assumptions."""
FIELDS_OF_PARTS = {
    "forward": ("jitter", "loss", "loss_burst", "distribution", "order", "delay", "duplicate", "reorder"),
    "bottleneck": ("rate", "buffer", "queue"),
    "reverse": ("rtt",),
}
"""Part of a path → fields that people name without it; a scenario has no RTT, but delays."""
ADDED = ("links", "transfers", "probes")
"""Fields of a campaign that are added to those of its scenario."""
FLOW_FIELDS = frozenset((*FlowFields.__annotations__, "nodelay", "listener"))
"""Fields of a flow that may be named without `flow.`."""


def _read_axes(axes_: Any) -> Any:
    return {name: _levels(values, name) for name, values in axes_.items()} if isinstance(axes_, dict) else axes_


def _read_group(group: Any) -> Any:
    return {name: _levels(values, name, once=False) for name, values in group.items()} if isinstance(group, dict) else group


def _levels(values: Any, name: str, *, once: bool = True) -> tuple[str, ...]:
    if name == "cca" and isinstance(values, (str, list, tuple)):
        return tuple(spelling.parse_labels(values)) if isinstance(values, str) else tuple(spelling.label(cca) for cca in values)
    return axes.levels(values, name, once=once)


def _read_controls(controls: Any) -> Any:
    return _levels(controls, "cca") if isinstance(controls, (str, list, tuple)) else controls


def expect_flow(conditions: dict[str, Any]) -> dict[str, Any]:
    """The conditions of a path, whose `flow` is a mapping of fields where it is there."""
    if not isinstance(flow := conditions.get("flow", {}), dict):
        refuse("conditions.flow", f"{shown(flow)} is no mapping of fields", "write for example {rcvbuf: 256KiB}")
    return conditions


_Value: Any = written({"type": ["string", "number", "boolean", "object"]})
_Levels: Any = dict[str, Annotated[_Value | list[_Value], Field(examples=["0..24ms/4ms", "24,50,100ms", ["6.1", "6.12,rmem_max=4MiB"]])]]
"""The values of axes as a user writes them."""
Axes = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_read_axes, json_schema_input_type=_Levels)]
"""Axis → its values as written."""
Group = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_read_group, json_schema_input_type=_Levels)]
"""Axes that move together: as many values for each."""


_SEEDS = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "[0-9]"}], "examples": ["20", "5..9", "1,4,7"]}


Base = str | dict[str, Any] | SkipJsonSchema[InstanceOf[Scenario]]
"""What a campaign varies: a file, a gallery name, fields with `${axis}` in them, or a scenario as it is."""


class Campaign(Spec):
    """What to run."""

    name: Name = "campaign"
    """What results and reports call it."""
    about: str = ""
    """What it is for, as one or two sentences."""
    scenario: Base | None = None
    """A file, a gallery name or a scenario's fields, with `${axis}` where an axis goes; in Python also a scenario."""
    conditions: Annotated[dict[str, Any], AfterValidator(expect_flow)] = Field(default_factory=dict)
    """A path in a user's words, instead of a scenario."""
    axes: Axes = Field(default_factory=dict)
    """Crossed with each other, the last one runs fastest."""
    zip: tuple[Group, ...] = ()
    """Groups whose axes move together."""
    derive: dict[str, str] = Field(default_factory=dict)
    """Name → arithmetic over axes."""
    cca: Annotated[tuple[str, ...], BeforeValidator(_read_controls, json_schema_input_type=str | list[_Value])] = ()
    """Congestion controls of every flow; none leaves those of the scenario."""
    mix: str = ""
    """Flows under several congestion controls in each trial, `cubic*2,bbr@5s`, instead of `cca`; their other fields are those of the first flow."""
    links: tuple[_Value, ...] = ()
    """Links of the chain behind those of the scenario: `delay 5ms rate 50mbit`, or fields."""
    transfers: tuple[_Value, ...] = ()
    """Transfers besides those of the scenario: `20/s,30kB`, or fields."""
    probes: tuple[_Value, ...] = ()
    """Probes besides those of the scenario: `voice`, `ping~up`, or fields."""
    programs: dict[str, Any] = Field(default_factory=dict)
    """A command and its servers on the path, fields of a scenario's `programs` with `${axis}` in them, instead of the scenario's flows."""
    engines: tuple[str, ...] = ("model",)
    """Engines that run every case."""
    seeds: Annotated[str, WithJsonSchema(_SEEDS, mode="validation")] = "10"
    """`20` is 0…19, `5..9`, `1,4,7`."""
    pool: tuple[str, ...] = ()
    """Axes whose runs are taken together in one cell, as a published mean did."""
    precision: Percent | None = None
    """Repeat each cell until the interval of `metric` is this narrow (half of it over the value)."""
    max_seeds: int = Field(default=200, ge=2, le=MAX_SEEDS)
    """Most runs of a cell under `precision`."""
    metric: str = "goodput"
    """What tables show and `precision` is about."""
    metrics: tuple[str, ...] = ()
    """Metrics that will be asked for besides; what they need of a trial is kept."""
    samples: Time = 0
    """Interval of the samples kept of each flow, ns; 0 is none, unless a metric asks for some."""
    queue_samples: Time = 0
    """Interval of the samples kept of each queue, ns; 0 is none."""

    @field_serializer("scenario")
    def _plain(self, scenario: str | dict[str, Any] | Scenario | None) -> str | dict[str, Any] | None:
        return scenario.to_dict() if isinstance(scenario, Scenario) else scenario

    @model_validator(mode="before")
    @classmethod
    def _texts(cls, data: Any) -> Any:
        values = without("campaign", data)
        if isinstance(values, dict) and isinstance(values.get("seeds"), int):
            return {**values, "seeds": str(values["seeds"])}
        return values

    @model_validator(mode="after")
    def _sensible(self) -> Campaign:
        if self.scenario is not None and self.conditions:
            refuse("conditions", "the campaign has a scenario too", "leave one of them out")
        if len(set(self.cca)) < len(self.cca):
            refuse("cca", f"{shown(list(self.cca))} names one twice", "name each once")
        for group in self.zip:
            if not group:
                refuse("zip", "a group has no axes", "write for example [{cca: [cubic, bbr], ecn: [true, false]}]")
            if len({len(v) for v in group.values()}) > 1:
                lengths = ", ".join(f"{k} {len(v)}" for k, v in group.items())
                refuse("zip", f"its axes are not equally long ({lengths})", "write as many values for each")
        names = [*self.axes, *(n for g in self.zip for n in g)]
        if twice := {n for n in names if names.count(n) > 1}:
            refuse("axes", f"{min(twice)} is said twice", "say each axis once")
        of_command = bool(self.programs) and len(self.cca) == 1
        if self.mix and ((self.cca and not of_command) or {"cca", "flows"} & {*names, *self.conditions}):
            refuse("mix", "it says congestion controls and counts itself", "leave out --cca and --flows")
        if self.programs and (flow := self._of_flows(names)):
            refuse(flow[0], "programs make their own connections", "leave it out; --mix has flows of ours beside them")
        if strange := [p for p in self.pool if p not in names]:
            refuse("pool", f"{shown(strange[0])} is no axis", f"choose {', '.join(names) or 'an axis'}")
        if self.precision is not None and not 0 < self.precision < 1:
            refuse("precision", f"{units.format_percent(self.precision)} is not a share of a value", "write 5% for intervals of ± 5 %")
        if not self.engines or len({*self.engines}) < len(self.engines):
            refuse("engines", "one is there twice" if self.engines else "no engine runs nothing", "write for example [model], or leave it out")
        parse_seeds(self.seeds)
        return self

    def _of_flows(self, names: Sequence[str]) -> list[str]:
        """What is given of flows, axes of these names and conditions, but the congestion control; an axis in the command is none of it."""
        free = [name for name in names if name not in axes.names_in(self.programs)]
        given = [*free, *("flows" for name in self.conditions if name == "flows"), *self.conditions.get("flow", ())]
        return [name for name in given if name == "flows" or (_of_flow(name) and name not in ("cca", "flow.cca"))]

    @property
    def shown(self) -> tuple[str, ...]:
        """The axes that tables show: the crossed ones, those that tell a group's rows apart; without `cca`, and without what is pooled."""
        names = [*self.axes, *(name for g in self.zip for name in _distinguishing(g))]
        return tuple(n for n in names if n not in self.pool and n != "cca")

    def capture(self) -> Capture:
        """What is kept of each trial: what is said here, and what the metrics need."""
        return Capture.union([Capture(self.samples, self.queue_samples), *(metrics.find(name).needs for name in (self.metric, *self.metrics))])

    @classmethod
    def of(cls, data: Any, source: str = "campaign") -> Campaign:
        """A campaign from plain values, with errors in one line."""
        campaign: Campaign = validate(cls, data, source)
        return campaign

    @classmethod
    def load(cls, path: Path) -> Campaign:
        """A campaign from a `.yaml`, `.yml` or `.toml` file."""
        data = files.read(path, "campaign")
        return cls.of({"name": path.stem, **data} if isinstance(data, dict) else data, str(path))

    def to_dict(self) -> dict[str, Any]:
        """Plain values as one would write them; fields at their default are left out."""
        no_scenario = {"scenario"} if self.scenario is None else set()  # a field with a serializer of its own is never left out as a default
        return self.model_dump(mode="json", exclude_defaults=True, exclude=no_scenario)

    def cases(self) -> list[Case]:
        """Every case, in the order of tables: engine by engine, axis by axis, the congestion control fastest."""
        return list(_Cases(self).all())

    def case_count(self) -> int:
        """How many cases there are, without their scenarios."""
        return _Cases(self).count()


@dataclass(frozen=True)
class Case:
    """One condition under one congestion control on one engine, at one value of what is pooled."""

    at: Mapping[str, str]
    """Axis → value as written, groups included, `cca` and what is pooled left out."""
    pooled: tuple[str, ...]
    """Values of the pooled axes."""
    cca: str
    engine: str
    scenario: Scenario

    @property
    def cell(self) -> tuple[Any, ...]:
        """What the cases of a cell have in common: all but what is pooled."""
        return (self.engine, self.cca, *sorted(self.at.items()))


def by_engine(cases: Iterable[Case]) -> dict[str, list[Scenario]]:
    """The scenarios of cases by the name of their engine."""
    scenarios: dict[str, list[Scenario]] = {}
    for case in cases:
        scenarios.setdefault(case.engine, []).append(case.scenario)
    return scenarios


class _Cases:
    """The product of the axes, and the scenario at each point."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.base = base_values(campaign)
        """Plain values of the path, with `${axis}` in them."""
        asked = axes.names_in(
            [*([] if isinstance(campaign.scenario, Scenario) else [self.base]), campaign.mix, campaign.programs, *self._more.values()]
        )
        self.templated = asked | set(campaign.derive) | _names_in_arithmetic(campaign.derive)
        """Axes that go into the base or into arithmetic, not into the field of their name."""
        self.labels = {name for group in campaign.zip if len(group) > 1 for name in _distinguishing(group)}
        """Axes that may be no field at all: they name the rows of a group."""
        self._last: tuple[Mapping[str, Any], Mapping[str, str], Scenario] | None = None
        """The last point's path and fields, and the scenario that they make: the next congestion control has the same."""

    @property
    def _more(self) -> dict[str, tuple[Any, ...]]:
        """What the campaign adds to its scenario."""
        return {name: getattr(self.campaign, name) for name in ADDED}

    @property
    def _source(self) -> str:
        """What a message calls the place of a wrong field: the campaign's name, or the options that it is made of."""
        return OPTIONS if self.campaign.name == UNNAMED else self.campaign.name

    @property
    def _named(self) -> str:
        return "sweep" if self.campaign.name == UNNAMED else self.campaign.name

    def all(self) -> Iterator[Case]:
        """Every case, in the order of tables."""
        factors = self._factors()
        self._expect_size(factors)
        for engine in self.campaign.engines:
            for parts in itertools.product(*factors):
                yield self._case(engine, _joined(parts))

    def count(self) -> int:
        """The number of cases."""
        return len(self.campaign.engines) * math.prod(len(factor) for factor in self._factors())

    def _factors(self) -> list[list[dict[str, str]]]:
        """What the product is of: the levels of each axis, the rows of each group, the congestion controls."""
        campaign = self.campaign
        factors = [[{name: level} for level in levels] for name, levels in campaign.axes.items()]
        factors += [[dict(zip(group, row, strict=True)) for row in zip(*group.values(), strict=True)] for group in campaign.zip]
        if not any("cca" in group for group in (campaign.axes, *campaign.zip)):
            factors.append([{"cca": cca} for cca in campaign.cca] or [{}])
        return factors

    def _expect_size(self, factors: Sequence[Sequence[Mapping[str, str]]]) -> None:
        """Refuses a campaign that is too large, from the numbers of its cells and seeds, and from its first and its last scenario."""
        campaign, cells = self.campaign, self.count()
        trials = cells * (LEAST if campaign.precision is not None else len(parse_seeds(campaign.seeds)))
        expect_fits(Size(cells, trials), self._named)
        capture, corners = campaign.capture(), [self._scenario_at(_joined([factor[end] for factor in factors])) for end in (0, -1)]
        flows, duration = max(s.flow_count for s in corners), max(s.duration for s in corners)
        samples, queue_samples = (duration // interval if interval else 0 for interval in (capture.samples_ns, capture.queue_samples_ns))
        expect_fits(Size(cells, trials, flows, samples, queue_samples), self._named, "take fewer seeds, wider steps or rarer samples")

    def _scenario_at(self, point: dict[str, str]) -> Scenario:
        return self._case(self.campaign.engines[0], point).scenario

    def _case(self, engine: str, point: dict[str, str]) -> Case:
        cca, pool = point.pop("cca", ""), self.campaign.pool
        values = point | ({"cca": cca} if cca else {})
        for name, expression in self.campaign.derive.items():
            values[name] = axes.derived(expression, values, name)
        scenario = self._scenario(values, cca)
        scenario.expect_path()
        at = {name: level for name, level in point.items() if name not in pool}
        return Case(at, tuple(point[name] for name in pool), scenario.cca, engine, scenario)

    def _scenario(self, values: Mapping[str, str], cca: str) -> Scenario:
        whole = self.campaign.scenario if isinstance(self.campaign.scenario, Scenario) else None
        filled = self.base if whole else axes.fill(self.base, values)
        fields = {name: value for name, value in values.items() if name not in self.templated and name != "cca"}
        mix, more = axes.fill(self.campaign.mix, values, "mix"), axes.fill(self._more, values)
        is_more = bool(mix) or any(more.values())
        late = {name: value for name, value in fields.items() if is_more and is_dotted(name) and name.partition(".")[0] in ("flows", *ADDED)}
        early = {name: value for name, value in fields.items() if name not in late}
        if whole and not early:
            scenario = whole
        else:
            scenario = self._of_point(filled, early)
        if self.campaign.programs:
            programs = axes.fill(self.campaign.programs, values) | ({"cca": cca} if cca and mix else {})
            scenario = self._with_programs(scenario, programs, is_timed="duration" in {**filled, **early})
        if is_more:
            scenario = ScenarioOptions(mix=mix or None, **more).over(scenario)
            scenario = self._with_fields(scenario.to_dict(), late) if late else scenario
        if not cca or mix or "cca" in self.templated:
            return scenario
        if not scenario.controls:
            refuse("cca", f"{scenario.name} has nothing that it could control", "leave it out, or give the scenario a flow")
        return scenario.with_cca(cca)

    def _of_point(self, filled: Mapping[str, Any], fields: Mapping[str, str]) -> Scenario:
        """The scenario of a path and these fields, made once for all congestion controls at a point."""
        if self._last is None or self._last[:2] != (filled, fields):
            make = self._of_conditions if self.campaign.scenario is None else self._with_fields
            self._last = filled, fields, make(dict(filled), fields)
        return self._last[2]

    def _of_conditions(self, filled: dict[str, Any], fields: Mapping[str, str]) -> Scenario:
        """From conditions of a path; a field that is none of theirs is one of the scenario they stand for."""
        conditions = {name: value for name, value in fields.items() if name in Conditions.model_fields}
        flow = dict(filled.pop("flow", {})) | {name.removeprefix("flow."): value for name, value in fields.items() if _of_flow(name)}
        rest = {name: filled.pop(name) for name in list(filled) if name in Scenario.model_fields and name not in Conditions.model_fields}
        path: Conditions = validate(Conditions, {**filled, **conditions, **({"flow": flow} if flow else {})}, self._source)
        scenario = path.scenario(str(flow.get("cca", "cubic"))).model_copy(update={"name": self.campaign.name})
        others = {name: value for name, value in fields.items() if name not in conditions and not _of_flow(name)}
        return self._with_fields(scenario.to_dict() | rest, others) if others or rest else scenario

    def _with_programs(self, scenario: Scenario, programs: Mapping[str, Any], *, is_timed: bool) -> Scenario:
        """The path with programs, without its own flows; one in a user's words has its bottleneck in both directions, as `tcpscape emulate` does.

        :param is_timed: whether its duration was said for them.
        """
        data = {name: value for name, value in scenario.to_dict().items() if name not in ("flows", "duration", "offload")}
        if is_timed:
            data["duration"] = units.format_time(scenario.duration)
        if self.campaign.scenario is None:
            data["reverse"] = [*data.get("reverse", ()), *data.get("bottleneck", ())]
        return Scenario.of({**data, "programs": programs}, self._source)

    def _with_fields(self, data: dict[str, Any], fields: Mapping[str, str]) -> Scenario:
        """The scenario of plain values, with these fields of it or of its flows; a name that is neither is refused, or only a label."""
        data = {"name": self.campaign.name, **data}
        for name, value in fields.items():
            if name in Scenario.model_fields:
                data[name] = value
            elif is_dotted(name) and not _of_flow(name):
                data = set_dotted(data, name, value)
            elif _of_flow(name):
                data["flows"] = [{**flow, name.removeprefix("flow."): value} for flow in data.get("flows", [{}])]
            elif name not in self.labels:
                self._refuse_field(name)
        return Scenario.of(data, self._source)

    def _refuse_field(self, name: str) -> NoReturn:
        """Says what a field is called in a scenario, whose path has parts with fields of their own."""
        if part := next((part for part, fields in FIELDS_OF_PARTS.items() if name in fields), None):
            field = "delay" if name == "rtt" else name
            refuse(name, "this path is a scenario, whose parts have their own fields", f"write --axis {part}.{field}=VALUES")
        choice = sorted({*FLOW_FIELDS, *axes.names_in(self.base), *(set(Scenario.model_fields) - {"name", "about"})})
        refuse(name, "no such field or ${axis}", f"choose {', '.join(choice)}, bottleneck.buffer, … or write ${{{name}}} where it goes")


def _joined(parts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """A point of the axes, from a value of each."""
    return {name: level for part in parts for name, level in part.items()}


def _distinguishing(group: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The first axes of a group that tell its rows apart; the first one at least."""
    names = list(group)
    for count in range(1, len(names)):
        rows = list(zip(*(group[n] for n in names[:count]), strict=True))
        if len(set(rows)) == len(rows):
            return names[:count]
    return names


def _of_flow(name: str) -> bool:
    return name in FLOW_FIELDS or (name.startswith("flow.") and name.removeprefix("flow.").partition(".")[0] in Flow.model_fields)


def base_values(campaign: Campaign) -> dict[str, Any]:
    """The path's plain values, with `${axis}` in them."""
    if campaign.scenario is None:
        return dict(campaign.conditions)
    if isinstance(campaign.scenario, dict):
        return dict(campaign.scenario)
    return (campaign.scenario if isinstance(campaign.scenario, Scenario) else files.load(campaign.scenario)).to_dict()


def _names_in_arithmetic(derived: Mapping[str, str]) -> set[str]:
    return {name for text in derived.values() for name in re.findall(r"\b[a-z_]\w*\b", text)}
