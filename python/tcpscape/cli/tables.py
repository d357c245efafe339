"""Tables and how they are printed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

WIDTH_WITHOUT_TERMINAL = 150


def console() -> Console:
    """stdout; without a terminal wide enough that tables are not folded."""
    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=WIDTH_WITHOUT_TERMINAL)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> Table:
    """A plain table; the first `left` columns are text, the others numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, name in enumerate(columns):
        made.add_column(name, justify="left" if i < left else "right", no_wrap=i >= left)
    for row in rows:
        made.add_row(*(str(cell) for cell in row))
    return made


def percent(fraction: float | None, digits: int = 0) -> str:
    """`12 %`."""
    return "–" if fraction is None or math.isnan(fraction) else f"{100 * fraction:.{digits}f} %"


def shares(limited_by: dict[str, float], least: float = 0.05) -> str:
    """`cwnd 80 %, app 20 %`: what held a flow back, the small causes left out."""
    said = [f"{cause} {percent(share)}" for cause, share in limited_by.items() if share >= least]
    return ", ".join(said) or "–"
