"""Zone, replay and advice of a flow from one set of runs: what they share runs once; and the size of a buffer, settled by them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tcpscape.findings.diagnosis import advice, queues, replay, zone
from tcpscape.findings.diagnosis.fitted import UNKNOWN, Control, FittedPath, Replay, ReplayAdvice, ReplaySettings, Zone
from tcpscape.findings.diagnosis.observed import Cause, ObservedFlow
from tcpscape.findings.diagnosis.replay import seen_goodput
from tcpscape.findings.diagnosis.runs import Lab, open_lab
from tcpscape.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Repeated:
    """What the replay ran on the path of the estimates: the same scenario and seed give the same run again, with whatever is recorded of it."""

    scenario: Scenario
    warmup_s: float
    """The beginning that was not compared, s; 0 where the run repeats the whole observation."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the runs of a flow's fitted path say."""

    zone: Zone
    replay: Replay
    advice: ReplayAdvice
    repeated: Repeated | None = None
    """None where nothing was run."""


def judged(flow: ObservedFlow, path: FittedPath | None, control: Control | None, settings: ReplaySettings) -> Judged:
    """Runs the flow's path. What cannot be has its reason in `zone.reasons`, `replay.reason` and `advice.verdict`.

    Where the flow's control is not known, likely ones are assumed, one after the other, until a replay agrees; then the advice rests on that
    assumption and says so. The zone is that of a known control alone.
    """
    if control is not None and control.name == UNKNOWN and flow.cca is None:
        return _assumed(flow, path, control, settings)
    return _judged(flow, path, control, settings)


def _judged(flow: ObservedFlow, path: FittedPath | None, control: Control | None, settings: ReplaySettings) -> Judged:
    lab = open_lab(flow, path, control, settings)
    if isinstance(lab, str):
        return Judged(zone.unknown(flow, path, lab), replay.impossible(flow, lab), advice.none("no replay", lab))
    lab, repeated = _repeated(lab)
    if repeated.verdict == "differs" or advice.is_far(repeated):
        return Judged(zone.unknown(flow, path, UNLIKE), repeated, advice.of(lab, repeated), _again(lab))
    return Judged(zone.of(lab), repeated, advice.of(lab, repeated), _again(lab))


def _again(lab: Lab) -> Repeated:
    return Repeated(lab.scenario(lab.own), lab.warmup_s)


def _repeated(lab: Lab) -> tuple[Lab, Replay]:
    """The lab with what only replays settle, and the replay."""
    lab = queues.chosen(fitted(lab))
    return lab, replace(replay.of(lab), control=lab.own)


def _assumed(flow: ObservedFlow, path: FittedPath | None, control: Control, settings: ReplaySettings) -> Judged:
    """The same for a flow whose control is not known; a replay that does not agree says nothing, because the control may be another one."""
    unknown = zone.unknown(flow, path, NOT_KNOWN)
    likely = _likely(control)
    for name in likely:
        lab = open_lab(flow, path, Control(name, 0.0), settings)
        if isinstance(lab, str):
            return _judged(flow, path, Control(name, 0.0), settings)
        lab, repeated = _repeated(lab)
        if repeated.verdict == "agrees" and not advice.is_far(repeated):
            advised = replace(advice.of(lab, repeated), assumption=ASSUMED.format(name))
            return Judged(unknown, replace(repeated, is_assumed=True), advised, _again(lab))
    reason = f"The congestion control is not known, and {' and '.join(likely)} do not repeat the observation; name it if you know it (--cca)."
    return Judged(unknown, replay.impossible(flow, reason), advice.none("no replay", reason))


def _likely(control: Control) -> list[str]:
    """Names to assume: the most probable of the candidates, then the most common ones."""
    probable = [name for name, probability in control.candidates.items() if probability >= PROBABLE][:1]
    return list(dict.fromkeys([*probable, *COMMON]))[:TRIED]


PROBABLE, COMMON, TRIED = 0.3, ("cubic", "bbr"), 2
"""Probability from which a candidate is assumed first; Linux's default and the most common other control; most of them that are tried."""
NOT_KNOWN = "The congestion control is not known, and each has a cliff of its own."
"""Why there is no zone of an unknown control."""
ASSUMED = "The congestion control is not known: {0} is assumed, and its replay agrees with the observation."
UNLIKE = "The replay does not repeat the observation, so its runs tell nothing about the side of the cliff."
"""Why a zone is not judged."""


HELD = 0.5
"""Share of its time for which the buffer must have held the flow."""
FACTORS = (1.0, 0.7, 0.8, 0.9, 1.1, 1.2, 1.35, 1.5)
"""Sizes that are tried, as multiples of the guess, which comes first."""
NEARER = 0.02
"""Difference of |ln goodput| from which another size is nearer."""
BUFFERS: tuple[tuple[str, Cause], ...] = (("sndbuf", "send_buffer"), ("rcvbuf", "receive_window"))
"""Field of a flow, and the cause that it is for."""


def fitted(lab: Lab) -> Lab:
    """The same runs with the buffer that carries what was observed."""
    hosts, seen = lab.fit.hosts, seen_goodput(lab)
    held = [name for name, cause in BUFFERS if name in hosts.flow and hosts.shares.get(cause, 0.0) >= HELD]
    if not held or "read" in hosts.flow or not seen:
        return lab
    lab.settings.say("the size of the buffer")
    best, distance = lab, math.inf
    for factor in FACTORS:
        trial = _with(lab, held[0], round(int(hosts.flow[held[0]]) * factor))
        goodput = trial.central(lab.own, [0])[0].goodput_mbps
        away = abs(math.log(goodput / seen)) if goodput > 0 else math.inf
        if away < distance - NEARER:
            best, distance = trial, away
    return best


def _with(lab: Lab, name: str, size: int) -> Lab:
    """The same runs with this size of a buffer, which the kernel allows."""
    hosts = lab.fit.hosts
    limit = "wmem_max" if name == "sndbuf" else "rmem_max"
    kernel = {**hosts.kernel, limit: max(size, int(hosts.kernel.get(limit, 0)))}
    return replace(lab, fit=replace(lab.fit, hosts=replace(hosts, flow={**hosts.flow, name: size}, kernel=kernel)))
