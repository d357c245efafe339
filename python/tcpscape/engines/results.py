"""What the engines' rows say, as the results of a trial: flows, probes and transfers with the names that their scenario gives them.

Every engine that runs a plan (the model, the virtual and the live engine) gives its rows in the same form, that of `crates/sim/src/output.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcpscape.scenario.flows import Flow
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import FlowResult, ProbeResult, ResponseResult, Rtt, SizeClass, TransfersResult

Row = Mapping[str, Any]
"""A summary as an engine gives it."""


def flow_results(scenario: Scenario, rows: Sequence[Row]) -> tuple[FlowResult, ...]:
    """The flows of a trial, each with the label that the scenario gives its congestion control (`cubic:hystart=0`), its group and its direction."""
    return tuple(_flow(scenario, group, flow, row) for (group, flow), row in zip(_connections(scenario), rows, strict=True))


def probe_results(scenario: Scenario, rows: Sequence[Row]) -> tuple[ProbeResult, ...]:
    """The probes of a trial, by their names."""
    return tuple(
        ProbeResult(
            name=probe.name,
            kind=probe.kind,
            direction=probe.direction,
            sent=row["sent"],
            received=row["received"],
            delay_ms=_times(row["delay_ms"]),
            jitter_ms=row["jitter_ms"] if row["received"] > 1 else None,
            reordered=row["reordered"],
            path_rtt_ms=scenario.rtt_of(probe) / 1e6,
            due=row["due"],
            lost=row["lost"],
        )
        for probe, row in zip(scenario.probes, rows, strict=True)
    )


def transfers_results(scenario: Scenario, rows: Sequence[Row]) -> tuple[TransfersResult, ...]:
    """What became of the connections of each entry of the scenario's transfers."""
    return tuple(
        TransfersResult(
            cca=entry.cca,
            classes=tuple(SizeClass(**{**c, "completion_ms": _times(c["completion_ms"])}) for c in row["classes"]),
            bytes_received=row["bytes_received"],
            retransmits=row["retransmits"],
        )
        for entry, row in zip(scenario.transfers, rows, strict=True)
    )


def _connections(scenario: Scenario) -> Iterator[tuple[int, Flow]]:
    """The entry of each connection with its number, in the order of a trial's flows."""
    return ((group, flow) for group, flow in enumerate(scenario.flows) for _ in range(flow.count))


def _flow(scenario: Scenario, group: int, flow: Flow, row: Row) -> FlowResult:
    named = {**row, "cca": flow.cca, "group": group, "direction": flow.direction}
    if scenario.is_topology:
        named["path_rtt_ms"] = scenario.rtt_of(flow) / 1e6
    if responses := row.get("responses"):
        named["responses"] = ResponseResult(count=responses["count"], time_ms=_times(responses["time_ms"]))
    return FlowResult.of(named)


def _times(values: Row) -> Rtt:
    """Percentiles of times, ms; each None where there was no time."""
    return Rtt(**{name: values.get(name) for name in Rtt.__slots__})
