"""Measures of a whole study: where curves of its own grid fall below half of their first value, published tables, and claims about the rig.

The published cliffs are steps of the grid (:func:`step`). :func:`edge` gives the same edge as a number, on a straight line between two steps of the
grid. Nothing was measured between them, and a curve may jump there: so the interval of an edge contains the two steps around the crossing in each
resample, and what lies inside of them decides nothing. :mod:`tcpscape.findings.cliff.search` has the same rule.

Of a published table, every number is held against our runs, and it is judged which congestion control it fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from tcpscape import metrics
from tcpscape.campaign import axes
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.errors import StudyError
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats
from tcpscape.studies import known
from tcpscape.studies.known import KnownNumber
from tcpscape.studies.measures import cells
from tcpscape.studies.measures.cells import Bracket, axis_of
from tcpscape.studies.result import ClaimVerdict, JudgedClaim, Result, all_of, in_range, range_text
from tcpscape.studies.study import Claim
from tcpscape.text.numbers import number

HALF = 0.5
"""Retention below which a cell counts as over the edge, as published."""

Curve = tuple[Cell, ...]


def step(result: Result, claim: Claim) -> JudgedClaim:
    """Whether the cliff is at the claim's `value` on the axis `options: {axis: …}` (jitter)."""
    axis, outcome = axis_of(claim), result.outcome(claim.part)
    grid = [v for name, values in outcome.campaign.axes.items() if name == axis for v in values]
    curve = [c for c in outcome.curve(axis, claim.cca, **claim.at) if any(axes.same(c.at[axis], v) for v in grid)]
    first, claimed = _first_below_half(outcome, curve, axis), str(claim.value)
    place = next(i for i, c in enumerate(curve) if axes.same(c.at[axis], claimed))
    near = curve[max(0, place - 1) : place + 1]
    measured = ", ".join(f"{c.at[axis]} keeps {outcome.retention(c, axis).text(2)}" for c in near)
    if first is not None and axes.same(first.at[axis], claimed):
        return JudgedClaim(claim, "reproduced", measured)
    undecided = any(not outcome.retention(c, axis).excludes(HALF) for c in near)
    at = f"first below half at {first.at[axis]}" if first is not None else "never below half"
    return JudgedClaim(claim, "not decidable" if undecided else "not reproduced", f"{at}; {measured}")


def edge(result: Result, claim: Claim) -> JudgedClaim:
    """Whether each curve's edge is in the range: on the axis (`options: {axis: jitter}`), or as a share of another one (`{of: rtt}`).

    An edge is decided where the whole of its interval is on one side, since the grid does not say where between two steps it is.
    """
    curves = list(curves_of(result, claim))
    edges = [crossing(result, claim, [c])[0] for c in curves]
    verdict = all_of([_decided(e, claim) for e in edges])
    texts = "; ".join(f"{_where(result, claim, c)} {_text(e)}" for c, e in zip(curves, edges, strict=True))
    unit = next((e.unit for e in edges if e.unit != "1"), "")
    return JudgedClaim(claim, verdict, f"{texts} {unit}".strip() + f" (asked: {range_text(claim.low, claim.high)})")


def edge_ratio(result: Result, claim: Claim) -> JudgedClaim:
    """Whether the edge at `cca` and `at` over the one under `over` is in the range, for each curve that has both; decided as :func:`edge`."""
    pairs = [(c, _curve_below(result, claim, c)) for c in curves_of(result, claim)]
    ratios = [crossing(result, claim, pair)[-1] for pair in pairs]
    verdict = all_of([_decided(e, claim) for e in ratios])
    texts = "; ".join(f"{_where(result, claim, c)} {_text(e, beyond='∞')}" for (c, _), e in zip(pairs, ratios, strict=True))
    return JudgedClaim(claim, verdict, f"{texts} (asked: {range_text(claim.low, claim.high)})")


def crossing(result: Result, claim: Claim, curves: Sequence[Curve]) -> list[Estimate]:
    """The edge of each curve and, of two, their ratio; infinite where a curve stays above half."""
    return edges_of(curves, result.outcome(claim.part).campaign.metric, axis_of(claim), str(claim.options.get("of", "")))


