"""Claims about the rig itself, which no run of ours can decide: what is known about them is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpscape.studies.verdicts import Judged

if TYPE_CHECKING:
    from tcpscape.studies.run import Result
    from tcpscape.studies.study import Claim


def said(_: Result, claim: Claim) -> Judged:
    """Not decidable by running; the claim's `setup` says what is known."""
    return Judged(claim, "not decidable", claim.setup)
