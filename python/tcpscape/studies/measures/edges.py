"""Where the curve of a study's own grid falls through half of its first value, with an interval; between grid steps by a straight line.

The published cliffs are steps of the grid (:mod:`tcpscape.studies.measures.cliff`); this is the same edge as a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tcpscape.campaign import axes
from tcpscape.errors import StudyError
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number
from tcpscape.studies.measures import resample
from tcpscape.studies.measures.cliff import HALF
from tcpscape.studies.verdicts import Judged, all_of, asked, in_range

if TYPE_CHECKING:
    from tcpscape.campaign.outcome import Cell
    from tcpscape.studies.measures.resample import Array
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim

Curve = tuple["Cell", ...]


def edge(result: Result, claim: Claim) -> Judged:
    """Whether each curve's edge is in the range: on the axis (`options: {axis: jitter}`), or as a share of another one (`{of: rtt}`)."""
    found = list(curves(result, claim))
    got = [crossing(result, claim, [c])[0] for c in found]
    verdict = all_of([in_range(e, claim.low, claim.high) for e in got])
    said = "; ".join(f"{_where(result, claim, c)} {_text(e)}" for c, e in zip(found, got, strict=True))
    unit = next((e.unit for e in got if e.unit != "1"), "")
    return Judged(claim, verdict, f"{said} {unit}".strip() + f" (asked: {asked(claim.low, claim.high)})")


def ratio(result: Result, claim: Claim) -> Judged:
    """Whether the edge at `cca` and `at` over the one under `over` is in the range, for each curve that has both."""
    found = [(c, _other(result, claim, c)) for c in curves(result, claim)]
    got = [crossing(result, claim, pair)[-1] for pair in found]
    verdict = all_of([in_range(e, claim.low, claim.high) for e in got])
    said = "; ".join(f"{_where(result, claim, c)} {_text(e)}" for (c, _), e in zip(found, got, strict=True))
    return Judged(claim, verdict, f"{said} (asked: {asked(claim.low, claim.high)})")


def curves(result: Result, claim: Claim) -> Iterator[Curve]:
    """The curves along the axis, one for each congestion control and each value of the other axes."""
    axis, outcome = _axis(claim), result.outcome(claim.part)
    seen = dict.fromkeys((c.cca, tuple((k, v) for k, v in c.at.items() if k != axis)) for c in result.cells(claim))
    for cca, others in seen:
        yield outcome.curve(axis, cca, **dict(others))


def crossing(result: Result, claim: Claim, pair: Sequence[Curve]) -> list[Estimate]:
    """The edge of each curve and, of two, their ratio; infinite where a curve stays above half."""
    outcome, axis, of = result.outcome(claim.part), _axis(claim), str(claim.options.get("of", ""))
    places = [np.array([c.value(axis).number for c in curve]) / (axes.read(curve[0].at[of]).number if of else 1) for curve in pair]
    sizes = [len(curve) for curve in pair]

    def fall(which: int, samples: Sequence[Array]) -> Array:
        first = sum(sizes[:which])
        return _fall(np.stack([s.mean(axis=-1) for s in samples[first : first + sizes[which]]], axis=-1), places[which])

    values = [c.values(outcome.campaign.metric) for curve in pair for c in curve]
    unit = "1" if of else pair[0][0].value(axis).unit
    got = [resample.estimate(values, partial(fall, i), unit) for i in range(len(pair))]
    return got if len(pair) == 1 else [*got, resample.estimate(values, lambda s: _over(fall(0, s), fall(1, s)))]


def _fall(means: Array, places: Array) -> Array:
    """Where each row of means first falls below half of its first one; infinite where it never does."""
    kept = means / means[:, :1]
    below = kept < HALF
    at = np.argmax(below, axis=1)
    rows = np.arange(len(kept))
    above, under = kept[rows, np.maximum(at - 1, 0)], kept[rows, at]
    step = places[at] - places[np.maximum(at - 1, 0)]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = places[np.maximum(at - 1, 0)] + step * (above - HALF) / (above - under)
    return np.where(below.any(axis=1), found, np.inf)


def _over(one: Array, other: Array) -> Array:
    """Their ratio; unknown where neither falls."""
    with np.errstate(invalid="ignore"):
        return one / other


def _other(result: Result, claim: Claim, curve: Curve) -> Curve:
    """The curve that `curve` is divided by."""
    axis, outcome = _axis(claim), result.outcome(claim.part)
    over = dict(claim.over)
    cca = over.pop("cca", curve[0].cca)
    others = {k: v for k, v in curve[0].at.items() if k in outcome.axes and k != axis and k not in over}
    found = outcome.curve(axis, cca, **others, **over)
    if not found:
        raise StudyError(f"claims: {claim.text!r} divides by {claim.over}, which is no curve of the study; correct the study")
    return found


def _axis(claim: Claim) -> str:
    return str(claim.options.get("axis", "jitter"))


def _where(result: Result, claim: Claim, curve: Curve) -> str:
    """Which curve it is, in words."""
    outcome, axis = result.outcome(claim.part), _axis(claim)
    others = [a for a in outcome.axes if a != axis and len(outcome.levels(a)) > 1]
    return " ".join([curve[0].cca, *(curve[0].at[a] for a in others)])


def _text(got: Estimate) -> str:
    """The edge with its interval, `never` where the curve does not fall."""
    ends = [("never" if np.isinf(v) else number(v)) for v in (got.value, got.low, got.high)]
    return f"{ends[0]} [{ends[1]}, {ends[2]}]"
