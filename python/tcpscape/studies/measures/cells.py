"""Measures of a cell: statistics of its metric, alone, over another cell and among the other congestion controls; latency spikes.

Beside statistics that a work prints without their spread stands the standard error of such a number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tcpscape import metrics, stats
from tcpscape.campaign.outcome import Cell
from tcpscape.stats import Estimate, statistic
from tcpscape.studies import spikes
from tcpscape.studies.result import Result
from tcpscape.studies.study import Claim
from tcpscape.studies.verdict import ClaimVerdict, JudgedClaim
from tcpscape.text.numbers import number

SINGLE_RUNS = 0.95
"""Share of single runs that a range holds."""
FEWEST_RUNS = 20
"""Runs from which the ends of such a range can be told: one in forty lies beyond each."""


def mean(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Mean of the metric."""
    return cell.mean(claim.metric)


def median(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Median of the metric."""
    return cell.median(claim.metric)


def cv(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Coefficient of variation of the metric, a fraction."""
    return cell.cv(claim.metric)


def ratio(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """Ratio of the means of the cell and of the one under `over`; the same seeds on one engine are paired."""
    return cell.over(result.below(claim, cell), claim.metric)


def retention(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """Mean over the mean at the lowest value of the axis that the claim names under `options: {axis: …}`."""
    return result.outcome(claim.part).retention(cell, _axis(claim), claim.metric)


def both_ways(result: Result, claim: Claim) -> JudgedClaim:
    """Whether the ratio to the cell under `over` is above 1 in some of the claim's cells and below 1 in others, beyond their intervals."""
    ratios = [ratio(result, claim, cell) for cell in result.cells(claim)]
    above, below = (sum(e.excludes(1) and (e.value > 1) == up for e in ratios) for up in (True, False))
    measured = f"above 1 in {above}, below 1 in {below}, open in {len(ratios) - above - below} of {len(ratios)} cells"
    if above and below:
        return JudgedClaim(claim, "reproduced", measured)
    return JudgedClaim(claim, "not reproduced" if above + below == len(ratios) else "not decidable", measured)


def spike(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The median over the cell's runs of what the claim names under `options: {what: …}`, a name of :data:`spikes.QUANTITIES`."""
    return spikes.median(cell, _quantity(claim))


def spike_ratio(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """The mean of such a quantity over that of the cell under `over`; runs with the same drops and seeds are paired."""
    below = result.below(claim, cell)
    ratio_of = stats.ratio if cell.paired(below) else stats.mean_ratio
    return ratio_of(spikes.values(cell, _quantity(claim)), spikes.values(below, _quantity(claim)))


def spike_cv(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The coefficient of variation of such a quantity over the cell's runs, a fraction."""
    return stats.cv(spikes.values(cell, _quantity(claim)))


def error_of_mean(_: Result, claim: Claim, cell: Cell) -> float:
    """Relative standard error of a published mean or median."""
    return statistic.error_of_mean(_cv(cell, claim), claim.runs)


def error_of_cv(_: Result, claim: Claim, cell: Cell) -> float:
    """Relative standard error of a published coefficient of variation."""
    return statistic.error_of_cv(_cv(cell, claim), claim.runs)


def error_of_quotient(result: Result, claim: Claim, cell: Cell) -> float:
    """Relative standard error of a published ratio or retention: that of both means."""
    below = result.below(claim, cell) if claim.over else result.outcome(claim.part).base(cell, _axis(claim))
    return statistic.error_of_mean(math.hypot(_cv(cell, claim), _cv(below, claim)), claim.runs)


def _axis(claim: Claim) -> str:
    return str(claim.options.get("axis", "jitter"))


def _quantity(claim: Claim) -> str:
    """The quantity of a latency spike that the claim is about; the measured peak where it names none."""
    return str(claim.options.get("what", "peak"))


def _cv(cell: Cell, claim: Claim) -> float:
    """The coefficient of variation of our runs; 0 where one run cannot tell it."""
    value = cell.cv(claim.metric).value
    return value if math.isfinite(value) else 0.0


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
    here, before = ratio(result, claim, cell), ratio(result, claim, elsewhere)
    return Estimate(here.value / before.value, here.low / before.high, here.high / before.low, min(here.n, before.n), "1")


def _rivals(result: Result, claim: Claim, cell: Cell) -> Sequence[Cell]:
    """The other congestion controls on the same path, or those of them under `options: {among: […]}`."""
    names = claim.options.get("among")
    others = result.outcome(claim.part).select(None, cell.engine, **cell.at)
    return [c for c in others if c.cca != cell.cca and (names is None or c.cca in names)]
