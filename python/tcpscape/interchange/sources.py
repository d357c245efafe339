"""Results at a path, as groups of trials: a result directory, a file of another tool, a directory of such files, a table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from tcpscape import interchange
from tcpscape.campaign import axes, record
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.errors import TcpscapeError, shown
from tcpscape.interchange import table
from tcpscape.interchange.base import MTU, InterchangeError, refuse
from tcpscape.reading import files as reading
from tcpscape.reading.files import Kind
from tcpscape.scenario.scenario import NEUTRAL, Scenario
from tcpscape.store import results
from tcpscape.store.kept import KeptTrials
from tcpscape.store.results import Store, is_flow_column, labelled_parts, labelled_rows
from tcpscape.store.rows import OF_TRIALS
from tcpscape.trial import FlowResult, Trial

if TYPE_CHECKING:
    import polars as pl

MOST_NAMES = 6
"""Conditions that a refusal names."""


@dataclass(frozen=True)
class SharedScenario:
    """The scenario of several trials, which is made when one of them is first asked for it."""

    scenarios: Sequence[Scenario]
    place: int

    @property
    def scenario(self) -> Scenario:
        """The scenario itself."""
        return self.scenarios[self.place]

    @cached_property
    def path(self) -> str:
        """Equal for scenarios of the same path and flows, whatever their congestion controls."""
        return self.scenario.with_cca(NEUTRAL).address()


class Identity(NamedTuple):
    """By what a trial is told from others, and what it has in common with its twins."""

    engine: str
    seed: int
    address: str
    shared: SharedScenario | None
    """Its scenario, None if not known."""
    seeded: bool
    """Whether the trial has a seed; a measurement of another tool has none."""

    @property
    def twin(self) -> tuple[str, str, int] | None:
        """Equal for trials that met the same random numbers on the same path, too: those of one engine; None if not known."""
        return (self.engine, self.shared.path, self.seed) if self.shared and self.seeded else None

    @property
    def drawn(self) -> tuple[str, int, int] | None:
        """Equal for trials of one seed on one engine whose paths may differ; of pooled scenarios the place is a part of it. None if not known."""
        return (self.engine, self.shared.place, self.seed) if self.shared and self.seeded else None

    @property
    def itself(self) -> str | None:
        """Equal for the same trial, kept or exported twice; None where it is not one of ours."""
        return self.address if self.seeded else None


@dataclass(frozen=True)
class SourceTrial:
    """A trial with its scenario, where that is known."""

    trial: Trial
    shared: SharedScenario | None = None
    seeded: bool = True
    """Whether the trial has a seed; a measurement of another tool has none."""

    @property
    def scenario(self) -> Scenario | None:
        """What it ran; None if not known."""
        return self.shared.scenario if self.shared else None

    @property
    def mtu(self) -> int:
        """The path's, bytes; 1500 where it is not known."""
        return self.scenario.mtu if self.scenario else MTU

    @property
    def path(self) -> str | None:
        """Equal for trials of the same path and flows, whatever their congestion controls; None if not known."""
        return self.shared.path if self.shared else None

    @property
    def identity(self) -> Identity:
        """What it has in common with its twins."""
        return Identity(self.trial.engine, self.trial.seed, self.trial.address, self.shared, self.seeded)


