"""Why a part of a diagnosis is missing or has its value, as data; :mod:`tcpscape.words.reasons` has the sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tcpscape.findings.diagnosis.observed import Doubt

OfPath = Literal[
    "few packets",
    "data missing",
    "few delays measured",
    "busy at the begin",
    "nothing before the capture",
    "handshake alone",
    "short bursts",
    "segments discarded",
    "no queue grew",
    "shared queue",
    "jitter hidden",
    "coarse clock",
    "ends wait",
    "directions alike",
    "other direction unresolved",
    "delays unseen",
    "few delays",
    "no jitter",
    "direction unknown",
    "packets far apart",
    "never filled a queue",
    "queue of unknown rate",
    "queue always full",
    "queue unseen",
    "lost together",
    "few lost",
    "policed",
    "repeated without SACK",
    "delays vary in order",
    "drops at any length",
    "drops at many lengths",
    "waits shorter",
    "waits longer",
    "length unsure",
    "changed",
    "carried more",
    "seen where it is sent",
    "identification alike",
    "not all captured",
]
"""Of a path that packets show."""
OfSamples = Literal[
    "samples alone",
    "other direction",
    "no RTTs",
    "smoothed RTTs",
    "needs base RTT",
    "needs rate",
    "needs queue",
    "no bottleneck",
    "few losses of the queue",
    "losses at many lengths",
    "no sign of jitter",
    "sender paused",
    "time on the link",
    "few for losses",
    "repeated needlessly",
    "queue never short",
    "few samples",
    "no delivery rate",
    "held by an end",
    "no ceiling",
]
"""Of a path that samples of a socket show."""
OfControl = Literal[
    "named by the user",
    "named by the source",
    "recognised",
    "no packets",
    "not at the sender",
    "few seconds",
    "few round trips",
    "application held",
    "window held",
    "no probes of the RTT",
    "begins in mid-connection",
    "alike",
    "few reductions",
    "would move alike",
    "family",
    "without SACK",
    "counts ACKs",
    "small windows",
    "answers reordering",
    "thinned",
    "both ways",
    "reductions unseen",
    "below the bottleneck",
    "spaced by a timer",
]
"""Of a congestion control: what its name rests on, or why it is unknown."""
OfReplay = Literal[
    "no replay",
    "control not known",
    "control not in the engine",
    "no RTT of the path",
    "RTT of 0",
    "no goodput",
    "nothing carried",
    "none repeats",
    "misses",
    "no cliff of an unknown control",
    "unlike the observation",
]
"""Of runs that there are not, or that differ from the observation."""
OfHosts = Literal["full segment", "negotiated", "application limited", "slow reader", "largest window", "largest flight"]
"""Of the value of a field of the flow's ends."""
Why = Literal["limits unseen"] | Doubt | OfPath | OfSamples | OfControl | OfReplay | OfHosts


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is missing, or has its value."""

    why: Why
    values: Mapping[str, Any] = field(default_factory=dict)
    """Name in the sentence → what was measured or met."""


Reasons = Mapping[str, Reason]
"""Field → why it is not identifiable, or which fields cannot be told apart."""
