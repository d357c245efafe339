"""A result directory: the store of trials, and the manifests that say what was asked, with which command, and which trials each cell holds.

Whatever is shown later (a report, a comparison, an export) is read from here; nothing has to run again. A directory accumulates what is run into
it, as :mod:`tcpscape.campaign.manifest` says; what it cannot hold is refused before it runs (:func:`expect`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

import tcpscape
from tcpscape import names
from tcpscape.campaign import execute, manifest
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution
from tcpscape.campaign.manifest import Document
from tcpscape.campaign.outcome import Cell, LazyScenarios, Outcome
from tcpscape.errors import ScenarioError, StoreError, TcpscapeError, refuse, shown
from tcpscape.reading.documents import field_problem
from tcpscape.store.results import FILE, Store
from tcpscape.trial import Trial

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
        return "".join(outcome.table().html() for outcome in self.outcomes)


def expect(store: Store, kind: str, name: str, parts: Mapping[str, Campaign] | None = None, versions: Mapping[str, str] | None = None) -> None:
    """Refuses, before anything runs, what the store's directory cannot hold beside what is there; `versions` are those of the engines."""
    if conflict := manifest.conflict(_documents(store), kind, name, parts or {}, versions or {}):
        problem, fix = conflict
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
    after: list[Document] = []

    def add(before: list[Any]) -> list[Any]:
        after[:] = _added(_known(before, store.root), record)
        return after

    store.change_manifests(add)
    return not _is_alone(after, record)


def load(root: Path) -> Record:
    """The record in `root` with its trials, and their samples and packets where they were kept.

    :raises StoreError: one line, where there is none, or a manifest or a trial of it is missing or damaged.
    """
    with Store(root, create=False) as store:
        return _load(store)


def file_name(text: str) -> str:
    """A text as a name that can be a file's and an anchor's in a page (:func:`tcpscape.names.component`, with `%` and `=`)."""
    return names.component(text, keep="%=")


def exists(root: Path) -> bool:
    """Whether `root` has a record; a store of trials alone has none."""
    with Store(root, create=False) as store:
        return bool(store.manifests())


def _added(before: list[Document], record: Record) -> list[Document]:
    after = before
    for part, outcome in record.parts.items():
        head = {"kind": record.kind, "name": record.name, "part": part, "tcpscape": record.version, "study": None}
        after = manifest.accumulate(after, manifest.document(outcome, head, record.command))
    if record.study is not None:
        after = _of_study(after, record.study)
    return after


def _of_study(documents: list[Document], study: Mapping[str, Any]) -> list[Document]:
    """The documents in the order of the study's parts, its own fields in the first one alone."""
    order = [part["name"] for part in study["parts"]]
    placed = sorted(documents, key=lambda d: order.index(d["part"]) if d["part"] in order else len(order))
    return [{**d, "study": dict(study) if i == 0 else None} for i, d in enumerate(placed)]


def _is_alone(documents: Sequence[Document], record: Record) -> bool:
    """Whether the directory holds exactly what `record` says."""
    counts = [len(outcome.cells) for outcome in record.parts.values()]
    return [len(d["cells"]) for d in documents] == counts and all(manifest.commands(d) == [record.command] for d in documents)


def _documents(store: Store) -> list[Document]:
    return _known(store.manifests(), store.root)


def _known(documents: list[Any], root: Path) -> list[Document]:
    """The documents as this version writes them, if all of them are manifests."""
    for found in map(problem, documents):
        if found:
            raise _damaged(root, found)
    try:
        for one in documents:
            for field in ("name", "part"):
                names.expect(one[field] or "-", field)
    except ScenarioError as e:
        raise _damaged(root, str(e)) from None
    return [manifest.current(one) for one in documents]


def _damaged(root: Path, why: str) -> StoreError:
    return StoreError(f"{root / FILE}: a manifest in it is damaged ({why}); move the file away and run again")


def _load(store: Store) -> Record:
    documents = _documents(store)
    if not documents:
        raise StoreError(f"{store.root}: no results of run, sweep or study in {FILE}; name a directory that one of them wrote with --out")
    parts = {label: (d, _outcome(d, store)) for label, d in _labelled(documents)}
    each = [manifest.commands(d) for d in documents]
    kind, name, version = (", ".join(dict.fromkeys(d[field] for d in documents)) for field in ("kind", "name", "tcpscape"))
    study = next((d["study"] for d in documents if d["study"]), None)
    command = "\n".join(dict.fromkeys(line for lines in each for line in lines))
    several = {label: "\n".join(lines) for label, lines in zip(parts, each, strict=True)} if "\n" in command else {}
    return Record(kind, name, command, {label: outcome for label, (_, outcome) in parts.items()}, study, version, several)


def _labelled(documents: Sequence[Document]) -> Iterable[tuple[str, Document]]:
    """Each document with its part's name: of a study its own, otherwise the campaign's, numbered where several have the same."""
    taken: dict[str, int] = {}
    for document in documents:
        if document["kind"] == STUDY or len(documents) == 1:
            yield document["part"], document
            continue
        name = file_name(document["name"])
        taken[name] = taken.get(name, 0) + 1
        yield name if taken[name] == 1 else f"{name}-{taken[name]}", document


def _outcome(document: Document, store: Store) -> Outcome:
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
    trials: dict[str, Trial] = {}
    for choice in (tables, *((t,) for t in tables if tables[1:]), *([()] if tables else [])):  # an engine may not see all that was asked for
        if missing := [a for a in addresses if a not in trials]:
            trials |= store.load_many(missing, choice)
    if lost := [a for a in addresses if a not in trials]:
        raise StoreError(f"{store.root}: trial {lost[0]} of its manifest is missing; run again with the same --out")
    file = store.root / FILE
    return Outcome(campaign, tuple(_cell(c, trials, file) for c in document["cells"]), document["versions"])


def _cell(values: Mapping[str, Any], trials: Mapping[str, Trial], file: Path) -> Cell:
    runs = tuple(tuple(trials[address] for address in run) for run in values["runs"])
    return Cell(values["at"], values["cca"], values["engine"], LazyScenarios(values["scenarios"], str(file)), runs, values["until_precise"])


class _Stored(BaseModel):
    """Values of exactly the types that were written; fields of other versions are left alone."""

    model_config = ConfigDict(strict=True, extra="ignore")


Addresses = Annotated[list[str], Field(min_length=1)]
Fields = dict[str, Any]
"""Plain values of a scenario, a path or a campaign, which their own types judge."""


class StoredCell(_Stored):
    """A cell: where it stands, its command, and for each of its scenarios the addresses of the trials."""

    at: dict[str, str]
    cca: str
    engine: str
    until_precise: bool
    command: str
    scenarios: Annotated[list[Fields], Field(min_length=1)]
    runs: list[Addresses]

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
    """A manifest (:data:`tcpscape.campaign.manifest.Document`)."""

    kind: str
    name: str
    part: str
    study: StoredStudy | None
    tcpscape: str
    """The version that wrote it."""
    campaign: StoredCampaign
    base: StoredBase
    versions: dict[str, str]
    """Engine → its version."""
    cells: Annotated[list[StoredCell], Field(min_length=1)]


def problem(document: object) -> str:
    """What is wrong with the first field of a document that is; empty where it is a manifest."""
    try:
        StoredManifest.model_validate(document)
    except ValidationError as e:
        return field_problem(e)
    return ""
