"""The question `mix`: how the flows of the state's mixture share the bottleneck, in one run over time and over many seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict

from tcpscape import metrics
from tcpscape.campaign import outcome
from tcpscape.campaign.outcome import Outcome
from tcpscape.errors import refuse
from tcpscape.findings import fairness
from tcpscape.interchange.base import HEADERS
from tcpscape.metrics.flows import jain_index
from tcpscape.stats.estimate import Interval
from tcpscape.trial import Capture, Trial
from tcpscape.units import NS_PER_S
from tcpscape.web.pool import FIRST, LATER, Job, Work
from tcpscape.web.questions import Question, Seed
from tcpscape.web.questions.runs import interval
from tcpscape.web.state import State
from tcpscape.web.stream import Block

MOST_SAMPLES = 4_000_000
"""Most samples of all flows in all runs, which are kept until the question is answered: 600 MB."""
BINS, STEPS = 100, (1, 2, 5, 10)
"""Most intervals in which shares are followed; their lengths are these · 10ⁿ ns."""
SAMPLES_PER_BIN = 5
LEAST_RTTS = 2
"""Shortest interval, in round trips of the path: in a shorter one a flow's bursts are what one sees."""
MOST_COLUMNS = 24
"""Most flows with a column of their own; what the others carry is together in one."""
EDGE_S = 1e-6
"""Times this close are the same, s."""


class SharingFlow(TypedDict):
    """A flow of the shown run."""

    cca: str
    direction: str
    start_s: float
    stop_s: float
    goodput_bps: float


class Shares(TypedDict):
    """The values of the block `shares`."""

    seed: int
    flows: list[SharingFlow]
    others: int
    """Flows whose columns are together in `others`."""
    every_s: float
    """Length of an interval."""


class GroupShare(TypedDict):
    """What a group of flows has of the bottleneck."""

    name: str
    equal: float
    """Its share if all flows had the same."""
    whole: Interval
    """Its share over whole transfers."""
    overlap: Interval
    """Its share while all run."""


class Verdict(TypedDict):
    """The values of the block `verdict`: how the flows share over the runs so far."""

    n: int
    """Runs so far."""
    wanted: int
    groups: list[GroupShare]
    jain: Interval
    """Jain's index over whole transfers."""
    jain_overlap: Interval
    """The same while all run."""
    fair_after_s: Interval
    became_fair: float
    """Share of the runs in which shares become fair."""
    starved: float
    """Share of the runs in which a flow starves."""
    caveats: list[str]


