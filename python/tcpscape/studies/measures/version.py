"""Which of two congestion controls the published numbers were measured with: the one whose cells are nearer to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpscape.errors import StudyError
from tcpscape.stats.estimate import number
from tcpscape.studies import known
from tcpscape.studies.verdicts import Judged

if TYPE_CHECKING:
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim


def nearer(result: Result, claim: Claim) -> Judged:
    """Whether `cca` is nearer to the numbers published of `options: {published: bbr}` than that one is itself, in most cells and in the mean.

    Each published mean is compared with both on the same axes: |ln(ours / theirs)|. Not decidable where the two criteria differ.
    """
    said, outcome = str(claim.options["published"]), result.outcome(claim.part)
    rows = [k for k in known.table(result.study) if k.cca == said and k.stat == "mean" and k.metric == claim.metric and k.kind == "published"]
    far: list[tuple[float, float]] = []
    for row in rows:
        cells = [outcome.select(cca, **row.at) for cca in (str(claim.cca), said)]
        if all(len(c) == 1 for c in cells):
            mine, other = (known.apart(c[0].mean(claim.metric).value, row.value) for c in cells)
            far.append((mine, other))
    if not far:
        raise StudyError(f"claims: {claim.text!r} has no published number of {said} that both were run for; correct the study")
    wins, means = sum(a < b for a, b in far), [sum(column) / len(far) for column in zip(*far, strict=True)]
    measured = f"{claim.cca} is nearer in {wins} of {len(far)} cells; mean |ln(ours/theirs)| {number(means[0], 2)}, {said} {number(means[1], 2)}"
    if (means[0] < means[1]) != (2 * wins > len(far)):
        return Judged(claim, "not decidable", measured)
    return Judged(claim, "reproduced" if means[0] < means[1] else "not reproduced", measured)
