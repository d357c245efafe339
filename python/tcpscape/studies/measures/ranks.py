"""Measures among congestion controls: the rank of one, how near it is to the best, and where single runs of it fall."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tcpscape import metrics
from tcpscape.campaign.outcome import Cell
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number
from tcpscape.studies.measures import cells
from tcpscape.studies.result import Result
from tcpscape.studies.study import Claim
from tcpscape.studies.verdict import ClaimVerdict, JudgedClaim

SINGLE_RUNS = 0.95
"""Share of single runs that a range holds."""
FEWEST_RUNS = 20
"""Runs from which the ends of such a range can be told: one in forty lies beyond each."""


def rank(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """The place of a congestion control by its mean among the others of the part, or those under `options: {among: […]}`.

    The best mean is the lowest one for a metric of which less is better. The interval counts those that are better and worse beyond doubt (ratio
    of means that excludes 1). Unknown where one of the means is.
    """
    less = metrics.find(claim.metric).better == "less"
    mean, n, rivals = cell.mean(claim.metric).value, len(cell.trials), _rivals(result, claim, cell)
    others = [c.mean(claim.metric).value for c in rivals]
    if any(math.isnan(value) for value in (mean, *others)):
        return Estimate(math.nan, math.nan, math.nan, n, "1")
    better = sum(value < mean if less else value > mean for value in others)
    ratios = [c.over(cell, claim.metric) for c in rivals]
    surely_above = sum(r.value > 1 and r.excludes(1) for r in ratios)
    surely_below = sum(r.value < 1 and r.excludes(1) for r in ratios)
    surely_better, surely_worse = (surely_below, surely_above) if less else (surely_above, surely_below)
    return Estimate(1 + better, 1 + surely_better, 1 + len(rivals) - surely_worse, n, "1")


def near_best(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """Mean over the best congestion control's mean."""
    rivals = [cell, *_rivals(result, claim, cell)]
    choose = min if metrics.find(claim.metric).better == "less" else max
    best = choose(rivals, key=lambda c: c.mean(claim.metric).value)
    return cell.over(best, claim.metric)


def one_run(result: Result, claim: Claim) -> JudgedClaim:
    """Whether a published single run, the claim's `value`, lies where 95 % of our single runs do; with few runs, where all of them do."""
    (cell,) = result.cells(claim)
    values = cell.values(claim.metric)
    enough = len(values) >= FEWEST_RUNS
    tail = (1 - SINGLE_RUNS) / 2 if enough else 0.0
    low, high = (float(x) for x in np.quantile(values, [tail, 1 - tail]))
    published = float(str(claim.value))
    runs = f"{'95 % of' if enough else 'all'} {len(values)} single runs"
    span = f"{runs}: {number(low)}–{number(high)} {metrics.find(claim.metric).printed_unit}".rstrip() + f" (published: {claim.value})"
    outside: ClaimVerdict = "not reproduced" if enough and not math.isnan(low) else "not decidable"
    return JudgedClaim(claim, "reproduced" if low <= published <= high else outside, span)


def change(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """How a ratio differs from what it is elsewhere: (cell / below) over the same at `options: {from: {axis: value}}`; below 1 it narrows."""
    start = {str(k): str(v) for k, v in dict(claim.options["from"]).items()}
    elsewhere = result.outcome(claim.part).find(cell.cca, cell.engine, **{k: v for k, v in cell.at.items() if k not in start}, **start)
    if elsewhere is None:
        return Estimate(float("nan"), float("nan"), float("nan"), 0, "1")
    here, before = cells.ratio(result, claim, cell), cells.ratio(result, claim, elsewhere)
    return Estimate(here.value / before.value, here.low / before.high, here.high / before.low, min(here.n, before.n), "1")


def _rivals(result: Result, claim: Claim, cell: Cell) -> Sequence[Cell]:
    """The other congestion controls on the same path, or those of them under `options: {among: […]}`."""
    names = claim.options.get("among")
    others = result.outcome(claim.part).select(None, cell.engine, **cell.at)
    return [c for c in others if c.cca != cell.cca and (names is None or c.cca in names)]
