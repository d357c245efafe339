"""What an advice holds: the results of each congestion control, the decision, and what it rests on. Its words are in :mod:`tcpscape.words.advice`."""

from __future__ import annotations

from dataclasses import dataclass

from tcpscape.campaign.groups import Viewing
from tcpscape.campaign.outcome import Outcome
from tcpscape.controls.deployment import Deployment, deployment
from tcpscape.findings.advice.assumptions import Assumption
from tcpscape.findings.advice.choice import Decision, Goal
from tcpscape.findings.advice.levers import Lever
from tcpscape.findings.cliff import levels
from tcpscape.findings.cliff.levels import Cliff
from tcpscape.findings.damage import Damage
from tcpscape.scenario.options import Conditions
from tcpscape.stats import Estimate
from tcpscape.text.table import ShownAsTable

NEAR = 0.8
"""Share of the jitter at the lower end of the cliff's interval from which a stable path is near the cliff."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingNumbers:
    """One congestion control on the path of an advice, as the runs and the document have it."""

    cca: str
    """Congestion control."""
    obstacle: str
    """Why it cannot be deployed; empty where it can."""
    goodput: Estimate
    """Mean goodput, Mbit/s."""
    added_rtt: Estimate
    """Mean over the trials of the RTT's 95th percentile less the propagation RTT, ms; NaN where the engine does not see it."""
    median: Estimate
    """Median goodput, Mbit/s."""
    cv: Estimate
    """Coefficient of variation of the goodput."""
    against_best: Estimate
    """Goodput / that of the congestion control with the highest one that can be deployed, paired."""
    retransmits: Estimate
    """Segments sent again, mean over the trials."""
    limited_by: dict[str, float]
    """Cause → mean share of the time during which it limited the flows, a fraction; the largest first."""
    needed: int
    """Measurements for an interval of ± 10 %."""
    damage: tuple[Damage, ...]
    """What each impairment of the path costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing(StandingNumbers):
    """The results of one congestion control on the path."""

    cliff: Cliff

    @property
    def side(self) -> levels.Side:
        """The side of its measured cliff on which the path stands."""
        return levels.side(self.cliff.here) if self.cliff.here else "stable"

    @property
    def stands(self) -> str:
        """:attr:`side`, or that a stable path is near the cliff."""
        edge, here = self.cliff.edge, self.cliff.here
        is_near = self.side == "stable" and edge is not None and here is not None and here.at >= NEAR * edge.low
        return "near the cliff" if is_near else self.side


@dataclass(frozen=True, slots=True)
class OtherOrder:
    """What the path would carry if jitter treated the order of packets the other way."""

    order: str
    """As `--order` has it: `reorder`, `keep`."""
    decision: Decision | None
    """None where the engine cannot run it."""
    goodputs: dict[str, Estimate]
    """Congestion control → mean, Mbit/s."""
    views: dict[str, Viewing]
    """Congestion control → what a viewer sees; empty without players."""
    changes: bool
    """Whether another congestion control would be recommended, as far as the runs decide."""


@dataclass(frozen=True, slots=True, repr=False)
class Advice(ShownAsTable):
    """The advice for a path. An interpreter and a notebook show its ranking."""

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
    levers: tuple[Lever, ...]
    """Larger buffers, where the ranking blames them; the highest goodput first."""
    assumptions: tuple[Assumption, ...]
    """What is assumed of the path, and the decisions where it is otherwise."""
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
    def lever(self) -> Lever | None:
        """The setting with the highest goodput among those that are worth a change; None where there is none."""
        return next((lever for lever in self.levers if lever.is_worthwhile), None)

    @property
    def is_setting_first(self) -> bool:
        """Whether that setting brings more than the choice of a congestion control."""
        d = self.decision
        return self.lever is not None and self.lever.against_choice.value >= (
            d.gain.value if d.gain and d.verdict == "better" and d.leader == d.choice else 1
        )

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
