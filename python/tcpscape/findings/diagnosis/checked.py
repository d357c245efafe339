"""Checks of a diagnosis: what a `--check` may be about, `rtt_ms < 80ms`, `loss_pct.high < 1`, `limited:receive_window < 20%`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from tcpscape.campaign import checks
from tcpscape.campaign.checks import Check, CheckError, CheckResult
from tcpscape.errors import refuse
from tcpscape.findings.diagnosis.diagnosis import Diagnosis, FlowDiagnosis
from tcpscape.findings.diagnosis.observed import Cause
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.metrics import Metric
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import without_interval

Reader = Callable[[FlowDiagnosis], Estimate | None]
"""A flow's diagnosis → a number of it; None where it is not identifiable."""


def read_checks(texts: Sequence[str]) -> list[Check]:
    """The checks as they were typed. :raises CheckError: for a check that makes no sense."""
    parsed = [checks.read(text, METRICS, only=True) for text in texts]
    for check in parsed:
        if check.named and not check.statistic.end:
            name = check.metric.name
            refuse("check", f"{name} of a flow has no {check.named}", f"write {name}, or an end of its interval, {name}.low, {name}.high", CheckError)
        if check.below is not None:
            refuse("check", f"{check.text!r} compares two flows", "check each of them, [flow=1]", CheckError)
    return parsed


def verdicts(expected: Sequence[Check], diagnosis: Diagnosis, text: Callable[[Reason], str]) -> list[CheckResult]:
    """A verdict for each check and each flow that it chooses; `text` says why a value is missing.

    :raises CheckError: where a check chooses no flow, or the value is not identifiable.
    """
    places = [({"flow": str(i), "cca": one.control.name}, f"flow {i}, {one.flow.name}", one) for i, one in enumerate(diagnosis.flows, 1)]
    judged = []
    for check in expected:
        checks.expect(check, [(at, name) for at, name, _ in places])
        judged += [_verdict(check, name, one, text) for at, name, one in places if checks.is_chosen(check.chosen, at)]
    return judged


def _verdict(check: Check, name: str, diagnosis: FlowDiagnosis, text: Callable[[Reason], str]) -> CheckResult:
    metric = check.metric
    estimate = READERS[metric.name](diagnosis)
    if estimate is None:
        part = "limited_by" if metric.name.startswith("limited:") else f"path.{metric.name}"
        reason = diagnosis.not_identifiable.get(part) or diagnosis.not_identifiable.get("path")
        why = text(reason).removesuffix(".") if reason else "the source does not show it"
        problem = f"{metric.name} of {name} is not identifiable: {why}"
        refuse("check", problem, "check another number, or another [flow=…]", CheckError)
    return check.verdict(name, metric.name, estimate)


def _of_path(field: str) -> Reader:
    return lambda one: getattr(one.path, field) if one.path else None


def _limited(cause: Cause) -> Reader:
    """Of a flow with a doubt, no share is known: any cause may have a part of what is unknown."""
    return lambda one: None if one.limited_by is None or one.doubt else _exact(one.limited_by.get(cause, 0.0), "1")


def _exact(value: float | None, unit: str) -> Estimate | None:
    return None if value is None else without_interval(value, 1, unit)


_PATH = {"rtt_ms": "ms", "jitter_ms": "ms", "loss_pct": "%", "queue_loss_pct": "%", "ack_loss_pct": "%", "rate_mbps": "Mbit/s", "buffer_bytes": "B"}
"""Fields of a fitted path → their units."""
READERS: Mapping[str, Reader] = {
    "goodput_mbps": lambda one: _exact(one.flow.goodput_mbps, "Mbit/s"),
    **{name: _of_path(name) for name in _PATH},
    "confidence": lambda one: _exact(one.control.confidence, "1"),
    "gain": lambda one: one.advice.gain if one.advice else None,
    "replay_mbps": lambda one: one.replay.goodput_mbps if one.replay else None,
    **{f"limited:{cause}": _limited(cause) for cause in get_args(Cause)},
}
"""Name in a check → how a flow's diagnosis says it."""
_UNITS = {"goodput_mbps": "Mbit/s", "replay_mbps": "Mbit/s", **_PATH}
METRICS: Mapping[str, Metric] = {name: checks.unmeasured(name, _UNITS.get(name, "1")) for name in READERS}
"""The same as metrics, for the grammar of checks."""
