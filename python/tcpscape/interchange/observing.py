"""Whatever shows flows, as an observation to diagnose: captures, and the files of other tools, recognised by what is in them, not by their names.

    observation = observe("slow.pcap")

A kind is an entry of :data:`KINDS`; no other module names it.

What a diagnosis writes for other programs and other people is here too: the capture with our verdicts for Wireshark, a graph for xplot, addresses
that identify nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from tcpscape import capture
from tcpscape.capture import Pseudonyms, verdicts
from tcpscape.errors import refuse
from tcpscape.findings.diagnosis.diagnosis import Diagnosis
from tcpscape.findings.diagnosis.observed import Observation, ObservedFlow, SocketAddress
from tcpscape.interchange import ss, trial_flows
from tcpscape.reading import files as reading
from tcpscape.reading.files import Kind, Origin
from tcpscape.reading.streams import STDIN, Stream

BytesRead = Callable[[int, int | None], None]
"""Told how many bytes of how many are read; None is not known."""
HEAD = 4096
"""First bytes of a content, unpacked, by which its kind is recognised."""
SOURCE = Kind("a capture or measurement", "give a capture (pcap, pcapng), iperf3's JSON, a Flent file, the output of `ss -tin` or a result directory")


@dataclass(frozen=True, slots=True)
class ObservedKind:
    """A kind of file that shows flows."""

    name: str
    titles: Mapping[str, str]
    """Kind of an observation that it gives → what a screen calls the source."""
    shows: str
    """What it can tell and what not, a sentence."""
    recognises: Callable[[bytes], bool]
    """Whether a content that begins with these bytes is of this kind."""
    observe: Callable[[Stream, BytesRead], Observation]
    """Reads it; nothing of it was taken before."""


def _whole(module: str, observe: Callable[[bytes, str], Observation]) -> Callable[[Stream, BytesRead], Observation]:
    """Reads a content whole, as small ones are. The module that says how large it may be is loaded then: who reads a capture needs none of them."""

    def read(stream: Stream, progress: BytesRead) -> Observation:
        kind: Kind = import_module(f"tcpscape.interchange.{module}").FILE
        return observe(stream.rest(kind.most_unpacked or kind.most), stream.origin.name)

    return read


KINDS: Sequence[ObservedKind] = (
    ObservedKind(
        "capture",
        {"pcap": "a capture (pcap)", "pcapng": "a capture (pcapng)"},
        "Packets show everything that an end does on the wire, and nothing that it does not.",
        capture.recognises,
        capture.read,
    ),
    ObservedKind(
        "flent",
        {"flent": "a Flent file"},
        "Its steps show goodput, RTT and window, its pings the path before the flows.",
        trial_flows.recognises_flent,
        _whole("flent", trial_flows.observe_flent),
    ),
    ObservedKind(
        "result",
        {"result": "results of tcpscape"},
        "Trials show goodput and counters.",
        trial_flows.recognises_lines,
        _whole("trial_flows", trial_flows.observe_lines),
    ),
    ObservedKind(
        "iperf3",
        {"iperf3": "iperf3's JSON"},
        "Its intervals show goodput, and of the sending end RTT and window.",
        trial_flows.recognises_iperf3,
        _whole("iperf3", trial_flows.observe_iperf3),
    ),
    ObservedKind(
        "ss", {"ss": "output of ss"}, "Its lists show what the kernel counts, at their times alone.", ss.recognises, _whole("ss", ss.observe)
    ),
)
"""Every kind, in the order in which they are tried."""
TITLES: Mapping[str, str] = {"sockets": "sockets of this machine"} | {name: title for kind in KINDS for name, title in kind.titles.items()}
"""Kind of an observation → what a screen calls its source; that of live sockets is of no file."""


def observe(source: Path | str, progress: BytesRead = lambda done, total: None) -> Observation:
    """What a file or a result directory shows; `-` is standard input.

    :raises TcpscapeError: one line, where nothing is there, or it is of no kind that shows flows.
    """
    if str(source) != STDIN and reading.folder(source, SOURCE):
        from tcpscape.store.database import FILE

        if not reading.exists(Path(source) / FILE, SOURCE):
            Origin(str(source), SOURCE).refuse("is a directory without results of tcpscape")
        return trial_flows.observe_directory(Path(source))
    with Stream(source, SOURCE) as stream:
        return _kind(stream).observe(stream, progress)


def expect(source: Path | str) -> None:
    """Refuses a file of which already the first bytes show that it is of no kind. :raises TcpscapeError: one line."""
    with Stream(source, SOURCE) as stream:
        _kind(stream)


def _kind(stream: Stream) -> ObservedKind:
    """The kind of a content, of which nothing was taken. Something binary of no kind counts as a capture, whose reader says what it is instead."""
    head = stream.peek(HEAD)
    kind = next((one for one in KINDS if one.recognises(head)), KINDS[0] if b"\0" in head else None)
    if kind is None:
        stream.origin.refuse("is empty" if not head else "is of no kind that shows flows")
    return kind


CAPTURES = tuple(KINDS[0].titles)
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
        ends = (SocketAddress(pseudonyms.address(end.address), end.port) for end in (flow.source, flow.destination))
        return replace(flow, source=next(ends), destination=next(ends))

    observation = pseudonyms.observation(diagnosis.observation)
    flows = [replace(one, flow=renamed(one.flow)) for one in diagnosis.flows]
    return Diagnosis(observation, flows, [renamed(flow) for flow in diagnosis.others])
