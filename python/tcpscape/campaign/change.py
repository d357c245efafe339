"""What a change of the path does to the RTT: the smoothed RTT before and after it, of trials that kept samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tcpscape import stats, units
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.text.numbers import number
from tcpscape.trial import Trial

BEGIN_S = 1.0
"""Start of a trial that does not count, s: the handshake and slow start."""


def sentences(outcome: Outcome) -> Iterator[str]:
    """One sentence about the change of a run that has exactly one: means before and after it, and the highest value, mean over the trials."""
    changes = outcome.cells[0].scenarios[0].changes
    if len(changes) != 1 or changes[0].at is None:
        return
    at_s = changes[0].at / units.NS_PER_S
    parts = [text for cell in outcome.cells if (text := _around(cell, at_s))]
    if parts:
        yield f"Smoothed RTT before and after the change at {units.brief_time(changes[0].at)}: {'; '.join(parts)}."


def _around(cell: Cell, at_s: float) -> str:
    """`cubic 84 and 171 ms, at most 201 ms`; empty without samples on both sides of the change."""
    rows = [values for trial in cell.trials for values in _values(trial, at_s)]
    if not rows:
        return ""
    before, after, highest = (number(stats.mean(column).value) for column in zip(*rows, strict=True))
    return f"{cell.cca} {before} and {after} ms, at most {highest} ms"


def _values(trial: Trial, at_s: float) -> Sequence[tuple[float, float, float]]:
    """The mean smoothed RTT of a trial's flows before the change and after it, and the highest after it, ms."""
    if trial.samples is None or "srtt_us" not in trial.samples.columns:
        return ()
    times = trial.samples["t_ns"].to_numpy() / units.NS_PER_S
    rtts = trial.samples["srtt_us"].to_numpy().astype(float) / 1000
    before, after = rtts[(times >= BEGIN_S) & (times < at_s)], rtts[times >= at_s]
    if not len(before) or not len(after) or math.isnan(float(np.sum(before)) + float(np.sum(after))):
        return ()
    return ((float(before.mean()), float(after.mean()), float(after.max())),)
