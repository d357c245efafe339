"""Metrics of commands behind a path: when they ended, what they wrote, what passed and how long it was on the path. Unknown of trials without one."""

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


def path_delay(direction: Literal["down", "up"], statistic: Literal["mean", "p99"]) -> Callable[[Trial], float]:
    """A metric: a statistic of the time that packets of all protocols were on the path in a direction, propagation and queues, ms."""

    def of(trial: Trial) -> float:
        delay = getattr(trial.program, f"{direction}_delay_ms", None)
        value = getattr(delay, statistic, None)
        return UNKNOWN if value is None else float(value)

    return of


def output(name: str) -> Callable[[Trial], float]:
    """A metric: the number of this name in the command's output (:mod:`tcpscape.reading.numbers`); unknown where there is none."""

    def of(trial: Trial) -> float:
        return trial.program.values.get(name, UNKNOWN) if trial.program else UNKNOWN

    return of
