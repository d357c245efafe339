"""The name of a flow's congestion control, how sure it is, and what it rests on; "unknown" where the packets do not tell. Of trained trees.

The features of a flow are the course of its window, and for each candidate how far it would have gone from it, also compared with the best one.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.findings.diagnosis import limits
from tcpscape.findings.diagnosis.control.watched import (
    CANDIDATES,
    CWR,
    DISORDER,
    LOSS,
    OLDER,
    SAME,
    Watched,
    compare,
    counting_acks,
    distance,
    segments_per_ack,
    watch,
)
from tcpscape.findings.diagnosis.fitted import FittedPath, RecognisedControl
from tcpscape.findings.diagnosis.growth import stays_below_bottleneck
from tcpscape.findings.diagnosis.observed import BOTH_WAYS, MOST_BINS, ObservedFlow
from tcpscape.findings.diagnosis.path.columns import Ints
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.findings.diagnosis.sender_side import as_sender
from tcpscape.stats.estimate import Floats

COMPARED = (
    "unlikely_short",
    "unlikely_long",
    "backoff_unlikely",
    "error_short",
    "error_long",
    "middle_long",
    "exact_short",
    "exact_long",
    "backoff_error",
    "backoff_close",
    "close_long",
)
"""Measures of a candidate that are also compared with the best candidate's."""
LEAST_IS_BEST = ("error", "middle", "unlikely")
"""In the names of measures of which the best candidate has the least."""
MISSING = -9.0
"""Stands for what a flow does not show."""
MOST = 99.0


def features(watched: Watched) -> dict[str, float]:
    """Name → value, NaN where the flow does not show it; the same names for every flow."""
    values = shape(watched) | related(compare(watched))
    return values | evidence(values)


def evidence(values: Mapping[str, float]) -> dict[str, float]:
    """How much the whole flow speaks against each candidate: its mean distances from the best one, times what was compared, as signed logarithms.

    `margin` is what speaks against the next candidate for the one that is best, and minus what speaks against itself for any other.
    """
    rounds = float(np.exp(values["log_rounds"]))
    compared, cuts = rounds * values["open"], max(float(np.exp(values["cuts"])) * rounds - 0.5, 0.0)
    growth = np.array([_apart(values, name, "unlikely_long") + _apart(values, name, "unlikely_short") for name in CANDIDATES]) * compared / 2
    backoff = np.array([_apart(values, name, "backoff_unlikely") for name in CANDIDATES]) * cuts
    against = growth + backoff - (growth + backoff).min()
    order = np.sort(against)
    result: dict[str, float] = {"best.margin": float(np.log1p(order[1]))}
    for i, name in enumerate(CANDIDATES):
        margin = order[1] if against[i] <= 0 else -against[i]
        result |= {
            f"{name}.against": float(np.log1p(against[i])),
            f"{name}.against_growth": float(np.log1p(growth[i])),
            f"{name}.against_backoff": float(np.log1p(backoff[i])),
            f"{name}.margin": float(np.sign(margin) * np.log1p(abs(margin))),
        }
    return result


def _apart(values: Mapping[str, float], name: str, measure: str) -> float:
    value = values[f"{name}.{measure}.apart"]
    return 0.0 if np.isnan(value) else value


def related(measures: dict[str, dict[str, float]]) -> dict[str, float]:
    """The measures of each candidate, their distance from the best one's, and the candidate's rank by all of them."""
    result = {f"{name}.{measure}": value for name, values in measures.items() for measure, value in values.items()}
    for measure in COMPARED:
        values: Floats = np.array([measures[name][measure] for name in CANDIDATES], float)
        known = values[np.isfinite(values)]
        best = float("nan") if not len(known) else float(known.min() if any(w in measure for w in LEAST_IS_BEST) else known.max())
        result[f"best.{measure}"] = best
        result |= {f"{name}.{measure}.apart": float(v) - best for name, v in zip(CANDIDATES, values, strict=True)}
    total = np.array([distance(measures[name]) for name in CANDIDATES])
    places = np.argsort(np.argsort(total, kind="stable"))
    for name, value, place in zip(CANDIDATES, total, places, strict=True):
        result |= {f"{name}.total": float(value), f"{name}.total.apart": float(value - total.min()), f"{name}.place": float(place)}
    return result


