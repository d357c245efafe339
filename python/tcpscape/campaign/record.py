"""A result directory: the store of trials, and the manifests that say what was asked, with which command, and which trials each cell holds.

Whatever is shown later (a report, a comparison, an export) is read from here; nothing has to run again. A directory accumulates what is run into
it; what it cannot hold is refused before it runs (:func:`expect`).

A directory keeps one document, a manifest, for each campaign (a study: for each part): what was asked, by which command, and the addresses of each
cell's trials. :func:`accumulate` adds one to those that are there, so that no cell is hidden:

- A document all of whose cells are in the new one too is replaced: the same campaign with other seeds, another precision, a newer model, or
  more values of its axes. Trials of seeds that the new one has not stay in the store, and are found again when they are asked for.
- The same campaign with other values of its axes, other congestion controls or other engines becomes one document with the cells of both; of a
  cell that both have, the newer one stays. Campaigns are the same where their paths, derived values, groups and axes' names are, and their
  engines' versions.
- Any other document stays beside the new one.

A study's part has one document. What would need two is refused before it runs: :func:`conflict`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

import tcpscape
from tcpscape import formats, names
from tcpscape.campaign import axes, execute
from tcpscape.campaign.campaign import Campaign, base_values
from tcpscape.campaign.execute import Execution
from tcpscape.campaign.outcome import Cell, LazyScenarios, Outcome
from tcpscape.errors import ScenarioError, StoreError, TcpscapeError, refuse, shown
from tcpscape.reading.documents import field_problem
from tcpscape.scenario.scenario import PARTS
from tcpscape.store.kept import Shelf, missing_trial
from tcpscape.store.results import FILE, Store, uncollected
from tcpscape.store.rows import MOST_OF_LABEL
from tcpscape.trial import Trial

ManifestEntry = dict[str, Any]
"""A manifest, plain values: its fields are those of :class:`StoredManifest`."""
Key = tuple[Any, ...]
"""What a cell and its repetition have in common: engine, congestion control, where it stands on the axes."""
FORMAT = formats.FORMATS["manifest"]
"""Of the documents. In the first one, which has no `format`, jitter in fields without a distribution is uniform."""
_DESCRIBING = ("name", "about")
"""Fields of a scenario that change no result."""
_REPLACED = ("seeds", "precision", "max_seeds", "metric", "metrics", "samples", "queue_samples", "about", "cca", "engines", "axes", "scenario")
"""Fields of a campaign in which the same campaign may differ; the scenario and the axes are compared by themselves."""


def document(outcome: Outcome, head: Mapping[str, Any], command: str) -> ManifestEntry:
    """The manifest of an outcome; `head` says whose it is (`kind`, `name`, `part`, `study`, `tcpscape`)."""
    cells = [
        {
            "at": dict(cell.at),
            "cca": cell.cca,
            "engine": cell.engine,
            "until_precise": cell.until_precise,
            "command": command,
            "scenarios": list(cell.specs),
            "runs": cell.addresses,
        }
        for cell in outcome.cells
    ]
    campaign = outcome.campaign
    return formats.stamped(
        "manifest", {**head, "campaign": campaign.to_dict(), "base": base_values(campaign), "versions": dict(outcome.versions), "cells": cells}
    )


def current(document: ManifestEntry) -> ManifestEntry:
    """A document of any format as one of this version's. :raises StoreError: for a format that this version does not know."""
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


def accumulate(before: Sequence[ManifestEntry], new: ManifestEntry) -> list[ManifestEntry]:
    """The documents of a directory once `new` is there; it takes the place of the first that it replaces or continues."""
    after: list[ManifestEntry] = []
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


def conflict(
    before: Iterable[ManifestEntry], kind: str, name: str, parts: Mapping[str, Campaign], versions: Mapping[str, str]
) -> tuple[str, str] | None:
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


def commands(document: ManifestEntry) -> list[str]:
    """The commands that measured its cells, each once."""
    return list(dict.fromkeys(map(names.command, dict.fromkeys(cell["command"] for cell in document["cells"]))))


def _continues(part: Campaign, old: ManifestEntry, versions: Mapping[str, str]) -> bool:
    """Whether a part's document can be continued: under the same conditions, and without mixing versions of an engine in it."""
    if _identity({"campaign": part.to_dict(), "base": base_values(part)}) != _identity(old):
        return False
    values = {name: {axes.canonical(v) for v in levels} for name, levels in part.axes.items()}
    covers = all(axes.canonical(v) in values[name] for name, levels in old["campaign"].get("axes", {}).items() for v in levels)
    return covers or old["versions"].items() <= versions.items()


