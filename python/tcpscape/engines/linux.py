"""What engines on a real Linux kernel share: profiles as sysctls, parameters of congestion controls, queues that tc has, digests of programs."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tcpscape.controls.spelling import Param, split
from tcpscape.engines import plan
from tcpscape.errors import refuse
from tcpscape.scenario import limits
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import FlowResult

MIN_MEMORY = 4096
"""`tcp_rmem[0]`, `tcp_wmem[0]`: the kernel's default, bytes."""
MODEL_ONLY = ("window", "skb_overhead", "max_tcp_header", "initcwnd")
"""Overrides that are rules of the model or words of a route, not sysctls."""
SYSCTLS = {
    "comp_sack_nr": "net.ipv4.tcp_comp_sack_nr",
    "comp_sack_delay_ns": "net.ipv4.tcp_comp_sack_delay_ns",
    "slow_start_after_idle": "net.ipv4.tcp_slow_start_after_idle",
    "limit_output_bytes": "net.ipv4.tcp_limit_output_bytes",
}
"""Overrides that are sysctls of the same value; those of memory are always set, from the profile."""
ECN = {"net.ipv4.tcp_ecn": "1"}
"""Both ends request and accept ECN. The kernel's default, 2, accepts it only."""


def digest(program: Path) -> str:
    """Digest of a program that comes with tcpscape, which enters an engine's version."""
    return _digest(program, program.stat().st_mtime_ns)


@functools.cache
def _digest(path: Path, changed: int) -> str:
    """Digest of a file; `changed` is its time of modification, ns, so that a changed file is read again."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def settings(profile: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, str]:
    """A profile and its overrides as sysctls of a kernel of our own; those of memory are always set, so that its own memory has no influence."""
    caps = {f"net.core.{name}": str({**profile, **overrides}[name]) for name in ("rmem_max", "wmem_max")}
    return caps | memory(profile, overrides) | others(overrides)


def memory(profile: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, str]:
    """The buffers of TCP of a profile and its overrides, as sysctls of a network namespace."""
    values = {**profile, **overrides}
    return {
        "net.ipv4.tcp_rmem": f"{MIN_MEMORY} {values['tcp_rmem_default']} {values['tcp_rmem_max']}",
        "net.ipv4.tcp_wmem": f"{MIN_MEMORY} {values['tcp_wmem_default']} {values['tcp_wmem_max']}",
    }


def others(overrides: Mapping[str, Any]) -> dict[str, str]:
    """The overrides that are sysctls of the same value."""
    return {name: str(int(overrides[field])) for field, name in SYSCTLS.items() if field in overrides}


def unmodelled(label: str, modelled: plan.Controls) -> Iterator[Param]:
    """The parameters in a label that the model does not have; the kernel accepts or refuses them."""
    name, values = split(label)
    modelled_params = {p.name for p in modelled.get(name, ())}
    yield from (Param(key, "", 0, -(2**31), 2**31 - 1) for key in values if key not in modelled_params)


BACKLOG = {"net.ipv4.tcp_max_syn_backlog": "65536"}
"""Connections that begin at random may begin together; a kernel with little memory would drop the SYN of more than 96 in a round trip."""


def controls(scenario: Scenario) -> list[tuple[str, str]]:
    """The congestion controls of a scenario's flows and transfers, each behind the field that names it."""
    own = [("cca", flow.cca) for flow in scenario.flows] + [("listener", flow.listener) for flow in scenario.flows if flow.listener]
    return own + [("transfers.cca", entry.cca) for entry in scenario.transfers]


def carried(scenario: Scenario, flows: Sequence[FlowResult]) -> Iterator[str]:
    """Caveats of what the flows of a trial carried: more than the link does, or nothing."""
    yield from limits.above_link(scenario, [flow.goodput_mbps for flow in flows])
    if silent := sum(not flow.bytes_received for flow in flows):
        yield f"{silent} of {len(flows)} flows carried no data"


def refuse_modelled(fields: Mapping[str, Any]) -> None:
    """Refuses what of a plan the model alone has: queues that tc does not have, receivers that misbehave, media flows."""
    if lie := next((flow["misbehaves"] for flow in fields.get("flows", ()) if "misbehaves" in flow), None):
        refuse("misbehaves", f"no kernel's receiver is {lie!r}", "leave it out, or use --engine model")
    if any("media" in probe for probe in fields.get("probes", ())):
        refuse("probes", "the media flow 'scream' has no program on a real kernel", "write voice, or use --engine model")
    for field, direction in _directions(fields):
        for stage in direction["stages"]:
            queue = stage["qdisc"]
            while queue:
                if queue["kind"] == "jitter":
                    refuse(field, "the queue 'jitter' (order: clamp, correlated) is not tc's", "write order: reorder, or use --engine model")
                if queue["kind"] == "dualpi2":
                    reason = "the queue 'dualpi2' is in Linux since 6.17, and tcpscape sets it up in no kernel"
                    refuse(field, reason, "write fq_codel with ecn, or use --engine model")
                queue = queue.get("child")


def _directions(fields: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Both directions of every link of a plan, each behind the scenario's field that it comes from."""
    yield from (("forward", fields["forward"]), ("reverse", fields["reverse"]))
    links = [("links", link) for link in fields.get("links", ())]
    links += [("access", place[link]) for place in fields.get("places", ()) for link in ("near", "far")]
    yield from ((field, link[direction]) for field, link in links for direction in ("forward", "reverse"))
