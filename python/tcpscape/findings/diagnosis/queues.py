"""The queue at a bottleneck whose buffer the packets do not show: the one of a few whose replay has the RTT and the goodput that were observed.

A FIFO that never overflowed, and a queue that is managed (AQM), have no size that losses would show, but each fills the path differently. Two runs of
each candidate are compared with the observation; the default, a FIFO of one bandwidth-delay product, stays unless another one is clearly nearer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tcpscape import stats
from tcpscape.findings.diagnosis.replay import observed_rtt, seen_goodput
from tcpscape.findings.diagnosis.runs import Lab, Run
from tcpscape.findings.diagnosis.scenario import PathValues

BDPS = (1.0, 0.5, 2.0, 4.0)
"""Sizes of a FIFO, in bandwidth-delay products; the first is the default."""
AQMS = ("fq_codel", "codel", "pie")
SEEDS = range(2)
NEARER = 0.03
"""Difference of the distance |ln RTT| + |ln goodput| from which another queue is nearer."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A candidate."""

    name: str
    buffer_bytes: float | None
    aqm: str | None

    def on(self, values: PathValues) -> PathValues:
        """The path with this queue."""
        return replace(values, buffer_bytes=self.buffer_bytes, aqm=self.aqm)


def chosen(lab: Lab) -> Lab:
    """The same runs with the queue that repeats the observation best, where the fit has a rate and no buffer."""
    values, seen = lab.fit.values, observed_rtt(lab.flow)
    if not values.rate_mbps or values.buffer_bytes or seen is None:
        return lab
    lab.settings.say("which queue is at the bottleneck")
    best, distance = None, math.inf
    for candidate in _candidates(values):
        trial = lab.with_values(candidate.on(values))
        away = _distance(trial.central(lab.own, SEEDS), seen, seen_goodput(lab))
        if away < distance - NEARER:
            best, distance = candidate, away
    return lab.with_values(best.on(values), queue=best.name) if best else lab


def _candidates(values: PathValues) -> Sequence[Queue]:
    """FIFOs and managed queues."""
    bdp = (values.rate_mbps or 0.0) * 1e3 / 8 * values.rtt_ms
    fifos = [Queue(f"a FIFO of {n:g} bandwidth-delay products", n * bdp, None) for n in BDPS]
    return [*fifos, *(Queue(name, None, name) for name in AQMS)]


def _distance(runs: Sequence[Run], rtt_ms: float, goodput: float | None) -> float:
    """|ln RTT| + |ln goodput| of the runs' medians against what was observed."""
    rtts, goodputs = stats.known([r.rtt_ms for r in runs]), [r.goodput_mbps for r in runs if r.goodput_mbps > 0]
    if not rtts or not goodputs:
        return math.inf
    away = abs(math.log(float(np.median(rtts)) / rtt_ms))
    return away + (abs(math.log(float(np.median(goodputs)) / goodput)) if goodput else 0.0)
