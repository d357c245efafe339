"""What the path of a scenario does on the way, and how high the delay must rise where its rate drops."""

from __future__ import annotations

from typing import Any

from tcpscape.errors import TcpscapeError
from tcpscape.findings.spike import answer
from tcpscape.findings.spike.bound import Bound
from tcpscape.scenario import bottleneck
from tcpscape.scenario.path import rate_bps
from tcpscape.scenario.scenario import Scenario
from tcpscape.units import NS_PER_S


def of(scenario: Scenario) -> list[dict[str, Any]]:
    """The changes at one moment, in the scenario's order: `at_s`, `where`, `hop`, new values, and the `bound` of a drop of the bottleneck's rate."""
    bounds = _bounds(scenario)
    return [
        {
            "at_s": change.at / NS_PER_S, "where": change.where, "hop": change.hop,
            "set": change.set.model_dump(mode="json", exclude_none=True) if change.set else {}, "bound": bounds.get(place),
        }
        for place, change in enumerate(scenario.changes)
        if change.at is not None
    ]  # fmt: skip


def _bounds(scenario: Scenario) -> dict[int, dict[str, Any]]:
    """The bound of each drop of the bottleneck's rate, by the change's place."""
    rates = [rate_bps(hop) for hop in scenario.bottleneck]
    steps = [
        (change.at, place, change.hop, change.set.rate)
        for place, change in enumerate(scenario.changes)
        if change.where == "bottleneck" and change.at is not None and change.set and change.set.rate and change.hop < len(rates)
    ]
    found = {}
    for _, place, hop, rate in sorted(steps):
        before, rates[hop] = rates[hop], rate
        if before and rate < before:
            found[place] = _bound(scenario, before, rate)
    return found


def _bound(scenario: Scenario, before: int, after: int) -> dict[str, Any]:
    bound = Bound(before, after, ((scenario.rtt_ns, 1.0),), _longest_queue_ns(scenario, after))
    return {
        "ratio": bound.ratio, "d_s": bound.d_ns / NS_PER_S, "spike_s": bound.spike_ns / NS_PER_S, "unlimited_s": bound.unlimited_ns / NS_PER_S,
        "text": answer.answer(bound),
    }  # fmt: skip


def _longest_queue_ns(scenario: Scenario, rate: int) -> int | None:
    """The longest delay that the bottleneck's queue allows at this rate; None where its limit is not in bytes."""
    try:
        link = bottleneck.find(scenario)
    except TcpscapeError:
        return None
    limit = link.holder.limit_bytes if link else None
    return limit * 8 * NS_PER_S // rate if limit else None
