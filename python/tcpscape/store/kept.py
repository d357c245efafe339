"""Trials of a large result directory, read each time they are asked for: a million of them take no memory.

A :class:`Shelf` knows the addresses of all trials of a campaign, one cell behind the other; a :class:`KeptTrials` is a part of it and a sequence of
trials like any other. What a report asks of every trial (its seed, its goodput, its caveats) is read from the database once for all, without making
trials; the value of any other metric is computed from each trial, which is forgotten then. Both are kept beside the database
(:mod:`~tcpscape.store.columns`) for the next reader.
"""

from __future__ import annotations

import itertools
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from tcpscape.errors import StoreError
from tcpscape.store import side_tables
from tcpscape.store.columns import Columns
from tcpscape.store.database import uncollected
from tcpscape.store.excerpts import Excerpt
from tcpscape.store.rows import shared_facts
from tcpscape.store.summary import Kind, Summary
from tcpscape.trial import Trial

if TYPE_CHECKING:
    from tcpscape.store.results import Store

FIRSTS = 30_000
"""Most trials that are remembered: some 4 kB each."""
_SHORT = "SELECT address, json_extract(trial, '$.seed', '$.goodput_mbps', '$.kernel', '$.caveats', '$.engine') FROM trials"
"""Several paths give a JSON array of the values as they are written: numbers stay what they are to the last bit."""


