"""The largest jitter that a busy queue hides: packets leave it at its rate whenever they came, so that one which keeps their order shows nowhere."""

from __future__ import annotations

import math

import numpy as np

from tcpscape.findings.diagnosis.path import base, before
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.bottleneck import met_idle
from tcpscape.findings.diagnosis.path.state import Fit, hides_jitter
from tcpscape.stats.estimate import Floats
from tcpscape.stats.special import log_ndtr

SHORTEST = 500
"""Packets that met the shortest queues, whose being in time bounds a jitter: others add little."""
LEAST_LOOKS = 3
"""Packets that met an idle bottleneck, from which on their delays bound a jitter."""
UNCUT = 3.0
"""Deviations that a jitter of normal delays is below their mean at the most, if none is cut off at nothing."""


def kept_in_order(f: Fit) -> float:
    """The largest standard deviation, ms, of a jitter before the queue that a busy queue hides where it keeps the order; 0 where none can be hidden.

    Packets that met an idle bottleneck show it, behind which the others leave evenly. Where there are few, a packet that met a queue came no later
    than that queue took to drain, or the server would have waited for it: of normal delays of σ, none is later with the chance ∏ Φ(qᵢ / σ), and the
    largest σ has 5 %. Before the capture, stamps round each qᵢ. A least delay that many packets have, or the handshake, leaves nothing to hide.
    """
    if f.bottleneck is None or not hides_jitter(f) or (before.is_exact(f) if f.is_before else base.has_sharp_least(f) or base.is_opened_so(f)):
        return 0.0
    part = base.shortest_before(f) if f.is_before else base.shortest(f)
    if (known := looks(f)).size >= LEAST_LOOKS:
        return min(jitters.largest_deviation(known), part / UNCUT)
    met = f.queue[f.before.row if f.is_before else f.behind.row]
    met = np.sort(met[met > 0])[:SHORTEST] + (f.wire.sender_tick if f.is_before else 0.0)
    if not met.size:
        return part / UNCUT
    tried = np.geomspace(jitters.FLOOR, 10 * float(met[-1]), 60)
    chance = log_ndtr(met / tried[:, None]).sum(axis=1)
    return min(float(np.interp(-math.log(0.05), -chance, tried)), part / UNCUT)


def looks(f: Fit) -> Floats:
    """Delays, ms, that show a jitter of the data alone: of packets that met an idle bottleneck, one each round trip, as those in order are alike."""
    acks_vary = f.reverse is not None and f.reverse.is_there
    if f.bottleneck is None or f.delays is None or f.flow.facts.get("begins_in_mid_connection"):
        return np.empty(0)
    idle = met_idle(f.delays, f.bottleneck.rate, 5 * max(f.bottleneck.noise, 0.5))
    if not f.is_before:
        return np.empty(0) if acks_vary else jitters.apart(f.behind.at[idle], f.behind.rtt[idle], base.shortest(f))
    w, part = f.wire, base.shortest_before(f)
    rows = np.sort(f.delays.arrivals.row[f.delays.index[idle]])
    rows = rows[w.t[rows] > w.t.min() + part]  # what came with the handshake's ACK is that again
    kept = np.isin(f.before.row, rows)
    turns = np.append(jitters.apart(w.t[f.before.row[kept]], f.before.rtt[kept], part), part)
    one_way = jitters.apart(w.t[rows], (w.t - w.stamp - f.queue)[rows], part)  # rounded by the sender's clock
    known = [x for x in (turns, one_way) if x.size >= LEAST_LOOKS and not (acks_vary and x is turns)]
    return min(known, key=jitters.largest_deviation, default=one_way)
