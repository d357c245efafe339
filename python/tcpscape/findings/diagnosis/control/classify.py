"""The name of a flow's congestion control, how sure it is, and what it rests on; "unknown" where the packets do not tell. Of trained trees."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.findings.diagnosis.control.features import features, pairs, vector
from tcpscape.findings.diagnosis.control.shadows import CANDIDATES, SAME
from tcpscape.findings.diagnosis.control.watched import Floats, Watched, watch
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


FILE = Path(__file__).with_name("forest.npz")
"""The forest that comes with tcpscape."""
FORMAT = 2
"""Version of the file's layout."""
ARRAYS = ("roots", "feature", "threshold", "left", "right", "leaves")
DEEPEST = 64
"""Levels of a tree at most."""
FLOOR = 0.01
"""Added to both probabilities before they are multiplied: neither forest alone rules a control out."""


@dataclass(frozen=True, slots=True)
class Trees:
    """Decision trees, node by node."""

    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    """Of each node; −1 of a leaf."""
    threshold: NDArray[np.float32]
    """A value up to it goes left."""
    left: NDArray[np.int32]
    """Left child of a node, distribution of a leaf."""
    right: NDArray[np.int32]
    leaves: NDArray[np.uint8]
    """Distributions, a row each, in 1/255."""

    def mean(self, row: Floats) -> Floats:
        """Mean distribution of the leaves that a row of features reaches."""
        nodes = self.roots.copy()
        for _ in range(DEEPEST):
            inner = self.feature[nodes] >= 0
            if not inner.any():
                break
            at = nodes[inner]
            goes_left = row[self.feature[at]].astype(np.float32) <= self.threshold[at]
            nodes[inner] = np.where(goes_left, self.left[at], self.right[at])
        reached: Floats = self.leaves[self.left[nodes]].mean(axis=0, dtype=np.float64)
        return reached / 255


@dataclass(frozen=True, slots=True)
class Forest:
    """Both forests, with what is needed to read their answer."""

    controls: tuple[str, ...]
    """What it tells apart."""
    features: tuple[str, ...]
    """Names of the features of `direct`, in the order of its input."""
    direct: Trees
    """Features → distribution over the controls."""
    paired: Trees
    """Measures of a candidate → whether it is the right one."""
    prior: Floats
    """How frequent each control is taken to be."""
    sharpness: float
    """Power of the combined distribution that fits held-out runs best."""
    confidence: Floats
    """Two rows: largest probability → share of held-out runs in which the name was right."""
    least: Mapping[str, float]
    """Control → confidence below which the answer is "unknown"."""
    provenance: Mapping[str, Any]
    """What it was trained on."""

    def probabilities(self, values: Mapping[str, float]) -> dict[str, float]:
        """Control → probability, the most probable first."""
        direct = self.direct.mean(vector(values, self.features))
        paired = np.array([self.paired.mean(row)[1] for row in pairs(values)])
        final = posterior(combined(direct[None, :], paired[None, :], self.controls), self.prior, self.sharpness, self.controls)[0]
        order = np.argsort(-final, kind="stable")
        return {self.controls[i]: float(final[i]) for i in order}

    def certainty(self, probability: float) -> float:
        """The share of held-out runs in which a name with this probability was right."""
        return float(np.interp(probability, self.confidence[0], self.confidence[1]))


def combined(direct: Floats, paired: Floats, controls: Sequence[str]) -> Floats:
    """Rows of both forests' probabilities as one; a control that cannot watch has that of `direct` in both."""
    second = direct.copy()
    for column, name in enumerate(CANDIDATES):
        if name in controls:
            second[:, controls.index(name)] = paired[:, column]
    product: Floats = (direct + FLOOR) * (second + FLOOR)
    return product


def posterior(scores: Floats, prior: Floats, power: float, controls: Sequence[str]) -> Floats:
    """Rows of scores to a power, times the prior, normalised; controls that are the same share what they have as the prior says."""
    raised: Floats = scores**power * prior
    normal: Floats = raised / raised.sum(axis=1, keepdims=True)
    for pair in SAME.items():
        if set(pair) <= set(controls):
            columns = [controls.index(name) for name in pair]
            normal[:, columns] = normal[:, columns].sum(axis=1, keepdims=True) * prior[columns] / prior[columns].sum()
    return normal


@functools.cache
def trained(file: Path = FILE) -> Forest:
    """The forest of a file."""
    with np.load(file, allow_pickle=False) as arrays:
        about = json.loads(str(arrays["about"]))
        if about["format"] != FORMAT:
            raise ValueError(f"{file.name} has format {about['format']}, not {FORMAT}; train it again with benches/control.py")
        direct, paired = (Trees(*(arrays[f"{kind}_{name}"] for name in ARRAYS)) for kind in ("direct", "paired"))
    return Forest(
        controls=tuple(about["controls"]), features=tuple(about["features"]), direct=direct, paired=paired, prior=np.array(about["prior"]),
        sharpness=about["sharpness"], confidence=np.array(about["confidence"]), least=about["least"], provenance=about["provenance"],
    )  # fmt: skip
