"""Latency spikes of a cell's runs: the drop of capacity read from its scenario, the spike from its samples, as the published work measured it.

A drop is the first change of the bottleneck's rate; where nothing changes and flows come later, it is what the first flow's share falls to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpscape import stats, units
from tcpscape.errors import StudyError, refuse
from tcpscape.findings.spike import bound as spike
from tcpscape.findings.spike import recording
from tcpscape.findings.spike.bound import Spike, Step
from tcpscape.findings.spike.recording import Recording
from tcpscape.metrics.queues import shapers
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.campaign.outcome import Cell

PAPERS_WINDOW_S = (29.0, 34.0)
"""Where the work looks for the peak, s of a recording: Teigen et al., section III."""
PHASES = 3
"""Phases of the loop that reads the socket, evenly spread: nobody knows where the drop fell between two readings."""
KEPT, KEPT_WHOLE = 4096, 512
"""Trials whose spikes are remembered."""
MS = 1e-6
"""ms of a ns."""


def step_of(scenario: Scenario) -> Step:
    """The drop of capacity in a scenario; the round trip is that of its path, all of it behind the bottleneck."""
    before = _rate(scenario)
    d_ms = scenario.rtt_ns * MS
    for change in scenario.changes:
        after, at = (change.set, change.at) if change.at is not None else (change.end, change.ramp[0] if change.ramp else None)
        if change.where == "bottleneck" and after and after.rate and at is not None:
            return Step(at / units.NS_PER_S, before, after.rate, d_ms)
    late = max(f.start for f in scenario.flows)
    if late == min(f.start for f in scenario.flows):
        raise StudyError(f"claims: {scenario.name} has no drop of capacity; add changes, or flows that come later")
    return Step(late / units.NS_PER_S, before, before // scenario.flow_count, d_ms)


def _rate(scenario: Scenario) -> int:
    """The bottleneck's rate before the drop, bit/s."""
    found = spike.rate_of(scenario.bottleneck[0]) if scenario.bottleneck else None
    if not found:
        raise StudyError(f"claims: {scenario.name} has no bottleneck with a rate; add one, for example htb rate 60mbit")
    return found


@dataclass(frozen=True)
class _Run:
    """A trial as the key of what was made of it."""

    address: str
    seed: int
    rows: int
    trial: Trial = field(compare=False)

    @classmethod
    def of(cls, trial: Trial) -> _Run:
        return cls(trial.address, trial.seed, 0 if trial.samples is None else trial.samples.height, trial)


@lru_cache(maxsize=KEPT)
def _read(run: _Run, step: Step) -> tuple[Spike, ...]:
    return tuple(spike.measure(recording.of_trial(run.trial, phase_s=p), step) for p in recording.phases(PHASES))


def _spikes(trial: Trial, step: Step) -> tuple[Spike, ...]:
    """What readings at each phase show."""
    return _read(_Run.of(trial), step)


def _all(trial: Trial) -> Recording:
    """The trial with every sample that was kept."""
    return _every_sample(_Run.of(trial))


@lru_cache(maxsize=KEPT_WHOLE)
def _every_sample(run: _Run) -> Recording:
    return recording.of_trial(run.trial, every_s=0)


def _mean(of: Callable[[Spike], float]) -> Callable[[Trial, Step], float]:
    """The mean over the phases."""
    return lambda trial, step: float(np.mean([of(s) for s in _spikes(trial, step)]))


def _window(trial: Trial, step: Step) -> float:
    """Peak of the smoothed RTT in the work's own window, minus d, ms."""
    return float(np.mean([recording.of_trial(trial, phase_s=p).peak(*PAPERS_WINDOW_S)[0] - step.d_ms for p in recording.phases(PHASES)]))


def _of_queue(trial: Trial, step: Step) -> float:
    """Largest delay in the queue after the drop, ms, from every sample of it."""
    return _all(trial).queue_peak(step.at_s, step.at_s + recording.PEAK_WINDOW_S[1], step.after_bps)


def _flight(trial: Trial, step: Step) -> float:
    """The bound with what was in flight at the drop, ms."""
    d_s = step.d_ms / 1e3
    return spike.spike(_all(trial).carried(step.at_s, step.at_s + d_s) / step.after_goodput_mbps, step.d_ms)


def _signal(trial: Trial, step: Step) -> float:
    """Time from the drop to the first reduction of the window, ms; NaN where there is none in the 5 s after it."""
    if trial.samples is None:
        return float("nan")
    mine = trial.samples.filter(trial.samples["flow"] == 0)
    t, cwnd = mine["t_ns"].to_numpy() / 1e9, mine["cwnd"].to_numpy().astype(float)
    less = np.flatnonzero(np.diff(cwnd) < 0) + 1
    after = [float(t[i]) for i in less if step.at_s < t[i] <= step.at_s + recording.PEAK_WINDOW_S[1]]
    return (after[0] - step.at_s) * 1e3 if after else float("nan")


def _dropped(trial: Trial, step: Step, until_s: float) -> tuple[float, float]:
    """Packets that the bottleneck dropped, and packets that came to it, from the drop to `until_s` after it. NaN where it was not sampled."""
    places = shapers(trial)
    if trial.queue_samples is None or not places:
        return float("nan"), float("nan")
    pipe, stage = places[-1]
    shaping = trial.queue_samples.filter((trial.queue_samples["pipe"] == pipe) & (trial.queue_samples["stage"] == stage))
    lost = max(_grown(shaping, depth, "drops", step.at_s, until_s) for depth in shaping["depth"].unique().to_list())
    left = step.after_bps * until_s / 8 / spike.FULL_FRAME
    return lost, lost + left + _grown(shaping, 0, "packets", step.at_s, until_s)


