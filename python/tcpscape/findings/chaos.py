"""The chaos zone, where single runs of one condition cannot be trusted: on which side of the cliff a path stands, and whether its runs have one mode.

Which level belongs to the zone is decided in :attr:`tcpscape.findings.cliff.levels.Level.chaotic`. Page: docs/models/methods/chaos.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tcpscape.findings.cliff.levels import Level

Side = Literal["stable", "chaos zone", "collapsed"]
DIP_LEAST = 20
"""Fewest runs for the dip test; with fewer it detects nothing."""


def side(here: Level) -> Side:
    """The side on which the runs at this level stand."""
    if here.chaotic:
        return "chaos zone"
    return "collapsed" if here.fell else "stable"


def one_mode(runs: Sequence[float]) -> float | None:
    """p value of Hartigan's dip test (1985) that the logarithms of the runs have one mode; None where it does not apply."""
    import diptest

    x = np.asarray(runs, dtype=float)
    if len(x) < DIP_LEAST or not (x > 0).all() or np.ptp(x) == 0:
        return None
    return float(diptest.diptest(np.log(x))[1])
