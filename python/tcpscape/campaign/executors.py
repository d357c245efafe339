"""Executors: where a campaign's trials run. The order of work, and where it is done, never changes a result.

:class:`Local` uses the cores of this machine, :class:`Dask` a cluster: `dask://HOST:PORT` names a running `dask scheduler`, whose workers have the
same tcpscape installed. Begin with :func:`make`.

On a cluster, a task is a few trials of one scenario; a worker answers after about :data:`ANSWER_S` with those that are over and the rest goes out
again, so that little is lost with a worker: the scheduler gives its tasks to others, and the results are those of the local executor to the last bit.
What workers answer is saved here. Where all workers are gone, the campaign says so and waits for others. Source: the documentation of
dask.distributed, "Futures" and "Resilience".
"""

from __future__ import annotations

import functools
import itertools
import logging
import os
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from queue import SimpleQueue
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tcpscape import engines
from tcpscape.controls import spelling
from tcpscape.engines.base import Engine
from tcpscape.errors import EngineError, TcpscapeError, refuse
from tcpscape.scenario.scenario import Scenario
from tcpscape.store import rows
from tcpscape.store.database import uncollected
from tcpscape.store.side_tables import SIDE_TABLES
from tcpscape.trial import Capture, Trial

if TYPE_CHECKING:
    from distributed import Future

BATCH_S, BATCH_TRIALS = 0.05, 256
"""Short trials are run and saved together, as many as take about so many seconds, and so many at most: a transaction costs as much as they do."""
ALIKE = 1.5
"""A scenario's trials are run together with those of another one where they are expected to take at most so many times as long."""
SAVE_S = 10.0
"""How long trials that are being saved are waited for where a campaign ends early, s."""
CHANGED = "a file that the command names was changed between the campaign's begin and this trial"
"""Caveat of a trial whose address is another one when it begins than when it was claimed."""
Keep = Callable[[Sequence[Trial]], None]
"""Saves trials; called from any thread, as soon as they are over."""
Claim = Callable[[Sequence[tuple[int, int]]], list[bool]]
"""Of each of these trials, given by its place in the work and its seed, whether it is to be run here and now; another process may be running it."""
ClaimedTrial = tuple[int, Scenario, int]
"""A trial that is to be run here: the place of its scenario in the work, the scenario, the seed."""
Trials = Generator[tuple[int, Trial], None, None]
"""Each trial with the place of its scenario in the work. Closed early, it ends what runs."""


@dataclass(frozen=True)
class ScenarioTrials:
    """Trials of one scenario that are to be run."""

    scenario: Scenario
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """How they are run: by which engine, what is kept of each, and who saves it."""

    engine: Engine
    capture: Capture
    keep: Keep
    claim: Claim = lambda trials: [True] * len(trials)
    address: Callable[[int, int], str] | None = None
    """The address under which a trial was claimed, of its place in the work and its seed; None where nobody asks."""

    def claimed(self, place: int, trial: Trial) -> Trial:
        """The trial under the address that was claimed. One of other files, changed since, says so."""
        if self.address is None or (address := self.address(place, trial.seed)) == trial.address:
            return trial
        return replace(trial, address=address, caveats=(*trial.caveats, CHANGED))


class Executor(ABC):
    """Runs trials somewhere."""

    def check(self, engine: Engine, scenarios: Sequence[Scenario]) -> None:  # noqa: B027 (most can do everything)
        """Refuses, by name, what it cannot run, before anything runs."""

    @abstractmethod
    def run(self, task: Task, work: Sequence[ScenarioTrials]) -> Trials:
        """Each trial as it ends, already saved."""


