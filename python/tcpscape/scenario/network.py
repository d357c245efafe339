"""A scenario as a network: what each flow's packets meet, and what it has that one link with data in one direction has not."""

from __future__ import annotations

from collections.abc import Sequence

from tcpscape.errors import refuse
from tcpscape.scenario import topology
from tcpscape.scenario.path import Hop
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.topology import Endpoint


def kinds(scenario: Scenario) -> tuple[str, ...]:
    """What a scenario has besides one link, data in one direction and long flows, each as a phrase; empty of most."""
    flows = scenario.flows
    every = {
        "links": bool(scenario.links),
        "access links": any(e.access for e in scenario.endpoints),
        "RTTs of its flows": any(e.rtt is not None for e in scenario.endpoints),
        "data that travel up": any(e.direction == "up" for e in scenario.endpoints),
        "transfers": bool(scenario.transfers),
        "probes": bool(scenario.probes),
        "requests": any(flow.app.response for flow in flows),
        "pauses of applications": any(flow.app.on for flow in flows),
        "no flows": not flows,
    }
    return tuple(name for name, has in every.items() if has)


def expect_plain(scenario: Scenario, whose: str, fix: str, *, but: Sequence[str] = ()) -> None:
    """Refuses a scenario with anything of :func:`kinds` except what is in `but`.

    :param whose: what cannot have it, as the end of a sentence: `the mock engine has none`.
    :raises ScenarioError: one line that names all of it.
    """
    if more := [kind for kind in kinds(scenario) if kind not in but]:
        text = f"{', '.join(more[:-1])} and {more[-1]}" if len(more) > 1 else more[0]
        refuse("scenario", f"{scenario.name} has {text}, {whose}", fix)


def hops(scenario: Scenario) -> tuple[Hop, ...]:
    """Every hop: of the path, of its links, and of access links."""
    chain = [hop for link in scenario.chain for hop in (*link.forward, *link.reverse)]
    return (*chain, *(hop for e in scenario.endpoints if e.access for hop in topology.hops(e.access)))


def way(scenario: Scenario, endpoint: Endpoint) -> tuple[tuple[Hop, ...], tuple[Hop, ...]]:
    """The hops that its data meet, and those that the ACKs meet, in order; an own RTT's delays among them."""
    first, last = scenario.span(endpoint)
    access, links = scenario.access_of(endpoint), scenario.chain[first:last]
    there = tuple(hop for link in links for hop in link.forward)
    back = tuple(hop for link in reversed(links) for hop in link.reverse)
    data, acks = (there, back) if endpoint.direction == "down" else (back, there)
    return (*access.before, *data, *access.after), (*access.acks_before, *acks, *access.acks_after)
