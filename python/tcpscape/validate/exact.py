"""Two engines segment by segment: how many segments at the sender's host are the same on a condition, and the first that is not.

Both record the sender's host, whose device has no queue (:class:`~tcpscape.validate.draw.ExactDraw`), so that a segment is seen at the instant at
which TCP sends or gets it. Super-packets are compared as the segments that they are cut into. A segment is the same if its direction, sequence and
acknowledgement number, length, flags and SACK blocks are, at the same place in the order. Times are another question: they count from the arrival
of the SYN-ACK, before which the host decides (connect(), the neighbour's address), and are answered by the largest difference, never by a
tolerance. The host's time is aligned before: the tick falls as long before the arrival of the SYN-ACK on A as on B, and the model's applications
take as much of their host as those of a kernel in virtual time. What B's netem draws at random A does again, packet by packet
(:mod:`~tcpscape.validate.replay`). What a control draws at random cannot be seen: A runs it with several seeds, and
the one that stays the same for longest is compared.

To say in which state both senders were, both run again with samples. A sample may change a trial: the state is told only where this second one has
the same segments up to the difference.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import polars as pl

from tcpscape import writing
from tcpscape.campaign import checks
from tcpscape.campaign.checks import Check
from tcpscape.campaign.execute import Runner
from tcpscape.controls.spelling import name_of
from tcpscape.engines.model import VirtualHostModel
from tcpscape.engines.plan import READING_NS
from tcpscape.engines.virtual import Virtual
from tcpscape.errors import refuse
from tcpscape.store.results import Store
from tcpscape.trial import Capture, Trial
from tcpscape.validate import compare, replay
from tcpscape.validate.compare import CheckedBound
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.parting import QUANTITIES, UNSET_SSTHRESH, SampledQuantity
from tcpscape.validate.sides import EngineSide, Say
from tcpscape.validate.validation import ValidationSession

PACKETS, FATES, STATES, RESULTS = "packets", "fates", "states", "exact.csv"
"""Directories of the trials and of what netem did in them, in that of the validation, and its table."""
STATE_NS = 1_000_000
"""Interval of the samples that tell the senders' states, ns."""
END_NS = 10_000_000
"""The comparison ends so long before the application does, ns: a tick of the slowest kernel, since a closed connection answers with resets."""
TICKS_NS = 20_000_000
"""A whole number of ticks of every kernel, ns: 2 at 100 Hz, 5 at 250, 6 at 300 (to 2 ns), 20 at 1000."""
DRAWS, TRIES = ("bbr", "bbr3", "cdg"), 32
"""Controls that draw random numbers, and the seeds that are tried for them: bbr begins its cycle in one of seven phases."""
PHASES, PHASED = range(0, READING_NS, 8), 2_000
"""What may have passed of a step of the clock when a trial begins, ns, and the segments by whose times it is found."""
PSH, FIN, SYN, CWR = 0x08, 0x01, 0x02, 0x80


class Kind(str, Enum):
    """What differs first."""

    ENDS = "ends"
    """One side has no more segments."""
    TURN = "turn"
    """One side sends where an ACK comes on the other."""
    PLACE = "place"
    """Both send, other data."""
    LENGTH = "length"
    """Both send the same data in segments of other lengths."""
    PUSH = "push"
    """The flag PSH alone."""
    FLAGS = "flags"
    """Other flags."""
    ACK = "ack"
    """ACKs of other data: the receiver or the path did otherwise."""
    SACK = "sack"
    """ACKs with other SACK blocks."""


@dataclass(frozen=True)
class Segment:
    """A segment at the sender's host."""

    t_ns: int
    """Since the SYN-ACK arrived."""
    received: bool
    seq: int
    ack: int
    length: int
    flags: int
    sack: tuple[tuple[int, int], ...]

    def same(self, other: Segment) -> bool:
        """Whether all but the times are the same."""
        return self._content == other._content

    @property
    def _content(self) -> tuple[object, ...]:
        return self.received, self.seq, self.ack, self.length, self.flags, self.sack


