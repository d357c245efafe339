"""Trials as rows: the JSON that a store keeps of each, and the table with one row for each flow.

What is too large for a row is a side table (:mod:`tcpscape.store.side_tables`).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from pydantic_core import CoreSchema, SchemaValidator, core_schema, from_json, to_json

from tcpscape import formats
from tcpscape.queue_reports import PLAIN, QueueReports
from tcpscape.store.side_tables import SIDE_TABLES
from tcpscape.trial import OF_NETWORKS, Cwnd, FlowResult, PlayerResult, ResponseResult, Rtt, Trial, plain

if TYPE_CHECKING:
    import polars as pl


TrialRow = tuple[str, str, bytes | None]
"""Address, the trial as JSON without its queues, the queues as compressed JSON; None where there are none."""
_STAMP = f'{{"{formats.FIELD}":'
_KNOWN = f"{_STAMP}{formats.FORMATS['trial']},"
"""How rows begin that have a format, and that have the newest."""
AT_A_TIME = 10_000
"""Trials after which a part of a table of all is made: they are in memory at a time, or those of a larger group."""
MOST_OF_LABEL = 1_000
"""Characters of a congestion control's label, which may have a file's path and parameters."""
HEAD = ("scenario", "seed", "engine", "version", "duration", "address", "hash", "events")
"""Columns of a trial; `caveats`, one a line, follow, then `flow` and the columns of that flow."""
OF_TRIALS = (*HEAD, "caveats", "flow")
"""Columns that are known of a trial without flows, too."""


def encode(trial: Trial) -> TrialRow:
    """Everything about a trial but its side tables."""
    values = trial.shown(queues=False)
    values["address"] = trial.address
    return trial.address, _json(values).decode(), _packed(trial.queues) if trial.queues else None


def _packed(queues: Sequence[Mapping[str, Any]]) -> bytes:
    """Reports of queues as a store keeps them."""
    return (queues if isinstance(queues, QueueReports) else QueueReports(_json(queues), is_packed=False)).packed()


def _json(values: object) -> bytes:
    return to_json(values, inf_nan_mode="constants", fallback=plain)


def decode(text: str | bytes, queues: object) -> Trial | None:
    """The trial of a row, without its side tables; None where it is damaged. :raises StoreError: for a row of a newer format."""
    try:
        if isinstance(text, str) and not is_known(text):
            formats.expect("trial", from_json(text, allow_partial=True), "out")
        trial: Trial = _reader().validate_json(text)
    except ValueError:
        return None
    if any(flow.goodput_mbps < 0 or len(flow.cca) > MOST_OF_LABEL for flow in trial.flows):
        return None
    if queues:
        if not isinstance(queues, bytes):
            return None
        object.__setattr__(trial, "queues", QueueReports(queues, is_packed=True))  # the value is not anybody's yet
    return trial


def is_known(text: str) -> bool:
    """Whether a row is of this version's format, or of the first one, which did not say so."""
    return text.startswith(_KNOWN) or not text.startswith(_STAMP)


def shared_facts(text: str) -> tuple[str | None, tuple[str, ...], str]:
    """Kernel, caveats and engine of a trial from a JSON array of them. :raises ValueError or TypeError: it is none."""
    kernel, caveats, engine = from_json(text)
    return kernel, tuple(caveats), engine


def beside(trial: Trial, tables: Mapping[str, pl.DataFrame]) -> Trial:
    """A trial that was just decoded, with its side tables."""
    for table, frame in tables.items():
        object.__setattr__(trial, table, frame)
    return trial


@functools.cache
def _reader() -> SchemaValidator:
    """Reads JSON right into a trial, which is several times as fast as from a dict. Numbers stay what they are: 10 is not made 10.0."""
    return SchemaValidator(_schema(Trial, {}))


def reader(of_trial: frozenset[str], of_flow: frozenset[str]) -> SchemaValidator:
    """Reads these fields alone of a trial and of its flows, in a fraction of the time. To look at another one is an AttributeError."""
    return SchemaValidator(_schema(Trial, {Trial: of_trial, FlowResult: of_flow}))


def _schema(kind: type[Any], some: Mapping[type[Any], frozenset[str]]) -> CoreSchema:
    """A dataclass, each field of the type that it says; keys of other versions are left out. `some`: of these dataclasses only these fields."""
    import polars as pl

    hints = get_type_hints(kind, localns={"pl": pl})
    known = [f for f in fields(kind) if kind not in some or f.name in some[kind]]
    arguments = [core_schema.dataclass_field(f.name, _optional(_of_type(hints[f.name], some), f)) for f in known]
    constructor = core_schema.dataclass_args_schema(kind.__name__, arguments)
    return core_schema.dataclass_schema(kind, constructor, [f.name for f in known], slots=True, frozen=True)


