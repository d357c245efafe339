"""The result store: trials named by their content address, kept as they end, so that a campaign that was killed continues.

A trial is appended to a journal (:mod:`tcpscape.store.journal`) the moment it is saved; journals are folded into Parquet segments of some thousand
trials, `trials/NAME.parquet`, when they grow and when the store is closed. A segment has one row for each flow; its column `trial_json`
holds the whole trial in its first flow's row. Journals that a killed process left are read like segments and folded by the next writer.
Several processes may share a store: what is there twice is read once. Results of another model version have other addresses, so they are
never mixed. Side tables (samples, queue_samples, packets) are one Parquet file for each trial, written only where they were asked for.
"""

from __future__ import annotations

import io
import os
import re
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from tcpscape.errors import StoreError
from tcpscape.store import journal
from tcpscape.store.journal import Journal, Line, cannot_write
from tcpscape.store.rows import decode, encode, flow_rows, of_segment, segment
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FOLD_AT", "SIDE_TABLES", "Store", "flow_rows"]

SIDE_TABLES = ("samples", "queue_samples", "packets")
FOLD_AT = 5000
"""Trials in a journal that is folded while its campaign runs."""
ROW_GROUP = 512
"""Rows that are read to find one trial; segments are sorted by address."""
_OLD = re.compile(r"[0-9a-f]{24}")
"""Name of a segment of one trial, its address: how stores were written at first."""


class Store:
    """A directory of trials. Close it, or use it in a `with`, and its journal is folded; otherwise that happens when it is forgotten."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        try:
            (self.root / "trials").mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise StoreError(f"out: cannot write to {self.root}: {e.strerror}; choose another directory") from None
        self._index: dict[str, tuple[Path, Line | None]] = {}
        """Where each trial is: a journal and its line, or a segment."""
        self._seen: dict[Path, int] = {}
        """Bytes read of each journal; 0 for a segment."""
        self._whole: tuple[Path | None, dict[str, str]] = (None, {})
        """The segment read last, and its lines once it is asked again: whoever reads trial by trial goes through one after the other."""
        self.saved = 0
        """Trials saved through this object."""
        self._lock = threading.RLock()
        self._writer = _Writer(self.root)
        self._end = weakref.finalize(self, self._writer.close)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Folds the journal, and those that killed processes left. The store can be used again."""
        with self._lock:
            self._writer.close()

    def save(self, trial: Trial) -> None:
        """Keeps a trial; a reader sees all of it or nothing."""
        self.save_many([trial])

    def save_many(self, trials: Sequence[Trial]) -> None:
        """Keeps trials by one write. Threads may call it at the same time."""
        for trial in trials:
            for table in SIDE_TABLES:
                side = getattr(trial, table)
                if side is not None:
                    _write(side, self._side(trial.address, table))
        said = [(t.address, encode(t)) for t in trials]
        with self._lock:
            path, placed = self._writer.append(said)
            self._index |= {line.address: (path, line) for line in placed}
            self._seen[path] = self._seen.get(path, 0) + sum(len(a) + len(s) + 2 for a, s in said)
            self.saved += len(trials)
            full = self._writer.full()
        if full:
            fold(full, self.root)

    def load(self, address: str, tables: Iterable[str] = ()) -> Trial | None:
        """The trial with this address and its `tables`, None where it (or one of them) is missing."""
        return self.load_many([address], tables).get(address)

    def load_many(self, addresses: Iterable[str], tables: Iterable[str] = ()) -> dict[str, Trial]:
        """The trials with these addresses that are kept with all of `tables`, by address, in the order asked for."""
        asked, sides = list(dict.fromkeys(addresses)), tuple(tables)
        with self._lock:
            if any(a not in self._index for a in asked):
                self._refresh()
            said = self._read(asked)
        found = {}
        for address in asked:
            kept = {t: self._side(address, t) for t in sides}
            if address in said and all(p.exists() for p in kept.values()):
                trial = decode(address, said[address], {t: _parquet(p) for t, p in kept.items()})
                if trial is not None:
                    found[address] = trial
        return found

    def addresses(self) -> Set[str]:
        """The addresses of all trials that are kept now."""
        with self._lock:
            self._refresh()
            return set(self._index)

    def frame(self) -> pl.DataFrame:
        """Every trial in the store, one row for each flow, in the order of addresses."""
        import polars as pl

        with self._lock:
            self._refresh()
            said = self._read([a for a, (_, line) in self._index.items() if line])
            segments = sorted({path for path, line in self._index.values() if not line})
        frames = [_parquet(path).drop("trial_json") for path in segments]
        frames += [segment(said).drop("trial_json", strict=False)] if said else []
        if not frames:
            return pl.DataFrame()
        every = pl.concat(frames, how="diagonal_relaxed")
        return every.unique(["address", "flow"], keep="last").sort("address", "flow")

    def _refresh(self) -> None:
        """Reads what is new. Journals first: one that is folded meanwhile is a segment by then."""
        found = []
        for path in sorted((self.root / "journal").glob(f"*{journal.SUFFIX}")):
            lines, self._seen[path] = journal.lines(path, self._seen.get(path, 0))
            found += [(path, line) for line in lines]
        for path in sorted((self.root / "trials").glob("*.parquet")):
            if path not in self._seen:
                self._seen[path] = 0
                self._index |= dict.fromkeys(_addresses(path), (path, None))
        self._index |= {line.address: (path, line) for path, line in found}

    def _read(self, addresses: Sequence[str]) -> dict[str, bytes | str]:
        """The JSON of those that are kept."""
        while True:
            try:
                return self._read_now(addresses)
            except FileNotFoundError:  # somebody folded a journal that was listed
                gone = {path for path in self._seen if not path.exists()}
                self._index = {a: place for a, place in self._index.items() if place[0] not in gone}
                self._seen = {path: size for path, size in self._seen.items() if path not in gone}
                self._refresh()

    def _read_now(self, addresses: Sequence[str]) -> dict[str, bytes | str]:
        homes: dict[Path, list[tuple[str, Line | None]]] = {}
        for address in addresses:
            if address in self._index:
                path, line = self._index[address]
                homes.setdefault(path, []).append((address, line))
        said: dict[str, bytes | str] = {}
        for path, some in homes.items():
            lines = [line for _, line in some if line]
            if lines:
                said |= dict(zip((line.address for line in lines), journal.read(path, lines), strict=True))
            else:
                said |= self._of_segment(path, [address for address, _ in some])
        return said

    def _of_segment(self, path: Path, addresses: list[str]) -> Mapping[str, str]:
        last, lines = self._whole
        if last != path:
            self._whole = (path, {})
            return of_segment(path, addresses)
        if not lines:
            lines = of_segment(path)
            self._whole = (path, lines)
        return {address: lines[address] for address in addresses if address in lines}

    def _side(self, address: str, table: str) -> Path:
        return self.root / table / f"{address}.parquet"


