"""Whatever shows flows, as an observation to diagnose: captures, and the files of other tools, recognised by what is in them, not by their names.

    observation = observe("slow.pcap")

A kind is an entry of :data:`KINDS`; no other module names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tcpscape import capture
from tcpscape.findings.diagnosis.observed import Observation
from tcpscape.reading.files import Kind
from tcpscape.reading.streams import Stream

Progress = Callable[[int, int | None], None]
"""Told how many bytes of how many are read; None is not known."""
HEAD = 4096
"""First bytes of a content, unpacked, by which its kind is recognised."""
SOURCE = Kind(
    "a capture or measurement", "give a capture (pcap, pcapng), iperf3's JSON, a Flent file, the output of `ss -tin` or a result directory"
)


@dataclass(frozen=True, slots=True)
class ObservedKind:
    """A kind of file that shows flows."""

    name: str
    shows: str
    """What it can tell and what not, a sentence."""
    recognises: Callable[[bytes], bool]
    """Whether a content that begins with these bytes is of this kind."""
    observe: Callable[[Stream, Progress], Observation]
    """Reads it; nothing of it was taken before."""


KINDS: Sequence[ObservedKind] = (
    ObservedKind("capture", "Packets show everything that an end does on the wire, and nothing that it does not.", capture.recognises, capture.read),
)
"""Every kind, in the order in which they are tried."""


def observe(source: Path | str, progress: Progress = lambda done, total: None) -> Observation:
    """What a file shows; `-` is standard input.

    :raises TcpscapeError: one line, where nothing is there, or it is of no kind that shows flows.
    """
    with Stream(source, SOURCE) as stream:
        head = stream.peek(HEAD)
        kind = next((one for one in KINDS if one.recognises(head)), None)
        if kind is None:
            stream.origin.refuse("is empty" if not head else "is of no kind that shows flows")
        return kind.observe(stream, progress)
