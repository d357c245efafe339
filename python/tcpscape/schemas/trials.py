"""The documents of trials and of what is computed of them, as their fields are printed. docs/reference/formats.md is about all of them."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import NotRequired, TypedDict

from tcpscape.stats.estimate import Interval
from tcpscape.trial import FlowResult, ProbeResult, TransfersResult


class Drops(TypedDict):
    """Packets that a queue dropped, by the reason."""

    loss: int
    """Packets lost at random."""
    limit: int
    """Packets that found the queue full."""
    oversize: int
    """Packets larger than the queue can ever send."""
    aqm: int
    """Packets that an active queue management dropped."""


class Delays(TypedDict):
    """How long packets stayed in a queue, ns."""

    count: int
    """Number of packets."""
    mean: float
    """Mean, ns."""
    sd: float
    """Standard deviation, ns."""
    min: int
    """Shortest, ns."""
    max: int
    """Longest, ns."""
    p50: int
    """Median, ns."""
    p95: int
    """95th percentile, ns."""
    p99: int
    """99th percentile, ns."""
    last: int
    """That of the last packet, ns."""


class QueueReport(TypedDict):
    """What a queue of the model's path did in a trial."""

    direction: Literal["forward", "reverse"]
    """Way of the data, or of the ACKs."""
    stage: int
    """Place on that way, from 0."""
    depth: int
    """0 is the hop's own queue, 1 its child, and so on."""
    at: str
    """The node whose egress it is: sender, router, receiver."""
    link: NotRequired[str]
    """The link whose queue it is, in a network: `chain/0` the first of the chain, `near/2` the access link at the left of the third pair of hosts."""
    pipe: NotRequired[int]
    """Its number in the samples of queues, in a network."""
    name: str
    """tc's name of the queue."""
    packets_in: int
    """Packets that arrived."""
    bytes_in: int
    """Bytes that arrived."""
    packets_out: int
    """Packets that left."""
    bytes_out: int
    """Bytes that left."""
    drops: Drops
    """Packets that it dropped, by the reason."""
    duplicated: int
    """Packets that it sent twice."""
    corrupted: int
    """Packets that it damaged."""
    marked: int
    """Packets that it marked with congestion experienced (ECN)."""
    reordered: int
    """Packets that it sent past others."""
    segmented: int
    """Super-packets that it cut into segments."""
    delay: Delays
    """How long packets stayed in it, ns."""
    backlog_packets: int
    """Packets in it at the end of the trial."""
    backlog_bytes: int
    """Bytes in it at the end of the trial."""
    peak_packets: int
    """Most packets that were in it at a time."""
    peak_bytes: int
    """Most bytes that were in it at a time."""


class KernelQueueReport(TypedDict):
    """What a qdisc of a real kernel counted in a trial, as `tc -s qdisc` shows it."""

    where: str
    """Way of the data or of the ACKs: forward, reverse."""
    stage: int
    """Place on that way, from 0."""
    kind: str
    """tc's name of the queue."""
    at: str
    """The node whose egress it is: sender, router, receiver."""
    link: NotRequired[str]
    """The link whose queue it is, in a network: `chain/0` the first of the chain, `near/2` the access link at the left of the third pair of hosts."""
    pipe: NotRequired[int]
    """Its number in the samples of queues, in a network."""
    sent_packets: int
    """Packets that left."""
    sent_bytes: int
    """Bytes that left."""
    dropped: int
    """Packets that it dropped."""
    marked: int
    """Packets that it marked with congestion experienced (ECN)."""
    overlimits: int
    """Times that it had to wait for its rate."""
    requeues: int
    """Packets that it put back."""
    backlog_packets: int
    """Packets in it at the end of the trial."""
    backlog_bytes: int
    """Bytes in it at the end of the trial."""


