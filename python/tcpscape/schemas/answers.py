"""The documents of single answers: edges of cliffs, bounds on latency spikes, comparisons, validations, an advice, and what a machine can run."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from tcpscape.campaign.video import Viewing
from tcpscape.controls.deployment import Deployment
from tcpscape.engines.host.survey import Survey
from tcpscape.findings.advice.choice import Verdict
from tcpscape.findings.damage import Damage
from tcpscape.scenario.conditions import Conditions
from tcpscape.stats import Estimate
from tcpscape.validate.compare import DivergenceSummary
from tcpscape.validate.ranks import Ranks


class LevelDocument(TypedDict):
    """A level of jitter or loss that a search measured."""

    at: float
    """The level, in the edge's `unit`."""
    retention: float | None
    """Mean goodput over the unimpaired mean goodput, a fraction."""
    low: float | None
    """Lower end of the 95 % interval of the retention."""
    high: float | None
    """Upper end of the interval."""
    n: int
    """Number of trials at this level."""
    cv: float | None
    """Coefficient of variation of the goodput at this level."""


class EdgeDocument(TypedDict):
    """Where goodput falls through a threshold along jitter or loss. A line of `tcpscape cliff --json`."""

    format: Literal[1]
    """Format of an edge."""
    cca: str
    """Congestion control."""
    rtt_ns: int
    """Round-trip time of the path without jitter, ns."""
    along: Literal["jitter", "loss"]
    """What gets worse."""
    unit: Literal["ns", "fraction"]
    """Unit of `edge`, `interval`, `chaos` and of the levels: ns of jitter each way, or a fraction of lost packets each way."""
    threshold: float
    """Share of the unimpaired goodput that counts as fallen, a fraction."""
    statistic: Literal["mean"]
    """Statistic of the goodput that falls."""
    edge: float | None
    """Where it falls, in `unit`; null where it does not fall on the axis."""
    interval: tuple[float | None, float | None] | None
    """Ends of the edge's 95 % interval, in `unit`; an end that lies beyond the axis is null."""
    chaos: tuple[float, float] | None
    """Ends of the chaos zone, where single trials land on both sides, in `unit`; null where there is none."""
    unimpaired_mbps: float
    """Mean goodput without the impairment, Mbit/s."""
    runs: int
    """Number of trials of the search."""
    levels: list[LevelDocument]
    """Every level that was measured, from the lowest."""
    tcpscape: str
    """Version of tcpscape."""
    engine: str
    """Engine that ran the trials."""
    engine_version: str
    """Version of the model or of the engine."""
    first_seed: int
    """First seed of each level; the others follow it."""
    scenario: dict[str, Any]
    """The path without the impairment, as `tcpscape schema scenario` describes it."""


class SideDocument(TypedDict):
    """One side of a validation."""

    label: str
    """What it is called."""
    version: str
    """Version of its engine."""


class BoundCheckDocument(TypedDict):
    """A bound that `--check` of `tcpscape validate` asks for."""

    bound: str
    """The bound as it was typed."""
    group: str
    """The group of conditions that it is about; empty for all."""
    reached: float | None
    """The number that was reached."""
    met: bool
    """Whether the bound is met."""


class PartingRow(TypedDict):
    """A quantity in which two engines part."""

    quantity: str
    """A column of the samples."""
    t_s: float
    """When it parts, s."""
    a: float | None
    """Its value on A."""
    b: float | None
    """Its value on B."""
    lasting: float
    """Share of the rest of the trace in which they are apart, a fraction."""


class PartingDocument(TypedDict):
    """The first moments at which two engines part under a condition."""

    first: str | None
    """The quantity that parts first; null where none does."""
    chance: float | None
    """Share of pairs of trials of one engine that part as early."""
    exact: bool
    """Whether both sides have the same random numbers, so that any difference counts."""
    found: list[PartingRow]
    """Every quantity that parts."""


class RunsDocument(TypedDict):
    """How often a condition was run."""

    id: str
    """The condition."""
    runs: tuple[int, int]
    """Trials on A and on B."""


