"""What claims measure: one function and one registry line each.

A measure *of a cell* gives an estimate, which is held against the claim's range, for one cell or for every one; a measure *of the whole
study* gives the verdict itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tcpscape.errors import refuse
from tcpscape.stats import Estimate
from tcpscape.studies.measures import cells, cliff, edges, memory, player, ranks, rig, sender, sharing, sides, spikes, spread, tables, version

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim
    from tcpscape.studies.verdicts import Judged

OfCell = Callable[["Result", "Claim", "Cell"], Estimate]
OfStudy = Callable[["Result", "Claim"], "Judged"]

OF_CELLS: Mapping[str, OfCell] = {
    "mean": cells.mean,
    "median": cells.median,
    "cv": cells.cv,
    "ratio": cells.ratio,
    "retention": cells.retention,
    "rank": ranks.rank,
    "near_best": ranks.near_best,
    "change": ranks.change,
    "share": sharing.share,
    "starved": sharing.starved,
    "spike": spikes.spike,
    "spike_ratio": spikes.ratio,
    "spike_cv": spikes.cv,
    "cv_ratio": spread.cv_ratio,
    "extreme": spread.extreme,
    "tail": spread.tail,
    "span": spread.span,
    "one_mode": spread.one_mode,
    "runs_needed": spread.needed,
    "needless": sender.needless,
    "window": sender.window,
    "pipe": sender.pipe,
    "filled": sender.filled,
    "buffer": player.buffer,
    "early": memory.early,
}
"""Measures of a cell."""
OF_STUDIES: Mapping[str, OfStudy] = {
    "cliff": cliff.step,
    "one_run": ranks.one_run,
    "edge": edges.edge,
    "edge_ratio": edges.ratio,
    "both_ways": sides.both,
    "nearer": version.nearer,
    "rig": rig.said,
    "table": tables.table,
}
"""Measures of the whole study."""


def judge(result: Result, claim: Claim) -> Judged:
    """What our runs say about a claim."""
    if claim.measure in OF_STUDIES:
        return OF_STUDIES[claim.measure](result, claim)
    if claim.measure not in OF_CELLS:
        refuse("measure", f"{claim.measure!r} is unknown", f"choose {', '.join([*OF_CELLS, *OF_STUDIES])}")
    return cells.judge(result, claim, OF_CELLS[claim.measure])
