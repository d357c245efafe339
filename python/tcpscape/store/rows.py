"""Trials as lines and as rows: the JSON that a store keeps of each, and the table with one row for each flow."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from tcpscape.errors import StoreError
from tcpscape.trial import Cwnd, FlowResult, Rtt, Trial

if TYPE_CHECKING:
    import polars as pl

HEAD = ("scenario", "seed", "engine", "version", "duration", "address", "hash", "events")
"""Columns of a trial; `caveats`, one a line, follow, then `flow` and the columns of that flow."""
_ENCODER = json.JSONEncoder(check_circular=False, separators=(",", ":"))


def encode(trial: Trial) -> bytes:
    """Everything about a trial but its side tables, as one line of JSON."""
    return _ENCODER.encode(trial.to_dict()).encode()


def decode(address: str, text: bytes | str, tables: Mapping[str, pl.DataFrame]) -> Trial | None:
    """The trial of such a line; None where it is damaged."""
    said = _said(text)
    if said is None:
        return None
    return Trial(
        scenario=said["scenario"], cca=said["cca"], address=address, seed=said["seed"], engine=said["engine"], version=said["version"],
        duration=said["duration"], flows=tuple(FlowResult.of(f) for f in said["flows"]), caveats=tuple(said["caveats"]),
        hash=said["hash"], events=said["events"], queues=tuple(said["queues"]), kernel=said.get("kernel"), counters=said.get("counters", {}),
        check=said.get("check", {}), hook_cost=said.get("hook_cost", {}), **tables,
    )


def flow_rows(trials: Iterable[Trial]) -> pl.DataFrame:
    """One row for each flow of each trial; nested values become `rtt_ms_p50`, `limited_by_app`, …"""
    return _frame([row for t in trials for row in _rows({**t.to_dict(), "address": t.address})])


def segment(said: Mapping[str, bytes | str]) -> pl.DataFrame:
    """The rows of trials given as address → line, sorted by address, with the line in the column `trial_json` of the first flow."""
    rows: list[dict[str, Any]] = []
    for address in sorted(said):
        trial = _said(said[address])
        if trial is not None:
            mine = _rows({**trial, "address": address})
            text = said[address]
            mine[0]["trial_json"] = text if isinstance(text, str) else text.decode()
            rows += mine
    return _frame(rows)


def of_segment(path: Path, addresses: list[str] | None = None) -> dict[str, str]:
    """The lines of these trials in a segment, or of all. FileNotFoundError where there is no such file."""
    import polars as pl

    if not path.exists():
        raise FileNotFoundError(path)
    try:
        kept = pl.scan_parquet(path).filter(pl.col("trial_json").is_not_null())
        kept = kept if addresses is None else kept.filter(pl.col("address").is_in(addresses))
        return dict(kept.select("address", "trial_json").collect().iter_rows())
    except (OSError, pl.exceptions.PolarsError) as e:
        raise StoreError(f"out: {path} cannot be read ({e}); delete it and run again") from None


def _said(text: bytes | str) -> dict[str, Any] | None:
    try:
        said = json.loads(text)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a table whose columns have the same types whatever the values: segments can be read together, `trials/*.parquet`."""
    import polars as pl

    made = pl.DataFrame(rows, infer_schema_length=None)
    types = _types()
    for name, has in made.schema.items():
        wanted = types.get(name, pl.Float64() if name.startswith("limited_by_") else pl.String())
        if has == pl.Null or (has.is_integer() and wanted.is_float()):
            made = made.with_columns(pl.col(name).cast(wanted))
    return made


@functools.cache
def _types() -> dict[str, pl.DataType]:
    """The type of each column, from the fields of a flow and of a trial."""
    import polars as pl

    of = {int: pl.Int64(), float: pl.Float64(), bool: pl.Boolean()}
    nested = {f"rtt_ms_{f.name}": pl.Float64() for f in fields(Rtt)} | {f"cwnd_{f.name}": pl.Float64() for f in fields(Cwnd)}
    hints = {**get_type_hints(Trial, localns={"pl": pl}), **get_type_hints(FlowResult)}
    plain = {name: next((t for kind, t in of.items() if kind in (hint, *get_args(hint))), pl.String()) for name, hint in hints.items()}
    return plain | nested


def _rows(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    head = {**{name: said[name] for name in HEAD}, "caveats": "\n".join(said["caveats"])}
    return [{**head, "flow": i, **_flat(flow)} for i, flow in enumerate(said["flows"])] or [{**head, "flow": 0}]


def _flat(said: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in said.items():
        if isinstance(value, dict):
            flat |= {f"{key}_{k}": v for k, v in value.items()}
        else:
            flat[key] = value
    return flat
