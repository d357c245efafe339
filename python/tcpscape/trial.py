"""The results of one scenario with one seed on one engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from tcpscape.formats import stamped

if TYPE_CHECKING:
    import polars as pl

LOST = 2**64 - 1
"""Delay of a packet of a probe that did not arrive, in samples, ns."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What to record of a trial besides its summary. Intervals are in ns; 0 records nothing."""

    samples_ns: int = 0
    queue_samples_ns: int = 0
    packets: bool = False
    events: bool = False
    """What happens to each sender, which the model alone can tell; no table that results keep."""

    control_ns: int = 0
    """Interval of the record of what congestion controls show of themselves, which the model alone has; each change of a state is in it besides."""

    @classmethod
    def union(cls, captures: Iterable[Capture]) -> Capture:
        """What suffices for all of them: the shortest interval of each kind of samples, and packets where one records them."""
        every = list(captures)
        flows = min((c.samples_ns for c in every if c.samples_ns), default=0)
        queues = min((c.queue_samples_ns for c in every if c.queue_samples_ns), default=0)
        control = min((c.control_ns for c in every if c.control_ns), default=0)
        return cls(flows, queues, any(c.packets for c in every), any(c.events for c in every), control)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of a trial that are kept: `samples`, `queue_samples`, `packets`."""
        is_kept = {"samples": self.samples_ns, "queue_samples": self.queue_samples_ns, "packets": self.packets}
        return tuple(name for name, kept in is_kept.items() if kept)


@dataclass(frozen=True, slots=True)
class Trial:
    """The results of a scenario with one seed on one engine."""

    scenario: str
    """Name of the scenario."""
    cca: str
    """Congestion controls of its flows, sorted, with + between them: `bbr+cubic`."""
    address: str
    """Content address of scenario, seed, engine and model."""
    seed: int
    """Number from which all random numbers of the trial follow."""
    engine: str
    """Engine that ran it: model, virtual, live, mock."""
    version: str
    """Version of the model or of the engine. Results of different versions are never mixed."""
    duration: float
    """Simulated or real time, s."""
    flows: tuple[FlowResult, ...]
    """Results of each connection, in the order of the scenario."""
    probes: tuple[ProbeResult, ...] = ()
    """Results of each probe, in the order of the scenario; only where it has some."""
    transfers: tuple[TransfersResult, ...] = ()
    """What became of connections that arrived at random, of each entry of the scenario; only where it has some."""
    program: ProgramResult | None = None
    """What became of the command, where the scenario has programs: then flows are those that the packets show."""
    caveats: tuple[str, ...] = ()
    """What limits the validity of the result, a sentence each."""
    path_rtt_ms: float | None = None
    """Propagation RTT of the path without jitter and queues, ms; None where the path is not known."""
    hash: str | None = None
    """Hash of the whole trace: the same scenario and seed give the same hash on the same version; None where the trial cannot be repeated."""
    events: int | None = None
    """Events that the simulator handled; None for other engines."""
    queues: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    """What each queue of the path did; of a real kernel as its qdiscs count."""
    kernel: str | None = None
    """Name and release of the real kernel that ran; None where none did."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """A real kernel's counters that are not 0, by node and name: `sender.TcpExt.TCPTimeouts`."""
    check: Mapping[str, Any] = field(default_factory=dict)
    """What a testbed reports about its own validity; a problem in it is a caveat too."""
    hook_cost: Mapping[str, float] = field(default_factory=dict, compare=False)
    """What a congestion control in Python cost; empty where there is none."""
    samples: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    """Samples of each flow over time, where they were kept."""
    queue_samples: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    """Samples of each queue over time, where they were kept."""
    packets: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    """Packets at the sender, where they were kept."""
    probe_samples: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    """Each packet of each probe, where samples were kept: `t_ns` (when it was sent), `probe`, `delay_ns` (:data:`LOST` of one that was lost)."""
    sender_events: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    """What happened to the senders and when, where it was recorded: a row for each moment, with by how much each counter grew then."""

    control: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    """What the congestion controls showed of themselves, where it was recorded: `t_ns`, `flow`, and a column for each variable, NaN where the
    flow's control has none of that name. Rates in packets/s, times in s. A state is its place in `control_states`."""
    control_states: Mapping[str, Sequence[str]] = field(default_factory=dict, compare=False, repr=False)
    """Variable of `control` that is a state → the names of its states."""

    @property
    def goodput_mbps(self) -> float:
        """Sum of the flows' goodputs, each over its own time, Mbit/s."""
        return sum(f.goodput_mbps for f in self.flows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        return {name: plain(value) for name, value in self.shown().items()} | {"flows": [flow.to_dict() for flow in self.flows]}

    def shown(self, *, queues: bool = True) -> dict[str, Any]:
        """The same with results of parts (RTTs, probes, …) as they are, which a writer of JSON reads faster than mappings made of them.

        :param queues: whether the reports of the queues are among it.
        """
        values = stamped("trial", dict(zip(PRINTED, _printed(self), strict=True)))
        values["flows"] = [flow.shown() for flow in self.flows]
        if queues:
            values["queues"] = [dict(queue) for queue in self.queues]
        else:
            del values["queues"]
        for name in PRINTED_OF_SOME:
            if of_some := getattr(self, name):
                values[name] = of_some
        return values


PRINTED = (
    *("scenario", "cca", "seed", "engine", "version", "duration", "path_rtt_ms", "goodput_mbps"),
    *("flows", "queues", "caveats", "events", "hash", "kernel", "counters", "check", "hook_cost"),
)
"""Fields of a trial that `--json` prints, in this order."""
_printed = attrgetter(*PRINTED)
"""The values of these fields."""
PRINTED_OF_SOME = ("probes", "transfers", "program")
"""Those that it prints where there are some."""


@dataclass(frozen=True, slots=True)
class Rtt:
    """Round-trip times that the sender measured, ms. None where there was no sample.

    The model's are of single measurements, a real kernel's of the smoothed RTT, sampled at an interval.
    """

    min: float | None = None
    """Smallest, ms."""
    p50: float | None = None
    """Median, ms."""
    p95: float | None = None
    """95th percentile, ms."""
    p99: float | None = None
    """99th percentile, ms."""
    max: float | None = None
    """Largest, ms."""
    mean: float | None = None
    """Mean, ms."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Rtt:
        """From plain values; unknown keys are ignored."""
        return cls(*map(values.get, cls.__slots__))


@dataclass(frozen=True, slots=True)
class Cwnd:
    """Congestion window, packets, over the flow's time."""

    mean: float | None = None
    """Mean over the time, packets."""
    max: float | None = None
    """Largest, packets."""


@dataclass(frozen=True, slots=True)
class PlayerResult:
    """What the viewer of a video player has seen (docs/models/methods/player.md)."""

    startup_s: float
    """From the first request to the first picture, s; where that never came, how long the player waited."""
    began: bool
    """Whether there was a picture."""
    stalls: int
    """Stops after the start."""
    stalled_s: float
    """Time stopped, s; a stall that lasts to the end included."""
    played_s: float
    """Media played, s."""
    segments: int
    """Segments downloaded in full."""
    switches: int
    """Segments of another rung than the one before."""
    bitrate_mbps: float | None
    """Mean bit rate of the segments' rungs, Mbit/s; None without a segment."""
    qoe_mbps: float | None
    """Linear QoE for each segment, Mbit/s (Yin et al., SIGCOMM 2015); None without a segment."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """A command that ran behind the path."""

    status: int
    """Its exit status: 128 and the number for a signal; 124 where its time was over."""
    timed_out: bool
    """Whether it was ended because its time was over."""
    seconds: float
    """How long it ran, s."""
    down_mbps: float
    """What left the path on the way to the command, of all protocols, with headers, over its time, Mbit/s."""
    up_mbps: float
    """The same on the way from it."""
    values: Mapping[str, float] = field(default_factory=dict)
    """The numbers in its standard output, by their names: of JSON the way to them, `end.sum_received.bits_per_second`."""
    down_delay_ms: Rtt = Rtt()
    """How long packets were on the path to it, propagation and queues: mean, p50, p99 and max, ms; all None where none passed."""
    up_delay_ms: Rtt = Rtt()
    """The same on the way from it."""


@dataclass(frozen=True, slots=True)
class ResponseResult:
    """The requests of one connection whose application answers them."""

    count: int
    """Answers that were complete."""
    time_ms: Rtt
    """Times from a request to the last byte of its answer, ms."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ResponseResult:
        """From plain values."""
        return cls(values["count"], Rtt.of(values["time_ms"]))


def plain(group: object) -> Any:  # noqa: ANN401 (whatever JSON has)
    """A value of a result as plain values: a group of numbers, or several of them, as mappings."""
    if isinstance(group, Mapping):
        return dict(group)
    if isinstance(group, tuple):
        return [plain(item) for item in group]
    slots = getattr(type(group), "__slots__", None)
    return {name: plain(getattr(group, name)) for name in slots} if slots and is_dataclass(group) else group


@dataclass(frozen=True, slots=True)
class FlowResult:
    """The results of one connection."""

    cca: str
    """Congestion control with the parameters that differ from their defaults, `cubic:hystart=0`."""
    goodput_mbps: float
    """Bytes that reached the receiver in order · 8 / the flow's own sending time, Mbit/s (10^6); what was on its way when it stopped counts."""
    seconds: float
    """The flow's own sending time, s."""
    retransmits: int
    """Segments sent again."""
    spurious_retransmits: int | None
    """Retransmissions that the receiver reported as needless (DSACK)."""
    rtt_ms: Rtt
    """Round-trip times, ms."""
    cwnd: Cwnd
    """Congestion window, packets."""
    limited_by: Mapping[str, float]
    """Share of the sending time during which each cause limited the flow: app, rwnd, cwnd, …"""
    start_s: float = 0.0
    """When it connected, s after the start of the trial."""
    stop_s: float = 0.0
    """When it stopped, s after the start of the trial."""
    established: bool = True
    """Whether the handshake succeeded."""
    bytes_received: int = 0
    """Bytes the receiving application read."""
    bytes_sent: int | None = None
    """Bytes that the sending application wrote."""
    rtos: int | None = None
    """Retransmission timeouts."""
    fast_recoveries: int | None = None
    """Entries into fast recovery."""
    undos: int | None = None
    """Window reductions undone because they were found wrong."""
    dsacks: int | None = None
    """Duplicates that the receiver reported (`tcpi_dsack_dups`)."""
    reord_seen: int | None = None
    """Reordering events that the sender saw (`tcpi_reord_seen`)."""
    reordering: int | None = None
    """Reordering metric at the end, packets (`tcpi_reordering`)."""
    srtt_ms: float | None = None
    """Smoothed RTT at the end, ms."""
    min_rtt_ms: float | None = None
    """Smallest RTT that the sender knows at the end, ms (`tcpi_min_rtt`)."""
    data_segs_out: int | None = None
    """Segments with data sent, retransmissions included."""
    ecn: bool | None = None
    """Whether both ends agreed to use ECN."""
    delivered_ce: int | None = None
    """Segments whose delivery was reported with a congestion mark (`tcpi_delivered_ce`)."""
    ecn_reductions: int | None = None
    """Window reductions for marks (CWR entered by ECE)."""
    segs_in: int | None = None
    """ACKs that the sender received."""
    max_rwnd: int | None = None
    """Largest receive window that the sender saw, bytes."""
    zero_windows: int | None = None
    """ACKs with a window of 0 that the receiver sent."""
    player: PlayerResult | None = None
    """What the viewer has seen, where the receiving application is a video player."""
    responses: ResponseResult | None = None
    """Its answers to requests, where its application answers them."""
    direction: str = "down"
    """`down` or `up`: which way its data travelled."""
    group: int = 0
    """The entry of the scenario's flows that it belongs to, from 0."""
    path_rtt_ms: float | None = None
    """Its own propagation RTT without jitter and queues, ms, where it is not the trial's."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> FlowResult:
        """From plain values; unknown keys are ignored."""
        fields = dict(values)
        if "zero_windows" not in fields and (receiver := fields.get("receiver")):
            fields["zero_windows"] = receiver.get("zero_window_acks")
        for name in ("goodput_mbps", "seconds", "start_s", "stop_s"):
            if fields.get(name, 0.0) is None:
                fields[name] = 0.0
        fields["rtt_ms"] = Rtt.of(fields.get("rtt_ms") or {})
        fields["cwnd"] = Cwnd(*map((fields.get("cwnd") or {}).get, Cwnd.__slots__))
        fields["limited_by"] = {k: v for k, v in (fields.get("limited_by") or {}).items() if v is not None}
        if player := fields.get("player"):
            fields["player"] = PlayerResult(**{k: player[k] for k in PlayerResult.__slots__})
        if isinstance(responses := fields.get("responses"), Mapping):
            fields["responses"] = ResponseResult.of(responses)
        return cls(*_needed_of_flow(fields), *map(fields.get, _OPTIONAL_OF_FLOW, _OPTIONAL_OF_FLOW.values()))

    def to_dict(self) -> dict[str, Any]:
        """Plain values; those of :data:`OF_NETWORKS` only where they differ from their defaults."""
        return {name: plain(value) for name, value in self.shown().items()}

    def shown(self) -> dict[str, Any]:
        """The same with groups of numbers as they are."""
        values = dict(zip(_FLOW, _of_flow(self), strict=True))
        for name in OF_NETWORKS:
            if values[name] == _FLOW[name]:
                del values[name]
        return values

    @property
    def limit(self) -> str:
        """The cause that limited the flow for most of its time; `?` where none is known."""
        return max(self.limited_by, key=lambda k: self.limited_by[k]) if self.limited_by else "?"


_FLOW = {f.name: f.default for f in fields(FlowResult)}
"""Field → its default."""
_of_flow = attrgetter(*_FLOW)
"""The values of a flow's fields."""
_OPTIONAL_OF_FLOW = {name: default for name, default in _FLOW.items() if default is not MISSING}
"""Those with a default, which are behind the others."""
_needed_of_flow = itemgetter(*(name for name in _FLOW if name not in _OPTIONAL_OF_FLOW))
"""The values of the others, of a mapping."""
OF_NETWORKS = ("responses", "direction", "group", "path_rtt_ms")
"""Fields that say nothing where all flows go the same way, on one path, and nobody asks them anything: documents and tables leave them out there."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe measured."""

    name: str
    """The probe's name in its scenario."""
    kind: str
    """`udp` or `scream` (one-way delays; of `scream` from a frame's encoding on), `udp_echo` or `icmp_echo` (round trips)."""
    direction: str
    """`down` or `up`."""
    sent: int
    """Packets sent."""
    received: int
    """Packets that arrived; of an echo, that came back."""
    delay_ms: Rtt
    """One-way delay, or round trip of an echo, ms."""
    jitter_ms: float | None = None
    """Interarrival jitter at the end, ms (RFC 3550 §6.4.1)."""
    reordered: int = 0
    """Packets that arrived after one that was sent later."""
    path_rtt_ms: float | None = None
    """Propagation RTT of its path, without jitter and queues, ms."""
    due: int | None = None
    """Packets that had the time to arrive: sent more than the longest delay of the trial before its end. None, of older results: all."""
    lost: int | None = None
    """Of these, the ones that did not arrive."""
    media_mbps: float | None = None
    """Payload of a media flow that arrived, Mbit/s; None of other probes."""

    @property
    def is_echo(self) -> bool:
        """Whether its delays are round trips."""
        return self.kind.endswith("_echo")

    @property
    def loss(self) -> float:
        """Share of the packets with the time to arrive that did not; what was under way at the end is no loss."""
        due, lost = self.judged
        return lost / due if due else 0.0

    @property
    def judged(self) -> tuple[int, int]:
        """Packets that had the time to arrive, and those of them that did not."""
        return (self.sent if self.due is None else self.due, self.sent - self.received if self.lost is None else self.lost)


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Transfers whose size lies in one class."""

    most: int
    """Largest size of the class, bytes."""
    started: int
    """Connections that began."""
    completed: int
    """Of these, those that were complete by the end."""
    completion_ms: Rtt
    """Time from connect() to the last acknowledgement, ms."""


@dataclass(frozen=True, slots=True)
class TransfersResult:
    """What became of connections that arrived at random."""

    cca: str
    """Congestion control."""
    classes: tuple[SizeClass, ...]
    """By size, the smallest first: up to 10 kB, 100 kB, 1 MB, and more."""
    bytes_received: int
    """Bytes that the receivers' applications got."""
    retransmits: int
    """Segments sent again."""
