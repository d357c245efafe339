"""The screen of a comparison segment by segment: how many conditions are the same, and what the first difference of each other one is."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from typing_extensions import TypedDict

from tcpscape.text.numbers import number
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table
from tcpscape.units import counted
from tcpscape.validate.exact import Difference, Exact, Kind, Segment, Twin
from tcpscape.words.divergence import checks_table

KINDS = {
    Kind.ENDS: "{} ends",
    Kind.TURN: "{} sends first",
    Kind.PLACE: "other data are sent",
    Kind.LENGTH: "segments of other lengths",
    Kind.PUSH: "PSH",
    Kind.FLAGS: "flags",
    Kind.ACK: "ACKs of other data",
    Kind.SACK: "other SACK blocks",
}
"""What differs, in words; in braces the side that sends, or has no more segments."""
FLAGS = ((0x02, "SYN"), (0x01, "FIN"), (0x04, "RST"), (0x08, "PSH"), (0x40, "ECE"), (0x80, "CWR"))
DEFINITIONS = (
    "A segment at the sender's host is the same if its direction, numbers, length, flags and SACK blocks are, at the same place in the order. "
    "Times count from the arrival of the SYN-ACK; *apart* is their largest difference over the same segments. "
    "The state is the last sample before the difference."
)


class SegmentDocument(TypedDict):
    """A segment at the sender's host."""

    t_ms: float
    """When it was seen, since the arrival of the SYN-ACK, ms."""
    received: bool
    """Whether it came to the sender; it left it otherwise."""
    seq: int
    """Its sequence number, counted from the SYN's."""
    ack: int
    """Its acknowledgement number, counted from the SYN's."""
    length: int
    """Bytes of data."""
    flags: int
    """TCP's flags, a bit each (RFC 9293 §3.1)."""
    sack: list[tuple[int, int]]
    """Its SACK blocks: first byte, and the one behind the last."""


class StateDocument(TypedDict):
    """A quantity of both senders in the last sample before the first difference."""

    quantity: str
    """The quantity, with its unit."""
    a: float | None
    """On A; null where it cannot be told."""
    b: float | None
    """On B; null where it cannot be told."""


class TwinDocument(TypedDict):
    """One condition on both sides."""

    condition: str
    """Its id."""
    path: str
    """Congestion control, path and flow in words."""
    same: int
    """Segments that are the same before the first difference."""
    compared: int
    """Segments that there would be to compare."""
    apart_us: float
    """Largest difference of the times of the same segments, µs."""
    difference: str | None
    """What differs first; null where nothing does."""
    a: SegmentDocument | None
    """The first segment that differs, on A; null where nothing does, or A has no more."""
    b: SegmentDocument | None
    """The first segment that differs, on B; null where nothing does, or B has no more."""
    states: list[StateDocument]
    """The senders before the first difference."""


class ExactDocument(TypedDict):
    """Two engines segment by segment. What `tcpscape validate --exact --json` prints."""

    format: Literal[1]
    """Format of a comparison segment by segment."""
    a: str
    """One engine."""
    b: str
    """The other."""
    source: str
    """Where the conditions come from."""
    same: int
    """Conditions on which every segment is the same."""
    conditions: list[TwinDocument]
    """Every condition that ran on both."""
    left_out: list[str]
    """Conditions that were not compared, with the reason."""
    text: str
    """The answer as a sentence."""


def document(result: Exact) -> ExactDocument:
    """Every number of a comparison segment by segment."""
    return ExactDocument(
        format=1,
        a=result.a.label,
        b=result.b.label,
        source=result.source,
        same=len(result.same),
        conditions=[_twin_document(t, result) for t in result.twins],
        left_out=[f"{id}: {why}" for id, why in result.left_out],
        text=answer(result),
    )


def _twin_document(t: Twin, result: Exact) -> TwinDocument:
    first = t.first
    return TwinDocument(
        condition=t.condition.id,
        path=t.condition.describe(),
        same=t.same,
        compared=t.compared,
        apart_us=t.apart_ns / 1e3,
        difference=kind(first, result) if first else None,
        a=_segment_document(first.a) if first and first.a else None,
        b=_segment_document(first.b) if first and first.b else None,
        states=[StateDocument(quantity=q.label, a=a, b=b) for q, a, b in first.states] if first else [],
    )


