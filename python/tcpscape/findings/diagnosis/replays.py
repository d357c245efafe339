"""Zone, replay and advice of a flow from one set of runs: what they share runs once."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from tcpscape.findings.diagnosis import advice, queues, replay, zone
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
    lab = queues.chosen(lab)
    repeated, where = replay.of(lab), zone.of(lab)
    if repeated.verdict == "differs":
        where = dataclasses.replace(where, guidance=f"{where.guidance} {HINT}")
    return Judged(where, repeated, advice.of(lab, repeated))


HINT = "The replay differs from the observation, so take the zone as a hint."
"""Said of a zone whose runs do not repeat the flow."""