def _grown(shaping: pl.DataFrame, depth: int, column: str, at_s: float, until_s: float) -> float:
    """By how much a column grew between two times."""
    mine = shaping.filter(shaping["depth"] == depth)
    ends = np.interp([at_s, at_s + until_s], mine["t_ns"].to_numpy() / 1e9, mine[column].to_numpy().astype(float))
    return float(ends[1] - ends[0])


def _lost_of_excess(trial: Trial, step: Step) -> float:
    """Share of what would have queued in the d after the drop that was dropped."""
    lost, _ = _dropped(trial, step, step.d_ms / 1e3)
    excess = (step.before_bps - step.after_bps) * step.d_ms / 1e3 / 8 / spike.FULL_FRAME
    return lost / excess


def _lost_of_all(trial: Trial, step: Step) -> float:
    """Share of what came in the d after the drop that was dropped."""
    lost, came = _dropped(trial, step, step.d_ms / 1e3)
    return _ratio(lost, came)


def _drops(trial: Trial, step: Step) -> float:
    """Packets that the bottleneck dropped in the 5 s after the drop."""
    return _dropped(trial, step, recording.PEAK_WINDOW_S[1])[0]


def _shrunk(trial: Trial, step: Step) -> float:
    """The first flow's goodput before the drop over that in 2 to 5 s after it."""
    series = _all(trial)
    return _ratio(series.goodput(step.at_s - 5, step.at_s), series.goodput(step.at_s + 2, step.at_s + recording.PEAK_WINDOW_S[1]))


def _thin(trial: Trial, step: Step) -> float:
    """Peak of the last flow's smoothed RTT after the drop, minus d, ms."""
    return recording.of_trial(trial, len(trial.flows) - 1, every_s=0).peak(step.at_s, step.at_s + recording.PEAK_WINDOW_S[1])[0] - step.d_ms


def _over(of: Callable[[Trial, Step], float], bound: Callable[[Trial, Step], float]) -> Callable[[Trial, Step], float]:
    """One over the other."""
    return lambda trial, step: _ratio(of(trial, step), bound(trial, step))


def _ratio(above: float, below: float) -> float:
    """NaN over 0: a link that was used less than the new one carries has no bound to be measured by."""
    return above / below if below else math.nan


def _bound(_: Trial, step: Step) -> float:
    """(r - 1) d, ms."""
    return spike.spike(step.ratio, step.d_ms)


@dataclass(frozen=True, slots=True)
class What:
    """Something that a run shows of a drop."""

    unit: str
    about: str
    of: Callable[[Trial, Step], float]


WHAT: Mapping[str, What] = {
    "peak": What("ms", "peak of the smoothed RTT around the drop, minus d", _mean(lambda s: s.peak_ms)),
    "window": What("ms", "its peak in 29-34 s, minus d", _window),
    "own_queue": What("ms", "its median before the drop, minus d", _mean(lambda s: s.own_queue_ms)),
    "before": What("Mbit/s", "goodput in the 10 s before the drop", _mean(lambda s: s.recent_mbps)),
    "used": What("1", "share of the old link's goodput that was used in them", _mean(lambda s: s.used)),
    "queue": What("ms", "peak of the delay in the queue", _of_queue),
    "peak_of_bound": What("1", "peak over (r - 1) d", _over(_mean(lambda s: s.peak_ms), _bound)),
    "peak_of_last": What("1", "peak over the bound with r of the last 1.2 s", _mean(lambda s: _ratio(s.peak_ms, s.last_bound_ms))),
    "peak_of_recent": What("1", "peak over the bound with r of the last 10 s", _mean(lambda s: _ratio(s.peak_ms, s.recent_bound_ms))),
    "window_of_bound": What("1", "peak in 29-34 s over (r - 1) d", _over(_window, _bound)),
    "queue_of_bound": What("1", "peak in the queue over (r - 1) d", _over(_of_queue, _bound)),
    "queue_of_flight": What("1", "peak in the queue over the bound with what was in flight", _over(_of_queue, _flight)),
    "signal": What("ms", "from the drop to the first reduction of the window", _signal),
    "lost_of_excess": What("1", "share of the excess in the d after the drop that was lost", _lost_of_excess),
    "lost_of_all": What("1", "share of all that came in the d after the drop that was lost", _lost_of_all),
    "drops": What("packets", "packets dropped in the 5 s after the drop", _drops),
    "shrunk": What("1", "goodput before over goodput after", _shrunk),
    "thin": What("ms", "peak of the last flow's smoothed RTT, minus d", _thin),
}
"""What can be told of a drop."""


def unit(options: Mapping[str, Any]) -> str:
    """The unit of what a claim's options ask for."""
    return find(str(options.get("what", "peak"))).unit


def find(what: str) -> What:
    """One of :data:`WHAT`; what is unknown is refused."""
    if what not in WHAT:
        refuse("what", f"{what!r} is unknown", f"choose {', '.join(WHAT)}", StudyError)
    return WHAT[what]


def values(cell: Cell, what: str) -> tuple[float, ...]:
    """One of :data:`WHAT` for each trial of a cell."""
    of = find(what).of
    return tuple(of(t, step) for scenario, runs in zip(cell.scenarios, cell.runs, strict=True) for step in [step_of(scenario)] for t in runs)


def median(cell: Cell, what: str) -> Estimate:
    """The median over the cell's trials, of those that tell."""
    return stats.median(stats.known(values(cell, what)), find(what).unit)
