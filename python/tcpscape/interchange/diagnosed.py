"""A diagnosis for other programs and other people: the capture with our verdicts for Wireshark, a graph for xplot, addresses that identify nobody."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tcpscape import capture
from tcpscape.capture import Pseudonyms, verdicts
from tcpscape.errors import refuse
from tcpscape.findings.diagnosis.diagnosis import Diagnosis
from tcpscape.findings.diagnosis.observed import Endpoint, Observation, ObservedFlow
from tcpscape.reading.streams import STDIN

CAPTURES = ("pcap", "pcapng")
"""Kinds of observations that have frames."""


def expect_capture(observation: Observation, source: str, option: str) -> None:
    """Refuses what has no frames, or cannot be read a second time. :raises TcpscapeError: one line, for the option that needs them."""
    if observation.kind not in CAPTURES:
        refuse(option, f"{observation.name} has no packets, it is {observation.kind}", "leave it out, or give a capture")
    if option == "annotate" and source == STDIN:
        refuse(option, "standard input can be read only once", "save the capture to a file and name that")


def annotate(diagnosis: Diagnosis, source: str, out: Path, sayings: Iterable[tuple[int, str]], pseudonyms: Pseudonyms | None = None) -> Path:
    """Writes the capture again as pcapng with comments: what happened at a frame, and before it what is said of it.

    :param sayings: frames, and what a diagnosis says there.
    :param pseudonyms: replace the addresses; then payload is left out too.
    :raises TcpscapeError: one line, where the capture cannot be read a second time, or the file not be written.
    """
    notes = verdicts(diagnosis.observation)
    for frame, note in sayings:
        notes.setdefault(frame, []).insert(0, note)
    return capture.annotate(source, out, notes, pseudonyms=pseudonyms)


def anonymised(diagnosis: Diagnosis, pseudonyms: Pseudonyms) -> Diagnosis:
    """The same diagnosis with pseudonyms in place of addresses."""

    def renamed(flow: ObservedFlow) -> ObservedFlow:
        ends = (Endpoint(pseudonyms.address(end.address), end.port) for end in (flow.source, flow.destination))
        return replace(flow, source=next(ends), destination=next(ends))

    observation = pseudonyms.observation(diagnosis.observation)
    flows = [replace(one, flow=renamed(one.flow)) for one in diagnosis.flows]
    return Diagnosis(observation, flows, [renamed(flow) for flow in diagnosis.others])
