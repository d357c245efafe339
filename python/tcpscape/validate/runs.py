"""The numbers of a trial that a validation compares, from an engine's trial or a row of recorded results. Unknown numbers are NaN or left out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tcpscape import metrics
from tcpscape.trial import FlowResult, Trial

COUNTERS = (
    "retransmits", "spurious_retransmits", "rtos", "fast_recoveries", "undos", "dsacks", "reord_seen", "data_segs_out", "segs_in", "delivered_ce",
    "ecn_reductions",
)
"""Counters of a flow that are summed over the flows."""


@dataclass(frozen=True)
class TrialNumbers:
    """The numbers of one trial that are compared."""

    goodput: float
    """All flows together, Mbit/s."""
    retransmits: float
    mean_rtt_ms: float = math.nan
    """Mean of the smoothed RTT, sampled at even times, over the flows."""
    min_rtt_ms: float = math.nan
    """The smallest that a flow saw."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """Sums over the flows, and `limited_by_…` as shares of one."""
    parts: tuple[float, ...] = ()
    """Goodput of each group of flows, Mbit/s, in the scenario's order; empty where it is unknown."""
    seed: int = 0
    caveats: tuple[str, ...] = ()

    @classmethod
    def of(cls, trial: Trial, counts: Sequence[int] = ()) -> TrialNumbers:
        """From an engine's trial; `counts`: the flows of each group."""
        least = [f.min_rtt_ms for f in trial.flows if f.min_rtt_ms]
        return cls(
            trial.goodput_mbps, metrics.retransmits(trial), metrics.mean_rtt(trial), min(least, default=math.nan), _counters(trial.flows),
            _parts([f.goodput_mbps for f in trial.flows], counts), trial.seed, trial.caveats,
        )  # fmt: skip


def _parts(goodputs: Sequence[float], counts: Sequence[int]) -> tuple[float, ...]:
    """Sums over groups of so many flows."""
    ends = list(itertools.accumulate(counts))
    return tuple(sum(goodputs[end - n : end]) for n, end in zip(counts, ends, strict=True))


def _counters(flows: Sequence[FlowResult]) -> dict[str, float]:
    counters: dict[str, float] = {}
    for name in COUNTERS:
        values = [getattr(f, name) for f in flows]
        if all(v is not None for v in values):
            counters[name] = float(sum(values))
    windows = [f.max_rwnd for f in flows if f.max_rwnd is not None]
    counters |= {"max_rwnd": float(max(windows))} if windows else {}
    for cause in sorted({c for f in flows for c in f.limited_by}):
        counters[f"limited_by_{cause}"] = sum(f.limited_by.get(cause, 0.0) for f in flows) / len(flows)
    return counters


@dataclass(frozen=True)
class Runs:
    """All trials of one condition on one side."""

    trials: tuple[TrialNumbers, ...]

    def __len__(self) -> int:
        return len(self.trials)

    @cached_property
    def goodput(self) -> tuple[float, ...]:
        """Mbit/s, one a trial."""
        return tuple(t.goodput for t in self.trials)

    def part(self, group: int) -> list[float]:
        """Goodput of one group of flows in each trial, Mbit/s; empty where it is unknown."""
        return [t.parts[group] for t in self.trials if group < len(t.parts)]

    def known(self, name: str) -> list[float]:
        """A field's values (`retransmits`, `mean_rtt_ms`, `min_rtt_ms`), those that are known."""
        return [v for t in self.trials if not math.isnan(v := getattr(t, name))]

    def counter(self, name: str) -> list[float]:
        """A counter's values, those that are known."""
        return [t.counters[name] for t in self.trials if name in t.counters]

    @property
    def counters(self) -> list[str]:
        """The counters that any trial has, in order."""
        return list(dict.fromkeys(name for t in self.trials for name in t.counters))
