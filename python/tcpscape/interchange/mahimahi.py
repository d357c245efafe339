"""The throughput that a trial had, as a packet-delivery trace for mahimahi's mm-link and for `bottleneck: {trace: FILE}`.

The goodput of a saturating flow is what its link could carry: record a flow that keeps the bottleneck busy. :mod:`tcpscape.scenario.traces` has
the rules.
"""

from __future__ import annotations

from tcpscape.interchange import base
from tcpscape.interchange.base import InterchangeError
from tcpscape.scenario import traces
from tcpscape.trial import Trial

PAYLOAD_SHARE = (base.MTU - base.HEADERS) / traces.FRAME
"""Payload over Ethernet frame, of full frames."""


def write(trial: Trial, mtu: int = base.MTU) -> bytes:
    """The trace: all flows' payload with the headers of full frames, over the sampled time; refuses a trial without samples."""
    if trial.samples is None or trial.samples.is_empty():
        raise InterchangeError("mahimahi: the trial has no samples, and a trace is made of them; run with --samples 100ms --out DIR")
    edges: dict[float, float] = {}
    end = 0.0
    for begin, until, rate in (piece for pieces in base.throughputs(trial.samples).values() for piece in pieces):
        edges[begin] = edges.get(begin, 0.0) + rate
        edges[until] = edges.get(until, 0.0) - rate
        end = max(end, until)
    points, total = [], 0.0
    for at in sorted(edges):
        total += edges[at]
        if at < end:
            points.append((at, max(0.0, total) * 8 / PAYLOAD_SHARE))
    if not points:
        raise InterchangeError("mahimahi: nothing was sampled that arrived; run longer, or sample more often")
    first = [] if points[0][0] == 0 else [(0.0, 0.0)]
    ms = traces.from_rates([*first, *points], end)
    if not ms or ms[-1] == 0:
        raise InterchangeError("mahimahi: the trial carried less than a packet; run longer")
    return traces.dump(ms).encode()
