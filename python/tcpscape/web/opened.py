"""What a page has opened beside its state: a measurement, a result directory, a scenario or a campaign.

It comes from the command line (:func:`of_argument`: `tcpscape explore ARG`) or from the page by upload, never by a path that the page names. Uploads
are in a temporary directory of this process, bounded in size and number, and recognised by their content.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tcpscape import writing
from tcpscape.campaign import record
from tcpscape.campaign import source as campaigns
from tcpscape.campaign.adaptive import repetition
from tcpscape.campaign.axes import parse_seeds
from tcpscape.campaign.campaign import Campaign, Case
from tcpscape.campaign.outcome import Outcome, gather
from tcpscape.controls import spelling
from tcpscape.engines.base import addresses_of
from tcpscape.errors import StoreError, TcpscapeError, refuse
from tcpscape.findings.diagnosis.observed import Observation
from tcpscape.interchange import observing, trial_flows
from tcpscape.reading import documents
from tcpscape.reading import files as reading
from tcpscape.reading.documents import field_problem
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.scenario import files as scenarios
from tcpscape.scenario.files import SCENARIO
from tcpscape.store.database import FILE
from tcpscape.store.results import Store
from tcpscape.studies import study as studies
from tcpscape.trial import Trial
from tcpscape.web.routes import Asked, Context, OpenedDocument, Post, Upload
from tcpscape.web.state import of_campaign, trusted


class Opened(ABC):
    """Something that a page, or the command line, has opened. Several threads may read it."""

    def __init__(self, name: str) -> None:
        """`name`: what people call it, as typed or as the uploaded file was called; never used as a path."""
        self.name = name
        self._after: Callable[[], None] | None = None

    @abstractmethod
    def document(self) -> OpenedDocument:
        """What the page shows of it at once."""

    def when_closed(self, call: Callable[[], None]) -> None:
        """Calls this at the end, to remove what was kept for it alone."""
        self._after = call

    def close(self) -> None:
        """Ends it: what an upload kept is removed, what the command line named stays."""
        if self._after:
            self._after()


@contextmanager
def naming(path: Path, name: str) -> Iterator[None]:
    """Within it, lines about `path` call it `name`: where an upload is kept is nobody's business. A relative path is the command line's own."""
    try:
        yield
    except TcpscapeError as e:
        if path.is_absolute() and str(path) in str(e):
            raise type(e)(str(e).replace(str(path), name)) from None
        raise


class Measurement(Opened):
    """A file that shows flows."""

    def __init__(self, path: Path, name: str) -> None:
        """:raises TcpscapeError: one line, where the first bytes show that it is of no kind."""
        super().__init__(name)
        self._path, self._lock = path, threading.Lock()
        self._observation: Observation | None = None
        self._read_at: tuple[int, int] | None = None
        with naming(path, name):
            observing.expect(path)

    def document(self) -> OpenedDocument:
        """What the page shows of it at once."""
        return OpenedDocument(kind="measurement", name=self.name, about="a measurement")

    def observation(self, progress: observing.BytesRead) -> Observation:
        """What it shows; read once, and again where the file has changed. :raises TcpscapeError: one line, where it cannot be read."""
        with self._lock, naming(self._path, self.name):
            version = reading.version(self._path, observing.SOURCE)
            if self._observation is None or version != self._read_at:
                self._observation = replace(observing.observe(self._path, progress), name=self.name)
                self._read_at = version
            return self._observation

    def has_grown(self) -> bool:
        """Whether the file has changed since it was read. :raises TcpscapeError: one line, where it is gone."""
        return self._observation is not None and reading.version(self._path, observing.SOURCE) != self._read_at


OWN_CODE = ("an uploaded file cannot bring code of its own", "name a congestion control of `tcpscape cca list`, or open the file on the command line")
"""Why a Python class is refused, and what to do."""


class Setup(Opened):
    """A scenario, a campaign or a study."""

    def __init__(self, name: str, about: str, campaign: Campaign) -> None:
        """:raises TcpscapeError: one line, for a campaign that makes no sense."""
        super().__init__(name)
        self._about, self.campaign = about, campaign
        cases = campaign.cases()
        self.state, self.remarks = of_campaign(campaign)
        self.controls = tuple(dict.fromkeys(flow.cca for case in cases for flow in case.scenario.flows))
        """Congestion controls of all its flows, those of mixtures too."""

    @classmethod
    def of_source(cls, text: str) -> Setup:
        """A scenario or a campaign: a file that the user named, or a name of the gallery. :raises TcpscapeError: one line, where it is none."""
        campaign = campaigns.campaign(text, {}, {})
        made = cls(text, campaign.about or f"the {'campaign' if _moves(campaign) else 'scenario'} {campaign.name}", campaign)
        trusted.update(cca for cca in made.controls if spelling.is_class(cca))
        return made

    @classmethod
    def of_study(cls, name: str) -> Setup:
        """The first part of a published study. :raises TcpscapeError: one line, where it cannot run."""
        study = studies.get(name)
        part = study.parts[0]
        return cls(name, f"the study {name}, part {part.name}" if len(study.parts) > 1 else f"the study {name}", part)

    @classmethod
    def of_text(cls, raw: bytes, name: str) -> Setup:
        """An uploaded YAML or TOML file, which may name no file of this machine and no code.

        :raises TcpscapeError: one line, where it is no scenario and no campaign, or names what it may not.
        """
        origin = Origin(name, scenarios.SCENARIO)
        text = reading.decoded(raw, origin)
        values = (documents.from_toml if name.lower().endswith(".toml") else documents.from_yaml)(text, origin)
        if not isinstance(values, dict):
            origin.refuse("is no mapping of fields")
        _refuse_code(values)
        with reading.confined():
            given = {"name": PurePath(name).stem or "upload", **values}
            campaign = Campaign.of(given if campaigns.is_campaign(values) else {"name": given["name"], "scenario": given}, name)
            made = cls(name, campaign.about or f"the {'campaign' if _moves(campaign) else 'scenario'} {campaign.name}", campaign)
        _refuse_code(list(made.controls))
        return made

    def document(self) -> OpenedDocument:
        """What the page shows of it at once."""
        axes = {name: list(levels) for name, levels in _moves(self.campaign).items()}
        return OpenedDocument(kind="setup", name=self.name, about=self._about, state=self.state, remarks=list(self.remarks), axes=axes)


def _moves(campaign: Campaign) -> dict[str, tuple[str, ...]]:
    """The axes of a campaign, those of its groups too, without the congestion controls."""
    axes = dict(campaign.axes)
    for group in campaign.zip:
        axes |= group
    return {name: levels for name, levels in axes.items() if name != "cca"}


def _refuse_code(values: Any) -> None:
    """Refuses a Python class anywhere in plain values. :raises TcpscapeError: one line."""
    for text in _texts(values):
        if any(spelling.is_class(part.strip()) for part in text.split(",")):
            refuse("cca", *OWN_CODE)


def _texts(values: Any) -> Iterator[str]:
    """Every text among plain values."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, dict):
        for item in values.values():
            yield from _texts(item)
    elif isinstance(values, list):
        for item in values:
            yield from _texts(item)


