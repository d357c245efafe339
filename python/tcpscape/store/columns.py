"""Numbers of every trial of a large campaign, beside the trials: `columns/DIGEST.parquet`, so that the next reader need not go through all of them.

They are believed only where they are what going through the trials would give. The digest, which is the file's name, is of the trials' addresses in
their order, of the size and the last change of `results.sqlite` to the nanosecond, and of tcpscape's own source, which says how a number follows from
a trial. So the file is one of another name after any write, in a copy, and for another tcpscape: the numbers are worked out again then, as they are
while a writer is there, and where the file is damaged. Whoever works them out keeps them, where the directory can be written.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

import tcpscape
from tcpscape import writing
from tcpscape.errors import TcpscapeError
from tcpscape.reading import files, tables
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.reading.tables import LARGEST
from tcpscape.store.database import FILE, batches
from tcpscape.store.rows import shared_facts
from tcpscape.store.summary import Summary

if TYPE_CHECKING:
    import polars as pl

FOLDER = "columns"
KIND = Kind("numbers of trials", "delete it", most=512 * MIB)
OWN = Kind("a file of tcpscape", "install tcpscape again", most=16 * MIB)
SEEDS, GOODPUTS, KINDS = "seed", "goodput_mbps", "kind"
"""Columns of a summary, a kind as JSON. All others are values of metrics."""
AT_ONCE = 10_000
"""Addresses that are digested together."""
FINE_NS, COARSE_NS = 50_000_000, 2_500_000_000
"""How much later than the last change of the database a file must be made, so that another change cannot have the same time: the clock of files
ticks each 10 ms at most, and on file systems that keep no fractions of a millisecond (FAT, some network file systems) 2 s."""

Floats = NDArray[np.float64]


class Columns:
    """What is kept of the trials with these addresses, and what is to be kept. It looks at the directory when it is made."""

    def __init__(self, root: Path, addresses: Sequence[str]) -> None:
        self._root, self._addresses = root, addresses
        self._changed = _last_change(root)
        self._new: list[pl.Series] = []

    @property
    def can_keep(self) -> bool:
        """Whether no writer was there."""
        return self._changed is not None

    @functools.cached_property
    def _file(self) -> Path | None:
        """Its file; None where a writer is there."""
        if self._changed is None:
            return None
        digest = hashlib.sha256("\n".join([_source(), *map(str, self._changed), ""]).encode())
        for some in batches(self._addresses, AT_ONCE):
            digest.update("\n".join([*some, ""]).encode())
        return self._root / FOLDER / f"{digest.hexdigest()[:32]}.parquet"

    @functools.cached_property
    def _frame(self) -> pl.DataFrame | None:
        """What is kept; None where nothing is, or it is damaged."""
        if self._file is None or not self._file.is_file():
            return None
        with suppress(TcpscapeError):
            frame = tables.from_parquet(files.content(self._file, KIND), Origin(str(self._file), KIND))
            return frame if len(frame) == len(self._addresses) else None
        return None

    def summary(self) -> Summary | None:
        """What is kept of every trial; None where nothing is."""
        import polars as pl

        frame = self._frame
        if frame is None or not {SEEDS, GOODPUTS, KINDS} <= {*frame.columns} or any(frame[name].null_count() for name in (SEEDS, GOODPUTS, KINDS)):
            return None
        kinds = frame.schema[KINDS]
        if not (frame.schema[SEEDS] == pl.Int64() and frame.schema[GOODPUTS] == pl.Float64() and isinstance(kinds, pl.Enum)):
            return None
        goodputs = frame[GOODPUTS]
        with suppress(ValueError, TypeError):
            if goodputs.is_between(0, LARGEST).all():
                places = frame[KINDS].to_physical().to_numpy()
                return Summary(frame[SEEDS].to_numpy(), goodputs.to_numpy(), places, tuple(map(shared_facts, kinds.categories)))
        return None

    def values(self, of: Callable[..., float]) -> Floats | None:
        """What is kept of a metric's function; None where nothing is."""
        import polars as pl

        frame, name = self._frame, _name(of)
        if frame is None or frame.schema.get(name) != pl.Float64() or frame[name].null_count():
            return None
        values: Floats = frame[name].to_numpy()
        return values if not (np.abs(values) > LARGEST).any() else None

    def add_summary(self, summary: Summary) -> None:
        """What was worked out of every trial."""
        import polars as pl

        if summary.seeds.dtype == np.int64 and np.isfinite(summary.goodputs).all():
            texts = [to_json(kind).decode() for kind in summary.kinds]
            kinds = pl.Series(KINDS, texts, dtype=pl.Enum(texts)).gather(summary.places)
            self._new += [pl.Series(SEEDS, summary.seeds), pl.Series(GOODPUTS, summary.goodputs), kinds]

    def add_values(self, of: Callable[..., float], values: Floats) -> None:
        """What a metric's function says of every trial."""
        import polars as pl

        if name := _name(of):
            self._new.append(pl.Series(name, values))

    def keep(self) -> None:
        """Keeps what was added, unless the directory has changed since, or cannot be written."""
        import polars as pl

        if not self._new or self._file is None or self._changed is None:
            return
        frame = pl.DataFrame(self._new) if self._frame is None else self._frame.with_columns(self._new)
        content = io.BytesIO()
        frame.write_parquet(content)
        with suppress(TcpscapeError, OSError):
            folder = writing.folder(self._root, FOLDER)
            before = [file for file in folder.glob("*.parquet") if file != self._file]
            writing.whole(self._file, content.getbuffer())
            apart = COARSE_NS if self._changed[1] % 1_000_000 == 0 else FINE_NS
            if _last_change(self._root) != self._changed or self._file.stat().st_mtime_ns - self._changed[1] < apart:
                self._file.unlink()
            for file in before:
                if file.stat().st_mtime_ns < self._changed[1]:  # of what the database was before: nobody believes them any more
                    file.unlink()
        self._new = []


def _last_change(root: Path) -> tuple[int, int] | None:
    """Size and time, ns, of the last change of the database; None where it has a log: a writer is there, or was killed."""
    place = os.path.realpath(root / FILE)
    try:
        if os.path.lexists(f"{place}-wal"):
            return None
        status = Path(place).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


@functools.cache
def _source() -> str:
    """A digest of tcpscape's own source. :raises TcpscapeError: a file of it cannot be read."""
    root = Path(tcpscape.__file__).parent
    digest = hashlib.sha256(f"{tcpscape.__version__} {sys.version}".encode())
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\n".encode() + files.content(file, OWN))
    return digest.hexdigest()


def _name(of: Callable[..., float]) -> str:
    """A name for what a function computes: that of a function of tcpscape itself; empty for any other one."""
    if not isinstance(of, FunctionType) or not of.__module__.startswith("tcpscape."):
        return ""
    is_its_module_s = getattr(sys.modules.get(of.__module__), of.__qualname__, None) is of
    return f"{of.__module__}:{of.__qualname__}" if is_its_module_s else ""