class ValidationDocument(TypedDict):
    """How far two engines are apart over many conditions: `summary.json` of `tcpscape validate`.

    Errors are |ln(goodput of A / goodput of B)| of a condition's medians.
    """

    format: Literal[1]
    """Format of a validation."""
    tcpscape: str
    """Version of tcpscape."""
    source: str
    """Where the conditions come from."""
    engines: list[str]
    """The engines as they were named."""
    against: str | None
    """Recorded results that were B; null where an engine was."""
    a: SideDocument
    """The first side."""
    b: SideDocument
    """The second side, the reference."""
    all: DivergenceSummary
    """The divergence over all conditions."""
    families: dict[str, DivergenceSummary]
    """Family of conditions → its divergence."""
    queues: dict[str, DivergenceSummary]
    """Queue of the bottleneck → its divergence; of a chain of links `codel+bfifo`."""
    links: dict[str, DivergenceSummary]
    """Number of links of random topologies (`2 links`) → their divergence; empty without topologies."""
    ccas: dict[str, DivergenceSummary]
    """Congestion control → its divergence."""
    families_ccas: dict[str, DivergenceSummary]
    """Family and congestion control (`loss / bbr`) → its divergence."""
    ranks: Ranks | None
    """Whether both sides rank congestion controls alike; null where no path ran under several."""
    bounds: list[BoundCheckDocument]
    """The bounds of --check."""
    worst: list[str]
    """Ids of the conditions that are farthest apart, the worst first."""
    partings: dict[str, PartingDocument]
    """Id of a condition that was looked into → where the engines part."""
    left_out: dict[str, str]
    """Id of a condition that did not run → the reason."""
    caveats: list[str]
    """What limits the validity, a sentence each."""
    conditions: list[RunsDocument]
    """Every condition."""


class CliffDocument(TypedDict):
    """The cliff of a congestion control along jitter."""

    jitter_ns: float | None
    """Jitter each way at which half of the goodput is left, ns; null where there is none on the axis."""
    interval_ns: tuple[float | None, float | None] | None
    """Ends of its 95 % interval, ns; an open end is null."""
    bracket_ns: tuple[float | None, float | None] | None
    """Jitters between which it was searched, ns."""
    chaos_ns: tuple[float | None, float | None] | None
    """Ends of the chaos zone, ns; null where there is none."""


class StandingDocument(TypedDict):
    """One congestion control on the path of an advice."""

    cca: str
    """Congestion control."""
    obstacle: str
    """Why it cannot be deployed; empty where it can."""
    deployable: bool
    """Whether the kernel has it."""
    goodput: Estimate
    """Mean goodput, Mbit/s."""
    added_rtt: Estimate
    """Mean over the trials of the RTT's 95th percentile less the propagation RTT, ms."""
    median: Estimate
    """Median goodput, Mbit/s."""
    cv: Estimate
    """Coefficient of variation of the goodput."""
    against_best: Estimate
    """Goodput / that of the congestion control with the highest one that can be deployed, paired."""
    retransmits: Estimate
    """Segments sent again, mean over the trials."""
    limited_by: dict[str, float]
    """Cause → mean share of the time during which it limited the flows, a fraction; the largest first."""
    needed: int
    """Measurements for an interval of ± 10 %."""
    side: str
    """The side of its cliff on which the path stands: stable, chaos, collapsed."""
    stands: str
    """The same, or that a stable path is near the cliff."""
    cliff: CliffDocument
    """Its cliff along jitter."""
    damage: list[Damage]
    """What each impairment of the path costs."""


class OrderDocument(TypedDict):
    """What the other assumption about the order of packets would give."""

    assumed: str
    """What was assumed of jitter: reorder, keep, clamp."""
    other: str
    """The other assumption."""
    choice: str | None
    """The congestion control to use under it; null where there is none."""
    changes: bool
    """Whether another congestion control would be recommended."""
    viewer: dict[str, Viewing]
    """Congestion control → what a viewer sees; empty without players."""
    goodput: dict[str, Estimate]
    """Congestion control → mean goodput, Mbit/s."""


