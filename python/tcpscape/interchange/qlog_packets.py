"""The packets of a TCP sender as QUIC's events: every segment is a packet with a number of its own, every ACK says which numbers arrived.

TCP acknowledges bytes and QUIC packets, so numbers are given here: a segment that is sent again has a new one, and the one whose bytes it repeats is
reported lost then. An acknowledged byte is that of its newest packet. Source: draft-ietf-quic-qlog-quic-events-02.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

NS_PER_MS = 1_000_000
PACKET_TYPE = "1RTT"
"""QUIC's name for packets with data after the handshake."""
SACKS = (("sack0_start", "sack0_end"), ("sack1_start", "sack1_end"), ("sack2_start", "sack2_end"))
"""Columns of an ACK's blocks."""
Event = tuple[float, str, dict[str, Any]]


class _Outstanding:
    """The segments that are neither acknowledged nor sent again, in the order of their bytes."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._numbers: list[int] = []

    def add(self, start: int, end: int, number: int) -> list[int]:
        """Adds a segment; the numbers of those whose bytes it repeats."""
        low, high = bisect_right(self._ends, start), bisect_left(self._starts, end)
        repeated = self._numbers[low:high]
        self._starts[low:high], self._ends[low:high], self._numbers[low:high] = [start], [end], [number]
        return repeated

    def acknowledge(self, start: int, end: int) -> list[int]:
        """Takes out the segments that lie within these bytes; their numbers."""
        low, high = bisect_left(self._starts, start), bisect_right(self._ends, end)
        numbers = self._numbers[low:high]
        if numbers:
            del self._starts[low:high], self._ends[low:high], self._numbers[low:high]
        return numbers


def events(packets: pl.DataFrame, flow: int, payload: int) -> Iterator[Event]:
    """A flow's packets at its sender, in order of time; `payload` is that of a full segment, bytes: larger bursts are cut at it."""
    there, number = _Outstanding(), 0
    for row in packets.filter(packets["flow"] == flow).iter_rows(named=True):
        time = row["t_ns"] / NS_PER_MS
        if row["received"]:
            yield from _received(time, row, there)
            continue
        for start in range(row["seq"], row["seq"] + row["len"], payload):
            end = min(start + payload, row["seq"] + row["len"])
            for lost in there.add(start, end, number):
                yield time, "recovery:packet_lost", {"header": _header(lost)}
            frame = {"frame_type": "stream", "stream_id": 0, "offset": start - 1, "length": end - start}
            yield time, "transport:packet_sent", {"header": _header(number), "raw": {"length": end - start}, "frames": [frame]}
            number += 1


def _received(time: float, row: dict[str, Any], there: _Outstanding) -> Iterator[Event]:
    """An ACK, with the numbers that it acknowledges first."""
    numbers = there.acknowledge(0, row["ack"])
    for start, end in SACKS[: row["nsack"]]:
        numbers += there.acknowledge(row[start], row[end])
    if numbers:
        frame = {"frame_type": "ack", "acked_ranges": _ranges(sorted(numbers))}
        yield time, "transport:packet_received", {"header": _header(None), "frames": [frame]}


def _header(number: int | None) -> dict[str, Any]:
    """Of a packet; an ACK of TCP has no number."""
    return {"packet_type": PACKET_TYPE, **({"packet_number": number} if number is not None else {})}


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Runs of following numbers as [first, last]."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges
