"""The name of a flow's congestion control, how sure it is, and what it rests on; "unknown" where the packets do not tell."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tcpscape.findings.diagnosis.control.features import features
from tcpscape.findings.diagnosis.control.forest import Forest, trained
from tcpscape.findings.diagnosis.control.watched import Watched, watch
from tcpscape.findings.diagnosis.fitted import Control, FittedPath
from tcpscape.findings.diagnosis.observed import ObservedFlow

UNKNOWN = "unknown"
LEAST_S = 10.0
"""Seconds below which nothing is said; 30 s are recommended."""
LEAST_ROUNDS = 30
"""Round trips below which nothing is said."""
MOST_HELD = 0.6
"""Share of the round trips that the application or the receive window may hold."""
SHOWN = 5
"""Candidates that an answer keeps."""
LEAST_SHOWN = 0.02
"""Probability below which a candidate is not shown."""


def classify(flow: ObservedFlow, path: FittedPath | None = None) -> Control:
    """The congestion control of the flow, by its packets at the sender.

    :param path: not needed; a place for what is known of the path.
    """
    del path
    if flow.cca:
        return Control(flow.cca, 1.0, {flow.cca: 1.0}, "the source names it")
    if reason := _unseen(flow):
        return _unknown(reason)
    watched = watch(flow)
    if watched is None or len(watched.rounds.ack) < LEAST_ROUNDS:
        return _unknown("too few round trips for the window to show its law; capture 30 s or more")
    if reason := _held(watched):
        return _unknown(reason)
    return _answer(watched, trained())


def _unseen(flow: ObservedFlow) -> str:
    """Why the source does not show the window, or nothing."""
    if not len(flow.segments.get("t", ())):
        return "the source has no packets, and only they show how the window moves"
    if flow.vantage != "sender":
        where = {"receiver": "at the receiver", "middle": "on the way"}.get(flow.vantage, "at an unknown place")
        return f"the capture was taken {where}; what is in flight, and so the window, can be seen at the sender alone"
    if flow.seconds < LEAST_S:
        return f"{flow.seconds:.0f} s are too short for the window to show its law; capture 30 s or more"
    return ""


def _unknown(reason: str, candidates: Mapping[str, float] | None = None, confidence: float = 0.0) -> Control:
    return Control(UNKNOWN, confidence, candidates or {}, reason)


def _held(watched: Watched) -> str:
    """Why the window does not show, or nothing."""
    window, application = watched.limited
    if application > MOST_HELD:
        return f"the application or the send buffer held the flow in {application:.0%} of the round trips, so the window hardly shows"
    if window > MOST_HELD:
        return f"the receive window held the flow in {window:.0%} of the round trips, so the congestion window hardly shows"
    return ""


def _answer(watched: Watched, forest: Forest) -> Control:
    values = features(watched)
    probabilities = forest.probabilities(values)
    name, most = next(iter(probabilities.items()))
    confidence = forest.certainty(most)
    candidates = {n: round(p, 4) for n, p in list(probabilities.items())[:SHOWN] if p >= LEAST_SHOWN}
    if confidence < forest.least:
        return _unknown(_undecided(watched, candidates), candidates, confidence)
    return Control(name, confidence, candidates, _evidence(watched, values, name))


def _undecided(watched: Watched, candidates: Mapping[str, float]) -> str:
    names = " and ".join(list(candidates)[:2]) or "every control"
    if len(watched.cuts) < 2:
        return f"{len(watched.cuts)} reductions of the window in {len(watched.rounds.ack)} round trips do not tell {names} apart"
    return f"on this path {names} would have moved the window alike"


def _evidence(watched: Watched, values: Mapping[str, float], name: str) -> str:
    rounds, cuts = len(watched.rounds.ack), len(watched.cuts)
    parts = [f"{rounds} round trips and {cuts} reductions"]
    close = values.get(f"{name}.close_short", float("nan"))
    if np.isfinite(close):
        parts.append(f"{name} given the same ACKs has a window within 3 % or 1.5 packets of the one seen in {close:.0%} of them")
    if np.isfinite(ratio := values.get("ratio_p50", float("nan"))):
        parts.append(f"a reduction leaves {ratio:.2f} of the window")
    if name.startswith("bbr"):
        parts.append("the window does not follow losses, and the sending rate moves in cycles")
    return "; ".join(parts)