class AdviceDocument(TypedDict):
    """Which congestion control to use on a path. What `tcpscape advise --json` prints, and `advice.json` of its directory.

    A number that is infinite or not known is null.
    """

    format: Literal[1]
    """Format of an advice."""
    path: Conditions
    """The path and its flows."""
    jitter_over_rtt: float
    """Jitter each way / RTT."""
    goal: str
    """What the best one is best in: goodput, delay, video."""
    choice: str | None
    """The congestion control to use; null where nothing can be recommended."""
    verdict: Verdict
    """How certain that is."""
    by: str
    """The goal that decided, where those compared are as good by `goal` itself."""
    answer: str
    """The answer as a sentence."""
    why: str
    """The reason, as a clause."""
    leader: str | None
    """The better one of the two that were compared."""
    follower: str | None
    """The other one."""
    gain: Estimate | None
    """Of the leader over the follower: ratio of the means, or difference in the goal's unit."""
    more_runs: int | None
    """Further trials of each that would probably decide; null where it is decided."""
    command: str
    """The shell commands that set the congestion control until the next start; empty where nothing has to change."""
    deployment: Deployment | None
    """What to type on the machine that sends the data; null where nothing can be recommended."""
    order: OrderDocument | None
    """The other assumption about the order of packets; null without jitter."""
    share_beside_default: Estimate | None
    """Share of the goodput that flows under the choice get beside as many under Linux's default, a fraction."""
    taken: list[str]
    """What of the path comes from a file, and what is assumed all the same; sentences."""
    trials: int
    """Number of trials that the answer rests on."""
    caveats: list[str]
    """What limits the validity, a sentence each."""
    best: str
    """The congestion control with the highest goodput among those that can be deployed."""
    ranking: list[StandingDocument]
    """Every congestion control, the best by the goal first."""


class CallCaseDocument(TypedDict):
    """A call beside uploads under one congestion control, behind one queue."""

    queue: str | None
    """The queue before the link's way up; null is the link as it is."""
    cca: str | None
    """Congestion control of the uploads; null without uploads."""
    score: Estimate
    """Mean opinion score of the worse of the call's two ways, 1 to 4.5 (E-model, ITU-T G.107)."""
    delay: Estimate
    """95th percentile of the one-way delay of the call's packets on the way up, ms."""
    lost: Estimate
    """Share of the call's packets that were lost, the worse way."""
    upload: Estimate
    """The uploads' goodput, Mbit/s."""


class CallsDocument(TypedDict):
    """Which queue and which congestion control keep calls good beside uploads. What `tcpscape advise --goal calls --json` prints."""

    format: Literal[1]
    """Format of an advice for calls."""
    down_bps: int
    """Rate of the link's way down, bit/s."""
    up_bps: int
    """Rate of its way up, bit/s."""
    rtt_ms: float
    """Round trip without queues, ms."""
    buffer_bytes: int
    """The modem's buffer of the way up, bytes."""
    uploads: int
    """Uploads at the same time."""
    answer: str
    """The answer as a sentence."""
    queue: str | None
    """The queue to put before the way up; null where none is needed."""
    cca: str
    """The congestion control to upload with."""
    shaped_bps: int | None
    """Rate to which the router shapes, bit/s; null without a queue."""
    commands: list[str]
    """What to type on the router as root."""
    quiet: CallCaseDocument
    """The call without uploads."""
    cases: list[CallCaseDocument]
    """Every case that was compared."""
    trials: int
    """Trials of each case."""
    engine: str
    """The engine that ran them."""
    caveats: list[str]
    """What limits the validity, a sentence each."""


class FindingDocument(TypedDict):
    """A line of what a machine can run."""

    what: str
    """What was looked at."""
    found: str
    """What is there, or what is wrong."""
    to_do: str
    """What to do about it; empty where nothing is needed."""


class DoctorDocument(TypedDict):
    """What a machine can run, and why not. The document of `tcpscape doctor --json`."""

    format: Literal[1]
    """Format of this document."""
    version: str
    """Version of tcpscape."""
    findings: list[FindingDocument]
    """The lines that the command prints."""
    live: Survey
    """What this machine allows the live engine, and how well, as measured."""
