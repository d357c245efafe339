"""Why the runs of one condition vary: the features by which good runs differ from bad ones, and the memory of a path.

Features: how strongly each goes with goodput. Ranks, not values: Spearman's ρ of each feature with goodput, and ρ² as the share of the variance of
goodput's ranks that the feature goes with, each with a bootstrap interval. Other measures of goodput (segments sent, bytes, or anything divided by
them: a ratio is correlated with its denominator, Pearson 1897) are not among the features; note that retransmissions grow with goodput by
themselves. A correlation is no cause: shares overlap and do not add up. To test a cause, take it away (:mod:`tcpscape.findings.damage`).

Memory: whether a run is an average over many states of its window, or one draw of a state that outlives the run. Computed from the rates of many
runs, second by second. Where the correlation of a rate with the rate k seconds later is gone after a second or two, a run of ten seconds averages
several states and a run of a minute many: the coefficient of variation falls like 1/√length. Where it lasts longer than the run, the run is one
draw, its spread is that of the state itself, and measuring for longer does not help; measuring more often does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape import stats
from tcpscape.errors import refuse
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import TAIL
from tcpscape.stats.order import spearman
from tcpscape.trial import FlowResult, Trial

if TYPE_CHECKING:
    import polars as pl

LEAST = 10
"""Fewest runs for a correlation, of ranks or of rates."""
RESAMPLES, MEMORY_RESAMPLES = 1000, 500
"""Resamples of the runs for a feature, and for a correlation over time."""
NEAR_ZERO = (0.1, 0.02)
"""Shares of the path's RTT below which its minimum counts as collapsed."""
MOMENTS = (1.0, 2.0, 3.0)
"""Times after a flow's start at which its window is read, s."""
UNSET = 1 << 30
"""Linux's slow-start threshold before the first reduction is infinite (2^31 − 1 segments); anything below this is set."""
COUNTS = ("rtos", "fast_recoveries", "undos", "spurious_retransmits", "retransmits")
FLOOR_MBPS = 0.01
"""Added to a rate, Mbit/s, before its logarithm, because in some seconds nothing arrives."""

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


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of the runs of one condition."""

    correlation: tuple[tuple[float, Estimate], ...]
    """(lag in s, correlation over all runs of the logarithm of the rate with that one lag later)."""
    cv: tuple[tuple[float, Estimate], ...]
    """(length in s, coefficient of variation between runs of the mean rate over the first `length` seconds)."""


def rates(samples: pl.DataFrame, flow: FlowResult) -> NDArray[np.float64]:
    """Rate of acknowledged bytes in each full second of a flow, Mbit/s, from its own samples."""
    at = samples["t_ns"].to_numpy() / 1e9 - flow.start_s
    edges = np.arange(0.0, math.floor(at[-1]) + 1)
    return np.asarray(np.diff(np.interp(edges, at, samples["bytes_acked"].to_numpy().astype(float))) * 8 / 1e6)


def memory(runs: Sequence[NDArray[np.float64]], lags: Sequence[int], lengths: Sequence[int]) -> Memory:
    """The memory of runs given as rates second by second; `lags` and `lengths` in s. The runs are cut to the shortest."""
    if len(runs) < LEAST:
        refuse("runs", f"{len(runs)} runs say nothing about a memory", f"make at least {LEAST}")
    seconds = min(len(r) for r in runs)
    if max(lags) >= seconds or max(lengths) > seconds:
        refuse("lags", f"runs of {seconds} s", "ask for shorter lags and lengths, or run for longer")
    table = np.stack([r[:seconds] for r in runs])
    logs = np.log(table + FLOOR_MBPS)
    logs -= logs.mean(axis=0)
    picked = np.random.default_rng(len(runs)).integers(0, len(runs), (MEMORY_RESAMPLES, len(runs)))
    correlations = tuple((float(k), _correlation(logs[:, :-k], logs[:, k:], picked)) for k in lags)
    return Memory(correlations, tuple((float(n), stats.cv(table[:, :n].mean(axis=1))) for n in lengths))


def _correlation(now: NDArray[np.float64], later: NDArray[np.float64], picked: NDArray[np.int64]) -> Estimate:
    """Pooled correlation, whole runs resampled: the seconds of one run are not independent."""
    sums = np.stack([(now * later).sum(axis=1), (now * now).sum(axis=1), (later * later).sum(axis=1)])
    drawn = sums[:, picked].sum(axis=2)
    low, high = np.quantile(drawn[0] / np.sqrt(drawn[1] * drawn[2]), [TAIL, 1 - TAIL])
    total = sums.sum(axis=1)
    return Estimate(float(total[0] / math.sqrt(total[1] * total[2])), float(low), float(high), len(now), "1")
