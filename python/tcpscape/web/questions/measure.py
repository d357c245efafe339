"""The question `measure`: what a measurement says of its path and of what limits a flow, and the model's replay beside it.

Numbers of columns and levels are in SI units (s, bit/s, bytes), times from the flow's first packet. Columns of `observed` are `goodput.t`, `goodput`,
`rtt.t`, `rtt`, `flight.t`, `flight`, those that the source shows; of `limits` `begin`, `end`, `cause` (index into `causes`); of `replay` `t`, and of
`goodput`, `rtt` (smoothed), `flight` the first run, `NAME.low` and `NAME.high` of all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict

from tcpscape import engines, units
from tcpscape.campaign import executors
from tcpscape.campaign.execute import Runner
from tcpscape.campaign.executors import Executor, Task, Trials
from tcpscape.errors import TcpscapeError, refuse
from tcpscape.findings.diagnosis import diagnosis
from tcpscape.findings.diagnosis import limits as intervals
from tcpscape.findings.diagnosis import observed as observing
from tcpscape.findings.diagnosis.diagnosis import Diagnosis, FlowDiagnosis
from tcpscape.findings.diagnosis.fitted import DiagnosisSettings, ReplaySettings, expect_known
from tcpscape.findings.diagnosis.observed import Observation, ObservedFlow
from tcpscape.interchange.observing import TITLES
from tcpscape.plots import diagnosis as series
from tcpscape.plots.series import thinned
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats, Interval
from tcpscape.text.numbers import number
from tcpscape.trial import Capture, Trial
from tcpscape.units import NS_PER_S, counted
from tcpscape.web.opened import Measurement, Results
from tcpscape.web.pool import LATER, SOON, Job, Work
from tcpscape.web.questions import Progress, Question
from tcpscape.web.state import State, of_scenario
from tcpscape.web.stream import Block
from tcpscape.words import diagnosis as answer
from tcpscape.words import flow as words
from tcpscape.words import steps

MOST_FLOWS = 50
"""Flows from which the page can choose."""
MOST_LIMITS = 2000
"""Most intervals that the page draws; shorter ones are then within these."""
MOST_POINTS = 20_000
"""Most points of a curve of the observation."""
PROGRESS_S = 0.1
"""The page is told at most this often how far it is, s."""
LOOK_S = 1.0
"""How often a file that is followed is looked at, s."""
PATIENCE_S = 0.05
"""How soon the end of a question is noticed while nothing happens, s."""
RUNS = 8
"""Runs of the replay that are drawn: one as a line, all as a band."""
SAMPLES, LEAST_S = 1000, 0.001
"""Samples of a run, about, and their shortest interval, s."""
SEGMENT = 1448
"""Bytes of a full segment: samples count segments that were delivered, also those that only a SACK reports, as the observation's ACKs do."""


class SourceFlow(TypedDict):
    """A flow from which the page can choose."""

    name: str
    text: str
    """For the option `flow`."""
    bytes: int | None
    chosen: bool


class SourceValues(TypedDict):
    """The values of the block `source`, which comes once for each reading."""

    name: str
    about: str
    notes: list[str]
    """What could not be read."""
    flows: list[SourceFlow]
    """The largest."""


class MeasureProgress(Progress):
    """What is being done; a `total` of 0 is not known."""

    text: str


class FlowValues(TypedDict):
    """The values of the block `flow`, which comes before the replay and after it."""

    name: str
    final: bool
    sentences: list[str]
    """Three; before the replay two."""
    title: str
    rows: list[list[str]]
    """What, value with its interval, remark."""
    limits: dict[str, float]
    """Cause → share of the time."""
    missing: list[list[str]]
    """What is not identifiable, and why."""
    caveats: list[str]
    changes: list[float]
    """Times at which the path changed, s."""
    levels: dict[str, Interval]
    """Fitted `rate` and `rtt`."""
    state: State | None
    """The fitted path; null without one."""
    remarks: list[str]
    """What that leaves out."""


class ObservedValues(TypedDict):
    """The values of the block `observed`: what the source shows over time."""

    seconds: float


class LimitsValues(TypedDict):
    """The values of the block `limits`: what held the flow when."""

    causes: list[str]


class ReplayValues(TypedDict):
    """The values of the block `replay`: runs of the model on the fitted path."""

    cca: str | None
    text: str
    """What they are."""


