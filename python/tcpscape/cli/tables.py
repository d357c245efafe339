"""Tables and how they are printed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from rich.console import Console
    from rich.table import Table

    from tcpscape.trial import Trial

WIDTH_WITHOUT_TERMINAL = 150


def console() -> Console:
    """stdout; without a terminal wide enough that tables are not folded."""
    from rich.console import Console

    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=WIDTH_WITHOUT_TERMINAL)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> Table:
    """A plain table; the first `left` columns are text, the others numbers."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, name in enumerate(columns):
        made.add_column(name, justify="left" if i < left else "right", no_wrap=i >= left)
    for row in rows:
        made.add_row(*(str(cell) for cell in row))
    return made


def keep(frame: pl.DataFrame, file: Path) -> None:
    """Writes a table as CSV.

    :raises StoreError: where it cannot be written.
    """
    from tcpscape.store.journal import cannot_write

    try:
        file.write_text(frame.write_csv(), "utf-8")
    except OSError as e:
        raise cannot_write(file, e) from None


def percent(fraction: float | None, digits: int = 0) -> str:
    """`12 %`; ∞ without a bound."""
    if fraction is None or math.isnan(fraction):
        return "–"
    return "∞" if math.isinf(fraction) else f"{100 * fraction:.{digits}f} %"


def shares(limited_by: dict[str, float], least: float = 0.05) -> str:
    """`cwnd 80 %, app 20 %`: what held a flow back, the small causes left out."""
    said = [f"{cause} {percent(share)}" for cause, share in limited_by.items() if share >= least]
    return ", ".join(said) or "–"


def hook_cost(trials: Sequence[Trial]) -> str:
    """How slow a congestion control in Python was, measured in these trials; nothing where there is none."""
    acks, hooks, whole = (sum(t.hook_cost.get(k, 0) for t in trials) for k in ("acks", "hooks_s", "run_s"))
    if not acks or whole <= hooks:
        return ""
    return f"{trials[0].cca}: Python takes {1e6 * hooks / acks:.2g} µs an ACK; the trials ran {whole / (whole - hooks):.0f} × slower for it"
