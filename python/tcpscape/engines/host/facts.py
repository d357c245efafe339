"""What this machine allows the live engine, asked of its program once per process."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from tcpscape.engines.host.process import PROGRAM, HostProcess, is_supported
from tcpscape.errors import EngineError

ANSWER_S = 10.0
"""Most that the program may take to enter namespaces and look around, s; it takes some milliseconds."""


def unavailable(root: bool = False) -> str | None:
    """Why the program cannot run here, and the fix, in one line; None where it can. `root`: without a user namespace."""
    if not is_supported():
        return "it needs Linux; use --engine model"
    if not PROGRAM.exists():
        return "its program is not built; run `make setup`"
    try:
        basics(root)
    except EngineError as e:
        return reason(e)
    return None


def reason(error: EngineError) -> str:
    """What an error of the program says, without the engine's name in front."""
    return str(error).removeprefix("engine: ").removeprefix("live: ")


@functools.cache
def basics(root: bool = False) -> Mapping[str, Any]:
    """What can be had in namespaces at once, without a measurement.

    :raises EngineError: there are no namespaces for this user; the message has the reason and the fix.
    """
    with HostProcess("probe", {"root": root}) as process:
        return dict(process.result(ANSWER_S))