@dataclass(frozen=True)
class Local(Executor):
    """Threads of this process: engines release the GIL. Each takes the next trials when its last are saved."""

    jobs: int = 0
    """Cores; 0 is all."""

    def run(self, task: Task, work: Sequence[ScenarioTrials]) -> Trials:
        """Each trial as it ends; its thread has saved it."""
        count = sum(len(w.seeds) for w in work)
        workers = min(self.jobs or os.cpu_count() or 1, task.engine.at_once or count, count)
        if not count:
            return
        shared = _Shared(task, work)
        pool = ThreadPoolExecutor(workers)
        try:
            for _ in range(workers):
                pool.submit(shared.work)
            for _ in range(workers):
                yield from itertools.chain.from_iterable(iter(shared.next, None))
        except BaseException:
            shared.end()
            pool.shutdown(wait=False, cancel_futures=True)
            task.engine.stop()
            raise
        pool.shutdown(wait=False)


class _Shared:
    """What the threads of a campaign share: the trials to come and those that are over."""

    def __init__(self, task: Task, work: Sequence[ScenarioTrials]) -> None:
        self._task = task
        self._work = work
        self._expected: dict[int, float] = {}
        self._todo = ((place, w.scenario, seed) for place, w in enumerate(work) for seed in w.seeds)
        self._first = next(self._todo, None)
        self._lock = threading.Lock()
        self._done: SimpleQueue[list[tuple[int, Trial]] | BaseException | None] = SimpleQueue()
        self._over = threading.Event()
        self._saving = 0
        self._saved = threading.Condition()

    def work(self) -> None:
        """What each thread does: batch after batch, until no trial is left or the campaign ends."""
        size, place = 1, -1
        try:
            while not self._over.is_set() and (batch := self._take(size, place)):
                began = time.monotonic()
                with _values_of(batch):
                    trials, failure = self._run(batch)
                    if not self._keep([trial for _, trial in trials]):
                        break
                self._done.put(trials)
                if failure:
                    raise failure
                place = batch[-1][0]
                size = _next_size(len(batch), time.monotonic() - began)
            self._done.put(None)
        except BaseException as e:
            self._done.put(e)

    def _run(self, batch: Sequence[ClaimedTrial]) -> tuple[list[tuple[int, Trial]], BaseException | None]:
        """The trials of a batch, and what ended it early: those before it are saved all the same."""
        trials: list[tuple[int, Trial]] = []
        for _, alike in itertools.groupby(batch, key=lambda trial: trial[0]):
            same = list(alike)
            try:
                trials += self._of_one(same)
            except Exception as e:
                if len(same) == 1:
                    return trials, e
                for trial in same:  # one by one: which of them it is, and all before it
                    try:
                        trials += self._of_one([trial])
                    except BaseException as e:
                        return trials, e
            except BaseException as e:
                return trials, e
        return trials, None

    def _of_one(self, alike: Sequence[ClaimedTrial]) -> list[tuple[int, Trial]]:
        """Trials of one scenario; none where the campaign has ended."""
        if self._over.is_set():
            return []
        place, scenario, _ = alike[0]
        trials = self._task.engine.run(scenario, [seed for _, _, seed in alike], threads=1, capture=self._task.capture)
        return [(place, self._task.claimed(place, trial)) for trial in trials]

    def end(self) -> None:
        """No trial begins and none is saved from now on; what is being saved now is kept when this returns."""
        with self._saved:
            self._over.set()
            self._saved.wait_for(lambda: not self._saving, SAVE_S)

    def _keep(self, trials: Sequence[Trial]) -> bool:
        """Saves trials; False where the campaign has ended meanwhile."""
        with self._saved:
            if self._over.is_set():
                return False
            self._saving += 1
        try:
            self._task.keep(trials)
        finally:
            with self._saved:
                self._saving -= 1
                self._saved.notify_all()
        return True

    def _take(self, size: int, last: int) -> list[ClaimedTrial]:
        """The next trials that are claimed; none where none is left.

        :param size: at most so many of the scenario at place `last` and of those whose trials take no longer; of another one, one.
        """
        while True:
            with self._lock:
                trials = self._next_alike(size, last)
            claimed = self._task.claim([(place, seed) for place, _, seed in trials]) if trials else []
            if any(claimed) or not trials:
                return [trial for trial, is_ours in zip(trials, claimed, strict=True) if is_ours]

    def _next_alike(self, size: int, last: int) -> list[ClaimedTrial]:
        trials: list[ClaimedTrial] = []
        while (first := self._first) and (not trials or (len(trials) < size and self._are_as_short([trials[0][0], first[0]], last))):
            trials.append(first)
            self._first = next(self._todo, None)
        return trials

    def _are_as_short(self, places: Sequence[int], last: int) -> bool:
        """Whether trials of the scenarios at these places take no longer than those at place `last`, some of which have run. False if not known."""
        return last >= 0 and all(place == last or 0 < self._seconds(place) <= ALIKE * self._seconds(last) for place in places)

    def _seconds(self, place: int) -> float:
        """Seconds of a core that a trial of the scenario at a place is expected to take at most."""
        if place not in self._expected:
            self._expected[place] = self._task.engine.seconds(self._work[place].scenario)
        return self._expected[place]

    def next(self) -> list[tuple[int, Trial]] | None:
        """The next trials that are over, None where a thread has no more of them; raises what a thread raised."""
        result = self._done.get()
        if isinstance(result, BaseException):
            raise result
        return result


