"""The flows and the links of a network in words: `2 cubic at 20ms and 2 bbr up`, `link home 20mbit down, 5mbit up`."""

from __future__ import annotations

from collections.abc import Sequence

from tcpscape import units
from tcpscape.scenario import path
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.path import Hop, TracedLink
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.topology import Endpoint, title

FEW_GROUPS = 5
"""Most groups of flows that are described one by one."""
FEW_LINKS = 4
"""Most links that are."""


def rtts(scenario: Scenario) -> str:
    """`RTT 30ms`, `RTTs 20ms and 80ms`, `RTTs 20ms to 160ms`."""
    ends = scenario.flows or scenario.endpoints
    every = [units.brief_time(ns) for ns in sorted({scenario.rtt_of(end) for end in ends})]
    if len(every) < 3:
        return f"RTT{'s' * (len(every) - 1)} {' and '.join(every)}"
    return f"RTTs {every[0]} to {every[-1]}"


def flows(scenario: Scenario) -> str:
    """`8 flows (4 cubic, 4 cubic up)`; groups are told apart where they differ in more than their number."""
    count, entries = units.counted(scenario.flow_count, "flow"), scenario.flows
    if not entries:
        return "no flows"
    if len(entries) > FEW_GROUPS:
        up = sum(flow.count for flow in entries if flow.direction == "up")
        return f"{count} in {len(entries)} groups" + (f", {up} of them up" if up else "")
    if len(entries) == 1 and entries[0].direction == "down":
        return count
    return f"{count} ({', '.join(group(flow, scenario) for flow in entries)})"


def group(flow: Flow, scenario: Scenario) -> str:
    """`2 cubic up at 80ms`, `1 bbr from b to c from 5s on`."""
    several = len({scenario.rtt_of(other) for other in scenario.flows}) > 1
    rtt = f" at {units.brief_time(scenario.rtt_of(flow))}" if several else ""
    start = f" from {units.brief_time(flow.start)} on" if flow.start else ""
    return f"{flow.count} {flow.cca}{_way(flow, scenario)}{rtt}{start}"


def _way(end: Endpoint, scenario: Scenario) -> str:
    """Which way data travel, and between which routers, where that is not the whole chain down."""
    up = " up" if end.direction == "up" else ""
    names = scenario.routers
    first, last = scenario.span(end)
    if (first, last) == (0, len(names) - 1):
        return up
    enter, leave = (names[last], names[first]) if up else (names[first], names[last])
    return f"{up} from {enter} to {leave}"


def links(scenario: Scenario) -> str:
    """`link home 20mbit down, 5mbit up`; `3 links of 20mbit`."""
    chain = scenario.chain
    rates = [_rates(link.forward, link.reverse) for link in chain]
    if not any(end.direction == "up" for end in scenario.endpoints):
        rates = [rate.removesuffix(" down") for rate in rates]
    if len(chain) > 1 and len(set(rates)) == 1:
        return f"{len(chain)} links{f' of {rates[0]}' if rates[0] != 'no limit' else ''}"
    if len(chain) > FEW_LINKS:
        return f"{len(chain)} links"
    if len(chain) == 1 and not chain[0].name:
        return f"bottleneck {rates[0]}" if rates[0] != "no limit" else "no bottleneck"
    return f"link{'s' * (len(chain) > 1)} {', '.join(f'{title(chain, i)} {rate}' for i, rate in enumerate(rates))}"


def _rates(forward: Sequence[Hop], reverse: Sequence[Hop]) -> str:
    """`20mbit`, `20mbit down and 5mbit up`, `20mbit down`, `no limit`."""
    down, up = _rate(forward), _rate(reverse)
    if down == up:
        return down or "no limit"
    return " and ".join(f"{rate} {way}" for rate, way in ((down, "down"), (up, "up")) if rate)


def _rate(hops: Sequence[Hop]) -> str:
    """The lowest rate of one direction; empty without one."""
    if any(isinstance(hop, TracedLink) for hop in hops):
        return "a recorded rate"
    rates = [rate for hop in hops if (rate := path.rate_bps(hop))]
    return units.format_rate(min(rates)) if rates else ""


def access(scenario: Scenario) -> str:
    """`access links of 20mbit`, where flows have some with a rate."""
    rates = {text for end in scenario.endpoints if end.access and (text := _rates(end.access.before, end.access.acks_after)) != "no limit"}
    return f"access links of {' or '.join(sorted(rates))}" if rates else ""


def traffic(scenario: Scenario) -> str:
    """`20 transfers a second of 30kB (cubic)`, `probes ping, voice up`."""
    texts = [
        f"{entry.rate:g} transfers a second of {units.brief_size(entry.size)} ({entry.cca}{_way(entry, scenario)})" for entry in scenario.transfers
    ]
    if scenario.probes:
        names = [f"{probe.name}{_way(probe, scenario) if not probe.name.endswith('-up') else ''}" for probe in scenario.probes]
        texts.append(f"probe{'s' * (len(names) > 1)} {', '.join(names)}")
    return ", ".join(texts)