def bounded(row: Floats) -> Floats:
    """Values as the trees read them: none is missing, none is beyond :data:`MOST`."""
    finite: Floats = np.clip(np.nan_to_num(row, nan=MISSING, posinf=MOST, neginf=-MOST), -MOST, MOST)
    return finite.astype(np.float32).astype(np.float64)


def vector(values: Mapping[str, float], names: Sequence[str]) -> Floats:
    """The values in the order of `names`."""
    return bounded(np.array([values.get(name, float("nan")) for name in names], float))


def pairs(values: Mapping[str, float]) -> Floats:
    """A row for each candidate: its own measures under names that are the same for all, which candidate it is, and the course of the window."""
    about = [value for name, value in sorted(values.items()) if _is_common(name)]
    measures = sorted(name.partition(".")[2] for name in values if name.startswith(f"{CANDIDATES[0]}."))
    rows = [[values[f"{name}.{measure}"] for measure in measures] + [float(name == other) for other in CANDIDATES] + about for name in CANDIDATES]
    return bounded(np.array(rows, float))


def _is_common(name: str) -> bool:
    """Whether a feature is of no single candidate."""
    return "." not in name or name.startswith("best.")


RATIOS = (0.0, 0.4, 0.46, 0.54, 0.62, 0.67, 0.73, 0.78, 0.84, 0.9, 0.96)
"""Edges of the bins of window after / window before a reduction: 0.5 is Reno, 0.7 CUBIC, 0.8 BIC, 0.875 Scalable, 1 undone."""
STEPS = (-0.99, -0.5, -0.1, -0.02, 0.02, 0.1, 0.5, 0.99)
"""Edges of the bins of ln(window / window of the round trip before)."""
PACKETS = (-1.5, -0.5, 0.5, 1.5, 2.5, 5.5)
"""Edges of the bins of the same step in packets."""
PROBE_PACKETS = 5
"""Packets in flight of BBR's PROBE_RTT (four), and one for what is under way."""
PROBE_S = 10.0
"""Seconds between two PROBE_RTTs."""


def shape(watched: Watched) -> dict[str, float]:
    """Name of a feature → its value; NaN where the flow does not show it."""
    return _conditions(watched) | _reductions(watched) | _growth(watched) | _pacing(watched) | _probes(watched)


def _log(value: float) -> float:
    return float(np.log(max(value, 1e-6)))


def _quantiles(name: str, values: Floats, points: tuple[int, ...]) -> dict[str, float]:
    finite = values[np.isfinite(values)]
    return {f"{name}_p{p}": float(np.percentile(finite, p)) if len(finite) else float("nan") for p in points}


def _shares(name: str, values: Floats, edges: tuple[float, ...]) -> dict[str, float]:
    """Share of the values in each bin; the first and the last bin are open."""
    finite = values[np.isfinite(values)]
    counts = np.bincount(np.searchsorted(edges, finite, side="right"), minlength=len(edges) + 1)
    return {f"{name}_in_{i}": float(c / len(finite)) if len(finite) else float("nan") for i, c in enumerate(counts)}


