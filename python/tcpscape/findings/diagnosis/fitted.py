"""What a diagnosis is asked for, and what each part of it returns; None where it is not identifiable, with the reason beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from typing_extensions import TypedDict

from tcpscape.controls.deployment import DEFAULT
from tcpscape.errors import refuse, shown
from tcpscape.findings.advice.choice import ChoiceVerdict
from tcpscape.findings.diagnosis.reasons import Reason, Reasons
from tcpscape.findings.steps import Tell, untold
from tcpscape.formats import Written
from tcpscape.stats.estimate import WithInterval

if TYPE_CHECKING:
    from tcpscape.campaign.execute import Runner

UNKNOWN = "unknown"
"""Name of a congestion control that is not known."""
Direction = Literal["forward", "reverse", "both", "none"]
"""Of the data, of the ACKs."""


class KnownOrder(TypedDict):
    """Whether packets keep their order."""

    value: bool
    """Whether they do."""
    low: None
    """Always null: there is no interval."""
    high: None
    """Always null: there is no interval."""


if TYPE_CHECKING:
    Order = bool
else:
    Order = Annotated[KnownOrder, Written(lambda kept, order: order(KnownOrder(value=kept, low=None, high=None)))]


@dataclass(frozen=True, slots=True)
class PathChange:
    """A change of the path during the observation."""

    at_s: float
    """When, s from the beginning of the observation."""
    kind: Literal["rtt", "rate", "outage", "loss"]
    """What changed."""
    before: float | None
    """In the unit of the quantity: ms, Mbit/s, share; an outage has none."""
    after: float | None
    """Its value afterwards; of an outage its length, s."""
    frame: int | None = None
    """The frame that shows it."""


@dataclass(frozen=True, slots=True)
class FittedPath:
    """The path that explains an observation. Intervals are of 95 %."""

    rtt_ms: WithInterval | None = None
    """Round trip without queueing, jitter's mean included: the sum of the delays that tc would be told."""
    jitter_ms: WithInterval | None = None
    """Standard deviation of one direction's delay (of the direction that has it; where both have it, their mean, or that of the one that is seen)."""
    jitter_on: Direction | None = None
    """The direction that has the jitter: forward is that of the data."""
    jitter_forward_ms: WithInterval | None = None
    """Standard deviation of the data's delay, ms."""
    jitter_reverse_ms: WithInterval | None = None
    """Standard deviation of the ACKs' delay, ms."""
    distribution: str | None = None
    """tc's name: `normal`, `pareto`, `paretonormal`, `uniform`, `experimental`; None where not identifiable."""
    order_kept: Order | None = None
    """Whether the jitter keeps the order of packets."""
    correlation_ms: WithInterval | None = None
    """Time constant of the delay's correlation, ms; 0 is independent."""
    loss_pct: WithInterval | None = None
    """Random loss of data packets, %, without what a full queue dropped."""
    queue_loss_pct: WithInterval | None = None
    """Data packets that a full queue dropped, %."""
    ack_loss_pct: WithInterval | None = None
    """Packets of the receiver that were lost on their way to the capture, %."""
    rate_mbps: WithInterval | None = None
    """Rate of the bottleneck as tc is told (with Ethernet headers)."""
    buffer_bytes: WithInterval | None = None
    """Buffer of the bottleneck, bytes."""
    queue: Literal["self-induced", "none"] | None = None
    """What fills the bottleneck's queue: this flow, nothing; None where others may fill it."""
    changes: Sequence[PathChange] = ()
    """Changes of the path during the observation, in their order."""
    reasons: Reasons = field(default_factory=dict, metadata={"exclude": True})


@dataclass(frozen=True, slots=True)
class RecognisedControl:
    """The congestion control, as the packets show it."""

    name: str
    """Its name in Linux, or unknown."""
    confidence: float
    """Probability that the name is right, by runs drawn apart from the training; of `unknown` that of the best candidate."""
    candidates: Mapping[str, float] = field(default_factory=dict)
    """Name → probability, the most probable first."""
    reason: Reason | None = None
    """What it rests on, or why it is unknown."""

    @property
    def likely(self) -> str:
        """Its name, or that of what it most probably is; Linux's default where nothing says it."""
        return self.name if self.name != UNKNOWN else next(iter(self.candidates), DEFAULT)


@dataclass(frozen=True, slots=True)
class Zone:
    """The indicators of a flow: its path against its control's cliff, how far one measurement can be trusted, its stability."""

    side: Literal["stable", "chaos zone", "collapsed"] | None
    """Side of this congestion control's cliff on which the path stands."""
    published: Literal["stable", "chaos zone", "collapsed"] | None
    """The same by jitter / RTT alone."""
    retention: WithInterval | None
    """Predicted goodput / goodput without the jitter, a fraction."""
    cv: WithInterval | None
    """Predicted coefficient of variation between runs, a fraction."""
    runs_needed: float | None
    """Runs for a mean to ± 10 %."""
    rtt_cv: float | None
    """Coefficient of variation of the RTTs, a fraction."""
    throughput_cv: float | None
    """The same of the throughput over time, a fraction."""
    health: str | None
    """Health by the published thresholds of the RTTs' coefficient of variation."""
    problem: str | None
    """By the published signatures: receiver, network, both, neither."""
    reasons: Reasons = field(default_factory=dict, metadata={"exclude": True})


