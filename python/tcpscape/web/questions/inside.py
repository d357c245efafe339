"""The question `inside`: single runs of the state, and of a pinned one, sampled finely; `detail` is the same in a shorter time, finer.

A run over time is columns in s, bit/s, bytes and packets: quantities of its flows and of the bottleneck's queue; what happened to the senders,
exactly as often as the trial's own counters say; and the bound on the latency spike of each drop of the path's rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict

from tcpscape.controls import palette
from tcpscape.errors import TcpscapeError
from tcpscape.findings.spike import Bound
from tcpscape.metrics import queues
from tcpscape.plots import traces
from tcpscape.scenario import bottleneck
from tcpscape.scenario.path import rate_bps
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Trial
from tcpscape.units import NS_PER_S
from tcpscape.web.pool import FIRST, Job, Work
from tcpscape.web.questions import Question, Seed
from tcpscape.web.state import PageState, State
from tcpscape.web.stream import Block
from tcpscape.words import bound as words

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float32]
FLOW_COLUMNS: Mapping[str, tuple[str, float]] = {
    "cwnd": ("cwnd", 1.0),
    "ssthresh": ("ssthresh", 1.0),
    "in_flight": ("in_flight", 1.0),
    "rtt": ("srtt_us", 1e-6),
    "min_rtt": ("min_rtt_us", 1e-6),
    "rto": ("rto_us", 1e-6),
    "pacing_rate": ("pacing_rate", 8.0),
    "delivery_rate": ("delivery_rate", 8.0),
    "rwnd": ("rwnd", 1.0),
}
"""Quantity of a flow → its column in the samples, and the factor from there (µs, byte/s)."""
QUEUE_COLUMNS: Mapping[str, tuple[str, float]] = {
    "packets": ("packets", 1.0),
    "bytes": ("bytes", 1.0),
    "sojourn": ("sojourn_ns", 1e-9),
    "drops": ("drops", 1.0),
    "marks": ("marks", 1.0),
}
"""Quantity of a queue → its column in the samples of queues, and the factor from there (ns)."""
NO_VALUE = {"ssthresh": 2**31 - 1, "min_rtt": (2**32 - 1) * 1e-6}
"""What stands for no value yet: no threshold before the first loss, no RTT before the first sample."""
MOST_FLOWS = 8
"""Most flows of a run that are sent."""
FIRST_STEPS = (5, 2, 1)


class OfRun(TypedDict):
    """The values of a block about a run."""

    run: int


class SeriesValues(OfRun):
    """The values of the block `series`."""

    flow: int
    cca: str


class EventDocument(TypedDict):
    """A kind of event, as the page has it."""

    name: str
    title: str
    about: str


class MarksValues(OfRun):
    """The values of the block `marks`."""

    kinds: list[EventDocument]


class SpikeBound(TypedDict):
    """How high the delay must rise after a drop of the bottleneck's rate."""

    at_s: float
    d_s: float
    """The delay of the path without its queue."""
    spike_s: float
    text: str
    """The same as a sentence."""


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of event."""

    name: str
    """Its column in the events of senders."""
    title: str
    about: str
    """What it means, as a sentence."""
    counter: str = ""
    """The counter of a flow's results that has their number; empty where there is none."""


EVENTS: Sequence[EventKind] = (
    EventKind("lost", "loss", "The sender found packets lost."),
    EventKind("retransmits", "retransmission", "The sender sent segments again.", "retransmits"),
    EventKind("fast_recoveries", "fast recovery", "The sender began to repair losses, with a smaller window.", "fast_recoveries"),
    EventKind("ecn_reductions", "ECN reduction", "The window fell after a congestion mark.", "ecn_reductions"),
    EventKind("rtos", "timeout", "The retransmission timer expired: the window begins anew.", "rtos"),
    EventKind("undos", "undo", "A reduction was found wrong and taken back.", "undos"),
    EventKind(
        "spurious_retransmits", "needless retransmission", "The receiver reported that it had the data already (DSACK).", "spurious_retransmits"
    ),
    EventKind("spurious_rtos", "spurious timeout", "F-RTO found that the timeout was wrong."),
    EventKind("tlps", "tail loss probe", "The sender repeated the last segment or sent one more, since no ACK came."),
    EventKind("reord_seen", "reordering", "The sender saw that packets had overtaken each other.", "reord_seen"),
)
"""Every kind of event that is marked, in the order of the legend."""
SHADED = 2
"""The first of the states in which the window is reduced or losses are repaired: spans of them are sent."""
MARK = ("t", "flow", "kind", "count", "cwnd")
SPAN = ("span.from", "span.to", "span.state", "span.flow")