def _conditions(watched: Watched) -> dict[str, float]:
    rounds, acks = watched.rounds, watched.acks
    rtt = rounds.rtt_ms[np.isfinite(rounds.rtt_ms)]
    least = float(np.nanmin(rounds.least_rtt_ms)) if len(rtt) else float("nan")
    windows = rounds.window[np.isfinite(rounds.window)]
    seconds = max((watched.t[-1] - watched.t[0]) / 1e9, 1e-3)
    rate = float(watched.delivered.sum()) / watched.mss / seconds
    return {
        "log_rounds": _log(len(rounds.ack)),
        "open": float(rounds.is_open.mean()),
        "cuts": _log((len(watched.cuts) + 0.5) / len(rounds.ack)),
        "log_window": _log(float(np.median(windows))) if len(windows) else float("nan"),
        "log_rtt": _log(least),
        "inflation_p50": _log(float(np.median(rtt)) / least) if len(rtt) else float("nan"),
        "inflation_p95": _log(float(np.percentile(rtt, 95)) / least) if len(rtt) else float("nan"),
        "bdps": _log(float(np.median(windows)) / max(rate * least / 1e3, 1e-3)) if len(windows) and len(rtt) else float("nan"),
        "ecn": float(watched.ecn),
        "ece": float(np.mean(acks["ece"])) if "ece" in acks else 0.0,
        "disorder": float((watched.state == DISORDER).mean()),
        "recovery": float((watched.state > CWR).mean()),
        "reordered": float(watched.reordered[-1]),
        "super": float(np.mean(watched.segments["segs"])),
        "rwnd_held": float(watched.limited[0]),
        "app_held": float(watched.limited[1]),
    }


def reductions(watched: Watched) -> Floats:
    """Window after / window before each reduction that is no timeout; NaN where the window after it is not seen."""
    return np.array([cut.after / cut.before for cut in watched.cuts if cut.state != LOSS and cut.before > 0], float)


def _reductions(watched: Watched) -> dict[str, float]:
    ratios = reductions(watched)
    timeouts = float(np.mean([c.state == LOSS for c in watched.cuts])) if watched.cuts else 0.0
    return _quantiles("ratio", ratios, (10, 25, 50, 75, 90)) | _shares("ratio", ratios, RATIOS) | {"timeouts": timeouts}


def _growth(watched: Watched) -> dict[str, float]:
    rounds = watched.rounds
    both = rounds.is_open[1:] & rounds.is_open[:-1]
    before, after = rounds.window[:-1][both], rounds.window[1:][both]
    steps = np.log(np.maximum(after, 1) / np.maximum(before, 1))
    result = _shares("step", steps, STEPS) | _shares("packets", after - before, PACKETS) | _quantiles("step", steps, (5, 25, 50, 75, 95))
    result |= _quantiles("packets", after - before, (5, 25, 50, 75, 95))
    window = np.where(rounds.window > 0, rounds.window, np.nan)
    level = np.log(window / np.nanmedian(window)) if np.isfinite(window).any() else window
    early = rounds.window[:6]
    for i in (1, 2, 3):
        result[f"early_{i}"] = _log(early[i] / early[i - 1]) if len(early) > i and early[i - 1] > 0 and np.isfinite(early[i]) else float("nan")
    # How growth depends on the RTT and on the time: of stretches without a reduction, the correlation of the step with either.
    rtt = rounds.rtt_ms[1:][both]
    result["step_by_rtt"] = _correlation(after - before, rtt)
    result["step_by_window"] = _correlation(after - before, before)
    return result | _quantiles("level", level, (1, 5, 25, 75, 95, 99))


def _correlation(a: Floats, b: Floats) -> float:
    good = np.isfinite(a) & np.isfinite(b)
    if good.sum() < 10 or a[good].std() == 0 or b[good].std() == 0:
        return float("nan")
    return float(np.corrcoef(a[good], b[good])[0, 1])


def _pacing(watched: Watched) -> dict[str, float]:
    rounds = watched.rounds
    busy = rounds.sent >= 8
    return _quantiles("pause", rounds.longest_pause[busy], (10, 50, 90)) | _quantiles("bursts", rounds.in_bursts[busy], (10, 50, 90))


