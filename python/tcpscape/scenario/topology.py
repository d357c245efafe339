"""Where flows join a path: a chain of links between named routers, and access links of their own.

A scenario's path is a **chain** of links, not a general graph. Its first link is the scenario's own `forward`, `bottleneck` and `reverse` where
there are any, the entries of `links` follow. A flow's data enter the chain at one router and leave it at another one; before and behind the chain
they may meet **access links**, which belong to one entry of flows. Page: docs/models/methods/topology.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import Name, Spec, Time, written
from tcpscape.scenario.path import Hop, Hops, Link, Netem

Way = Literal["down", "up"]
"""Which way data travel: `down` along the chain, meeting `forward`, or `up` against it, meeting `reverse`."""
_OF_NETEM = tuple(name for name in Netem.model_fields if name not in ("at", "rate", "limit"))
_OF_LINK = tuple(Link.model_fields)
_SHORT = (*_OF_NETEM, *_OF_LINK)
"""Fields of a hop that a link may have itself: the same hop in each direction."""


def _each_way(values: dict[str, Any], field: str) -> list[dict[str, Any]]:
    """The hops that short fields of a link stand for in one direction: a netem at a router, then a queue with a rate."""
    netem = {name: value for name, value in values.items() if name in _OF_NETEM}
    link = {name: value for name, value in values.items() if name in _OF_LINK}
    if link and "rate" not in link:
        refuse(field, f"{next(iter(link))} without a rate", "give its rate too, for example rate: 10mbit")
    return [{"at": "router", **netem}] * bool(netem) + [link] * bool(link)


class Access(Spec):
    """A link between a group of flows and the chain, of their own. Each part is a list of hops, all at routers."""

    before: Hops = ()
    """What data meet before they enter the chain."""
    after: Hops = ()
    """What data meet behind the chain."""
    acks_before: Hops = ()
    """What ACKs meet before they enter the chain."""
    acks_after: Hops = ()
    """What ACKs meet behind the chain."""


def _access(value: Any) -> Any:
    """tc's words, or fields of a hop: the same hop each way, on the sender's side of the chain; or the four parts."""
    if isinstance(value, str):
        return {"before": value, "acks_after": value}
    if not isinstance(value, dict) or not set(value) & set(_SHORT):
        return value
    short = {name: part for name, part in value.items() if name in _SHORT}
    parts = {name: part for name, part in value.items() if name not in _SHORT}
    for part in ("before", "acks_after"):
        if part in parts:
            refuse("access", f"{next(iter(short))} is beside {part}", f"write {next(iter(short))} within {part}")
    hops = _each_way(short, "access")
    return {"before": hops, "acks_after": hops, **parts}


_ShortAccess = written({"type": ["string", "object"], "examples": [{"delay": "10ms"}, "netem delay 10ms 2ms"]})
AccessField = Annotated[Access | None, BeforeValidator(_access, json_schema_input_type=Access | _ShortAccess | None)]
"""An access link as written: `{delay: 10ms, rate: 20mbit}`, tc's words, or its four parts."""


class ChainLink(Spec):
    """A link of the chain. Its hops are at routers; short fields (`delay`, `jitter`, `loss`, `rate`, `buffer`, `queue`) are the same hop each way."""

    name: Name | None = None
    """What results call it; None is its place, `link 2`."""
    between: tuple[str, str] | None = None
    """The names of the routers at its ends, in the direction of the chain; None is `r1` and `r2` of the second link, and so on."""
    forward: Hops = ()
    """Hops in the direction of the chain."""
    reverse: Hops = ()
    """Hops against it."""


def _link(value: Any) -> Any:
    """A link whose short fields are hops of both directions."""
    if not isinstance(value, dict) or not set(value) & set(_SHORT):
        return value
    short = {name: part for name, part in value.items() if name in _SHORT}
    parts = {name: part for name, part in value.items() if name not in _SHORT}
    for part in ("forward", "reverse"):
        if part in parts:
            refuse("links", f"{next(iter(short))} is beside {part}", f"write {next(iter(short))} within {part}")
    hops = _each_way(short, "links")
    return {"forward": hops, "reverse": hops, **parts}


_ShortLink = written({"type": "object", "examples": [{"delay": "5ms", "rate": "50mbit"}]})
ChainLinkField = Annotated[ChainLink, BeforeValidator(_link, json_schema_input_type=ChainLink | _ShortLink)]
"""A link of the chain as written."""


class Endpoint(Spec):
    """Where a flow, a probe or a group of transfers joins the path, and which way its data travel."""

    direction: Way = "down"
    """`down`: data along the chain, ACKs against it; `up`: the other way round."""
    rtt: Time | None = None
    """RTT of these flows without jitter and queues, ns: an access link each way adds what the chain lacks; None is the chain's own."""
    access: AccessField = None
    """Their access link; None is none."""
    enter: str | None = None
    """The router at which data enter the chain; None is its begin (of data that travel up: its end)."""
    leave: str | None = None
    """The router at which data leave the chain; None is its end (of data that travel up: its begin)."""


LATER = ("direction", "rtt", "access", "enter", "leave")
"""Fields of flows that content addresses name only where they are not the default: older addresses stay."""


def routers(links: Sequence[ChainLink]) -> tuple[str, ...]:
    """The names of the routers of a chain, one more than it has links.

    :raises ScenarioError: a link does not begin where the one before it ends, or a router is passed twice.
    """
    names = [links[0].between[0] if links and links[0].between else "r0"]
    for i, link in enumerate(links):
        begin, end = link.between or (names[-1], f"r{i + 1}")
        if begin != names[-1]:
            problem = f"{title(links, i)} begins at {shown(begin)}, and the one before it ends at {shown(names[-1])}"
            refuse("links", problem, "links are a chain, not a graph: let each begin where the one before it ends")
        if end in names:
            refuse("links", f"{title(links, i)} leads back to {shown(end)}", "links are a chain, not a graph: pass each router once")
        names.append(end)
    return tuple(names)


def title(links: Sequence[ChainLink], i: int) -> str:
    """What results call a link of a chain."""
    return links[i].name or f"link {i + 1}"


def span(endpoint: Endpoint, names: Sequence[str]) -> tuple[int, int]:
    """The routers between which a flow uses the chain, by their places in `names`, the smaller one first.

    :raises ScenarioError: an unknown router, or data that leave before they enter.
    """
    ends = (0, len(names) - 1) if endpoint.direction == "down" else (len(names) - 1, 0)
    places = []
    for field, name, end in (("enter", endpoint.enter, ends[0]), ("leave", endpoint.leave, ends[1])):
        if name is not None and name not in names:
            refuse(field, f"no router {shown(name)}", f"choose {', '.join(names)}")
        places.append(end if name is None else names.index(name))
    enter, leave = places
    if enter == leave:
        refuse("leave", f"data enter and leave at {shown(names[enter])}", "name two routers")
    if (enter < leave) != (endpoint.direction == "down"):
        other = "up" if endpoint.direction == "down" else "down"
        problem = f"data that travel {endpoint.direction} leave at {shown(names[leave])} before they enter at {shown(names[enter])}"
        refuse("leave", problem, f"exchange enter and leave, or write direction: {other}")
    return min(enter, leave), max(enter, leave)


def hops(access: Access) -> tuple[Hop, ...]:
    """All hops of an access link."""
    return (*access.before, *access.after, *access.acks_before, *access.acks_after)