def _values_of(batch: Sequence[object]) -> AbstractContextManager[None]:
    """While several short trials become values and rows, nothing of which is garbage, nobody looks for garbage; during one trial, it may be made."""
    return uncollected() if len(batch) > 1 else nullcontext()


def _next_size(size: int, seconds: float) -> int:
    """How many trials to run together where so many took so many seconds: about :data:`BATCH_S` of them, and at most twice as many."""
    return max(1, min(2 * size, BATCH_TRIALS, int(size * BATCH_S / max(1e-9, seconds))))


def cut(work: Sequence[ScenarioTrials], most: int) -> Iterator[tuple[int, ScenarioTrials]]:
    """Work in pieces of at most `most` trials, each with its place in `work`."""
    for place, whole in enumerate(work):
        seeds = iter(whole.seeds)
        while piece := tuple(itertools.islice(seeds, most)):
            yield place, ScenarioTrials(whole.scenario, piece)


ANSWER_S = 0.5
"""A worker answers after the trial during which so much time has passed, s: hundreds of times what a task costs dask (about a millisecond)."""
TASK_TRIALS, MOST_TRIALS = 64, 1024
"""Most trials of a task, and of one whose trials are expected to take no longer than :data:`ANSWER_S` together."""
CONNECT_S = 10
"""How long the scheduler, and then its first worker, is waited for, s."""
LOOK_S = 2.0
"""How often the workers are counted, s."""
POLL_S = 0.01
"""How often answers are looked for, s."""
AHEAD = 2
"""Tasks for each thread of a worker, so that none waits for the next."""


@dataclass(frozen=True)
class RemoteTask:
    """A task, as it travels: an engine's name and version, and the trials."""

    engine: str
    version: str
    scenario: Scenario
    seeds: tuple[int, ...]
    capture: Capture


@functools.cache
def _engine(spec: str) -> Engine:
    return engines.make(spec)


RemoteTrial = tuple[str, bytes | None, dict[str, Any]]
"""A trial, as it travels: its row in a store, and fields that are not in there, such as tables. To pickle the value takes several times as long."""
_BESIDE_ROW = (*SIDE_TABLES, "sender_events", "control", "control_states")


def sent(trial: Trial) -> RemoteTrial:
    """A trial as a worker sends it."""
    _, text, queues = rows.encode(trial)
    return text, queues, {name: value for name in _BESIDE_ROW if (value := getattr(trial, name)) is not None}


def received(answer: RemoteTrial) -> Trial:
    """The trial that a worker sent. :raises EngineError: one line, where it is none."""
    text, queues, others = answer
    trial = rows.decode(text, queues)
    if trial is None:
        refuse("executor", "a worker's answer is damaged", "see its log, and run again: what is over is kept", EngineError)
    return rows.beside(trial, others)