MOST_TRIALS = 100_000
"""Most trials of a campaign that is followed."""


class _Plan(BaseModel):
    """What a writer announces."""

    model_config = ConfigDict(strict=True, extra="ignore")
    campaign: dict[str, Any]
    versions: dict[str, str]
    """Engine → its version."""
    case_versions: list[str] = Field(default_factory=list)
    """What stands for the version in the addresses of each case's trials; empty where it is that of the engine."""


@dataclass(frozen=True)
class Unfinished:
    """A campaign of which some trials are there."""

    campaign: Campaign
    outcome: Outcome | None
    """Of the cells that have a trial; None before the first one."""
    done: int
    """Trials that are there."""
    total: int
    """Trials in all; where cells are repeated until they are precise, those that are certain."""
    is_running: bool
    """Whether its writer is still there."""


class Follower:
    """Looks at a store again and again; each trial is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, _Followed] = {}

    def look(self) -> list[Unfinished]:
        """The campaigns that are being run into the store, or were when their writer ended early.

        :raises StoreError: one line, where the store or a plan in it is damaged.
        """
        campaigns = []
        for document, is_running in self._store.announced():
            key = repr(document)
            if key not in self._known:
                self._known[key] = _Followed(document, self._store)
            campaigns.append(self._known[key].look(is_running))
        return campaigns


class _Followed:
    """One campaign."""

    def __init__(self, document: Any, store: Store) -> None:
        try:
            plan = _Plan.model_validate(document)
        except ValidationError as e:
            raise StoreError(f"{store.root / FILE}: a plan in it is damaged ({field_problem(e)}); move the file away and run again") from None
        self._store, self._versions, self._trials = store, plan.versions, dict[str, Trial]()
        self._campaign = Campaign.of(plan.campaign)
        self._cases = self._campaign.cases()
        rule = repetition(self._campaign)
        self._seeds = range(rule.cap) if rule else parse_seeds(self._campaign.seeds)
        self._least = len(self._cases) * (rule.least if rule else len(self._seeds))
        if len(self._cases) * len(self._seeds) > MOST_TRIALS:
            self._seeds = self._seeds[: max(1, MOST_TRIALS // len(self._cases))]
        versions = plan.case_versions or [plan.versions.get(case.engine, "") for case in self._cases]
        self._addresses = [self._of(case, version) for case, version in zip(self._cases, versions, strict=False)]

    def look(self, is_running: bool) -> Unfinished:
        """What is there now."""
        there = self._store.addresses()
        new = [address for group in self._addresses for address in group if address in there and address not in self._trials]
        self._trials |= self._store.load_many(new)
        done = len(self._trials)
        return Unfinished(self._campaign, self._outcome() if done else None, done, max(done, self._least), is_running)

    def _outcome(self) -> Outcome:
        """The outcome of the cells that have a trial."""
        runs = [[self._trials[address] for address in group if address in self._trials] for group in self._addresses]
        some = [(case, trials) for case, trials in zip(self._cases, runs, strict=True) if trials]
        return gather(self._campaign, [case for case, _ in some], [trials for _, trials in some], self._versions)

    def _of(self, case: Case, version: str) -> list[str]:
        return addresses_of(case.engine.partition(":")[0], version, case.scenario, self._seeds)


@dataclass(frozen=True)
class KeptPart:
    """A campaign of a directory, or a part of a study."""

    label: str
    """Empty where there is one alone."""
    outcome: Outcome | None
    """None before its first trial."""
    unfinished: Unfinished | None = None
    """How far it is, where it is not finished."""


@dataclass(frozen=True)
class Kept:
    """What a directory holds now."""

    kind: str
    """`run`, `sweep`, `study`, …; empty where nothing is finished."""
    commands: tuple[str, ...]
    version: str
    parts: tuple[KeptPart, ...]

    @property
    def is_running(self) -> bool:
        """Whether somebody writes to it."""
        return any(part.unfinished is not None and part.unfinished.is_running for part in self.parts)


class Results(Opened):
    """A directory that run, sweep, study or advise wrote with `--out`."""

    def __init__(self, root: Path, name: str) -> None:
        """:raises TcpscapeError: one line, where there are no results, or a database of somebody else."""
        super().__init__(name)
        self._root, self._lock = root, threading.Lock()
        if not reading.inside(root, root / FILE):
            refuse(FILE, f"leads out of the directory {name}", "copy the results themselves into it")
        with _naming(root, name):
            self._store = Store(root, create=False)
        self._follower = Follower(self._store)
        self._seen = ""
        self._finished: record.Record | None = None

    def document(self) -> OpenedDocument:
        """What the page shows of it at once."""
        return OpenedDocument(kind="results", name=self.name, about="results of tcpscape")

    def kept(self) -> Kept:
        """What is there now; what has not changed is not read again. :raises TcpscapeError: one line, where it is damaged."""
        with self._lock, self.confined():
            documents = self._store.manifests()
            if documents and (self._finished is None or repr(documents) != self._seen):
                self._finished, self._seen = record.load(self._root), repr(documents)
            following = self._follower.look()
        finished = self._finished
        parts = [KeptPart(label, outcome) for label, outcome in finished.parts.items()] if finished else []
        parts += [KeptPart(one.campaign.name, one.outcome, one) for one in following if not _is_kept(one, finished)]
        if not parts:
            refuse(self.name, "has no results, and nobody runs anything into it", "name a directory that run, sweep or study writes with --out")
        commands = tuple(finished.command.splitlines()) if finished else ()
        return Kept(finished.kind if finished else "", commands, finished.version if finished else "", tuple(parts))

    @contextmanager
    def confined(self) -> Iterator[None]:
        """Within it no file outside of the directory is read, whatever a scenario in it names."""
        with _naming(self._root, self.name), reading.confined(self._root):
            yield

    def observation(self) -> Observation:
        """Its trials as flows to diagnose. :raises TcpscapeError: one line, where they cannot be read."""
        with self._lock, self.confined():
            return trial_flows.observe_directory(self._root)

    def close(self) -> None:
        """Closes the database; an upload is removed."""
        self._store.close()
        super().close()


@contextmanager
def _naming(root: Path, name: str) -> Iterator[None]:
    """Within it, lines about an upload's database and its directory call them by its name; what the command line named is called so already."""
    if name.startswith(str(root)):
        yield
        return
    with naming(root, name), naming(root / FILE, name):
        yield


