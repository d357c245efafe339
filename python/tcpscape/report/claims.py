"""The claims of a study on its page: failures first, then what the runs do not decide, and the reproduced ones folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcpscape.report import tables
from tcpscape.report.page import Claims
from tcpscape.report.tables import PageTable
from tcpscape.studies.study import WORKS
from tcpscape.studies.verdict import ClaimVerdict, JudgedClaim

if TYPE_CHECKING:
    import polars as pl

FAILURES_FIRST: Sequence[ClaimVerdict] = ("not reproduced", "not decidable", "reproduced")
"""The order of verdicts on a page."""
CLASSES = {"reproduced": "yes", "not reproduced": "no", "not decidable": "open"}
"""Verdict → its CSS class."""
COLUMNS = ("verdict", "claim", "measured [95 %]", "explained by its set-up", "source")


def section(claims: Sequence[JudgedClaim]) -> Claims | None:
    """The claims as a part of a page; None without any."""
    if not claims:
        return None
    by_verdict = {verdict: [c for c in claims if c.verdict == verdict] for verdict in FAILURES_FIRST}
    folded = by_verdict["reproduced"]
    shown = [c for verdict in FAILURES_FIRST if verdict != "reproduced" for c in by_verdict[verdict]]
    return Claims(
        tally=[(verdict, len(of_verdict), CLASSES[verdict]) for verdict, of_verdict in by_verdict.items() if of_verdict],
        open=_table(shown, "Not reproduced, or not decided by these runs") if shown else None,
        reproduced=_table(folded, "Reproduced") if folded else None,
        works=[(name, WORKS[name]) for name in dict.fromkeys(c.claim.work for c in claims)],
    )


def _table(claims: Sequence[JudgedClaim], caption: str) -> PageTable:
    """Claims with their verdict, the measured value, what explains the published number, and the source (a name of `WORKS`)."""
    rows = [
        [tables.word(c.verdict, kind=CLASSES[c.verdict]), *map(tables.word, (c.claim.text, c.measured, c.why, c.claim.work))] for c in claims
    ]  # fmt: skip
    return PageTable("claims", caption, COLUMNS, rows, left=len(COLUMNS), stacked=True).dense()


def frame(claims: Sequence[JudgedClaim]) -> pl.DataFrame:
    """One row for each claim, in the study's order."""
    import polars as pl

    columns = ("verdict", "claim", "measured", "setup", "work", "measure")
    rows = [(c.verdict, c.claim.text, c.measured, c.claim.setup, c.claim.work, c.claim.measure) for c in claims]
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
