"""The question `inside`: single runs of the state, and of a pinned one, sampled finely; `detail` is the same in a shorter time, finer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field
from typing_extensions import TypedDict

from tcpscape.engines import Capture
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial
from tcpscape.web.blocks import Block
from tcpscape.web.questions import Question, Seed, series
from tcpscape.web.state import PageState, State
from tcpscape.web.work import FIRST, Job, Work

MEDIAN_OF = 20
"""Runs among which the median one is looked for: those of the answer."""
MOST_RUNS = 4
"""Most runs on one scale."""
QUEUE_EVERY = 2
"""Samples of flows for each of the queues, which take ten times as long."""
FINEST_NS = 10_000
"""Shortest sampling interval, ns."""
MOST_ROWS, MOST_ROWS_OF_ALL = 200_000, 1_000_000
"""Most samples of a flow in a trial, and of all of its flows: 150 MB."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that is shown: a scenario of the state or of the pinned one."""

    scenario: Scenario
    pinned: bool


class FlowNumbers(TypedDict):
    """What the page shows of a flow's results."""

    cca: str
    goodput_mbps: float
    retransmits: int | None
    rtos: int | None
    fast_recoveries: int | None
    undos: int | None


class RunValues(series.OfRun):
    """The values of the block `run`."""

    cca: str
    pinned: bool
    """Whether it is a run of the pinned state."""
    seed: int
    duration_s: float
    interval_s: float
    """Of the samples."""
    numbers: list[FlowNumbers]
    """Of each flow."""
    bounds: list[series.SpikeBound]
    caveats: list[str]


class Inside(Question):
    """Sends a `run` for each run and behind it its `series` (one for each flow), `queue` and `marks`, in the order in which runs are ready."""

    kind: ClassVar[str] = "inside"
    blocks: ClassVar[Mapping[str, Any]] = {"run": RunValues, "series": series.SeriesValues, "queue": series.OfRun, "marks": series.MarksValues}
    seed: Seed = 0
    """The seed of every run."""
    median: bool = False
    """Whether the seed is chosen: the one whose goodput is nearest to the median of 20 in every run that is shown."""
    controls: tuple[str, ...] = ()
    """The congestion controls of the state that are shown; its first two where none of them is here."""
    pinned: PageState | None = None
    """Another state to compare with."""
    samples: int = Field(default=5_000, ge=100, le=20_000)
    """Samples of each flow, at least; of many flows fewer (:data:`MOST_ROWS_OF_ALL`)."""

    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Runs each scenario once and sends it as soon as it is there."""
        runs = self._runs(state)
        seed = self._median_seed(runs, work) if self.median else self.seed
        for number, trial in work.trials([Job(run.scenario, seed, FIRST, self._capture(run.scenario)) for run in runs]):
            for block in self._blocks(number, runs[number], trial):
                work.send(block)

    def _runs(self, state: State) -> list[_Run]:
        pinned = [(self.pinned, True)] if self.pinned else []
        runs = [
            _Run(case.scenario, is_pinned)
            for which, is_pinned in [(state, False), *pinned]
            for case in which.replace(cca=self._shown(which)).campaign().cases()
        ]
        return runs[:MOST_RUNS]

    def _shown(self, state: State) -> tuple[str, ...]:
        """The controls of a state that are shown: a name that is none of the state's was not checked with it, and is not run."""
        return tuple(label for label in state.cca if label in self.controls) or state.cca[:2]

    def _capture(self, scenario: Scenario) -> Capture:
        interval = self._interval_ns(scenario)
        return Capture(samples_ns=interval, queue_samples_ns=QUEUE_EVERY * interval, events=True)

    def _interval_ns(self, scenario: Scenario) -> int:
        return max(_least_interval_ns(scenario), series.interval_ns(scenario.duration, self.samples))

    @property
    def _window(self) -> tuple[float, float] | None:
        return None

    def _blocks(self, number: int, run: _Run, trial: Trial) -> Iterator[Block]:
        scenario, window = run.scenario, self._window
        numbers = [
            FlowNumbers(
                cca=flow.cca, goodput_mbps=flow.goodput_mbps, retransmits=flow.retransmits, rtos=flow.rtos,
                fast_recoveries=flow.fast_recoveries, undos=flow.undos,
            )
            for flow in trial.flows
        ]  # fmt: skip
        yield Block("run", RunValues(
            run=number, cca=scenario.cca, pinned=run.pinned, seed=trial.seed, duration_s=trial.duration, interval_s=self._interval_ns(scenario) / 1e9,
            numbers=numbers, bounds=series.spike_bounds(scenario), caveats=list(trial.caveats),
        ))  # fmt: skip
        yield from series.of_flows(number, trial, scenario, window)
        yield from series.of_queue(number, trial, scenario, window)
        yield series.marks(number, trial, window)

    def _median_seed(self, runs: Sequence[_Run], work: Work) -> int:
        """The seed whose run is nearest to the middle: of its places by goodput among the seeds, one for each run that is shown, the worst counts."""
        jobs = [Job(run.scenario, seed, FIRST) for seed in range(MEDIAN_OF) for run in runs]
        goodput = [[0.0] * MEDIAN_OF for _ in runs]
        for place, trial in work.trials(jobs):
            goodput[place % len(runs)][place // len(runs)] = trial.goodput_mbps
        return median_seed(goodput)


LONGEST_S = 86_400.0
"""A day, s: the longest trial."""


class Detail(Inside):
    """The same runs from `start_s` to `stop_s`, sampled as finely as that time needs."""

    kind: ClassVar[str] = "detail"
    start_s: float = Field(ge=0, le=LONGEST_S, allow_inf_nan=False)
    stop_s: float = Field(gt=0, le=LONGEST_S, allow_inf_nan=False)

    def _interval_ns(self, scenario: Scenario) -> int:
        span = max(1, round((self.stop_s - self.start_s) * 1e9))
        return max(_least_interval_ns(scenario), series.interval_ns(span, self.samples))

    @property
    def _window(self) -> tuple[float, float] | None:
        return self.start_s, self.stop_s


def _least_interval_ns(scenario: Scenario) -> int:
    """The shortest interval of the samples of a scenario, with which they are no more than are kept."""
    return max(FINEST_NS, scenario.duration // max(1, min(MOST_ROWS, MOST_ROWS_OF_ALL // scenario.flow_count)))


def median_seed(goodput: Sequence[Sequence[float]]) -> int:
    """The seed nearest to the middle of every run's goodputs (a row for each run, a column for each seed), the lowest of several."""
    middle = (len(goodput[0]) - 1) / 2
    off = [[abs(rank - middle) for rank in _ranks(row)] for row in goodput]
    worst = [max(column) for column in zip(*off, strict=True)]
    return worst.index(min(worst))


def _ranks(values: Sequence[float]) -> list[float]:
    """The place of each value in their order; equal ones share the mean of theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
