"""Manifests: what a directory says of the campaigns that were run into it, as plain documents, and how they accumulate.

A directory keeps one document for each campaign (a study: for each part): what was asked, by which command, and the addresses of each cell's
trials. :func:`accumulate` adds one to those that are there, so that no cell is hidden:

- A document all of whose cells are in the new one too is replaced: the same campaign with other seeds, another precision, a newer model, or
  more values of its axes. Trials of seeds that the new one has not stay in the store, and are found again when they are asked for.
- The same campaign with other values of its axes, other congestion controls or other engines becomes one document with the cells of both; of a
  cell that both have, the newer one stays. Campaigns are the same where their paths, derived values, groups and axes' names are, and their
  engines' versions.
- Any other document stays beside the new one.

A study's part has one document. What would need two is refused before it runs: :func:`conflict`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tcpscape import formats, names
from tcpscape.campaign import axes
from tcpscape.campaign.campaign import Campaign, base_values
from tcpscape.campaign.outcome import Outcome
from tcpscape.scenario.scenario import PARTS

Document = dict[str, Any]
"""A manifest, plain values: its fields are those of :class:`tcpscape.campaign.record.StoredManifest`."""
Key = tuple[Any, ...]
"""What a cell and its repetition have in common: engine, congestion control, where it stands on the axes."""
FORMAT = formats.FORMATS["manifest"]
"""Of the documents. In the first one, which has no `format`, jitter in fields without a distribution is uniform."""
_DESCRIBING = ("name", "about")
"""Fields of a scenario that change no result."""
_REPLACED = ("seeds", "precision", "max_seeds", "metric", "metrics", "samples", "queue_samples", "about", "cca", "engines", "axes", "scenario")
"""Fields of a campaign in which the same campaign may differ; the scenario and the axes are compared by themselves."""


def document(outcome: Outcome, head: Mapping[str, Any], command: str) -> Document:
    """The manifest of an outcome; `head` says whose it is (`kind`, `name`, `part`, `study`, `tcpscape`)."""
    cells = [
        {
            "at": dict(cell.at), "cca": cell.cca, "engine": cell.engine, "until_precise": cell.until_precise, "command": command,
            "scenarios": list(cell.specs), "runs": [[trial.address for trial in trials] for trials in cell.runs],
        }
        for cell in outcome.cells
    ]  # fmt: skip
    campaign = outcome.campaign
    return formats.stamped("manifest", {
        **head, "campaign": campaign.to_dict(), "base": base_values(campaign), "versions": dict(outcome.versions), "cells": cells,
    })  # fmt: skip


def current(document: Document) -> Document:
    """A document of any format as one of this version's.

    :raises StoreError: for a format that this version does not know.
    """
    if formats.expect("manifest", document, "out") == FORMAT:
        return document
    campaign = document["campaign"]
    if isinstance(campaign.get("scenario"), dict):
        campaign = {**campaign, "scenario": _with_distributions(campaign["scenario"])}
    cells = [{**cell, "scenarios": [_with_distributions(one) for one in cell["scenarios"]]} for cell in document["cells"]]
    return {**document, formats.FIELD: FORMAT, "campaign": campaign, "base": _with_distributions(document["base"]), "cells": cells}


def _with_distributions(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario's plain values, in which jitter without a distribution is uniform, with that written out."""
    written = dict(scenario)
    for part in PARTS:
        if part in written:
            hops = written[part]
            written[part] = [_with_distribution(hop) for hop in hops] if isinstance(hops, (list, tuple)) else _with_distribution(hops)
    return written


def _with_distribution(hop: Any) -> Any:
    return {"distribution": "uniform", **hop} if isinstance(hop, dict) and "jitter" in hop else hop


def accumulate(before: Sequence[Document], new: Document) -> list[Document]:
    """The documents of a directory once `new` is there; it takes the place of the first that it replaces or continues."""
    after: list[Document] = []
    place: int | None = None
    for old in before:
        if not (old["part"] == new["part"] if new["kind"] == "study" else _covers(new, old) or _same(new, old)):
            after.append(old)
            continue
        place = len(after) if place is None else place
        if not _covers(new, old) and _same(new, old):
            new = _joined(old, new)
    after.insert(len(after) if place is None else place, new)
    return after


def conflict(before: Iterable[Document], kind: str, name: str, parts: Mapping[str, Campaign], versions: Mapping[str, str]) -> tuple[str, str] | None:
    """The problem and the fix where a campaign, or the parts of a study, cannot be run into a directory with these documents; None where they can.

    `versions`: those of the engines.
    """
    for old in before:
        if kind != "study" and old["kind"] != "study":
            continue
        if kind != old["kind"] or name != old["name"]:
            held = f"the study {old['name']}" if old["kind"] == "study" else f"what `{commands(old)[-1]}` measured"
            return f"holds {held}, and a study has a directory of its own", "choose another one with --out"
        engines = {engine for part in parts.values() for engine in part.engines}
        if other := set(old["versions"]) - engines:
            return f"holds this study on {min(other)}", f"choose another directory with --out for {', '.join(sorted(engines))}"
        part = parts.get(old["part"])
        if part and not _continues(part, old, versions):
            return f"holds part {old['part']} under other conditions (`{commands(old)[-1]}`)", "choose another directory with --out"
    return None