def _probes(watched: Watched) -> dict[str, float]:
    """What BBR does: four packets in flight for 200 ms each 10 s, and a sending rate that goes up and down with a period of eight round trips."""
    rounds = watched.rounds
    usual = np.nanmedian(rounds.window) if np.isfinite(rounds.window).any() else float("nan")
    low = (rounds.window <= PROBE_PACKETS) & (usual > 2 * PROBE_PACKETS)
    begins = rounds.start_s[np.flatnonzero(low & ~np.append(False, low[:-1]))]
    apart = np.diff(begins[np.append(True, np.diff(begins) > 1.0)]) if len(begins) else begins
    near = float(np.mean(np.abs(apart - PROBE_S) < 1.0)) if len(apart) else float("nan")
    seconds = max(float(rounds.start_s[-1] - rounds.start_s[0]), 1.0)
    result = {"probes": len(begins) / seconds, "probes_apart": near}
    rate, bins = _sending_rate(watched)
    for lag in (2, 4, 6, 7, 8, 9, 10, 12, 16):
        result[f"cycle_{lag}"] = _correlation(rate[lag:], rate[:-lag]) if bins > 4 * lag else float("nan")
    if bins > 32:
        middle = max(float(np.median(rate)), 1e-9)
        result |= {f"rate_p{p}": float(np.percentile(rate, p)) / middle for p in (5, 25, 75, 90, 97)}
    else:
        result |= {f"rate_p{p}": float("nan") for p in (5, 25, 75, 90, 97)}
    return result


