"""Fairness: how flows share a bottleneck, during their overlap and over whole transfers, how soon shares settle, and which flows starve.

- *Whole transfers*: each group's sum of its flows' own rates over the sum of all, each flow's rate being its bytes over its own time. So
  iperf3's last lines were compared in published tables. Where one flow starts later, the other's rate holds the time it was alone: a
  60-s transfer that loses everything to a 30-s one at half time still shows half of the link.
- *Overlap*: bytes while every group has a flow running, from the last group's start to the first one's end.
- *Jain's index*: (Σx)²/(n·Σx²) over single flows (Jain, Chiu, Hawe: DEC-TR-301, 1984).
- *Convergence*: the first moment of the overlap from which every group's share of each second stays within a band around its target (its
  fair share, or its share in the last quarter of the overlap) until the end; None where fewer than five such seconds are left.
- *Starvation*: as of :mod:`tcpscape.metrics.sharing`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcpscape import stats
from tcpscape.metrics import samples
from tcpscape.metrics.flows import jain_index
from tcpscape.metrics.sharing import Starved, starvation
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats
from tcpscape.trial import Trial

SECOND = 1.0
"""Length of the intervals in which shares are followed, s."""
BAND = 0.1
"""Half width of the band around a target, as a share of the whole: 0.5 ± 0.1."""
HOLD = 5
"""Fewest intervals that have to be inside it."""
FINAL = 0.25
"""Part of the overlap at its end whose share is the final one."""
TOGETHER_S = 1.0
"""Starts and stops closer than this are one event, s."""


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """Flows whose goodput is counted together."""

    name: str
    flows: tuple[int, ...]
    """Numbers of the flows in the trial."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A period in which the same flows run."""

    start_s: float
    stop_s: float
    running: tuple[int, ...]
    """Numbers of the flows."""
    mbps: tuple[float, ...]
    """Goodput of each group."""
    jain: float
    """Over the running flows."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """The sharing in one trial. Shares are fractions, NaN where nothing was sampled or the groups never ran together."""

    groups: tuple[FlowGroup, ...]
    whole: tuple[float, ...]
    """Each group's share of the whole transfers' rates."""
    overlap: tuple[float, ...]
    """Each group's share of the bytes while all groups ran."""
    overlap_s: tuple[float, float] | None
    """When all groups ran."""
    jain_whole: float
    jain_overlap: float
    fair_after_s: float | None
    """Time from the overlap's start until shares stay fair, s; None where they do not."""
    settled_after_s: float | None
    """The same around the final shares."""
    starved: tuple[Starved, ...]
    stages: tuple[Stage, ...]

    @property
    def fair(self) -> tuple[float, ...]:
        """Each group's share if all flows had equal shares."""
        return fair(self.groups)


def fair(groups: Sequence[FlowGroup]) -> tuple[float, ...]:
    """Each group's part of the number of flows."""
    n = sum(len(g.flows) for g in groups)
    return tuple(len(g.flows) / n for g in groups)


def by_cca(trial: Trial) -> tuple[FlowGroup, ...]:
    """A group for each congestion control, in the order of the flows; where there is one only, a group for each flow."""
    names = list(dict.fromkeys(f.cca for f in trial.flows))
    if len(names) == 1:
        return tuple(FlowGroup(f"{f.cca} {i + 1}", (i,)) for i, f in enumerate(trial.flows))
    return tuple(FlowGroup(name, tuple(i for i, f in enumerate(trial.flows) if f.cca == name)) for name in names)


@dataclass(frozen=True, slots=True)
class SharesOverTime:
    """Goodput and shares of groups in successive intervals."""

    edges_s: Floats
    """n + 1 edges of the intervals, s."""
    mbps: Floats
    """Goodput of each group in each interval, groups × n."""

    @property
    def shares(self) -> Floats:
        """Each group's share in each interval, groups × n; NaN where no group had any goodput."""
        whole = self.mbps.sum(axis=0)
        return np.asarray(self.mbps / np.where(whole > 0, whole, np.nan), dtype=np.float64)


def _by_group(trial: Trial, groups: Sequence[FlowGroup], edges: Floats) -> Floats:
    """Goodput of each group between successive edges, Mbit/s: groups × intervals."""
    if len(edges) < 2:
        return np.empty((len(groups), 0))
    each = samples.rates(trial, edges)
    return np.array([each[list(g.flows)].sum(axis=0) for g in groups])


def measure(trial: Trial, groups: Sequence[FlowGroup] | None = None) -> Sharing:
    """How the flows of a trial shared; without `groups`, each congestion control is one."""
    groups = tuple(groups or by_cca(trial))
    overlap_s = _overlap(trial, groups)
    flows = [i for g in groups for i in g.flows]
    rates = [trial.flows[i].goodput_mbps for i in range(len(trial.flows))]
    known = trial.samples is not None and overlap_s is not None
    overlap_rates = samples.rates(trial, np.array(overlap_s))[:, 0] if known else np.full(len(trial.flows), math.nan)
    seconds = _seconds(trial, groups, overlap_s)
    return Sharing(
        groups=groups,
        whole=_parts([sum(rates[i] for i in g.flows) for g in groups]),
        overlap=_parts([float(overlap_rates[list(g.flows)].sum()) for g in groups]),
        overlap_s=overlap_s,
        jain_whole=jain_index([rates[i] for i in flows]),
        jain_overlap=jain_index([float(overlap_rates[i]) for i in flows]) if known else math.nan,
        fair_after_s=settled(seconds, fair(groups)),
        settled_after_s=settled(seconds, _final(seconds)),
        starved=tuple(starvation(trial)),
        stages=tuple(stages(trial, groups)),
    )


