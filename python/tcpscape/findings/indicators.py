"""Diagnostic indicators: who limits a flow, as its path's zone, the spread of its RTTs and its counters show.

Published, and judged here as published:

- jitter / RTT: below 10 % stable, to 30 % the chaos zone, above it collapsed ("The Jitter Cliff: When TCP Goes Chaotic");
- RTT coefficient of variation: below 0.15 healthy, to 0.30 stressed, above impaired (acooks/jittertrap, RTT-CV-HEALTH-INDICATOR). The
  thresholds were drawn from RTTs taken in mid-path, which hold one direction's delay alone: jitter J on each of two delays D gives J/D
  there and J·√2/(2D) at the sender, so a sender's own value is smaller by √2;
- signatures (acooks/jittertrap, diagnostic-signatures): more than 5 windows closed in 10 s is a receiver problem, more than 10
  retransmissions a network problem behind which a receiver problem may hide (the masking effect).

Closed windows are a signature of small reads on short paths only: a reader of 8 KiB every 20 ms out of a buffer of 64 KiB closes its window
a hundred times in 10 s up to a round trip of 20 ms, and never from 22 ms on, where the window shrinks instead (measured on the model, no
loss). Therefore two further numbers are judged: the share of time that the receive window limited the sender, and the used share of the
largest window. If nearly all of it is used, the window is too small for the path; if little is used, the window had shrunk, because the
reader is slow or, with many retransmissions, because data out of order fill the buffer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tcpscape import stats
from tcpscape.findings.cliff.levels import Side
from tcpscape.stats import Estimate

if TYPE_CHECKING:
    from tcpscape.trial import FlowResult, Trial

Health = Literal["healthy", "stressed", "impaired", "unknown"]
Problem = Literal["receiver", "network", "both", "neither"]
Window = Literal["shrunk window", "small window", "not the window", "unknown"]

ZONES = (0.10, 0.30)
"""Jitter / RTT at which the chaos zone begins and ends."""
ZONE_VERDICT = "not reproduced as a law (study jitter-cliff: the cliff was measured at 13 to 24 % of the RTT, by control, RTT and length of the run)"
"""What became of the rule in the studies: docs/findings.md, `jitter-cliff`, "The cliff occurs when jitter reaches roughly 15-30 % of the RTT"."""
RTT_CV = (0.15, 0.30)
"""RTT coefficient of variation from which a flow is stressed, and impaired."""
CLOSED, RESENT, PER_S = 5.0, 10.0, 10.0
"""Windows closed, and segments sent again, in this many seconds above which there is a problem."""
HELD = 0.5
"""Share of a sender's time from which the receive window is what limits it."""
USED = 0.5
"""Used part of the largest window below which the window had shrunk."""


def zone(jitter: float, rtt: float) -> Side:
    """The side of the cliff on which a path stands by its description.

    `jitter` is the standard deviation of one direction's delay and `rtt` the mean of the round trip's, in the same unit.
    """
    share = jitter / rtt
    return "stable" if share < ZONES[0] else "chaos zone" if share <= ZONES[1] else "collapsed"


def health(rtt_cv: float) -> Health:
    """The health that the spread of a flow's RTTs indicates."""
    if math.isnan(rtt_cv):
        return "unknown"
    return "healthy" if rtt_cv < RTT_CV[0] else "stressed" if rtt_cv <= RTT_CV[1] else "impaired"


@dataclass(frozen=True, slots=True)
class Signature:
    """One trial's counters, all flows together; NaN where the engine does not report them."""

    closed: float
    """Windows closed in 10 s."""
    resent: float
    """Segments sent again in 10 s."""
    held: float
    """Share of the time that the receive window limited the senders."""
    used: float
    """Bytes in a bare round trip at the flow's goodput / the largest receive window, mean over the flows."""

    @property
    def problem(self) -> Problem:
        """The diagnosis by the published rule; an unknown count indicates nothing."""
        receiver, network = self.closed > CLOSED, self.resent > RESENT
        if receiver and network:
            return "both"
        return "receiver" if receiver else "network" if network else "neither"

    @property
    def window(self) -> Window:
        """The judgement of the receive window."""
        if math.isnan(self.held):
            return "unknown"
        if self.held < HELD:
            return "not the window"
        if math.isnan(self.used):
            return "unknown"
        return "shrunk window" if self.used < USED else "small window"


def signature(trial: Trial) -> Signature:
    """The counters of a trial."""
    from tcpscape import metrics

    seconds = sum(f.seconds for f in trial.flows) / len(trial.flows) if trial.flows else 0.0
    per = PER_S / seconds if seconds > 0 else math.nan
    used = [_used(f) for f in trial.flows]
    return Signature(
        closed=metrics.find("zero_windows").of(trial) * per,
        resent=metrics.retransmits(trial) * per,
        held=metrics.find("rwnd_limited").of(trial),
        used=sum(used) / len(used) if used else math.nan,
    )


def _used(flow: FlowResult) -> float:
    """Bytes in a bare round trip / the largest receive window; NaN where one of the two is unknown."""
    least = flow.rtt_ms.min if flow.rtt_ms.min is not None else flow.min_rtt_ms
    if least is None or not flow.max_rwnd:
        return math.nan
    return flow.goodput_mbps * 1e6 / 8 * least / 1e3 / flow.max_rwnd


@dataclass(frozen=True, slots=True)
class Indicators:
    """The indicators of many trials of one condition."""

    rtt_cv: Estimate
    """Median of the RTTs' coefficient of variation; n = 0 where packets were not kept."""
    health: Health
    """Of that median."""
    closed: Estimate
    """Median of the windows closed in 10 s."""
    resent: Estimate
    """Median of the segments sent again in 10 s."""
    held: Estimate
    """Median of the share of time that the receive window limited the senders."""
    problems: Mapping[Problem, Estimate]
    """Share of the trials with each diagnosis by the published rule."""
    windows: Mapping[Window, Estimate]
    """Share of the trials with each judgement of the receive window."""


def judge(trials: Sequence[Trial]) -> Indicators:
    """The trials of one condition together."""
    from tcpscape import metrics

    signatures = [signature(t) for t in trials]
    cv = _median([metrics.find("rtt_cv").of(t) for t in trials], "1")
    problems, windows = Counter(s.problem for s in signatures), Counter(s.window for s in signatures)
    return Indicators(
        rtt_cv=cv,
        health=health(cv.value),
        closed=_median([s.closed for s in signatures], "in 10 s"),
        resent=_median([s.resent for s in signatures], "in 10 s"),
        held=_median([s.held for s in signatures], "1"),
        problems={p: stats.share(k, len(trials)) for p, k in problems.items()},
        windows={w: stats.share(k, len(trials)) for w, k in windows.items()},
    )


def _median(values: Sequence[float], unit: str) -> Estimate:
    """The median of the values that are known."""
    return stats.median(stats.known(values), unit)
