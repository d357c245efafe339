"""Runs of an observed flow's fitted path: the flow's own congestion control and others, with and without one change, each run once.

Two families of runs share their seeds. *Central* runs have the path of the estimates, so they differ by chance alone: what one run of this path may
be. *Drawn* runs have each a path drawn from the estimates' intervals: what the fit leaves open. Replay, zone and advice take what they need of both.

A run is measured as an observation is: goodput from the first data packet to the last ACK, the median of the smoothed RTT over time. Where the
observation begins in mid-connection, or is too long to repeat in seconds, the run is shorter and its beginning does not count. The smoothed RTT (RFC
6298) of the observation is made from the round trips of its segments, or is what the kernel reported; a capture far from the sender does not show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tcpscape.findings.diagnosis.fitted import UNKNOWN, Assumption, FittedPath, RecognisedControl, ReplaySettings
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.findings.diagnosis.replay import scenario as scenarios
from tcpscape.findings.diagnosis.replay.scenario import FittedFlow, PathValues
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Trial
from tcpscape.units import NS_PER_S

MOST_EVENTS = 4e6
"""Simulated events of one run, about 0.8 s of a core; a run that has more is made shorter."""
EVENTS, QUICK_EVENTS = 60e6, 15e6
"""Simulated events that the diagnosis of one flow may take: about five seconds on two cores; where quick is enough, a quarter of it."""
LEAST_S, LEAST_RTTS = 4.0, 60
"""A run is not made shorter than this."""
WARM_S, WARM_RTTS, WARM_SHARE = 1.0, 15, 0.4
"""Beginning that does not count where the steady state is compared: at least this long, this many round trips, at most this share of the run."""
SAMPLES, LEAST_SAMPLE_S, MOST_SAMPLE_S = 200, 0.01, 0.1
"""Samples of a run of the smoothed RTT, and the limits of their interval."""
EVENTS_A_SEGMENT, FULL_SEGMENT = 3.7, 1448
"""Simulated events that a segment of data costs, and its bytes: for a guess before the first run."""
WITHIN = 1.25
"""Factor within which a replay agrees, whatever its interval."""
RUNS = 12
"""Runs of a replay: of the path of the estimates, and as many of drawn ones."""

Change = Callable[[dict[str, Any]], dict[str, Any]]
"""A change of a scenario's plain fields."""


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """One run, measured as the observation is."""

    goodput_mbps: float
    rtt_ms: float
    """Median of the smoothed RTT over time; NaN without a sample."""
    retransmits: float
    """Segments sent again / segments sent; NaN where nothing was sent."""
    events: int


@dataclass
class Lab:
    """The runs of one observed flow."""

    flow: ObservedFlow
    own: str
    """The flow's congestion control."""
    fitted: FittedFlow
    settings: ReplaySettings
    seconds: float
    """Length of a run, s."""
    warmup_s: float
    """The beginning of a run that does not count, s; 0 where a run repeats the whole observation."""
    known: dict[tuple[str, int], ReplayRun] = field(default_factory=dict)

    def scenario(self, cca: str) -> Scenario:
        """The scenario of the central runs of a congestion control."""
        return self._scenario(cca, self.fitted.values, None)

    def central(self, cca: str, seeds: Sequence[int], change: Change | None = None) -> list[ReplayRun]:
        """Runs on the path of the estimates, one for each seed."""
        return self._run([(self._scenario(cca, self.fitted.values, change), list(seeds))])[0]

    def calm(self, cca: str, seeds: Sequence[int]) -> list[ReplayRun]:
        """The same without jitter."""
        return self._run([(self._scenario(cca, self.fitted.values.calm, None), list(seeds))])[0]

    def drawn(self, cca: str, seeds: Sequence[int], *, assumed: bool = True) -> list[ReplayRun]:
        """Runs on paths drawn from the intervals, one for each seed; `assumed` as :meth:`FittedFlow.drawn` has it."""
        return [runs[0] for runs in self._run([(self._scenario(cca, self.fitted.drawn(s, assumed=assumed), None), [s]) for s in seeds])]

    def many(self, ccas: Sequence[str], seeds: Sequence[int]) -> Mapping[str, list[ReplayRun]]:
        """Central runs of several congestion controls, beside each other."""
        work = [(self._scenario(cca, self.fitted.values, None), list(seeds)) for cca in ccas]
        return dict(zip(ccas, self._run(work), strict=True))

    def with_values(self, values: PathValues, assumption: Assumption | None = None) -> Lab:
        """Runs of the same flow on another path, with what is `assumption` about it; what has run already is shared."""
        fitted = replace(self.fitted, values=values)
        if assumption:
            fitted = replace(fitted, assumptions=(assumption, *(a for a in fitted.assumptions if a.kind != "unseen buffer")))
        return replace(self, fitted=fitted)

    @property
    def left(self) -> float:
        """Events that may still be simulated."""
        return max(0.0, (QUICK_EVENTS if self.settings.quick else EVENTS) - sum(run.events for run in self.known.values()))

    @property
    def mid_connection(self) -> bool:
        """Whether the observation has no beginning of a connection."""
        return bool(self.flow.facts.get("begins_in_mid_connection", False))

    @property
    def steady(self) -> bool:
        """Whether the beginning of a connection is left out of the comparison."""
        return self.warmup_s > 0

    def _scenario(self, cca: str, values: PathValues, change: Change | None) -> Scenario:
        seconds = self.seconds if self.steady else None
        plain = scenarios.fields(self.fitted, cca, values, seconds)
        return Scenario.of(change(plain) if change else plain, "diagnosis")

    def _run(self, work: Sequence[tuple[Scenario, list[int]]]) -> list[list[ReplayRun]]:
        """Runs what is not known yet."""
        keys = [scenario.address() for scenario, _ in work]
        missing = [(s, [n for n in seeds if (k, n) not in self.known]) for (s, seeds), k in zip(work, keys, strict=True)]
        every = min(MOST_SAMPLE_S, max(LEAST_SAMPLE_S, self.seconds / SAMPLES))
        runner = replace(self.settings.runner, capture=Capture(samples_ns=round(every * NS_PER_S)))
        wanted = [(s, seeds) for s, seeds in missing if seeds]
        for (scenario, seeds), trials in zip(wanted, runner.run_all(wanted) if wanted else (), strict=True):
            for seed, trial in zip(seeds, trials, strict=True):
                self.known[scenario.address(), seed] = measure(trial, self.warmup_s)
        return [[self.known[k, n] for n in seeds] for (_, seeds), k in zip(work, keys, strict=True)]


