"""A campaign from what a user names: a file or a name, and options that override it; or one scenario.

What is named may be a campaign (a file, or one that comes with tcpscape) or a scenario (a file or a gallery name), which a campaign is then made
of. Options are fields of a path: one value is a condition, several are an axis; an axis of the file keeps its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tcpscape.campaign import axes
from tcpscape.campaign.campaign import FLOW_FIELDS, Campaign, expect_flow
from tcpscape.errors import refuse, shown
from tcpscape.reading import packaged
from tcpscape.scenario import files
from tcpscape.scenario.fields import OPTIONS
from tcpscape.scenario.grammar import parse_mix
from tcpscape.scenario.options import UNNAMED, Conditions, expect_owners
from tcpscape.scenario.scenario import Scenario

SUFFIXES = (".yaml", ".yml", ".toml")
SAMPLES_WITH_OUT = "100ms"
"""Interval of the samples that `run` keeps in a directory where no other is asked for."""
_CAMPAIGN_FIELDS = frozenset(Campaign.model_fields) - frozenset(Scenario.model_fields)
"""Fields by which a file is recognised as a campaign."""


def gallery() -> list[str]:
    """Names of the campaigns that come with tcpscape."""
    return packaged.names("campaigns", ".yaml")


def single(scenario: Scenario, fields: Mapping[str, Any]) -> Campaign:
    """The campaign with one point: `scenario`, with these fields of a campaign (`cca`, `engines`, `seeds`, …)."""
    return Campaign.of({"name": scenario.name, "scenario": scenario, **fields}, scenario.name)


def programs(command: str | None, **others: Sequence[str] | str | None) -> dict[str, Any]:
    """The field `programs` of a campaign from options, `others` the fields besides the command; empty without a command.

    :raises ScenarioError: one of the others without a command.
    """
    fields = {name: value if isinstance(value, str) else list(value) for name, value in others.items() if value}
    if command is None and fields:
        refuse(next(iter(fields)).replace("_", "-"), "there is no command that would use it", "give --command too, for example 'curl -s http://far/'")
    return {} if command is None else {"command": command, **fields}


def samples(scenario: Scenario, *, kept: bool) -> str:
    """The interval of the samples of a run where none is asked for: some for a directory (`kept`), and for what a change of the path does."""
    return SAMPLES_WITH_OUT if kept or scenario.changes else "0s"


def campaign(source: str | Path | Mapping[str, Any] | None, options: Mapping[str, Any], fields: Mapping[str, Any]) -> Campaign:
    """The campaign that `source` names or is, with `options` (axis → values as written) and `fields` of the campaign instead of its own.

    :raises TcpscapeError: one line, where nothing is named or an option fits nothing.
    """
    data = {"name": UNNAMED} if not source else {"name": UNNAMED, **source} if isinstance(source, Mapping) else _read(str(source))
    if not source and not options:
        refuse("sweep", "nothing to vary", f"say for example --rtt 50ms --jitter 0..24ms/4ms, or name a file or one of {', '.join(gallery())}")
    _expect_shapes(data)
    if "mix" in fields and not axes.names_in(fields["mix"]):
        parse_mix(fields["mix"])  # an empty one is none in a campaign, and a slip in an option
    for name, value in options.items():
        _set(data, name, value)
    if "scenario" not in data and "rtt" not in {*data.get("conditions", {}), *_axis_names(data)}:
        refuse("rtt", "missing, and a path needs one", "say for example --rtt 50ms")
    if "scenario" not in data:
        expect_owners(options, {*data.get("conditions", {}), *_axis_names(data)})
    values = {**data, **fields}
    if values.get("programs"):
        values.setdefault("metric", "completion")  # not every command has a TCP connection
    return Campaign.of(values, str(source) if isinstance(source, (str, Path)) else OPTIONS)


def _read(source: str) -> dict[str, Any]:
    """Plain values of the campaign that a file or a name stands for."""
    path = Path(source)
    if path.suffix.lower() in SUFFIXES:
        data = files.read(path, "sweep")
        if not isinstance(data, dict):
            refuse("sweep", f"{source} is no mapping of fields", "write for example 'axes: {jitter: 0..24ms/4ms}'")
        return {"name": path.stem, **data} if is_campaign(data) else {"name": path.stem, "scenario": source}
    if source in gallery():
        return {"name": source, **files.read_yaml(packaged.text(f"campaigns/{source}.yaml"), source)}
    if source not in files.gallery():
        choice = ", ".join([*gallery(), *files.gallery()])
        refuse("sweep", f"{shown(source)} is neither a .yaml/.toml file nor a campaign or scenario that comes with tcpscape", f"choose {choice}")
    return {"name": source, "scenario": source}


def is_campaign(data: Mapping[str, Any]) -> bool:
    """Whether plain values of a file are those of a campaign, not of a scenario."""
    return bool(_CAMPAIGN_FIELDS & data.keys())


def _expect_shapes(data: Mapping[str, Any]) -> None:
    """Refuses what options cannot be put into; all else is judged with the whole campaign."""
    for name in ("conditions", "axes"):
        if not isinstance(data.get(name, {}), dict):
            refuse(name, f"{shown(data[name])} is no mapping of fields", "write for example {jitter: 0..24ms/4ms}")
    groups = data.get("zip", [])
    if not isinstance(groups, (list, tuple)) or not all(isinstance(group, dict) for group in groups):
        refuse("zip", f"{shown(groups)} is no list of mappings", "write for example [{rate: [10mbit, 20mbit], buffer: [20KB, 40KB]}]")
    expect_flow(data.get("conditions", {}))


def _axis_names(data: Mapping[str, Any]) -> set[str]:
    """Every axis, of groups too."""
    return {*data.get("axes", {}), *(name for group in data.get("zip", ()) for name in group)}


def _set(data: dict[str, Any], name: str, value: Any) -> None:
    """Puts an option into a campaign's values: as a condition, or as an axis where it has several values or stands in a scenario."""
    for group in data.get("zip", ()):
        if name in group:
            refuse(name, f"{data['name']} moves it together with {', '.join(n for n in group if n != name)}", "change the file's zip instead")
    if name == "player" and isinstance(value, str):
        value = [value]  # the commas of a ladder separate its rungs
    is_condition = "scenario" not in data and name not in data.get("axes", {}) and len(axes.levels(value, name)) == 1
    conditions = data.get("conditions", {})
    if is_condition and name in Conditions.model_fields:
        data["conditions"] = {**conditions, name: value}
    elif is_condition and name in FLOW_FIELDS:
        data["conditions"] = {**conditions, "flow": {**conditions.get("flow", {}), name: value}}
    else:
        data["axes"] = {**data.get("axes", {}), name: value}
