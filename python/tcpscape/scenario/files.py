"""Scenarios from files and from the gallery: YAML or TOML in, YAML out.

Numbers with a dot stay text, so that `kernel: 6.10` is not `6.1`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

if sys.version_info >= (3, 11):
    from importlib.resources.abc import Traversable

    import tomllib
else:
    from importlib.abc import Traversable

    import tomli as tomllib

from tcpscape.errors import ScenarioError
from tcpscape.scenario.scenario import Scenario


class _Loader(yaml.SafeLoader):
    """A YAML loader without floats and dates: a number with a dot stays text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rx) for tag, rx in resolvers if tag not in ("tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(text: str, source: str) -> Any:
    """Plain values from YAML; a syntax error is a ScenarioError that names the line."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as e:
        line = e.problem_mark.line + 1 if e.problem_mark else "?"
        raise ScenarioError(f"{source}: not YAML at line {line}: {e.problem}; correct the line") from None


def read_toml(text: str, source: str) -> Any:
    """Plain values from TOML."""
    try:
        return tomllib.loads(text, parse_float=str)
    except tomllib.TOMLDecodeError as e:
        raise ScenarioError(f"{source}: not TOML: {e}; correct the line") from None


def gallery() -> dict[str, Traversable]:
    """The scenarios that come with tcpscape, by name."""
    folder = resources.files("tcpscape") / "scenarios"
    return {f.name.removesuffix(".yaml"): f for f in sorted(folder.iterdir(), key=lambda f: f.name) if f.name.endswith(".yaml")}


def load(source: str | Path) -> Scenario:
    """A scenario from a `.yaml`, `.yml` or `.toml` file, or a gallery name."""
    path = Path(source)
    if path.suffix.lower() in (".yaml", ".yml", ".toml"):
        return _load_file(path)
    names = gallery()
    if str(source) not in names:
        raise ScenarioError(f"scenario: {str(source)!r} is neither a .yaml/.toml file nor in the gallery; choose {', '.join(names)}")
    return _scenario(read_yaml(names[str(source)].read_text("utf-8"), str(source)), str(source))


def _load_file(path: Path) -> Scenario:
    return _scenario(_with_paths(read(path, "scenario"), path.parent), path.stem, str(path))


def read(path: Path, field: str) -> Any:
    """Plain values from a `.yaml`, `.yml` or `.toml` file; the message of an error begins with `field`."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "not UTF-8 text"
        raise ScenarioError(f"{field}: cannot read {path}: {reason}; check the path") from None
    return (read_toml if path.suffix.lower() == ".toml" else read_yaml)(text, str(path))


def _with_paths(data: Any, folder: Path) -> Any:
    """The values with `folder`, the scenario's, before the files in `cca: mine.py:MyControl` and `trace: mine.up` that are only there."""
    for hop in _hops(data):
        if isinstance(text := hop.get("trace"), str) and not Path(text).exists() and (folder / text).exists():
            hop["trace"] = str(folder / text)
    flows = data.get("flows") if isinstance(data, dict) else None
    for flow in flows if isinstance(flows, list) else []:
        cca = flow.get("cca") if isinstance(flow, dict) else None
        mapping, key = (cca, "name") if isinstance(cca, dict) else (flow, "cca")
        text = mapping.get(key) if isinstance(mapping, dict) else None
        file = text.partition(":")[0] if isinstance(text, str) else ""
        if file.endswith(".py") and not Path(file).exists() and (folder / file).exists():
            mapping[key] = f"{folder}/{text}"
    return data


def _hops(data: Any) -> Iterator[dict[str, Any]]:
    """The hops of a scenario's plain values that are mappings."""
    for place in ("forward", "bottleneck", "reverse"):
        hops = data.get(place) if isinstance(data, dict) else None
        yield from (hop for hop in (hops if isinstance(hops, list) else [hops]) if isinstance(hop, dict))


def _scenario(data: Any, name: str, source: str | None = None) -> Scenario:
    if isinstance(data, dict):
        data = {"name": name, **data}
    return Scenario.of(data, source or name)


def dump(scenario: Scenario) -> str:
    """The scenario as YAML that :func:`load` reads back to an equal value."""
    return yaml.safe_dump(scenario.to_dict(), sort_keys=False, allow_unicode=True, width=140)
