"""Tables and how they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tcpscape.tables import PLAIN_WIDTH, Table, percent, shares

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from rich.console import Console
    from rich.table import Table as RichTable

    from tcpscape.trial import Trial

__all__ = ["console", "hook_cost", "keep", "percent", "shares", "show", "table"]


def console() -> Console:
    """stdout; without a terminal wide enough that tables are not folded."""
    from rich.console import Console

    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> RichTable:
    """A plain table for the terminal; the first `left` columns are text, the others numbers."""
    return Table(columns, [[str(cell) for cell in row] for row in rows], left).rich()


def show(table: Table) -> None:
    """Prints a table with its title and its notes."""
    screen = console()
    screen.print(f"[bold]{table.title}[/bold]")
    screen.print(table.rich())
    for note in table.notes:
        screen.print(note)


def keep(frame: pl.DataFrame, file: Path) -> None:
    """Writes a table as CSV.

    :raises StoreError: where it cannot be written.
    """
    from tcpscape.store.tables import cannot_write

    try:
        file.write_text(frame.write_csv(), "utf-8")
    except OSError as e:
        raise cannot_write(file, e) from None


def hook_cost(trials: Sequence[Trial]) -> str:
    """How slow a congestion control in Python was, measured in these trials; nothing where there is none."""
    acks, hooks, whole = (sum(t.hook_cost.get(k, 0) for t in trials) for k in ("acks", "hooks_s", "run_s"))
    if not acks or whole <= hooks:
        return ""
    return f"{trials[0].cca}: Python takes {1e6 * hooks / acks:.2g} µs an ACK; the trials ran {whole / (whole - hooks):.0f} × slower for it"
