"""The advice: which congestion control of the flow's kernel would carry how much more on its fitted path, and what else would help.

All run under the same seeds. Every control that can be deployed on the kernel runs first a few times; those that may be the best run again until the
runs that a diagnosis may take are used up, and :func:`tcpscape.findings.advice.choice.decide` decides among them: the flow keeps its own control
unless another one is better. The gain is the ratio of the means under the same seeds; its interval joins the runs' own spread, that of the gain over
paths drawn from the fit's intervals, and the model's errors: that of the choice as measured against Linux, that of the flow's own control as the
replay shows it. Nothing is advised from a replay that does not repeat the observation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tcpscape import stats
from tcpscape.controls import spelling
from tcpscape.controls.deployment import DEFAULT, obstacle
from tcpscape.controls.documentation import load_fidelity
from tcpscape.findings.advice.choice import GOALS, CandidateRuns, ChoiceVerdict, decide
from tcpscape.findings.diagnosis import limits
from tcpscape.findings.diagnosis.fitted import Alternative, Replay, ReplayAdvice, Withheld
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.findings.diagnosis.replay.hosts import SHARE
from tcpscape.findings.diagnosis.replay.lab import RUNS, Change, Lab, ReplayRun
from tcpscape.stats import Estimate
from tcpscape.units import brief_size

FIRST = 3
"""Runs of every control, by which those that cannot be the best are left out."""
MOST = 4
"""Most controls that run on beside the flow's own."""
NEAR = 0.8
"""Share of the best goodput of the first runs from which a control runs on."""
FAR = 1.6
"""Factor between the replay's goodput and the observed one from which nothing is advised, however wide the replay's interval is."""
ALIKE = 1.03
"""Ratio of goodputs within which the better known control is chosen."""
SETTING_RUNS = 6
"""Runs of each other change."""
NORMAL, P90 = 1.96, 1.645
"""Standard deviations of a normal distribution to the ends of 95 %, and of 90 %."""


def of(lab: Lab, replay: Replay) -> ReplayAdvice:
    """The advice that the runs give."""
    if replay.verdict != "agrees":
        return none(replay.verdict, replay.reason)
    if is_far(replay):
        return none("too wide")
    names = deployable(lab)
    compared = compare(lab, names)
    decision = decide(compared.candidates(), GOALS["goodput"], lab.fitted.values.rtt_ms, compared.reference)
    settings = [_alternative(lab, option) for option in _affordable(lab, helps(lab))]
    choice = _surest(compared, decision.choice) if decision.choice else None
    controls = [compared.alternative(cca) for cca in compared.order if cca != lab.own]
    gain = _with_path(lab, choice, compared.gain(choice), replay) if choice else None
    verdict: ChoiceVerdict = "as good" if decision.choice == lab.own and decision.verdict == "better" else decision.verdict
    if verdict == "better" and gain and not gain.low > 1:
        verdict = "undecided"
    return ReplayAdvice(choice, gain, verdict, controls, settings, lab.fitted.assumptions[0])


def _surest(compared: Compared, choice: str) -> str:
    """Of the controls that carry nearly as much as the choice, the one whose model is nearest to Linux; the flow's own stays."""
    if choice == compared.reference:
        return choice
    enough = compared.gain(choice).value / ALIKE
    profile = compared.profile
    alike = [c for c in compared.finalists if c not in (choice, compared.own) and not obstacle(c, profile) and compared.gain(c).value >= enough]
    return min([choice, *alike], key=model_error)


def is_far(replay: Replay) -> bool:
    """Whether the middle of a replay is far from the observation, which is inside of a wide interval."""
    seen, found = replay.observed_goodput_mbps, replay.goodput_mbps
    return bool(seen and found and found.value > 0 and abs(math.log(found.value / seen)) > math.log(FAR))


def none(why: Literal["differs", "impossible", "too wide", "served", "no replay"], reason: Reason | None = None) -> ReplayAdvice:
    """The advice where there is none, with the reason."""
    return ReplayAdvice(None, None, Withheld(why, reason))


def deployable(lab: Lab) -> list[str]:
    """The controls of the kernel in question that the engine has, the flow's own first."""
    profile = str(lab.fitted.hosts.kernel["profile"])
    has = set(lab.settings.runner.engine.ccas())
    return [lab.own, *(cca for cca in spelling.LINUX if cca != lab.own and cca in has and not obstacle(cca, profile))]


