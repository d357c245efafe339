"""A capture file, or standard input, as an observation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape import _core
from tcpscape.errors import TcpscapeError
from tcpscape.findings.diagnosis.observed import Attempt, LimitInterval, Observation, ObservedFlow, SocketAddress
from tcpscape.reading.files import Kind
from tcpscape.reading.streams import Stream
from tcpscape.units import NS_PER_S

MAGICS = tuple(bytes.fromhex(magic) for magic in ("0a0d0d0a", "d4c3b2a1", "a1b2c3d4", "4d3cb2a1", "a1b23c4d", "34cdb2a1"))
"""First bytes of pcapng, and of pcap in both byte orders, with microseconds, nanoseconds, and modified."""


class CaptureError(TcpscapeError):
    """A file that is no capture, or one of which nothing can be read."""


CAPTURE = Kind("a capture", "give what tcpdump -w, dumpcap or Wireshark wrote", error=CaptureError)


def recognises(head: bytes) -> bool:
    """Whether a file that begins with these bytes, four at least, is a capture; a compressed one is unpacked before."""
    return head.startswith(MAGICS)


def read(source: Path | str | Stream, progress: Callable[[int, int | None], None] | None = None) -> Observation:
    """Reads a capture: pcap or pcapng, also compressed (gzip, zstd, bzip2, xz). The 256 flows with most bytes have rows, the others facts.

    :param source: a path, `-` for standard input, or a stream that is open and stays open.
    :param progress: called with the bytes that are read and all bytes of the file, None where nobody knows.
    :raises CaptureError: one line, where the file cannot be read or is no capture. A damaged capture gives what came before, with a note.
    """
    if not isinstance(source, Stream):
        with Stream(source, CAPTURE) as stream:
            return read(stream, progress)
    reader = _core.CaptureReader()
    try:
        for chunk in source:
            is_over = not reader.feed(chunk)
            if progress:
                progress(source.read, source.size)
            if is_over:
                break
        report, flows = reader.finish()
    except ValueError as e:
        source.origin.refuse_line(str(e))
    notes = [*report["notes"], *_left_out(report["flows"])]
    if source.damage:
        notes.insert(0, f"The capture was not read to its end: {source.damage}.")
    facts = {key: value for key, value in report.items() if key not in ("format", "notes")}
    facts["compression"] = source.compression
    attempt = _attempt(facts["flows"].pop("attempt", None))
    return Observation(report["format"], source.origin.name, [_flow(flow) for flow in flows], notes, facts, attempt)


def _attempt(asked: Mapping[str, Any] | None) -> Attempt | None:
    if asked is None:
        return None
    ends = SocketAddress(*asked["from"]), SocketAddress(*asked["to"])
    return Attempt(*ends, asked["syns"], asked["answers"], asked["is_reset"], asked["over_ns"] / NS_PER_S)


def _left_out(totals: Mapping[str, int]) -> Iterator[str]:
    """What the analysis could not keep of very many connections."""
    if totals["evicted"]:
        yield f"{totals['evicted']} of {totals['connections']} connections were concluded early, since too many were open at once."
    if totals["left_out"]:
        yield f"{totals['left_out']} flows with the fewest bytes ({totals['left_out_bytes']} together) are counted and not shown."


def _flow(flow: Mapping[str, Any]) -> ObservedFlow:
    facts, rows = flow["facts"], flow["rows"]
    return ObservedFlow(
        source=SocketAddress(*flow["from"]),
        destination=SocketAddress(*flow["to"]),
        packets=facts.get("packets"),
        bytes=facts["bytes"],
        seconds=facts["seconds"],
        start_s=facts["start_s"],
        vantage=facts["vantage"],
        goodput_mbps=facts.get("goodput_mbps"),
        facts=facts,
        segments=_columns(rows, "segments"),
        acks=_columns(rows, "acks"),
        events=_columns(rows, "events"),
        limits=[LimitInterval(start, end, cause, tuple(frames)) for start, end, cause, frames in flow["limits"]],
    )


def _columns(tables: Mapping[str, Mapping[str, tuple[str, bytes]]], name: str) -> dict[str, NDArray[Any]]:
    return {column: np.frombuffer(raw, dtype) for column, (dtype, raw) in tables.get(name, {}).items()}
