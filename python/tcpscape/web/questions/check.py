"""The question `check`: the state as it is on a real kernel, beside the model."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from pydantic import Field
from typing_extensions import TypedDict

from tcpscape import engines, kernels
from tcpscape.campaign.campaign import Case
from tcpscape.campaign.outcome import Cell
from tcpscape.engines import Engine
from tcpscape.errors import TcpscapeError, refuse
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Interval
from tcpscape.text.numbers import number
from tcpscape.trial import Trial
from tcpscape.units import NS_PER_S
from tcpscape.web.pool import FIRST, Job, Work
from tcpscape.web.questions import Question
from tcpscape.web.routes import Asked, Post
from tcpscape.web.state import State
from tcpscape.web.stream import Block
from tcpscape.words import explorer as words

MODEL = "model"
MOST_SEEDS = 20
"""Most trials of a congestion control."""
LONGEST_S = 120.0
"""Longest trial that is checked, simulated s."""
MOST_FLOWS = 50
"""Most flows of a trial that is checked."""
PATIENCE_S = 0.02
"""How soon the end of the question is noticed while a trial runs, s."""
_turn = threading.Lock()
"""One check at a time in this process: two would measure each other."""


class CheckEstimate(Interval):
    """An estimate as people write it."""

    text: str


class CheckRow(TypedDict):
    """A congestion control: the mean goodput, Mbit/s, and kernel / model; null before there is one."""

    cca: str
    model: CheckEstimate | None
    real: CheckEstimate | None
    ratio: CheckEstimate | None


class CheckValues(TypedDict):
    """The values of the block `check`, which comes again after each trial."""

    engine: str
    kernel: str
    """Its version."""
    done: int
    """Trials of the kernel."""
    total: int
    rows: list[CheckRow]
    text: str
    """The sentence."""
    caveats: list[str]


class EngineDocument(TypedDict):
    """An engine that could check a state."""

    name: str
    about: str
    missing: str
    """Why it cannot, and what to do; empty where it can."""


class Check(Question):
    """Which kernel, and how often."""

    kind: ClassVar[str] = "check"
    blocks: ClassVar[Mapping[str, Any]] = {"check": CheckValues}
    engine: str = Field(default="virtual", max_length=80)
    """As `tcpscape run --engine` takes it: `virtual:6.1`, `live`."""
    seeds: int = Field(default=3, ge=1, le=MOST_SEEDS)
    """Trials of each congestion control."""

    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Runs the model at once and the kernel trial by trial."""
        if self.engine.partition(":")[0] == MODEL:
            refuse("engine", "the model would be checked by itself", "choose virtual or live")
        if self.engine.endswith("+root"):
            refuse("engine", "a page asks for no root", "choose live, or use `tcpscape run --engine`")
        engine = engines.make(self.engine)
        cases = state.campaign().cases()
        for case in cases:
            _expect_short(case, engine)
        with _alone():
            _Checking(self, work, cases, engine).run()


