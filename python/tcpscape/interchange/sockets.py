"""Sockets of this host, sampled while they run: the flows that they send and receive, as an observation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tcpscape.engines.host import sockets as host
from tcpscape.engines.host.filters import FIELD
from tcpscape.engines.host.sockets import SampledSocket
from tcpscape.errors import refuse
from tcpscape.findings.diagnosis.observed import Endpoint, Observation
from tcpscape.interchange import tcp_info
from tcpscape.interchange.base import InterchangeError
from tcpscape.units import counted

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
    sampled = host.sample(text, duration_s, say=progress)
    if not sampled.sockets:
        seen, seconds = sampled.summary["seen"], sampled.summary["seconds"]
        problem = f"none of {counted(seen, 'socket')} carried data within {seconds:.3g} s" if seen else f"there was no such socket in {seconds:.3g} s"
        refuse(FIELD, problem, "sample while the transfer runs, in its network namespace (nsenter), or widen the filter", InterchangeError)
    flows = [flow for socket in sampled.sockets for flow in tcp_info.flows(_end(socket))]
    flows.sort(key=lambda flow: -(flow.bytes or 0))
    return Observation("sockets", text or NAME, tuple(flows), tuple(_notes(sampled.summary)), dict(sampled.summary))


def _end(socket: SampledSocket) -> tcp_info.SampledEnd:
    return tcp_info.SampledEnd(Endpoint(*socket.local), Endpoint(*socket.remote), socket.columns, socket.control or None, socket.was_there)


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