def _is_kept(one: Unfinished, finished: record.Record | None) -> bool:
    """Whether a campaign whose writer has not left yet is among what is finished."""
    known = [outcome.campaign for outcome in finished.outcomes] if finished else []
    return one.done >= one.total and one.campaign in known


MOST_UPLOAD = 256 * MIB
"""Bytes of one upload."""
MOST_OF_ALL = 1024 * MIB
"""Bytes of all uploads that are open."""
MOST_FILES = 16
"""Uploads that are open at a time."""
MOST_NAME = 120
"""Characters of an upload's name that are kept, its end."""
UPLOAD = Kind("an upload", "drop a capture, another measurement, a scenario or a results.sqlite", most=MOST_UPLOAD)
SQLITE = b"SQLite format 3\0"
"""First bytes of a database."""
NAME = "upload"
"""Name of the file of every upload but a database's: what the page calls it is never a path."""


class Uploads:
    """The uploads of this process."""

    def __init__(self) -> None:
        self._spool: writing.Spool | None = None
        self._sizes: dict[Path, int] = {}
        self._lock = threading.Lock()

    def take(self, file: Path, name: str) -> Opened:
        """What a file is that a page has sent, by its content; of a text the end of its name decides. It is kept until it is closed.

        :raises TcpscapeError: one line, where it is nothing that can be opened, or there is no room.
        """
        is_database = reading.head(file, len(SQLITE), UPLOAD) == SQLITE
        if not is_database and PurePath(label(name)).suffix.lower() in campaigns.SUFFIXES:
            return Setup.of_text(reading.content(file, SCENARIO), label(name))
        kept = self._keep(file, FILE if is_database else NAME)
        try:
            opened: Opened = Results(kept.parent, label(name)) if is_database else Measurement(kept, label(name))
        except BaseException:
            self.remove(kept)
            raise
        opened.when_closed(lambda: self.remove(kept))
        return opened

    def remove(self, file: Path) -> None:
        """Removes an upload."""
        with self._lock:
            if self._sizes.pop(file, None) is not None and self._spool:
                self._spool.remove(file)

    def close(self) -> None:
        """Removes all of them."""
        with self._lock:
            self._sizes.clear()
            spool, self._spool = self._spool, None
        if spool:
            spool.close()

    def _keep(self, file: Path, name: str) -> Path:
        size, _ = reading.version(file, UPLOAD)
        with self._lock:
            if len(self._sizes) >= MOST_FILES:
                refuse("upload", f"{MOST_FILES} uploads are open", "close a page that has one", StoreError)
            if size + sum(self._sizes.values()) > MOST_OF_ALL:
                refuse("upload", f"all uploads together have more than {reading.size_text(MOST_OF_ALL)}", "close a page that has one", StoreError)
            self._spool = self._spool or writing.Spool()
            kept = self._spool.adopt(file, name)
            self._sizes[kept] = size
            return kept