def edges_of(curves: Sequence[Curve], metric: str, axis: str, of: str = "") -> list[Estimate]:
    """Where the mean of a metric along each curve falls to half of its first one, in the axis' unit or as a share of the axis `of`.

    Of two curves, their ratio besides; infinite where a curve stays above half. Intervals contain the two steps around the crossing.
    """
    places = [np.array([c.value(axis).number for c in curve]) / (axes.read(curve[0].at[of]).number if of else 1) for curve in curves]
    sizes = [len(curve) for curve in curves]

    def edge_of(index: int, arrays: Sequence[Floats]) -> Bracket:
        first = sum(sizes[:index])
        return _fall(np.stack([a.mean(axis=-1) for a in arrays[first : first + sizes[index]]], axis=-1), places[index])

    values = [c.values(metric) for curve in curves for c in curve]
    unit = "1" if of else curves[0][0].value(axis).unit
    every = [cells.bracketed(values, partial(edge_of, i), unit) for i in range(len(curves))]
    return every if len(curves) == 1 else [*every, cells.bracketed(values, lambda a: _quotient(edge_of(0, a), edge_of(1, a)))]


def _decided(edge: Estimate, claim: Claim) -> ClaimVerdict:
    """The verdict on an edge or on a ratio of two."""
    verdict = in_range(edge, claim.low, claim.high)
    is_inside = claim.low <= edge.low and edge.high <= claim.high
    return "not decidable" if verdict == "reproduced" and not is_inside else verdict


def _first_below_half(outcome: Outcome, curve: Sequence[Cell], axis: str) -> Cell | None:
    """The first cell on a curve whose mean is below half of the first one's; None where none is."""
    return next((c for c in curve if outcome.retention(c, axis).value < HALF), None)


def curves_of(result: Result, claim: Claim) -> Iterator[Curve]:
    """The curves along the axis, one for each congestion control and each value of the other axes."""
    axis, outcome = axis_of(claim), result.outcome(claim.part)
    distinct = dict.fromkeys((c.cca, tuple((k, v) for k, v in c.at.items() if k != axis)) for c in result.cells(claim))
    for cca, others in distinct:
        yield outcome.curve(axis, cca, **dict(others))


def _fall(means: Floats, places: Floats) -> Bracket:
    """Where each row of means first falls below half of its first one, on a straight line between the last step before and the first step below.

    A row that never falls does so beyond the last step, at infinity.
    """
    retained = means / means[:, :1]
    below = retained < HALF
    at = np.argmax(below, axis=1)
    rows, before = np.arange(len(retained)), np.maximum(at - 1, 0)
    upper, lower = retained[rows, before], retained[rows, at]
    with np.errstate(invalid="ignore", divide="ignore"):
        edges = places[before] + (places[at] - places[before]) * (upper - HALF) / (upper - lower)
    falls = below.any(axis=1)
    return np.where(falls, places[before], places[-1]), np.where(falls, edges, np.inf), np.where(falls, places[at], np.inf)


