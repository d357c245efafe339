"""The store: trials by their content address, and manifests. What is promised of it is in :mod:`tcpscape.store`.

Several writers of a directory share the work. A writer claims a trial before it runs it: a row of the table `claims` with the trial's address and
the writer's name. A change that keeps several trials takes their rows away, and the writer those of the others when it leaves. The name is that of a
file in the directory that the writer keeps locked (:class:`tcpscape.writing.Presence`): the system gives the lock back when the process ends, however
it does, so that the claims of a dead writer are known and taken over. On a network file system that does not lock files between hosts, a claim of
another host looks dead: its trials may run twice, and are still kept once.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json, to_json

from tcpscape import writing
from tcpscape.errors import StoreError
from tcpscape.store import rows, side_tables
from tcpscape.store.database import FILE, Database, batches, uncollected
from tcpscape.store.rows import flow_rows, is_flow_column, labelled_parts, labelled_rows
from tcpscape.store.side_tables import SIDE_TABLES
from tcpscape.trial import Trial
from tcpscape.writing import Presence, is_present

if TYPE_CHECKING:
    import polars as pl


__all__ = ["FILE", "SIDE_TABLES", "Store", "flow_rows", "holds", "is_flow_column", "labelled_parts", "labelled_rows", "uncollected"]

Documents = list[Any]
"""Manifests: plain values, in their order."""

_KEEP = "INSERT INTO trials VALUES (?, ?, ?) ON CONFLICT (address) DO UPDATE SET trial = excluded.trial, queues = excluded.queues"
_RELEASE_KEPT = "DELETE FROM claims WHERE address = ?"
"""A trial that is kept needs no claim. The table stays small: of a large one, nearly every claim would change a page of its own. Long trials are kept
one by one, and are too few for that: a second statement would make keeping one dearer by two thirds."""
_SELECT = "SELECT address, trial, queues FROM trials WHERE address IN ({})"
_ADDRESSES = """SELECT group_concat(address, char(10)) FROM
(SELECT address FROM trials WHERE address > ? AND typeof(address) = 'text' AND instr(address, char(10)) = 0 ORDER BY address LIMIT 100000)"""
"""The next addresses behind one, a line each: a text is read much faster than as many rows. An empty one, or one of two lines, is none of ours."""
_DOCUMENTS = "SELECT document FROM manifests ORDER BY place"
_EARLIER = ("manifest.json", "trials/*.parquet", "journal/*.journal")
"""What directories of tcpscape before the database have in them."""


def holds(root: Path) -> bool:
    """Whether a directory is a store. :raises StoreError: one line, where it is one of an earlier tcpscape."""
    if os.path.isfile(root / FILE):
        return True
    if os.path.isdir(root) and (earlier := next((file for pattern in _EARLIER for file in root.glob(pattern)), None)):
        what = f"holds results of an earlier tcpscape ({earlier.relative_to(root)}), which this one does not read"
        raise StoreError(f"out: {root} {what}; run again with --out another directory")
    return False


class Store:
    """A directory of trials. Close it, or use it in a `with`; otherwise it is closed when it is forgotten."""

    def __init__(self, root: Path | str, *, create: bool = True) -> None:
        """`create`: whether the directory and its database are made where there are none.

        :raises StoreError: one line, where that is not possible, or there is nothing to read.
        """
        self.root = Path(root)
        if not holds(self.root):
            self._expect_place(create=create)
        self._place = Path(os.path.abspath(self.root))  # a congestion control in Python may change the current directory
        self._database = Database(self.root, create=create)
        if create:
            writing.clear(self.root, *(self.root / table for table in SIDE_TABLES))
        self._claims = WriterClaims(self._database, self._place)
        self._after: list[Callable[[], None]] = []
        self.saved = 0
        """Trials saved through this object."""
        weakref.finalize(self, _close, self._claims, self._database)

    def _expect_place(self, *, create: bool) -> None:
        if not create:
            raise StoreError(f"{self.root}: no {FILE} in it; name a directory that run, sweep or study wrote with --out")
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as e:
            raise StoreError(f"out: cannot write to {self.root}: {getattr(e, 'strerror', e)}; choose another directory") from None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _close(self._claims, self._database, interrupted=error is not None)
        if error is None:
            self._do_after()

    def close(self) -> None:
        """Releases what is claimed and closes the database. The store can be used again."""
        _close(self._claims, self._database)
        self._do_after()

    def after(self, work: Callable[[], None]) -> None:
        """Work to do once the store is closed, unless an error ended its use."""
        self._after.append(work)

    def _do_after(self) -> None:
        while self._after:
            self._after.pop()()

    def save(self, trial: Trial) -> None:
        """Keeps a trial; a reader sees all of it or nothing."""
        self.save_many([trial])

    def save_many(self, trials: Sequence[Trial]) -> None:
        """Keeps trials, all of them or none. Threads may call it at the same time."""
        for trial in trials:
            side_tables.keep(trial, self._place)
        kept = [rows.encode(t) for t in trials]
        if len(kept) == 1:
            self._database.write(_KEEP, kept)
        else:
            self._keep_many(kept)
        self.saved += len(trials)

    def _keep_many(self, kept: Sequence[rows.TrialRow]) -> None:
        """Keeps rows, and releases their claims."""
        with self._database.transaction() as connection:
            connection.executemany(_KEEP, kept)
            connection.executemany(_RELEASE_KEPT, [(address,) for address, _, _ in kept])

    def claim(self, addresses: Sequence[str]) -> set[str]:
        """Claims trials before they are run. Returns the addresses of those that no other writer runs."""
        return self._claims.take(addresses)

    def announce(self, plan: Mapping[str, Any]) -> None:
        """Says what is about to be run here: plain values. It stands until this writer closes the store; one that is killed leaves it."""
        self._claims.announce(to_json(plan, inf_nan_mode="constants").decode())

    def announced(self) -> list[tuple[Any, bool]]:
        """What is being run here, or was when its writer was killed: each plan, and whether its writer is still there."""
        plans = self._claims.announced()
        return list(zip(_read_documents([(text,) for text, _ in plans], self.root), (there for _, there in plans), strict=True))

    def release(self, addresses: Iterable[str]) -> None:
        """Releases what this writer has claimed, and these trials where the writers that have claimed them are dead."""
        self._claims.release()
        self._claims.release_dead(addresses)

    def load(self, address: str, tables: Iterable[str] = ()) -> Trial | None:
        """The trial with this address and its `tables`, None where it (or one of them) is missing."""
        return self.load_many([address], tables).get(address)

    def load_many(self, addresses: Iterable[str], tables: Iterable[str] = ()) -> dict[str, Trial]:
        """The trials with these addresses that are kept with all of `tables`, by address, in the order asked for."""
        distinct = list(dict.fromkeys(addresses))
        loaded: dict[str, Trial] = {}
        for some in batches(distinct):
            loaded |= self._load(_SELECT.format(", ".join("?" * len(some))), some, tuple(tables))
        return {address: loaded[address] for address in distinct if address in loaded}

    def _load(self, query: str, parameters: Sequence[Any], sides: Sequence[str]) -> dict[str, Trial]:
        loaded: dict[str, Trial] = {}

        def add(address: str, text: str, queues: bytes | None) -> None:
            if side_tables.complete(self.root, address, sides):
                trial = rows.decode(text, queues)
                if trial is not None and trial.address == address:
                    loaded[address] = rows.beside(trial, side_tables.read_all(self.root, trial, sides))

        with uncollected():
            self._database.each(query, parameters, add)
        return loaded

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a query answers with."""
        return self._database.rows(query, parameters)

    def each_part(self, query: str, use: Callable[[list[tuple[Any, ...]]], None]) -> None:
        """Calls `use` with the rows of a query's answer, some at a time: it is never in memory as a whole."""
        self._database.each_part(query, (), use)

    def addresses(self) -> set[str]:
        """The addresses of all trials that are kept now."""
        kept: set[str] = set()
        last = ""
        while part := self._database.rows(_ADDRESSES, (last,))[0][0]:
            addresses = part.split("\n")
            kept.update(addresses)
            last = max(addresses)
        return kept

    def frame(self) -> pl.DataFrame:
        """Every trial in the store, one row for each flow, in the order of addresses."""
        loaded = self._load("SELECT address, trial, queues FROM trials ORDER BY address", (), ())
        return flow_rows(loaded.values())

    def manifests(self) -> Documents:
        """The documents that say what was asked, in their order."""
        return _read_documents(self._database.rows(_DOCUMENTS), self.root)

    def change_manifests(self, change: Callable[[Documents], Documents]) -> None:
        """Replaces the documents by what `change` makes of them; no other writer comes in between."""
        with self._database.transaction() as connection:
            after = change(_read_documents(connection.execute(_DOCUMENTS).fetchall(), self.root))
            connection.execute("DELETE FROM manifests")
            texts = [(to_json(document, inf_nan_mode="constants").decode(),) for document in after]
            connection.executemany("INSERT INTO manifests (document) VALUES (?)", texts)


