"""The columns of every table that tcpscape writes: name, type, unit and what it is, as a Table Schema (specs.frictionlessdata.io/table-schema)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from tcpscape.campaign.outcome import FRAME
from tcpscape.formats import Column, ColumnKind, TableFormat
from tcpscape.schemas import generator
from tcpscape.store.rows import HEAD, NESTED
from tcpscape.store.side_tables import SIDE_TABLES
from tcpscape.studies.result import PUBLISHED
from tcpscape.trial import FlowResult, Rtt, Trial
from tcpscape.words import campaign, cliff, divergence

_KINDS: Mapping[object, ColumnKind] = {int: "integer", float: "number", bool: "boolean", str: "string"}
_UNITS = (
    ("_mbps", "Mbit/s"),
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_ns", "ns"),
    ("_s", "s"),
    ("rtt_ms_", "ms"),
    ("responses_time_ms_", "ms"),
    ("bytes_", "bytes"),
    ("max_rwnd", "bytes"),
    ("cwnd_", "packets"),
    ("duration", "s"),
    ("seconds", "s"),
)
"""End or beginning of a column's name → its unit."""


def _unit(name: str) -> str:
    return next((unit for part, unit in _UNITS if name.endswith(part) or (part.endswith("_") and name.startswith(part))), "")


def _of_fields(kind: type, names: Sequence[str], prefix: str = "") -> tuple[Column, ...]:
    """Columns that are fields of a class, from its types and docstrings."""
    about = generator.of_fields(kind)
    hints = get_type_hints(kind) if kind is not Trial else _HEAD
    return tuple(Column(f"{prefix}{n}", _kind(hints[n]), _unit(f"{prefix}{n}"), about[n].replace("None", "null")) for n in names)


def _of_group(kind: type[Any], prefix: str) -> tuple[Column, ...]:
    """Columns of a group of numbers; percentiles within it are columns of their own."""
    hints, names = get_type_hints(kind), [f.name for f in fields(kind)]
    each = ((_of_group(Rtt, f"{prefix}{name}_") if hints[name] is Rtt else _of_fields(kind, [name], prefix)) for name in names)
    return tuple(column for group in each for column in group)


def _kind(hint: object) -> ColumnKind:
    """Type of a column with values of a type, which may be `float | None`."""
    return _KINDS[next(kind for kind in (hint, *get_args(hint)) if kind in _KINDS)]


_HEAD: Mapping[str, object] = {
    "scenario": str,
    "seed": int,
    "engine": str,
    "version": str,
    "duration": float,
    "address": str,
    "hash": str,
    "events": int,
}
"""Types of the columns of a trial."""


def _flows() -> tuple[Column, ...]:
    """The columns of :func:`tcpscape.store.rows.flow_rows`."""
    rows = [*_of_fields(Trial, HEAD), Column("caveats", "string", "", "What limits its validity; a line each, in CSV with | between them.")]
    rows.append(Column("flow", "integer", "", "Number of the flow in the trial, from 0."))
    for field in fields(FlowResult):
        if field.name == "limited_by":
            about = "Share of the sending time during which this limited the flow (app, rwnd, cwnd, pacing, sndbuf, tsq), a fraction."
            rows.append(Column("limited_by_{cause}", "number", "", about))
        elif field.name in NESTED:
            rows += _of_group(NESTED[field.name], f"{field.name}_")
        else:
            rows += _of_fields(FlowResult, [field.name])
    return (*rows, Column("{axis}", "string", "", "Where the trial stands on an axis, as it was written; only of results with axes."))


TABLES: Mapping[str, TableFormat] = {
    table.name: table
    for table in (
        TableFormat("flows", "A row for each flow of each trial: outcome.flows(), tcpscape export --to csv or parquet.", _flows()),
        *SIDE_TABLES.values(),
        FRAME,
        campaign.CELLS,
        cliff.EDGES,
        cliff.LEVELS,
        PUBLISHED,
        divergence.CONDITIONS,
    )
}
"""Name → the table, in the order of the list that `tcpscape schema` prints."""
