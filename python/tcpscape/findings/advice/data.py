"""What an advice holds: the path, the goal, the results of each congestion control, and the decision."""

from __future__ import annotations

from dataclasses import dataclass

from tcpscape.campaign.outcome import Outcome
from tcpscape.controls.deployment import Deployment, deployment
from tcpscape.findings.advice.choice import Decision, Goal
from tcpscape.findings.advice.standing import OtherOrder, Standing
from tcpscape.scenario.conditions import Conditions
from tcpscape.stats import Estimate
from tcpscape.text.table import ShownAsTable


@dataclass(frozen=True, slots=True, repr=False)
class AdviceData(ShownAsTable):
    """The content of an advice, without its words."""

    path: Conditions
    goal: Goal
    ranking: tuple[Standing, ...]
    """The best by the goal first, also those that cannot be deployed."""
    decision: Decision
    best: str
    """The congestion control with the highest goodput among those that can be deployed: what `against_best` is of."""
    other_order: OtherOrder | None
    """None without jitter."""
    shared: Estimate | None
    """Share of the goodput that flows under the choice get beside as many under Linux's default, fraction; None without a bottleneck, and where the
    default is the choice."""
    taken: tuple[str, ...]
    """What of the path comes from a file, and what is assumed all the same; sentences."""
    left_out: tuple[str, ...]
    """Ingredients of the path without which the engine cannot run it."""
    caveats: tuple[str, ...]
    trials: int
    """Number of trials that the answer rests on."""
    outcome: Outcome
    """The trials of the path itself, a cell for each congestion control."""

    @property
    def choice(self) -> str | None:
        """The congestion control to use; None where nothing can be recommended."""
        return self.decision.choice

    @property
    def jitter_ratio(self) -> float:
        """Jitter / RTT."""
        return self.path.jitter / self.path.rtt

    @property
    def deployment(self) -> Deployment | None:
        """What to type; None where nothing can be recommended."""
        return deployment(self.choice) if self.choice else None

    @property
    def command(self) -> str:
        """The shell commands that set the congestion control until the next start; empty where nothing has to change."""
        return self.deployment.command if self.deployment else ""

    def standing(self, cca: str) -> Standing:
        """The results of one congestion control."""
        return next(s for s in self.ranking if s.cca == cca)
