"""On which side of the cliff a path stands, judged by its runs: stable, chaos zone or collapsed."""

from __future__ import annotations

from typing import Literal

from tcpscape.findings.cliff_levels import Level

Side = Literal["stable", "chaos zone", "collapsed"]


def side(here: Level) -> Side:
    """The side on which the runs at this level stand."""
    if here.chaotic:
        return "chaos zone"
    return "collapsed" if here.fell else "stable"