def _segment_document(s: Segment) -> SegmentDocument:
    return SegmentDocument(t_ms=s.t_ns / 1e6, received=s.received, seq=s.seq, ack=s.ack, length=s.length, flags=s.flags, sack=list(s.sack))


def exact_screen(result: Exact) -> Screen:
    """The screen of all conditions."""
    tables = [checks_table(result.checked)] if result.checked else []
    return Screen(
        f"{result.a.label} (A) against {result.b.label} (B), segment by segment: {result.source}",
        answer(result) + _bounds(result),
        tables=(*tables, table(result)),
        details=(*(text for t in result.twins if t.first for text in _difference(t, t.first, result)), DEFINITIONS),
        caveats=tuple(f"{name} is left out: {why}" for name, why in result.left_out),
    )


def answer(result: Exact) -> str:
    """How many conditions have the same segments, when the others part, and by how much the times differ."""
    same, rest = result.same, [t for t in result.twins if t.first]
    first = f"{len(same)} of {counted(len(result.twins), 'condition')}: the same {sum(t.compared for t in same):,} segments"
    if not same:
        first = f"none of {counted(len(result.twins), 'condition')} has the same segments to the end"
    times = f", {_times(same)}" if same else ""
    if not rest:
        return f"{first}{times}."
    parted_s = statistics.median(t.first.t_ns for t in rest if t.first) / 1e9
    kinds = Counter(kind(t.first, result) for t in rest if t.first)
    most = ", ".join(f"{text} ({n})" for text, n in kinds.most_common(3))
    others = f"the other {len(rest)}" if same else "they"
    return f"{first}{times}; {others} part first at {parted_s:.2f} s (median): {most}."


def _times(same: list[Twin]) -> str:
    exact = sum(t.same_times for t in same)
    apart = max(t.apart_ns for t in same) / 1e3
    if exact == len(same):
        return "at the same times"
    return f"up to {number(apart)} µs apart" if not exact else f"at the same times in {exact}, in the others up to {number(apart)} µs apart"


def _bounds(result: Exact) -> str:
    missed = sum(not c.met for c in result.checked)
    return "" if not result.checked else f" {missed} of {len(result.checked)} bounds missed." if missed else " Every bound is met."


def table(result: Exact) -> Table:
    """A row for each condition."""
    rows = [
        (
            t.condition.id,
            t.condition.describe(),
            f"{t.same:,}" if t.is_same else f"{t.same:,} of {t.compared:,}",
            f"{t.apart_ns / 1e3:.1f}",
            f"{t.first.t_ns / 1e9:.3f}" if t.first else "",
            kind(t.first, result) if t.first else "",
        )
        for t in result.twins
    ]
    columns = ("condition", "path", "the same segments", "apart, µs", "part at, s", "first difference")
    return Table(columns, rows, words=("path", "first difference"), drop=("apart, µs", "path"))


def kind(first: Difference, result: Exact) -> str:
    """What differs first, in a few words."""
    sends = result.a.label if first.a and not first.a.received else result.b.label
    ends = result.b.label if first.a else result.a.label
    return KINDS[first.kind].format(ends if first.kind is Kind.ENDS else sends)


def _difference(t: Twin, first: Difference, result: Exact) -> Iterator[str | Table]:
    sides = ((result.a.label, first.a), (result.b.label, first.b))
    what = "; ".join(f"{label}: {_segment(s)}" for label, s in sides)
    yield f"{t.condition.id} ({t.condition.describe()}): after {counted(t.same, 'segment')} {kind(first, result)}. {what}."
    if first.states:
        rows = [(q.label, *(number(v) if v is not None else "" for v in values)) for q, *values in first.states]
        yield Table(("the sender before", result.a.label, result.b.label), rows)


def _segment(s: Segment | None) -> str:
    if s is None:
        return "no segment"
    flags = "".join(f" {name}" for bit, name in FLAGS if s.flags & bit)
    sack = "".join(f" [{a}, {b})" for a, b in s.sack)
    what = f"gets ACK {s.ack}" if s.received else f"sends {s.seq} to {s.seq + s.length}"
    return f"at {s.t_ns / 1e6:.4f} ms it {what}{flags}{f', SACK{sack}' if sack else ''}"
