"""Settings beside the congestion control: what each changes, where it may matter, what to type, and what a control does with it.

A window of TCP is the least of the congestion window, the receiver's window and the room in the send buffer. Where one of the last two held a
flow for more than :data:`BLAMED` of its time, another congestion control cannot help as much as that buffer. The other settings are tried with few
runs first, and with more where these leave a worthwhile gain possible.

A setting is one class here, with a `kind` of its own, and a name in `Setting`. Sources: tcp(7), socket(7), ip-sysctl, tc-fq(8), tc-fq_codel(8),
RFC 3168 (ECN), RFC 6928 (the initial window), RFC 7661 (a window after a pause), RFC 8290 (fq_codel). `TCP_NOTSENT_LOWAT` is
none of them: it bounds what waits in the sender's socket, which neither the goodput nor the RTT contains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tcpscape import metrics, stats
from tcpscape.controls import deployment, spelling
from tcpscape.controls.deployment import DEFAULT, Deployment, Host
from tcpscape.findings.advice.choice import WORTH, CandidateRuns, Decision, Goal, compared
from tcpscape.metrics.flows import limits
from tcpscape.reading.files import MIB
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.path import Link
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.trial import Trial

Buffer = Literal["receive", "send"]
"""A buffer of TCP: at the host that receives the data, at the host that sends them."""
BLAMED = 0.1
"""Share of the time from which a buffer is to blame."""
SIZE = 64 * MIB
"""Largest size that is tried, bytes, where the path has less …"""
TIMES = 4
"""… and the multiple of what it has otherwise."""
CAUSES: Mapping[Buffer, str] = {"receive": "rwnd", "send": "sndbuf"}
"""Buffer → the cause in what limited a flow."""
PACED = ("bbr", "bbr3", "prague")
"""Congestion controls that pace by themselves."""
OWN_QUEUES = ("fq_codel", "cake")
"""Queues that a bottleneck of the user's own may have instead, the one that every kernel has first."""
FEW_ROUND_TRIPS = 50
"""A trial of fewer is mostly a connection's start."""
MARKING = ("fq_codel", "cake", "dualpi2")
"""Queues that mark packets of connections that negotiate ECN instead of dropping them …"""
MARKING_IF_TOLD = ("codel", "pie", "fq_pie", "red", "choke")
"""… and those that do so with tc's word `ecn`."""


@dataclass(frozen=True, slots=True)
class LargerBuffers:
    """Buffers of TCP that grow by themselves up to a larger size."""

    buffers: tuple[Buffer, ...]
    """What is larger."""
    size: int
    """Largest size of each, bytes."""
    unset: tuple[Buffer, ...] = ()
    """Buffers whose size the program sets on the path as it is, and does not set here."""
    kind: Literal["buffers"] = "buffers"
    """What is set."""

    def on(self, scenario: Scenario) -> Scenario:
        """The scenario with these buffers."""
        kernel: dict[str, Any] = {"tcp_rmem_max": self.size} if "receive" in self.buffers else {}
        kernel |= {"tcp_wmem_max": self.size} if "send" in self.buffers else {}
        fixed = {name: 0 for buffer, name in (("receive", "rcvbuf"), ("send", "sndbuf")) if buffer in self.buffers}
        flows = tuple(flow.model_copy(update=fixed) for flow in scenario.flows)
        return scenario.model_copy(update={"kernel": scenario.kernel.model_copy(update=kernel), "flows": flows})

    def deployments(self) -> tuple[tuple[Host, Deployment], ...]:
        """What to type for each buffer, on its own host."""
        hosts: Mapping[Buffer, Host] = {"receive": "receiver", "send": "sender"}
        return tuple((hosts[buffer], deployment.larger_buffer(buffer, self.size)) for buffer in self.buffers)


@dataclass(frozen=True, slots=True)
class Pacing:
    """The qdisc fq at the sender, which paces every congestion control."""

    kind: Literal["pacing"] = "pacing"
    """What is set."""

    @staticmethod
    def on(scenario: Scenario) -> Scenario:
        """The scenario with fq at the sender's egress."""
        return scenario.model_copy(update={"forward": ("fq", *scenario.forward)})

    @staticmethod
    def deployments() -> tuple[tuple[Host, Deployment], ...]:
        """What to type at the sender."""
        return (("sender", deployment.fq_at_the_sender()),)


@dataclass(frozen=True, slots=True)
class Ecn:
    """Explicit congestion notification: the bottleneck's queue marks packets instead of dropping them."""

    kind: Literal["ecn"] = "ecn"
    """What is set."""

    @staticmethod
    def on(scenario: Scenario) -> Scenario:
        """The scenario in which connections negotiate it."""
        return scenario.model_copy(update={"ecn": True})

    @staticmethod
    def deployments() -> tuple[tuple[Host, Deployment], ...]:
        """What to type at the host that opens the connections."""
        return (("client", deployment.explicit_notification()),)


