"""The store: trials by their content address, and manifests. What is promised of it is in :mod:`tcpscape.store`."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json, to_json

from tcpscape import writing
from tcpscape.errors import StoreError
from tcpscape.store import rows, tables
from tcpscape.store.claims import Claims
from tcpscape.store.database import FILE, Database, batches
from tcpscape.store.rows import flow_rows, is_flow_column, labelled_rows
from tcpscape.store.tables import SIDE_TABLES
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FILE", "SIDE_TABLES", "Store", "flow_rows", "holds", "is_flow_column", "labelled_rows"]

Documents = list[Any]
"""Manifests: plain values, in their order."""

_KEEP = "INSERT INTO trials VALUES (?, ?, ?) ON CONFLICT (address) DO UPDATE SET trial = excluded.trial, queues = excluded.queues"
_SELECT = "SELECT address, trial, queues FROM trials WHERE address IN ({})"
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
        self._claims = Claims(self._database, self._place)
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

    def close(self) -> None:
        """Releases what is claimed and closes the database. The store can be used again."""
        _close(self._claims, self._database)

    def save(self, trial: Trial) -> None:
        """Keeps a trial; a reader sees all of it or nothing."""
        self.save_many([trial])

    def save_many(self, trials: Sequence[Trial]) -> None:
        """Keeps trials, all of them or none. Threads may call it at the same time."""
        for trial in trials:
            tables.keep(trial, self._place)
        self._database.write(_KEEP, [rows.encode(t) for t in trials])
        self.saved += len(trials)

    def claim(self, address: str) -> bool:
        """Claims a trial before it is run; False where another writer runs it."""
        return self._claims.take(address)

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
            if tables.complete(self.root, address, sides):
                trial = rows.decode(text, queues)
                if trial is not None and trial.address == address:
                    loaded[address] = rows.beside(trial, tables.read_all(self.root, trial, sides))

        with _uncollected():
            self._database.each(query, parameters, add)
        return loaded

    def addresses(self) -> Set[str]:
        """The addresses of all trials that are kept now."""
        return {address for (address,) in self._database.rows("SELECT address FROM trials") if isinstance(address, str)}

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


def _close(claims: Claims, database: Database, *, interrupted: bool = False) -> None:
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
        raise StoreError(f"out: a manifest in {root / FILE} is damaged; move the file away and run again, or choose another directory") from None


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector, which would look at all trials again and again while they become many."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
