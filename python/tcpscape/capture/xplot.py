"""A flow as a time-sequence graph for xplot and jPlot, drawn as tcptrace draws it.

Source: xplot's commands (its manual page) and tcptrace's manual: data as white arrows from the first to the last byte, red R where they were sent
again, the ACKs as a green staircase, the edge of the receive window above it in yellow, SACK blocks in purple.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.writing import cannot_write, replacing

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
        yield from _data(flow)
    if flow.acks:
        yield from _acks(flow)
    if flow.events:
        yield from _events(flow)
    yield "go"


def _thinned(flow: ObservedFlow) -> str:
    stride = max(flow.facts.get("segment_stride", 1), flow.facts.get("ack_stride", 1))
    return f", one of {stride} packets" if stride > 1 else ""


def _data(flow: ObservedFlow) -> Iterator[str]:
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


def _events(flow: ObservedFlow) -> Iterator[str]:
    rows = flow.events
    yield "red"
    for t, kind, seq, length in zip(*(rows[name].tolist() for name in ("t", "kind", "seq", "len")), strict=True):
        at = f"{t * NS:.9f}"
        if kind in SENT_AGAIN:
            yield f"line {at} {seq} {at} {seq + length}\natext {at} {seq + length}\nR"
        elif kind in MARKS:
            yield f"atext {at} {seq + length}\n{MARKS[kind]}"
