"""The choice of a queue and a congestion control by what a call's listeners say: the mean opinion score of the E-model (ITU-T G.107).

Scores within :data:`WORTH` are as good. Among those that are, what changes least is recommended: first nothing; then a queue under the default
control, which protects a call from every machine's uploads; then another control. Of queues the first whose uploads carry :data:`KEPT` of the most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcpscape.controls.deployment import DEFAULT
from tcpscape.findings.calls.link import AS_IT_IS, Remedy
from tcpscape.stats import Estimate

WORTH = 0.1
"""Difference of two scores that nobody hears."""
KEPT = 0.95
"""Share of the uploads' best goodput that makes two queues as good."""
SATISFACTION = (
    (4.34, "everybody is very satisfied"), (4.03, "everybody is satisfied"), (3.60, "some are dissatisfied"), (3.10, "many are dissatisfied"),
    (2.58, "nearly everybody is dissatisfied"),
)  # fmt: skip
"""Least score of each class of satisfaction (ITU-T G.107, Annex B)."""
LOWEST = "nobody can talk"
BEARABLE = SATISFACTION[-1][0]
"""Least score of a call that some can bear."""


def satisfaction(score: float) -> str:
    """What users say of a call with this score."""
    return next((text for least, text in SATISFACTION if score >= least), LOWEST)


@dataclass(frozen=True, slots=True)
class CallCase:
    """The call beside uploads under one congestion control, behind one queue."""

    cca: str
    remedy: Remedy | None
    score: Estimate
    """The worse of the call's two ways, mean opinion score, 1 to 4.5; mean over the trials."""
    delay: Estimate
    """95th percentile of the one-way delay of the call's packets on the way up, ms."""
    lost: Estimate
    """Share of the call's packets that were lost, the worse way."""
    upload: Estimate
    """The uploads' goodput, Mbit/s."""

    @property
    def queue(self) -> str:
        """What the case's queue is called."""
        return self.remedy.name if self.remedy else AS_IT_IS


def choose(cases: Sequence[CallCase]) -> CallCase:
    """The case to recommend."""
    best = max(case.score.value for case in cases)
    alike = [case for case in cases if case.score.value >= best - WORTH]
    groups = ([c for c in alike if c.remedy is None and c.cca == DEFAULT], [c for c in alike if c.cca == DEFAULT], alike)
    candidates = next(group for group in groups if group)
    most = max(c.upload.value for c in candidates)
    return next(c for c in candidates if c.upload.value >= KEPT * most)


def without_queue(cases: Sequence[CallCase]) -> CallCase:
    """The best that a congestion control alone can do, on the link as it is."""
    return max((case for case in cases if case.remedy is None), key=lambda case: case.score.value)
