"""The choice among congestion controls that ran under the same seeds: by a goal, with a verdict that follows from the interval of the difference.

A congestion control is *better* where the whole interval of its lead is on its side and the lead is worthwhile; two are *as good* where the lead is
not worthwhile and the interval is on one side or ends before twice what is worthwhile; anything else is *undecided*, and :attr:`Decision.more`
says how many further runs would tell. Linux's default is kept unless another one is better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tcpscape import stats
from tcpscape.controls.deployment import DEFAULT
from tcpscape.errors import instead, refuse
from tcpscape.stats import Estimate

if TYPE_CHECKING:
    from tcpscape.scenario.options import Conditions

WORTH = 1.05
"""Ratio of goodputs below which a change is not worth it."""
WORTH_RTT = 0.05
"""Difference of the added RTT below which a change is not worth it, as a share of the propagation RTT …"""
WORTH_MS = 1.0
"""… and in ms, whichever is more."""
WORTH_QOE = 0.1
"""Difference of a viewer's QoE, Mbit/s, below which a change is not worth it."""
KEPT = 0.5
"""Share of the best goodput that a congestion control has to keep to be chosen for its delay."""

ChoiceVerdict = Literal["better", "as good", "undecided", "only", "nothing carried", "none deployable"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a user wants of a congestion control."""

    name: str
    metric: str
    more_is_better: bool = True
    is_ratio: bool = False
    """Whether two are compared by the ratio of their means; otherwise by their difference."""
    unit: str = ""
    keeps: float = 0.0
    """Share of the best goodput that is required."""

    def worth(self, rtt_ms: float) -> float:
        """The lead from which a change is worth it, in units of the comparison."""
        if self.is_ratio:
            return WORTH - 1
        return WORTH_QOE if self.more_is_better else max(WORTH_MS, WORTH_RTT * rtt_ms)


GOALS: Mapping[str, Goal] = {
    g.name: g
    for g in (
        Goal("goodput", "goodput", is_ratio=True),
        Goal("delay", "added_rtt", more_is_better=False, unit="ms", keeps=KEPT),
        Goal("video", "video_qoe", unit="Mbit/s"),
    )
}
"""Every goal by name."""


def goal_of(name: str | None, path: Conditions) -> Goal:
    """The goal of this name; without one, video where the receiver is a player, otherwise goodput.

    :raises ScenarioError: one line, where there is none, or video without a player.
    """
    has_player = path.flow.player is not None
    if name is None:
        return GOALS["video" if has_player else "goodput"]
    if name not in GOALS:
        refuse("goal", f"{name!r} is unknown", instead(name, [*GOALS, "calls"]))
    if name == "video" and not has_player:
        refuse("goal", "video needs a player whose viewer it is about", "add --player 1,2.5,5,8,16mbit")
    return GOALS[name]


@dataclass(frozen=True, slots=True)
class CandidateRuns:
    """The runs of a congestion control, in the seeds' order."""

    cca: str
    goodputs: Sequence[float]
    """Mbit/s."""
    values: Sequence[float]
    """The goal's metric."""
    deployable: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """Which congestion control to use, and the comparison that decides it."""

    choice: str | None
    """None where nothing can be recommended."""
    verdict: ChoiceVerdict
    """How certain that is."""
    leader: str = ""
    """The better one of the two that were compared, by the mean."""
    follower: str = ""
    """The other one."""
    gain: Estimate | None = None
    """Of the leader over the follower: ratio of the means, or difference in the goal's unit, positive where the leader is better; paired."""
    alike: float | None = None
    """Difference within which two are alike; None of a ratio."""
    by: str = ""
    """The goal that decided between those that are as good by the goal itself; empty where that decided."""

    @property
    def more(self) -> int:
        """Further runs of each that would probably decide, where it is undecided; 0 elsewhere."""
        return stats.runs_missing(self.gain, self.alike) if self.gain and self.verdict == "undecided" else 0


def ranked(candidates: Sequence[CandidateRuns], goal: Goal) -> list[CandidateRuns]:
    """The candidates, the best by the goal first; those that do not keep the required goodput behind all that do."""
    enough = _required(candidates, goal)
    sign = -1.0 if goal.more_is_better else 1.0

    def key(c: CandidateRuns) -> tuple[bool, bool, float]:
        value = _mean(c.values)
        return _mean(c.goodputs) < enough, math.isnan(value), sign * value

    return sorted(candidates, key=key)


def decide(candidates: Sequence[CandidateRuns], goal: Goal, rtt_ms: float, default: str = DEFAULT) -> Decision:
    """The decision among the candidates that can be deployed; among those that add as little delay as the best, by their goodput.

    `default` is what is kept unless another one is better.
    """
    decision = _decide(candidates, goal, rtt_ms, default)
    if not goal.keeps or decision.verdict != "as good":
        return decision
    best, *others = [c for c in ranked(candidates, goal) if c.deployable and _mean(c.goodputs) >= _required(candidates, goal)]
    alike = [best, *(c for c in others if compared(best, c, best, goal, rtt_ms).verdict == "as good")]
    second = _decide([replace(c, values=c.goodputs) for c in alike], GOALS["goodput"], rtt_ms, default)
    return replace(second, by="goodput") if second.verdict == "better" and second.choice != decision.choice else decision


def _decide(candidates: Sequence[CandidateRuns], goal: Goal, rtt_ms: float, kept: str) -> Decision:
    """The decision by the goal alone."""
    usable = [c for c in candidates if c.deployable]
    if not usable:
        return Decision(None, "none deployable")
    if max(_mean(c.goodputs) for c in usable) <= 0:
        return Decision(None, "nothing carried")
    enough = _required(usable, goal)
    order = [c for c in ranked(usable, goal) if _mean(c.goodputs) >= enough and not math.isnan(_mean(c.values))]
    if len(order) < 2:
        return Decision(order[0].cca if order else None, "only")
    default = next((c for c in order if c.cca == kept), None)
    if default is None or default is order[0]:
        return compared(order[0], order[1], order[0], goal, rtt_ms)
    leads = [compared(c, default, c, goal, rtt_ms) for c in order[: order.index(default)]]
    better = next((d for d in leads if d.verdict == "better"), None)
    if better:
        return better
    first = next((d for d in leads if d.verdict == "undecided"), leads[0])
    return Decision(default.cca, first.verdict, first.leader, default.cca, first.gain, first.alike)


def compared(a: CandidateRuns, b: CandidateRuns, choice: CandidateRuns, goal: Goal, rtt_ms: float) -> Decision:
    """The lead of `a` over `b`, judged."""
    pairs = [(x, y) for x, y in zip(a.values, b.values, strict=True) if not math.isnan(x + y)]
    of_a, of_b = [x for x, _ in pairs], [y for _, y in pairs]
    above, below = (of_a, of_b) if goal.more_is_better else (of_b, of_a)
    gain = stats.ratio(of_a, of_b) if goal.is_ratio else stats.difference(above, below, goal.unit)
    neutral, worth = float(goal.is_ratio), goal.worth(rtt_ms)
    lead = gain.value - neutral
    if math.isnan(lead):  # the follower carries nothing
        return Decision(choice.cca, "better", a.cca, b.cca, gain)
    if gain.n > 1 and lead >= worth and gain.low > neutral:
        return Decision(choice.cca, "better", a.cca, b.cca, gain)
    if gain.n > 1 and lead < worth and (gain.high < neutral + 2 * worth or gain.low > neutral):
        return Decision(choice.cca, "as good", a.cca, b.cca, gain)
    return Decision(choice.cca, "undecided", a.cca, b.cca, gain, None if goal.is_ratio else worth)


def _required(candidates: Sequence[CandidateRuns], goal: Goal) -> float:
    """The goodput that a candidate has to keep, Mbit/s."""
    best = max((_mean(c.goodputs) for c in candidates if c.deployable), default=0.0)
    return goal.keeps * best


def _mean(values: Sequence[float]) -> float:
    """Of those that are known."""
    known = stats.known(values)
    return sum(known) / len(known) if known else math.nan
