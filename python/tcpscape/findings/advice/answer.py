"""What an advice holds: the results of each congestion control, the decision, and what it rests on. Its words are in :mod:`tcpscape.words.advice`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tcpscape.campaign.groups import Viewing
from tcpscape.campaign.outcome import Outcome
from tcpscape.controls.deployment import Deployment, deployment
from tcpscape.findings.advice.assumptions import Assumption
from tcpscape.findings.advice.choice import GOALS, Decision, Goal
from tcpscape.findings.advice.levers import Lever
from tcpscape.findings.cliff import levels
from tcpscape.findings.cliff.levels import Cliff
from tcpscape.findings.damage import Damage
from tcpscape.scenario.options import Conditions
from tcpscape.stats import Estimate
from tcpscape.text.table import ShownAsTable

MOST_SETTINGS = 3
"""Most settings beside the congestion control that are told with what to type."""
EQUAL = 0.5
"""Share of one of two equal groups."""
NEAR = 0.8
"""Share of the jitter at the lower end of the cliff's interval from which a stable path is near the cliff."""


def best(levers: Sequence[Lever], lead: Callable[[Lever], float], worth: float) -> Lever | None:
    """The lever that leads; of those that are behind it by less than is worthwhile, the one with the highest goodput. None of none."""
    most = max((lead(lever) for lever in levers), default=0.0)
    return max((lever for lever in levers if lead(lever) > most - worth), key=lambda lever: lever.goodput.value, default=None)


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

    cliff: Cliff | None
    """Its cliff along jitter; None where it was not searched, which a path without jitter allows."""

    @property
    def side(self) -> levels.Side:
        """The side of its measured cliff on which the path stands."""
        return levels.side(self.cliff.here) if self.cliff and self.cliff.here else "stable"

    @property
    def stands(self) -> str:
        """:attr:`side`, or that a stable path is near the cliff."""
        edge, here = (self.cliff.edge, self.cliff.here) if self.cliff else (None, None)
        is_near = self.side == "stable" and edge is not None and here is not None and here.at > 0 and here.at >= NEAR * edge.low
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


@dataclass(frozen=True, slots=True)
class Shared:
    """What flows under a congestion control get beside as many under Linux's default."""

    share: Estimate
    """Their share of the goodput, a fraction."""
    harm: Estimate
    """How much less the default's flows carry than beside as many of their own kind, a fraction of that (Ware et al. 2019); below 0: more."""

    @property
    def takes_more(self) -> bool:
        """Whether the runs show that they take more than their share."""
        return self.share.n > 1 and self.share.low > EQUAL


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
    shared: Shared | None
    """What flows under the choice get beside as many under Linux's default; None without a bottleneck, and where the default is the choice."""
    levers: tuple[Lever, ...]
    """Congestion controls with one setting changed, those settings that may matter on this path; the largest lead first."""
    own_queue: bool
    """Whether the queue of the bottleneck is the user's own, so that others are tried there."""
    assumptions: tuple[Assumption, ...]
    """What is assumed of the path, and the decisions where it is otherwise."""
    taken: tuple[str, ...]
    """What of the path comes from a file, and what is assumed all the same; sentences."""
    cliff_runs: int
    """First trials of each level of a cliff."""
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
        """The best setting among those that are worth a change; None where there is none."""
        return best(self.levers_that_gain, lambda lever: lever.lead.value, self.goal.worth(self.path.rtt / 1e6))

    @property
    def levers_that_gain(self) -> tuple[Lever, ...]:
        """Those that are worth a change."""
        return tuple(lever for lever in self.levers if lever.is_worthwhile)

    @property
    def queue_of_least_delay(self) -> Lever | None:
        """Of the queues that were tried at a bottleneck of the user's own the one under which the least delay is added; None without any."""
        tried = [lever for lever in self.levers if lever.is_queue and lever.less_rtt.n > 1]
        return best(tried, lambda lever: lever.less_rtt.value, GOALS["delay"].worth(self.path.rtt / 1e6))

    @property
    def worthwhile(self) -> tuple[Lever, ...]:
        """The best few settings that are worth a change, one of each kind; then what does as well without another control."""
        ranked = [*([self.lever] if self.lever else []), *self.levers_that_gain, *(lever for lever in self.levers if lever.is_as_good)]
        return tuple({lever.setting.kind: lever for lever in reversed(ranked)}.values())[::-1][:MOST_SETTINGS]

    @property
    def is_setting_first(self) -> bool:
        """Whether the best setting brings more than the choice of a congestion control."""
        d, neutral = self.decision, 1.0 if self.goal.is_ratio else 0.0
        gain = d.gain.value if d.gain and d.verdict == "better" and d.leader == d.choice else neutral
        return self.lever is not None and self.lever.own_lead.value >= gain

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
