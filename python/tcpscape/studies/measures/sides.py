"""Claims that something goes both ways: above and below a value, depending on the cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpscape.studies.measures import cells
from tcpscape.studies.verdicts import Judged

if TYPE_CHECKING:
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim


def both(result: Result, claim: Claim) -> Judged:
    """Whether the ratio to the cell under `over` is above 1 in some of the claim's cells and below 1 in others, beyond their intervals."""
    got = [cells.ratio(result, claim, cell) for cell in result.cells(claim)]
    above, below = (sum(e.excludes(1) and (e.value > 1) == up for e in got) for up in (True, False))
    measured = f"above 1 in {above}, below 1 in {below}, open in {len(got) - above - below} of {len(got)} cells"
    if above and below:
        return Judged(claim, "reproduced", measured)
    return Judged(claim, "not reproduced" if above + below == len(got) else "not decidable", measured)