def _same(new: ManifestEntry, old: ManifestEntry) -> bool:
    agree = all(old["versions"][engine] == version for engine, version in new["versions"].items() if engine in old["versions"])
    return agree and _identity(new) == _identity(old)


def _identity(document: ManifestEntry) -> ManifestEntry:
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


def _covers(new: ManifestEntry, old: ManifestEntry) -> bool:
    """Whether every cell of the old one is in the new one, with the same scenarios."""
    there = {_key(cell): _scenarios(cell) for cell in new["cells"]}
    return all(there.get(_key(cell)) == _scenarios(cell) for cell in old["cells"])


def _key(cell: Mapping[str, Any]) -> Key:
    return (cell["engine"], cell["cca"], *sorted((axis, axes.canonical(value)) for axis, value in cell["at"].items()))


def _scenarios(cell: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in scenario.items() if k not in _DESCRIBING} for scenario in cell["scenarios"]]


def _joined(old: ManifestEntry, new: ManifestEntry) -> ManifestEntry:
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


Kind = Literal["run", "sweep", "study", "advise"]
"""What measured a campaign."""
STUDY: Kind = "study"
"""Kind of a record whose parts are those of a study."""


@dataclass(frozen=True, repr=False)
class Record:
    """What a result directory holds, or what a command adds to it."""

    kind: str
    """`run`, `sweep`, `advise` or `study`; `run, sweep` where a directory has both."""
    name: str
    """What the campaign or the study is called."""
    command: str
    """What to type to run it again; one line for each command."""
    parts: Mapping[str, Outcome]
    """Part of a study → its outcome. Campaigns of a directory by their names; a single one is called ``."""
    study: Mapping[str, Any] | None = None
    """The study's own fields, also those of parts that were not run."""
    version: str = field(default_factory=lambda: tcpscape.__version__)
    """tcpscape's."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Part → the commands that measured it, where they differ."""

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of each part."""
        return tuple(self.parts.values())

    def __repr__(self) -> str:
        return "\n\n".join(repr(outcome) for outcome in self.outcomes)

    def _repr_html_(self) -> str:
        return "".join(outcome._repr_html_() for outcome in self.outcomes)


def expect(store: Store, kind: str, name: str, parts: Mapping[str, Campaign] | None = None, versions: Mapping[str, str] | None = None) -> None:
    """Refuses, before anything runs, what the store's directory cannot hold beside what is there; `versions` are those of the engines."""
    if problem_and_fix := conflict(_documents(store), kind, name, parts or {}, versions or {}):
        problem, fix = problem_and_fix
        refuse("out", f"{store.root} {problem}", fix, StoreError)


def measure(kind: Kind, campaign: Campaign, execution: Execution, command: str) -> tuple[Outcome, bool]:
    """Runs a campaign and adds it to the directory of the execution's store, where it has one.

    :param command: what to type to run it again.
    :return: the outcome, and whether the directory holds more than it.
    :raises TcpscapeError: one line, before anything runs, for what cannot run or what the directory cannot hold.
    """
    if execution.store is None:
        return execute.run(campaign, execution), False
    expect(execution.store, kind, campaign.name)
    outcome = execute.run(campaign, execution)
    return outcome, _save(Record(kind, outcome.name, command, {"": outcome}), execution.store)


def save(record: Record, root: Path) -> bool:
    """Adds `record` to what `root` holds, all of it or nothing; its trials are in the store there.

    :return: whether `root` holds more than `record` then: cells of earlier commands.
    """
    with Store(root) as store:
        return _save(record, store)


def _save(record: Record, store: Store) -> bool:
    after: list[ManifestEntry] = []

    def add(before: list[Any]) -> list[Any]:
        after[:] = _added(_known(before, store.root), record)
        return after

    store.change_manifests(add)
    if any(outcome.trial_count > AT_ONCE for outcome in record.outcomes):
        for outcome in record.outcomes:
            outcome.rest()  # with a reader there, the database would keep its log
        store.after(lambda: _keep_numbers(store.root))
    return not _is_alone(after, record)


REPORTED = ("goodput", "added_rtt")
"""Metrics that reports ask of every trial, whatever the campaign's own is."""


def _keep_numbers(root: Path) -> None:
    """Works out of the many trials in `root` what a report asks of them, so that it need not."""
    with suppress(TcpscapeError):
        for outcome in load(root).outcomes:
            outcome.keep_numbers((*REPORTED, outcome.campaign.metric))


