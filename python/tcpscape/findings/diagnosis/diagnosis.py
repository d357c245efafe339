"""The diagnosis of an observation: every part for the flows that are chosen, or the reason why it is missing.

    diagnosis = diagnose(observation, DiagnosisSettings())
    diagnosis.flows[0].path.rtt_ms

The steps: observe (what was seen), fit (the path, the congestion control, what limits the flow), replay (runs of the fitted path, by which the zone
and the advice are judged). What is said of them is in `tcpscape.words`. A part that is None has its reason in `reasons`; nothing is guessed in its
place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tcpscape.findings.diagnosis import control as recognised
from tcpscape.findings.diagnosis import limits, observed, path
from tcpscape.findings.diagnosis.fitted import UNKNOWN, DiagnosisSettings, FittedPath, RecognisedControl, Replay, ReplayAdvice, ReplaySettings, Zone
from tcpscape.findings.diagnosis.observed import Cause, Doubt, Observation, ObservedFlow
from tcpscape.findings.diagnosis.reasons import Reason, Reasons, Why
from tcpscape.findings.diagnosis.replay import zone
from tcpscape.findings.steps import Tell, untold
from tcpscape.text.table import ShownAsTable

if TYPE_CHECKING:
    from tcpscape.findings.diagnosis.replay.judging import ReplayedRun
    from tcpscape.findings.diagnosis.replay.scenario import FittedFlow

RUN_PARTS = ("replay", "advice")
"""Parts that are None without a replay."""
NO_REPLAY = Reason("no replay")
IDLE = 0.8
"""Share of the time without repairs for which an end that holds a flow leaves no name to the sender's congestion control."""
FASTER = 1.02
"""Goodput / upper end of a bottleneck's rate above which the two contradict each other."""
DOUBTED = 0.02
"""Share of the time from which what held a flow is not identifiable, where the packets do not show it."""


@dataclass(frozen=True, slots=True)
class FlowDiagnosis:
    """What is known of one flow."""

    flow: ObservedFlow
    limited_by: Mapping[Cause, float] | None
    """Cause → share of the time, the largest first, of it `unknown` what is in :attr:`doubt`; None where the source shows nothing of it."""
    path: FittedPath | None
    control: RecognisedControl
    zone: Zone | None
    replay: Replay | None
    advice: ReplayAdvice | None
    reasons: Reasons = field(default_factory=dict)
    """Part → why it is None: `limited_by`, `path`, `zone`, `replay`, `advice`."""
    repeated: ReplayedRun | None = None
    """What the replay ran; None where nothing was run."""
    beside: int = 0
    """Other flows with data that the source has between the same two addresses, in this direction, for a part of this flow's time."""

    @property
    def doubt(self) -> Doubt | None:
        """Why it is not identifiable what held the flow for a part of its time that matters; None where that is known."""
        return self.flow.limits_doubt if (self.limited_by or {}).get("unknown", 0.0) >= DOUBTED else None

    def fitted(self, kernel: str | None = None) -> FittedFlow | None:
        """What a scenario of the flow is made from, on this kernel's profile where one is named; None where its RTT is not identifiable."""
        from tcpscape.findings.diagnosis.replay import scenario

        return scenario.fitted(self.flow, self.path, kernel or scenario.PROFILE) if self.path else None

    @property
    def not_identifiable(self) -> dict[str, Reason]:
        """Everything that is missing, `path.buffer_bytes` or `advice`, with its reason."""
        of_path = {f"path.{name}": why for name, why in self.path.reasons.items()} if self.path else {}
        of_zone = {f"zone.{name}": why for name, why in self.zone.reasons.items()} if self.zone else {}
        unknown = {"cca": self.control.reason} if self.control.name == UNKNOWN and self.control.reason else {}
        doubt = {"limited_by": Reason(self.doubt)} if self.doubt else {}
        return {**self.reasons, **doubt, **unknown, **of_path, **of_zone}


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis(ShownAsTable):
    """What an observation says of its flows. It prints itself as the table of its only flow, or as a row for each flow."""

    observation: Observation
    flows: Sequence[FlowDiagnosis]
    """Those that were diagnosed, the largest first."""
    others: Sequence[ObservedFlow] = ()
    """Those that were not."""


def diagnose(observation: Observation, settings: DiagnosisSettings = DiagnosisSettings(), tell: Tell = untold) -> Diagnosis:
    """Diagnoses the flows that the settings choose. :raises TcpscapeError: one line, where the settings name no flow of the observation."""
    observation = observed.seen_once(observation)
    chosen = observed.chosen(observation, settings.most, settings.flow)
    others = [flow for flow in observation.flows if not any(flow is one for one in chosen)]
    diagnoses = []
    for number, flow in enumerate(chosen, 1):
        if len(chosen) > 1:
            tell("flow", f"{number} of {len(chosen)}")
        else:
            tell("diagnosis", "")
        beside = [one for one in observation.flows if _is_beside(one, flow)]
        back = [(observed.segments_back(one, flow), one.start_s < flow.start_s) for one in observation.flows]
        is_before = any(count > 0 and is_earlier for count, is_earlier in back)
        found = of_flow(replace(flow, others_back=sum(count for count, _ in back), others_before=is_before), settings)
        diagnoses.append(replace(found, path=shared(found.path, flow, beside), beside=len(beside)))
    return Diagnosis(observation, diagnoses, others)


