"""Scenarios from files and from the gallery: YAML or TOML in, YAML out.

Numbers with a dot stay text, so that `kernel: 6.10` is not `6.1`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tcpscape.errors import instead, refuse
from tcpscape.reading import documents, packaged
from tcpscape.reading import files as reading
from tcpscape.reading.files import Kind, Origin
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.topology import Access

SCENARIO = Kind("a scenario", "write it as `tcpscape scenario show baseline` prints one")
"""A scenario's file, or that of a campaign or of several scenarios."""


def read_yaml(text: str, source: str) -> Any:
    """Plain values from YAML; a syntax error is a ScenarioError that names the line."""
    return documents.from_yaml(text, Origin(source, SCENARIO))


def gallery() -> list[str]:
    """Names of the scenarios that come with tcpscape."""
    return packaged.names("scenarios", ".yaml")


def load(source: str | Path) -> Scenario:
    """A scenario from a `.yaml`, `.yml` or `.toml` file, or a gallery name."""
    path = Path(source)
    if path.suffix.lower() in (".yaml", ".yml", ".toml"):
        return _scenario(_with_paths(read(path, "scenario"), path.parent), path.stem, str(path))
    names = gallery()
    if str(source) not in names:
        refuse("scenario", f"{str(source)!r} is neither a .yaml/.toml file nor in the gallery", instead(str(source), names))
    return _scenario(read_yaml(packaged.text(f"scenarios/{source}.yaml"), str(source)), str(source))


def read(path: Path, field: str, kind: Kind = SCENARIO) -> Any:
    """Plain values from a `.yaml`, `.yml` or `.toml` file; the message of an error begins with `field`."""
    text, origin = reading.text(path, kind, field), Origin(str(path), kind)
    return (documents.from_toml if path.suffix.lower() == ".toml" else documents.from_yaml)(text, origin)


def _with_paths(data: Any, folder: Path) -> Any:
    """The values with `folder`, the scenario's, before the files in `cca: mine.py:MyControl` and `trace: mine.up` that are only there."""
    for hop in _hops(data):
        if isinstance(text := hop.get("trace"), str) and not os.path.exists(text) and os.path.exists(folder / text):
            hop["trace"] = str(folder / text)
    for flow in [flow for name in ("flows", "transfers") for flow in _members(data, name)]:
        cca = flow.get("cca") if isinstance(flow, dict) else None
        mapping, key = (cca, "name") if isinstance(cca, dict) else (flow, "cca")
        text = mapping.get(key) if isinstance(mapping, dict) else None
        file = text.partition(":")[0] if isinstance(text, str) else ""
        if file.endswith(".py") and not os.path.exists(file) and os.path.exists(folder / file):
            mapping[key] = f"{folder}/{text}"
    return data


def _hops(data: Any) -> Iterator[dict[str, Any]]:
    """The hops of a scenario's plain values that are mappings: of the path, of links and of access links."""
    access = [end.get("access") for name in ("flows", "transfers", "probes") for end in _members(data, name) if isinstance(end, dict)]
    for part in (data, *_members(data, "links"), *access):
        for place in ("forward", "bottleneck", "reverse", *Access.model_fields):
            yield from (hop for hop in _members(part, place) if isinstance(hop, dict))


def _members(data: Any, name: str) -> list[Any]:
    """The members of a field that is a list or one value; none where it is not there."""
    values = data.get(name) if isinstance(data, dict) else None
    return values if isinstance(values, list) else [] if values is None else [values]


def _scenario(data: Any, name: str, source: str | None = None) -> Scenario:
    if isinstance(data, dict):
        data = {"name": name, **data}
    return Scenario.of(data, source or name)


def dump(scenario: Scenario, width: int = 140) -> str:
    """The scenario as YAML that :func:`load` reads back to an equal value, in lines of about `width` characters."""
    return yaml.safe_dump(scenario.to_dict(), sort_keys=False, allow_unicode=True, width=width)
