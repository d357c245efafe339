"""What the packets leave open about the bottleneck's queue, settled by replays: the candidate whose runs have what was observed.

A FIFO that never overflowed has no size that losses would show, and a managed queue (AQM) drops by itself: such drops look like random loss. Where
the fit has a rate and no buffer, or where a first look at the replay misses the observation, two runs of each candidate are compared with it by
goodput, RTT and the share of segments sent again: FIFOs of some sizes, managed queues, each with the fitted random loss and without. The fit's own
values stay unless another candidate is clearly nearer, and what was settled so is an assumption that the advice names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tcpscape import stats
from tcpscape.findings.diagnosis.replay import WITHIN, observed_rtt, seen_goodput
from tcpscape.findings.diagnosis.runs import Lab, Run
from tcpscape.findings.diagnosis.scenario import PathValues

BDPS = (1.0, 0.5, 2.0, 4.0)
"""Sizes of a FIFO, in bandwidth-delay products; the first is the default."""
AQMS = ("fq_codel", "codel", "pie")
SEEDS = range(2)
NEARER = 0.03
"""Difference of the distances from which another candidate is nearer."""
LEAST_RESENT = 0.002
"""Added to shares of segments sent again before their logarithm."""
WEIGHT_RESENT = 0.25
"""Of |ln| of the shares sent again, against 1 of |ln goodput| and |ln RTT|: how often a burst is repeated depends on little things."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A queue at the bottleneck, and the random loss beside it."""

    name: str
    values: PathValues

    @property
    def sentence(self) -> str:
        """What is assumed."""
        return f"The path is assumed to have {self.name}, because that replay is the nearest to what was observed: the packets do not show it."


@dataclass(frozen=True, slots=True)
class Seen:
    """What the replays are compared with; None is not known."""

    goodput_mbps: float | None
    rtt_ms: float | None
    resent: float | None
    """Segments sent again / segments."""

    def distance(self, runs: Sequence[Run]) -> float:
        """How far the medians of the runs are from it; infinite where nothing was carried."""
        goodput = _apart([r.goodput_mbps for r in runs], self.goodput_mbps)
        rtt = _apart([r.rtt_ms for r in runs], self.rtt_ms)
        resent = _apart([r.retransmits + LEAST_RESENT for r in runs], None if self.resent is None else self.resent + LEAST_RESENT)
        return goodput + rtt + WEIGHT_RESENT * resent


def _apart(values: Sequence[float], seen: float | None) -> float:
    """|ln| of the median over what was seen."""
    if not seen:
        return 0.0
    known = stats.known(values)
    middle = float(np.median(known)) if known else 0.0
    return abs(math.log(middle / seen)) if middle > 0 else math.inf


def chosen(lab: Lab) -> Lab:
    """The same runs with the candidate that repeats the observation best, where the fit leaves one open or misses."""
    values, seen = lab.fit.values, _seen(lab)
    is_open = bool(values.rate_mbps and not values.buffer_bytes and seen.rtt_ms)
    own = seen.distance(lab.central(lab.own, SEEDS))
    if not is_open and own <= math.log(WITHIN):
        return lab
    lab.settings.say("which queue is at the bottleneck")
    best, distance = None, math.inf if is_open else own
    for candidate in _candidates(values):
        away = seen.distance(lab.with_values(candidate.values).central(lab.own, SEEDS))
        if away < distance - NEARER:
            best, distance = candidate, away
    return lab.with_values(best.values, best.sentence) if best else lab


def _seen(lab: Lab) -> Seen:
    """What was observed."""
    resent, packets = lab.flow.facts.get("retransmissions"), lab.flow.facts.get("segments") or lab.flow.packets
    share = resent / packets if resent is not None and packets and lab.flow.vantage == "sender" else None
    return Seen(seen_goodput(lab), observed_rtt(lab.flow), share)


def _candidates(values: PathValues) -> list[Candidate]:
    """Queues on the fitted path; then without a jitter that keeps the order, which may be the flow's own queue."""
    found = _queues(values)
    if values.order != "reorder" and values.calm != values:
        found += [Candidate("no jitter", values.calm), *(replace(c, name=f"{c.name} and no jitter", values=c.values.calm) for c in found)]
    return found


def _queues(values: PathValues) -> list[Candidate]:
    """Queues with the fitted loss, then without it."""
    rate = values.rate_mbps
    if not rate:
        return [Candidate("no random loss", replace(values, loss=0.0))] if values.loss else []
    bdp = rate * 1e3 / 8 * values.rtt_ms
    own = [("the fitted buffer", replace(values, aqm=None))] if values.buffer_bytes else []
    sizes = [(f"a FIFO of {_products(n)}", replace(values, buffer_bytes=n * bdp)) for n in BDPS]
    managed = [(f"the queue {name}", replace(values, buffer_bytes=None, aqm=name)) for name in AQMS]
    every = [Candidate(*item) for item in (*own, *sizes, *managed)]
    lossless = [Candidate(f"{c.name} and no random loss", replace(c.values, loss=0.0)) for c in every] if values.loss else []
    return [*every, *lossless]


def _products(count: float) -> str:
    """So many bandwidth-delay products, in words."""
    return "one bandwidth-delay product" if count == 1 else f"{count:g} bandwidth-delay products"