@dataclass(frozen=True)
class Recording:
    """The segments of a trial, and how many of them come before the end of the comparison."""

    segments: Sequence[Segment]
    count: int
    seed: int
    zero_ns: int = 0
    """When the SYN-ACK arrived, since the trial began."""


@dataclass(frozen=True)
class Difference:
    """The first segments that are not the same, and the senders' states before."""

    kind: Kind
    a: Segment | None
    b: Segment | None
    states: tuple[tuple[SampledQuantity, float | None, float | None], ...] = ()
    """Quantities with their values on A and B in the last sample before, None where it cannot be told."""

    @property
    def t_ns(self) -> int:
        """The time of the earlier one."""
        return min(s.t_ns for s in (self.a, self.b) if s)


@dataclass(frozen=True)
class Twin:
    """One condition on both sides."""

    condition: NamedScenario
    same: int
    """Segments that are the same before the first difference."""
    compared: int
    """Segments that there would be to compare."""
    apart_ns: int
    """Largest difference of the times of the same segments, ns."""
    seed: int
    """Of A's trial."""
    first: Difference | None = None

    @property
    def is_same(self) -> bool:
        """Whether every segment is the same."""
        return self.first is None

    @property
    def same_times(self) -> bool:
        """Whether every segment is the same and has the same time, to the nanosecond."""
        return self.is_same and self.apart_ns == 0


METRICS = {name: checks.unmeasured(name) for name in ("same", "share", "times")}
"""What a bound may be on: conditions with the same segments, their share, and those with the same times too."""


@dataclass(frozen=True)
class Exact:
    """The comparison of all conditions."""

    a: EngineSide
    b: EngineSide
    source: str
    twins: tuple[Twin, ...]
    left_out: tuple[tuple[str, str], ...]
    checked: Sequence[CheckedBound] = ()

    @property
    def same(self) -> list[Twin]:
        """The conditions on which every segment is the same."""
        return [t for t in self.twins if t.is_same]

    def reached(self, name: str) -> float:
        """The value of one of :data:`METRICS`."""
        if name == "times":
            return float(sum(t.same_times for t in self.twins))
        return len(self.same) / (len(self.twins) if name == "share" else 1)


def recording(trial: Trial, condition: NamedScenario) -> Recording:
    """What the sender's host saw of the trial's only flow, super-packets cut."""
    if trial.packets is None:
        refuse("engine", f"{trial.engine} records no packets", "compare model and virtual")
    segments = list(_segments(trial.packets, condition.scenario.mtu - replay.HEADERS))
    zero = next((s.t_ns for s in segments if s.received), 0)
    until = condition.scenario.duration - END_NS - zero
    shifted = [Segment(s.t_ns - zero, s.received, s.seq, s.ack, s.length, s.flags, s.sack) for s in segments]
    return Recording(shifted, sum(s.t_ns < until for s in shifted), trial.seed, zero)


def _segments(packets: pl.DataFrame, mss: int) -> Iterator[Segment]:
    """The segments in order; PSH and FIN are the last part's of a super-packet, CWR the first one's."""
    for row in packets.iter_rows(named=True):
        sack = tuple((row[f"sack{i}_start"], row[f"sack{i}_end"]) for i in range(row["nsack"]))
        left, seq, flags = row["len"], row["seq"], row["flags"]
        while True:
            length = min(left, mss)
            left -= length
            part = flags & ~(PSH | FIN) if left else flags
            yield Segment(row["t_ns"], bool(row["received"]), seq, row["ack"], length, part, sack)
            if not left:
                break
            seq, flags = seq + length, flags & ~CWR


