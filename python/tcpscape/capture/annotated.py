"""A capture as pcapng with comments on its packets, which Wireshark shows: a second pass over the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tcpscape import _core
from tcpscape.capture.pseudonyms import Pseudonyms
from tcpscape.capture.read import CAPTURE
from tcpscape.findings.diagnosis.observed import Observation, ObservedFlow
from tcpscape.reading.streams import STDIN, Stream
from tcpscape.writing import cannot_write, replacing

EVENTS: Mapping[int, str] = {
    1: "fast retransmission", 2: "retransmission after a timeout", 3: "tail loss probe", 4: "spurious retransmission: the data had arrived",
    5: "lost", 6: "out of order", 7: "duplicate made by the network", 8: "outside of the receive window", 9: "the receive window closed",
    10: "probe of the closed window", 11: "the receive window opened", 12: "marked CE (congestion experienced)", 13: "keep-alive",
    14: "idle until here", 15: "retransmission in slow start after a timeout", 16: "acknowledges data that the capture does not hold",
    17: "ACK out of order", 18: "discarded by the receiver for its timestamp",
}  # fmt: skip
"""The kinds of `events` in words."""
MARK = "tcpscape: "
"""Every comment begins with it, so that a display filter finds them: `frame.comment contains "tcpscape"`."""


def annotate(
    source: Path | str, out: Path, notes: Mapping[int, Sequence[str]], *, headers_only: bool = False, pseudonyms: Pseudonyms | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Path:  # fmt: skip
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
