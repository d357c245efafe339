"""A trial as a trace for Perfetto (ui.perfetto.dev, trace_processor): each flow a process with counters, states and events; each queue counters.

Source: perfetto.dev/docs/reference/trace-packet-proto; the numbers of fields are those of `protos/perfetto/trace/trace_packet.proto` and the files
that it includes. Times are ns from the start of the trial. A counter is written where it changes: Perfetto holds the value until the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpscape.interchange import base
from tcpscape.interchange.base import InterchangeError
from tcpscape.metrics import queues, samples
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl


PACKET = 1
"""Trace.packet."""
TIMESTAMP, SEQUENCE, TRACK_EVENT, SEQUENCE_FLAGS, TRACK = 8, 10, 11, 13, 60
"""TracePacket: timestamp (ns), trusted_packet_sequence_id, track_event, sequence_flags, track_descriptor."""
CLEARED = 1
"""SEQ_INCREMENTAL_STATE_CLEARED: nothing before this packet is referred to."""
UUID, NAME, PROCESS, THREAD, PARENT, COUNTER = 1, 2, 3, 4, 5, 8
"""TrackDescriptor: uuid, name, process, thread, parent_uuid, counter."""
EVENT_TYPE, EVENT_TRACK, EVENT_CATEGORY, EVENT_NAME, COUNTER_VALUE, ANNOTATION = 9, 11, 22, 23, 30, 4
"""TrackEvent: type, track_uuid, categories, name, counter_value, debug_annotations."""
BEGIN, END, INSTANT, SAMPLE = 1, 2, 3, 4
"""TrackEvent.type: a slice begins or ends, an instant, a counter's value."""
ANNOTATION_NAME, INT_VALUE, STRING_VALUE = 10, 4, 6
"""DebugAnnotation: name, int_value, string_value."""
UNIT, MULTIPLIER, UNIT_NAME = 3, 4, 6
"""CounterDescriptor: unit, unit_multiplier, unit_name."""
TIME_NS, COUNT, BYTES = 1, 2, 3
"""CounterDescriptor.unit."""
INFINITE = 2**31 - 1
"""Packets: the slow-start threshold before the first reduction."""
PATH = 1_000_000
"""Process number of the path's queues, behind those of the flows."""
PER_PROCESS = 100
"""Tracks of a process at most: a track's identifier is its process' number · this + its place."""
STATES, EVENTS, FIRST_COUNTER = 1, 2, 3
"""Places of a process' tracks; 0 is the process itself."""


@dataclass(frozen=True, slots=True)
class CounterTrack:
    """A column of samples as a counter."""

    column: str
    name: str
    unit: int
    multiplier: int = 1
    """Of the unit, in one of the column's."""
    unit_name: str = ""
    none_from: int = base.UNLIMITED
    """From this value on the column says that there is none."""


OF_FLOW = (
    CounterTrack("cwnd", "congestion window", COUNT, unit_name="packets"),
    CounterTrack("in_flight", "in flight", COUNT, unit_name="packets"),
    CounterTrack("ssthresh", "slow-start threshold", COUNT, unit_name="packets", none_from=INFINITE),
    CounterTrack("srtt_us", "smoothed RTT", TIME_NS, 1000),
    CounterTrack("min_rtt_us", "least RTT", TIME_NS, 1000, none_from=2**32 - 1),
    CounterTrack("pacing_rate", "pacing rate", BYTES, unit_name="bytes/s"),
    CounterTrack("delivery_rate", "delivery rate", BYTES, unit_name="bytes/s"),
    CounterTrack("rwnd", "receive window", BYTES),
    CounterTrack("retransmits", "retransmissions so far", COUNT, unit_name="segments"),
)
OF_QUEUE = (
    CounterTrack("packets", "packets", COUNT, unit_name="packets"),
    CounterTrack("bytes", "bytes", BYTES),
    CounterTrack("sojourn_ns", "delay", TIME_NS),
    CounterTrack("drops", "drops so far", COUNT, unit_name="packets"),
    CounterTrack("marks", "marks so far", COUNT, unit_name="packets"),
)


def write(trial: Trial, mtu: int = base.MTU) -> bytes:
    """The trace; refuses a trial without samples."""
    flows = base.by_flow(trial.samples)
    if not flows:
        raise InterchangeError("perfetto: the trial has no samples, and a trace is made of them; run with --samples 10ms --out DIR")
    tracks, timed = [], []
    for flow, rows in flows.items():
        tracks += list(_flow_tracks(flow, trial.flows[flow].cca))
        timed += [*_counters(flow + 1, FIRST_COUNTER, OF_FLOW, rows), *_slices(trial, flow), *_instants(trial, flow)]
    tracks.append(_process(PATH, "path"))
    for place, (name, rows) in enumerate(_queues(trial)):
        first = FIRST_COUNTER + place * len(OF_QUEUE)
        tracks += _counter_tracks(PATH, first, OF_QUEUE, f"{name}: ")
        timed += _counters(PATH, first, OF_QUEUE, rows)
    timed.append((0, _instant((min(flows) + 1) * PER_PROCESS + EVENTS, "trial", base.provenance(trial))))
    ordered = sorted(timed, key=lambda pair: pair[0])
    first_packet = message(PACKET, integer(SEQUENCE, 1), integer(SEQUENCE_FLAGS, CLEARED))
    return b"".join([first_packet, *(_packet(message(TRACK, t)) for t in tracks), *(_packet(event, at) for at, event in ordered)])


