"""Metrics of video players: what a viewer sees. Each is the mean over the players of a trial, so that it is that of one viewer."""

from __future__ import annotations

from collections.abc import Callable

from tcpscape.metrics.base import UNKNOWN
from tcpscape.trial import PlayerResult, Trial


def mean_of(value: Callable[[PlayerResult], float | None]) -> Callable[[Trial], float]:
    """A metric: the mean of `value` over the players of a trial; unknown without players, and where `value` is None for all of them."""

    def of(trial: Trial) -> float:
        known = [v for flow in trial.flows if flow.player and (v := value(flow.player)) is not None]
        return sum(known) / len(known) if known else UNKNOWN

    return of