def of_flow(flow: ObservedFlow, settings: DiagnosisSettings) -> FlowDiagnosis:
    """The diagnosis of one flow."""
    diagnosis = before_replay(flow, settings)
    return diagnosis if settings.replay is None else replayed(diagnosis, settings.replay)


def shared(path: FittedPath | None, flow: ObservedFlow, beside: Sequence[ObservedFlow]) -> FittedPath | None:
    """The path, whose bottleneck may be faster by what other flows carried beside this one: their packets may have passed it too."""
    if path is None or path.rate_mbps is None or not flow.bytes:
        return path
    ends = flow.start_s + flow.seconds
    of_time = [(min(one.start_s + one.seconds, ends) - max(one.start_s, flow.start_s)) / max(one.seconds, 1e-9) for one in beside]
    more = 1 + sum((one.bytes or 0) * min(1.0, part) for one, part in zip(beside, of_time, strict=True)) / flow.bytes
    buffer = path.buffer_bytes and replace(path.buffer_bytes, high=path.buffer_bytes.high * more)
    return replace(path, rate_mbps=replace(path.rate_mbps, high=path.rate_mbps.high * more), buffer_bytes=buffer)


def _is_beside(one: ObservedFlow, flow: ObservedFlow) -> bool:
    """Whether one flow is another one than `flow`, and went the same way for a part of its time."""
    ends = [(it.source.address, it.destination.address) for it in (one, flow)]
    both_from, both_to = max(one.start_s, flow.start_s), min(one.start_s + one.seconds, flow.start_s + flow.seconds)
    return one is not flow and ends[0] == ends[1] != ("", "") and bool(one.bytes) and both_from < both_to


def before_replay(flow: ObservedFlow, settings: DiagnosisSettings) -> FlowDiagnosis:
    """What the packets or samples of one flow say without any run: its path, its congestion control, what limits it."""
    reasons: dict[str, Reason] = {}
    fitted = path.fit(flow)
    control = _control(flow, settings.cca, fitted)
    flow = limits.doubted(replace(flow, limits=limits.refined(flow, control, fitted)), control, fitted)
    limited_by = limits.shares_of(flow) or None
    if limited_by is None:
        reasons["limited_by"] = Reason("data missing" if flow.facts.get("data_missing") else "limits unseen")
    control, fitted = _uncontradicted(control, limited_by or {}), _slower(fitted, flow)
    reasons |= dict.fromkeys(RUN_PARTS, NO_REPLAY)
    return FlowDiagnosis(flow, limited_by, fitted, control, zone.unknown(flow, fitted, NO_REPLAY), None, None, reasons)


def replayed(diagnosis: FlowDiagnosis, settings: ReplaySettings) -> FlowDiagnosis:
    """The same with what only runs of the path say: zone, replay and advice."""
    from tcpscape.findings.diagnosis.replay.judging import judged

    runs = judged(diagnosis.flow, diagnosis.path, diagnosis.control, settings)
    reasons = {part: why for part, why in diagnosis.reasons.items() if part not in RUN_PARTS}
    return replace(diagnosis, zone=runs.zone, replay=runs.replay, advice=runs.advice, reasons=reasons, repeated=runs.repeated)


def _uncontradicted(control: RecognisedControl, limited_by: Mapping[Cause, float]) -> RecognisedControl:
    """The control, unless its window hardly held the flow while nothing was repaired: what was named by a window that did not is no name.

    Where there is no name, that is the reason which counts: neither a longer capture nor one at the sender would show the window.
    """
    why = control.reason.why if control.reason else ""
    if why in ("named by the user", "named by the source", "no packets") or limits.spaces(control.name):
        return control
    alone = max(1.0 - sum(limited_by.get(cause, 0.0) for cause in ("recovery", "timeout")), 1e-9)
    causes: Mapping[Why, Sequence[Cause]] = {"application held": ("application", "send_buffer"), "window held": ("receive_window",)}
    for reason, held in causes.items():
        share = sum(limited_by.get(cause, 0.0) for cause in held) / alone
        if share >= IDLE:
            return replace(control, name=UNKNOWN, reason=Reason(reason, {"share": share, "of": "time"}))
    return control


def _slower(path: FittedPath, flow: ObservedFlow) -> FittedPath:
    """The path, without a bottleneck that would be slower than what the flow carried."""
    rate, goodput = path.rate_mbps, flow.goodput_mbps or 0.0
    if rate is None or not goodput > FASTER * rate.high:
        return path
    reason = Reason("carried more", {"goodput": goodput, "rate": rate.value})
    return replace(path, rate_mbps=None, buffer_bytes=None, queue=None, reasons={**path.reasons, "rate_mbps": reason, "buffer_bytes": reason})


def _control(flow: ObservedFlow, said: str | None, fitted: FittedPath) -> RecognisedControl:
    """The congestion control: as the user or the source says, otherwise as the packets show it."""
    if said:
        return RecognisedControl(said, 1.0, {said: 1.0}, Reason("named by the user"))
    if flow.cca:
        return RecognisedControl(flow.cca, 1.0, {flow.cca: 1.0}, Reason("named by the source"))
    control = recognised.classify(flow, fitted)
    share = (limits.shares_of(flow) or {}).get("pacing", 0.0)
    if control.name == UNKNOWN or limits.spaces(control.name) or share < limits.SURE or flow.vantage != "sender" or limits.is_steady(flow):
        return control
    return replace(control, name=UNKNOWN, reason=Reason("spaced by a timer", {"name": control.name, "share": share}))
