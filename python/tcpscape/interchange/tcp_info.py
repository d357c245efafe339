"""Samples of TCP_INFO, whatever showed them → the flows of an observation: a socket that sends shows its own flow, one that receives the peer's.

Columns have the kernel's names without `tcpi_` and its units (times in µs, rates in B/s, counters since the connection began); NaN is not known.
Source: linux/tcp.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpscape.errors import refuse
from tcpscape.findings.diagnosis import counters
from tcpscape.findings.diagnosis.observed import Columns, Observation, ObservedFlow, SocketAddress
from tcpscape.interchange.base import InterchangeError
from tcpscape.stats.estimate import Floats
from tcpscape.units import counted

if TYPE_CHECKING:
    from tcpscape.engines.host.sockets import SampledSocket

OPTIONS: Mapping[str, int] = {"timestamps": 1, "sack": 2, "window_scaling": 4, "ecn": 8}
"""What both ends agreed on → its bit of `options`. Linux: TCPI_OPT_…."""
UNPACED = 2.0**63
"""B/s from which on a pacing rate means none."""
NO_RTT = 2.0**32 - 1
"""µs: `min_rtt` before the first measurement."""
LEAST_BYTES = 2
"""A direction with fewer bytes carried no data: SYN and FIN count as one byte each."""
COUNTERS: Mapping[str, str] = {
    "retransmissions": "total_retrans",
    "timeouts": "total_rto",
    "dsacks": "dsack_dups",
    "reorderings": "reord_seen",
    "ce": "delivered_ce",
    "out_of_order": "rcv_ooopack",
}
"""Facts of a flow → the counters whose growth they are."""
OF_RECEIVERS = ("out_of_order",)
"""Facts that the receiving end counts."""
AS_RECEIVER = (
    "the socket receives: its congestion control, window, RTT and retransmissions are of what it sends itself, not of this flow; sample the sender"
)


@dataclass(frozen=True, slots=True)
class SampledEnd:
    """One socket's samples."""

    local: SocketAddress
    remote: SocketAddress
    columns: Columns
    """Of TCP_INFO, and `t_s`."""
    control: str | None = None
    """The congestion control's name."""
    was_there: bool = True
    """Whether the connection began before the first sample: then it carried what its counters grew by, otherwise all that they say."""


def flows(end: SampledEnd) -> list[ObservedFlow]:
    """The flow that the socket sends and the one that it receives, where they carried data."""
    columns = cleaned(end.columns)
    sent, received = grown(columns, "bytes_acked", end.was_there), grown(columns, "bytes_received", end.was_there)
    seen = []
    is_uncounted = np.isnan(sent) and np.isnan(received)  # Linux before 4.1: whoever asks for such a socket means what it sends
    if sent > LEAST_BYTES or is_uncounted:
        seen.append(_sending(end, columns))
    if received > LEAST_BYTES:
        seen.append(_receiving(end, columns))
    return seen


def cleaned(columns: Columns) -> dict[str, Floats]:
    """Values that stand for none become NaN."""
    clean = {name: np.asarray(values, float) for name, values in columns.items()}
    for name, none in (("pacing_rate", UNPACED), ("min_rtt", NO_RTT), ("bbr_min_rtt", NO_RTT)):
        if name in clean:
            clean[name] = np.where(clean[name] >= none, np.nan, clean[name])
    return clean


def grown(columns: Columns, name: str, was_there: bool) -> float:
    """By how much a counter grew; NaN where it is not known. Of a single sample of an old connection all that it counted."""
    values = columns.get(name)
    known = values[~np.isnan(values)] if values is not None else np.empty(0)
    if not len(known):
        return float("nan")
    return float(known[-1] - (known[0] if was_there and len(known) > 1 else 0))


def whole(value: float) -> int | None:
    """A count; None of NaN."""
    return None if np.isnan(value) else max(0, round(value))


def _sending(end: SampledEnd, columns: dict[str, Floats]) -> ObservedFlow:
    size = grown(columns, "bytes_acked", end.was_there)
    seconds, start = _extent(columns, "bytes_acked", end.was_there)
    return ObservedFlow(
        source=end.local,
        destination=end.remote,
        packets=whole(grown(columns, "data_segs_out", end.was_there)),
        bytes=whole(size),
        seconds=seconds,
        start_s=start,
        vantage="sender",
        goodput_mbps=_rate(size, seconds),
        facts=_facts(end, columns, False),
        samples=columns,
        limits=counters.of_samples(columns, end.control),
        cca=end.control or None,
    )


def _receiving(end: SampledEnd, columns: dict[str, Floats]) -> ObservedFlow:
    """The peer's data. The samples stay out: what TCP_INFO says of RTT and window is of the other direction."""
    size = grown(columns, "bytes_received", end.was_there)
    seconds, start = _extent(columns, "bytes_received", end.was_there)
    return ObservedFlow(
        source=end.remote,
        destination=end.local,
        packets=whole(grown(columns, "data_segs_in", end.was_there)),
        bytes=whole(size),
        seconds=seconds,
        start_s=start,
        vantage="receiver",
        goodput_mbps=_rate(size, seconds),
        facts=_facts(end, columns, True) | {"as_receiver": AS_RECEIVER},
    )


def _extent(columns: dict[str, Floats], name: str, was_there: bool) -> tuple[float, float]:
    """From the last sample before a counter grew to the one with which it stopped, s: length and begin.

    Of one sample it is the time with data to send, which the kernel counts; 0 where it does not.
    """
    t, values = columns["t_s"], columns.get(name, np.empty(0))
    if len(t) < 2 or not len(values):
        busy = columns.get("busy_time", np.array([np.nan]))[-1]
        return (0.0 if np.isnan(busy) or name != "bytes_acked" else float(busy) / 1e6), float(t[0])
    steps = np.flatnonzero(np.diff(values) > 0)
    if not len(steps):
        return float(t[-1] - t[0]), float(t[0])
    begin, end = (float(t[0]) if not was_there else float(t[steps[0]])), float(t[steps[-1] + 1])
    return end - begin, begin


