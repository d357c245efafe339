"""What tells good runs of one condition from bad ones: which of a run's features goes with its goodput, and how much of it.

Ranks, not values: Spearman's ρ of each feature with goodput, and ρ² as the share of the variance of goodput's ranks that the feature
goes with, each with a bootstrap interval. What is only another name for goodput (segments sent, bytes, or anything divided by them: a
ratio of two things goes with what is below its line, Pearson 1897) is not among the features; mind that retransmissions grow with
goodput by themselves. None of this is a cause: shares overlap and do not add up. To see a cause, take it away
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
"""Runs below which no rank correlation is given."""
RESAMPLES = 1000
NEAR_ZERO = (0.1, 0.02)
"""Shares of the path's RTT below which its minimum counts as collapsed."""
MOMENTS = (1.0, 2.0, 3.0)
"""s after a flow's start at which its window is looked at."""
UNSET = 1 << 30
"""Linux's slow-start threshold before the first reduction is infinite (2^31 − 1 segments); anything below this is set."""
COUNTS = ("rtos", "fast_recoveries", "undos", "spurious_retransmits", "retransmits")

Features = Mapping[str, float]
"""Name with its unit → value of one run."""


@dataclass(frozen=True, slots=True)
class Share:
    """One feature beside goodput."""

    feature: str
    rho: Estimate
    """Spearman's rank correlation."""
    share: Estimate
    """ρ²; chance alone gives 1 / (n − 1)."""


def counters(flow: FlowResult) -> dict[str, float]:
    """What a flow's counters say about its recoveries; what the engine does not see is left out."""
    found: dict[str, float] = {}
    for name in COUNTS:
        value = getattr(flow, name)
        if value is not None:
            found[name.replace("_", " ")] = float(value)
    if flow.fast_recoveries is not None and flow.undos is not None:
        found["recoveries that were not undone"] = float(flow.fast_recoveries - flow.undos)
    if flow.min_rtt_ms is not None:
        found["least RTT, ms"] = flow.min_rtt_ms
    return found


def moments(samples: pl.DataFrame, flow: FlowResult, rtt_ms: float) -> dict[str, float]:
    """When things happened to a flow, in s after its start (its whole time where they did not), and its window early on, segments.

    `samples` are those of this flow, `rtt_ms` the path's RTT without jitter.
    """
    at = samples["t_ns"].to_numpy() / 1e9 - flow.start_s
    least = samples["min_rtt_us"].to_numpy() / 1e3
    found = {f"least RTT below {share:.0%} of the RTT at, s": _first(at, (least > 0) & (least < share * rtt_ms), flow.seconds) for share in NEAR_ZERO}
    found["slow start left at, s"] = _first(at, samples["ssthresh"].to_numpy() < UNSET, flow.seconds)
    window = samples["cwnd"].to_numpy()
    for moment in MOMENTS:
        if at[-1] >= moment:
            found[f"window after {moment:g} s, segments"] = float(window[np.searchsorted(at, moment)])
    return found


def _first(at: NDArray[np.float64], holds: NDArray[np.bool_], otherwise: float) -> float:
    found = np.flatnonzero(holds)
    return float(at[found[0]]) if found.size else otherwise


def features(trial: Trial, rtt_ms: float) -> dict[str, float]:
    """Every feature of a trial with one flow; the moments too where it has samples."""
    if len(trial.flows) != 1:
        refuse("flows", f"{len(trial.flows)} flows in a trial", "explain trials of one flow")
    flow = trial.flows[0]
    timed = moments(trial.samples, flow, rtt_ms) if trial.samples is not None and len(trial.samples) else {}
    return {**counters(flow), **timed}


def explain(goodputs: Sequence[float], runs: Sequence[Features]) -> tuple[Share, ...]:
    """Each feature that all runs have and that varies, the largest share first."""
    if len(goodputs) != len(runs):
        raise ValueError("each run has a goodput and its features")
    if len(runs) < LEAST:
        refuse("runs", f"{len(runs)} runs say nothing about what goes with goodput", f"make at least {LEAST}")
    y = np.asarray(goodputs, dtype=float)
    picked = np.random.default_rng(len(y)).integers(0, len(y), (RESAMPLES, len(y)))
    found = []
    for name in runs[0]:
        x = np.array([run.get(name, math.nan) for run in runs])
        if np.isfinite(x).all() and np.ptp(x) > 0:
            found.append(_share(name, x, y, picked))
    return tuple(sorted(found, key=lambda s: -s.share.value))


def _share(name: str, x: NDArray[np.float64], y: NDArray[np.float64], picked: NDArray[np.int64]) -> Share:
    rho = float(spearman(x[None], y[None])[0])
    drawn = spearman(x[picked], y[picked])
    low, high = (float(q) for q in np.nanquantile(drawn, [TAIL, 1 - TAIL]))
    least = 0.0 if low <= 0 <= high else min(low * low, high * high)
    return Share(name, Estimate(rho, low, high, len(y), "1"), Estimate(rho * rho, least, max(low * low, high * high), len(y), "1"))