def _of_type(hint: object, some: Mapping[type[Any], frozenset[str]]) -> CoreSchema:
    """What a field of this type may be in JSON; numbers are finite."""
    parts = [part for part in get_args(hint) if part is not NoneType]
    if NoneType in get_args(hint):
        return core_schema.nullable_schema(_of_type(parts[0], some))
    if get_origin(hint) is tuple:
        return core_schema.tuple_variable_schema(_of_type(parts[0], some))
    if get_origin(hint) is Mapping:
        return core_schema.dict_schema(core_schema.str_schema(), _of_type(parts[1], some))
    if is_dataclass(hint) and isinstance(hint, type):
        return _schema(hint, some)
    return PLAIN.get(hint, core_schema.any_schema())


def _optional(schema: CoreSchema, field: Field[Any]) -> CoreSchema:
    """With the field's default."""
    if field.default is not MISSING:
        return core_schema.with_default_schema(schema, default=field.default)
    if field.default_factory is not MISSING:
        return core_schema.with_default_schema(schema, default_factory=field.default_factory)
    return schema


def flow_rows(trials: Iterable[Trial]) -> pl.DataFrame:
    """One row for each flow of each trial; nested values become `rtt_ms_p50`, `limited_by_app`, …

    A column has the same type whatever its values are, so that tables can be put together.
    """
    import polars as pl

    columns = _columns(list(trials))
    return pl.DataFrame([_series(name, values) for name, values in columns.items()])


def labelled_rows(groups: Iterable[tuple[Mapping[str, str], Sequence[Trial]]]) -> pl.DataFrame:
    """The same of groups of trials, with a column for each label of a group, unless a flow has one of that name."""
    import polars as pl

    frames = list(labelled_parts(groups))
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()


def labelled_parts(groups: Iterable[tuple[Mapping[str, str], Sequence[Trial]]]) -> Iterator[pl.DataFrame]:
    """The same in parts, each with columns of its own.

    Groups in a row that have the same columns are made one table at once, since polars takes a millisecond for each, until they have
    :data:`AT_A_TIME` trials, so that those of many groups are never in memory together. The trials of one group are.
    """
    import polars as pl

    for batch in _batches(groups):
        frame = flow_rows(t for _, trials in batch for t in trials)
        counts = [sum(len(t.flows) or 1 for t in trials) for _, trials in batch]
        new = [name for name in batch[0][0] if name not in frame.columns]
        texts = {name: [labels[name] for (labels, _), n in zip(batch, counts, strict=True) for _ in range(n)] for name in new}
        yield frame.with_columns(pl.Series(name, values, dtype=pl.String()) for name, values in texts.items())


def _batches(groups: Iterable[tuple[Mapping[str, str], Sequence[Trial]]]) -> Iterator[list[tuple[Mapping[str, str], Sequence[Trial]]]]:
    """Groups of the same columns, one behind the other, with their trials read once; those without trials are left out."""
    read = ((labels, tuple(trials)) for labels, trials in groups if trials)
    for _, alike in itertools.groupby(read, _layout):
        batch: list[tuple[Mapping[str, str], Sequence[Trial]]] = []
        count = 0
        for group in alike:
            batch.append(group)
            count += len(group[1])
            if count >= AT_A_TIME:
                yield batch
                batch, count = [], 0
        if batch:
            yield batch


def is_flow_column(name: str) -> bool:
    """Whether a column is of a trial or of its flows; any other one is a label."""
    return name in OF_TRIALS or name in _types() or name.startswith("limited_by_")


def column_types(names: Iterable[str]) -> dict[str, pl.DataType]:
    """The type of each of these columns that is of a trial or of its flows."""
    import polars as pl

    of = {**_types(), "flow": pl.Int64(), "caveats": pl.String()}
    shares = {name: pl.Float64() for name in names if name.startswith("limited_by_")}
    return {name: kind for name, kind in {**of, **shares}.items() if name in names}


def _layout(group: tuple[Mapping[str, str], Sequence[Trial]]) -> tuple[tuple[str, ...], tuple[str, ...] | None, list[str]]:
    """What decides on the columns of a group's rows and their order: its labels, what held its flows back, and :data:`OPTIONAL` fields."""
    labels, trials = group
    flows = [f for t in trials for f in t.flows]
    return tuple(labels), tuple(_reasons(flows)) if flows else None, _given(flows)


def _reasons(flows: Sequence[FlowResult]) -> dict[str, None]:
    """What held flows back, each once."""
    return dict.fromkeys(itertools.chain.from_iterable(map(attrgetter("limited_by"), flows)))