def load(root: Path) -> Record:
    """The record in `root` with its trials, and their samples and packets where they were kept.

    :raises StoreError: one line, where there is none, or a manifest or a trial of it is missing or damaged.
    """
    with Store(root, create=False) as store, uncollected():
        return _load(store)


def file_name(text: str) -> str:
    """A text as a name that can be a file's and an anchor's in a page (:func:`tcpscape.names.component`, with `%` and `=`)."""
    return names.component(text, keep="%=")


def exists(root: Path) -> bool:
    """Whether `root` has a record; a store of trials alone has none."""
    with Store(root, create=False) as store:
        return bool(store.manifests())


def _added(before: list[ManifestEntry], record: Record) -> list[ManifestEntry]:
    after = before
    for part, outcome in record.parts.items():
        head = {"kind": record.kind, "name": record.name, "part": part, "tcpscape": record.version, "study": None}
        after = accumulate(after, document(outcome, head, record.command))
    if record.study is not None:
        after = _of_study(after, record.study)
    return after


def _of_study(documents: list[ManifestEntry], study: Mapping[str, Any]) -> list[ManifestEntry]:
    """The documents in the order of the study's parts, its own fields in the first one alone."""
    order = [part["name"] for part in study["parts"]]
    placed = sorted(documents, key=lambda d: order.index(d["part"]) if d["part"] in order else len(order))
    return [{**d, "study": dict(study) if i == 0 else None} for i, d in enumerate(placed)]


def _is_alone(documents: Sequence[ManifestEntry], record: Record) -> bool:
    """Whether the directory holds exactly what `record` says."""
    counts = [len(outcome.cells) for outcome in record.parts.values()]
    return [len(d["cells"]) for d in documents] == counts and all(commands(d) == [record.command] for d in documents)


def _documents(store: Store) -> list[ManifestEntry]:
    return _known(store.manifests(), store.root)


def _known(documents: list[Any], root: Path) -> list[ManifestEntry]:
    """The documents as this version writes them, if all of them are manifests."""
    for found in map(problem, documents):
        if found:
            raise _damaged(root, found)
    try:
        for one in documents:
            for field in ("name", "part"):
                names.expect(one[field] or "none", field)
    except ScenarioError as e:
        raise _damaged(root, str(e)) from None
    return [current(one) for one in documents]


def _damaged(root: Path, why: str) -> StoreError:
    return StoreError(f"{root / FILE}: a manifest in it is damaged ({why}); move the file away and run again")


def _load(store: Store) -> Record:
    documents = _documents(store)
    if not documents:
        fix = "run an interrupted one again with the same --out, or name a directory that one of them wrote"
        raise StoreError(f"{store.root}: no results of run, sweep or study in {FILE}; {fix}")
    parts = {label: (d, _outcome(d, store)) for label, d in _labelled(documents)}
    each = [commands(d) for d in documents]
    kind, name, version = (", ".join(dict.fromkeys(d[field] for d in documents)) for field in ("kind", "name", "tcpscape"))
    study = next((d["study"] for d in documents if d["study"]), None)
    command = "\n".join(dict.fromkeys(line for lines in each for line in lines))
    several = {label: "\n".join(lines) for label, lines in zip(parts, each, strict=True)} if "\n" in command else {}
    return Record(kind, name, command, {label: outcome for label, (_, outcome) in parts.items()}, study, version, several)


def _labelled(documents: Sequence[ManifestEntry]) -> Iterable[tuple[str, ManifestEntry]]:
    """Each document with its part's name: of a study its own, otherwise the campaign's, numbered where several have the same."""
    taken: dict[str, int] = {}
    for document in documents:
        if document["kind"] == STUDY or len(documents) == 1:
            yield document["part"], document
            continue
        name = file_name(document["name"])
        taken[name] = taken.get(name, 0) + 1
        yield name if taken[name] == 1 else f"{name}-{taken[name]}", document