def run_remote(task: RemoteTask) -> list[RemoteTrial]:
    """On a worker: runs the first of the trials, at least one. Refuses where another model is installed there."""
    engine = _engine(task.engine)
    if engine.version != task.version:
        fix = "install the same tcpscape on every worker"
        refuse("executor", f"a worker's engine {task.engine} is {engine.version}, here it is {task.version}", fix, EngineError)
    began, size = time.monotonic(), 1
    trials: list[RemoteTrial] = []
    while (seeds := task.seeds[len(trials) : len(trials) + size]) and (before := time.monotonic()) - began <= ANSWER_S:
        with _values_of(seeds):
            trials += map(sent, engine.run(task.scenario, seeds, threads=1, capture=task.capture))
        size = _next_size(len(seeds), time.monotonic() - before)
    return trials


class Dask(Executor):
    """A cluster behind a scheduler's address."""

    def __init__(self, address: str, tell: Callable[[str], None] = lambda text: None) -> None:
        """`address` is tcp://HOST:PORT; `tell` is told in a sentence when no worker is left, and when there are some again.

        Connects at once, and refuses where nobody answers.
        """
        self.address = address
        self._tell = tell
        self._is_alone = False
        self._distributed = _package()
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # its messages are given in one line here
        try:
            self._client = self._distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError):
            refuse("executor", f"no dask scheduler answers at {address}", "start one with `dask scheduler`, or use --executor local", EngineError)

    def close(self) -> None:
        """Leaves the cluster; its workers go on without us."""
        self._client.close()

    def check(self, engine: Engine, scenarios: Sequence[Scenario]) -> None:
        """Refuses Python congestion controls and engines that exist in this process only, and a cluster without workers."""
        if engines.REGISTRY.get(engine.name) is not type(engine):
            refuse("executor", f"engine {engine.version} is made in this process, and workers cannot make it", "use --executor local", EngineError)
        for cca in sorted({cca for s in scenarios for cca in s.controls}):
            if spelling.is_class(cca):
                refuse("cca", f"{cca} is Python code, which dask's workers do not have", "use --executor local", EngineError)
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_S)
        except (TimeoutError, OSError):
            refuse("executor", f"the scheduler at {self.address} has no workers", f"start one with `dask worker {self.address}`", EngineError)

    def run(self, task: Task, work: Sequence[ScenarioTrials]) -> Trials:
        """Each trial as its worker answers, saved here."""
        pieces = _Pieces(task, work, self._lanes)
        out: dict[Future[list[RemoteTrial]], tuple[int, ScenarioTrials]] = {}
        arriving = self._distributed.as_completed(loop=self._client.loop)
        try:
            while True:
                pieces.look()
                for i, piece in self._claimed(task, pieces, len(out)):
                    future = self._client.submit(run_remote, pieces.remote(piece), key=f"tcpscape-{secrets.token_hex(8)}", pure=False)
                    out[future] = (i, piece)
                    arriving.add(future)
                if not out:
                    return
                while not arriving.has_ready():
                    time.sleep(POLL_S)
                    pieces.look()
                future = next(arriving)
                pieces.look(at_once=self._is_alone)  # who answered is there again
                i, piece = out.pop(future)
                trials = [task.claimed(i, trial) for trial in self._answer(future)]
                task.keep(trials)
                pieces.again(i, piece, len(trials))
                yield from ((i, trial) for trial in trials)
        finally:
            self._client.cancel(list(out))

    @staticmethod
    def _claimed(task: Task, pieces: _Pieces, out: int) -> Iterator[tuple[int, ScenarioTrials]]:
        """The next pieces, without trials that other processes run."""
        for i, piece in pieces.next(out):
            claimed = task.claim([(i, seed) for seed in piece.seeds])
            if seeds := tuple(seed for seed, is_ours in zip(piece.seeds, claimed, strict=True) if is_ours):
                yield i, ScenarioTrials(piece.scenario, seeds)

    def _lanes(self) -> int:
        """Tasks to have out at a time."""
        threads: int = sum(self._client.nthreads().values())
        if (threads == 0) != self._is_alone:
            self._is_alone = threads == 0
            fix = f"`dask worker {self.address}` starts one; the trials go on then, and Ctrl-C keeps those that are over"
            self._tell(f"no worker is left: {fix}" if self._is_alone else "there are workers again: the trials go on")
        return AHEAD * max(1, threads)

    def _answer(self, future: Future[list[RemoteTrial]]) -> list[Trial]:
        """A task's trials; whatever dask minds is one line."""
        try:
            trials = [*map(received, future.result())]
        except TcpscapeError:
            raise
        except ModuleNotFoundError as e:
            refuse("executor", f"a worker cannot import {e.name}", "install the same tcpscape on every worker", EngineError)
        except (self._distributed.KilledWorker, self._distributed.CancelledError, OSError, TimeoutError) as e:
            if "scheduler-connection-lost" in str(e):
                fix = "start it and its workers again, then the same command: what is over is kept"
                refuse("executor", f"the dask scheduler at {self.address} is gone", fix, EngineError)
            why = " ".join(str(e).split())[:200].rstrip(".")
            refuse("executor", f"dask gave up: {type(e).__name__}: {why}", "see its workers' logs, and run again: what is over is kept", EngineError)
        return trials


