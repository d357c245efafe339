"""The exceptions for errors that a user can cause, as one tree.

Every message is one line, `field: problem; fix`. The command line prints it and exits with status 2. The exception of a bug is not in this tree
and keeps its traceback.
"""

from __future__ import annotations

from typing import NoReturn

EXIT_USER_ERROR = 2
"""Exit status of the command line after a :class:`TcpscapeError`."""
EXIT_INTERRUPTED = 130
"""Exit status after Ctrl-C, by the shells' convention."""
INTERRUPTED = "interrupted; what was kept with --out stays"
"""Message after Ctrl-C of commands that have no better one."""


class TcpscapeError(Exception):
    """An error that the user can correct; the message is one line, `field: problem; fix`."""


class UnitError(TcpscapeError):
    """A quantity that cannot be read (`10 parsecs`)."""


class ScenarioError(TcpscapeError):
    """A scenario, flow, path or option that is not valid."""


class WordsError(ScenarioError):
    """Words that tc would refuse; the message names the wrong word."""


class EngineError(TcpscapeError):
    """An engine that is unknown, not built or not possible on this machine."""


class StoreError(TcpscapeError):
    """A result store that cannot be read or written."""


class StudyError(TcpscapeError):
    """A study that is unknown or malformed."""


def refuse(field: str, problem: str, fix: str, kind: type[TcpscapeError] = ScenarioError) -> NoReturn:
    """Raises `kind` with the message `field: problem; fix`."""
    raise kind(f"{field}: {problem}; {fix}")
