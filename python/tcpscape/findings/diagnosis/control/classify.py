"""The name of a flow's congestion control, how sure it is, and what it rests on; "unknown" where the packets do not tell."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tcpscape.findings.diagnosis.control.features import features
from tcpscape.findings.diagnosis.control.forest import Forest, trained
from tcpscape.findings.diagnosis.control.watched import Watched, watch
from tcpscape.findings.diagnosis.fitted import Control, FittedPath
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.text.numbers import percent

UNKNOWN = "unknown"
LEAST_S = 10.0
"""Seconds below which nothing is said; 30 s are recommended."""
LEAST_IN_MID_CONNECTION = 0.97
"""Confidence that an answer needs where the capture does not have the connection's begin: the least RTT since then, by which many controls judge the
queue, was perhaps not seen."""
LEAST_ROUNDS = 30
"""Round trips below which nothing is said."""
MOST_HELD = 0.6
"""Share of the round trips that the application or the receive window may hold."""
FEW_CUTS = 2
"""Reductions below which their number is named as the reason."""
ALIKE: Mapping[frozenset[str], str] = {
    frozenset(("reno", "lp")): "Reno or LP: Linux's LP is Reno on nearly every path, as its delays are those of two clocks",
    frozenset(("reno", "dctcp")): "Reno or DCTCP: without marks, DCTCP is Reno",
    frozenset(("lp", "dctcp")): "Reno, LP or DCTCP: Linux's LP is Reno on nearly every path, and DCTCP is without marks",
    frozenset(("scalable", "yeah")): "Scalable or YeAH: while the queue is short, YeAH is Scalable",
}
"""Controls that are the same on some paths → the reason."""
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
    return _answer(watched, trained(), bool(flow.facts.get("begins_in_mid_connection")))


def _unseen(flow: ObservedFlow) -> str:
    """Why the source does not show the window, or nothing."""
    if not len(flow.segments.get("t", ())):
        return "the source has no packets, and only they show how the window moves"
    if flow.vantage != "sender":
        where = {"receiver": "at the receiver", "middle": "on the way"}.get(flow.vantage, "at an unknown place")
        return f"the capture was taken {where}; what is in flight, and so the window, can be seen at the sender alone"
    if flow.seconds < LEAST_S:
        return f"{flow.seconds:.2g} s are too short for the window to show its law; capture 30 s or more"
    return ""


def _unknown(reason: str, candidates: Mapping[str, float] | None = None, confidence: float = 0.0) -> Control:
    return Control(UNKNOWN, confidence, candidates or {}, reason)


def _held(watched: Watched) -> str:
    """Why the window does not show, or nothing."""
    window, application = watched.limited
    if application > MOST_HELD:
        return f"the application or the send buffer held the flow in {percent(application)} of the round trips, so the window hardly shows"
    if window > MOST_HELD:
        return f"the receive window held the flow in {percent(window)} of the round trips, so the congestion window hardly shows"
    return ""


def _answer(watched: Watched, forest: Forest, in_mid_connection: bool) -> Control:
    values = features(watched)
    probabilities = forest.probabilities(values)
    name, most = next(iter(probabilities.items()))
    confidence = forest.certainty(most)
    candidates = {n: round(p, 4) for n, p in list(probabilities.items())[:SHOWN] if p >= LEAST_SHOWN}
    if confidence < forest.least[name]:
        return _unknown(_undecided(watched, candidates), candidates, confidence)
    if name == "bbr" and not values["probes"]:
        reason = "the sending rate is like BBR's, but the flow never drained its queue for the least RTT, as BBR does every 10 s"
        return _unknown(reason, candidates, confidence)
    if in_mid_connection and confidence < LEAST_IN_MID_CONNECTION:
        reason = f"the capture begins in mid-connection and may lack the least RTT by which {name} or another control judges the queue"
        return _unknown(reason, candidates, confidence)
    return Control(name, confidence, candidates, _evidence(watched, values, name))


def _undecided(watched: Watched, candidates: Mapping[str, float]) -> str:
    names = list(candidates)[:2]
    if why := ALIKE.get(frozenset(names)):
        return why
    together = " and ".join(names) or "every control"
    rounds, cuts = len(watched.rounds.ack), len(watched.cuts)
    if cuts < FEW_CUTS:
        return f"{_count(cuts, 'reduction')} of the window in {rounds} round trips {'does' if cuts == 1 else 'do'} not tell {together} apart"
    return f"on this path {together} would have moved the window much alike"


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _evidence(watched: Watched, values: Mapping[str, float], name: str) -> str:
    parts = [f"{_count(len(watched.rounds.ack), 'round trip')} and {_count(len(watched.cuts), 'reduction')}"]
    close = values.get(f"{name}.close_short", float("nan"))
    if np.isfinite(close):
        parts.append(f"in {percent(close)} of them {name}, told the same ACKs, has the window that was seen, within 3 % or 1.5 packets")
    if np.isfinite(ratio := values.get("ratio_p50", float("nan"))):
        parts.append(f"a reduction leaves {ratio:.2f} of the window")
    if name.startswith("bbr"):
        parts.append("the window does not follow losses, and the sending rate moves in cycles")
    return "; ".join(parts)
