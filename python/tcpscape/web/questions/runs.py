"""The trials of a question: its cases, their trials so far, and what they come to; a trial that several cells need runs once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tcpscape import metrics, stats
from tcpscape.campaign.campaign import Campaign, Case
from tcpscape.campaign.outcome import Cell, Outcome, gather
from tcpscape.errors import refuse
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Interval
from tcpscape.trial import Trial
from tcpscape.web.pool import Job, Work

Quantity = Literal["rate", "time", "share", "number"]
SI: Mapping[str, tuple[Quantity, float]] = {"Mbit/s": ("rate", 1e6), "ms": ("time", 1e-3), "1": ("share", 1.0)}
"""Unit of a metric → what its numbers are, in bit/s, s, 1, and the factor from there to these."""
SPREAD = "cv"
"""Name in blocks of the coefficient of variation of the goodput, which is of several trials."""


@dataclass(frozen=True)
class CurveMetric:
    """A metric of curves."""

    title: str
    source: str
    """Name in :data:`tcpscape.metrics.REGISTRY`."""
    quantity: Quantity
    factor: float

    @classmethod
    def of(cls, title: str, source: str) -> CurveMetric:
        """A metric of a trial in SI units."""
        return cls(title, source, *SI[metrics.REGISTRY[source].unit])


METRICS = {
    "goodput": CurveMetric.of("Goodput", "goodput"),
    "rtt": CurveMetric.of("RTT", "rtt"),
    "retransmissions": CurveMetric.of("Retransmissions", "retransmit_rate"),
    SPREAD: CurveMetric("Variation of the goodput (CV)", "goodput", "number", 1.0),
    "delay": CurveMetric.of("Delay added, 95th percentile", "added_rtt"),
}
"""Every metric of curves by its name in blocks, in the order of the page."""
MOST_FLOWS = 100_000
"""Most results of flows that a question keeps, about 4 kB each."""


@dataclass(frozen=True)
class Planned:
    """A case with the content address of its scenario."""

    case: Case
    address: str

    @classmethod
    def of(cls, case: Case) -> Planned:
        """The case as it is planned."""
        return cls(case, case.scenario.address())


@dataclass(frozen=True)
class Wanted:
    """A trial that is to run; two are equal where they are the same trial."""

    address: str
    seed: int
    planned: Planned = field(compare=False)
    urgency: int = field(compare=False)

    @classmethod
    def of(cls, planned: Planned, seed: int, urgency: int) -> Wanted:
        """The trial of a case with this seed."""
        return cls(planned.address, seed, planned, urgency)


def expect_room(trials: int, planned: Planned) -> None:
    """Refuses a question whose trials, all like this one, would fill the memory: they are kept until it is answered.

    :raises TcpscapeError: one line.
    """
    flows = trials * planned.case.scenario.flow_count
    if flows > MOST_FLOWS:
        refuse("seeds", f"the results of {flows:,} flows would be kept, and at most {MOST_FLOWS:,} are", "ask for fewer seeds, levels or flows")


class Runs:
    """The trials of a question by scenario and seed."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.done = 0
        """Trials that ran."""
        self._version = ""
        self._trials: dict[str, dict[int, Trial]] = {}

    def run(self, wanted: Iterable[Wanted]) -> Iterator[Wanted]:
        """Runs what is not there yet, and gives each as soon as it is.

        :raises TcpscapeError: one line, for a scenario that cannot run.
        :raises Cancelled: the question is stale.
        """
        jobs = [w for w in dict.fromkeys(wanted) if w.seed not in self._trials.get(w.address, {})]
        for place, trial in self.work.trials([Job(w.planned.case.scenario, w.seed, w.urgency) for w in jobs]):
            self._trials.setdefault(jobs[place].address, {})[trial.seed] = trial
            self.done, self._version = self.done + 1, trial.version
            yield jobs[place]

    def count(self, planned: Planned) -> int:
        """How many of the seeds 0, 1, 2 … are there without a gap: what is told of a case never depends on which trial ended first."""
        trials, n = self._trials.get(planned.address, {}), 0
        while n in trials:
            n += 1
        return n

    def trial(self, wanted: Wanted) -> Trial:
        """A trial that ran."""
        return self._trials[wanted.address][wanted.seed]

    def cell(self, planned: Planned, n: int) -> Cell:
        """The cell of a case with its first `n` trials."""
        case = planned.case
        return Cell(case.at, case.cca, case.engine, (case.scenario,), (self._first(planned, n),))

    def outcome(self, campaign: Campaign, every: Sequence[Planned], n: int) -> Outcome:
        """The outcome of a campaign whose cases have their first `n` trials."""
        return gather(campaign, [p.case for p in every], [self._first(p, n) for p in every], {"model": self._version})

    def _first(self, planned: Planned, n: int) -> tuple[Trial, ...]:
        trials = self._trials[planned.address]
        return tuple(trials[seed] for seed in range(n))


def values(trial: Trial) -> dict[str, float]:
    """Every metric of a trial, in SI units; NaN where it is not known."""
    return {name: metric.factor * metrics.find(metric.source).of(trial) for name, metric in METRICS.items() if name != SPREAD}


def estimates(cell: Cell, names: Iterable[str] = tuple(METRICS)) -> dict[str, Estimate]:
    """The median of metrics over the trials of a cell, and the goodput's CV, as `tcpscape sweep` prints them; SI units."""
    return {name: cell.cv() if name == SPREAD else _median(cell, METRICS[name]) for name in names}


def _median(cell: Cell, metric: CurveMetric) -> Estimate:
    """The median of what is known of a metric."""
    known = stats.known(cell.values(metric.source))
    estimate = stats.median(known) if known else Estimate(math.nan, math.nan, math.nan, 0)
    return Estimate(metric.factor * estimate.value, metric.factor * estimate.low, metric.factor * estimate.high, estimate.n)


def interval(estimate: Estimate) -> Interval:
    """An estimate as blocks have it."""
    return Interval(value=estimate.value, low=estimate.low, high=estimate.high)


def columns(rows: Sequence[dict[str, float]]) -> dict[str, np.ndarray[Any, Any]]:
    """Rows with the same names as columns of float64."""
    return {name: np.array([row[name] for row in rows], dtype="<f8") for name in (rows[0] if rows else {})}


def flat(of: dict[str, Estimate]) -> dict[str, float]:
    """Each estimate as its value under its name, and its ends under `NAME.low` and `NAME.high`."""
    row: dict[str, float] = {}
    for name, estimate in of.items():
        row |= {name: estimate.value, f"{name}.low": estimate.low, f"{name}.high": estimate.high}
    return row
