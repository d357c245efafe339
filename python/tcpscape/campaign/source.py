"""A campaign from what somebody asked for: a file or a name, and options that override it.

What is named may be a campaign (a file, or one that comes with tcpscape) or a scenario (a file or a gallery name), which a campaign is then made
of. Options are words of a path: one value is a condition, several are an axis; an axis of the file keeps its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from tcpscape.campaign import axes
from tcpscape.campaign.campaign import FLOW_FIELDS, Campaign
from tcpscape.errors import refuse
from tcpscape.scenario import files
from tcpscape.scenario.conditions import Conditions
from tcpscape.scenario.scenario import Scenario

SUFFIXES = (".yaml", ".yml", ".toml")
UNNAMED = "words"
"""Name of a campaign that options alone make."""
_OURS = frozenset(Campaign.model_fields) - frozenset(Scenario.model_fields)
"""Fields by which a file is known for a campaign."""


def gallery() -> list[str]:
    """Names of the campaigns that come with tcpscape."""
    folder = resources.files("tcpscape") / "campaigns"
    return sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml"))


def campaign(source: str | None, words: Mapping[str, str], fields: Mapping[str, Any]) -> Campaign:
    """The campaign that `source` names, with `words` (axis → values as written) and `fields` of the campaign instead of its own."""
    said = _said(source) if source else {"name": UNNAMED}
    if not source and not words:
        refuse("sweep", "nothing to vary", f"say for example --rtt 50ms --jitter 0..24ms/4ms, or name a file or one of {', '.join(gallery())}")
    for name, value in words.items():
        _vary(said, name, value)
    if "scenario" not in said and "rtt" not in {*said.get("conditions", {}), *_names(said)}:
        refuse("rtt", "missing, and a path needs one", "say for example --rtt 50ms")
    return Campaign.of({**said, **fields}, source or "the options")


def _said(source: str) -> dict[str, Any]:
    """Plain values of a campaign."""
    path = Path(source)
    if path.suffix.lower() in SUFFIXES:
        said = files.read(path, "sweep")
        if not isinstance(said, dict):
            refuse("sweep", f"{source} is no mapping of fields", "write for example 'axes: {jitter: 0..24ms/4ms}'")
        return {"name": path.stem, **said} if _OURS & said.keys() else {"name": path.stem, "scenario": source}
    if source in gallery():
        text = (resources.files("tcpscape") / "campaigns" / f"{source}.yaml").read_text("utf-8")
        return {"name": source, **files.read_yaml(text, source)}
    if source not in files.gallery():
        choice = ", ".join([*gallery(), *files.gallery()])
        refuse("sweep", f"{source!r} is neither a .yaml/.toml file nor a campaign or scenario that comes with tcpscape", f"choose {choice}")
    return {"name": source, "scenario": source}


def _names(said: Mapping[str, Any]) -> set[str]:
    """Every axis."""
    return {*said.get("axes", {}), *(name for group in said.get("zip", ()) for name in group)}


def _vary(said: dict[str, Any], name: str, value: str) -> None:
    for group in said.get("zip", ()):
        if name in group:
            refuse(name, f"{said['name']} moves it together with {', '.join(n for n in group if n != name)}", "change the file's zip instead")
    path = "scenario" not in said and name not in said.get("axes", {}) and len(axes.levels(value, name)) == 1
    conditions = said.get("conditions", {})
    if path and name in Conditions.model_fields:
        said["conditions"] = {**conditions, name: value}
    elif path and name in FLOW_FIELDS:
        said["conditions"] = {**conditions, "flow": {**conditions.get("flow", {}), name: value}}
    else:
        said["axes"] = {**said.get("axes", {}), name: value}