class HookCost(TypedDict, total=False):
    """What a congestion control in Python cost: real times, which differ from run to run."""

    acks: float
    """Calls of its `on_ack`."""
    hooks_s: float
    """Time in its hooks, s."""
    run_s: float
    """Time of the whole trial, s."""


class TrialDocument(TypedDict):
    """A trial: the results of one scenario with one seed on one engine. A line of `tcpscape run --json`."""

    format: Literal[1]
    """Format of a trial."""
    scenario: str
    """Name of the scenario."""
    cca: str
    """Congestion controls of its flows, sorted, with + between them: `bbr+cubic`."""
    seed: int
    """Number from which all random numbers of the trial follow."""
    engine: str
    """Engine that ran it: model, virtual, live, mock."""
    version: str
    """Version of the model or of the engine. Results of different versions are never mixed."""
    duration: float
    """Simulated or real time, s."""
    path_rtt_ms: float | None
    """Propagation RTT of the path without jitter and queues, ms; null where the path is not known."""
    goodput_mbps: float
    """Sum of the flows' goodputs, Mbit/s (10^6 bit/s)."""
    flows: list[FlowResult]
    """Results of each connection, in the order of the scenario."""
    queues: list[QueueReport | KernelQueueReport]
    """What each queue of the path did; of a real kernel as its qdiscs count."""
    caveats: list[str]
    """What limits the validity of the result, a sentence each."""
    events: int | None
    """Events that the simulator handled; null for other engines."""
    hash: str | None
    """Hash of the whole trace: the same scenario and seed give the same hash on the same version; null where the trial cannot be repeated."""
    kernel: str | None
    """Name and release of the real kernel that ran; null where none did."""
    counters: dict[str, int]
    """A real kernel's counters that are not 0, by node and name: `sender.TcpExt.TCPTimeouts`."""
    check: dict[str, Any]
    """What a testbed reports about its own validity; a problem in it is a caveat too."""
    hook_cost: HookCost
    """What a congestion control in Python cost; empty where there is none."""
    probes: NotRequired[list[ProbeResult]]
    """Results of each probe, in the order of the scenario; only where it has some."""
    transfers: NotRequired[list[TransfersResult]]
    """What became of connections that arrived at random, of each entry of the scenario; only where it has some."""


class CellDocument(TypedDict):
    """A cell of a sweep: one condition under one congestion control on one engine. A line of `tcpscape sweep --json`."""

    format: Literal[1]
    """Format of a cell."""
    name: str
    """Name of the campaign."""
    engine: str
    """Engine that ran it."""
    version: str
    """Version of the model or of the engine."""
    at: dict[str, str]
    """Axis → value as it was written."""
    cca: str
    """Congestion controls of the flows."""
    metric: str
    """What was measured, a name of `tcpscape metric list`."""
    unit: str
    """Unit of the median."""
    n: int
    """Number of trials."""
    median: Interval
    """Median over the trials, in `unit`."""
    cv: Interval
    """Coefficient of variation over the trials, standard deviation / mean."""
    reached: bool
    """Whether the interval is as narrow as --precision asks; true without it."""
    caveats: list[str]
    """What limits the validity, a sentence each."""


class CheckDocument(TypedDict):
    """The verdict of a --check about one condition. With --json it is a line on stderr."""

    format: Literal[1]
    """Format of a check's verdict."""
    check: str
    """The check as it was typed."""
    condition: str
    """The condition that it is about."""
    holds: bool
    """Whether the number holds."""
    sure: bool
    """Whether the number lies outside the interval, so that more such trials would most likely say the same."""
    statistic: str
    """What the value is: `median`, `ratio of means`."""
    value: float | None
    """What was checked, in `unit`: the statistic or the end of its interval that was named."""
    low: float | None
    """Lower end of the statistic's 95 % interval, in `unit`."""
    high: float | None
    """Upper end of the interval, in `unit`."""
    n: int
    """Number of measurements."""
    unit: str
    """Unit of the value; empty where it has none."""
