"""What a congestion window and BBR's pace do while nothing stops them: they grow. What does not grow is held by something else.

A window that its sender fills grows by half a segment a round trip at least until a loss (an ACK for two segments each: RFC 5681 §3.1,
RFC 9438 §4.3). BBR sends a quarter more than the rate that it has measured in one of eight round trips (Cardwell et al., ACM Queue 14(5), 2016), so
that its rate grows by that quarter until a queue grows at the bottleneck.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcpscape.findings.diagnosis.fitted import FittedPath
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.stats.estimate import Floats

SLOWEST = 0.5
"""Segments by which a window grows in a round trip without a loss at least."""
LEVEL = 0.05
"""Largest flights within this share of the usual one are the same."""
STILL = 0.8
"""Round trips whose largest flight does not grow, from which on a flow's does not, as a share."""
FEWEST_TRIPS = 16
"""Round trips in which a growing window is sure to show."""
CYCLE, GAIN = 8, 1.25
"""Round trips of BBR's gain cycle, and the largest gain in it."""
FEWEST_CYCLES = 8
"""Gain cycles after which BBR's rate would be six times as large."""
GROWING, UNCHANGED_S = ("cubic", "reno"), 4.0
"""Congestion controls that make a full window larger without a loss, and s in which they do so by more than a packet: Reno by one each round trip
(RFC 5681 §3.1), CUBIC where it is flattest by 0.4 · 2³ on either side (RFC 9438 §4.2)."""
FEW_LOST = 0.01
"""Share of the segments that are lost up to which nothing but a queue holds BBR's rate down: a policer drops more."""


def outlasts(trips: float, segments: float, losses: float) -> bool:
    """Whether a flight of so many segments was the same for more round trips than a growing window could make it between so many losses."""
    return not losses or trips > (losses + 1) * max(1.0, 2 * LEVEL * segments / SLOWEST)


def stands_still(flights: Floats) -> bool:
    """Whether the largest flights of round trips, in segments, without a loss, grow by less than half of what a window does, part by part.

    A program that writes more from some time on has such flights too, at two levels.
    """
    parts = [flights[i : i + FEWEST_TRIPS] for i in range(0, flights.size - FEWEST_TRIPS + 1, FEWEST_TRIPS)]
    quarter = FEWEST_TRIPS // 4
    grown = [float(np.median(part[-quarter:]) - np.median(part[:quarter])) for part in parts]
    return bool(parts) and float(np.mean(np.array(grown) < SLOWEST * (FEWEST_TRIPS - quarter) / 2)) >= STILL


def stays_unused(flow: ObservedFlow) -> bool:
    """Whether samples show that the congestion window was not what held the flow in its second half.

    It stayed the same without a loss, and its control would have made a full one larger.
    """
    window, again = (np.asarray(flow.samples.get(name, ()), dtype=np.float64) for name in ("snd_cwnd", "total_retrans"))
    if flow.cca not in GROWING or not window.size or not again.size:
        return False
    t = np.asarray(flow.samples["t_s"], dtype=np.float64)
    late = t >= (t[0] + t[-1]) / 2
    return bool(np.ptp(t[late]) >= UNCHANGED_S and np.ptp(window[late]) == 0 and np.ptp(again[late]) == 0)


def stays_below_bottleneck(flow: ObservedFlow, path: FittedPath | None) -> bool:
    """Whether no queue grew, nothing was lost and the rate stayed for so long that BBR, held by its own pace, would have filled the path."""
    t = np.sort(np.asarray(flow.segments.get("t", ()), dtype=np.float64)) / 1e9
    rtt_s, sent = usual_rtt_s(flow), max(1, flow.facts.get("segments") or 0)
    if (
        path is None
        or path.queue != "none"
        or path.jitter_on != "none"
        or t.size < 2
        or not rtt_s
        or (flow.facts.get("losses") or 0) > FEW_LOST * sent
    ):
        return False
    cycles = (t[-1] - t[0]) / rtt_s / CYCLE / 2  # between the middles of its two halves
    early, late = np.histogram(t, 2)[0]
    return bool(cycles >= FEWEST_CYCLES / 2 and late * GAIN**-cycles < early / 2)


def usual_rtt_s(flow: ObservedFlow) -> float:
    """The median RTT, of the parts that the place of capture shows, s."""
    return sum(_p50_ms(flow.facts.get(part)) for part in ("rtt", "echo")) / 1e3


def _p50_ms(summary: Any) -> float:
    return float(summary.get("p50_ms") or 0.0) if isinstance(summary, dict) else 0.0