def open_lab(flow: ObservedFlow, path: FittedPath | None, control: RecognisedControl | None, settings: ReplaySettings) -> Lab | Reason:
    """The runs of a flow, or why there can be none."""
    own = own_control(flow, control)
    lacking = next(_lacking(flow, path, own, settings), None)
    fitted = scenarios.fitted(flow, path, settings.kernel or scenarios.PROFILE) if path and not lacking else None
    if lacking or own is None or fitted is None:
        return lacking or Reason("RTT of 0")
    rtt_s = fitted.values.rtt_ms / 1e3
    lab = Lab(flow, own, fitted, settings, flow.seconds, 0.0)
    if lab.mid_connection:
        lab = _steady(lab, rtt_s, flow.seconds + max(WARM_S, WARM_RTTS * rtt_s))
    return _affordable(lab, rtt_s)


def _lacking(flow: ObservedFlow, path: FittedPath | None, own: str | None, settings: ReplaySettings) -> Iterator[Reason]:
    """What a replay would need and is not known."""
    engine = settings.runner.engine
    if own is None:
        yield Reason("control not known")
    elif own not in engine.ccas():
        yield Reason("control not in the engine", {"engine": engine.name, "name": own})
    if path is None or path.rtt_ms is None:
        yield Reason("no RTT of the path", {"reason": path.reasons.get("rtt_ms") if path else None})
    if flow.goodput_mbps is None or flow.seconds <= 0:
        yield Reason("no goodput")
    elif not flow.goodput_mbps > 0:
        yield Reason("nothing carried")


def own_control(flow: ObservedFlow, control: RecognisedControl | None) -> str | None:
    """The flow's congestion control: what the source names, or the packets show."""
    named = control.name if control and control.name != UNKNOWN else None
    return flow.cca or named


def measure(trial: Trial, warmup_s: float) -> ReplayRun:
    """The measures of a trial after its first `warmup_s`; of the whole one where that is 0."""
    flow, samples = trial.flows[0], trial.samples
    if samples is None:
        raise ValueError("a run needs samples to be measured")
    samples = samples.filter(samples["flow"] == 0)
    t, acked, srtt = (samples[name].to_numpy().astype(float) for name in ("t_ns", "bytes_acked", "srtt_us"))
    after = np.flatnonzero(t >= (flow.start_s + warmup_s) * NS_PER_S)
    begin, before = (t[after[0]] / NS_PER_S, acked[after[0]]) if warmup_s > 0 and len(after) else (flow.start_s, 0.0)
    length = t[after[-1]] / NS_PER_S - begin if len(after) else 0.0
    goodput = float(acked[after[-1]] - before) * 8 / length / 1e6 if length > 0 else 0.0
    known = srtt[after][srtt[after] > 0]
    sent = flow.data_segs_out
    return ReplayRun(
        goodput, float(np.median(known)) / 1e3 if len(known) else math.nan, flow.retransmits / sent if sent else math.nan, trial.events or 0
    )


def _steady(lab: Lab, rtt_s: float, seconds: float) -> Lab:
    """The same with runs of `seconds`, of which the beginning does not count."""
    warmup = min(WARM_SHARE * seconds, max(WARM_S, WARM_RTTS * rtt_s))
    return replace(lab, seconds=seconds, warmup_s=warmup, known={})


def _affordable(lab: Lab, rtt_s: float) -> Lab:
    """The same with runs short enough; the first run of the flow's own congestion control shows what one costs."""
    most = max(LEAST_S, LEAST_RTTS * rtt_s)
    guess = EVENTS_A_SEGMENT * (lab.flow.goodput_mbps or 0.0) * 1e6 / 8 / FULL_SEGMENT * lab.seconds
    if guess > MOST_EVENTS and lab.seconds > most:
        lab = _steady(lab, rtt_s, max(most, lab.seconds * MOST_EVENTS / guess))
    first = lab.central(lab.own, [0])[0]
    if first.events > MOST_EVENTS and lab.seconds > most:
        lab = _steady(lab, rtt_s, max(most, lab.seconds * MOST_EVENTS / first.events))
    return lab


def seen_goodput(lab: Lab) -> float | None:
    """The observed goodput, Mbit/s: of the whole flow, or of its time after the beginning where a run's beginning does not count either."""
    flow = lab.flow
    if not lab.steady or lab.mid_connection or not len(flow.acks.get("t", ())):
        return flow.goodput_mbps
    t, ack = np.asarray(flow.acks["t"]) / NS_PER_S, np.asarray(flow.acks["ack"]).astype(float)
    after = np.flatnonzero(t >= t[0] + lab.warmup_s)
    if len(after) < 2 or t[after[-1]] <= t[after[0]]:
        return flow.goodput_mbps
    return float((ack[after].max() - ack[after[0]]) * 8 / (t[after[-1]] - t[after[0]]) / 1e6)
