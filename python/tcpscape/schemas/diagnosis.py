"""The document of a diagnosis: what `tcpscape diagnose --json` prints."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from tcpscape.findings.diagnosis.fitted import Direction
from tcpscape.findings.diagnosis.observed import Cause, Vantage
from tcpscape.stats.estimate import Interval

Ends = tuple[str, int, str, int]


class OtherFlowsDocument(TypedDict):
    """The flows of a source that were not diagnosed."""

    flows: int
    """Their number."""
    bytes: int
    """Payload that they delivered, bytes."""


class SourceDocument(TypedDict):
    """What was read."""

    kind: str
    """Its kind: pcap, pcapng, sockets, ss, iperf3, flent, result."""
    name: str
    """The file, `-` for standard input, or what was asked of the sockets."""
    facts: dict[str, Any]
    """Counters of the source as a whole; docs/diagnosis.md lists them."""
    notes: list[str]
    """What could not be read or is not in it, a sentence each."""
    flows: int
    """Number of flows in it."""
    others: OtherFlowsDocument
    """Those of them that were not diagnosed."""


class KnownOrder(TypedDict):
    """Whether packets keep their order."""

    value: bool
    """Whether they do."""
    low: None
    """Always null: there is no interval."""
    high: None
    """Always null: there is no interval."""


class PathChangeDocument(TypedDict):
    """A change of the path."""

    at_s: float
    """When, s from the beginning of the observation."""
    kind: Literal["rtt", "rate", "outage", "loss"]
    """What changed."""
    before: float | None
    """Its value before: ms, Mbit/s, a fraction."""
    after: float | None
    """Its value afterwards; of an outage its length, s."""
    frame: int | None
    """The frame that shows it."""


class FittedPathDocument(TypedDict):
    """The path that explains an observation. What is not identifiable is null, with its reason in `not_identifiable` of the flow."""

    rtt_ms: Interval | None
    """Round trip without queueing, the mean of the jitter included, ms."""
    jitter_ms: Interval | None
    """Standard deviation of the delay of one direction, ms."""
    jitter_on: Direction | None
    """The direction that has the jitter: forward is that of the data."""
    jitter_forward_ms: Interval | None
    """Standard deviation of the data's delay, ms."""
    jitter_reverse_ms: Interval | None
    """Standard deviation of the ACKs' delay, ms."""
    distribution: str | None
    """Its distribution by tc's name."""
    order_kept: KnownOrder | None
    """Whether the jitter keeps the order of packets."""
    correlation_ms: Interval | None
    """Time constant of the delay's correlation, ms; 0 is independent."""
    loss_pct: Interval | None
    """Random loss of data packets, %, without what a full queue dropped."""
    queue_loss_pct: Interval | None
    """Data packets that a full queue dropped, %."""
    rate_mbps: Interval | None
    """Rate of the bottleneck with Ethernet headers, Mbit/s."""
    buffer_bytes: Interval | None
    """Buffer of the bottleneck, bytes."""
    queue: Literal["self-induced", "standing", "none"] | None
    """What fills the bottleneck's queue: this flow, others all the time, nothing."""
    changes: list[PathChangeDocument]
    """Changes of the path during the observation, in their order."""


class ControlDocument(TypedDict):
    """The congestion control."""

    name: str
    """Its name in Linux, or unknown."""
    confidence: float
    """Probability that the name is right, a fraction; 1 where the source or the user says it."""
    candidates: dict[str, float]
    """Name → probability, the most probable first."""
    reason: str
    """What it rests on, or why it is unknown."""


class LimitDocument(TypedDict):
    """A time during which one cause held a flow."""

    start_s: float
    """Its beginning, s from the beginning of the observation."""
    end_s: float
    """Its end, s."""
    cause: Cause
    """The cause."""
    frames: list[int]
    """Frames that prove it, as Wireshark numbers them."""


class ZoneDocument(TypedDict):
    """The indicators of a flow."""

    side: Literal["stable", "chaos zone", "collapsed"] | None
    """Side of this congestion control's cliff on which the path stands."""
    published: Literal["stable", "chaos zone", "collapsed"] | None
    """The same by jitter / RTT alone."""
    retention: Interval | None
    """Predicted goodput / goodput without the jitter, a fraction."""
    cv: Interval | None
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
    guidance: str
    """What to do."""


class ReplayDocument(TypedDict):
    """The same congestion control on the fitted path, on the model."""

    goodput_mbps: Interval | None
    """Its goodput, Mbit/s."""
    rtt_ms: Interval | None
    """Its median RTT, ms."""
    observed_goodput_mbps: float | None
    """The observed goodput, Mbit/s."""
    observed_rtt_ms: float | None
    """The observed median RTT, ms."""
    verdict: Literal["agrees", "differs", "impossible"]
    """Whether the replay repeats the observation."""
    reason: str
    """Why it does not; empty where it does."""
    control: str | None
    """The congestion control that was run; null where nothing was."""
    is_assumed: bool
    """Whether that is an assumption, because the flow's own is not known."""


class AlternativeDocument(TypedDict):
    """What another congestion control or another setting would bring."""

    name: str
    """The congestion control, or the setting."""
    gain: Interval
    """Its goodput / that of the replay."""
    rtt_ms: Interval | None
    """Its median RTT, ms."""
    retransmits_pct: Interval | None
    """Segments sent again, %."""


class ReplayAdviceDocument(TypedDict):
    """What would be better."""

    choice: str | None
    """The congestion control to use; null where nothing can be advised."""
    gain: Interval | None
    """Its goodput / that of the congestion control in use: 1.35 is 35 % more."""
    verdict: str
    """better, as good, undecided, or why there is no advice."""
    controls: list[AlternativeDocument]
    """Every congestion control that was run."""
    settings: list[AlternativeDocument]
    """Other settings that were run."""
    assumption: str
    """The largest assumption."""


class DiagnosedFlowDocument(TypedDict):
    """One direction of one connection: the data and what acknowledges it."""

    tuple: Ends
    """Address and port of the sender of the data, then of the receiver; empty and 0 where the source has none."""
    packets: int | None
    """Data packets seen."""
    bytes: int | None
    """Payload delivered, bytes, each once."""
    seconds: float
    """From the first to the last packet, s."""
    start_s: float
    """From the beginning of the observation to the flow's, s."""
    vantage: Vantage
    """Where it was seen."""
    goodput_mbps: float | None
    """Payload over time, Mbit/s."""
    answer: str
    """The diagnosis in three sentences."""
    cca: ControlDocument
    """The congestion control."""
    limited_by: dict[Cause, float] | None
    """Cause → share of the time during which it held the flow, a fraction; the largest first."""
    limits: list[LimitDocument]
    """What held the flow when."""
    path: FittedPathDocument
    """The path."""
    zone: ZoneDocument | None
    """Its zone and the published indicators."""
    replay: ReplayDocument | None
    """The replay on the model."""
    advice: ReplayAdviceDocument | None
    """What would be better."""
    not_identifiable: dict[str, str]
    """Part or field that is null, `advice` or `path.buffer_bytes` → why; `limited_by` also where a part of its time is `unknown`."""
    facts: dict[str, Any]
    """Counters and handshake; docs/diagnosis.md lists them."""


class DiagnosisDocument(TypedDict):
    """What a capture, a socket or a result says of its flows. What `tcpscape diagnose --json` prints.

    A number that is infinite or not known is null.
    """

    format: Literal[1]
    """Format of a diagnosis."""
    source: SourceDocument
    """What was read."""
    flows: list[DiagnosedFlowDocument]
    """The flows that were diagnosed, the largest first."""
