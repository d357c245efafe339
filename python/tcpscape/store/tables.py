"""Side tables: what is too large for a row. One Parquet file for each trial, `samples/ADDRESS.parquet`, written whole or not at all."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape.errors import StoreError
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
    return root / table / f"{address}.parquet"


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


def write_csv(frame: pl.DataFrame, file: Path) -> None:
    """Writes a table as CSV, and its directory where there is none.

    :raises StoreError: where it cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(frame.write_csv(), "utf-8")
    except OSError as e:
        raise cannot_write(file, e) from None


def write(frame: pl.DataFrame, file: Path) -> None:
    """Writes a table; a reader sees all of it or nothing."""
    part = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
    content = io.BytesIO()
    frame.write_parquet(content)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content.getbuffer())
        part.replace(file)
    except OSError as e:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise cannot_write(file, e) from None


def cannot_write(place: Path, e: OSError) -> StoreError:
    """The line for a place that cannot be written."""
    return StoreError(f"out: cannot write {place}: {e.strerror}; free some space, or choose another directory")
