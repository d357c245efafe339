"""The features by which good runs of one condition differ from bad ones: how strongly each goes with goodput.

Ranks, not values: Spearman's ρ of each feature with goodput, and ρ² as the share of the variance of goodput's ranks that the feature
goes with, each with a bootstrap interval. Other measures of goodput (segments sent, bytes, or anything divided by them: a ratio is
correlated with its denominator, Pearson 1897) are not among the features; note that retransmissions grow with goodput by themselves.
A correlation is no cause: shares overlap and do not add up. To test a cause, take it away
(:mod:`tcpscape.findings.damage`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape.errors import refuse
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import TAIL
from tcpscape.stats.order import spearman
from tcpscape.trial import FlowResult, Trial

if TYPE_CHECKING:
    import polars as pl

LEAST = 10
"""Fewest runs for a rank correlation."""
RESAMPLES = 1000
NEAR_ZERO = (0.1, 0.02)
"""Shares of the path's RTT below which its minimum counts as collapsed."""
MOMENTS = (1.0, 2.0, 3.0)
"""Times after a flow's start at which its window is read, s."""
UNSET = 1 << 30
"""Linux's slow-start threshold before the first reduction is infinite (2^31 − 1 segments); anything below this is set."""
COUNTS = ("rtos", "fast_recoveries", "undos", "spurious_retransmits", "retransmits")

Features = Mapping[str, float]
"""Name with its unit → value of one run."""


@dataclass(frozen=True, slots=True)
class FeatureShare:
    """How strongly one feature goes with goodput."""

    feature: str
    rho: Estimate
    """Spearman's rank correlation."""
    share: Estimate
    """ρ²; chance alone gives 1 / (n − 1)."""


def counters(flow: FlowResult) -> dict[str, float]:
    """Features from a flow's counters of its recoveries; counters that the engine does not report are left out."""
    features: dict[str, float] = {}
    for name in COUNTS:
        value = getattr(flow, name)
        if value is not None:
            features[name.replace("_", " ")] = float(value)
    if flow.fast_recoveries is not None and flow.undos is not None:
        features["recoveries that were not undone"] = float(flow.fast_recoveries - flow.undos)
    if flow.min_rtt_ms is not None:
        features["least RTT, ms"] = flow.min_rtt_ms
    return features


def moments(samples: pl.DataFrame, flow: FlowResult, rtt_ms: float) -> dict[str, float]:
    """Features of timing: when events happened to a flow, s after its start (its whole time where they did not), and its early window, segments.

    `samples` are those of this flow, `rtt_ms` the path's RTT without jitter.
    """
    at = samples["t_ns"].to_numpy() / 1e9 - flow.start_s
    least = samples["min_rtt_us"].to_numpy() / 1e3
    features = {
        f"least RTT below {share:.0%} of the RTT at, s": _first(at, (least > 0) & (least < share * rtt_ms), flow.seconds) for share in NEAR_ZERO
    }
    features["slow start left at, s"] = _first(at, samples["ssthresh"].to_numpy() < UNSET, flow.seconds)
    window = samples["cwnd"].to_numpy()
    for moment in MOMENTS:
        if at[-1] >= moment:
            features[f"window after {moment:g} s, segments"] = float(window[np.searchsorted(at, moment)])
    return features


def _first(at: NDArray[np.float64], holds: NDArray[np.bool_], otherwise: float) -> float:
    """The first time at which the condition holds; `otherwise` where it never does."""
    places = np.flatnonzero(holds)
    return float(at[places[0]]) if places.size else otherwise


def features(trial: Trial, rtt_ms: float) -> dict[str, float]:
    """Every feature of a trial with one flow; the moments too where it has samples."""
    if len(trial.flows) != 1:
        refuse("flows", f"{len(trial.flows)} flows in a trial", "explain trials of one flow")
    flow = trial.flows[0]
    timed = moments(trial.samples, flow, rtt_ms) if trial.samples is not None and len(trial.samples) else {}
    return {**counters(flow), **timed}


def explain(goodputs: Sequence[float], runs: Sequence[Features]) -> tuple[FeatureShare, ...]:
    """The share of each feature that all runs have and that varies, the largest first."""
    if len(goodputs) != len(runs):
        raise ValueError("each run has a goodput and its features")
    if len(runs) < LEAST:
        refuse("runs", f"{len(runs)} runs say nothing about what goes with goodput", f"make at least {LEAST}")
    y = np.asarray(goodputs, dtype=float)
    picked = np.random.default_rng(len(y)).integers(0, len(y), (RESAMPLES, len(y)))
    shares = []
    for name in runs[0]:
        x = np.array([run.get(name, math.nan) for run in runs])
        if np.isfinite(x).all() and np.ptp(x) > 0:
            shares.append(_share(name, x, y, picked))
    return tuple(sorted(shares, key=lambda s: -s.share.value))


def _share(name: str, x: NDArray[np.float64], y: NDArray[np.float64], picked: NDArray[np.int64]) -> FeatureShare:
    rho = float(spearman(x[None], y[None])[0])
    drawn = spearman(x[picked], y[picked])
    low, high = (float(q) for q in np.nanquantile(drawn, [TAIL, 1 - TAIL]))
    least = 0.0 if low <= 0 <= high else min(low * low, high * high)
    return FeatureShare(name, Estimate(rho, low, high, len(y), "1"), Estimate(rho * rho, least, max(low * low, high * high), len(y), "1"))