def compared(condition: NamedScenario, a: Recording, b: Recording) -> Twin:
    """Both recordings, segment by segment."""
    count = max(a.count, b.count)
    pairs = list(zip(a.segments[:count], b.segments[:count], strict=False))
    same = next((i for i, (x, y) in enumerate(pairs) if not x.same(y)), len(pairs))
    apart = max((abs(x.t_ns - y.t_ns) for x, y in pairs[:same] if min(x.t_ns, y.t_ns) >= 0), default=0)
    first = None
    if same < count:
        x, y = (s.segments[same] if same < len(s.segments) else None for s in (a, b))
        first = Difference(_kind(x, y), x, y)
    return Twin(condition, same, count, apart, a.seed, first)


def _kind(a: Segment | None, b: Segment | None) -> Kind:
    """What differs between two segments at the same place."""
    if a is None or b is None:
        return Kind.ENDS
    differences = (
        (Kind.TURN, a.received != b.received),
        (Kind.ACK, a.received and a.ack != b.ack),
        (Kind.SACK, a.sack != b.sack),
        (Kind.PLACE, a.seq != b.seq),
        (Kind.LENGTH, a.length != b.length),
        (Kind.PUSH, a.flags ^ b.flags == PSH),
    )
    return next((kind for kind, differs in differences if differs), Kind.FLAGS)


def run(session: ValidationSession, bounds: Sequence[Check], out: Path, say: Say) -> Exact:
    """Runs every condition of the session on both sides and compares; what is in `out` is not run again."""
    conditions, a, b, source = session.plan.conditions, session.plan.a, session.plan.b, session.source
    if not isinstance(a, EngineSide) or not isinstance(b, EngineSide):
        refuse("against", "recorded results have no packets", "name two engines")
    left_out = tuple((c.id, why) for c in conditions if (why := a.refuses(c) or b.refuses(c) or _refusal(c, a, b)))
    runnable = [_named(c) for c in conditions if c.id not in dict(left_out)]
    _expect_any(runnable, left_out)
    capture = Capture(packets=True)
    a, b = _beside(a, b), _beside(b, a)
    recorder = replay.RecordingKernel(b.engine, out / FATES) if isinstance(b.engine, Virtual) else None
    b = replace(b, engine=recorder or b.engine)
    trials_b = _run(b, [(c, range(1)) for c in runnable], capture, out / PACKETS, say)
    references = [recording(theirs, c) for c, (theirs,) in zip(runnable, trials_b, strict=True)]
    impaired = [c for c in runnable if replay.impaired(c.scenario)]
    if recorder and impaired:
        fates = {c.id: recorder.fates(b.scenario(c), 0) for c in impaired}
        unclear = [id for id, of_ways in fates.items() if of_ways is None]
        left_out += tuple((id, replay.UNCLEAR) for id in unclear)
        pairs = [(c, r) for c, r in zip(runnable, references, strict=True) if c.id not in unclear]
        runnable, references = [c for c, _ in pairs], [r for _, r in pairs]
        _expect_any(runnable, left_out)
        told = {id: of_ways for id, of_ways in fates.items() if of_ways is not None}
        a = replace(a, engine=replay.ReplayingModel(told))
    seeds = [range(TRIES) if name_of(c.cca) in DRAWS else range(1) for c in runnable]
    aligned = _aligned(runnable, references, a, out / PACKETS, say)
    if isinstance(a.engine, VirtualHostModel):
        a = _in_phase(aligned, references, a, out / PACKETS, say)
    trials_a = _run(a, list(zip(aligned, seeds, strict=True)), capture, out / PACKETS, say)
    twins = []
    for c, ours, reference in zip(aligned, trials_a, references, strict=True):
        twins.append(max((compared(c, recording(t, c), reference) for t in ours), key=lambda t: (t.is_same, t.same)))
    result = Exact(a, b, source, tuple(_with_states(twins, runnable, (a, b), out / STATES, say)), left_out)
    write(result, out / RESULTS)
    checked = [CheckedBound(bound, compare.EVERYWHERE, result.reached(bound.metric.name)) for bound in bounds]
    return Exact(a, b, source, result.twins, left_out, checked)


