"""The process of a command line: how it begins, and how it ends."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from tcpscape.cli import streams
from tcpscape.controls import usercode
from tcpscape.errors import EXIT_OUTPUT

OBJECTS = 100_000
"""New objects after which Python looks for garbage. Modules make a hundred thousand that stay, and looking at them is a tenth of a short command."""


def run(answer: Callable[[list[str]], int]) -> NoReturn:
    """Answers the command line of this process and ends it; `answer` takes its arguments and gives the exit status."""
    gc.set_threshold(OBJECTS)
    streams.listen()
    usercode.environment = dict(os.environ)
    _settle_environment()
    usercode.owns_process = True
    streams.guard()
    status = answer(sys.argv[1:])
    streams.deafen()
    if (problem := streams.unwritten()) and status == 0:
        print(f"error: stdout: the output could not be written: {problem}; write it to another place", file=sys.stderr)
        status = EXIT_OUTPUT
    streams.leave(status)


def _settle_environment() -> None:
    """Takes out of the environment what would end the libraries that draw and compute, or slow them down: no figure of ours is shown on a screen.

    Matrices are small, so one thread of OpenBLAS multiplies them: more of them would spin, and add in an order that depends on their number. What a
    user has run gets none of this (:data:`usercode.environment`).
    """
    os.environ["MPLBACKEND"] = "agg"
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would look for them in every package that is installed
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not os.environ.get("POLARS_MAX_THREADS", "1").strip("0").isdigit():
        del os.environ["POLARS_MAX_THREADS"]