class Shelf:
    """The trials of a campaign. Threads may share it."""

    def __init__(self, store: Store, tables: Sequence[str] = ()) -> None:
        """`tables`: the side tables to bring with a trial; where it has not all of them, one of them, or none."""
        choices = (
            tuple(tables),
            *((t,) for t in tables if len(tables) > 1),
            *([()] if tables else []),
        )  # an engine may not see all that was asked for
        self._store, self._tables = store, choices
        self.addresses: list[str] = []
        self._firsts: dict[int, Trial] = {}
        self._begins: list[int] = []
        """Where the runs of scenarios begin: tables and figures ask for the first trial of each again and again."""
        self._names: list[str] = []
        self._values: dict[Callable[[Trial], float], NDArray[np.float64]] = {}
        self._beside: dict[str, frozenset[str]] = {}
        self._block: tuple[int, list[Trial]] = (0, [])
        """The trials that were read last, and the place of the first."""
        self.root = store.root

    def put(self, runs: Iterable[Sequence[str]], names: Iterable[str] = ()) -> list[KeptTrials]:
        """Adds the trials of scenarios, given by their addresses, one scenario behind the other.

        `names`: those of the scenarios, where trials that were kept under another one (their addresses do not depend on it) get them.
        """
        kept = []
        for run in runs:
            self._begins.append(len(self.addresses))
            self.addresses += run
            kept.append(KeptTrials(self, self._begins[-1], len(self.addresses)))
        self._names += names
        return kept

    def load(self, addresses: Sequence[str]) -> list[Trial]:
        """Trials of it. :raises StoreError: one is damaged or gone."""
        trials: dict[str, Trial] = {}
        for tables in self._tables:
            if missing := [address for address in addresses if address not in trials]:
                trials |= self._store.load_many(missing, tables)
        if lost := next((address for address in addresses if address not in trials), None):
            raise missing_trial(self._store, lost)
        return [trials[address] for address in addresses]

    def one(self, place: int) -> Trial:
        """The trial at this place. The first one of each run is remembered."""
        if not self._firsts:
            begins = [begin for begin in self._begins[:FIRSTS] if begin < len(self.addresses)]
            self._firsts = dict(zip(begins, self.load([self.addresses[begin] for begin in begins]), strict=True))
        trial = self._firsts[place] if place in self._firsts else self.load([self.addresses[place]])[0]
        return self._named(place, trial)

    def _named(self, place: int, trial: Trial) -> Trial:
        """The trial at this place under the name of its scenario."""
        name = self._names[bisect_right(self._begins, place) - 1] if self._names else trial.scenario
        return trial if trial.scenario == name else replace(trial, scenario=name)

    def each(self, begin: int, end: int) -> Iterator[Trial]:
        """The trials from a place to another one, some at a time in memory. What follows them is read with them: mostly it is asked for next."""
        while begin < end:
            first, block = self._block
            if not first <= begin < first + len(block):
                ahead = begin + AT_A_TIME if self._tables == ((),) else min(end, begin + AT_A_TIME)
                first, block = self._block = begin, self.load(self.addresses[begin:ahead])
            some = block[begin - first : end - first]
            yield from map(self._named, itertools.count(begin), some) if self._names else some
            begin = first + len(block)

    def some(self, places: Sequence[int]) -> list[Trial]:
        """The trials at these places."""
        return list(map(self._named, places, self.load([self.addresses[place] for place in places])))

    @cached_property
    def _columns(self) -> Columns:
        return Columns(self.root, self.addresses)

    def rest(self) -> None:
        """Closes the database until the next trial is asked for."""
        self._store.close()

    @property
    def can_keep(self) -> bool:
        """Whether no writer is there."""
        return self._columns.can_keep

    def keep(self) -> None:
        """Keeps what was worked out of every trial beside the database, where nothing has changed there since."""
        self._columns.keep()

    @cached_property
    def summary(self) -> Summary:
        """What is known of every trial."""
        if kept := self._columns.summary():
            return kept
        try:
            summary = self._scanned()
        except (StoreError, LookupError, ValueError, TypeError):  # a row that is damaged, or has what SQLite's JSON has not (NaN)
            summary = Summary.of(self.each(0, len(self.addresses)))
        self._columns.add_summary(summary)
        return summary

    def _scanned(self) -> Summary:
        """The summary by one pass over the whole table."""
        count = len(self.addresses)
        seeds, goodputs, of_kinds = np.zeros(count, dtype=np.int64), np.zeros(count), np.full(count, NONE, dtype=np.uint32)
        kinds: dict[str, int] = {}

        def put(at: NDArray[Any], texts: list[str]) -> None:
            seeds[at], goodputs[at], of_kinds[at] = _facts(texts, kinds)

        self._scan(_SHORT, put)
        if (of_kinds == NONE).any():
            raise LookupError("a trial is missing")
        return Summary(seeds, goodputs, of_kinds, tuple(shared_facts(f"[{text}") for text in kinds))

    def kept_beside(self, table: str) -> frozenset[str]:
        """Names of the files of a side table."""
        if table not in self._beside:
            folder = self.root / table
            self._beside[table] = frozenset(os.listdir(folder)) if folder.is_dir() else frozenset()
        return self._beside[table]

    def values(self, of: Callable[[Trial], float]) -> NDArray[np.float64]:
        """What `of` says of every trial."""
        if of not in self._values:
            is_of_rows = self._tables == ((),)  # otherwise it may look at what is in other files than the database
            kept = self._columns.values(of) if is_of_rows else None
            self._values[of] = self._worked_out(of) if kept is None else kept
            if kept is None and is_of_rows:
                self._columns.add_values(of, self._values[of])
        return self._values[of]

    def _worked_out(self, of: Callable[[Trial], float]) -> NDArray[np.float64]:
        """The same from the trials."""
        try:
            return self._excerpted(of)
        except (StoreError, LookupError, ValueError, TypeError):  # a row that is damaged or missing, or `of` looks at more than it
            return np.fromiter(map(of, self.each(0, len(self.addresses))), float, len(self.addresses))

    def _excerpted(self, of: Callable[[Trial], float]) -> NDArray[np.float64]:
        """The same by one pass over the whole table, without making trials."""
        if self._tables != ((),):
            raise LookupError("what is beside the trials is read with them")
        excerpt, values, missing = Excerpt(of), np.zeros(len(self.addresses)), np.ones(len(self.addresses), dtype=bool)

        def put(at: NDArray[Any], texts: list[str]) -> None:
            values[at], missing[at] = [excerpt(text) for text in texts], False

        self._scan("SELECT address, trial FROM trials", put)
        if missing.any():
            raise LookupError("a trial is missing")
        return values

    def _scan(self, query: str, put: Callable[[NDArray[Any], list[str]], None]) -> None:
        """Goes once over the whole table in its own order: rows that are sought one by one take three times as long.

        `query`: an address and a text of each; `put` is called with the places on the shelf and the texts of those that stand on it.
        """
        places = dict(zip(self.addresses, range(len(self.addresses)), strict=True))
        if len(places) < len(self.addresses):
            raise LookupError("a trial is in several cells")

        def some(rows: list[tuple[str, str]]) -> None:
            at = np.fromiter((places.get(address, -1) for address, _ in rows), np.int64, len(rows))
            wanted = at >= 0
            put(at[wanted], [text for (_, text), is_wanted in zip(rows, wanted.tolist(), strict=True) if is_wanted])

        with uncollected():
            self._store.each_part(query, some)