@dataclass(frozen=True, slots=True)
class Compared:
    """Central runs of the controls under the same seeds."""

    own: str
    runs: Mapping[str, Sequence[ReplayRun]]
    order: tuple[str, ...]
    """By their mean goodput, the highest first."""
    finalists: tuple[str, ...]
    """Those that ran as often as the flow's own."""
    profile: str

    @property
    def reference(self) -> str:
        """What is kept unless another one is better: the flow's own control, or Linux's default where the kernel does not have that."""
        return DEFAULT if obstacle(self.own, self.profile) else self.own

    def candidates(self) -> list[CandidateRuns]:
        """Those among which the choice is made."""
        goodputs = {cca: [r.goodput_mbps for r in self.runs[cca]] for cca in self.finalists}
        return [CandidateRuns(cca, of, of, not obstacle(cca, self.profile)) for cca, of in goodputs.items()]

    def gain(self, cca: str) -> Estimate:
        """Goodput / that of the flow's own control, paired."""
        runs = self.runs[cca]
        return stats.ratio([r.goodput_mbps for r in runs], [r.goodput_mbps for r in self.runs[self.own][: len(runs)]])

    def alternative(self, cca: str) -> Alternative:
        """What this control would bring."""
        return alternative(cca, self.runs[cca], self.runs[self.own])


def compare(lab: Lab, names: Sequence[str]) -> Compared:
    """Runs the controls, those that may be the best more often."""
    lab.settings.tell("replayed controls", str(len(names)))
    first = dict(lab.many(names, range(FIRST)))
    means = {cca: _mean(runs) for cca, runs in first.items()}
    best = max(means.values())
    near = [cca for cca in sorted(names, key=lambda c: -means[c]) if cca != lab.own and _reaches(first[cca]) >= NEAR * best][:MOST]
    finalists = [lab.own, *near]
    if obstacle(lab.own, str(lab.fitted.hosts.kernel["profile"])) and DEFAULT not in finalists:
        finalists.append(DEFAULT)
    count = _count(lab, first, finalists)
    last = lab.many(finalists, range(count))
    runs = {**first, **last}
    order = tuple(sorted(names, key=lambda c: -_mean(runs[c])))
    return Compared(lab.own, runs, order, tuple(finalists), str(lab.fitted.hosts.kernel["profile"]))


def _count(lab: Lab, first: Mapping[str, Sequence[ReplayRun]], finalists: Sequence[str]) -> int:
    """Runs of each finalist for a good half of the events that are left, with those that it has."""
    each = sum(float(np.mean([r.events for r in first[cca]])) for cca in finalists)
    return FIRST + max(1, min(2 * RUNS, int(0.6 * lab.left / each) if each else RUNS))


def _reaches(runs: Sequence[ReplayRun]) -> float:
    """The goodput that a control may have: of its best run."""
    return max(r.goodput_mbps for r in runs)


def _mean(runs: Sequence[ReplayRun]) -> float:
    return float(np.mean([r.goodput_mbps for r in runs]))


def alternative(name: str, runs: Sequence[ReplayRun], own: Sequence[ReplayRun]) -> Alternative:
    """What these runs bring against the flow's own under the same seeds."""
    gain = stats.ratio([r.goodput_mbps for r in runs], [r.goodput_mbps for r in own[: len(runs)]])
    rtt, resent = stats.known([r.rtt_ms for r in runs]), stats.known([r.retransmits for r in runs])
    return Alternative(name, gain, stats.mean(rtt, "ms") if rtt else None, stats.mean([100 * x for x in resent], "%") if resent else None)


def _affordable(lab: Lab, options: Sequence[Help]) -> Sequence[Help]:
    """As many of the other changes as there is time for."""
    each = max((r.events for r in lab.known.values()), default=0) * SETTING_RUNS
    return options[: max(1, int(lab.left / each))] if each else options


def _alternative(lab: Lab, option: Help) -> Alternative:
    """The flow's own control with one change."""
    lab.settings.tell("setting", f"{lab.own}: {option.name}")
    seeds = range(SETTING_RUNS)
    return alternative(option.name, lab.central(lab.own, seeds, option.change), lab.central(lab.own, seeds))


def _with_path(lab: Lab, choice: str, gain: Estimate, replay: Replay) -> Estimate:
    """The gain with the interval that the path's own uncertainty adds: the spread over drawn paths beyond that of chance alone."""
    if choice == lab.own or not gain.value > 0 or not math.isfinite(gain.low):
        return gain
    seeds = range(RUNS)
    central = _logs(lab.central(choice, seeds), lab.central(lab.own, seeds))
    drawn = _logs(lab.drawn(choice, seeds), lab.drawn(lab.own, seeds))
    if len(drawn) < 3 or len(central) < 3:
        return gain
    between = math.sqrt(max(0.0, float(drawn.var(ddof=1) - central.var(ddof=1))))
    beyond = NORMAL * math.hypot(between, model_error(choice), own_error(lab.own, replay))
    down, up = (math.hypot(math.log(gain.value / end) if end > 0 else math.inf, beyond) for end in (gain.low, gain.high))
    return Estimate(gain.value, gain.value * math.exp(-abs(down)), gain.value * math.exp(abs(up)), gain.n, "1", gain.caveat)


