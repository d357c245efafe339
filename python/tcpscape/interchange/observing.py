"""Whatever shows flows, as an observation to diagnose: captures, and the files of other tools, recognised by what is in them.

    observation = observe(Path("slow.pcap"))

A kind is an entry of :data:`KINDS`; no other module names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tcpscape.findings.diagnosis.observed import Observation
from tcpscape.reading import files as reading
from tcpscape.reading.files import Kind, Origin

STDIN = "-"
"""The name of standard input."""
Progress = Callable[[int, int | None], None]
"""Told how many bytes of how many are read; None is not known."""
HEAD = 4096
"""First bytes of a file by which its kind is recognised."""
SOURCE = Kind(
    "a capture or measurement", "give a capture (pcap, pcapng), iperf3's JSON, a Flent file, the output of `ss -tin` or a result directory"
)


@dataclass(frozen=True, slots=True)
class ObservedKind:
    """A kind of file that shows flows."""

    name: str
    shows: str
    """What it can tell and what not, one line."""
    recognises: Callable[[bytes], bool]
    """Whether a content that begins with these bytes is of this kind."""
    observe: Callable[[Path, Progress], Observation]
    """Reads it."""


KINDS: Sequence[ObservedKind] = ()
"""Every kind, in the order in which they are tried."""


def observe(source: Path, progress: Progress = lambda done, total: None) -> Observation:
    """What a file or directory shows; `-` is standard input.

    :raises TcpscapeError: one line, where nothing is there, or it is of no kind that shows flows.
    """
    head = reading.head(source, SOURCE, HEAD)
    kind = next((one for one in KINDS if one.recognises(head)), None)
    if kind is None:
        Origin(str(source), SOURCE).refuse("is of no kind that shows flows")
    return kind.observe(source, progress)
