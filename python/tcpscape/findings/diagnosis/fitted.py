"""What each part of a diagnosis returns; None where it is not identifiable, with the reason beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tcpscape.findings.advice.choice import Verdict
from tcpscape.stats import Estimate

UNKNOWN = "unknown"
"""Name of a congestion control that is not known."""
Direction = Literal["forward", "reverse", "both", "none"]
"""Of the data, of the ACKs."""


@dataclass(frozen=True, slots=True)
class PathChange:
    """A change of the path during the observation."""

    at_s: float
    kind: Literal["rtt", "rate", "outage", "loss"]
    before: float | None
    """In the unit of the quantity: ms, Mbit/s, share; an outage has none."""
    after: float | None
    """The same; of an outage its length in s."""
    frame: int | None = None
    """Where the capture shows it."""


@dataclass(frozen=True, slots=True)
class FittedPath:
    """The path that explains an observation. Intervals are of 95 %."""

    rtt_ms: Estimate | None
    """Round trip without queueing, jitter's mean included: the sum of the delays that tc would be told."""
    jitter_ms: Estimate | None
    """Standard deviation of one direction's delay (of the direction that has it; where both have it, their mean)."""
    jitter_on: Direction | None
    jitter_forward_ms: Estimate | None
    jitter_reverse_ms: Estimate | None
    distribution: str | None
    """tc's name: `normal`, `pareto`, `paretonormal`, `uniform`, `experimental`; None where not identifiable."""
    order_kept: bool | None
    """Whether the jitter keeps the order of packets."""
    correlation_ms: Estimate | None
    """Time constant of the delay's correlation; 0 is independent."""
    loss_pct: Estimate | None
    """Random loss of data packets, %, without what a full queue dropped."""
    queue_loss_pct: Estimate | None
    """Loss of data packets by a full queue, %."""
    rate_mbps: Estimate | None
    """Rate of the bottleneck as tc is told (with Ethernet headers)."""
    buffer_bytes: Estimate | None
    """Size of its buffer, bytes."""
    queue: Literal["self-induced", "standing", "none"] | None
    """What fills the bottleneck's queue: this flow, others all the time, nothing."""
    changes: Sequence[PathChange] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Field → why it is not identifiable or which fields cannot be told apart; sentences."""


@dataclass(frozen=True, slots=True)
class Control:
    """The congestion control, as the packets show it."""

    name: str
    """Its name in Linux, or `unknown`."""
    confidence: float
    """Probability that the name is right, by runs drawn apart from the training; of `unknown` that of the best candidate."""
    candidates: Mapping[str, float] = field(default_factory=dict)
    """Name → probability, the most probable first."""
    reason: str = ""
    """What it rests on, or why it is unknown; a sentence."""


@dataclass(frozen=True, slots=True)
class Zone:
    """The indicators of a flow: its path against its control's cliff, how far one measurement can be trusted, its stability."""

    side: Literal["stable", "chaos zone", "collapsed"] | None
    """Against this control's cliff."""
    published: Literal["stable", "chaos zone", "collapsed"] | None
    """By jitter / RTT alone."""
    retention: Estimate | None
    """Predicted goodput / goodput without the jitter."""
    cv: Estimate | None
    """Predicted coefficient of variation between runs."""
    runs_needed: float | None
    """Runs for ± 10 %."""
    rtt_cv: float | None
    throughput_cv: float | None
    health: str | None
    """By the published thresholds of the RTTs' coefficient of variation."""
    problem: str | None
    """By the published signatures: receiver, network, both, neither."""
    guidance: str = ""
    """What to do, a sentence."""
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Replay:
    """The same control on the fitted path, by the model."""

    goodput_mbps: Estimate | None
    rtt_ms: Estimate | None
    """Median of the smoothed RTT, as the observation's is taken."""
    observed_goodput_mbps: float | None
    observed_rtt_ms: float | None
    verdict: Literal["agrees", "differs", "impossible"]
    """Whether the fit repeats the observation: within the interval or 25 %; `impossible` where there is nothing to run."""
    reason: str = ""
    control: str | None = None
    """The congestion control that was run: the flow's own, or one that is assumed where the flow's is not known; None where nothing was run."""
    is_assumed: bool = False
    """Whether that control is an assumption."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """What another control, or another setting, would bring on the same seeds."""

    name: str
    """A congestion control, or a setting: `receive buffer 4 MiB`, `fq_codel at the bottleneck`, `keep order`."""
    gain: Estimate
    """Goodput / that of the replay, paired."""
    rtt_ms: Estimate | None
    retransmits_pct: Estimate | None


@dataclass(frozen=True, slots=True)
class Withheld:
    """Why nothing is advised."""

    why: Literal["differs", "impossible", "too wide", "no replay"]
    """The replay differs from the observation, or cannot run, or agrees by the width of its interval alone; or there is none."""
    detail: str = ""
    """What differs, or what is missing; a sentence."""


@dataclass(frozen=True, slots=True)
class ReplayAdvice:
    """Which control would be better, and what else would help."""

    choice: str | None
    """None where nothing can be advised."""
    gain: Estimate | None
    """Goodput of the choice / goodput of the control in use, paired; as `advise` gives it."""
    verdict: Verdict | Withheld
    """`undecided` also where the choice is the probable one, and the gain's interval holds 1."""
    controls: Sequence[Alternative] = ()
    settings: Sequence[Alternative] = ()
    assumption: str = ""
    """The largest assumption, a sentence."""