def interval_ns(duration_ns: int, samples: int) -> int:
    """The largest interval of 1, 2 or 5 · 10ⁿ ns that gives at least so many samples."""
    most = max(1, duration_ns // max(1, samples))
    power = int(10 ** (len(str(most)) - 1))
    return next(step * power for step in FIRST_STEPS if step * power <= most)


def of_flows(run: int, trial: Trial, scenario: Scenario, window: tuple[float, float] | None = None) -> Iterator[Block]:
    """A block `series` for each flow of the trial, in `window` (s) where one is given: quantities at the times `t`, goodput at `goodput.t`."""
    if trial.samples is None:
        return
    numbers = trial.samples["flow"].to_numpy()
    for flow in range(min(len(trial.flows), MOST_FLOWS)):
        rows = trial.samples if len(trial.flows) == 1 else trial.samples.filter(numbers == flow)
        columns = _columns(_within(rows, window), FLOW_COLUMNS)
        columns |= _goodput(trial, scenario, flow)
        yield Block("series", SeriesValues(run=run, flow=flow, cca=trial.flows[flow].cca), columns)


def of_queue(run: int, trial: Trial, scenario: Scenario, window: tuple[float, float] | None = None) -> Iterator[Block]:
    """The block `queue` of the bottleneck; none where the path has no rate."""
    link = bottleneck.shown(scenario)
    if link is None or trial.queue_samples is None:
        return
    frame = trial.queue_samples
    here = (frame["pipe"] == queues.pipe(trial, link)) & (frame["stage"] == link.stage) & (frame["depth"] == link.depth)
    yield Block("queue", OfRun(run=run), _columns(_within(frame.filter(here), window), QUEUE_COLUMNS))


def _within(rows: pl.DataFrame, window: tuple[float, float] | None) -> pl.DataFrame:
    if window is None or rows.is_empty():
        return rows
    times = rows["t_ns"].to_numpy()
    first, end = np.searchsorted(times, [window[0] * NS_PER_S, window[1] * NS_PER_S])
    return rows[max(0, int(first) - 1) : int(end) + 1]


def _columns(rows: pl.DataFrame, wanted: Mapping[str, tuple[str, float]]) -> dict[str, Array]:
    """The columns as the page draws them, with their times `t`; NaN where there is no value."""
    columns = {"t": (rows["t_ns"].to_numpy() / NS_PER_S).astype(np.float32)}
    for name, (source, factor) in wanted.items():
        if source in rows.columns:
            values = rows[source].to_numpy().astype(np.float64) * factor
            missing = NO_VALUE.get(name)
            columns[name] = (values if missing is None else np.where(values < missing * (1 - 1e-9), values, np.nan)).astype(np.float32)
    return columns


def _goodput(trial: Trial, scenario: Scenario, flow: int) -> dict[str, Array]:
    """What was delivered in intervals of about a 250th of the trial, as figures over time have it."""
    trace = traces.Trace("", palette.LOOKS[0], trial, flow, scenario)
    curve = traces.PANELS["throughput"].read(trace)
    times, values = curve if curve is not None else (np.empty(0), np.empty(0))
    return {"goodput.t": times.astype(np.float32), "goodput": (values * 1e6).astype(np.float32)}


def marks(run: int, trial: Trial, window: tuple[float, float] | None = None) -> Block:
    """The block `marks` of a run: each mark's time, flow, kind (a place in `kinds`), how many at once, and the window then; spans of states."""
    values = MarksValues(run=run, kinds=[EventDocument(name=kind.name, title=kind.title, about=kind.about) for kind in EVENTS])
    events = trial.sender_events
    if events is None or events.is_empty():
        return Block("marks", values, {name: np.empty(0, np.float32) for name in (*MARK, *SPAN)})
    times, flows, cwnd = (events[name].to_numpy() for name in ("t_ns", "flow", "cwnd"))
    places, kind_of, counts = [], [], []
    for number, kind in enumerate(EVENTS):
        grown = events[kind.name].to_numpy()
        rows = np.flatnonzero(grown)
        places.append(rows)
        kind_of.append(np.full(len(rows), number))
        counts.append(grown[rows])
    at, kind_column, count_column = (np.concatenate(parts) for parts in (places, kind_of, counts))
    order = np.argsort(at, kind="stable")
    at = at[order]
    table = {
        "t": times[at] / NS_PER_S,
        "flow": flows[at],
        "kind": kind_column[order],
        "count": count_column[order],
        "cwnd": cwnd[at],
        **_spans(times / NS_PER_S, flows, events["ca_state"].to_numpy(), trial.duration),
    }
    keep = slice(None) if window is None else (table["t"] >= window[0]) & (table["t"] <= window[1])
    kept = {name: table[name][keep] for name in MARK} | {name: table[name] for name in SPAN}
    return Block("marks", values, {name: np.ascontiguousarray(column, np.float32) for name, column in kept.items()})


def _spans(times: np.ndarray, flows: np.ndarray, states: np.ndarray, end_s: float) -> dict[str, np.ndarray]:
    """The times in each of the shaded states; one that lasts to the end ends there."""
    rows: list[tuple[float, float, float, float]] = []
    for flow in np.unique(flows):
        of_flow = flows == flow
        t, state = times[of_flow], states[of_flow]
        turns = np.flatnonzero(np.diff(state, prepend=0))
        ends = np.append(t[turns[1:]], end_s)
        rows += [(t[i], max(t[i], end), state[i], flow) for i, end in zip(turns, ends, strict=True) if state[i] >= SHADED]
    columns = np.array(sorted(rows), dtype=np.float64).reshape(-1, len(SPAN)).T
    return dict(zip(SPAN, columns, strict=True))


def spike_bounds(scenario: Scenario) -> list[SpikeBound]:
    """The bound of each drop of the bottleneck's rate at one moment, in the order of time."""
    rates = [rate_bps(hop) for hop in scenario.bottleneck]
    steps = [
        (change.at, place, change.hop, change.set.rate)
        for place, change in enumerate(scenario.changes)
        if change.where == "bottleneck" and change.at is not None and change.set and change.set.rate and change.hop < len(rates)
    ]
    bounds = []
    for at, _, hop, rate in sorted(steps):
        before, rates[hop] = rates[hop], rate
        if before and rate < before:
            bound = Bound(before, rate, ((scenario.rtt_ns, 1.0),), _longest_queue_ns(scenario, rate))
            d_s, spike_s = bound.d_ns / NS_PER_S, bound.spike_ns / NS_PER_S
            bounds.append(SpikeBound(at_s=at / NS_PER_S, d_s=d_s, spike_s=spike_s, text=words.answer(bound)))
    return bounds


def _longest_queue_ns(scenario: Scenario, rate: int) -> int | None:
    """The longest delay that the bottleneck's queue allows at this rate; None where its limit is not in bytes."""
    try:
        link = bottleneck.find(scenario)
    except TcpscapeError:
        return None
    limit = link.holder.limit_bytes if link else None
    return limit * 8 * NS_PER_S // rate if limit else None


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


class RunValues(OfRun):
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
    bounds: list[SpikeBound]
    caveats: list[str]


class Inside(Question):
    """Sends a `run` for each run and behind it its `series` (one for each flow), `queue` and `marks`, in the order in which runs are ready."""

    kind: ClassVar[str] = "inside"
    blocks: ClassVar[Mapping[str, Any]] = {"run": RunValues, "series": SeriesValues, "queue": OfRun, "marks": MarksValues}
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
        return max(_least_interval_ns(scenario), interval_ns(scenario.duration, self.samples))

    @property
    def _window(self) -> tuple[float, float] | None:
        return None

    def _blocks(self, number: int, run: _Run, trial: Trial) -> Iterator[Block]:
        scenario, window = run.scenario, self._window
        numbers = [
            FlowNumbers(
                cca=flow.cca,
                goodput_mbps=flow.goodput_mbps,
                retransmits=flow.retransmits,
                rtos=flow.rtos,
                fast_recoveries=flow.fast_recoveries,
                undos=flow.undos,
            )
            for flow in trial.flows
        ]
        yield Block(
            "run",
            RunValues(
                run=number,
                cca=scenario.cca,
                pinned=run.pinned,
                seed=trial.seed,
                duration_s=trial.duration,
                interval_s=self._interval_ns(scenario) / 1e9,
                numbers=numbers,
                bounds=spike_bounds(scenario),
                caveats=list(trial.caveats),
            ),
        )
        yield from of_flows(number, trial, scenario, window)
        yield from of_queue(number, trial, scenario, window)
        yield marks(number, trial, window)

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
        return max(_least_interval_ns(scenario), interval_ns(span, self.samples))

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
