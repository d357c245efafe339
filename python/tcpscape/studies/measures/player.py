"""How much a player of a stream at a constant rate must have buffered so that it never stalls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpscape import units
from tcpscape.metrics import samples
from tcpscape.stats import Estimate, median

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim
    from tcpscape.trial import Trial


def buffer(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Seconds of a stream at `options: {rate: 5mbit}` that a player must hold before it starts, median over the trials.

    A player that starts D after the first byte was asked for has shown (t − D) · rate by t; it never stalls if that much was delivered by
    then, so D is the largest t − delivered(t) / rate (acknowledged bytes, samples of the sender). A stream above the mean rate needs all
    of its length.
    """
    rate = units.parse_rate(str(claim.options["rate"]), "rate")
    return median([wait(t, rate) for t in cell.trials], "s")


def wait(trial: Trial, rate: int) -> float:
    """The same of one trial, all its flows together carrying the stream; `rate` in bit/s. NaN where nothing was sampled."""
    each = [(at, got) for at, got in (samples.delivered(trial, flow) for flow in range(len(trial.flows))) if len(at)]
    if not each:
        return float("nan")
    times = np.unique(np.concatenate([at for at, _ in each]))
    bits = 8 * np.sum([np.interp(times, at, got) for at, got in each], axis=0)
    start = min(f.start_s for f in trial.flows)
    return float(np.max(times - start - bits / rate, initial=0.0))