class CellTrials(Sequence[SourceTrial]):
    """The trials of a cell with their scenarios. Trials of a large directory are read when they are asked for."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        shared = [SharedScenario(cell.scenarios, i) for i in range(len(cell.scenarios))]
        self._scenarios = [scenario for scenario, trials in zip(shared, cell.runs, strict=True) for _ in range(len(trials))]

    @overload
    def __getitem__(self, place: int) -> SourceTrial: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[SourceTrial, ...]: ...
    def __getitem__(self, place: int | slice) -> SourceTrial | tuple[SourceTrial, ...]:
        if isinstance(place, slice):
            return tuple(map(SourceTrial, self.cell.trials[place], self._scenarios[place]))
        return SourceTrial(self.cell.trials[place], self._scenarios[place])

    def __len__(self) -> int:
        return len(self._scenarios)

    def __iter__(self) -> Iterator[SourceTrial]:
        return map(SourceTrial, self.cell.trials, self._scenarios)

    def identities(self) -> Iterator[Identity]:
        """What each has in common with its twins; no trial of a large directory is read for it."""
        trials = self.cell.trials
        if not isinstance(trials, KeptTrials):
            return (item.identity for item in self)
        return map(Identity, trials.engines, trials.seeds, trials.addresses, self._scenarios, itertools.repeat(True))


@dataclass(frozen=True)
class TrialGroup:
    """The trials of one condition under one congestion control."""

    items: Sequence[SourceTrial]
    cca: str
    at: Mapping[str, str] = field(default_factory=dict)
    """Axis → value as written."""
    part: str = ""
    """Of a study."""
    until_precise: bool = False
    """Whether runs were added until an interval was narrow enough, which makes intervals wider."""

    @property
    def name(self) -> str:
        """`cubic, jitter 8ms`."""
        return ", ".join([*([self.part] if self.part else []), self.cca, *(f"{k} {v}" for k, v in self.at.items())])

    @property
    def trials(self) -> Sequence[Trial]:
        """The trials themselves."""
        return self.items.cell.trials if isinstance(self.items, CellTrials) else tuple(item.trial for item in self.items)

    @property
    def caveats(self) -> Set[str]:
        """What limits the validity of any of them."""
        return self.items.cell.caveats if isinstance(self.items, CellTrials) else {c for trial in self.trials for c in trial.caveats}

    @property
    def pathless(self) -> Sequence[SourceTrial]:
        """Those whose path is not known."""
        return () if isinstance(self.items, CellTrials) else [item for item in self.items if item.shared is None]

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """What they ran, one for each of what is pooled; those that are known."""
        if isinstance(self.items, CellTrials):
            return tuple(self.items.cell.scenarios)
        return tuple({i.shared.place: i.shared.scenario for i in self.items if i.shared}.values())

    @property
    def specs(self) -> tuple[Mapping[str, Any], ...]:
        """Plain values of their scenarios, where a result directory has them."""
        return self.items.cell.specs if isinstance(self.items, CellTrials) else ()

    @property
    def addresses(self) -> Sequence[str]:
        """The address of each, where a result directory has them."""
        if not isinstance(self.items, CellTrials):
            return ()
        trials = self.items.cell.trials
        return trials.addresses if isinstance(trials, KeptTrials) else [trial.address for trial in trials]

    def has_path_of(self, other: TrialGroup) -> bool:
        """Whether the scenarios of both are the same but for names and congestion controls; False where they would have to be made to tell."""
        ours, theirs = self.specs, other.specs
        return bool(ours) and (ours == theirs or [*map(_without_controls, ours)] == [*map(_without_controls, theirs)])

    def values(self, of: Callable[[Trial], float]) -> Sequence[float]:
        """What a metric says of each, NaN where it is not known."""
        return self.items.cell.values_of(of) if isinstance(self.items, CellTrials) else [of(trial) for trial in self.trials]

    def identities(self) -> Iterator[Identity]:
        """What each has in common with its twins."""
        return self.items.identities() if isinstance(self.items, CellTrials) else (item.identity for item in self.items)

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for the same condition in another result, whatever its congestion control."""
        return (self.part, *sorted((k, axes.canonical(v)) for k, v in self.at.items()))


@dataclass(frozen=True)
class ResultSource:
    """The results at a path."""

    path: Path
    groups: tuple[TrialGroup, ...] = ()
    unknown: frozenset[str] = frozenset()
    """Columns of rows that the source does not contain."""
    table: pl.DataFrame | None = None
    """Instead of groups: a table that is none of ours."""

    @property
    def items(self) -> tuple[SourceTrial, ...]:
        """Every trial."""
        return tuple(i for g in self.groups for i in g.items)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Whatever weakens a result, each once."""
        return tuple(sorted({caveat for group in self.groups for caveat in group.caveats}))

    def rows(self) -> pl.DataFrame:
        """One row for each flow of each trial, with a column for each axis; what is not known is null."""
        if self.table is not None:
            return self.table
        return self._without_unknown(labelled_rows(self._labelled()))

    def parts(self) -> Iterator[pl.DataFrame]:
        """The rows in parts, which are never in memory together; each may have columns of its own."""
        if self.table is not None:
            yield self.table
        else:
            yield from map(self._without_unknown, labelled_parts(self._labelled()))

    def _labelled(self) -> Iterator[tuple[Mapping[str, str], Sequence[Trial]]]:
        return (({**({"part": g.part} if g.part else {}), **g.at}, g.trials) for g in self.groups)

    def _without_unknown(self, rows: pl.DataFrame) -> pl.DataFrame:
        import polars as pl

        return rows.with_columns(pl.lit(None, dtype=rows[c].dtype).alias(c) for c in sorted(self.unknown & set(rows.columns)))

    def samples(self) -> pl.DataFrame:
        """One row for each sample of each flow: part, axes, congestion control of the flow, engine, seed and address of the trial, then the sample.

        :raises InterchangeError: where no trial has samples.
        """
        import polars as pl

        frames = []
        for group in self.groups:
            labels = {**({"part": group.part} if group.part else {}), **group.at}
            for trial in group.trials:
                if trial.samples is not None and not trial.samples.is_empty():
                    of_trial = {**labels, "scenario": trial.scenario, "engine": trial.engine, "seed": trial.seed, "address": trial.address}
                    ccas = pl.Series([flow.cca for flow in trial.flows])
                    frames.append(
                        trial.samples.select(
                            *(pl.lit(value).alias(name) for name, value in of_trial.items()),
                            ccas.gather(trial.samples["flow"]).alias("cca"),
                            pl.all(),
                        )
                    )
        if not frames:
            refuse(self.path, "has no samples", "run it with --samples 100ms --out DIR")
        return pl.concat(frames, how="diagonal_relaxed")

    def only(self, cca: str | None = None, seed: int | None = None, at: Mapping[str, str] | None = None) -> ResultSource:
        """The trials of one congestion control, of one seed, at these values of axes; conditions without such an axis stay."""
        groups = [g for g in self.groups if cca in (None, g.cca) and all(k not in g.at or axes.same(g.at[k], v) for k, v in (at or {}).items())]
        matching = groups if seed is None else [chosen for g in groups if (chosen := _of_seed(g, seed)).items]
        if not matching and self.table is None:
            wishes = [*([cca] if cca else []), *(f"{k} {v}" for k, v in (at or {}).items()), *([f"seed {seed}"] if seed is not None else [])]
            choices = f"there are {listed(g.name for g in self.groups)}; seeds {_seeds(self.groups)}"
            refuse(self.path, f"has no trial of {', '.join(wishes)}", choices)
        return ResultSource(self.path, tuple(matching), self.unknown, self.table)


def _without_controls(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario's plain values without names and congestion controls; all of them where programs send."""
    if "programs" in spec:
        return dict(spec)
    senders = {part: [{k: v for k, v in sender.items() if k != "cca"} for sender in spec[part]] for part in ("flows", "transfers") if part in spec}
    return {"flows": [{}], **{k: v for k, v in spec.items() if k not in ("name", "about")}, **senders}