@dataclass(frozen=True, slots=True)
class Replay:
    """The same control on the fitted path, by the model."""

    goodput_mbps: WithInterval | None
    """Its goodput, Mbit/s."""
    rtt_ms: WithInterval | None
    """Median of the smoothed RTT, as the observation's is taken."""
    observed_goodput_mbps: float | None
    """The observed goodput, Mbit/s."""
    observed_rtt_ms: float | None
    """The observed median RTT, ms."""
    verdict: Literal["agrees", "differs", "impossible"]
    """Whether the fit repeats the observation: within the interval or 25 %; `impossible` where there is nothing to run."""
    reason: Reason | None = None
    """Why it does not; None where it does."""
    control: str | None = None
    """The congestion control that was run: the flow's own, or one that is assumed where the flow's is not known; None where nothing was run."""
    is_assumed: bool = False
    """Whether that is an assumption, because the flow's own is not known."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """What another control, or another setting, would bring on the same seeds."""

    name: str
    """A congestion control, or a setting: `receive buffer 4 MiB`, `fq_codel at the bottleneck`, `keep order`."""
    gain: WithInterval
    """Goodput / that of the replay, paired."""
    rtt_ms: WithInterval | None
    """Its median RTT, ms."""
    retransmits_pct: WithInterval | None
    """Segments sent again, %."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """What stands for something that is not identifiable."""

    kind: Literal[
        "busy sender",
        "unseen rate",
        "unseen buffer",
        "queue",
        "jitter both ways",
        "reordering",
        "no random loss",
        "application",
        "independent delays",
        "control",
        "unchanged path",
    ]
    """What it is about; `queue` was settled by replays, `control` stands for a flow's unknown one."""
    name: str = ""
    """Of a control or a queue; of a queue empty where it is a FIFO of :attr:`bdps`, or as fitted."""
    bdps: float = 0.0
    """Bandwidth-delay products of a FIFO."""
    lacks: tuple[Literal["random loss", "jitter"], ...] = ()
    """What was fitted to the packets and is assumed to come of the queue."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """Why nothing is advised."""

    why: Literal["differs", "impossible", "too wide", "served", "no replay"]
    """The replay differs from the observation, or cannot run, or agrees by the width of its interval alone; or there is none. `served`: packets
    come as from a bottleneck that is full, of which nothing else shows."""
    reason: Reason | None = None
    """What differs, or what is missing."""


@dataclass(frozen=True, slots=True)
class ReplayAdvice:
    """Which control would be better, and what else would help."""

    choice: str | None
    """The congestion control to use; None where nothing can be advised."""
    gain: WithInterval | None
    """Its goodput / that of the congestion control in use: 1.35 is 35 % more."""
    verdict: ChoiceVerdict | Withheld
    """`undecided` also where the choice is the probable one, and the gain's interval holds 1."""
    controls: Sequence[Alternative] = ()
    """Every congestion control that was run."""
    settings: Sequence[Alternative] = ()
    """Other settings that were run."""
    assumption: Assumption | None = None
    """The largest assumption."""


FLOWS = 3
"""Flows that are diagnosed where nothing says how many."""


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """How the model repeats an observation and compares what would be better."""

    runner: Runner
    """Runs trials."""
    kernel: str | None = None
    """Kernel profile of the sender with overrides, `6.12,rmem_max=4MiB`; None is not known."""
    quick: bool = False
    """Whether few trials are enough: wider intervals in a fraction of the time."""
    tell: Tell = untold


@dataclass(frozen=True, slots=True)
class DiagnosisSettings:
    """What is asked for."""

    most: int = FLOWS
    """Most flows that are diagnosed, the largest first; the others are counted."""
    flow: str = ""
    """Which flows count at all, as :func:`~tcpscape.findings.diagnosis.observed.matching` reads it; empty is all."""
    cca: str | None = None
    """Congestion control of the senders, where the user knows it."""
    replay: ReplaySettings | None = None
    """None is no replay, hence no advice."""


def expect_known(cca: str | None, kernel: str | None) -> None:
    """Refuses a congestion control or kernel profile that there is not, before anything is read. :raises TcpscapeError: one line."""
    if cca is None and kernel is None:
        return
    from tcpscape.engines.model import Model
    from tcpscape.scenario.scenario import Scenario

    if kernel is not None:
        Model().check(Scenario.of({"forward": "netem delay 1ms", "kernel": kernel}, "kernel"))
    if cca is not None and cca not in (known := [name for name in Model().ccas() if name not in NOT_IN_LINUX]):
        refuse("cca", f"{shown(cca)} is no congestion control of Linux", f"choose {', '.join(sorted(known))}")


NOT_IN_LINUX = ("fixed",)
"""Congestion controls of the model that no sender has."""
UNSEEN_RATE = 4.0
"""A bottleneck that was never filled is assumed to have this multiple of the fastest rate seen; draws go from that rate to the square of it."""
