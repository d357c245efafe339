"""Measures of a cell: statistics of its metric, alone, over another cell, among the other congestion controls; spread of its runs; latency spikes.

Beside statistics that a work prints without their spread stands the standard error of such a number.

Statistics of our runs that have no formula for their interval get one here: :func:`resampled` by resampling, :func:`of_draws` by drawing as many
runs as a work had.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tcpscape import metrics, stats
from tcpscape.campaign.outcome import Cell
from tcpscape.findings.cliff import levels
from tcpscape.stats import Estimate, statistic
from tcpscape.stats.estimate import CONFIDENCE, RESAMPLES, Floats
from tcpscape.studies import spikes
from tcpscape.studies.result import ClaimVerdict, JudgedClaim, Result
from tcpscape.studies.study import Claim
from tcpscape.text.numbers import number

Bracket = tuple[Floats, Floats, Floats]
"""A value between the two ends where it must lie: low end, value, high end."""
ENDS = (50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE))
"""Percentiles of an interval's ends."""
EXTREMES = {"least": np.min, "most": np.max}
PRECISION = 0.10
"""Half-width of the interval that :func:`runs_needed` aims at, as a fraction of the mean."""


def resampled(samples: Sequence[Sequence[float]], statistic: Callable[[Sequence[Floats]], Floats], unit: str = "1") -> Estimate:
    """`statistic` of the samples, each (resamples, runs), and its percentile interval; the samples are resampled independently.

    A statistic may be infinite (never reached); NaN resamples are left out.
    """
    whole, draws = _drawn(samples)
    if not draws:
        return Estimate(np.nan, np.nan, np.nan, 0, unit)
    return Estimate(float(statistic(whole)[0]), *_ends(statistic(draws)), min(a.shape[-1] for a in whole), unit)


def bracketed(samples: Sequence[Sequence[float]], statistic: Callable[[Sequence[Floats]], Bracket], unit: str = "1") -> Estimate:
    """As :func:`resampled`, of a statistic that is known only to lie between two ends: the interval's low end is that of the resamples' low ends.

    The interval contains both ends of the samples themselves, however alike the runs are.
    """
    whole, draws = _drawn(samples)
    if not draws:
        return Estimate(np.nan, np.nan, np.nan, 0, unit)
    low, value, high = (float(x[0]) for x in statistic(whole))
    lows, _, highs = statistic(draws)
    ends = np.fmin(_ends(lows)[0], low), np.fmax(_ends(highs)[1], high)
    return Estimate(value, float(ends[0]), float(ends[1]), min(a.shape[-1] for a in whole), unit)


def of_draws(values: Sequence[float], runs: int, statistic: Callable[[Floats], Floats], unit: str = "1") -> Estimate:
    """What a work with `runs` runs would have measured: the median of the statistic over draws of so many of our runs, and the range of 95 %."""
    array = np.asarray(values, dtype=float)
    if not len(array):
        return Estimate(np.nan, np.nan, np.nan, 0, unit)
    rng = np.random.default_rng(runs)
    if len(array) > runs:
        drawn = statistic(rng.permuted(np.tile(array, (RESAMPLES, 1)), axis=1)[:, :runs])
    else:
        drawn = statistic(array[rng.integers(0, len(array), (RESAMPLES, runs))])
    return Estimate(float(np.median(drawn)), *_ends(drawn), len(array), unit)


def _drawn(samples: Sequence[Sequence[float]]) -> tuple[list[Floats], list[Floats]]:
    """The samples, each as one row, and their resamples (resamples, runs); both empty where a sample is."""
    arrays = [np.asarray(s, dtype=float) for s in samples]
    n = min((len(a) for a in arrays), default=0)
    if n == 0:
        return [], []
    rng = np.random.default_rng(n)
    return [a[None, :] for a in arrays], [a[rng.integers(0, len(a), (RESAMPLES, len(a)))] for a in arrays]


def _ends(drawn: Floats) -> tuple[float, float]:
    defined = drawn[~np.isnan(drawn)]
    low, high = np.percentile(defined, ENDS, method="nearest") if len(defined) else (np.nan, np.nan)
    return float(low), float(high)


def extreme(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The `least` or `most` (`options: {of: …}`) of as many runs as the work had."""
    pick = EXTREMES[str(claim.options["of"])]
    return of_draws(cell.values(claim.metric), claim.runs, lambda x: pick(x, axis=-1), metrics.find(claim.metric).unit)


def tail(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The luckiest run over the median, of as many runs as the work had."""
    return of_draws(cell.values(claim.metric), claim.runs, lambda x: np.max(x, axis=-1) / np.median(x, axis=-1))


def span(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """The best of `runs` runs over the worst."""
    return of_draws(cell.values(claim.metric), claim.runs, lambda x: np.max(x, axis=-1) / np.min(x, axis=-1))


def cv_ratio(result: Result, claim: Claim, cell: Cell) -> Estimate:
    """The cell's CV over that of the cell under `over`."""
    return resampled([c.values(claim.metric) for c in (cell, result.below(claim, cell))], lambda x: _quotient(_cvs(x[0]), _cvs(x[1])))


def one_mode(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Probability of runs at least as far from a single mode as these, were there one: :func:`tcpscape.findings.cliff.levels.one_mode`."""
    values = cell.values(claim.metric)
    chance = levels.one_mode(values)
    value = math.nan if chance is None else chance
    return Estimate(value, value, value, len(values), "1")


def runs_needed(_: Result, claim: Claim, cell: Cell) -> Estimate:
    """Runs until the mean is known to ± 10 %, for the cell's CV and both ends of that one's interval."""
    return stats.runs_needed_from(cell.values(claim.metric), PRECISION)


def _quotient(a: Floats, b: Floats) -> Floats:
    """a / b; unknown where b is 0: a cell without spread."""
    quotients: Floats = a / np.where(b == 0, np.nan, b)
    return quotients


def _cvs(x: Floats) -> Floats:
    """Sample standard deviation over mean; unknown of one run."""
    if x.shape[-1] < 2:
        return np.full(x.shape[:-1], np.nan)
    cvs: Floats = np.std(x, axis=-1, ddof=1) / np.mean(x, axis=-1)
    return cvs


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
    return result.outcome(claim.part).retention(cell, axis_of(claim), claim.metric)


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
    below = result.below(claim, cell) if claim.over else result.outcome(claim.part).base(cell, axis_of(claim))
    return statistic.error_of_mean(math.hypot(_cv(cell, claim), _cv(below, claim)), claim.runs)


def axis_of(claim: Claim) -> str:
    """The axis that a claim is about."""
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