class Mix(Question):
    """Sends `shares` of one run, and after each run a `verdict`."""

    kind: ClassVar[str] = "mix"
    blocks: ClassVar[Mapping[str, Any]] = {"shares": Shares, "verdict": Verdict}
    seed: Seed = 0
    """The seed of the run whose shares are shown over time."""
    seeds: int = Field(default=20, ge=1, le=100)
    """Runs over which shares are estimated."""

    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Runs the shown seed first."""
        if not state.mix:
            refuse("mix", "there are no flows in it", "add one, for example cubic*2,bbr")
        campaign = state.campaign()
        [case] = campaign.cases()
        _expect_room(case.scenario.flow_count, self.seeds)
        every_ns = bin_ns(case.scenario.duration, case.scenario.rtt_ns)
        capture = Capture.union([Capture(samples_ns=every_ns // SAMPLES_PER_BIN), metrics.SAMPLED])
        seeds = [self.seed, *(seed for seed in range(self.seeds) if seed != self.seed)]
        jobs = [Job(case.scenario, seed, FIRST if seed == self.seed else LATER, capture) for seed in seeds]
        trials: list[Trial] = []
        sharings: dict[int, fairness.Sharing] = {}
        for place, trial in work.trials(jobs):
            if place == 0:
                work.send(over_time(trial, every_ns, case.scenario.mtu - HEADERS))
            if trial.seed >= self.seeds:
                continue
            trials.append(trial)
            sharings[trial.seed] = fairness.measure(trial)
            gathered = outcome.gather(campaign, [case], [sorted(trials, key=lambda t: t.seed)], {"model": trial.version})
            work.send(self._verdict(gathered, fairness.judge([sharings[seed] for seed in sorted(sharings)])))

    def _verdict(self, of: Outcome, judged: fairness.Fairness) -> Block:
        cell = of.cells[0]
        groups = [
            GroupShare(name=name, equal=equal, whole=interval(whole), overlap=interval(overlap))
            for name, equal, whole, overlap in zip(judged.names, judged.fair, judged.whole, judged.overlap, strict=True)
        ]
        return Block(
            "verdict",
            Verdict(
                n=len(cell.trials),
                wanted=self.seeds,
                groups=groups,
                jain=interval(cell.mean("jain")),
                jain_overlap=interval(judged.jain_overlap),
                fair_after_s=interval(judged.fair_after_s),
                became_fair=judged.became_fair,
                starved=judged.starved,
                caveats=list(cell.trials[0].caveats),
            ),
        )


def _expect_room(flows: int, seeds: int) -> None:
    """Refuses runs whose samples would fill the memory. :raises TcpscapeError: one line."""
    most = MOST_SAMPLES // (BINS * SAMPLES_PER_BIN)
    if flows * seeds > most:
        refuse("mix", f"{seeds} runs of {flows} flows would be kept, and at most {most} flows are", "take fewer flows or runs")


def bin_ns(duration_ns: int, rtt_ns: int) -> int:
    """The interval in which shares are followed: a round one of at least a hundredth of the trial and two round trips, at most half of the trial."""
    least = max(duration_ns // BINS, LEAST_RTTS * rtt_ns)
    power = int(10 ** (len(str(least)) - 1))
    return min(next(step * power for step in STEPS if step * power >= least), max(SAMPLES_PER_BIN, duration_ns // 2))


def over_time(trial: Trial, every_ns: int, mss: int) -> Block:
    """The block `shares`: ends of the intervals `t`, goodput of each flow in them (`flow.0`, …, `others`), Jain's index over those that run then.

    Packets that a SACK reports count when it does, so that no interval carries more than the link. `mss`: bytes of data in each.
    """
    until = trial.duration + EDGE_S
    edges = np.arange(0.0, until, every_ns / NS_PER_S)
    rates = np.array([np.diff(np.interp(edges, *_delivered(trial, i, mss))) * 8 / (every_ns / NS_PER_S) for i in range(len(trial.flows))])
    running = np.array([(edges[:-1] >= f.start_s - EDGE_S) & (edges[1:] <= f.stop_s + EDGE_S) for f in trial.flows]).reshape(rates.shape)
    columns: dict[str, NDArray[np.float64]] = {"t": edges[1:], "jain": _jain(rates, running)}
    columns |= {f"flow.{i}": np.where(_touched(trial, i, edges), row, np.nan) for i, row in enumerate(rates[:MOST_COLUMNS])}
    if len(rates) > MOST_COLUMNS:
        columns["others"] = rates[MOST_COLUMNS:].sum(axis=0)
    flows = [
        SharingFlow(cca=f.cca, direction=f.direction, start_s=f.start_s, stop_s=f.stop_s, goodput_bps=f.goodput_mbps * 1e6)
        for f in trial.flows[:MOST_COLUMNS]
    ]
    values = Shares(seed=trial.seed, flows=flows, others=max(0, len(trial.flows) - MOST_COLUMNS), every_s=every_ns / NS_PER_S)
    return Block("shares", values, {name: np.ascontiguousarray(column, np.float32) for name, column in columns.items()})


def _delivered(trial: Trial, flow: int, mss: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times, s, and bytes delivered by then."""
    if trial.samples is None or not (rows := trial.samples["flow"].to_numpy() == flow).any():
        return np.zeros(1), np.zeros(1)
    times, packets = (trial.samples[name].to_numpy()[rows].astype(np.float64) for name in ("t_ns", "delivered"))
    start = min(trial.flows[flow].start_s, float(times[0]) / NS_PER_S)
    return np.concatenate(([start], times / NS_PER_S)), np.concatenate(([0.0], packets * mss))


def _jain(rates: NDArray[np.float64], running: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Jain's index over the flows that run through the whole interval; NaN where there are fewer than two."""
    columns = zip(rates.T, running.T, strict=True)
    return np.array([jain_index([float(x) for x in row[runs]]) if runs.sum() > 1 else math.nan for row, runs in columns])


def _touched(trial: Trial, flow: int, edges: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The intervals in which a flow ran for some time."""
    result = trial.flows[flow]
    return np.asarray((edges[1:] > result.start_s) & (edges[:-1] < result.stop_s), dtype=np.bool_)
