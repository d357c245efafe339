"""The TCP sockets of this process's network namespace, sampled by the program's mode `sockets` while others use them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape import units
from tcpscape.engines.host.filters import FIELD, Filter, parse
from tcpscape.engines.host.process import PROGRAM, HostProcess, is_supported
from tcpscape.errors import EngineError, refuse

PATIENCE_S = 30.0
"""How long after its time the program may take for its last list and its lines, s."""
LONGEST_S = 3600.0
"""Longest time of sampling, s: the memory for it is bounded, so longer ones have coarser samples."""
MOST_TOLD = 200
"""Sockets whose samples are taken; of the others only their number is known."""


@dataclass(frozen=True, slots=True)
class SampledSocket:
    """A socket that carried data, with its samples."""

    local: tuple[str, int]
    """Address and port of this end."""
    remote: tuple[str, int]
    """The other's."""
    control: str
    """The congestion control of this end; empty where the kernel did not tell, as of sockets that lived between two samples."""
    uid: int
    """User who owns it."""
    was_there: bool
    """Whether it was there before the first sample."""
    ended_s: float | None
    """When it ended, s; None where it was alive at the last sample."""
    columns: Mapping[str, NDArray[np.float64]]
    """`t_s` and fields of TCP_INFO by the kernel's names; NaN where the kernel does not tell."""


@dataclass(frozen=True, slots=True)
class SocketSamples:
    """What was sampled."""

    sockets: tuple[SampledSocket, ...]
    """Those that carried data, the one that carried most first."""
    summary: Mapping[str, Any]
    """What the program says of the whole: `seconds`, `interval_s`, `idle`, …; crates/live/src/sockets/mod.rs."""


def sample(text: str, duration_s: float, interval_s: float = 0.0, say: Callable[[float, int], None] = lambda seconds, sockets: None) -> SocketSamples:
    """Samples for so long, until it is interrupted.

    :param text: the filter in the words of ss; empty for every connection.
    :param interval_s: time between two samples, s; 0 for 20 ms, or longer where there are so many sockets that it would cost more than 5 % of a
        processor.
    :param say: hears the time, s, and how many sockets the filter lets through.
    :raises TcpscapeError: one line: a filter that makes no sense, a machine that is not Linux, a program that is not built.
    """
    chosen = parse(text)
    if not 0 < duration_s <= LONGEST_S:
        refuse("duration", f"{duration_s:g} s is no time to sample for", f"write a time of at most {LONGEST_S:g}s, for example 30s")
    if not is_supported() or not PROGRAM.exists():
        fix = "run `make setup`" if is_supported() else "diagnose a capture instead"
        raise EngineError(f"{FIELD}: {'its program is not built' if is_supported() else 'sockets are listed on Linux alone'}; {fix}")
    return _sampled(_job(chosen, duration_s, interval_s), duration_s + PATIENCE_S, say)


def _job(chosen: Filter, duration_s: float, interval_s: float) -> Mapping[str, Any]:
    return {
        "duration_ns": round(duration_s * units.NS_PER_S), "interval_ns": round(interval_s * units.NS_PER_S), "states": chosen.states,
        "condition": chosen.condition, "most": MOST_TOLD,
    }  # fmt: skip


def _sampled(job: Mapping[str, Any], most_s: float, say: Callable[[float, int], None]) -> SocketSamples:
    sockets: list[SampledSocket] = []
    with HostProcess("sockets", job) as process:
        try:
            _take(process, sockets, most_s, say)
        except KeyboardInterrupt:  # what was sampled until now is worth an answer; a second one ends it
            process.send({"stop": True})
            _take(process, sockets, PATIENCE_S, say)
        return SocketSamples(tuple(sockets), process.result())


def _take(process: HostProcess, into: list[SampledSocket], most_s: float, say: Callable[[float, int], None]) -> None:
    for event in process.events(most_s):
        if event["event"] == "seen":
            say(event["t_s"], event["sockets"])
        else:
            into.append(_socket(event))


def _socket(event: Mapping[str, Any]) -> SampledSocket:
    columns = {name: np.frombuffer(base64.b64decode(data), "<f8") for name, data in event["columns"].items()}
    local, remote = (tuple(event[end]) for end in ("local", "remote"))
    return SampledSocket(local, remote, event["control"], event["uid"], event["was_there"], event["ended_s"], columns)
