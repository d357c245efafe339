"""Packets that entered the bottleneck's queue, and the delay that the queue gave each of them.

**Accounting.** What the receiver acknowledged arrived exactly once, except for copies that were not needed. So each acknowledged segment is one
arrival, at the last time it was sent that leaves room for the round trip; copies sent after that are further arrivals. It does not matter which
packets were lost, and where: those that a queue or a lossy link dropped never took the bottleneck's time.

**Queue.** A bottleneck that serves `rate` with a burst of `burst` bytes (a token bucket; 0 is a plain link without a serialisation of its own)
lets packet i leave at max(aᵢ, cᵢ − burst / rate), where cᵢ = max(cᵢ₋₁, aᵢ) + sizeᵢ / rate is when a server would finish that starts empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path.samples import MS, Floats, Ints

ETHERNET = 14
"""Bytes of an Ethernet header, which tc counts."""
RETRANSMISSIONS = (1, 2, 3, 4)
"""Kinds of events that are a further transmission: fast, by timeout, tail probe, spurious."""

NEEDLESS = 3
"""Fate of a segment that was repeated though it had arrived."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Packets on their way to the bottleneck, in the order of sending."""

    at: Floats
    """When each was sent, ms."""
    size: Floats
    """Bytes with all headers, as tc counts them."""
    row: Ints
    """Row of its segment."""

    def waits(self, rate: float, burst: float) -> Floats:
        """Time of each in the queue of a bottleneck of `rate` Mbit/s and `burst` bytes, ms."""
        return waits(self.at, self.size * 8e-3 / rate, burst * 8e-3 / rate)


def waits(at: Floats, service: Floats, credit: float) -> Floats:
    """Time in a queue of packets that arrive at `at`, take `service` each, with a credit of `credit`; one unit of time for all."""
    done = np.cumsum(service)
    finish = done + np.maximum.accumulate(at - (done - service))
    return np.asarray(np.maximum(finish - credit - at, 0.0))


def header_bytes(flow: ObservedFlow) -> float:
    """Bytes of a data packet's headers as tc counts them, Ethernet's included."""
    ip = 40 if ":" in flow.source.address else 20
    stamps = 12 if flow.segments["tsval"].any() else 0
    return float(ETHERNET + ip + 20 + stamps)


def arrivals_of(flow: ObservedFlow, least_rtt: float) -> Arrivals:
    """The packets that arrived at the receiver, by their times of sending.

    :param least_rtt: ms; a transmission later than 0.8 of it before the acknowledgement was not what it acknowledges.
    """
    segments, events = flow.segments, flow.events
    first = segments["t"].astype(float) / MS
    seen = segments["acked"].astype(float) / MS
    arrived = (segments["acked"] > 0) | (segments["sends"] == 1)
    at = first.copy()
    extra_at, extra_row = np.empty(0), np.empty(0, dtype=np.int64)
    again = np.isin(events["kind"], RETRANSMISSIONS) if events else np.zeros(0, dtype=bool)
    if again.any() and first.size:
        when = events["t"][again].astype(float) / MS
        row = np.clip(np.searchsorted(segments["seq"].astype(np.int64), events["seq"][again].astype(np.int64), side="right") - 1, 0, None)
        needless = segments["fate"][row] == NEEDLESS
        fits = ~needless & ((seen[row] == 0) | (when <= seen[row] - 0.8 * least_rtt))
        np.maximum.at(at, row[fits], when[fits])
        extra_at, extra_row = when[needless], row[needless]
    all_at = np.concatenate([at[arrived], extra_at])
    all_row = np.concatenate([np.flatnonzero(arrived), extra_row]).astype(np.int64)
    order = np.argsort(all_at, kind="stable")
    segs = np.maximum(segments["segs"], 1) if "segs" in segments else 1
    size = segments["len"].astype(float) + header_bytes(flow) * segs
    return Arrivals(all_at[order], size[all_row[order]], all_row[order])
