"""Zone, replay and advice of a flow from one set of runs: what they share runs once."""

from __future__ import annotations

from dataclasses import dataclass

from tcpscape.findings.diagnosis import advice, buffers, queues, replay, zone
from tcpscape.findings.diagnosis.fitted import Control, FittedPath, Replay, ReplayAdvice, Zone
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.runs import open_lab
from tcpscape.findings.diagnosis.settings import ReplaySettings


@dataclass(frozen=True, slots=True)
class Judged:
    """What the runs of a flow's fitted path say."""

    zone: Zone
    replay: Replay
    advice: ReplayAdvice


def judged(flow: ObservedFlow, path: FittedPath | None, control: Control | None, settings: ReplaySettings) -> Judged:
    """Runs the flow's path. What cannot be has its reason in `zone.reasons`, `replay.reason` and `advice.verdict`."""
    lab = open_lab(flow, path, control, settings)
    if isinstance(lab, str):
        return Judged(zone.unknown(flow, path, lab), replay.impossible(flow, lab), advice.none(f"no advice, because there is no replay: {lab}"))
    lab = queues.chosen(buffers.fitted(lab))
    repeated = replay.of(lab)
    if repeated.verdict == "differs" or advice.is_far(repeated):
        return Judged(zone.unknown(flow, path, UNLIKE), repeated, advice.of(lab, repeated))
    return Judged(zone.of(lab), repeated, advice.of(lab, repeated))


UNLIKE = "The replay does not repeat the observation, so its runs tell nothing about the side of the cliff."
"""Why a zone is not judged."""