def label(name: str) -> str:
    """The name of an upload as messages and the page have it: without directories, never used as a path."""
    return name.replace("\\", "/").rpartition("/")[2][-MOST_NAME:] or NAME


UPLOADS = Uploads()
"""Those of all pages."""


def upload(context: Context, file: Path, name: str) -> OpenedDocument:
    """Opens a file that the page has sent; answers with the document of what it is."""
    opened = UPLOADS.take(file, name)
    context.page.hold(opened)
    return opened.document()


def close(context: Context, asked: Asked) -> None:
    """Closes what the page has opened."""
    context.page.hold(None)


def of_argument(text: str) -> Opened:
    """What a word of the command line names: a name of the gallery, a study, a scenario's or campaign's file, a result directory, a measurement.

    :raises TcpscapeError: one line, where it is none of these.
    """
    path = Path(text)
    if path.suffix.lower() in campaigns.SUFFIXES or text in (*scenarios.gallery(), *campaigns.gallery()):
        return Setup.of_source(text)
    if text in studies.names() and not reading.exists(text, observing.SOURCE):
        return Setup.of_study(text)
    if reading.folder(text, observing.SOURCE):
        return Results(path, text)
    if path.name == FILE:
        return Results(path.parent, text)
    return Measurement(path, text)


ROUTES = (Upload("upload", upload, MOST_UPLOAD), Post("close", Asked, close))
