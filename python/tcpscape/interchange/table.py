"""Tables, one row for each flow of each trial: CSV and Parquet, as `results.Store.frame` has them."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape import writing
from tcpscape.interchange.base import ImportedFile, InterchangeError
from tcpscape.reading import files, tables
from tcpscape.reading.files import MIB, Kind, Origin

if TYPE_CHECKING:
    import polars as pl

CAVEATS = "caveats"
OURS = frozenset(("scenario", "cca", "address", "seed", "flow", "goodput_mbps"))
"""Columns by which a table of ours is known."""
SIGNED = frozenset(("player_qoe_mbps",))
"""Columns whose numbers may be below 0."""
CSV = Kind("a table", "give comma-separated columns with a header", most=256 * MIB, error=InterchangeError)
PARQUET = Kind("a table", "give a file with the ending .parquet that a tool wrote", most=512 * MIB, error=InterchangeError)


def read_csv(path: Path) -> ImportedFile:
    """A table with a header; lines that begin with # are comments. Columns that an export of ours has are of their own types."""
    origin = Origin(str(path), CSV)
    return ImportedFile((), table=_typed(tables.from_csv(files.content(path, CSV), origin, is_ours), origin))


def read_parquet(path: Path) -> ImportedFile:
    """A Parquet table."""
    origin = Origin(str(path), PARQUET)
    rows = tables.from_parquet(files.content(path, PARQUET), origin)
    if rows.is_empty():
        origin.refuse("has no rows", "give a table with results")
    return ImportedFile((), table=_typed(rows, origin))


def is_ours(columns: Collection[str]) -> bool:
    """Whether a table with these columns has flows of trials, as :meth:`Store.frame` has them."""
    return set(columns) >= OURS


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


def write_parquet_parts(parts: Iterable[pl.DataFrame]) -> bytes:
    """The rows of all parts, byte for byte as :func:`write_parquet` writes them; on the way, each part is a file.

    :raises StoreError: one line, where there is no place for these.
    """
    import polars as pl

    try:
        with tempfile.TemporaryDirectory(prefix="tcpscape-") as folder:
            written: list[Path] = []
            for number, part in enumerate(parts):
                written.append(Path(folder, f"{number}.arrow"))
                part.write_ipc(written[-1], compression="lz4")
            out = io.BytesIO()
            (pl.concat(map(pl.scan_ipc, written), how="diagonal_relaxed") if written else pl.LazyFrame()).sink_parquet(out)
            return out.getvalue()
    except OSError as e:
        raise writing.cannot_write(Path(os.environ.get("TMPDIR") or "/tmp"), e, "TMPDIR") from None


def _typed(rows: pl.DataFrame, origin: Origin) -> pl.DataFrame:
    from tcpscape.store.rows import column_types  # who reads a capture waits for none of it

    return tables.typed(rows, column_types(rows.columns), origin, SIGNED) if is_ours(rows.columns) else rows
