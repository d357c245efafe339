"""Where flows join a path: a chain of links between named routers, and access links of their own.

A scenario's path is a **chain** of links, not a general graph. Its first link is the scenario's own `forward`, `bottleneck` and `reverse` where
there are any, the entries of `links` follow. A flow's data enter the chain at one router and leave it at another one; before and behind the chain
they may meet **access links**, which belong to one entry of flows. Page: docs/models/methods/topology.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, SerializationInfo, SerializerFunctionWrapHandler, model_serializer

from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import Name, Spec, Time, is_address, written
from tcpscape.scenario.grammar import parse_link
from tcpscape.scenario.path import Hop, Hops, Link, Netem

Direction = Literal["forward", "reverse"]
"""Direction of a link: from its left router to its right one, or back."""
Way = Literal["down", "up"]
"""Which way data travel: `down` along the chain, meeting `forward`, or `up` against it, meeting `reverse`."""
_OF_NETEM = tuple(name for name in Netem.model_fields if name not in ("at", "rate", "limit"))
_OF_LINK = tuple(Link.model_fields)
_SHORT = (*_OF_NETEM, *_OF_LINK)
"""Fields of a hop that a link may have itself: the same hop in each direction."""
MOST_LINKS = 32
"""Most links of a chain."""
PARTS_OF_PATH = ("forward", "bottleneck", "reverse")
"""Names that no link has: those of the path's own parts."""


UP_RATE = "up_rate"
"""Short field of a link of the chain: its rate against the chain, where that is another one."""


def _each_way(values: dict[str, Any], field: str) -> list[dict[str, Any]]:
    """The hops that short fields of a link stand for in one direction: a netem at a router, then a queue with a rate."""
    netem = {name: value for name, value in values.items() if name in _OF_NETEM}
    link = {name: value for name, value in values.items() if name in _OF_LINK}
    if link and "rate" not in link:
        refuse(field, f"{next(iter(link))} without a rate", "give its rate too, for example rate: 10mbit")
    return [{"at": "router", **netem}] * bool(netem) + [link] * bool(link)


def _in_short(one: Any, other: Any) -> dict[str, Any] | None:
    """The short fields that stand for the hops of both directions, from what these are written as; None where there are none."""
    if not all(isinstance(hop, dict) for hop in one) or len(one) != len(other) or not 1 <= len(one) <= 2:
        return None
    parts = [{name: value for name, value in hop.items() if name != "at"} for hop in one]
    kinds = [tuple(name in part for name in ("rate", "delay")) for part in parts]
    if kinds not in ([(False, True)], [(True, False)], [(False, True), (True, False)]):
        return None
    short = {name: value for part in parts for name, value in part.items()}
    back = other[-1].get("rate") if isinstance(other[-1], dict) else None
    if "rate" in short and back is not None and back != short["rate"]:
        short[UP_RATE] = back
        other = [*other[:-1], {**other[-1], "rate": short["rate"]}]
    return short if other == one and set(short) <= {*_SHORT, UP_RATE} else None


def _at_routers(hops: tuple[Hop, ...]) -> tuple[Hop, ...]:
    """Hops of a link, which are all at routers; refuses those that say otherwise."""
    for hop in hops:
        if isinstance(hop, Netem) and hop.at == "sender" and "at" in hop.model_fields_set:
            refuse("at", "the hops of links and of access links are at routers", "leave it out, or write at: router")
    return tuple(hop.model_copy(update={"at": "router"}) if isinstance(hop, Netem) else hop for hop in hops)


RouterHops = Annotated[Hops, AfterValidator(_at_routers)]
"""Hops that are all at routers."""