AT_A_TIME = 1000
"""Trials that are in memory while all are gone through."""


NONE = 2**32 - 1
"""Stands for a trial that was not read."""


def _facts(texts: Sequence[str], kinds: dict[str, int]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Seeds, goodputs and places of kinds from rows of :data:`_SHORT`.

    `kinds`: what stands behind seed and goodput in a row → its place; those that are new are added. :raises ValueError or TypeError: a row is none.
    """
    import polars as pl

    seed, goodput, rest = pl.Series(texts, dtype=pl.String).str.splitn(",", 3).struct.unnest().get_columns()
    for text in rest.unique(maintain_order=True).to_list():
        kinds.setdefault(text, len(kinds))
    columns = (
        seed.str.slice(1).cast(pl.Int64, strict=False),
        goodput.cast(pl.Float64, strict=False),
        rest.replace_strict(kinds, return_dtype=pl.UInt32),
    )
    if any(column.null_count() for column in columns):
        raise ValueError("a row has no seed or no goodput")
    return columns[0].to_numpy(), columns[1].to_numpy(), columns[2].to_numpy()


class KeptTrials(Sequence[Trial]):
    """Trials of a shelf from a place to another one."""

    __slots__ = ("_begin", "_end", "_shelf")

    def __init__(self, shelf: Shelf, begin: int, end: int) -> None:
        self._shelf, self._begin, self._end = shelf, begin, end

    @overload
    def __getitem__(self, place: int) -> Trial: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Trial]: ...
    def __getitem__(self, place: int | slice) -> Trial | Sequence[Trial]:
        places = range(self._begin, self._end)[place]
        if isinstance(places, int):
            return self._shelf.one(places)
        if places.step == 1:
            return KeptTrials(self._shelf, places.start, max(places.start, places.stop))
        return tuple(self._shelf.one(at) for at in places)

    def __len__(self) -> int:
        return self._end - self._begin

    def __iter__(self) -> Iterator[Trial]:
        if len(self) == 1:
            return iter((self._shelf.one(self._begin),))
        return self._shelf.each(self._begin, self._end)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self.addresses))

    @property
    def addresses(self) -> Sequence[str]:
        """Their addresses."""
        return self._shelf.addresses[self._begin : self._end]

    @property
    def seeds(self) -> list[int]:
        """Their seeds."""
        seeds: list[int] = self._shelf.summary.seeds[self._begin : self._end].tolist()
        return seeds

    @property
    def engines(self) -> list[str]:
        """The engine of each, as it says itself."""
        names = [engine for *_, engine in self._shelf.summary.kinds]
        return [names[place] for place in self._shelf.summary.places[self._begin : self._end].tolist()]

    @property
    def goodputs(self) -> list[float]:
        """Their goodputs, Mbit/s."""
        goodputs: list[float] = self._shelf.summary.goodputs[self._begin : self._end].tolist()
        return goodputs

    @property
    def caveats(self) -> set[str]:
        """What limits the validity of any of them."""
        return {text for _, caveats, _ in self._kinds for text in caveats}

    @property
    def kernels(self) -> set[str]:
        """Names and releases of the real kernels that ran any of them."""
        return {kernel for kernel, _, _ in self._kinds if kernel}

    @property
    def _kinds(self) -> list[Kind]:
        return self._shelf.summary.among(self._begin, self._end)

    def having(self, table: str) -> list[Trial]:
        """Those that have a side table."""
        known = self._shelf.kept_beside(table)
        if not known:
            return []
        return self._shelf.some([i for i, a in enumerate(self.addresses, self._begin) if side_tables.path(self._shelf.root, a, table).name in known])

    def values(self, of: Callable[[Trial], float]) -> list[float]:
        """What `of` says of each."""
        values: list[float] = self._shelf.values(of)[self._begin : self._end].tolist()
        return values

    @property
    def shelf(self) -> Shelf:
        """Where they stand."""
        return self._shelf

    def beside(self, others: KeptTrials) -> KeptTrials:
        """These and the ones that follow them on the shelf."""
        return KeptTrials(self._shelf, self._begin, others._end)


def missing_trial(store: Store, address: str) -> StoreError:
    """The error for a trial that a manifest names and the store has not."""
    return StoreError(f"{store.root}: trial {address} of its manifest is missing; run again with the same --out")