def _expect_any(conditions: Sequence[NamedScenario], left_out: Sequence[tuple[str, str]]) -> None:
    """Refuses a comparison of which no condition is left, by the reason of the first."""
    if not conditions:
        refuse("conditions", f"no condition can be compared ({left_out[0][1] if left_out else 'none given'})", "name others")


def _beside(side: EngineSide, other: EngineSide) -> EngineSide:
    """A side; the model beside a kernel in virtual time with the costs of that."""
    is_model = (side.engine.name, other.engine.name) == ("model", "virtual")
    return replace(side, engine=VirtualHostModel()) if is_model else side


def _aligned(conditions: Sequence[NamedScenario], references: Sequence[Recording], a: EngineSide, out: Path, say: Say) -> list[NamedScenario]:
    """The conditions for A: the tick falls as long before the arrival of the SYN-ACK there as in the recordings of B.

    When that arrives on A, a shorter trial tells, which has no other packets until then.
    """
    short = [
        replace(c, scenario=c.scenario.model_copy(update={"duration": min(c.scenario.duration, 2 * r.zero_ns + END_NS)}))
        for c, r in zip(conditions, references, strict=True)
    ]
    zeros = [
        recording(trial, c).zero_ns
        for c, (trial,) in zip(short, _run(a, [(c, range(1)) for c in short], Capture(packets=True), out, say), strict=True)
    ]
    return [_shifted(c, zero - r.zero_ns) for c, r, zero in zip(conditions, references, zeros, strict=True)]


def _in_phase(conditions: Sequence[NamedScenario], references: Sequence[Recording], a: EngineSide, out: Path, say: Say) -> EngineSide:
    """The model whose clock stands, when a trial begins, where that of B does: there the times of the first segments are the nearest.

    Where in a step a kernel's clock is cannot be seen, but by when its timers fire.
    """
    assert isinstance(a.engine, VirtualHostModel)
    short = []
    for c, r in zip(conditions, references, strict=True):
        until = r.segments[min(PHASED, len(r.segments) - 1)].t_ns + 2 * r.zero_ns + END_NS
        short.append(replace(c, scenario=c.scenario.model_copy(update={"duration": min(c.scenario.duration, until)})))
    best: dict[str, tuple[int, int, int]] = {}
    for phase in PHASES:
        side = replace(a, engine=a.engine.at({c.id: phase for c in conditions}))
        trials = _run(side, [(c, range(1)) for c in short], Capture(packets=True), out, say)
        for c, r, (trial,) in zip(short, references, trials, strict=True):
            same, apart = _beginning(recording(trial, c), r)
            best[c.id] = min(best.get(c.id, (0, 0, PHASES.stop)), (-same, apart, phase))
    return replace(a, engine=a.engine.at({id: phase for id, (*_, phase) in best.items()}))


def _beginning(a: Recording, b: Recording) -> tuple[int, int]:
    """How many of the first segments are the same, and the sum of the differences of their times, ns."""
    pairs = list(zip(a.segments[:PHASED], b.segments[:PHASED], strict=False))
    same = next((i for i, (x, y) in enumerate(pairs) if not x.same(y)), len(pairs))
    return same, sum(abs(x.t_ns - y.t_ns) for x, y in pairs[:same] if min(x.t_ns, y.t_ns) >= 0)


def _shifted(c: NamedScenario, by_ns: int) -> NamedScenario:
    """A condition whose tick falls later by so much; the same where it leaves the tick to each trial."""
    if c.scenario.tick_phase is None or by_ns == 0:
        return c
    return replace(c, scenario=c.scenario.model_copy(update={"tick_phase": (c.scenario.tick_phase + by_ns) % TICKS_NS}))


