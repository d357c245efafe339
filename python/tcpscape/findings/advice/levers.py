"""What a congestion control would do with one setting changed: buffers that held it, and settings that can matter on its path.

A window of TCP is the least of the congestion window, the receiver's window and the room in the send buffer. Where one of the last two held a
flow for more than :data:`~tcpscape.findings.advice.settings.BLAMED` of its time, another congestion control cannot help as much as that buffer.
The other settings are tried with few runs first, and with more where these leave a worthwhile gain possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tcpscape import metrics, stats
from tcpscape.controls.deployment import DEFAULT, Deployment, Host
from tcpscape.findings.advice import settings
from tcpscape.findings.advice.choice import WORTH, CandidateRuns, Decision, Goal, compared
from tcpscape.findings.advice.settings import CAUSES, LargerBuffers, OwnQueue, Setting
from tcpscape.metrics.flows import limits
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.trial import Trial

FULL = 0.5
"""Share of the time from which a larger buffer still holds the flow."""
MOST = 3
"""Most congestion controls that run with larger buffers, those with the highest goodput."""
LeverVerdict = Literal["better", "as good", "worse", "undecided"]
"""How a setting compares with the recommended congestion control as it is."""
PROBES = 3
"""Runs of another setting that show whether more are worth it."""


@dataclass(frozen=True, slots=True)
class Lever:
    """A congestion control with one setting changed, the rest of the path as it is."""

    cca: str
    """Congestion control."""
    setting: Setting
    """What is changed."""
    goodput: Estimate
    """Mean goodput, Mbit/s."""
    gain: Estimate
    """Goodput / that of the same congestion control on the path as it is, paired."""
    own_lead: Estimate
    """The same by the goal: ratio of the goodputs, or the difference in the goal's unit, positive where the setting is better."""
    verdict: LeverVerdict
    """How this compares with the recommended congestion control as it is, by the goal."""
    lead: Estimate
    """By how much: ratio of the goodputs, or the difference in the goal's unit, positive where this is better; paired."""
    added_rtt: Estimate
    """Mean over the trials of the RTT's 95th percentile less the propagation RTT, ms; NaN where the engine does not see it."""
    less_rtt: Estimate
    """By how much that is less than under the recommended congestion control as it is, ms; paired."""
    limited_by: dict[str, float]
    """Cause → mean share of the time during which it limits the flows then, a fraction; the largest first."""

    @property
    def is_worthwhile(self) -> bool:
        """Whether the runs show that it is better by the goal than the recommended congestion control as it is.

        What fills the larger buffer too, a program that reads slowly for example, gains nothing that lasts.
        """
        return self.verdict == "better" and not self.is_full

    @property
    def is_as_good(self) -> bool:
        """Whether it does as well as the recommended congestion control without another one: Linux's default, and much better than as it is."""
        return self.cca == DEFAULT and self.verdict == "as good" and self.gain.n > 1 and self.gain.low > WORTH

    @property
    def is_queue(self) -> bool:
        """Whether it is another queue at the bottleneck, which is shown whatever it brings: its user asked."""
        return isinstance(self.setting, OwnQueue)

    @property
    def is_full(self) -> bool:
        """Whether a larger buffer holds the flow for most of its time, too."""
        buffers = self.setting.buffers if isinstance(self.setting, LargerBuffers) else ()
        return sum(self.limited_by.get(CAUSES[buffer], 0.0) for buffer in buffers) > FULL

    @property
    def deployments(self) -> tuple[tuple[Host, Deployment], ...]:
        """What to type, on which host."""
        return self.setting.deployments()


Run = Callable[[Scenario, int | None], Sequence[Trial]]
"""Trials of a scenario under the first of the comparison's seeds, so many of them; None is as many as a lever takes."""


@dataclass(frozen=True)
class Bench:
    """What levers are tried on: a path, with the congestion control that is recommended for it and the goal."""

    path: Conditions
    choice: str
    goal: Goal
    run: Run

    def pull(self, cca: str, setting: Setting, count: int | None = None) -> Lever:
        """What `cca` does with a setting, from `count` runs."""
        trials = self.run(setting.on(self.path.scenario(cca)), count)
        own, chosen = (self.run(self.path.scenario(name), count) for name in (cca, self.choice))
        added = metrics.find("added_rtt").of
        goodputs, lead = [t.goodput_mbps for t in trials], self._compared(trials, chosen)
        return Lever(
            cca=cca,
            setting=setting,
            goodput=stats.mean(goodputs, "Mbit/s"),
            gain=stats.ratio(goodputs, [t.goodput_mbps for t in own]),
            own_lead=_lead(self._compared(trials, own)),
            verdict=self._verdict(lead, goodputs, chosen),
            lead=_lead(lead),
            added_rtt=stats.mean([added(t) for t in trials], "ms"),
            less_rtt=stats.difference([added(t) for t in chosen], [added(t) for t in trials], "ms"),
            limited_by=limits([f for t in trials for f in t.flows]),
        )

    def larger_buffers(self, cca: str, buffers: Sequence[settings.Buffer]) -> Lever:
        """What `cca` does with these buffers larger, and with the other one too where that holds it then."""
        larger = settings.larger_buffers(self.path, tuple(buffers))
        first = self.run(larger.on(self.path.scenario(cca)), 1)
        held = settings.blamed(limits([f for t in first for f in t.flows]))
        return self.pull(cca, settings.larger_buffers(self.path, tuple(b for b in CAUSES if b in buffers or b in held)))

    def other(self, cca: str, setting: Setting) -> Lever:
        """What `cca` does with another setting, from few runs where these leave no worthwhile gain over what it does as it is."""
        few = self.pull(cca, setting, PROBES)
        own = few.own_lead
        is_hopeless = (own.high if own.n > 1 else own.value) < self._neutral + self._worth
        return few if is_hopeless and not few.is_queue else self.pull(cca, setting)

    @property
    def _neutral(self) -> float:
        return float(self.goal.is_ratio)

    @property
    def _worth(self) -> float:
        return self.goal.worth(self.path.rtt / 1e6)

    def _compared(self, changed: Sequence[Trial], others: Sequence[Trial]) -> Decision:
        """The lead of the runs with a setting over others, by the goal."""
        of = metrics.find(self.goal.metric).of
        a, b = (
            CandidateRuns(name, [t.goodput_mbps for t in runs], [of(t) for t in runs]) for name, runs in (("changed", changed), ("other", others))
        )
        return compared(a, b, a, self.goal, self.path.rtt / 1e6)

    def _verdict(self, lead: Decision, goodputs: Sequence[float], chosen: Sequence[Trial]) -> LeverVerdict:
        """The verdict, which is none of these where too little goodput is left for the goal, or the setting does less."""
        if sum(goodputs) < self.goal.keeps * sum(t.goodput_mbps for t in chosen):
            return "worse"
        if lead.verdict == "as good":
            return "as good" if lead.gain and lead.gain.value > self._neutral - self._worth else "worse"
        return "better" if lead.verdict == "better" else "undecided"


def _lead(comparison: Decision) -> Estimate:
    """By how much one is ahead."""
    if comparison.gain is None:
        raise ValueError("two that were compared have a difference")
    return comparison.gain