def listed(names: Iterable[str]) -> str:
    """The first few names."""
    texts = list(names)
    return " | ".join(texts[:MOST_NAMES]) + (f" and {len(texts) - MOST_NAMES} more" if len(texts) > MOST_NAMES else "")


def _of_seed(group: TrialGroup, seed: int) -> TrialGroup:
    """Its trials of one seed."""
    return replace(group, items=tuple(group.items[place] for place, identity in enumerate(group.identities()) if identity.seed == seed))


def _seeds(groups: Iterable[TrialGroup]) -> str:
    seeds = sorted({identity.seed for group in groups for identity in group.identities()})
    return ", ".join(map(str, seeds)) if len(seeds) < 8 else f"{seeds[0]} to {seeds[-1]}"


RESULTS = Kind("a result", "name a result directory, or a file of iperf3, Flent or a table", error=InterchangeError)
SAMPLES = ("samples",)
"""The side tables that metrics and other tools' files are made of."""


def load(path: Path, tables: tuple[str, ...] = ()) -> ResultSource:
    """The results at `path`; `tables` are the side tables (samples) to bring where a store without a manifest kept them.

    :raises TcpscapeError: one line, where nothing there can be read.
    """
    if not reading.exists(path, RESULTS):
        refuse(path, "is not there", "name a result directory, or a file of iperf3, Flent or a table")
    if not reading.folder(path, RESULTS):
        return _of_files(path, [path])
    if results.holds(path) and record.exists(path):
        kept = record.load(path)
        several = len({c.engine for o in kept.outcomes for c in o.cells}) > 1
        return ResultSource(path, tuple(_group(c, part, several) for part, outcome in kept.parts.items() for c in outcome.cells))
    if results.holds(path):
        with Store(path, create=False) as store:
            return ResultSource(path, _by_condition([SourceTrial(t) for t in _kept(store, tables)]))
    files = [f for f in reading.listed(path, RESULTS) if f.is_file() and _known(f)]
    if not files:
        inside = next((f for f in reading.listed(path, RESULTS) if (f / results.FILE).is_file()), None)
        fix = f"name {inside}, which has one" if inside else "name a directory that --out wrote, or one with iperf3's .json files"
        refuse(path, "has no results.sqlite, and no file of iperf3, Flent or a table in its place", fix)
    return _of_files(path, files)


def of_outcome(outcome: Outcome) -> ResultSource:
    """An outcome that was just measured, as :func:`load` would find it in a directory."""
    several = len({cell.engine for cell in outcome.cells}) > 1
    return ResultSource(Path(outcome.name), tuple(_group(cell, "", several) for cell in outcome.cells))


def _known(path: Path) -> bool:
    try:
        interchange.format_of(path)
    except TcpscapeError:
        return False
    return True


def _group(cell: Cell, part: str, several: bool) -> TrialGroup:
    """A cell as a group; its engine is an axis where there are several."""
    return TrialGroup(CellTrials(cell), cell.cca, {**cell.at, **({"engine": cell.engine} if several else {})}, part, cell.until_precise)


