"""What is written of a capture: pcapng with comments on its packets, which Wireshark shows, a graph for xplot and jPlot, pseudonyms.

**Pseudonyms** are addresses that identify nobody, for results that are shown to others. Each address gets the next one of a range that no network
has: 198.18.0.0/15 (RFC 2544), or 2001:db8::/32 (RFC 3849); those of the flow with most bytes come first. What an address shares with another, its
network, does not show. Ports stay, since they say what the connection is for, and so do times, sizes, TTLs and everything else in headers.

**Annotations** need a second pass over the file.

**The graph** is a flow's time-sequence graph as tcptrace draws it. Source: xplot's commands (its manual page) and tcptrace's manual: data as white
arrows from the first to the last byte, red R where they were sent again, the ACKs as a green staircase, the edge of the receive window above it in
yellow, SACK blocks in purple.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape import _core
from tcpscape.capture.read import CAPTURE
from tcpscape.findings.diagnosis.observed import Observation, ObservedFlow, SocketAddress
from tcpscape.reading.streams import STDIN, Stream
from tcpscape.writing import cannot_write, replacing

V4_BASE = IPv4Address("198.18.0.0")
V6_BASE = IPv6Address("2001:db8::")
MOST = 1 << 16
"""Addresses with a pseudonym of their own; all others share the last one, as in `crates/capture/src/annotate.rs`."""
ANONYMOUS_NAME = "capture"
"""What an observation's name becomes: names of files tell where they are from."""


class Pseudonyms:
    """Address → pseudonym, the same each time."""

    def __init__(self) -> None:
        self._known: dict[IPv4Address | IPv6Address, IPv4Address | IPv6Address] = {}

    @property
    def known(self) -> Mapping[IPv4Address | IPv6Address, IPv4Address | IPv6Address]:
        """Those given so far."""
        return self._known

    def address(self, text: str) -> str:
        """The pseudonym of an address; an empty text, where a source has none, stays empty."""
        if not text:
            return ""
        address = ip_address(text)
        if address not in self._known:
            number = min(len(self._known), MOST) + 1
            pseudonym = (V4_BASE if address.version == 4 else V6_BASE) + number
            if len(self._known) == MOST:
                return str(pseudonym)
            self._known[address] = pseudonym
        return str(self._known[address])

    def observation(self, observation: Observation) -> Observation:
        """The same observation with pseudonyms; its name and the names of its interfaces are left out."""
        flows = [replace(flow, source=self._end(flow.source), destination=self._end(flow.destination)) for flow in observation.flows]
        asked = observation.attempt
        attempt = replace(asked, source=self._end(asked.source), destination=self._end(asked.destination)) if asked else None
        facts = dict(observation.facts)
        if "interfaces" in facts:
            facts["interfaces"] = [{**interface, "name": ""} for interface in facts["interfaces"]]
        return replace(observation, name=ANONYMOUS_NAME, flows=flows, facts=facts, attempt=attempt)

    def _end(self, end: SocketAddress) -> SocketAddress:
        return SocketAddress(self.address(end.address), end.port)


EVENTS: Mapping[int, str] = {
    1: "fast retransmission",
    2: "retransmission after a timeout",
    3: "tail loss probe",
    4: "spurious retransmission: the data had arrived",
    5: "lost",
    6: "out of order",
    7: "duplicate made by the network",
    8: "outside of the receive window",
    9: "the receive window closed",
    10: "probe of the closed window",
    11: "the receive window opened",
    12: "marked CE (congestion experienced)",
    13: "keep-alive",
    14: "idle until here",
    15: "retransmission in slow start after a timeout",
    16: "acknowledges data that the capture does not hold",
    17: "ACK out of order",
    18: "discarded by the receiver for its timestamp",
    19: "acknowledges data that the capture holds after it",
}
"""The kinds of `events` in words."""
MARK = "tcpscape: "
"""Every comment begins with it, so that a display filter finds them: `frame.comment contains "tcpscape"`."""