def _close(claims: WriterClaims, database: Database, *, interrupted: bool = False) -> None:
    try:
        claims.end(interrupted=interrupted)
    except StoreError:
        pass  # what was kept is kept; a claim that stays is that of a dead writer
    finally:
        database.close()


def _read_documents(texts: Sequence[tuple[str]], root: Path) -> Documents:
    try:
        return [from_json(text) for (text,) in texts]
    except (ValueError, TypeError):
        raise StoreError(f"{root / FILE}: a manifest in it is damaged; move the file away and run again, or choose another directory") from None


NAME = "writer"
"""In the names of the writers' files."""
_CLAIM = "INSERT INTO claims VALUES (?, ?) ON CONFLICT (address) DO NOTHING"
_MINE = "SELECT address FROM claims WHERE writer = ? AND address IN ({})"
_WRITERS = "SELECT DISTINCT writer FROM claims WHERE address IN ({})"
_RELEASE = "DELETE FROM claims WHERE writer = ?"
_PLANS = "SELECT writer, document FROM plans ORDER BY rowid"
_FORGET = "DELETE FROM plans WHERE writer = ? AND document = ?"


class WriterClaims:
    """The claims and plans of one writer, which is there from its first claim on. Threads may share it; a forked process is another writer."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database, self._folder = database, folder
        self._presence: Presence | None = None
        self._pid = os.getpid()

    def take(self, addresses: Sequence[str]) -> set[str]:
        """Claims trials; returns those that no other writer has."""
        writer = self._writer()
        if self._database.write(_CLAIM, [(address, writer) for address in addresses]) == len(addresses):
            return {*addresses}
        mine = (row for part in batches(addresses) for row in self._database.rows(_MINE.format(", ".join("?" * len(part))), (writer, *part)))
        return {address for (address,) in mine}

    def announce(self, plan: str) -> None:
        """Says what this writer is about to run: a JSON document. An equal one of a dead writer is replaced."""
        writer = self._writer()
        known = [(owner,) for owner, text in self._database.rows(_PLANS) if text == plan and not self.is_there(owner)]
        if known:
            self._database.write(_FORGET, [(owner, plan) for (owner,) in known])
        self._database.write("INSERT INTO plans VALUES (?, ?)", [(writer, plan)])

    def announced(self) -> list[tuple[str, bool]]:
        """What writers have announced, and whether each is still there."""
        if not self._database.rows("SELECT 1 FROM sqlite_master WHERE name = 'plans'"):
            return []  # a file of an earlier version
        return [(str(text), self.is_there(owner)) for owner, text in self._database.rows(_PLANS)]

    def is_there(self, writer: object) -> bool:
        """Whether a writer is still there."""
        return is_present(self._folder / Path(str(writer)).name)

    def release_dead(self, addresses: Iterable[str]) -> None:
        """Releases what dead writers have claimed, where any of these trials is among it."""
        for some in batches(list(addresses)):
            for (writer,) in self._database.rows(_WRITERS.format(", ".join("?" * len(some))), some):
                if not self.is_there(writer):
                    self._database.write(_RELEASE, [(writer,)])

    def release(self) -> None:
        """Releases every claim of this writer: what it has run is kept."""
        if self._presence and self._pid == os.getpid():
            self._database.write(_RELEASE, [(self._presence.file.name,)])

    def end(self, *, interrupted: bool = False) -> None:
        """Releases every claim of this writer, which leaves, and takes its plans away, unless it was interrupted."""
        try:
            self.release()
            if self._presence and self._pid == os.getpid() and not interrupted:
                self._database.write("DELETE FROM plans WHERE writer = ?", [(self._presence.file.name,)])
        finally:
            if self._presence and self._pid == os.getpid():
                presence, self._presence = self._presence, None
                presence.end()

    def _writer(self) -> str:
        with self._database.exclusive():
            if self._pid != os.getpid():
                if self._presence:
                    self._presence.forget()
                self._presence, self._pid = None, os.getpid()
            if self._presence is None:
                self._presence = Presence(self._folder, NAME)
            return self._presence.file.name
