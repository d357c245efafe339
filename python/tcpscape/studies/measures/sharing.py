"""Measures of how flows share a link: the part of one group, over whole transfers as published or while all of them run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpscape import stats
from tcpscape.errors import refuse
from tcpscape.findings import fairness
from tcpscape.findings.fairness import Group
from tcpscape.stats import Estimate
from tcpscape.trial import Trial

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim


def share(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Mean share of a group.

    `options: {of: first | second | CCA, when: whole | overlap}`; `first` is who started first. `whole` compares rates over each flow's own
    time, `overlap` bytes while both groups run, which needs samples.
    """
    of, when = str(claim.options.get("of", "first")), str(claim.options.get("when", "whole"))
    if when not in ("whole", "overlap"):
        refuse("when", f"{when!r} is neither of a whole transfer nor of the overlap", "write whole or overlap")
    return stats.mean([_share(trial, of, when) for trial in cell.trials], "1")


def starved(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Mean number of flows that got less than a tenth of their fair share for five seconds or longer; unknown without samples."""
    return stats.mean([_starved(trial) for trial in cell.trials], "1")


def _starved(trial: Trial) -> float:
    return math.nan if trial.samples is None else float(len({s.flow for s in fairness.starvation(trial)}))


def _share(trial: Trial, of: str, when: str) -> float:
    groups = _roles(trial) if of in ("first", "second") else fairness.by_cca(trial)
    names = [g.name for g in groups]
    if of not in names:
        refuse("of", f"{of!r} has no flow in it", f"choose {', '.join(names)}")
    got = fairness.measure(trial, groups)
    return (got.whole if when == "whole" else got.overlap)[names.index(of)]


def _roles(trial: Trial) -> tuple[Group, Group]:
    """Who started first, and who later."""
    began = min(f.start_s for f in trial.flows)
    first = tuple(i for i, f in enumerate(trial.flows) if f.start_s - began < fairness.TOGETHER_S)
    return Group("first", first), Group("second", tuple(i for i in range(len(trial.flows)) if i not in first))
