"""Side tables: what is too large for a row. One Parquet file for each trial, `samples/ADDRESS.parquet`, written whole or not at all."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape import writing
from tcpscape.errors import StoreError
from tcpscape.names import component
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

SIDE_TABLES = ("samples", "queue_samples", "packets")
"""Fields of a trial that are kept here, and the names of their directories."""


def keep(trial: Trial, root: Path) -> None:
    """Writes the side tables that the trial has."""
    for table in SIDE_TABLES:
        frame = getattr(trial, table)
        if frame is not None:
            write(frame, path(root, trial.address, table))


def path(root: Path, address: str, table: str) -> Path:
    """The file of a trial's side table."""
    return root / table / f"{component(address)}.parquet"


def complete(root: Path, address: str, tables: Iterable[str]) -> bool:
    """Whether all of these side tables of a trial are kept."""
    return all(os.path.exists(f"{root}/{table}/{address}.parquet") for table in tables)


def read(file: Path) -> pl.DataFrame:
    """A side table. :raises StoreError: one line, where it is damaged."""
    import polars as pl

    try:
        return pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as e:
        why = str(e).partition("\n")[0]
        raise StoreError(f"out: {file} cannot be read ({why}); delete it and run again") from None


def write(frame: pl.DataFrame, file: Path) -> None:
    """Writes a table; a reader sees all of it or nothing."""
    content = io.BytesIO()
    frame.write_parquet(content)
    writing.whole(file, content.getbuffer())