class Measure(Question):
    """What is diagnosed, and what is known already."""

    kind: ClassVar[str] = "measure"
    blocks: ClassVar[Mapping[str, Any]] = {
        "source": SourceValues,
        "progress": MeasureProgress,
        "flow": FlowValues,
        "observed": ObservedValues,
        "limits": LimitsValues,
        "replay": ReplayValues,
        "document": Mapping[str, object],
    }
    """`document` is that of `tcpscape diagnose --flows 1 --json`."""
    flow: str = Field(default="", max_length=200)
    """Which flow, as `tcpscape diagnose --flow` reads it; empty is the largest."""
    cca: str = Field(default="", max_length=40)
    """Congestion control of the sender, where the user knows it."""
    replay: bool = True
    """Whether the model repeats the flow."""
    quick: bool = False
    """Whether few runs are enough."""
    follow: bool = False
    """Whether a file that grows is diagnosed again."""

    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Reads what is open, diagnoses a flow and replays it; whoever follows a file goes on."""
        if not isinstance(opened, Measurement | Results):
            refuse("measure", "nothing is open that shows flows", "drop a capture, iperf3's JSON, a Flent file, output of ss or results on the page")
        expect_known(self.cca or None, None)
        told = _Told(work)
        while True:
            observation = opened.observation(told.reading) if isinstance(opened, Measurement) else opened.observation()
            _Diagnosing(self, work, told, observation).run()
            if not (self.follow and isinstance(opened, Measurement)):
                return
            _wait(work, opened.has_grown)


class _Diagnosing:
    """The diagnosis of one flow, block by block."""

    def __init__(self, asked: Measure, work: Work, told: _Told, observation: Observation) -> None:
        self._asked, self._work, self._told = asked, work, told
        self._observation = observing.seen_once(observation)
        self._chosen = observing.chosen(self._observation, 1, asked.flow)

    def run(self) -> None:
        """Sends everything."""
        self._work.send(Block("source", self._source()))
        if not self._chosen:
            self._work.send(Block("document", answer.document(Diagnosis(self._observation, [], self._observation.flows))))
            return
        self._told.say("what the packets say")
        settings = DiagnosisSettings(1, self._asked.flow, self._asked.cca or None, self._replay() if self._asked.replay else None)
        found = diagnosis.before_replay(self._chosen[0], settings)
        self._send_flow(found, final=settings.replay is None)
        if settings.replay is not None:
            found = diagnosis.replayed(found, settings.replay)
            self._send_flow(found, final=True)
            if found.repeated is not None:
                self._told.say("the replay")
                self._work.send(replay(found, self._work))
        others = [flow for flow in self._observation.flows if flow is not self._chosen[0]]
        self._work.send(Block("document", answer.document(Diagnosis(self._observation, [found], others))))

    def _replay(self) -> ReplaySettings:
        runner = Runner(engines.make("model"), executor=OnPool(self._work), progress=self._told.trials)
        return ReplaySettings(runner, None, self._asked.quick, steps.told(self._told.say))

    def _source(self) -> SourceValues:
        seen = self._observation
        flows = sorted(seen.flows, key=lambda flow: flow.bytes or 0, reverse=True)[:MOST_FLOWS]
        rows = [SourceFlow(name=flow.name, text=_ends(flow), bytes=flow.bytes, chosen=any(flow is one for one in self._chosen)) for flow in flows]
        about = f"{TITLES.get(seen.kind, seen.kind)}, {counted(len(seen.flows), 'flow')}"
        return SourceValues(name=seen.name, about=about, notes=list(seen.notes), flows=rows)

    def _send_flow(self, found: FlowDiagnosis, *, final: bool) -> None:
        if final or self._asked.replay:
            self._work.send(Block("flow", _flow_values(found, self._observation, final=final)))
        if not final or not self._asked.replay:
            self._work.send(observed(found))
            self._work.send(limits(found))


class _Told:
    """Tells the page how far it is, not too often; ends the work where nobody wants it."""

    def __init__(self, work: Work) -> None:
        self._work, self._last, self._text = work, 0.0, ""

    def say(self, text: str) -> None:
        """Says what is done now."""
        self._text, self._last = text, 0.0
        self._tell(0, 0)

    def reading(self, done: int, total: int | None) -> None:
        """So many bytes are read."""
        self._text = "reading"
        self._tell(done, total or 0)

    def trials(self, done: int, total: int) -> None:
        """So many trials of the replay are done."""
        self._tell(done, total)

    def _tell(self, done: int, total: int) -> None:
        self._work.expect_wanted()
        now = time.monotonic()
        if now - self._last >= PROGRESS_S or done == total:
            self._last = now
            self._work.send(Block("progress", MeasureProgress(text=self._text, done=done, total=total)))


def _wait(work: Work, is_over: Callable[[], bool]) -> None:
    """Waits until something has happened. :raises Cancelled: the question is stale."""
    next_look = time.monotonic() + LOOK_S
    while True:
        work.expect_wanted()
        time.sleep(PATIENCE_S)
        if time.monotonic() >= next_look:
            if is_over():
                return
            next_look = time.monotonic() + LOOK_S


def _ends(flow: ObservedFlow) -> str:
    """A flow as the option `flow` names it."""
    return f"{flow.source.text}-{flow.destination.text}" if flow.source.address and flow.destination.address else ""


def _flow_values(found: FlowDiagnosis, observation: Observation, *, final: bool) -> FlowValues:
    """The values of the block `flow`."""
    table = answer.of_flow(found)
    texts = [words.path_sentence(found), words.limit_sentence(found), *([words.advice_sentence(found)] if final else [])]
    rows = [[str(cell) for cell in row] for row in table.rows if final or row[0] not in ("zone", "replay", "better")]
    fit, path = found.fitted(), found.path
    state: State | None = None
    remarks: Sequence[str] = ()
    if fit is not None:
        own, remarks = of_scenario(found.repeated.scenario if found.repeated else fit.scenario(found.control.likely))
        state = rounded(own)
    return FlowValues(
        name=found.flow.name,
        final=final,
        sentences=texts,
        title=table.title,
        rows=rows,
        limits={str(cause): share for cause, share in (found.limited_by or {}).items()},
        missing=[[what, why] for what, why in answer.not_identifiable(found).items() if (final or what not in diagnosis.RUN_PARTS)],
        caveats=answer.what_weakens(Diagnosis(observation, [found])),
        changes=[change.at_s - found.flow.start_s for change in path.changes] if path else [],
        levels={name: _level(estimate, factor) for name, field, factor in LEVELS if path and (estimate := getattr(path, field))},
        state=state,
        remarks=list(remarks),
    )


LEVELS = (("rate", "rate_mbps", 1e6), ("rtt", "rtt_ms", 1e-3))
"""Fitted values that the page draws: its name, that of the path, the factor to SI units."""


def _level(estimate: Estimate, factor: float) -> Interval:
    return Interval(value=estimate.value * factor, low=estimate.low * factor, high=estimate.high * factor)


def observed(found: FlowDiagnosis) -> Block:
    """What the source shows of a flow over time."""
    flow, columns = found.flow, dict[str, NDArray[Any]]()
    flight = (series.in_flight(flow) or {}).get("in flight")
    for name, curve, factor in (("goodput", series.delivered(flow), 1e6), ("rtt", series.round_trips(flow), 1e-3), ("flight", flight, 1e3)):
        if curve is not None:
            t, values = thinned(*curve, MOST_POINTS)
            columns |= {f"{name}.t": np.ascontiguousarray(t, "<f8"), name: np.ascontiguousarray(values * factor, "<f8")}
    return Block("observed", ObservedValues(seconds=flow.seconds), columns)


def limits(found: FlowDiagnosis) -> Block:
    """What held a flow when."""
    causes = list(words.NAMES)
    shown, begin = intervals.readable(found.flow.limits, MOST_LIMITS), found.flow.start_s
    rows = [(one.start_s - begin, one.end_s - begin, causes.index(one.cause)) for one in shown]
    columns = {name: np.array([row[i] for row in rows], "<f8") for i, name in enumerate(("begin", "end", "cause"))}
    return Block("limits", {"causes": [words.NAMES[cause] for cause in causes]}, columns)


class OnPool(Executor):
    """Runs trials beside those of other questions, the more urgent first; what nobody wants any more ends."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def run(self, task: Task, work: Sequence[executors.ScenarioTrials]) -> Trials:
        """Each trial as it ends, already saved. :raises Cancelled: the question is stale."""
        every = [(place, one.scenario, seed) for place, one in enumerate(work) for seed in one.seeds]
        claimed = task.claim([(place, seed) for place, _, seed in every])
        wanted = [trial for trial, is_ours in zip(every, claimed, strict=True) if is_ours]
        jobs = [Job(scenario, seed, LATER, task.capture) for _, scenario, seed in wanted]
        for i, trial in self._work.trials(jobs, task.engine):
            task.keep([trial])
            yield wanted[i][0], trial