def _parts(rates: Sequence[float]) -> tuple[float, ...]:
    """Each rate as a share of their sum; NaN where the sum is 0 or unknown."""
    total = sum(rates)
    return tuple(r / total for r in rates) if total > 0 else (math.nan,) * len(rates)


def _overlap(trial: Trial, groups: Sequence[FlowGroup]) -> tuple[float, float] | None:
    """From the last group's first start to the first group's last stop, s."""
    start = max(min(trial.flows[i].start_s for i in g.flows) for g in groups)
    stop = min(max(trial.flows[i].stop_s for i in g.flows) for g in groups)
    return (start, stop) if stop > start else None


def _seconds(trial: Trial, groups: Sequence[FlowGroup], overlap_s: tuple[float, float] | None) -> SharesOverTime:
    """Shares in the whole seconds of the overlap."""
    if overlap_s is None or not len(samples.grid(trial)):
        return SharesOverTime(np.empty(0), np.empty((len(groups), 0)))
    edges = np.arange(overlap_s[0], min(overlap_s[1], _sampled_until(trial)) + 1e-6, SECOND)
    return SharesOverTime(edges, _by_group(trial, groups, edges))


def _sampled_until(trial: Trial) -> float:
    """The last sample's time, s."""
    return max((float(t[-1]) for t, _ in (samples.delivered(trial, i) for i in range(len(trial.flows))) if len(t)), default=0.0)


def _final(seconds: SharesOverTime) -> tuple[float, ...]:
    """Each group's share of the goodput in the overlap's last quarter."""
    n = seconds.mbps.shape[1]
    last = seconds.mbps[:, n - max(1, round(n * FINAL)) :].sum(axis=1) if n else np.zeros(len(seconds.mbps))
    return _parts([float(x) for x in last])


def settled(seconds: SharesOverTime, targets: Sequence[float], band: float = BAND) -> float | None:
    """How long after the first edge every share comes within `band` of its target for good, s; None where it never does for five intervals."""
    shares = seconds.shares
    if not shares.shape[1] or any(math.isnan(t) for t in targets):
        return None
    inside = (np.abs(shares - np.array(targets)[:, None]) <= band + 1e-9).all(axis=0)
    outside = np.flatnonzero(~inside)
    first = int(outside[-1]) + 1 if len(outside) else 0
    return float(seconds.edges_s[first] - seconds.edges_s[0]) if len(inside) - first >= HOLD else None


def stages(trial: Trial, groups: Sequence[FlowGroup]) -> list[Stage]:
    """The periods between starts and stops of flows, with the goodput of each group; none where nothing was sampled."""
    if trial.samples is None:
        return []
    events = sorted({t for f in trial.flows for t in (f.start_s, f.stop_s)})
    marks = [t for i, t in enumerate(events) if i == 0 or t - events[i - 1] > TOGETHER_S]
    periods = []
    for start, stop in zip(marks, [*marks[1:], events[-1]], strict=True):
        running = tuple(i for i, f in enumerate(trial.flows) if f.start_s < start + TOGETHER_S and f.stop_s > stop - TOGETHER_S)
        if stop - start > TOGETHER_S and running:
            each = samples.rates(trial, np.array([start, stop]))[:, 0]
            mbps = tuple(float(each[list(g.flows)].sum()) for g in groups)
            periods.append(Stage(start, stop, running, mbps, jain_index([float(each[i]) for i in running])))
    return periods


@dataclass(frozen=True, slots=True)
class Fairness:
    """The sharing in many trials of one condition."""

    names: tuple[str, ...]
    fair: tuple[float, ...]
    whole: tuple[Estimate, ...]
    """Mean share of each group over whole transfers, as published tables have it."""
    overlap: tuple[Estimate, ...]
    """Mean share of each group while all ran."""
    jain_whole: Estimate
    jain_overlap: Estimate
    fair_after_s: Estimate
    """Median of the trials that became fair."""
    became_fair: float
    """Share of the trials that did."""
    starved: float
    """Share of the trials in which a flow starved."""


def judge(trials: Sequence[Sharing]) -> Fairness:
    """The trials of one condition together; all have the same groups."""
    first = trials[0]
    after = [t.fair_after_s for t in trials if t.fair_after_s is not None]
    numbers = range(len(first.groups))
    return Fairness(
        names=tuple(g.name for g in first.groups),
        fair=first.fair,
        whole=tuple(_mean([t.whole[i] for t in trials]) for i in numbers),
        overlap=tuple(_mean([t.overlap[i] for t in trials]) for i in numbers),
        jain_whole=_mean([t.jain_whole for t in trials]),
        jain_overlap=_mean([t.jain_overlap for t in trials]),
        fair_after_s=stats.median(after, "s"),
        became_fair=len(after) / len(trials),
        starved=sum(bool(t.starved) for t in trials) / len(trials),
    )


def _mean(values: Sequence[float]) -> Estimate:
    """The mean of the values that are known."""
    return stats.mean(stats.known(values), "1")
