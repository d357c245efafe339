"""The memory of a path: whether a run is an average over many states of its window, or one draw of a state that outlives the run.

Computed from the rates of many runs, second by second. Where the correlation of a rate with the rate k seconds later is gone after a second or
two, a run of ten seconds averages several states and a run of a minute many: the coefficient of variation falls like 1/√length. Where it
lasts longer than the run, the run is one draw, its spread is that of the state itself, and measuring for longer does not help; measuring
more often does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape import stats
from tcpscape.errors import refuse
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import TAIL
from tcpscape.trial import FlowResult

if TYPE_CHECKING:
    import polars as pl

RESAMPLES = 500
LEAST = 10
"""Fewest runs for a correlation."""
FLOOR_MBPS = 0.01
"""Added to a rate, Mbit/s, before its logarithm, because in some seconds nothing arrives."""
GONE = math.exp(-1)
"""Correlation at which a state counts as forgotten."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of the runs of one condition."""

    correlation: tuple[tuple[float, Estimate], ...]
    """(lag in s, correlation over all runs of the logarithm of the rate with that one lag later)."""
    cv: tuple[tuple[float, Estimate], ...]
    """(length in s, coefficient of variation between runs of the mean rate over the first `length` seconds)."""

    @property
    def forgets_after(self) -> float | None:
        """The first lag, s, at which the correlation is below 1/e; None where it never is."""
        return next((lag for lag, rho in self.correlation if rho.value < GONE), None)


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
    picked = np.random.default_rng(len(runs)).integers(0, len(runs), (RESAMPLES, len(runs)))
    correlations = tuple((float(k), _correlation(logs[:, :-k], logs[:, k:], picked)) for k in lags)
    return Memory(correlations, tuple((float(n), stats.cv(table[:, :n].mean(axis=1))) for n in lengths))


def _correlation(now: NDArray[np.float64], later: NDArray[np.float64], picked: NDArray[np.int64]) -> Estimate:
    """Pooled correlation, whole runs resampled: the seconds of one run are not independent."""
    sums = np.stack([(now * later).sum(axis=1), (now * now).sum(axis=1), (later * later).sum(axis=1)])
    drawn = sums[:, picked].sum(axis=2)
    low, high = np.quantile(drawn[0] / np.sqrt(drawn[1] * drawn[2]), [TAIL, 1 - TAIL])
    total = sums.sum(axis=1)
    return Estimate(float(total[0] / math.sqrt(total[1] * total[2])), float(low), float(high), len(now), "1")