def _given(flows: Sequence[FlowResult]) -> list[str]:
    """The :data:`OPTIONAL` fields in which a flow differs from the default."""
    return [name for name in OPTIONAL if [*map(attrgetter(name), flows)].count(DEFAULTS[name]) < len(flows)]


def _columns(trials: Sequence[Trial]) -> dict[str, list[Any]]:
    """Values of each column, in the order in which a reader of the rows first meets it."""
    places = [(t, i, f) for t in trials for i, f in (enumerate(t.flows) if t.flows else ((0, None),))]
    if not places:
        return {}
    of_each = [t for t, _, _ in places]
    columns: dict[str, list[Any]] = {name: [*map(attrgetter(name), of_each)] for name in HEAD}
    columns["caveats"] = ["\n".join(t.caveats) for t in of_each]
    columns["flow"] = [i for _, i, _ in places]
    flows = [f for _, _, f in places]
    if not any(flows):
        return columns
    there = [f for f in flows if f]
    reasons, given, first = _reasons(there), _given(there), there[0].limited_by
    for field in fields(FlowResult):
        if field.name == "limited_by":
            columns |= {f"limited_by_{reason}": _shares(flows, reason) for reason in first}
        elif field.name in OPTIONAL and field.name not in given:
            continue
        else:
            of = attrgetter(field.name)
            values = [*map(of, there)] if len(there) == len(flows) else [of(f) if f else None for f in flows]
            columns |= _parts(field.name, values) if field.name in NESTED else {field.name: values}
    return columns | {f"limited_by_{reason}": _shares(flows, reason) for reason in reasons if reason not in first}


NESTED: Mapping[str, type[Any]] = {"rtt_ms": Rtt, "cwnd": Cwnd, "player": PlayerResult, "responses": ResponseResult}
"""Fields of a flow that are several columns."""
OPTIONAL = ("player", *OF_NETWORKS)
"""Fields that are columns only where one of the flows differs from their default."""
DEFAULTS: Mapping[str, Any] = {f.name: f.default for f in fields(FlowResult) if f.name in OPTIONAL}
"""Those defaults."""


def parts(group: str) -> dict[str, Any]:
    """The columns that a field of a flow becomes, `rtt_ms_p50`, each with its type; percentiles within a group are columns of their own."""
    columns: dict[str, Any] = {}
    for name, hint in get_type_hints(NESTED[group]).items():
        columns |= {f"{group}_{name}_{part}": of for part, of in get_type_hints(Rtt).items()} if hint is Rtt else {f"{group}_{name}": hint}
    return columns


def _parts(name: str, values: Sequence[Any]) -> dict[str, list[Any]]:
    """The columns of a field that is several."""
    columns: dict[str, list[Any]] = {}
    for part in fields(NESTED[name]):
        column = [getattr(value, part.name, None) for value in values]
        if isinstance(next((value for value in column if value is not None), None), Rtt):
            columns |= {f"{name}_{part.name}_{p.name}": [getattr(v, p.name, None) for v in column] for p in fields(Rtt)}
        else:
            columns[f"{name}_{part.name}"] = column
    return columns


def _shares(flows: Sequence[FlowResult | None], reason: str) -> list[float | None]:
    return [f.limited_by.get(reason) if f else None for f in flows]


def _series(name: str, values: list[Any]) -> pl.Series:
    """A column in the type of its field, or the widest that its values need."""
    import polars as pl

    dtype = _types().get(name, pl.Float64() if name.startswith("limited_by_") else pl.String())
    try:
        if dtype == pl.String and len(places := {value: place for place, value in enumerate(dict.fromkeys(values))}) < len(values) // 2:
            return pl.Series(name, list(places), dtype=dtype).gather([places[value] for value in values])  # a text that stands often is held once
        return pl.Series(name, values, dtype=dtype, strict=not dtype.is_float())
    except TypeError:
        return pl.Series(name, values, strict=False)


@functools.cache
def _types() -> dict[str, pl.DataType]:
    """The type of each column, from the fields of a flow and of a trial."""
    import polars as pl

    of = {int: pl.Int64(), float: pl.Float64(), bool: pl.Boolean()}
    nested = {column: hint for group in NESTED for column, hint in parts(group).items()}
    hints = {**get_type_hints(Trial, localns={"pl": pl}), **get_type_hints(FlowResult), **nested}
    plain = {name: next((t for kind, t in of.items() if kind in (hint, *get_args(hint))), pl.String()) for name, hint in hints.items()}
    return {name: kind for name, kind in plain.items() if name not in SIDE_TABLES}
