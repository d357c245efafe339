"""What a metric is: a name, a unit, what it says, a function of a trial, and what of the trial has to be kept for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcpscape.controls.spelling import name_of
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

UNKNOWN = float("nan")
"""What a metric says where the source of a trial cannot see it."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What has to be kept of a trial besides its summary, in the words of `engines.Capture`. Intervals in ns; 0 is none."""

    samples_ns: int = 0
    queue_samples_ns: int = 0
    packets: bool = False

    @classmethod
    def of(cls, metrics: Iterable[Metric]) -> Needs:
        """What suffices for all of them: the shortest interval that one asks for."""
        some = [m.needs for m in metrics]
        return cls(_shortest(n.samples_ns for n in some), _shortest(n.queue_samples_ns for n in some), any(n.packets for n in some))


def _shortest(intervals: Iterable[int]) -> int:
    return min((i for i in intervals if i), default=0)


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a trial; NaN where its source cannot see it."""

    name: str
    unit: str
    about: str
    of: Callable[[Trial], float]
    needs: Needs = Needs()
    of_flows: bool = True
    """Whether it may be asked of some of the flows alone (`goodput:bbr`)."""

    def within(self, cca: str) -> Metric:
        """The same of the flows under one congestion control, `cubic` or `cubic:hystart=0`."""
        return replace(self, name=f"{self.name}:{cca}", about=f"{self.about}, {cca} alone", of=lambda trial: self.of(only(trial, cca)))


def under(trial: Trial, cca: str) -> list[int]:
    """Numbers of the flows under `cca`: a label, or a name that stands for all its settings."""
    return [i for i, flow in enumerate(trial.flows) if cca in (flow.cca, name_of(flow.cca))]


def only(trial: Trial, cca: str) -> Trial:
    """The trial with the flows under `cca` alone (a label, or a name that stands for all its settings), numbered anew from 0.

    Flows that no scenario has make an empty trial; queues stay those of all flows.
    """
    kept = under(trial, cca)
    flows = tuple(trial.flows[i] for i in kept)
    return replace(trial, flows=flows, samples=_rows(trial.samples, kept), packets=_rows(trial.packets, kept))


def _rows(frame: pl.DataFrame | None, kept: list[int]) -> pl.DataFrame | None:
    """The rows of these flows."""
    if frame is None:
        return None
    import polars as pl

    mine = frame.filter(pl.col("flow").is_in(kept))
    new = {old: i for i, old in enumerate(kept)}
    return mine.with_columns(pl.col("flow").replace_strict(new, return_dtype=frame.schema["flow"])) if kept else mine