def _sending_rate(watched: Watched) -> tuple[Floats, int]:
    """Bytes sent in each time of the least RTT, and how many times there are."""
    least = float(np.nanmin(watched.rounds.least_rtt_ms)) if np.isfinite(watched.rounds.least_rtt_ms).any() else 0.0
    width = max(round(least * 1e6), 5_000_000)
    t: Ints = watched.segments["t"]
    width = max(width, int(t[-1] - t[0]) // MOST_BINS)
    place = (t - t[0]) // width
    rate = np.bincount(place, weights=watched.segments["len"]).astype(float)
    return rate, len(rate)


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
MOST_HELD_ELSEWHERE = MOST_HELD / 2
"""The same for the application where the capture was not taken at the sender: a segment that was kept back seems to have left with its ACK there, so
that more of the round trips are the application's than show it."""
FEW_CUTS = 2
"""Reductions below which their number is named as the reason."""
ALIKE = tuple(map(frozenset, (("reno", "lp"), ("reno", "dctcp"), ("lp", "dctcp"), ("scalable", "yeah"))))
"""Controls that are the same on some paths."""
SHOWN = 5
"""Candidates that an answer keeps."""
LEAST_SHOWN = 0.02
"""Probability below which a candidate is not shown."""


SMALL_WINDOW = 4.0
"""Packets of a window of which half, 0.7 and 0.8 are two or three packets, so that a reduction hardly tells controls apart."""
FAMILY = ("reno", "lp", "dctcp")
"""Controls that do the same where nothing marks packets; LP's delays hang on two clocks."""
LEAST_IN_FAMILY = 0.95
"""Certainty from which on it is said that a flow's control is one of the family."""
COUNT_ACKS = ("highspeed",)
"""Controls of current kernels that grow by the number of ACKs, whatever each of them acknowledges."""
MOST_PER_ACK = 2.2
"""Segments an ACK beyond which growth by ACKs and growth by segments are laws of their own: receivers acknowledge every second one."""


def classify(flow: ObservedFlow, path: FittedPath | None = None) -> RecognisedControl:
    """The congestion control of the flow, by its packets: at the sender as they are, elsewhere as the sender saw them, which takes timestamps.

    :param path: as far as it is known: BBR fills it.
    """
    if flow.cca:
        return RecognisedControl(flow.cca, 1.0, {flow.cca: 1.0}, Reason("named by the source"))
    at_sender = as_sender(flow)
    if reason := _unseen(flow, at_sender):
        return _unknown(reason)
    watched = watch(at_sender or flow)
    if watched is None or len(watched.rounds.ack) < LEAST_ROUNDS:
        return _unknown(Reason("few round trips"))
    if reason := _held(watched, MOST_HELD if flow is at_sender else MOST_HELD_ELSEWHERE):
        return _unknown(reason)
    found = _answer(watched, trained(), bool(flow.facts.get("begins_in_mid_connection")))
    if found.name != UNKNOWN and (doubt := _doubt(flow, watched, found.name, path)):
        return _unknown(doubt, found.candidates, found.confidence)
    return found


def _doubt(flow: ObservedFlow, watched: Watched, name: str, path: FittedPath | None = None) -> Reason | None:
    """Why a name is not given that the features speak for: they lie outside of what it was trained on, or others do the same."""
    if name == "bbr":  # its pace and its probes need neither SACK nor a window that follows losses
        return Reason("below the bottleneck") if stays_below_bottleneck(flow, path) and not limits.probes(flow) else None
    is_unseen = bool(flow.facts.get("losses")) and not flow.facts.get("sacks", flow.facts.get("sack"))  # cut off by the capture
    if flow.facts.get("sack") is False or is_unseen:
        return Reason("without SACK")
    if name in COUNT_ACKS and (segments_per_ack(watched) > MOST_PER_ACK or counting_acks(watched, name)):
        return Reason("counts ACKs", {"name": name, "names": OLDER})
    if flow.answers_reordering:
        return Reason("answers reordering")
    return (_doubt_of_echoes(flow) if flow.vantage != "sender" else None) or _doubt_of_window(watched, name)


def _doubt_of_echoes(flow: ObservedFlow) -> Reason | None:
    """Why the timestamps do not tell, elsewhere than at the sender, which ACK it had when it sent a segment, and so what was in flight."""
    if (every := flow.facts.get("ack_stride") or 1) > 1:
        return Reason("thinned", {"every": every})
    if flow.sends_back > BOTH_WAYS:
        return Reason("both ways")  # RFC 7323 §4.3: what is echoed waits for the sender's own acknowledgement
    return None


def _doubt_of_window(watched: Watched, name: str) -> Reason | None:
    """Why the window of a control that does not pace gives no name: losses did not make it smaller, or it is of a few packets."""
    if len(watched.cuts) >= FEW_CUTS and not left_of_window(watched) < 1:
        return Reason("reductions unseen", {"name": name, "cuts": len(watched.cuts)})
    windows = watched.rounds.window[np.isfinite(watched.rounds.window)]
    if windows.size and (packets := float(np.median(windows))) <= SMALL_WINDOW:
        return Reason("small windows", {"packets": packets})
    return None


def left_of_window(watched: Watched) -> float:
    """What the reductions that were no timeouts leave of the window, in the median; NaN where none shows it."""
    ratios = reductions(watched)
    shown = ratios[np.isfinite(ratios)]
    return float(np.median(shown)) if shown.size else math.nan


def _unseen(flow: ObservedFlow, at_sender: ObservedFlow | None) -> Reason | None:
    """Why the source does not show the window; `at_sender` is the flow as its sender saw it, None where that does not show."""
    if not len(flow.segments.get("t", ())):
        return Reason("data missing" if flow.facts.get("data_missing") else "no packets")
    if at_sender is None:
        return Reason("not at the sender", {"vantage": flow.vantage})
    if flow.seconds < LEAST_S:
        return Reason("few seconds", {"seconds": flow.seconds})
    return None


def _unknown(reason: Reason, candidates: Mapping[str, float] | None = None, confidence: float = 0.0) -> RecognisedControl:
    return RecognisedControl(UNKNOWN, confidence, candidates or {}, reason)


def _held(watched: Watched, most: float) -> Reason | None:
    """Why the window does not show; the application may hold `most` of the round trips."""
    window, application = watched.limited
    if application > most:
        return Reason("application held", {"share": application, "of": "round trips"})
    if window > MOST_HELD:
        return Reason("window held", {"share": window, "of": "round trips"})
    return None


def _answer(watched: Watched, forest: Forest, in_mid_connection: bool) -> RecognisedControl:
    values = features(watched)
    probabilities = forest.probabilities(values)
    name, most = next(iter(probabilities.items()))
    confidence = forest.certainty(most)
    candidates = {n: round(p, 4) for n, p in list(probabilities.items())[:SHOWN] if p >= LEAST_SHOWN}
    if confidence < forest.least[name]:
        if family := _family(watched, forest, probabilities):
            return _unknown(*family)
        return _unknown(_undecided(watched, candidates), candidates, confidence)
    if name == "bbr" and not values["probes"]:
        return _unknown(Reason("no probes of the RTT"), candidates, confidence)
    if rivals := nearer(values, name):
        return _unknown(Reason("would move alike", {"names": [name, *rivals]}), candidates, confidence)
    if in_mid_connection and confidence < LEAST_IN_MID_CONNECTION:
        return _unknown(Reason("begins in mid-connection", {"name": name}), candidates, confidence)
    return RecognisedControl(name, confidence, candidates, _evidence(watched, values, name))


def _family(watched: Watched, forest: Forest, probabilities: Mapping[str, float]) -> tuple[Reason, dict[str, float], float] | None:
    """Controls that do the same here, if it is surely one of them: the reason, the candidates, how sure."""
    if bool(watched.acks["ece"].any() if "ece" in watched.acks else False):
        return None
    certainty = forest.certainty(min(1.0, sum(probabilities.get(name, 0.0) for name in FAMILY)))
    if next(iter(probabilities)) not in FAMILY or certainty < LEAST_IN_FAMILY:
        return None
    return Reason("family", {"names": FAMILY}), {name: round(probabilities[name], 4) for name in FAMILY if name in probabilities}, certainty


def nearer(values: Mapping[str, float], name: str) -> list[str]:
    """The controls that, told the same ACKs, have the window that was seen more often than this one, and after reductions as often.

    A window of few packets is nearly the same whoever makes it: what else speaks for the name is then how its fractions are rounded.
    """
    close, backoff = (values.get(f"{name}.{measure}", math.nan) for measure in ("close_short", "backoff_close"))
    return [n for n in CANDIDATES if values[f"{n}.close_short"] > close and values[f"{n}.backoff_close"] >= backoff]


def _undecided(watched: Watched, candidates: Mapping[str, float]) -> Reason:
    names = list(candidates)[:2]
    if frozenset(names) in ALIKE:
        return Reason("alike", {"names": names})
    if (cuts := len(watched.cuts)) < FEW_CUTS:
        return Reason("few reductions", {"names": names, "cuts": cuts, "rounds": len(watched.rounds.ack)})
    return Reason("would move alike", {"names": names})


def _evidence(watched: Watched, values: Mapping[str, float], name: str) -> Reason:
    close, ratio = (values.get(key, float("nan")) for key in (f"{name}.close_short", "ratio_p50"))
    return Reason("recognised", {"name": name, "rounds": len(watched.rounds.ack), "cuts": len(watched.cuts), "close": close, "ratio": ratio})


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
def trained() -> Forest:
    """The forest that comes with tcpscape."""
    with np.load(FILE, allow_pickle=False) as arrays:
        about = json.loads(str(arrays["about"]))
        if about["format"] != FORMAT:
            raise ValueError(f"{FILE.name} has format {about['format']}, not {FORMAT}; train it again with benches/control.py")
        direct, paired = (Trees(*(arrays[f"{kind}_{name}"] for name in ARRAYS)) for kind in ("direct", "paired"))
    return Forest(
        controls=tuple(about["controls"]),
        features=tuple(about["features"]),
        direct=direct,
        paired=paired,
        prior=np.array(about["prior"]),
        sharpness=about["sharpness"],
        confidence=np.array(about["confidence"]),
        least=about["least"],
        provenance=about["provenance"],
    )