def _quotient(a: Bracket, b: Bracket) -> Bracket:
    """a / b, at least a's step before over b's step below, at most the other way round; unknown where neither falls."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return a[0] / b[2], a[1] / b[1], a[2] / b[0]


def _curve_below(result: Result, claim: Claim, curve: Curve) -> Curve:
    """The curve that `curve` is divided by."""
    axis, outcome = axis_of(claim), result.outcome(claim.part)
    over = dict(claim.over)
    cca = over.pop("cca", curve[0].cca)
    others = {k: v for k, v in curve[0].at.items() if k in outcome.axes and k != axis and k not in over}
    divisor = outcome.curve(axis, cca, **others, **over)
    if not divisor:
        raise StudyError(f"claims: {claim.text!r} divides by {claim.over}, which is no curve of the study; correct the study")
    return divisor


def _where(result: Result, claim: Claim, curve: Curve) -> str:
    """Which curve it is, in words."""
    outcome, axis = result.outcome(claim.part), axis_of(claim)
    others = [a for a in outcome.axes if a != axis and len(outcome.levels(a)) > 1]
    return " ".join([curve[0].cca, *(curve[0].at[a] for a in others)])


def _text(estimate: Estimate, beyond: str = "never") -> str:
    """The edge with its interval, `never` where the curve does not fall."""
    ends = [(beyond if np.isinf(v) else number(v)) for v in (estimate.value, estimate.low, estimate.high)]
    return f"{ends[0]} [{ends[1]}, {ends[2]}]"


WITHIN = 0.15
"""|ln(ours / theirs)| that counts as the same where a work gives one number without its spread."""
MISSES_SHOWN = 3
"""Misses that are named, the largest first."""


def table(result: Result, claim: Claim) -> JudgedClaim:
    """Every valid published number of the claim's cells and metric, or metrics under `options: {metrics: […]}`.

    Each must be within 15 % of ours (`options: {within: …}` sets another share), or within `options: {grain: …}` of it, the step in which the
    work's own samples come.
    """
    grain, within = float(claim.options.get("grain", 0)), float(claim.options.get("within", WITHIN))
    names = tuple(str(m) for m in claim.options.get("metrics", (claim.metric,)))
    numbers = list(_numbers(result, claim, names))
    if not numbers:
        raise StudyError(f"claims: {claim.text!r} has no valid published number of {', '.join(names)}; correct the study")
    verdicts: list[ClaimVerdict] = []
    misses: list[tuple[float, str]] = []
    for cell, published in numbers:
        ours = published.statistic_of(cell)
        low, high = published.value * math.exp(-within), published.value * math.exp(within)
        verdicts.append(in_range(ours, min(low, published.value - grain), max(high, published.value + grain)))
        if verdicts[-1] != "reproduced":
            miss = f"{_place(cell, published, names)} {ours.text()} for {number(published.value)}"
            misses.append((known.log_distance(ours.value, published.value), miss))
    grain_text = f" or {number(grain)} {metrics.find(names[0]).unit}" if grain else ""
    summary = f"{verdicts.count('reproduced')} of {len(numbers)} numbers within {within:.0%}{grain_text}"
    texts = [text for _, text in sorted(misses, reverse=True)]
    rest = f" and {len(texts) - MISSES_SHOWN} more" if len(texts) > MISSES_SHOWN else ""
    return JudgedClaim(claim, all_of(verdicts), summary + (f"; off: {', '.join(texts[:MISSES_SHOWN])}{rest}" if texts else ""))


def nearer(result: Result, claim: Claim) -> JudgedClaim:
    """Whether `cca` is nearer to the numbers published of `options: {published: bbr}` than that one is itself, in most cells and in the mean.

    Each published mean is compared with both on the same axes: |ln(ours / theirs)|. Not decidable where the two criteria differ.
    """
    published, outcome = str(claim.options["published"]), result.outcome(claim.part)
    numbers = [k for k in known.table(result.study) if k.cca == published and k.stat == "mean" and k.metric == claim.metric and k.kind == "published"]
    distances: list[tuple[float, float]] = []
    for theirs in numbers:
        cells = [outcome.select(cca, **theirs.at) for cca in (str(claim.cca), published)]
        if all(len(c) == 1 for c in cells):
            first, second = (known.log_distance(c[0].mean(claim.metric).value, theirs.value) for c in cells)
            distances.append((first, second))
    if not distances:
        raise StudyError(f"claims: {claim.text!r} has no published number of {published} that both were run for; correct the study")
    wins, means = sum(a < b for a, b in distances), [sum(column) / len(distances) for column in zip(*distances, strict=True)]
    mean_texts = f"{number(means[0], 2)}, {published} {number(means[1], 2)}"
    measured = f"{claim.cca} is nearer in {wins} of {len(distances)} cells; mean |ln(ours/theirs)| {mean_texts}"
    if (means[0] < means[1]) != (2 * wins > len(distances)):
        return JudgedClaim(claim, "not decidable", measured)
    return JudgedClaim(claim, "reproduced" if means[0] < means[1] else "not reproduced", measured)


def rig(_: Result, claim: Claim) -> JudgedClaim:
    """A claim about the rig itself, which no run of ours can decide; the claim's `setup` has what is known of it."""
    return JudgedClaim(claim, "not decidable", claim.setup)


def _numbers(result: Result, claim: Claim, names: tuple[str, ...]) -> Iterator[tuple[Cell, KnownNumber]]:
    """The valid published numbers of these metrics, each with its cell."""
    part = claim.part or next(iter(result.parts))
    for cell in result.cells(claim):
        for published in known.of_cell(result.known, part, cell, "published"):
            if published.valid and published.metric in names:
                yield cell, published


def _place(cell: Cell, published: KnownNumber, names: tuple[str, ...]) -> str:
    """Which number it is: its values on the table's axes, and its metric where there are several."""
    where = [v for k, v in cell.at.items() if k in published.at]
    return " ".join([*where, *([published.metric] if len(names) > 1 else [])])
