"""The question `inside`: single runs of the state, and of a pinned one, sampled finely; `detail` is the same in a shorter time, finer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

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


class Inside(Question):
    """Sends a `run` for each run and behind it its `series` (one for each flow), `queue` and `marks`.

    A `run` has its number, `cca`, `pinned`, `seed`, the results of each flow, `rtt_s` of the path, `changes` of the path, and the `interval_s` of
    the samples. Runs come in the order in which they are ready.
    """

    kind: ClassVar[str] = "inside"
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
        yield Block("run", {
            "run": number, "cca": scenario.cca, "pinned": run.pinned, "seed": trial.seed, "rtt_s": scenario.rtt_ns / 1e9,
            "duration_s": trial.duration, "interval_s": self._interval_ns(scenario) / 1e9,
            "flows": [_numbers(flow.to_dict()) for flow in trial.flows],
            "changes": series.path_changes(scenario), "caveats": trial.caveats,
        })  # fmt: skip
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


def _numbers(flow: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of a flow's results."""
    names = (
        "cca", "goodput_mbps", "start_s", "stop_s", "retransmits", "spurious_retransmits", "rtos", "fast_recoveries", "undos", "ecn_reductions",
        "reord_seen", "limited_by",
    )  # fmt: skip
    return {name: flow[name] for name in names}
