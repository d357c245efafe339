"""Which flows of an observation are diagnosed: those that are named, and of them the largest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tcpscape.errors import refuse, shown
from tcpscape.findings.diagnosis.observed import Endpoint, Observation, ObservedFlow

SMALL = 0.01
"""Share of the largest flow's bytes below which a flow is not diagnosed unless it is named: requests and their like."""
BOTH_ENDS = ("sockets", "ss")
"""Kinds of sources that may show both ends of a connection, each on its own."""
EXAMPLE = "write for example 10.0.0.1:40000-10.0.0.2:5201, one end of it, an address or :5201"
_END = re.compile(
    r"(?:\[(?P<six>[:.%\w]+)\]|(?P<four>[^\s:\[\]]+)|(?P<bare>[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*))?(?::(?P<port>\d{1,5}))?", re.ASCII
)


def matching(observation: Observation, text: str) -> list[ObservedFlow]:
    """The flows that `text` names: all without a text; `A:P-B:Q` has both ends, in either order, `A:P`, `A` or `:P` one of them.

    :raises TcpscapeError: one line, for what names no flow.
    """
    if not text:
        return list(observation.flows)
    ends = [_read(part, text) for part in re.split(r"\s*(?:->|→|-|,)\s*", text.strip())]
    if len(ends) > 2:
        refuse("flow", f"{shown(text)} has more than two ends", EXAMPLE)
    chosen = [flow for flow in observation.flows if _fits(flow, ends)]
    if not chosen:
        known = "; ".join(flow.name for flow in observation.flows[:3])
        refuse("flow", f"no flow is {shown(text)}", f"there are {known}{' …' if len(observation.flows) > 3 else ''}" if known else "leave it out")
    return chosen


def seen_once(observation: Observation) -> Observation:
    """The observation with each flow once: where both ends were sampled, as its sender shows it."""
    if observation.kind not in BOTH_ENDS:
        return observation
    sent = {(flow.source, flow.destination) for flow in observation.flows if flow.vantage == "sender"}
    once = [flow for flow in observation.flows if flow.vantage != "receiver" or (flow.source, flow.destination) not in sent]
    return replace(observation, flows=tuple(once))


def chosen(observation: Observation, most: int, text: str = "") -> list[ObservedFlow]:
    """At most `most` of the flows that `text` names, the largest first; without a text none that is far smaller than the largest."""
    flows = sorted(matching(observation, text), key=lambda flow: flow.bytes or 0, reverse=True)[:most]
    if text or not flows:
        return flows
    least = SMALL * (flows[0].bytes or 0)
    return [flow for flow in flows if (flow.bytes or 0) >= least]


def _read(part: str, text: str) -> Endpoint:
    """One end; port 0 and an empty address are any."""
    match = _END.fullmatch(part)
    if not part or match is None or int(match["port"] or 0) > 65535:
        refuse("flow", f"{shown(text)} names no end of a connection", EXAMPLE)
    return Endpoint(match["six"] or match["four"] or match["bare"] or "", int(match["port"] or 0))


def _fits(flow: ObservedFlow, ends: Sequence[Endpoint]) -> bool:
    """Whether the ends are those of a flow, in either order."""
    both = (flow.source, flow.destination)
    if len(ends) == 1:
        return any(_is(end, ends[0]) for end in both)
    return any(_is(both[0], a) and _is(both[1], b) for a, b in (ends, ends[::-1]))


def _is(end: Endpoint, wanted: Endpoint) -> bool:
    return (not wanted.address or end.address.lower() == wanted.address.lower()) and (not wanted.port or end.port == wanted.port)