@dataclass(frozen=True, slots=True)
class WindowAfterPause:
    """The congestion window stays as it is while an application pauses."""

    kind: Literal["window_after_pause"] = "window_after_pause"
    """What is set."""

    @staticmethod
    def on(scenario: Scenario) -> Scenario:
        """The scenario without a slow start after a pause."""
        return scenario.model_copy(update={"kernel": scenario.kernel.model_copy(update={"slow_start_after_idle": False})})

    @staticmethod
    def deployments() -> tuple[tuple[Host, Deployment], ...]:
        """What to type at the sender."""
        return (("sender", deployment.window_after_pause()),)


@dataclass(frozen=True, slots=True)
class InitialWindow:
    """A larger window at the start of a connection."""

    segments: int = 32
    """Its size, segments; Linux's own is 10 (RFC 6928)."""
    kind: Literal["initial_window"] = "initial_window"
    """What is set."""

    def on(self, scenario: Scenario) -> Scenario:
        """The scenario whose connections begin with this window."""
        return scenario.model_copy(update={"kernel": scenario.kernel.model_copy(update={"initcwnd": self.segments})})

    def deployments(self) -> tuple[tuple[Host, Deployment], ...]:
        """What to type at the sender."""
        return (("sender", deployment.initial_window(self.segments)),)


@dataclass(frozen=True, slots=True)
class OwnQueue:
    """Another queue at the bottleneck, where that is the user's own."""

    queue: str
    """tc's name of the queue."""
    kind: Literal["queue"] = "queue"
    """What is set."""

    def on(self, scenario: Scenario) -> Scenario:
        """The scenario with this queue, of its own size, at the bottleneck."""
        links = tuple(hop.model_copy(update={"queue": self.queue, "buffer": None}) if isinstance(hop, Link) else hop for hop in scenario.bottleneck)
        return scenario.model_copy(update={"bottleneck": links})

    def deployments(self) -> tuple[tuple[Host, Deployment], ...]:
        """What to type at the router whose queue it is."""
        return (("router", deployment.queue_of_a_device(self.queue)),)


Setting = LargerBuffers | Pacing | Ecn | WindowAfterPause | InitialWindow | OwnQueue
"""A setting beside the congestion control."""


def blamed(limited_by: Mapping[str, float]) -> tuple[Buffer, ...]:
    """The buffers that held a flow for a good part of its time."""
    return tuple(buffer for buffer, cause in CAUSES.items() if limited_by.get(cause, 0.0) >= BLAMED)


def for_path(path: Conditions, buffers: tuple[Buffer, ...]) -> LargerBuffers:
    """These buffers with a size that is ample for the path."""
    kernel, flow = path.kernel, path.flow
    size = max(SIZE, *(TIMES * (size or 0) for size in (kernel.tcp_rmem_max, kernel.tcp_wmem_max, flow.rcvbuf, flow.sndbuf)))
    fixed = {"receive": flow.rcvbuf, "send": flow.sndbuf}
    return LargerBuffers(buffers, size, tuple(buffer for buffer in buffers if fixed[buffer]))


def may_matter(path: Conditions, cca: str, resent: float, *, own_queue: bool) -> list[Setting]:
    """The settings besides buffers that can change what a congestion control does on a path; `resent`: segments that it sent again."""
    rules: tuple[tuple[Setting, Callable[[], bool]], ...] = (
        (Pacing(), lambda: bool(path.rate) and path.forward_at == "router" and resent > 0 and spelling.split(cca)[0] not in PACED),
        (Ecn(), lambda: bool(path.rate) and _marks(path.queue)),
        (InitialWindow(), lambda: path.kernel.initcwnd is None and (is_short(path) or _pauses(path))),
        (WindowAfterPause(), lambda: path.kernel.slow_start_after_idle is not False and _pauses(path)),
        *((OwnQueue(queue), lambda: own_queue) for queue in OWN_QUEUES if queue != path.queue),
    )
    return [setting for setting, matters in rules if matters()]


def is_short(path: Conditions) -> bool:
    """Whether a trial is so few round trips that the start of a connection is a good part of it."""
    return path.duration < FEW_ROUND_TRIPS * path.rtt


def _marks(queue: str | None) -> bool:
    """Whether a queue marks packets of connections that negotiate ECN."""
    words = (queue or "").split()
    if "noecn" in words or not words:
        return False
    return words[0] in MARKING or (words[0] in MARKING_IF_TOLD and "ecn" in words)


def _pauses(path: Conditions) -> bool:
    """Whether the sender has nothing to send from time to time."""
    app = path.flow.app
    return path.flow.player is not None or bool(app.rate or app.response or app.on)


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

    def larger_buffers(self, cca: str, buffers: Sequence[Buffer]) -> Lever:
        """What `cca` does with these buffers larger, and with the other one too where that holds it then."""
        larger = for_path(self.path, tuple(buffers))
        first = self.run(larger.on(self.path.scenario(cca)), 1)
        held = blamed(limits([f for t in first for f in t.flows]))
        return self.pull(cca, for_path(self.path, tuple(b for b in CAUSES if b in buffers or b in held)))

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
