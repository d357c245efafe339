"""A diagnosis as plain values: what `tcpscape diagnose --json` prints. Its schema is in :mod:`tcpscape.schemas.diagnosis`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from tcpscape.findings.diagnosis import sentences
from tcpscape.findings.diagnosis.diagnosis import Diagnosis, FlowDiagnosis
from tcpscape.findings.diagnosis.fitted import Alternative, FittedPath, Replay, ReplayAdvice, Withheld, Zone
from tcpscape.formats import stamped
from tcpscape.stats import Estimate


def plain(diagnosis: Diagnosis) -> dict[str, Any]:
    """The whole document; what is infinite or not known is None."""
    observation, others = diagnosis.observation, diagnosis.others
    return stamped("diagnosis", {
        "source": {
            "kind": observation.kind, "name": observation.name, "facts": finite(observation.facts), "notes": list(observation.notes),
            "flows": len(observation.flows), "others": {"flows": len(others), "bytes": sum(flow.bytes or 0 for flow in others)},
        },
        "flows": [_flow(one) for one in diagnosis.flows],
    })  # fmt: skip


def _flow(diagnosis: FlowDiagnosis) -> dict[str, Any]:
    flow, control = diagnosis.flow, diagnosis.control
    return {
        "tuple": [flow.source.address, flow.source.port, flow.destination.address, flow.destination.port], "packets": flow.packets,
        "bytes": flow.bytes, "seconds": flow.seconds, "start_s": flow.start_s, "vantage": flow.vantage, "goodput_mbps": finite(flow.goodput_mbps),
        "answer": sentences.answer(diagnosis),
        "cca": {"name": control.name, "confidence": control.confidence, "candidates": dict(control.candidates), "reason": control.reason},
        "limited_by": None if diagnosis.limited_by is None else dict(diagnosis.limited_by), "limits": [asdict(one) for one in flow.limits],
        "path": _path(diagnosis.path), "zone": diagnosis.zone and _zone(diagnosis.zone), "replay": diagnosis.replay and _replay(diagnosis.replay),
        "advice": diagnosis.advice and _advice(diagnosis.advice), "not_identifiable": diagnosis.not_identifiable, "facts": finite(flow.facts),
    }  # fmt: skip


def _path(path: FittedPath | None) -> dict[str, Any]:
    """Every field of a fitted path; all null without one."""
    values: dict[str, Any] = {one.name: getattr(path, one.name, None) for one in fields(FittedPath) if one.name not in ("reasons", "changes")}
    plain: dict[str, Any] = {name: value.plain() if isinstance(value, Estimate) else value for name, value in values.items()}
    if path is not None and path.order_kept is not None:
        plain["order_kept"] = {"value": path.order_kept, "low": None, "high": None}
    return {**plain, "changes": [asdict(change) for change in path.changes] if path else []}


def _zone(zone: Zone) -> dict[str, Any]:
    values = {one.name: getattr(zone, one.name) for one in fields(Zone) if one.name != "reasons"}
    return {name: value.plain() if isinstance(value, Estimate) else finite(value) for name, value in values.items()}


def _replay(replay: Replay) -> dict[str, Any]:
    values = {one.name: getattr(replay, one.name) for one in fields(Replay)}
    return {name: value.plain() if isinstance(value, Estimate) else finite(value) for name, value in values.items()}


def _advice(advice: ReplayAdvice) -> dict[str, Any]:
    verdict = sentences.no_advice(advice.verdict) if isinstance(advice.verdict, Withheld) else advice.verdict
    return {
        "choice": advice.choice, "gain": advice.gain and advice.gain.plain(), "verdict": verdict,
        "controls": [_alternative(one) for one in advice.controls], "settings": [_alternative(one) for one in advice.settings],
        "assumption": advice.assumption,
    }  # fmt: skip


def _alternative(one: Alternative) -> dict[str, Any]:
    return {
        "name": one.name, "gain": one.gain.plain(), "rtt_ms": one.rtt_ms and one.rtt_ms.plain(),
        "retransmits_pct": one.retransmits_pct and one.retransmits_pct.plain(),
    }  # fmt: skip


def finite(value: Any) -> Any:
    """The same value of JSON's own types; None for numbers that JSON has not."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        return finite(value.item())
    if isinstance(value, str | bytes):
        return value if isinstance(value, str) else value.hex()
    if isinstance(value, Sequence | np.ndarray):
        return [finite(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
