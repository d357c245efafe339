"""Trials of a large result directory, read each time they are asked for: a million of them take no memory.

A :class:`Shelf` knows the addresses of all trials of a manifest, one cell behind the other; a :class:`KeptTrials` is a part of it and a sequence of
trials like any other. What a report asks of every trial (its seed, its goodput, its caveats) is read from the database once for all, without making
trials; the value of any other metric is computed from each trial, which is forgotten then.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, overload

from tcpscape.errors import StoreError
from tcpscape.store import side_tables
from tcpscape.store.database import batches
from tcpscape.store.rows import shared_facts
from tcpscape.trial import Trial

if TYPE_CHECKING:
    from tcpscape.store.results import Store

FIRSTS = 30_000
"""Most trials that are remembered: some 4 kB each."""
_SHORT = "SELECT address, json_extract(trial, '$.seed', '$.goodput_mbps', '$.kernel', '$.caveats', '$.engine') FROM trials"
"""Several paths give a JSON array of the values as they are written: numbers stay what they are to the last bit."""


@dataclass(frozen=True)
class Summary:
    """What is known of every trial of a shelf, in the order of its addresses."""

    seeds: array[int] = field(default_factory=lambda: array("q"))
    goodputs: array[float] = field(default_factory=lambda: array("d"))
    """Mbit/s."""
    kernels: array[int] = field(default_factory=lambda: array("L"))
    """Place of each trial's kernel in :attr:`names`."""
    caveats: array[int] = field(default_factory=lambda: array("L"))
    """Place of each trial's caveats in :attr:`texts`."""
    engines: array[int] = field(default_factory=lambda: array("L"))
    """Place of each trial's engine in :attr:`engine_names`."""
    names: dict[str | None, int] = field(default_factory=dict)
    texts: dict[tuple[str, ...], int] = field(default_factory=dict)
    engine_names: dict[str, int] = field(default_factory=dict)

    _known: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """What stands behind seed and goodput in a row → places of kernel, caveats and engine."""

    @classmethod
    def of(cls, count: int) -> Summary:
        """A summary of so many trials, to be filled by :meth:`put`."""
        return cls(array("q", [0]) * count, array("d", [0.0]) * count, array("L", [0]) * count, array("L", [0]) * count, array("L", [0]) * count)

    def put(self, place: int, text: str) -> None:
        """The trial at a place, from a JSON array of its seed, goodput, kernel, caveats and engine. :raises ValueError or TypeError: it is none."""
        seed, goodput, rest = text.split(",", 2)
        if rest not in self._known:
            self._known[rest] = self._places(*shared_facts(f"[{rest}"))
        self.seeds[place], self.goodputs[place] = int(seed[1:]), float(goodput)
        self.kernels[place], self.caveats[place], self.engines[place] = self._known[rest]

    def _places(self, kernel: str | None, caveats: tuple[str, ...], engine: str) -> tuple[int, int, int]:
        return (
            self.names.setdefault(kernel, len(self.names)),
            self.texts.setdefault(caveats, len(self.texts)),
            self.engine_names.setdefault(engine, len(self.engine_names)),
        )

    def add(self, trial: Trial) -> None:
        """Adds the next trial."""
        self.seeds.append(trial.seed)
        self.goodputs.append(trial.goodput_mbps)
        places = self._places(trial.kernel, trial.caveats, trial.engine)
        for column, place in zip((self.kernels, self.caveats, self.engines), places, strict=True):
            column.append(place)