def _named(c: NamedScenario) -> NamedScenario:
    """The condition with its id as the name of its scenario, by which :class:`~tcpscape.validate.replay.ReplayingModel` finds its record."""
    return replace(c, scenario=c.scenario.model_copy(update={"name": c.id}))


def _refusal(c: NamedScenario, a: EngineSide, b: EngineSide) -> str | None:
    """Why segments of a condition cannot be compared one by one."""
    if c.scenario.flow_count != 1 or c.scenario.is_topology:
        return "conditions: a single flow on one path is compared segment by segment; leave this one out"
    if not replay.impaired(c.scenario):
        return None
    if (a.engine.name, b.engine.name) != ("model", "virtual"):
        return "conditions: each side draws loss and jitter by itself; write --engine model --engine virtual, whose netem the model replays"
    return replay.refusal(a.scenario(c)) or replay.refusal(b.scenario(c))


def _run(side: EngineSide, work: Sequence[tuple[NamedScenario, range]], capture: Capture, out: Path, say: Say) -> list[list[Trial]]:
    progress = say(f"{side.label}, {len(work)} conditions")
    return Runner(side.engine, side.jobs, capture, Store(out), progress).run_all([(side.scenario(c), seeds) for c, seeds in work])


def _with_states(twins: Sequence[Twin], conditions: Sequence[NamedScenario], sides: Sequence[EngineSide], out: Path, say: Say) -> Iterator[Twin]:
    """The same with B's conditions; those that differ with the senders' states before."""
    parted = [(t, c) for t, c in zip(twins, conditions, strict=True) if t.first]
    capture = Capture(packets=True, samples_ns=STATE_NS)
    work = [(t.condition, range(t.seed, t.seed + 1)) for t, _ in parted], [(c, range(1)) for _, c in parted]
    runs = [_run(side, trials, capture, out, say) if trials else [] for side, trials in zip(sides, work, strict=True)]
    states = dict(zip([c.id for _, c in parted], zip(*runs, strict=True), strict=True))
    for t in (replace(t, condition=c) for t, c in zip(twins, conditions, strict=True)):
        if not t.first:
            yield t
            continue
        again = [trial for (trial,) in states[t.condition.id]]
        one, other = (_state(trial, t, segment) for trial, segment in zip(again, (t.first.a, t.first.b), strict=True))
        rows = tuple((q, one.get(q.column), other.get(q.column)) for q in QUANTITIES if q.column in one or q.column in other)
        yield replace(t, first=replace(t.first, states=rows))


def _state(trial: Trial, twin: Twin, segment: Segment | None) -> dict[str, float]:
    """The last sample before the difference, each quantity in its unit; none where this trial has another segment there."""
    recorded = recording(trial, twin.condition)
    again = recorded.segments
    if segment is None or len(again) <= twin.same or not again[twin.same].same(segment) or trial.samples is None:
        return {}
    before = trial.samples.filter(pl.col("t_ns") < again[twin.same].t_ns + recorded.zero_ns).tail(1)
    if before.is_empty():
        return {}
    row = before.row(0, named=True)
    return {q.column: min(row[q.column], UNSET_SSTHRESH) * q.scale for q in QUANTITIES if row.get(q.column) is not None}


def read_bounds(text: str) -> list[Check]:
    """The bounds of a text, `same>=9,share>=0.5`."""
    return [checks.read(part, METRICS, only=True, example="write for example same>=9") for part in text.split(",")]


def write(result: Exact, file: Path) -> None:
    """A row for each condition."""
    with io.StringIO(newline="") as f:
        table = csv.writer(f, lineterminator="\n")
        table.writerow(("id", "cca", "same", "compared", "apart_ns", "kind", "t_ns"))
        for t in result.twins:
            first = (t.first.kind.value, t.first.t_ns) if t.first else ("", "")
            table.writerow((t.condition.id, t.condition.cca, t.same, t.compared, t.apart_ns, *first))
        writing.whole(file, f.getvalue())
