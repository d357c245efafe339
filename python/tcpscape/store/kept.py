"""Trials of a large result directory, read each time they are asked for: a million of them take no memory.

A :class:`Shelf` knows the addresses of all trials of a manifest, one cell behind the other; a :class:`KeptTrials` is a part of it and a sequence of
trials like any other. What a report asks of every trial (its seed, its goodput, its caveats) is read from the database once for all, without making
trials; the value of any other metric is computed from each trial, which is forgotten then.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from tcpscape.errors import StoreError
from tcpscape.store import side_tables
from tcpscape.store.rows import shared_facts
from tcpscape.trial import Trial

if TYPE_CHECKING:
    from tcpscape.store.results import Store

FIRSTS = 30_000
"""Most trials that are remembered: some 4 kB each."""
_SHORT = "SELECT address, json_extract(trial, '$.seed', '$.goodput_mbps', '$.kernel', '$.caveats', '$.engine') FROM trials"
"""Several paths give a JSON array of the values as they are written: numbers stay what they are to the last bit."""


Kind = tuple[str | None, tuple[str, ...], str]
"""What many trials have in common: kernel, caveats and engine."""


@dataclass(frozen=True)
class Summary:
    """What is known of every trial of a shelf, in the order of its addresses."""

    seeds: NDArray[Any]
    goodputs: NDArray[np.float64]
    """Mbit/s."""
    places: NDArray[Any]
    """Place of what each trial shares with others in :attr:`kinds`."""
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, trials: Iterable[Trial]) -> Summary:
        """The summary of trials that are read one by one."""
        kinds: dict[Kind, int] = {}
        rows = [(t.seed, t.goodput_mbps, kinds.setdefault((t.kernel, t.caveats, t.engine), len(kinds))) for t in trials]
        return cls(
            np.array([seed for seed, _, _ in rows]), np.array([g for _, g, _ in rows], dtype=float), np.array([k for *_, k in rows]), tuple(kinds)
        )

    def among(self, begin: int, end: int) -> list[Kind]:
        """The kinds of the trials from a place to another one, each once."""
        return [self.kinds[place] for place in set(self.places[begin:end].tolist())]


class Shelf:
    """The trials of a manifest. Threads may share it."""

    def __init__(self, store: Store, addresses: Sequence[str], tables: Sequence[tuple[str, ...]] = ((),)) -> None:
        """`tables`: the side tables to bring with a trial; where it has not all of them, those of the next entry."""
        self._store, self.addresses, self._tables = store, addresses, tuple(tables)
        self._firsts: dict[int, Trial] = {}
        self.begins: list[int] = []
        """Where the runs of scenarios begin: tables and figures ask for the first trial of each again and again."""
        self._values: dict[Callable[[Trial], float], array[float]] = {}
        self._beside: dict[str, frozenset[str]] = {}
        self._block: tuple[int, list[Trial]] = (0, [])
        """The trials that were read last, and the place of the first."""
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
        """The trials from a place to another one, some at a time in memory. What follows them is read with them: mostly it is asked for next."""
        while begin < end:
            first, block = self._block
            if not first <= begin < first + len(block):
                ahead = begin + AT_A_TIME if self._tables == ((),) else min(end, begin + AT_A_TIME)
                first, block = self._block = begin, self.load(self.addresses[begin:ahead])
            yield from block[begin - first : end - first]
            begin = first + len(block)

    @cached_property
    def summary(self) -> Summary:
        """What is known of every trial."""
        try:
            return self._scanned()
        except (StoreError, LookupError, ValueError, TypeError):  # a row that is damaged, or has what SQLite's JSON has not (NaN)
            return Summary.of(self.each(0, len(self.addresses)))

    def _scanned(self) -> Summary:
        """The summary by one pass over the whole table in its own order: rows that are sought one by one take three times as long."""
        count = len(self.addresses)
        places = dict(zip(self.addresses, range(count), strict=True))
        if len(places) < count:
            raise LookupError("a trial is in several cells")
        seeds, goodputs, of_kinds = np.zeros(count, dtype=np.int64), np.zeros(count), np.full(count, NONE, dtype=np.uint32)
        kinds: dict[str, int] = {}

        def put(rows: list[tuple[str, str]]) -> None:
            at = np.fromiter((places.get(address, -1) for address, _ in rows), np.int64, len(rows))
            wanted = at >= 0
            texts = [text for _, text in rows] if wanted.all() else [text for (_, text), is_wanted in zip(rows, wanted, strict=True) if is_wanted]
            at = at[wanted]
            seeds[at], goodputs[at], of_kinds[at] = _facts(texts, kinds)

        self._store.each_part(_SHORT, put)
        if (of_kinds == NONE).any():
            raise LookupError("a trial is missing")
        return Summary(seeds, goodputs, of_kinds, tuple(shared_facts(f"[{text}") for text in kinds))

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