def own_error(own: str, replay: Replay) -> float:
    """The same of the flow's own control, which the replay has tested on this very path: no more than it missed, or than a run varies."""
    found, seen = replay.goodput_mbps, replay.observed_goodput_mbps
    if not found or not seen or not 0 < found.low < found.high < math.inf:
        return model_error(own)
    run = math.log(found.high / found.low) / 2 / NORMAL
    return min(model_error(own), max(abs(math.log(found.value / seen)), run))


def model_error(cca: str) -> float:
    """Standard deviation of ln goodput of the model against Linux, as docs/fidelity.md measured it: from its 90th percentile; 0 where unknown."""
    errors = load_fidelity().errors("controls", spelling.split(cca)[0])
    return next((e.p90 / P90 for e in errors if e.kind == "alone"), 0.0)


def _logs(above: Sequence[ReplayRun], below: Sequence[ReplayRun]) -> np.ndarray:
    """Logarithms of the ratios of pairs that both carried something."""
    pairs = [(a.goodput_mbps, b.goodput_mbps) for a, b in zip(above, below, strict=True)]
    return np.log([a / b for a, b in pairs if a > 0 and b > 0])


TIMES = 4
"""Multiple of a buffer that is tried."""
AQM = "fq_codel"
"""Queue that is tried at the bottleneck: Linux's usual default."""


@dataclass(frozen=True, slots=True)
class Help:
    """A change that may help."""

    name: str
    change: Change


def helps(lab: Lab) -> list[Help]:
    """The changes that apply to the flow, those for what limited it first."""
    hosts, values = lab.fitted.hosts, lab.fitted.values
    applicable = []
    # A slow reader fills a larger buffer, too: what that takes in is no gain that lasts.
    if "rcvbuf" in hosts.flow and "read" not in hosts.flow and hosts.shares.get("receive_window", SHARE) >= SHARE:
        applicable.append(_buffer("receive buffer", "rcvbuf", "rmem_max", int(hosts.flow["rcvbuf"])))
    if "sndbuf" in hosts.flow:
        applicable.append(_buffer("send buffer", "sndbuf", "wmem_max", int(hosts.flow["sndbuf"])))
    if values.order == "reorder" and (values.jitter_forward_ms or values.jitter_reverse_ms):
        applicable.append(Help("keep the order of packets", _in_order))
    if values.rate_mbps:
        applicable.append(Help(f"{AQM} at the bottleneck", _aqm))
    if not limits.spaces(lab.own):
        applicable.append(Help("pacing (fq at the sender)", _paced))
    return applicable


def _buffer(name: str, field: str, limit: str, size: int) -> Help:
    larger = size * TIMES

    def change(plain: dict[str, Any]) -> dict[str, Any]:
        return _flow(plain, {field: larger}) | {"kernel": {**plain["kernel"], limit: max(larger, int(plain["kernel"].get(limit, 0)))}}

    return Help(f"{name} {brief_size(larger)}", change)


def _flow(plain: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with fields of its flow changed."""
    return {**plain, "flows": [{**flow, **fields} for flow in plain["flows"]]}


def _in_order(plain: dict[str, Any]) -> dict[str, Any]:
    """Both directions with a delay that keeps the order, with the same mean and spread."""

    def kept(hop: Mapping[str, Any]) -> dict[str, Any]:
        return {**hop, "order": "correlated", "distribution": "normal"} if "jitter" in hop else dict(hop)

    return {**plain, "forward": [kept(hop) for hop in plain["forward"]], "reverse": [kept(hop) for hop in plain["reverse"]]}


def _aqm(plain: dict[str, Any]) -> dict[str, Any]:
    """The bottleneck with an AQM instead of its FIFO."""
    return {**plain, "bottleneck": [{"rate": link["rate"], "queue": AQM} for link in plain["bottleneck"]]}


def _paced(plain: dict[str, Any]) -> dict[str, Any]:
    """The sender with fq, so that TCP paces."""
    changes = [{**c, "hop": 1} if c["where"] == "forward" else c for c in plain.get("changes", ())]
    return {**plain, "forward": ["fq", *plain["forward"]], **({"changes": changes} if changes else {})}