def annotate(
    source: Path | str,
    out: Path,
    notes: Mapping[int, Sequence[str]],
    *,
    headers_only: bool = False,
    pseudonyms: Pseudonyms | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Path:
    """Writes the capture again with notes on its frames, by their numbers from 1; returns the file. Frames keep their numbers and times.

    :param headers_only: leave payload out, and of what is not TCP every byte.
    :param pseudonyms: replace addresses; then payload is left out too.
    :raises TcpscapeError: one line, where the capture cannot be read a second time, or the file not be written.
    """
    if str(source) == STDIN:
        Stream.refuse_second_pass(CAPTURE)
    comments = {frame: "\n".join(f"{MARK}{note}" for note in texts) for frame, texts in notes.items()}
    known = None if pseudonyms is None else list(pseudonyms.known.items())
    annotator = _core.CaptureAnnotator("tcpscape", comments, known, headers_only)
    with Stream(source, CAPTURE) as stream, replacing(out) as part:
        try:
            with part.open("wb") as file:
                for chunk in stream:
                    content, is_more = annotator.feed(chunk)
                    file.write(content)
                    if progress:
                        progress(stream.read, stream.size)
                    if not is_more:
                        break
                file.write(annotator.finish())
        except OSError as e:
            raise cannot_write(out, e) from None
        except ValueError as e:
            stream.origin.refuse_line(str(e))
    return out


def verdicts(observation: Observation) -> dict[int, list[str]]:
    """What the analysis says of single frames: what happened, and where a limit begins."""
    notes: dict[int, list[str]] = {}
    for flow in observation.flows:
        _events(flow, notes)
        for interval in flow.limits:
            for frame in interval.frames[:1]:
                by = "what is not identifiable here" if interval.cause == "unknown" else interval.cause.replace("_", " ")
                said = f"held by {by} from {interval.start_s:.6f} s to {interval.end_s:.6f} s"
                notes.setdefault(frame, []).append(said)
    return notes


def _events(flow: ObservedFlow, notes: dict[int, list[str]]) -> None:
    events = flow.events
    if not events:
        return
    rows = zip(*(events[name].tolist() for name in ("kind", "frame", "seq", "len")), strict=True)
    for kind, frame, seq, length in rows:
        what = EVENTS.get(kind, f"event {kind}")
        notes.setdefault(frame, []).append(f"{what} (bytes {seq} to {seq + length})" if length else what)


SENT_AGAIN = (1, 2, 3, 4, 15)
"""Kinds of events that are retransmissions."""
MARKS = {5: "LOST", 6: "O", 7: "DUP", 8: "OUT", 9: "Z", 10: "P", 12: "CE"}
"""Kinds of events → what is written beside them; tcptrace has O, Z and P."""
NS = 1e-9


def write_xpl(flow: ObservedFlow, out: Path) -> Path:
    """Writes the graph; returns the file. Times are seconds since the capture's first packet, sequence numbers count from the flow's first byte.

    :raises TcpscapeError: one line, where the file cannot be written.
    """
    with replacing(out) as part:
        try:
            with part.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in _lines(flow))
        except OSError as e:
            raise cannot_write(out, e) from None
    return out


def _lines(flow: ObservedFlow) -> Iterator[str]:
    ends = [f"{end.address}:{end.port}" for end in (flow.source, flow.destination)]
    yield from ("timeval double", "title", f"{ends[0]}_==>_{ends[1]} (time sequence graph){_thinned(flow)}")
    yield from ("xlabel", "time (s)", "ylabel", "sequence number (bytes)")
    if flow.segments:
        yield from _segments(flow)
    if flow.acks:
        yield from _acks(flow)
    if flow.events:
        yield from _event_marks(flow)
    yield "go"


def _thinned(flow: ObservedFlow) -> str:
    stride = max(flow.facts.get("segment_stride", 1), flow.facts.get("ack_stride", 1))
    return f", one of {stride} packets" if stride > 1 else ""


def _segments(flow: ObservedFlow) -> Iterator[str]:
    rows = flow.segments
    yield "white"
    for t, seq, length in zip(rows["t"].tolist(), rows["seq"].tolist(), rows["len"].tolist(), strict=True):
        at = f"{t * NS:.9f}"
        yield f"darrow {at} {seq}\nuarrow {at} {seq + length}\nline {at} {seq} {at} {seq + length}"


def _acks(flow: ObservedFlow) -> Iterator[str]:
    rows = flow.acks
    times, acks = rows["t"] * NS, np.maximum.accumulate(rows["ack"])
    yield from _stairs("green", times, acks)
    yield from _stairs("yellow", times, rows["ack"] + rows["window"])
    if "sack_left" not in rows:
        return
    yield "purple"
    for at, left, right in zip(times.tolist(), rows["sack_left"].tolist(), rows["sack_right"].tolist(), strict=True):
        if right:
            yield f"line {at:.9f} {left} {at:.9f} {right}"


def _stairs(colour: str, times: NDArray[Any], values: NDArray[Any]) -> Iterator[str]:
    """A line that keeps each value until the next time."""
    yield colour
    for (begin, low), (end, high) in pairwise(zip(times.tolist(), values.tolist(), strict=True)):
        yield f"line {begin:.9f} {low} {end:.9f} {low}"
        if low != high:
            yield f"line {end:.9f} {low} {end:.9f} {high}"


def _event_marks(flow: ObservedFlow) -> Iterator[str]:
    rows = flow.events
    yield "red"
    for t, kind, seq, length in zip(*(rows[name].tolist() for name in ("t", "kind", "seq", "len")), strict=True):
        at = f"{t * NS:.9f}"
        if kind in SENT_AGAIN:
            yield f"line {at} {seq} {at} {seq + length}\natext {at} {seq + length}\nR"
        elif kind in MARKS:
            yield f"atext {at} {seq + length}\n{MARKS[kind]}"
