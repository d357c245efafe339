"""What claims measure: one function and one registry line each.

A :class:`CellMeasure` gives an estimate of a cell, which is held against the claim's range, for one cell or for every one. A
:class:`StudyMeasure` gives the verdict itself. :mod:`tcpscape.studies.result` defines both and judges claims about cells; the files here have
the measures by subject: `cells` (statistics of a metric, alone and among congestion controls, and how runs differ), `flows` (senders, players
and groups of flows), `cliffs` (of the whole study).

To add a measure: one function, and one line here.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcpscape.errors import refuse
from tcpscape.studies.measures import cells, cliffs, flows
from tcpscape.studies.result import AnyMeasure, CellMeasure, JudgedClaim, Result, StudyMeasure
from tcpscape.studies.study import Claim

REGISTRY: Mapping[str, AnyMeasure] = {
    "mean": CellMeasure(cells.mean, cells.error_of_mean),
    "median": CellMeasure(cells.median, cells.error_of_mean),
    "cv": CellMeasure(cells.cv, cells.error_of_cv),
    "ratio": CellMeasure(cells.ratio, cells.error_of_quotient),
    "retention": CellMeasure(cells.retention, cells.error_of_quotient),
    "rank": CellMeasure(cells.rank),
    "near_best": CellMeasure(cells.near_best),
    "change": CellMeasure(cells.change),
    "share": CellMeasure(flows.share),
    "starved": CellMeasure(flows.starved),
    "spike": CellMeasure(cells.spike),
    "spike_ratio": CellMeasure(cells.spike_ratio),
    "spike_cv": CellMeasure(cells.spike_cv),
    "cv_ratio": CellMeasure(cells.cv_ratio),
    "extreme": CellMeasure(cells.extreme),
    "tail": CellMeasure(cells.tail),
    "span": CellMeasure(cells.span),
    "one_mode": CellMeasure(cells.one_mode),
    "runs_needed": CellMeasure(cells.runs_needed),
    "needless": CellMeasure(flows.needless),
    "window": CellMeasure(flows.window),
    "pipe": CellMeasure(flows.pipe),
    "filled": CellMeasure(flows.filled),
    "buffer": CellMeasure(flows.buffer),
    "early": CellMeasure(flows.early),
    "cliff": StudyMeasure(cliffs.step),
    "one_run": StudyMeasure(cells.one_run),
    "edge": StudyMeasure(cliffs.edge),
    "edge_ratio": StudyMeasure(cliffs.edge_ratio),
    "both_ways": StudyMeasure(cells.both_ways),
    "nearer": StudyMeasure(cliffs.nearer),
    "rig": StudyMeasure(cliffs.rig),
    "table": StudyMeasure(cliffs.table),
}
"""Every measure by the name that a claim gives it."""


def judge(result: Result, claim: Claim) -> JudgedClaim:
    """The verdict of our runs on a claim."""
    if claim.measure not in REGISTRY:
        refuse("measure", f"{claim.measure!r} is unknown", f"choose {', '.join(REGISTRY)}")
    return REGISTRY[claim.measure].judge(result, claim)
