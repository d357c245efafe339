"""Measures of the flows of a run: their senders, a player behind them, how groups share a link, and whether the beginning decides the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tcpscape import stats, units
from tcpscape.campaign.outcome import Cell
from tcpscape.errors import refuse
from tcpscape.findings import fairness
from tcpscape.findings.fairness import FlowGroup
from tcpscape.metrics import samples, sharing
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats
from tcpscape.stats.order import spearman
from tcpscape.studies.measures import cells
from tcpscape.studies.result import Result
from tcpscape.studies.study import Claim
from tcpscape.trial import Trial

BEGINNING_S = 2.0
"""The beginning of a run, s: a few dozen round trips, past slow start."""


def needless(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Share of the retransmissions for which the path had lost nothing of the data; unknown where the engine does not tell losses apart."""
    retransmits = [float(sum(f.retransmits for f in t.flows)) for t in cell.trials]
    return cells.resampled((retransmits, [_lost(t) for t in cell.trials]), _needless_share)


def window(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Largest receive window advertised, kB."""
    return stats.mean([_max_window(t) / 1000 for t in cell.trials], "kB")


def pipe(_: Result, __: Claim, cell: Cell) -> Estimate:
    """The rate that the largest window allows at the mean RTT, Mbit/s."""
    return stats.mean([_allowed_rate(t) for t in cell.trials], "Mbit/s")


def filled(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Goodput over the rate that the largest window allows at the mean RTT."""
    return stats.mean([t.goodput_mbps / _allowed_rate(t) for t in cell.trials], "1")


def buffer(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Seconds of a stream at `options: {rate: 5mbit}` that a player must hold before it starts so that it never stalls; median over the trials."""
    rate = units.parse_rate(str(claim.options["rate"]), "rate")
    return stats.median([player_wait(t, rate) for t in cell.trials], "s")


def player_wait(trial: Trial, rate: int) -> float:
    """The start-up delay with which a player of a stream at `rate` (bit/s) never stalls, s; NaN where nothing was sampled.

    A player that starts D after the first byte was requested has shown (t − D) · rate by t; it never stalls if that many bits were delivered by
    then, so D is the largest t − delivered(t) / rate (acknowledged bytes of all flows together, samples of the sender). A stream above the mean
    rate needs all of its length.
    """
    series = [(times, delivered) for times, delivered in (samples.delivered(trial, flow) for flow in range(len(trial.flows))) if len(times)]
    if not series:
        return float("nan")
    grid = np.unique(np.concatenate([times for times, _ in series]))
    bits = 8 * np.sum([np.interp(grid, times, delivered) for times, delivered in series], axis=0)
    start = min(f.start_s for f in trial.flows)
    return float(np.max(grid - start - bits / rate, initial=0.0))


def share(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Mean share of a group.

    `options: {of: first | second | CCA, when: whole | overlap}`; `first` is the group that started first. `whole` compares rates over each
    flow's own time, `overlap` bytes while both groups run, which needs samples.
    """
    group, when = str(claim.options.get("of", "first")), str(claim.options.get("when", "whole"))
    if when not in ("whole", "overlap"):
        refuse("when", f"{when!r} is neither of a whole transfer nor of the overlap", "write whole or overlap")
    return stats.mean([_share(trial, group, when) for trial in cell.trials], "1")


def starved(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Mean number of flows that had less than a tenth of their fair share for five seconds or longer; unknown without samples."""
    return stats.mean([_starved(trial) for trial in cell.trials], "1")


def early(_: Result, __: Claim, cell: Cell) -> Estimate:
    """Spearman's rank correlation, over the runs, of the goodput of their first two seconds with that of the rest; needs samples."""
    return rank_correlation([pair for pair in (_beginning_and_rest(t) for t in cell.trials) if pair is not None])


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> Estimate:
    """Spearman's ρ of pairs and its interval, whole pairs resampled: runs that are alike share a rank."""
    x, y = np.asarray(pairs, dtype=float).reshape(-1, 2).T

    def correlation(resamples: Sequence[Floats]) -> Floats:
        indices = resamples[0].astype(int)
        return spearman(x[indices], y[indices])

    return cells.resampled([range(len(pairs))], correlation)


def _lost(trial: Trial) -> float:
    """Packets that the forward path lost, whatever the cause; NaN for a real kernel, whose queues do not count drops by cause."""
    by_cause = [q["drops"] for q in trial.queues if q.get("direction") == "forward" and isinstance(q.get("drops"), Mapping)]
    return float(sum(sum(drops.values()) for drops in by_cause)) if by_cause else math.nan


def _needless_share(arrays: Sequence[Floats]) -> Floats:
    retransmits, lost = (a.sum(axis=-1) for a in arrays)
    shares: Floats = np.clip(1 - lost / np.where(retransmits == 0, np.nan, retransmits), 0, 1)
    return shares


def _max_window(trial: Trial) -> float:
    """Largest receive window of any flow, bytes; NaN where it is not known."""
    windows = [f.max_rwnd for f in trial.flows if f.max_rwnd is not None]
    return float(max(windows)) if windows else float("nan")


def _allowed_rate(trial: Trial) -> float:
    """Largest window over the mean RTT of the flows, Mbit/s."""
    rtts = [f.rtt_ms.mean for f in trial.flows if f.rtt_ms.mean is not None]
    return _max_window(trial) * 8 / 1000 / (sum(rtts) / len(rtts)) if rtts else float("nan")


def _starved(trial: Trial) -> float:
    return math.nan if trial.samples is None else float(len({s.flow for s in sharing.starvation(trial)}))


def _share(trial: Trial, group: str, when: str) -> float:
    groups = _by_start(trial) if group in ("first", "second") else fairness.by_cca(trial)
    names = [g.name for g in groups]
    if group not in names:
        refuse("of", f"{group!r} has no flow in it", f"choose {', '.join(names)}")
    shares = fairness.measure(trial, groups)
    return (shares.whole if when == "whole" else shares.overlap)[names.index(group)]


def _by_start(trial: Trial) -> tuple[FlowGroup, FlowGroup]:
    """The flows that started first, and those that started later."""
    began = min(f.start_s for f in trial.flows)
    first = tuple(i for i, f in enumerate(trial.flows) if f.start_s - began < fairness.TOGETHER_S)
    return FlowGroup("first", first), FlowGroup("second", tuple(i for i in range(len(trial.flows)) if i not in first))


def _beginning_and_rest(trial: Trial) -> tuple[float, float] | None:
    """Rates of the beginning and of the rest, all flows together, Mbit/s."""
    edges = np.array([0.0, BEGINNING_S, trial.duration]) + min((f.start_s for f in trial.flows), default=0.0)
    rates = samples.rates(trial, np.minimum(edges, trial.duration)).sum(axis=0)
    return (float(rates[0]), float(rates[1])) if len(rates) and np.isfinite(rates).all() else None
