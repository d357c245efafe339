"""Metrics of commands behind a path: when they ended, what they wrote, what passed. Unknown of trials without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tcpscape.metrics.base import UNKNOWN
from tcpscape.trial import ProgramResult, Trial


def _is_failed(program: ProgramResult) -> bool:
    return program.status != 0 or program.timed_out


def completion(trial: Trial) -> float:
    """How long the command ran, s; unknown where it failed or was ended (:func:`failed`), which is no completion."""
    return trial.program.seconds if trial.program and not _is_failed(trial.program) else UNKNOWN


def failed(trial: Trial) -> float:
    """1 where the command ended with a status other than 0 or was ended, otherwise 0."""
    return float(_is_failed(trial.program)) if trial.program else UNKNOWN


def carried(direction: Literal["down", "up"]) -> Callable[[Trial], float]:
    """A metric: what left the path in a direction, with headers and all protocols, over the command's time, Mbit/s."""

    def of(trial: Trial) -> float:
        return float(getattr(trial.program, f"{direction}_mbps")) if trial.program else UNKNOWN

    return of


def output(name: str) -> Callable[[Trial], float]:
    """A metric: the number of this name in the command's output (:mod:`tcpscape.reading.numbers`); unknown where there is none."""

    def of(trial: Trial) -> float:
        return trial.program.values.get(name, UNKNOWN) if trial.program else UNKNOWN

    return of