def replay(found: FlowDiagnosis, work: Work) -> Block:
    """The block `replay` of a diagnosis that has one. :raises Cancelled: the question is stale."""
    repeated = found.repeated
    if repeated is None:
        raise ValueError("the diagnosis has no replay")
    every = max(LEAST_S, repeated.scenario.duration / NS_PER_S / SAMPLES)
    jobs = [Job(repeated.scenario, seed, SOON, Capture(samples_ns=round(every * NS_PER_S))) for seed in range(RUNS)]
    trials = dict(work.trials(jobs))
    edges = np.arange(0.0, found.flow.seconds, series.bin_length(found.flow))
    runs = [_on_grid(trials[place], repeated.warmup_s, edges) for place in sorted(trials)]
    columns: dict[str, Any] = {"t": edges[1:]}
    for name in ("goodput", "rtt", "flight"):
        rows = np.array([run[name] for run in runs])
        columns |= {name: rows[0], f"{name}.low": _over(np.nanmin, rows), f"{name}.high": _over(np.nanmax, rows)}
    own = found.replay.control if found.replay else None
    begin = f"; its first {number(repeated.warmup_s)} s are left out" if repeated.warmup_s else ""
    values = ReplayValues(cca=own, text=f"{len(runs)} runs of {own} on the fitted path, by the model{begin}")
    return Block("replay", values, {name: np.ascontiguousarray(column, "<f8") for name, column in columns.items()})


