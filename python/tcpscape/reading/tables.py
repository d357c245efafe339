"""Tables as Polars frames: CSV and Parquet, of a bounded number of cells, with columns of the types that are expected of them."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcpscape.errors import shown
from tcpscape.reading.files import Origin, decoded

if TYPE_CHECKING:
    import polars as pl

MOST_CELLS = 10_000_000
"""Of a CSV: while it is read, each takes some 16 bytes beside its text."""
MOST_VALUES = 50_000_000
"""Of a Parquet table: each takes some 8 bytes."""
GUESS_ROWS = 10_000
"""Rows of a CSV that decide what kind a column is."""
LARGEST = 1e18
"""Of the numbers of typed columns, so that sums of them stay whole numbers of 64 bits."""


def from_csv(raw: bytes, origin: Origin, is_text: Callable[[list[str]], bool] = lambda _: False) -> pl.DataFrame:
    """A table with a header; lines that begin with # are comments.

    :param is_text: whether the values of a table with these columns stay text; otherwise the values decide what a column is.
    :raises TcpscapeError: one line, for what is no table, and one without rows.
    """
    import polars as pl

    content = decoded(raw, origin).encode()
    if content.count(b",") + content.count(b"\n") > MOST_CELLS:
        origin.refuse(f"has more than {MOST_CELLS} cells", "split it, or give it as Parquet")
    try:
        header = pl.read_csv(io.BytesIO(content), comment_prefix="#", n_rows=0).columns
        guess = 0 if is_text(header) else GUESS_ROWS
        rows = pl.read_csv(io.BytesIO(content), comment_prefix="#", infer_schema=bool(guess), infer_schema_length=guess or None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as e:
        origin.refuse(f"is not a table: {_first_line(e)}", "give comma-separated columns with a header")
    return _with_rows(rows, origin)


def from_parquet(raw: bytes, origin: Origin) -> pl.DataFrame:
    """A Parquet table. :raises TcpscapeError: one line, for what is none, is damaged, or has too many values."""
    import polars as pl

    if len(raw) < 12 or raw[:4] != b"PAR1" or raw[-4:] != b"PAR1":
        origin.refuse("is not Parquet, or its end is missing")
    try:
        with _quiet():
            lazy = pl.scan_parquet(io.BytesIO(raw))
            count = int(lazy.select(pl.len()).collect().item()) * len(lazy.collect_schema())
            if count > MOST_VALUES:
                origin.refuse(f"has {count} values, and at most {MOST_VALUES} are read", "split it")
            return lazy.collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, MemoryError) as e:
        origin.refuse(f"is damaged, or no Parquet: {_first_line(e)}")


def typed(rows: pl.DataFrame, types: Mapping[str, pl.DataType], origin: Origin, signed: frozenset[str] = frozenset()) -> pl.DataFrame:
    """The table with these columns of these types, those that it has; numbers are finite and from 0 on, but in the columns `signed`.

    :raises TcpscapeError: one line with the first cell that is of another kind.
    """
    return rows.with_columns(_typed(rows[name], kind, origin, name in signed) for name, kind in types.items() if name in rows.columns)


def _typed(column: pl.Series, kind: pl.DataType, origin: Origin, is_signed: bool) -> pl.Series:
    import polars as pl

    try:
        text = column if column.dtype == pl.String else column.cast(pl.String)
        if kind == pl.Boolean():
            values: pl.Series = text.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean())
        elif kind == pl.String():
            return text
        else:
            values = (text if column.dtype == pl.String else column).cast(kind, strict=False)
    except pl.exceptions.PolarsError:
        origin.refuse(f"column {shown(column.name)} holds {column.dtype}, and {_NAMES[str(kind)]} belongs there")
    wrong: pl.Series = values.is_null() & text.is_not_null() & (text != "")
    if kind.is_numeric():
        wrong |= ~((values >= (-LARGEST if is_signed else 0)) & (values <= LARGEST)).fill_null(value=True)
    if wrong.any():
        place = int(wrong.arg_true()[0])
        problem = f"row {place + 1}, column {shown(column.name)}: {shown(text[place])} is not {_NAMES[str(kind)]}"
        origin.refuse(problem, "correct the cell, or export the table again")
    return values.rename(column.name)


_NAMES: Mapping[str, str] = {"Int64": "a whole number from 0 on", "Float64": "a number from 0 on", "Boolean": "true or false"}
"""What belongs into a column of each type."""


def _with_rows(rows: pl.DataFrame, origin: Origin) -> pl.DataFrame:
    if rows.is_empty():
        origin.refuse("has no rows", "give a table with results")
    return rows


def _first_line(e: BaseException) -> str:
    return (str(e) or type(e).__name__).partition("\n")[0]


_stderr = threading.Lock()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the process's stderr: where Polars meets damage that it did not expect, it writes a trace there beside its exception."""
    with _stderr:
        try:
            before = os.dup(2)
        except OSError:  # closed: nothing can be written there
            yield
            return
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.dup2(nowhere, 2)
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            os.close(nowhere)