def _packet(content: bytes, at: int | None = None) -> bytes:
    """A packet of the trace, at a time (ns) where it is an event."""
    return message(PACKET, *([integer(TIMESTAMP, at)] if at is not None else []), integer(SEQUENCE, 1), content)


def _process(pid: int, name: str) -> bytes:
    """The track of a process (ProcessDescriptor: 1 pid, 6 process_name)."""
    return integer(UUID, pid * PER_PROCESS) + message(PROCESS, integer(1, pid), text(6, name))


def _flow_tracks(flow: int, cca: str) -> Iterator[bytes]:
    """A flow's process, its threads for states and events (ThreadDescriptor: 1 pid, 2 tid, 5 thread_name), its counters."""
    pid = flow + 1
    yield _process(pid, f"flow {flow}: {cca}")
    for place, name in ((STATES, "state of the sender"), (EVENTS, "events")):
        yield _track(pid, place) + message(THREAD, integer(1, pid), integer(2, pid * PER_PROCESS + place), text(5, name))
    yield from _counter_tracks(pid, FIRST_COUNTER, OF_FLOW)


def _counter_tracks(pid: int, first: int, counters: Sequence[CounterTrack], prefix: str = "") -> Iterator[bytes]:
    for place, counter in enumerate(counters, first):
        unit = integer(UNIT, counter.unit) + integer(MULTIPLIER, counter.multiplier)
        named = text(UNIT_NAME, counter.unit_name) if counter.unit_name else b""
        yield _track(pid, place) + text(NAME, prefix + counter.name) + message(COUNTER, unit, named)


def _track(pid: int, place: int) -> bytes:
    """Identifier and parent of a process' track."""
    return integer(UUID, pid * PER_PROCESS + place) + integer(PARENT, pid * PER_PROCESS)


def _counters(pid: int, first: int, counters: Sequence[CounterTrack], rows: pl.DataFrame) -> Iterator[tuple[int, bytes]]:
    """The values of the columns where they change, each at its time, ns."""
    times = rows["t_ns"].to_list()
    for place, counter in enumerate(counters, first):
        head = integer(EVENT_TYPE, SAMPLE) + integer(EVENT_TRACK, pid * PER_PROCESS + place)
        before = None
        for at, value in zip(times, rows[counter.column].to_list() if counter.column in rows.columns else (), strict=False):
            if value is not None and value != before and value < counter.none_from:
                yield at, message(TRACK_EVENT, head, integer(COUNTER_VALUE, value))
                before = value


def _slices(trial: Trial, flow: int) -> Iterator[tuple[int, bytes]]:
    """The stretches in which the sender was in another state than open."""
    track = integer(EVENT_TRACK, (flow + 1) * PER_PROCESS + STATES)
    for span in samples.states_of_trial(trial, flow):
        if span.state != samples.OPEN:
            name = text(EVENT_CATEGORY, "state") + text(EVENT_NAME, samples.STATES[span.state])
            yield span.begin_ns, message(TRACK_EVENT, integer(EVENT_TYPE, BEGIN), track, name)
            yield span.end_ns, message(TRACK_EVENT, integer(EVENT_TYPE, END), track)


def _instants(trial: Trial, flow: int) -> Iterator[tuple[int, bytes]]:
    for event in samples.events_of_trial(trial, flow):
        yield event.t_ns, _instant((flow + 1) * PER_PROCESS + EVENTS, event.kind, {"segments": event.count} if event.kind in samples.COUNTED else {})


def _instant(track: int, name: str, values: Mapping[str, object]) -> bytes:
    """An event without a length, with values beside it."""
    return message(
        TRACK_EVENT,
        integer(EVENT_TYPE, INSTANT),
        integer(EVENT_TRACK, track),
        text(EVENT_CATEGORY, "event"),
        text(EVENT_NAME, name),
        *(_annotation(key, value) for key, value in values.items()),
    )


def _annotation(name: str, value: object) -> bytes:
    if isinstance(value, int):
        return message(ANNOTATION, text(ANNOTATION_NAME, name), integer(INT_VALUE, value))
    shown = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
    return message(ANNOTATION, text(ANNOTATION_NAME, name), text(STRING_VALUE, shown))


def _queues(trial: Trial) -> Iterable[tuple[str, pl.DataFrame]]:
    """The samples of each queue, with its name; what holds the path's delay is one too."""
    if trial.queue_samples is None:
        return
    known = queues.names(trial)
    for key, rows in sorted(trial.queue_samples.partition_by("pipe", "stage", "depth", as_dict=True).items()):
        place = (int(str(key[0])), int(str(key[1])), int(str(key[2])))
        yield known.get(place, f"queue {place[0]}.{place[1]}.{place[2]}"), rows.sort("t_ns")


VARINT, LENGTH_DELIMITED = 0, 2
"""Wire types."""
NEGATIVE = 2**64
"""A negative number is written as its two's complement of 64 bits."""


def varint(value: int) -> bytes:
    """An integer in groups of 7 bits, the least significant first; the high bit says that another group follows."""
    value %= NEGATIVE
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def integer(number: int, value: int) -> bytes:
    """A field of an integer type (`int64`, `uint32`, `bool`, an enum)."""
    return varint(number << 3 | VARINT) + varint(value)


def message(number: int, *fields: bytes) -> bytes:
    """A field whose value is a message of these fields, or plain bytes."""
    content = b"".join(fields)
    return varint(number << 3 | LENGTH_DELIMITED) + varint(len(content)) + content


def text(number: int, value: str) -> bytes:
    """A field of type `string`."""
    return message(number, value.encode())