def commands(document: Document) -> list[str]:
    """The commands that measured its cells, each once."""
    return list(dict.fromkeys(names.command(cell["command"]) for cell in document["cells"]))


def _continues(part: Campaign, old: Document, versions: Mapping[str, str]) -> bool:
    """Whether a part's document can be continued: under the same conditions, and without mixing versions of an engine in it."""
    if _identity({"campaign": part.to_dict(), "base": base_values(part)}) != _identity(old):
        return False
    values = {name: {axes.canonical(v) for v in levels} for name, levels in part.axes.items()}
    covers = all(axes.canonical(v) in values[name] for name, levels in old["campaign"].get("axes", {}).items() for v in levels)
    return covers or old["versions"].items() <= versions.items()


def _same(new: Document, old: Document) -> bool:
    agree = all(old["versions"][engine] == version for engine, version in new["versions"].items() if engine in old["versions"])
    return agree and _identity(new) == _identity(old)


def _identity(document: Document) -> Document:
    """What the same campaign has in common whatever its seeds, congestion controls, engines and axes' values are."""
    campaign = document["campaign"]
    levels, pool = campaign.get("axes", {}), campaign.get("pool", ())
    fixed = {k: v for k, v in campaign.items() if k not in _REPLACED}
    pooled = {name: sorted(map(axes.canonical, levels[name])) for name in pool if name in levels}
    return {**fixed, "base": _without_cca(document["base"]), "axes": sorted(levels), "pooled": pooled}


def _without_cca(base: Mapping[str, Any]) -> dict[str, Any]:
    """A path's values without the congestion control, where all flows have the same."""
    values = {k: v for k, v in base.items() if k not in _DESCRIBING}
    flows = values.get("flows", [{}])
    if isinstance(flows, list) and len({str(flow.get("cca", "")) for flow in flows}) == 1:
        values["flows"] = [{k: v for k, v in flow.items() if k != "cca"} for flow in flows]
    return values


def _covers(new: Document, old: Document) -> bool:
    """Whether every cell of the old one is in the new one, with the same scenarios."""
    there = {_key(cell): _scenarios(cell) for cell in new["cells"]}
    return all(there.get(_key(cell)) == _scenarios(cell) for cell in old["cells"])


def _key(cell: Mapping[str, Any]) -> Key:
    return (cell["engine"], cell["cca"], *sorted((axis, axes.canonical(value)) for axis, value in cell["at"].items()))


def _scenarios(cell: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in scenario.items() if k not in _DESCRIBING} for scenario in cell["scenarios"]]


def _joined(old: Document, new: Document) -> Document:
    """One document with the cells of both, in the order of a campaign with all of their values."""
    every = _alike([*old["cells"], *new["cells"]])
    cells = list({_key(cell): cell for cell in every}.values())
    crossed = list(new["campaign"].get("axes", {}))
    levels = {name: _union(cell["at"][name] for cell in every if name in cell["at"]) for name in crossed}
    joined = {"engines": _union(cell["engine"] for cell in every)}
    samples = {name: old["campaign"][name] for name in ("samples", "queue_samples") if name in old["campaign"]}
    if new["campaign"].get("cca") or old["campaign"].get("cca") or len({cell["cca"] for cell in every}) > 1:
        joined["cca"] = _union(cell["cca"] for cell in every)
    fields = {**samples, **new["campaign"], **joined, "axes": {name: v or new["campaign"]["axes"][name] for name, v in levels.items()}}
    cells.sort(key=_order(every, crossed))
    return {**new, "campaign": fields, "versions": {**old["versions"], **new["versions"]}, "cells": cells}


def _alike(cells: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The cells with the same value written the same: `0` as `0ms`, where that was written last."""
    written = {(axis, axes.canonical(value)): value for cell in cells for axis, value in cell["at"].items()}
    return [{**cell, "at": {axis: written[axis, axes.canonical(value)] for axis, value in cell["at"].items()}} for cell in cells]


def _order(cells: Sequence[Mapping[str, Any]], crossed: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[int, ...]]:
    """Sorts cells engine by engine, axis by axis, what moves together row by row, the congestion control fastest."""

    def rest(cell: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(v for k, v in cell["at"].items() if k not in crossed)

    engines, ccas = ([*dict.fromkeys(cell[name] for cell in cells)] for name in ("engine", "cca"))
    places = {name: _union(cell["at"][name] for cell in cells if name in cell["at"]) for name in crossed}
    rows = list(dict.fromkeys(map(rest, cells)))

    def key(cell: Mapping[str, Any]) -> tuple[int, ...]:
        at = [places[name].index(cell["at"][name]) for name in crossed if name in cell["at"]]
        return (engines.index(cell["engine"]), *at, rows.index(rest(cell)), ccas.index(cell["cca"]))

    return key


def _union(values: Iterable[str]) -> list[str]:
    """The values, each once: quantities from the lowest, words in their order."""
    distinct = list(dict.fromkeys(values))
    read = [axes.read(text) for text in distinct]
    return distinct if any(v.is_word for v in read) else [v.text for v in sorted(read, key=lambda v: v.number)]
