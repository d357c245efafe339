"""Measures of published tables as a whole: every number against our runs, which congestion control a table fits, and claims about the rig."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tcpscape import metrics
from tcpscape.campaign.outcome import Cell
from tcpscape.errors import StudyError
from tcpscape.studies import known
from tcpscape.studies.known import KnownNumber
from tcpscape.studies.result import Result
from tcpscape.studies.study import Claim
from tcpscape.studies.verdict import ClaimVerdict, JudgedClaim, all_of, in_range
from tcpscape.text.numbers import number

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