def _over(of: Any, rows: Floats) -> Floats:
    """The least or greatest of each column; NaN where no run has a value."""
    some = ~np.isnan(rows).all(axis=0)
    result = np.full(rows.shape[1], np.nan)
    result[some] = of(rows[:, some], axis=0)
    return result


def _on_grid(trial: Trial, warmup_s: float, edges: Floats) -> dict[str, Floats]:
    """A run in bins from the start of its flow, or from the end of what is left out: goodput (bit/s), smoothed RTT (s), bytes in flight."""
    if trial.samples is None:
        raise ValueError("a run needs samples to be drawn")
    samples = trial.samples.filter(trial.samples["flow"] == 0)
    t = samples["t_ns"].to_numpy() / NS_PER_S - trial.flows[0].start_s - warmup_s
    delivered, srtt, flight = (samples[name].to_numpy().astype(float) for name in ("delivered", "srtt_us", "in_flight"))
    if len(t) < 2:
        return dict.fromkeys(("goodput", "rtt", "flight"), np.full(max(0, len(edges) - 1), np.nan))
    inside = edges[1:] <= t[-1] + (edges[1] - edges[0] if len(edges) > 1 else 0.0)
    goodput = np.diff(np.interp(edges, t, delivered)) * SEGMENT * 8 / np.diff(edges)
    place = np.clip(np.searchsorted(t, edges[1:], "right") - 1, 0, None)
    rtt = np.where(srtt[place] > 0, srtt[place] / 1e6, np.nan)
    values = {"goodput": goodput, "rtt": rtt, "flight": flight[place] * SEGMENT}
    return {name: np.where(inside, of, np.nan) for name, of in values.items()}


def rounded(state: State) -> State:
    """The same with at most four significant digits, as people would type them: for values that were estimated."""
    written: dict[str, str] = {}
    for name, parse, write in _ROUNDED:
        if text := getattr(state, name):
            with suppress(TcpscapeError, ValueError):
                written[name] = write(parse(text, name))
    return state.model_copy(update=written)


def _time(text: str, name: str) -> float:
    return units.parse_time(text, name, example="50ms")


_ROUNDED: tuple[tuple[str, Callable[[str, str], float], Callable[[float], str]], ...] = (
    ("rtt", _time, units.brief_time),
    ("jitter", _time, units.brief_time),
    ("duration", _time, units.brief_time),
    ("rate", units.parse_rate, lambda bps: f"{bps / 1e6:.4g}mbit"),
    ("buffer", units.parse_size, units.brief_size),
    ("loss", lambda text, name: float(text.removesuffix("%")) / 100, units.brief_percent),
)
"""Field of a state, how it is read, and how it is written shortly."""