class _Writer:
    """The writing half of a store, which outlives it until its journal is folded."""

    def __init__(self, root: Path) -> None:
        self._root, self._pid = root, os.getpid()
        self._journal: Journal | None = None

    def append(self, said: list[tuple[str, bytes]]) -> tuple[Path, list[Line]]:
        """Writes lines to this process's journal; says to which and where."""
        try:
            if self._journal is None or self._journal.pid != os.getpid():  # a forked child has its own
                self._journal = Journal(self._root / "journal")
            return self._journal.path, self._journal.append(said)
        except OSError as e:
            raise cannot_write(self._root, e) from None

    def full(self) -> Path | None:
        """The journal to fold, closed, where it has grown enough."""
        grown = self._journal is not None and self._journal.lines >= FOLD_AT and os.getpid() == self._pid
        return self._leave() if grown else None

    def close(self) -> None:
        """Folds what was written, and what killed processes left. Where that fails, journals stay and are read.

        A forked child leaves its journal to others: polars may not be used in it.
        """
        if self._leave() and os.getpid() == self._pid:
            for path in sorted((self._root / "journal").glob(f"*{journal.SUFFIX}")):
                fold(path, self._root)

    def _leave(self) -> Path | None:
        mine, self._journal = self._journal, None
        if mine is None or mine.pid != os.getpid():
            return None
        mine.close()
        return mine.path


def fold(path: Path, root: Path) -> None:
    """Turns a journal that nobody writes into a segment of the same name; at any moment one of the two is there.

    Where the disk refuses, the journal stays: it holds everything.
    """
    held = journal.claim(path)
    if held is None:
        return
    try:
        lines, _ = journal.lines(path)
        said = dict(zip((line.address for line in lines), journal.read(path, lines), strict=True))
        into = root / "trials" / f"{path.stem}.parquet"
        if said and not into.exists():
            frame = segment(said)
            if frame.height:
                _write(frame, into, sync=True)
        path.unlink()
    except (OSError, StoreError):
        return
    finally:
        os.close(held)


def _addresses(path: Path) -> Iterable[str]:
    if _OLD.fullmatch(path.stem):
        return [path.stem]
    column: list[str] = _parquet(path, ["address"])["address"].to_list()
    return column


def _parquet(path: Path, columns: list[str] | None = None) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(path, columns=columns)
    except FileNotFoundError:
        raise
    except (OSError, pl.exceptions.PolarsError) as e:
        raise StoreError(f"out: {path} cannot be read ({e}); delete it and run again") from None


def _write(frame: pl.DataFrame, path: Path, *, sync: bool = False) -> None:
    """Writes a table; a reader sees all of it or nothing. `sync`: it is on the disk when this returns, and nobody else writes it meanwhile."""
    part = path.with_suffix(".part" if sync else f".{os.getpid()}-{threading.get_ident()}.part")
    said = io.BytesIO()
    frame.write_parquet(said, row_group_size=ROW_GROUP)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(said.getbuffer())
            if sync:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except OSError as e:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise cannot_write(path, e) from None