class _Checking:
    """One check."""

    def __init__(self, asked: Check, work: Work, cases: Sequence[Case], engine: Engine) -> None:
        self._asked, self._work, self._cases, self._engine = asked, work, cases, engine
        self._jobs = [(place, seed) for seed in range(asked.seeds) for place in range(len(cases))]
        self._model: list[list[Trial]] = [[] for _ in cases]
        self._real: list[list[Trial]] = [[] for _ in cases]

    def run(self) -> None:
        """The model's trials, then those of the kernel, each of which is told."""
        wanted = [Job(self._cases[place].scenario, seed, FIRST) for place, seed in self._jobs]
        for i, trial in self._work.trials(wanted):
            self._model[self._jobs[i][0]].append(trial)
        self._tell()
        for place, trial in in_own_thread(self._engine, [(self._cases[place], seed, place) for place, seed in self._jobs], self._work):
            self._real[place].append(trial)
            self._tell()

    def _tell(self) -> None:
        rows = [self._row(place) for place in range(len(self._cases))]
        ratios = {case.cca: self._ratio(place) for place, case in enumerate(self._cases)}
        done = sum(len(trials) for trials in self._real)
        caveats = dict.fromkeys(caveat for trials in (*self._model, *self._real) for trial in trials for caveat in trial.caveats)
        self._work.send(
            Block(
                "check",
                CheckValues(
                    engine=self._asked.engine,
                    kernel=self._engine.version,
                    done=done,
                    total=len(self._jobs),
                    rows=rows,
                    text=words.check(ratios, self._asked.engine, done),
                    caveats=list(caveats),
                ),
            )
        )

    def _row(self, place: int) -> CheckRow:
        model, real = self._cells(place)
        ratio = self._ratio(place)
        values = [_estimate(cell.mean()) if cell.trials else None for cell in (model, real)]
        return CheckRow(cca=self._cases[place].cca, model=values[0], real=values[1], ratio=_estimate(ratio) if ratio else None)

    def _ratio(self, place: int) -> Estimate | None:
        """Kernel / model; None before there is one."""
        model, real = self._cells(place)
        return real.over(model) if real.trials and model.trials else None

    def _cells(self, place: int) -> tuple[Cell, Cell]:
        return self._cell(place, self._model[place], MODEL), self._cell(place, self._real[place], self._asked.engine)

    def _cell(self, place: int, trials: Sequence[Trial], engine: str) -> Cell:
        case = self._cases[place]
        return Cell(case.at, case.cca, engine, (case.scenario,), (tuple(sorted(trials, key=lambda trial: trial.seed)),))


def in_own_thread(engine: Engine, jobs: Sequence[tuple[Case, int, int]], work: Work) -> Iterator[tuple[int, Trial]]:
    """The trials of an engine that is this work's alone, one after the other, beside the threads that run the model; ended with the work.

    :raises Cancelled: the question is stale; what the engine runs is ended.
    """
    done: queue.SimpleQueue[tuple[int, Trial] | BaseException | None] = queue.SimpleQueue()
    over = threading.Event()

    def run() -> None:
        try:
            for case, seed, place in jobs:
                if over.is_set():
                    return
                done.put((place, engine.run(case.scenario, [seed])[0]))
            done.put(None)
        except BaseException as e:
            done.put(e)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while True:
            work.expect_wanted()
            try:
                result = done.get(timeout=PATIENCE_S)
            except queue.Empty:
                continue
            if result is None:
                return
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        over.set()
        while thread.is_alive():  # again, where a trial began at this very moment
            engine.stop()
            thread.join(PATIENCE_S * 10)


def engines_here() -> list[EngineDocument]:
    """The engines that could check a state."""
    built = [f"virtual:{kernel.name}" for kernel in kernels.built_kernels()] or ["virtual"]
    here = []
    for name in (*built, "live"):
        kind, _, variant = name.partition(":")
        engine = engines.REGISTRY[kind].of(variant or None)
        here.append(EngineDocument(name=name, about=ABOUT[kind], missing=engine.unavailable() or ""))
    return here


ABOUT = {"virtual": "a real Linux kernel in virtual time", "live": "this machine's own kernel, in real time"}
"""What each engine is, in words."""


def _estimate(estimate: Estimate) -> CheckEstimate:
    text = number(estimate.value) if estimate.n < 2 else estimate.text()
    return CheckEstimate(value=estimate.value, low=estimate.low, high=estimate.high, text=text)


def _expect_short(case: Case, engine: Engine) -> None:
    """Refuses what the engine cannot run, and what would take too long. :raises TcpscapeError: one line."""
    engine.check(case.scenario)
    if case.scenario.duration / NS_PER_S > LONGEST_S:
        refuse("duration", f"a check takes trials of at most {LONGEST_S:g} s", "shorten it, or use `tcpscape run --engine`")
    if case.scenario.flow_count > MOST_FLOWS:
        refuse("mix", f"a check takes at most {MOST_FLOWS} flows", "take fewer, or use `tcpscape run --engine`")


@contextmanager
def _alone() -> Iterator[None]:
    """No other check runs meanwhile. :raises TcpscapeError: one does."""
    if not _turn.acquire(timeout=1.0):
        refuse("check", "another page checks something on a kernel now", "wait until it is done, or stop it", TcpscapeError)
    try:
        yield
    finally:
        _turn.release()


ROUTES = (Post("engines", Asked, lambda context, asked: engines_here()),)