class Access(Spec):
    """A link between a group of flows and the chain, of their own. Each part is a list of hops, all at routers."""

    before: RouterHops = ()
    """What data meet before they enter the chain."""
    after: RouterHops = ()
    """What data meet behind the chain."""
    acks_before: RouterHops = ()
    """What ACKs meet before they enter the chain."""
    acks_after: RouterHops = ()
    """What ACKs meet behind the chain."""

    @model_serializer(mode="wrap")
    def _fields(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """As a user writes it: in short fields where they say it."""
        fields: dict[str, Any] = write(self)
        short = None
        if info.exclude_defaults and not is_address(info) and set(fields) == {"before", "acks_after"}:
            short = _in_short(fields["before"], fields["acks_after"])
        return fields if short is None or UP_RATE in short else short


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
    """A link of the chain. Its hops are at routers.

    Short fields (`delay`, `jitter`, `loss`, `rate`, `buffer`, `queue`) are the same hop each way, `up_rate` is the rate against the chain.
    """

    name: Name | None = None
    """What results call it; None is its place, `link 2`."""
    between: tuple[str, str] | None = None
    """The names of the routers at its ends, in the direction of the chain; None is `r1` and `r2` of the second link, and so on."""
    forward: RouterHops = ()
    """Hops in the direction of the chain."""
    reverse: RouterHops = ()
    """Hops against it."""

    @model_serializer(mode="wrap")
    def _fields(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """As a user writes it: in short fields where they say it."""
        fields: dict[str, Any] = write(self)
        if not info.exclude_defaults or is_address(info) or not {"forward", "reverse"} <= set(fields):
            return fields
        short = _in_short(fields["forward"], fields["reverse"])
        return fields if short is None else {name: of for name, of in fields.items() if name not in ("forward", "reverse")} | short


def _link(value: Any) -> Any:
    """A link whose short fields are hops of both directions, or such fields as text."""
    if isinstance(value, str):
        value = parse_link(value)
    if not isinstance(value, dict) or not set(value) & {*_SHORT, UP_RATE}:
        return value
    short = {name: part for name, part in value.items() if name in _SHORT}
    parts = {name: part for name, part in value.items() if name not in _SHORT}
    up_rate = parts.pop(UP_RATE, None)
    if up_rate is not None and "rate" not in short:
        refuse("links", f"{UP_RATE} without a rate", "give both, for example rate: 20mbit, up_rate: 5mbit")
    for part in ("forward", "reverse"):
        if part in parts:
            refuse("links", f"{next(iter(short))} is beside {part}", f"write {next(iter(short))} within {part}")
    against = short if up_rate is None else {**short, "rate": up_rate}
    return {"forward": _each_way(short, "links"), "reverse": _each_way(against, "links"), **parts}


_ShortLink = written({"type": ["string", "object"], "examples": [{"delay": "5ms", "rate": "50mbit"}, "delay 5ms rate 50mbit up_rate 10mbit"]})
ChainLinkField = Annotated[ChainLink, BeforeValidator(_link, json_schema_input_type=ChainLink | _ShortLink)]
"""A link of the chain as written: `{delay: 5ms, rate: 50mbit}`, the same as text, or its two directions."""


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

    :raises ScenarioError: a link does not begin where the one before it ends, a router is passed twice, or two links have the same name.
    """
    if len(links) > MOST_LINKS:
        refuse("links", f"a chain of {len(links)} links", f"write at most {MOST_LINKS}")
    titles = [title(links, i) for i in range(len(links))]
    if taken := next((name for i, name in enumerate(titles) if name in (*PARTS_OF_PATH, *titles[:i])), None):
        problem = "is a part of the path itself" if taken in PARTS_OF_PATH else "is the name of two links"
        refuse("links", f"{shown(taken)} {problem}", "give each link a name of its own, for example name: core")
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


def place(where: str, links: Sequence[ChainLink], first: int = 0) -> tuple[int, Direction]:
    """The place in `links` of the link that `where` names, and its direction: `core` is its forward one, `core.reverse` the other.

    :param first: number of the first of them in the chain.
    :raises ScenarioError: there is no such link.
    """
    name, _, direction = where.rpartition(".") if where.endswith((".forward", ".reverse")) else (where, "", "forward")
    titles = [link.name or f"link {first + i + 1}" for i, link in enumerate(links)]
    if name not in titles:
        *most, last = (*PARTS_OF_PATH, *titles)
        refuse("change", f"{shown(where)} is unknown", f"choose {', '.join(most)} or {last}")
    return titles.index(name), "reverse" if direction == "reverse" else "forward"


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


def expect_way(endpoint: Endpoint, crossed: Sequence[ChainLink]) -> None:
    """Refuses data up over links that have nothing in that direction. Data down may: a path of ACKs alone is a path.

    :raises ScenarioError: one line that names the part that is missing.
    """
    if endpoint.direction == "up" and any(link.forward for link in crossed) and not any(link.reverse for link in crossed):
        problem = "data travel up, and the path has no reverse: no delay, no rate, no queue"
        refuse("direction", problem, "give it one, for example reverse: netem delay 25ms")


def hops(access: Access) -> tuple[Hop, ...]:
    """All hops of an access link."""
    return (*access.before, *access.after, *access.acks_before, *access.acks_after)