def _kept(store: Store, tables: tuple[str, ...]) -> list[Trial]:
    """Every trial of a store without a manifest, in the order of seeds."""
    addresses = sorted(store.addresses())
    trials = {**store.load_many(addresses), **store.load_many(addresses, tables)}
    return sorted(trials.values(), key=lambda t: (t.scenario, t.cca, t.seed))


def _by_condition(items: Sequence[SourceTrial]) -> tuple[TrialGroup, ...]:
    """Groups of the same scenario's name, engine and congestion control."""
    groups: dict[tuple[str, str, str], list[SourceTrial]] = {}
    for i in items:
        groups.setdefault((i.trial.scenario, i.trial.engine, i.trial.cca), []).append(i)
    scenarios, engines = ({key[place] for key in groups} for place in (0, 1))
    return tuple(
        TrialGroup(tuple(group), cca, ({"scenario": name} if len(scenarios) > 1 else {}) | ({"engine": engine} if len(engines) > 1 else {}))
        for (name, engine, cca), group in groups.items()
    )


def _of_files(path: Path, files: Sequence[Path]) -> ResultSource:
    """Files of other tools: one group for each congestion control, whatever the files are called."""
    imported = [interchange.read(f) for f in files]
    if len(imported) == 1 and imported[0].table is not None:
        return _of_table(path, imported[0].table)
    if any(f.table is not None for f in imported):
        refuse(path, "has tables among its files", "name one table, or a directory of measurements")
    items = [SourceTrial(t, seeded="seed" not in f.unknown) for f in imported for t in f.trials]
    by_cca: dict[str, list[SourceTrial]] = {}
    for i in items:
        by_cca.setdefault(i.trial.cca, []).append(i)
    groups = tuple(TrialGroup(tuple(group), cca) for cca, group in by_cca.items())
    return ResultSource(path, groups, frozenset[str]().union(*(f.unknown for f in imported)))


def _of_table(path: Path, rows: pl.DataFrame) -> ResultSource:
    """Our own rows become trials again; any other table stays a table."""
    if not table.is_ours(rows.columns):
        return ResultSource(path, table=rows)
    labels = [name for name in rows.columns if not is_flow_column(name)]
    known = {c for c in rows.columns if rows[c].null_count() < rows.height}
    parts = rows.partition_by(labels, maintain_order=True) if labels else [rows]
    groups: list[TrialGroup] = []
    for part in parts:
        at = {name: str(part[name][0]) for name in labels if part[name][0] is not None}
        trials = [_trial(flows.sort("flow").to_dicts(), path) for flows in part.partition_by("address", maintain_order=True)]
        study = at.pop("part", "")
        groups += [replace(g, at={**g.at, **at}, part=study) for g in _by_condition([SourceTrial(t, seeded="seed" in known) for t in trials])]
    return ResultSource(path, tuple(groups), frozenset(rows.columns) - known)


def _trial(rows: Sequence[Mapping[str, object]], path: Path) -> Trial:
    """A trial from its flows' rows; a trial without flows has one row that says nothing of one."""
    nested = {"rtt_ms", "cwnd", "limited_by"}
    flows = []
    places = [row["flow"] for row in rows]
    if len(set(places)) < len(places) or None in places:
        refuse(path, f"has a flow of the trial {shown(rows[0]['address'])} twice, or one without a number", "export the table again")
    without_flows = len(rows) == 1 and all(value is None for name, value in rows[0].items() if is_flow_column(name) and name not in OF_TRIALS)
    for row in () if without_flows else rows:
        for name in ("cca", "goodput_mbps"):
            if row[name] is None or not str(row[name]).strip():
                refuse(path, f"does not say {name} of flow {row['flow']} of the trial {shown(row['address'])}", "export the table again")
        fields: dict[str, object] = {k: v for k, v in row.items() if v is not None}
        fields |= {group: {k.removeprefix(f"{group}_"): v for k, v in row.items() if k.startswith(f"{group}_")} for group in nested}
        flows.append(FlowResult.of({"retransmits": 0, "spurious_retransmits": None, "seconds": row.get("duration") or 0.0, **fields}))
    first = rows[0]
    return Trial(
        scenario=str(first["scenario"]),
        cca="+".join(sorted({f.cca for f in flows})),
        address=str(first["address"]),
        seed=int(str(first["seed"] or 0)),
        engine=str(first.get("engine") or "table"),
        version=str(first.get("version") or ""),
        duration=float(str(first.get("duration") or max((f.stop_s for f in flows), default=0.0))),
        flows=tuple(flows),
        caveats=tuple(c for c in str(first.get("caveats") or "").replace(" | ", "\n").splitlines() if c),
    )
