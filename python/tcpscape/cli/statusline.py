"""A line at the bottom of the terminal while another program uses the rest of it.

The terminal scrolls only above the line (DECSTBM), as package managers do it, so that what the program writes never mixes with it. A program that
takes the whole screen covers it for as long. Source: ECMA-48 (CUP, EL), DEC's VT510 manual (DECSTBM, DECSC, DECRC).
"""

from __future__ import annotations

import os
import sys

from tcpscape.cli.terminal import moves_no_cursor

LEAST_ROWS, LEAST_COLUMNS = 5, 20
"""Below this size of the terminal there is no line."""


class StatusLine:
    """The line; nothing where stderr is no terminal, or is not to be moved about in. A context manager."""

    def __init__(self, *, wanted: bool = True) -> None:
        self.is_shown = wanted and sys.stderr.isatty() and not moves_no_cursor()
        """Whether there is one."""
        self._rows = 0

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._rows:
            _write(f"\x1b7\x1b[r\x1b[{self._rows};1H\x1b[K\x1b8")
            self._rows = 0

    def show(self, text: str) -> None:
        """Writes the line anew, cut to the terminal's width."""
        if not self.is_shown:
            return
        try:
            columns, rows = os.get_terminal_size(2)
        except OSError:
            return
        if rows < LEAST_ROWS or columns < LEAST_COLUMNS:
            return
        if rows != self._rows:
            _write(f"\n\x1b7\x1b[1;{rows - 1}r\x1b8\x1b[1A")
            self._rows = rows
        _write(f"\x1b7\x1b[{rows};1H\x1b[K\x1b[2m{text[:columns]}\x1b[0m\x1b8")


def _write(text: str) -> None:
    """In one piece, so that the program's own writes do not come between."""
    sys.stderr.write(text)
    sys.stderr.flush()