class Shelf:
    """The trials of a manifest. Threads may share it."""

    def __init__(self, store: Store, addresses: Sequence[str], tables: Sequence[tuple[str, ...]] = ((),)) -> None:
        """`tables`: the side tables to bring with a trial; where it has not all of them, those of the next entry."""
        self._store, self.addresses, self._tables = store, addresses, tables
        self._firsts: dict[int, Trial] = {}
        self.begins: list[int] = []
        """Where the runs of scenarios begin: tables and figures ask for the first trial of each again and again."""
        self._values: dict[Callable[[Trial], float], array[float]] = {}
        self._beside: dict[str, frozenset[str]] = {}
        self.root = store.root

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
            begins = self.begins[:FIRSTS]
            self._firsts = dict(zip(begins, self.load([self.addresses[begin] for begin in begins]), strict=True))
        return self._firsts[place] if place in self._firsts else self.load([self.addresses[place]])[0]

    def each(self, begin: int, end: int) -> Iterator[Trial]:
        """The trials from a place to another one, some at a time in memory."""
        for some in batches(self.addresses[begin:end], AT_A_TIME):
            yield from self.load(some)

    @cached_property
    def summary(self) -> Summary:
        """What is known of every trial."""
        try:
            return self._scanned()
        except (StoreError, LookupError, ValueError, TypeError):  # a row that is damaged, or has what SQLite's JSON has not (NaN)
            summary = Summary()
            for trial in self.each(0, len(self.addresses)):
                summary.add(trial)
            return summary

    def _scanned(self) -> Summary:
        """The summary by one pass over the whole table in its own order: rows that are sought one by one take three times as long."""
        count = len(self.addresses)
        places = dict(zip(self.addresses, range(count), strict=True))
        if len(places) < count:
            raise LookupError("a trial is in several cells")
        summary = Summary.of(count)
        left = count

        def put(address: str, text: str) -> None:
            nonlocal left
            if (place := places.get(address)) is not None:
                summary.put(place, text)
                left -= 1

        self._store.each(_SHORT, put)
        if left:
            raise LookupError("a trial is missing")
        return summary

    def kept_beside(self, table: str) -> frozenset[str]:
        """Names of the files of a side table."""
        if table not in self._beside:
            folder = self.root / table
            self._beside[table] = frozenset(os.listdir(folder)) if folder.is_dir() else frozenset()
        return self._beside[table]

    def values(self, of: Callable[[Trial], float]) -> array[float]:
        """What `of` says of every trial."""
        if of not in self._values:
            self._values[of] = array("d", (of(trial) for trial in self.each(0, len(self.addresses))))
        return self._values[of]


AT_A_TIME = 1000
"""Trials that are in memory while all are gone through."""


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
        return self._shelf.summary.seeds[self._begin : self._end].tolist()

    @property
    def engines(self) -> list[str]:
        """The engine of each, as it says itself."""
        names = list(self._shelf.summary.engine_names)
        return [names[place] for place in self._shelf.summary.engines[self._begin : self._end]]

    @property
    def goodputs(self) -> list[float]:
        """Their goodputs, Mbit/s."""
        return self._shelf.summary.goodputs[self._begin : self._end].tolist()

    @property
    def caveats(self) -> set[str]:
        """What limits the validity of any of them."""
        texts = list(self._shelf.summary.texts)
        return {text for place in set(self._shelf.summary.caveats[self._begin : self._end]) for text in texts[place]}

    @property
    def kernels(self) -> set[str]:
        """Names and releases of the real kernels that ran any of them."""
        names = list(self._shelf.summary.names)
        return {name for place in set(self._shelf.summary.kernels[self._begin : self._end]) if (name := names[place])}

    def having(self, table: str) -> list[Trial]:
        """Those that have a side table."""
        known = self._shelf.kept_beside(table)
        return self._shelf.load([a for a in self.addresses if side_tables.path(self._shelf.root, a, table).name in known]) if known else []

    def values(self, of: Callable[[Trial], float]) -> list[float]:
        """What `of` says of each."""
        return self._shelf.values(of)[self._begin : self._end].tolist()

    def beside(self, others: KeptTrials) -> KeptTrials:
        """These and the ones that follow them on the shelf."""
        return KeptTrials(self._shelf, self._begin, others._end)


def missing_trial(store: Store, address: str) -> StoreError:
    """The error for a trial that a manifest names and the store has not."""
    return StoreError(f"{store.root}: trial {address} of its manifest is missing; run again with the same --out")
