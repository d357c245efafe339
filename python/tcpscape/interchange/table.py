"""Tables, one row for each flow of each trial: CSV and Parquet, as `results.Store.frame` has them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape.interchange import base
from tcpscape.interchange.base import ImportedFile, refuse

if TYPE_CHECKING:
    import polars as pl

CAVEATS = "caveats"
GUESS_ROWS = 10_000
"""Rows of a CSV that decide what kind a column is."""


def read_csv(path: Path) -> ImportedFile:
    """A table with a header; lines that begin with # are comments."""
    import polars as pl

    content = base.content(path)
    try:
        rows = pl.read_csv(io.BytesIO(content), comment_prefix="#", infer_schema_length=GUESS_ROWS)
    except pl.exceptions.PolarsError as e:
        refuse(path, f"is not a table: {_first_line(e)}", "give comma-separated columns with a header")
    return _recording(path, rows)


def read_parquet(path: Path) -> ImportedFile:
    """A Parquet table."""
    import polars as pl

    try:
        rows = pl.read_parquet(io.BytesIO(base.content(path)))
    except (pl.exceptions.PolarsError, OSError) as e:
        refuse(path, f"is not Parquet: {_first_line(e)}", "give a file with the ending .parquet that a tool wrote")
    return _recording(path, rows)


def write_csv(rows: pl.DataFrame) -> bytes:
    """The rows; unknown values are empty, line breaks between caveats become ` | `."""
    import polars as pl

    if CAVEATS in rows.columns:
        rows = rows.with_columns(pl.col(CAVEATS).str.replace_all("\n", " | ", literal=True))
    return rows.write_csv().encode()


def write_parquet(rows: pl.DataFrame) -> bytes:
    """The rows."""
    out = io.BytesIO()
    rows.write_parquet(out)
    return out.getvalue()


def _recording(path: Path, rows: pl.DataFrame) -> ImportedFile:
    if rows.is_empty():
        refuse(path, "has no rows", "give a table with results")
    return ImportedFile((), table=rows)


def _first_line(e: Exception) -> str:
    return (str(e) or type(e).__name__).splitlines()[0]
