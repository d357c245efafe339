"""What the page is told where something is wrong: the line of the error and its parts, and the HTTP status that goes with it."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from tcpscape.errors import TcpscapeError

BAD, MISSING, METHOD, BUSY, BUG = 400, 404, 405, 429, 500
"""HTTP statuses: what was asked makes no sense, does not exist, is asked by the wrong method, is too much at once, and an error of ours."""


class MissingError(TcpscapeError):
    """A question, a page or a document that does not exist."""


class MethodError(TcpscapeError):
    """A GET of what is posted, or the other way round."""


class BusyError(TcpscapeError):
    """More at once than this process serves."""


STATUSES: dict[type[TcpscapeError], int] = {MissingError: MISSING, MethodError: METHOD, BusyError: BUSY}
"""Statuses of errors; that of every other one is :data:`BAD`."""
A_BUG = TcpscapeError("explorer: this is a bug of tcpscape; the terminal in which the explorer runs shows where, please report it")
"""What the page says after an exception that nobody meant; its traceback goes to stderr."""


def document(error: TcpscapeError) -> dict[str, Any]:
    """The parts of an error, and its line."""
    return {"field": error.field, "problem": error.problem, "fix": error.fix, "text": str(error)}


def status(error: TcpscapeError) -> int:
    """The HTTP status of an error."""
    return STATUSES.get(type(error), BAD)


def report(error: BaseException) -> dict[str, Any]:
    """Writes the traceback of a bug to stderr; returns what the page is told."""
    traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    return document(A_BUG)