def _rate(size: float, seconds: float) -> float | None:
    return size * 8 / seconds / 1e6 if seconds > 0 and not np.isnan(size) else None


def _facts(end: SampledEnd, columns: dict[str, Floats], receives: bool) -> dict[str, Any]:
    """Handshake and counters; what is not known is absent."""
    facts: dict[str, Any] = {"begins_in_mid_connection": end.was_there, "samples": len(columns["t_s"])}
    for fact, counter in COUNTERS.items():
        if (fact in OF_RECEIVERS) == receives and (count := whole(grown(columns, counter, end.was_there))) is not None:
            facts[fact] = count
    if "options" in columns and not np.isnan(last := columns["options"][-1]):
        facts |= {name: bool(int(last) & bit) for name, bit in OPTIONS.items()}
    size = columns.get("rcv_mss" if receives else "snd_mss")
    if size is not None and not np.isnan(size[-1]):
        facts["segment_size"] = int(size[-1])
    if receives:
        facts |= {"receiver_rtt_ms": float(columns["rcv_rtt"][-1]) / 1e3} if "rcv_rtt" in columns and columns["rcv_rtt"][-1] > 0 else {}
    else:
        facts |= {"rtt": rtt} if (rtt := rtt_facts(columns)) else {}
        facts |= most(columns, facts.get("segment_size"))
    return facts


def most(columns: Columns, segment: int | None) -> dict[str, int]:
    """Largest window that the receiver offered and most that was in flight, bytes, at the samples; what is not known is absent."""
    window, flight = columns.get("snd_wnd", np.empty(0)), columns.get("in_flight", np.empty(0))
    if not len(flight) and "unacked" in columns:
        flight = columns["unacked"] - np.nan_to_num(columns.get("sacked", np.zeros(1)))
    values = {"window_max": window, "flight_max": flight * (segment or np.nan)}
    return {name: int(np.nanmax(each)) for name, each in values.items() if len(each) and not np.isnan(each).all()}


def rtt_facts(columns: Columns) -> dict[str, float]:
    """Of the smoothed RTT at the samples: how many, their median and mean, ms; `min_ms` is the kernel's smallest single RTT. Empty without any."""
    values = columns.get("rtt", np.empty(0))
    known = values[values > 0] / 1e3
    if not len(known):
        return {}
    least = columns.get("min_rtt", np.empty(0))
    smallest = least[~np.isnan(least)]
    facts = {"n": float(len(known)), "p50_ms": float(np.median(known)), "mean_ms": float(known.mean())}
    return facts | ({"min_ms": float(smallest[-1]) / 1e3} if len(smallest) else {})


RARE_S = 0.25
"""s between two lists of all sockets from which on it is said."""
NAME = "every socket"
"""The observation's name where there is no filter."""


def watch(text: str, duration_s: float, progress: Callable[[float, int], None] = lambda seconds, sockets: None) -> Observation:
    """Samples sockets for so long, or until it is interrupted.

    :param text: which ones, in the words of ss; empty for all.
    :param progress: hears the time, s, and the number of sockets that the filter lets through.
    :raises TcpscapeError: one line: a filter that makes no sense, a machine without sock_diag, or no socket that carried data.
    """
    from tcpscape.engines.host import sockets as host

    sampled = host.sample(text, duration_s, say=progress)
    if not sampled.sockets:
        seen, seconds = sampled.summary["seen"], sampled.summary["seconds"]
        problem = f"none of {counted(seen, 'socket')} carried data within {seconds:.3g} s" if seen else f"there was no such socket in {seconds:.3g} s"
        refuse(host.FIELD, problem, "sample while the transfer runs, in its network namespace (nsenter), or widen the filter", InterchangeError)
    observed = sorted((flow for socket in sampled.sockets for flow in flows(_end(socket))), key=lambda flow: -(flow.bytes or 0))
    return Observation("sockets", text or NAME, tuple(observed), tuple(_notes(sampled.summary)), dict(sampled.summary))


def _end(socket: SampledSocket) -> SampledEnd:
    return SampledEnd(SocketAddress(*socket.local), SocketAddress(*socket.remote), socket.columns, socket.control or None, socket.was_there)


def _notes(summary: Mapping[str, Any]) -> Iterator[str]:
    """What the samples do not show."""
    if summary["interval_s"]:
        yield f"One sample each {1e3 * summary['interval_s']:.3g} ms ({1e3 * summary['interval_p99_s']:.3g} ms in 1 %): what is shorter is not seen."
    if (summary["list_interval_s"] or 0) > RARE_S:
        yield (
            f"There are so many sockets that all of them were listed each {summary['list_interval_s']:.2g} s alone, and those that were active in "
            "between: the beginning of a new one may be missing."
        )
    if summary["stride"] > 1:
        yield f"Of {summary['stride']} samples one was kept, so that memory stays bounded."
    if summary["idle"]:
        yield f"{counted(summary['idle'], 'socket')} carried no data and {'is' if summary['idle'] == 1 else 'are'} left out."
    if summary["untold"]:
        yield f"{counted(summary['untold'], 'further socket')} carried less data than these, and their samples were not taken."
    if summary["refused"] or summary["dropped"]:
        yield "There were more sockets than are kept; some are missing: narrow the filter."
    if not summary["endings_heard"]:
        yield "Not every end of a socket was heard: sockets that lived between two samples may be missing."
