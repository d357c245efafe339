"""What else than another congestion control may help a flow: one change of its ends or of its bottleneck each, for a replay with that change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tcpscape.findings.diagnosis.hosts import SHARE
from tcpscape.findings.diagnosis.runs import Change, Lab
from tcpscape.units import brief_size

TIMES = 4
"""Multiple of a buffer that is tried."""
PACING = ("bbr", "bbr3", "prague")
"""Controls that pace by themselves."""
AQM = "fq_codel"
"""Queue that is tried at the bottleneck: Linux's usual default."""


@dataclass(frozen=True, slots=True)
class Help:
    """A change that may help."""

    name: str
    change: Change


def helps(lab: Lab) -> list[Help]:
    """The changes that apply to the flow, those for what limited it first."""
    hosts, values = lab.fit.hosts, lab.fit.values
    found = []
    if "rcvbuf" in hosts.flow and hosts.shares.get("receive_window", SHARE) >= SHARE:
        found.append(_buffer("receive buffer", "rcvbuf", "rmem_max", int(hosts.flow["rcvbuf"])))
    if "sndbuf" in hosts.flow:
        found.append(_buffer("send buffer", "sndbuf", "wmem_max", int(hosts.flow["sndbuf"])))
    if values.order == "reorder" and (values.jitter_forward_ms or values.jitter_reverse_ms):
        found.append(Help("keep the order of packets", _in_order))
    if values.rate_mbps:
        found.append(Help(f"{AQM} at the bottleneck", _aqm))
    if lab.own not in PACING:
        found.append(Help("pacing (fq at the sender)", _paced))
    return found


def _buffer(name: str, field: str, limit: str, size: int) -> Help:
    larger = size * TIMES

    def change(plain: dict[str, Any]) -> dict[str, Any]:
        return _flow(plain, {field: larger}) | {"kernel": {**plain["kernel"], limit: max(larger, int(plain["kernel"].get(limit, 0)))}}

    return Help(f"{name} {brief_size(larger)}", change)


def _flow(plain: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with fields of its flow changed."""
    return {**plain, "flows": [{**flow, **fields} for flow in plain["flows"]]}


def _in_order(plain: dict[str, Any]) -> dict[str, Any]:
    """Both directions with a delay that keeps the order, with the same mean and spread."""

    def kept(hop: Mapping[str, Any]) -> dict[str, Any]:
        return {**hop, "order": "correlated", "distribution": "normal"} if "jitter" in hop else dict(hop)

    return {**plain, "forward": [kept(hop) for hop in plain["forward"]], "reverse": [kept(hop) for hop in plain["reverse"]]}


def _aqm(plain: dict[str, Any]) -> dict[str, Any]:
    """The bottleneck with an AQM instead of its FIFO."""
    return {**plain, "bottleneck": [{"rate": link["rate"], "queue": AQM} for link in plain["bottleneck"]]}


def _paced(plain: dict[str, Any]) -> dict[str, Any]:
    """The sender with fq, so that TCP paces."""
    changes = [{**c, "hop": 1} if c["where"] == "forward" else c for c in plain.get("changes", ())]
    return {**plain, "forward": ["fq", *plain["forward"]], **({"changes": changes} if changes else {})}