def _outcome(document: ManifestEntry, store: Store) -> Outcome:
    try:
        campaign = Campaign.of(document["campaign"])
        tables = campaign.capture().tables
    except TcpscapeError as e:
        raise _damaged(store.root, str(e)) from None
    for cell in document["cells"]:
        if missing_axes := [axis for axis in campaign.shown if axis not in cell["at"]]:
            raise _damaged(store.root, f"a cell does not stand on the axis {shown(missing_axes[0])}")
        if cell["engine"] not in document["versions"]:
            raise _damaged(store.root, f"the version of the engine {shown(cell['engine'])} is missing")
    addresses = [address for cell in document["cells"] for run in cell["runs"] for address in run]
    shelf = Shelf(store, tables)
    if len(addresses) > AT_ONCE:
        known = store.addresses()
        if not known.issuperset(addresses):
            raise missing_trial(store, next(address for address in addresses if address not in known))
        kept: Iterator[Sequence[Trial]] = iter(shelf.put(run for cell in document["cells"] for run in cell["runs"]))
    else:
        trials = dict(zip(addresses, shelf.load(addresses), strict=True))
        kept = iter([tuple(trials[address] for address in run) for cell in document["cells"] for run in cell["runs"]])
    runs = (tuple(itertools.islice(kept, len(cell["runs"]))) for cell in document["cells"])
    file = store.root / FILE
    return Outcome(campaign, tuple(_cell(c, of, file) for c, of in zip(document["cells"], runs, strict=True)), document["versions"])


AT_ONCE = 50_000
"""Most trials of a manifest that are read when it is opened; of more, each is read when it is asked for."""


def _cell(values: Mapping[str, Any], runs: tuple[Sequence[Trial], ...], file: Path) -> Cell:
    return Cell(values["at"], values["cca"], values["engine"], LazyScenarios(values["scenarios"], str(file)), runs, values["until_precise"])


class _Stored(BaseModel):
    """Values of exactly the types that were written; fields of other versions are left alone."""

    model_config = ConfigDict(strict=True, extra="ignore")


Addresses = Annotated[list[str], Field(min_length=1)]
AS_ASKED = WithJsonSchema({"type": "object", "additionalProperties": True})
"""Of what is not read whole here."""
Fields = dict[str, Any]
"""Plain values of a scenario, a path or a campaign, which their own types judge."""


class StoredCell(_Stored):
    """A cell of a manifest."""

    at: dict[str, str]
    """Axis → value as it was written."""
    cca: Annotated[str, Field(max_length=MOST_OF_LABEL)]
    """Congestion controls of the flows."""
    engine: str
    """Engine that ran it."""
    until_precise: bool
    """Whether trials were added until an interval was narrow enough."""
    command: str
    """The command line that measured it."""
    scenarios: Annotated[list[Fields], Field(min_length=1)]
    """The scenario of each value of what is pooled, as `tcpscape schema scenario` describes it."""
    runs: list[Addresses]
    """Of each of these scenarios the addresses of its trials, by their seeds."""

    @model_validator(mode="after")
    def _runs_of_each(self) -> StoredCell:
        if len(self.runs) != len(self.scenarios):
            raise ValueError(f"{len(self.runs)} lists of runs for {len(self.scenarios)} scenarios")
        return self


class StoredPart(_Stored):
    """A part of a study, of which only the name is read here."""

    name: str


class StoredStudy(_Stored):
    """A study's own fields, of which only the parts are read here."""

    parts: list[StoredPart]


class StoredCampaign(_Stored):
    """What was asked, of which only the axes are read here."""

    axes: dict[str, list[str]] = {}
    pool: list[str] = []


class StoredBase(_Stored):
    """The path's own values, of which only the flows are read here: of a scenario their fields, of conditions their number."""

    flows: list[Fields] | str | int = []


class StoredManifest(_Stored):
    """What a result directory holds of one campaign, or of one part of a study: a row of the table `manifests` of `results.sqlite`."""

    kind: Kind
    """The command that measured it."""
    name: str
    """Name of the study or of the campaign."""
    part: str
    """Part of the study; empty for a campaign."""
    study: Annotated[StoredStudy, AS_ASKED] | None
    """The study's own fields, as `tcpscape schema study` describes them; None for a campaign."""
    tcpscape: str
    """Version of tcpscape."""
    campaign: Annotated[StoredCampaign, AS_ASKED]
    """The campaign, as `tcpscape schema campaign` describes it."""
    base: Annotated[StoredBase, AS_ASKED]
    """The values of its path, with ${axis} in them."""
    versions: dict[str, str]
    """Engine → its version."""
    cells: Annotated[list[StoredCell], Field(min_length=1)]
    """Every cell, with the addresses of its trials."""


def problem(document: object) -> str:
    """What is wrong with the first field of a document that is; empty where it is a manifest."""
    try:
        StoredManifest.model_validate(document)
    except ValidationError as e:
        return field_problem(e)
    return ""
