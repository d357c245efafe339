"""Side tables: what is too large for a row. One Parquet file for each trial, `samples/ADDRESS.parquet`, written whole or not at all."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape import writing
from tcpscape.errors import StoreError, shown
from tcpscape.names import component
from tcpscape.reading import files
from tcpscape.reading import tables as parquet
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.trial import Trial
from tcpscape.units import counted

if TYPE_CHECKING:
    import polars as pl

KIND = Kind("a table of samples", "delete it and run again", most=512 * MIB, error=StoreError)
COLUMNS = {
    "samples": ("t_ns", "flow"), "queue_samples": ("t_ns", "pipe", "stage", "depth", "packets"),
    "packets": ("t_ns", "flow", "received", "seq", "ack", "len"), "probe_samples": ("t_ns", "probe", "delay_ns"),
}  # fmt: skip
"""Columns of whole numbers that each side table has whatever the engine; all others are numbers too."""
SIDE_TABLES = ("samples", "queue_samples", "packets", "probe_samples")
"""Fields of a trial that are kept here, and the names of their directories."""
BESIDE = {"samples": "probe_samples"}
"""Table → the one that comes with it where the trial has that: only trials with probes do."""


def keep(trial: Trial, root: Path) -> None:
    """Writes the side tables that the trial has."""
    for table in SIDE_TABLES:
        frame = getattr(trial, table)
        if frame is not None:
            write(frame, writing.folder(root, table) / path(root, trial.address, table).name)


def path(root: Path, address: str, table: str) -> Path:
    """The file of a trial's side table."""
    return root / table / f"{component(address)}.parquet"


def complete(root: Path, address: str, tables: Iterable[str]) -> bool:
    """Whether all of these side tables of a trial are kept."""
    return all(os.path.exists(f"{root}/{table}/{address}.parquet") for table in tables)


def read_all(root: Path, trial: Trial, tables: Iterable[str]) -> dict[str, pl.DataFrame]:
    """These side tables of a trial, and those that come with them."""
    asked = list(tables)
    asked += [other for table in asked if (other := BESIDE.get(table)) and trial.probes and complete(root, trial.address, [other])]
    return {table: read(root, trial.address, table, len(trial.flows), len(trial.probes)) for table in asked}


def read(root: Path, address: str, table: str, flows: int, probes: int = 0) -> pl.DataFrame:
    """A side table of a trial with so many flows and probes.

    :raises StoreError: one line, where it is damaged: a column that all have is missing, or there is something else than numbers.
    """
    file = path(root, address, table)
    origin = Origin(str(file), KIND, "out")
    frame = parquet.from_parquet(files.content(file, KIND, "out"), origin)
    if missing := [name for name in COLUMNS[table] if name not in frame.columns]:
        origin.refuse(f"is damaged: there is no column {missing[0]}")
    if wrong := [name for name in frame.columns if not frame[name].dtype.is_numeric() or frame[name].dtype.is_decimal()]:
        origin.refuse(f"is damaged: column {shown(wrong[0])} holds {frame[wrong[0]].dtype} instead of numbers")
    if keys := [name for name in COLUMNS[table] if not frame[name].dtype.is_integer() or frame[name].null_count()]:
        origin.refuse(f"is damaged: column {keys[0]} holds something else than whole numbers")
    for column, count in (("flow", flows), ("probe", probes)):
        if column in frame.columns and not {*frame[column].unique().to_list()} <= {*range(count)}:
            origin.refuse(f"is damaged: column {column} holds other numbers than those of the trial's {counted(count, column)}")
    return frame


def write(frame: pl.DataFrame, file: Path) -> None:
    """Writes a table; a reader sees all of it or nothing."""
    content = io.BytesIO()
    frame.write_parquet(content)
    writing.whole(file, content.getbuffer())