class _Pieces:
    """What is still to be sent out."""

    def __init__(self, task: Task, work: Sequence[ScenarioTrials], count_lanes: Callable[[], int]) -> None:
        self._task = task
        self._count_lanes = count_lanes
        self.lanes, self._looked = count_lanes(), time.monotonic()
        count = sum(len(w.seeds) for w in work)
        self._pieces = cut(work, max(1, min(self._most(work), count // (AHEAD * self.lanes))))
        self._back: deque[tuple[int, ScenarioTrials]] = deque()

    def _most(self, work: Sequence[ScenarioTrials]) -> int:
        """Most trials of a task. One of many short trials costs dask as much as one of few."""
        longest = max((self._task.engine.seconds(w.scenario) for w in work), default=0.0)
        return max(TASK_TRIALS, min(MOST_TRIALS, int(ANSWER_S / longest))) if longest > 0 else TASK_TRIALS

    def look(self, *, at_once: bool = False) -> None:
        """Counts the lanes again, where that was longer ago than :data:`LOOK_S`."""
        if at_once or time.monotonic() - self._looked > LOOK_S:
            self.lanes, self._looked = self._count_lanes(), time.monotonic()

    def next(self, out: int) -> Iterator[tuple[int, ScenarioTrials]]:
        """Pieces to send where `out` are out: what came back first."""
        while self._back and out < self.lanes:
            yield self._back.popleft()
            out += 1
        yield from itertools.islice(self._pieces, max(0, self.lanes - out))

    def again(self, i: int, piece: ScenarioTrials, done: int) -> None:
        """Takes back what a worker did not come to."""
        if piece.seeds[done:]:
            self._back.append((i, ScenarioTrials(piece.scenario, piece.seeds[done:])))

    def remote(self, piece: ScenarioTrials) -> RemoteTask:
        """A piece as it travels."""
        return RemoteTask(self._task.engine.spec, self._task.engine.version, piece.scenario, piece.seeds, self._task.capture)


def _package() -> ModuleType:
    try:
        import distributed
    except ImportError:
        refuse("executor", "the package distributed is missing", "install it with `pip install 'tcpscape[dask]'`", EngineError)
    return distributed


def make(text: str, jobs: int = 0, tell: Callable[[str], None] = lambda text: None) -> Executor:
    """The executor called `local` or `dask://HOST:PORT`; `jobs` is the cores of the local one, 0 for all; `tell` as of :class:`Dask`.

    :raises EngineError: for any other text, and where the cluster does not answer.
    """
    if text == "local":
        return Local(jobs)
    scheme, colon, place = text.partition("://")
    host, _, port = place.rpartition(":")
    if scheme != "dask" or not colon or not host or not port.isdigit():
        refuse("executor", f"{text!r} is unknown", "write local, or dask://HOST:PORT of a running `dask scheduler`", EngineError)
    if jobs:
        refuse("jobs", f"a cluster has its own cores, and {jobs} was asked for", "leave out --jobs", EngineError)
    return Dask(f"tcp://{place}", tell)
